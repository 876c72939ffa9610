"""Command lines from dataclasses."""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from boolbert.errors import EvaluationError

Arguments = TypeVar("Arguments")


def parse(kind: type[Arguments], description: str | None, arguments: Sequence[str] | None = None) -> Arguments:
    """The flags of a dataclass, read from the command line if no arguments are given."""
    from argparse import RawDescriptionHelpFormatter

    from transformers import HfArgumentParser

    parser: Any = HfArgumentParser(
        cast(Any, kind), description=description, formatter_class=RawDescriptionHelpFormatter
    )
    values, unknown = parser.parse_args_into_dataclasses(arguments, return_remaining_strings=True)
    if unknown:
        raise EvaluationError(f"unknown argument {unknown[0]!r}; --help lists them all")
    return values
