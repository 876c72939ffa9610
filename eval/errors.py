"""What goes wrong in an evaluation, told in one line."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


class EvaluationError(ValueError):
    """Something that cannot be evaluated; the message says what, where, and what would be right."""


def optional(module: str, package: str, extra: str) -> Any:
    """Import a package that only some users need; where it is missing, say in one line how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise EvaluationError(f"{package} is not installed: pip install 'boolbert[{extra}]'") from None


def run_script(main: Callable[[], None]) -> None:
    """Run a script's main; bad input ends it with one line instead of a traceback."""
    try:
        main()
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
