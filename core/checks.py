"""What callers give to public functions: counts, flags, numbers and lists. What is wrong is one line."""

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from .errors import RetrievalError, shorten

MOST = 2**31 - 1  # what every engine can count to


def check_whole(name: str, value: Any) -> None:
    """Raise for what is no whole number: a seed, or the number of a word, may be any."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise RetrievalError(f"{name} must be a whole number, got {shorten(value)}")


def check_count(name: str, value: Any, *, least: int = 1) -> None:
    """
    >>> check_count("k", 10), check_count("read", 0, least=0)
    (None, None)
    >>> check_count("k", 2.5)
    Traceback (most recent call last):
    ...
    boolbert.core.errors.RetrievalError: k must be a whole number of at least 1, got 2.5
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise RetrievalError(f"{name} must be a whole number of at least {least}, got {shorten(value)}")
    if int(value) > MOST:
        raise RetrievalError(f"{name} must be at most {MOST:,}, got {shorten(value)}")


def check_flags(**flags: Any) -> None:
    """Flags by name. A text is none: "false" would be taken for True.

    >>> check_flags(evidence="false")
    Traceback (most recent call last):
    ...
    boolbert.core.errors.RetrievalError: evidence must be True or False, got 'false'
    """
    for name, value in flags.items():
        is_numpys = str(getattr(value, "dtype", "")) == "bool" and getattr(value, "shape", None) == ()
        if not (isinstance(value, bool) or is_numpys):
            raise RetrievalError(f"{name} must be True or False, got {shorten(value)}")


def check_number(name: str, value: Any, *, least: float = 0.0) -> None:
    """
    >>> check_number("not_weight", "strong")
    Traceback (most recent call last):
    ...
    boolbert.core.errors.RetrievalError: not_weight must be a number of at least 0, got 'strong'
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not least <= float(value) < math.inf:
        raise RetrievalError(f"{name} must be a number of at least {least:g}, got {shorten(value)}")


def as_list(name: str, values: Any, what: str) -> list[Any]:
    """Values that came as a list, a tuple, an array or a generator. what: what they are, for the message.

    >>> as_list("kept", 7, "texts or None")
    Traceback (most recent call last):
    ...
    boolbert.core.errors.RetrievalError: kept must be a list of texts or None, got 7
    """
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise RetrievalError(f"{name} must be a list of {what}, got {shorten(values)}")
    return list(values)
