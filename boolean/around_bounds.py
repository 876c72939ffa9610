"""The word before a bound that names what it bounds: "rent" of "flats whose rent is not over 500"."""

import re
from pathlib import Path
from typing import NamedTuple

from .word_lists import read_word_sets

WORDS = read_word_sets(Path(__file__).with_name("bounds_en.txt"))


def _any(*names: str) -> str:
    return "|".join(word.replace("_", r"\s+") for name in names for word in sorted(WORDS[name]))


HAPPENED = re.compile(_any("happened"), re.I)
_WORD = re.compile(r"[^\W\d_]+(?:['’]\w+)?|\d\S*")
_TOKEN = re.compile(rf"{_WORD.pattern}|[^\s\w]")
_HAVING = re.compile(rf"\b(?:{_any('having')})\s+(?:(?:an?|the|its|their|no|any)\s+)?(?:\w+\s+)?\Z", re.I)
_FAR = 80  # characters before a bound in which the word that names what it bounds is looked for


class Before(NamedTuple):
    """The word before a bound that may name what it bounds, "rent" of "whose rent is not over 500", and its place.
    is_subject: words such as "is" stand between. is_part: it stands behind "with" or the like."""

    word: str = ""
    start: int = 0
    is_subject: bool = False
    is_part: bool = False


def word_before(query: str, end: int) -> Before:
    """
    >>> word_before("flats whose rent isn't over 500", 23)
    Before(word='rent', start=12, is_subject=True, is_part=True)
    >>> word_before("flats, not over 500", 11).word, word_before("jobs not posted before 2025", 16).word
    ('', 'posted')
    """
    is_subject = False
    for match in reversed(list(_TOKEN.finditer(query, max(0, end - _FAR), end))):
        word = re.sub("(?<=..)n['’]t\\Z", "", match[0].lower())
        if word in WORDS["between"] or word in ("ca", "wo"):
            is_subject = is_subject or word in WORDS["speaks of"]
        elif is_subject and word in ("that", "which"):  # "with a rating that is over 4"
            is_subject = False
        elif word in WORDS["no name"] or not word[0].isalpha():
            break
        else:
            return Before(word, match.start(), is_subject, _HAVING.search(query, 0, match.start()) is not None)
    return Before()
