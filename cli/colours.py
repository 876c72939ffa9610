"""Colour where a terminal shows it: never into a file, and not where NO_COLOR is set."""

import os
import sys
from typing import TextIO

from boolbert.search.reading import COLOURS


def has_colour(stream: TextIO | None = None) -> bool:
    """See no-color.org; FORCE_COLOR is its counterpart, for recordings."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    stream = stream if stream is not None else sys.stdout
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, *codes: str, colour: bool) -> str:
    """
    >>> paint("x", "1", "4", colour=True), paint("x", "1", colour=False)
    ('\\x1b[1;4mx\\x1b[0m', 'x')
    """
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if colour and codes else text


def foreground(operator: str) -> str:
    return "38;2;" + ";".join(map(str, COLOURS[operator]))
