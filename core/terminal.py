# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Text from data made safe to print: no title or query can move the cursor, recolour the screen or reorder it."""

import codecs
import json
import os
import sys
from typing import Any

# Joins and separates letters in Persian, Indic scripts and emoji; changes nothing else.
_JOINERS = "\u200c\u200d"
# The signs that this package prints, for terminals that do not know them.
_ASCII = {"−": "-", "▲": "^", "▼": "v", "×": "x", "–": "-", "…": "...", "“": '"', "”": '"', "’": "'"}


def printable(text: str) -> str:
    r"""A text as one line without control characters: each is shown as its escape, white space as one space.

    >>> printable("red \x1b[31mtitle\u202e\nsecond line")
    'red \\x1b[31mtitle\\u202e second line'
    """
    return "".join(map(_shown, " ".join(text.split()))) if not text.isprintable() else text


def _shown(character: str) -> str:
    shown = character.isprintable() or character in _JOINERS
    return character if shown else character.encode("unicode_escape").decode("ascii")


def fitted(text: str, width: int) -> str:
    """A printable text of at most this many characters; what is cut off leaves three dots.

    >>> fitted("Costa Rica", 8), fitted("Chad", 8), fitted("Chad", 2)
    ('Costa...', 'Chad', 'Ch')
    """
    text = printable(text)
    if len(text) <= width:
        return text
    return f"{text[: width - 3].rstrip()}..." if width > 3 else text[:width]


def print_json(value: Any, *, indent: int | None = 2) -> None:
    r"""Print a value as JSON; without an indent in one line. What a terminal would act on, or cannot show, is
    written as JSON's escape of it.

    >>> print_json({"title": "\u202eé\x9b"})
    {
      "title": "\u202eé\u009b"
    }
    """
    knows_all = (sys.stdout.encoding or "utf-8").lower().replace("-", "").startswith("utf")
    text = json.dumps(value, indent=indent, ensure_ascii=not knows_all)
    print("".join(sign if sign == "\n" or sign.isprintable() else json.dumps(sign)[1:-1] for sign in text))


def use_any_encoding() -> None:
    """Let standard output and error show what their encoding lacks in ASCII, instead of ending the program.

    Where one of them was closed by the caller (`>&-`), what is printed there is lost, and nothing else.
    """
    codecs.register_error("boolbert", _in_ascii)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="boolbert")


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    r"""
    >>> codecs.register_error("boolbert", _in_ascii)
    >>> "▲3 Côte".encode("ascii", errors="boolbert")
    b'^3 C\\xf4te'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    shown = (_ASCII.get(letter) or letter.encode("unicode_escape").decode("ascii") for letter in missing)
    return "".join(shown), error.end
