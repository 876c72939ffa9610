"""What the readers raise and warn with: one line that says what is wrong, where, and what would be right."""

from collections.abc import Sequence


class DataError(ValueError):
    """Data that cannot be read as what it claims to be. The message starts with the place: file, line and field."""


class DataWarning(UserWarning):
    """Data that can be read, with something in it that its user should know. `strict` turns it into a `DataError`."""


def shorten(value: object, width: int = 60) -> str:
    """A value as it is shown in a message.

    >>> shorten("x" * 100, width=10)
    "'xxxxxx..."
    """
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


def first_few(examples: Sequence[str], total: int | None = None, shown: int = 3) -> str:
    """The first examples of something, and how many more there are.

    >>> first_few(["a", "b", "c", "d", "e"])
    'a; b; c; and 2 more'
    """
    rest = (len(examples) if total is None else total) - len(examples[:shown])
    return "; ".join(examples[:shown]) + (f"; and {rest:,} more" if rest > 0 else "")
