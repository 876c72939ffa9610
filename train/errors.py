"""How a script ends when something is wrong: one line that says what, and what to do."""

import sys
from collections.abc import Callable

# What a shell expects of a program that was stopped with Ctrl-C.
INTERRUPTED = 130


class TrainingError(RuntimeError):
    """A run that cannot go on. The message is for its user: what happened, and what would help."""


class Interrupted(Exception):
    """The user stopped the run; a checkpoint has been written."""


def run_script(main: Callable[[], None]) -> None:
    """Run a script's main; an error that the user can mend is one line, everything else keeps its traceback."""
    try:
        main()
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        sys.exit(INTERRUPTED)
    except (TrainingError, OSError, ValueError) as error:
        if not str(error) or not _for_the_user(error):
            raise
        sys.exit(f"error: {error}")


def _for_the_user(error: BaseException) -> bool:
    """Whether an error was raised by this project, or by the system about a file."""
    if isinstance(error, TrainingError | OSError):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0] in {
        "boolbert",
        "__main__",
    }
