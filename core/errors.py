# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""What goes wrong because of a user's input, told in one line, and how a script ends on it."""

import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from .addresses import without_secrets
from .terminal import printable, use_any_encoding

# What a shell expects of a program that was stopped with Ctrl-C.
INTERRUPTED = 130
FULL = (errno.ENOSPC, errno.EDQUOT)  # what the system says of a full disk
LONGEST_LINE = 600  # characters of what a user is told of a mistake; it may repeat a text of any length


class BoolBertError(ValueError):
    """Something the user can mend. The message, one line, says what is wrong, where, and what would be right."""

    def __init__(self, message: object = ""):
        super().__init__(cut(printable(without_secrets(str(message)))))  # it may quote a file, or an address


class DataError(BoolBertError):
    """Data that cannot be read as what it claims to be. The message starts with file, line and field."""


class RetrievalError(BoolBertError):
    """An encoder, an index or a query that cannot be searched with."""


class EvaluationError(BoolBertError):
    """Something that cannot be evaluated."""


class TrainingError(BoolBertError):
    """A training run that cannot start or go on."""


class HubError(BoolBertError):
    """A folder that must not, or cannot, be published."""


class DiskFull(OSError):
    """A file for which its disk has no room."""

    def __init__(self, path: str | os.PathLike[str]):
        super().__init__(errno.ENOSPC, "the disk is full", os.fspath(path))

    def __str__(self) -> str:
        return f"{self.filename}: cannot be written: the disk is full"


class Interrupted(Exception):
    """The user stopped the run; a checkpoint has been written."""


class DataWarning(UserWarning):
    """Data that can be read, with something in it that its user should know. `strict` turns it into a `DataError`."""


def run_script(main: Callable[[], Any]) -> None:
    """Run a script's main. A user's mistake ends it with one line and status 2; a bug keeps its traceback."""
    use_any_encoding()
    try:
        try:
            main()
        except SystemExit:  # after help
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except (BoolBertError, OSError) as error:
        print(f"error: {one_line(drop_output(error))}", file=sys.stderr)
        raise SystemExit(2) from None
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def drop_output(error: BaseException) -> BaseException:
    """After an error, let go of standard output where nothing can be written there: Python would try again at its end,
    and fail. What a user is told: files that cannot be written have their name in the error."""
    is_output = isinstance(error, OSError) and error.errno in FULL and error.filename is None
    try:
        sys.stdout.flush()
    except OSError as unwritten:
        is_output, error = True, unwritten
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OSError(f"standard output cannot be written: {reason(error)}") if is_output else error


def optional(module: str, package: str, extra: str) -> Any:
    """Import a package that only some users need; where it is missing, say in one line how to get it."""
    with needed(package, extra):
        return import_module(module)


@contextmanager
def error_at(where: str) -> Iterator[None]:
    """Errors that begin with the place that they are about.

    >>> with error_at("queries.jsonl:3"):
    ...     raise BoolBertError("the query is empty")
    Traceback (most recent call last):
    ...
    boolbert.core.errors.RetrievalError: queries.jsonl:3: the query is empty
    """
    try:
        yield
    except BoolBertError as error:
        raise RetrievalError(f"{where}: {error}") from None


@contextmanager
def needed(package: str, extra: str) -> Iterator[None]:
    """Around imports from a package that only some users need: the same line where it is missing."""
    try:
        yield
    except ImportError:
        raise BoolBertError(f"{package} is not installed: pip install 'boolbert[{extra}]'") from None


def cut(text: str, width: int = LONGEST_LINE) -> str:
    """A text without its middle where it is longer than this: an error's line begins with where and ends with what
    would be right.

    >>> cut("the query 'a a a a a a a a a' has no words", width=32)
    "the query 'a a a a ... no words"
    """
    end = (width - 5) // 3
    return text if len(text) <= width else f"{text[: width - 5 - end].rstrip()} ... {text[-end:].lstrip()}"


def check_text(text: str, what: str, error: type[BoolBertError] = BoolBertError) -> str:
    """The text; raises for half a surrogate pair in it, which no tokenizer, file or database takes. They come from
    bytes that are no UTF-8, and from JSON's escape of one half.

    >>> check_text("caf\\udce9", "the title")
    Traceback (most recent call last):
    boolbert.core.errors.BoolBertError: the title holds half a surrogate pair at character 3; save or type it as UTF-8
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as found:
            problem = f"holds half a surrogate pair at character {found.start}; save or type it as UTF-8"
            raise error(f"{what} {problem}") from None
    return text


def shorten(value: object, width: int = 60) -> str:
    """A value as it is shown in a message.

    >>> shorten("x" * 100, width=10)
    "'xxxxxx..."
    """
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


def one_line(error: BaseException) -> str:
    """What a user is told of a mistake, or of the system's refusal.

    >>> one_line(OSError(errno.ENOSPC, "No space left on device", "runs/log.jsonl"))
    'runs/log.jsonl: cannot be written: the disk is full'
    """
    if isinstance(error, OSError) and error.errno in FULL:
        error = DiskFull(error.filename or "a file")
    return cut(printable(without_secrets(str(error))))


def reason(error: BaseException) -> str:
    """Why something could not be written, without the file's name, which its caller tells."""
    return getattr(error, "strerror", None) or first_line(error)


def first_line(error: BaseException) -> str:
    """
    >>> first_line(ValueError("no such file\\nand more"))
    'no such file'
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def in_brief(error: BaseException) -> str:
    """All of an error's lines as one, cut; some of other libraries keep them in `message`.

    >>> in_brief(ValueError("no such\\n  file"))
    'no such file'
    """
    return " ".join(str(getattr(error, "message", None) or error).split())[:300] or type(error).__name__


def first_few(examples: Sequence[str], total: int | None = None) -> str:
    """The first examples of something, and how many more there are.

    >>> first_few(["a", "b", "c", "d", "e"])
    'a; b; c; and 2 more'
    """
    rest = (len(examples) if total is None else total) - len(examples[:3])
    return "; ".join(examples[:3]) + (f"; and {rest:,} more" if rest > 0 else "")
