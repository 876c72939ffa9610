"""The words before a bound: do they deny it, and which of them names what it bounds?

"Not built before 1990" asks for 1990 and later, "boats with no engine under 500 euros" for less than 500. A bound is
denied where nothing but small words, and what it bounds, stand behind the word that denies: "I don't want to pay over
500". Of others it is not certain: "not only before 1990", "houses but no flats under 500 euros".
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from .bounds import DAY, YEAR, read_bounds
from .parts import Span
from .word_lists import read_word_sets

WORDS = read_word_sets(Path(__file__).with_name("bounds_en.txt"))


def _any(*names: str) -> str:
    return "|".join(word.replace("_", r"\s+") for name in names for word in sorted(WORDS[name]))


_DENIES = re.compile(rf"(?<![\w'’])(?:(?P<thing>{_any('takes away')})|{_any('denies')})(?![\w'’])", re.I)
_HELPS = re.compile(rf"(?:{_any('helps')})\Z", re.I)
HAPPENED = re.compile(_any("happened"), re.I)
_PART_OF_IT = re.compile(r"\b(?:with|have|has|having|had|is|are)\s+\Z", re.I)  # "with no engine"
_UNTIL = re.compile(r"un?till?\b", re.I)
_CLAUSE_END = re.compile(r"[,;:](?=\s)|[!?()\n]|\.(?=\s)|\b(?:and|(?<!anything )but|yet)\b", re.I)
_WORD = re.compile(r"[^\W\d_]+(?:['’]\w+)?|\d\S*")
_TOKEN = re.compile(rf"{_WORD.pattern}|[^\s\w]")
_HAVING = re.compile(rf"\b(?:{_any('having')})\s+(?:(?:an?|the|its|their|no|any)\s+)?(?:\w+\s+)?\Z", re.I)
_SMALL = rf"\b(?:{'|'.join(sorted(WORDS['around']))})\b"
_LED_BY, _FOLLOWED_BY = re.compile(rf"(?:{_SMALL}\s+)*\Z", re.I), re.compile(r"\s+for\b", re.I)
_JOINED = re.compile(r"\s+or\s+", re.I)
_LONGEST_CLAUSE = 300  # characters of it that are looked at before a bound
_FAR = 80  # characters before a bound in which the word that names what it bounds is looked for


class Polarity(NamedTuple):
    """Whether a bound is denied, None where that is not certain; and where its words begin, with those that deny it."""

    denied: bool | None
    start: int


def polarity(
    query: str, bound: Span, named: str = "", *, is_time: bool = False, excluded: Iterable[Span] = ()
) -> Polarity:
    """Whether a bound of a query is denied. named: the word before it that names what is bounded. is_time: it is a year
    or a date, before which a verb says what happened. excluded: what a reader takes for excluded.

    >>> def ask(query, words, named="", **more):
    ...     found = polarity(query, (query.index(words), len(query)), named, **more)
    ...     return found.denied, query[found.start :]
    >>> ask("houses not built before 1990", "before", is_time=True)
    (True, 'not built before 1990')
    >>> ask("boats with no engine under 500", "under"), ask("boats with no price over 500", "over", "price")
    ((False, 'under 500'), (True, 'no price over 500'))
    >>> ask("not only films before 1990", "before", is_time=True)
    (None, 'before 1990')
    """
    start, end = bound
    holding = next(((left, right) for left, right in excluded if left <= start and end <= right), None)
    first = max(0, start - _LONGEST_CLAUSE)
    clause = max((match.end() for match in _CLAUSE_END.finditer(query, first, start)), default=first)
    denials = list(_DENIES.finditer(query, clause, start))
    if not denials:
        if holding is None:
            return Polarity(False, start)
        others = [*_others(query[holding[0] : start], named, is_time), *_others(query[end : holding[1]])]
        return Polarity(None if others else True, holding[0])
    *earlier, last = denials
    words = _WORD.findall(query[last.end() : start])
    others = _others(query[last.end() : start], named, is_time)
    # "Not only before 1990"; "towns that did not admit women until 1920" did so later.
    if any(word.lower() in WORDS["not certain"] for word in words) or _UNTIL.match(query, start):
        return Polarity(None, start)
    if not others or (others == words[:1] and _HELPS.search(query, clause, last.end())):
        is_twice = bool(earlier) and not _others(query[earlier[-1].end() : last.start()])
        return Polarity(None if is_twice else True, last.start())
    takes_away = last["thing"] and not _PART_OF_IT.search(query, clause, last.start())
    # "Houses, not flats under 500", "I don't want flats under 500": nothing else stands before it.
    is_first = last[0].lower() != "without" and not _others(query[clause : last.start()])
    return Polarity(None if holding or takes_away or is_first else False, start)


def _others(text: str, named: str = "", is_time: bool = False) -> list[str]:
    """The words of a text that say something else than what is bounded."""
    words = _WORD.findall(text)
    words = words[:-1] if is_time and words and HAPPENED.fullmatch(words[-1]) else words
    return [word for word in words if word.lower() not in WORDS["around"] and word != named]


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


def denied_bounds(query: str) -> list[Span]:
    """The stretches of a query that do nothing but deny a bound, whatever field that may be of.

    >>> query = "I don't want to pay more than 500 or less than 100 euros for a flat without a garden"
    >>> [query[start:end] for start, end in denied_bounds(query)]
    ["I don't want to pay more than 500 or less than 100 euros for"]
    """
    found: list[Span] = []
    for bound in read_bounds(query):
        denied, start = polarity(query, (bound.start, bound.end), is_time=bound.unit in (DAY, YEAR))
        if found and _JOINED.fullmatch(query, found[-1][1], bound.start):
            found[-1] = found[-1][0], bound.end
        elif denied:
            led = _LED_BY.search(query, max(0, start - _FAR), start)
            found.append((led.start() if led else start, bound.end))
    behind = (_FOLLOWED_BY.match(query, end) for _, end in found)
    return [(start, led.end() if led else end) for (start, end), led in zip(found, behind, strict=True)]
