"""Queries with several words that deny.

The reader has learned that two of them ask for something: "hotels except those without a pool". It takes any two for
that, wherever they stand: "We have no car. Hotels without a pool". So each is read without those of other parts, and
what only looks like a denial, "dogs are not forbidden", is not shown to the reader.
"""

import re
from collections.abc import Callable, Sequence
from itertools import chain

from boolbert.boolean import CueSpan, find_cues
from boolbert.boolean.around_bounds import denied_bounds
from boolbert.boolean.conditions import blanked
from boolbert.boolean.exclusion import content
from boolbert.boolean.reasons import unread_negations
from boolbert.boolean.tags import ALTERNATIVE, CUE, EXCLUDED, WANTED, Mark
from boolbert.boolean.word_lists import pattern

from .query import Query

MOST_APART = 20  # negations that are read apart
Read = Callable[[str], list[Mark]]

_SMALL_WORDS = re.compile(r"\s*(?:(?:an?|the|any|allow|have|has|include|contain|use|offer|serve)\s+)*", re.IGNORECASE)
# Where another part of a query begins: behind a sign, and before words with which people say why they ask.
_PART = re.compile(r"[.,;:?!()]|\s[-–—]\s|\b(?:but|so|because)\b|\band\s+(?=(?:i|we)\b)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.;:?!](?=\s|\Z)")
_JOINS = re.compile(r"(?:and|but|or)\b", re.IGNORECASE)
_JOINED = re.compile(r"\b(?:and|but|or)\s+\Z", re.IGNORECASE)
_PREFIX = re.compile(r"\b(?:non|no|never)-(?=\w)", re.IGNORECASE)  # of a kind: "non-smoking hotels", "no-bake cakes"
_OF_ITS_OWN = frozenset({"absence", "suffix", "prefix"})  # rules of cues that deny what stands beside them, no more
_ALL_THE_SAME = re.compile(r"\bwith(?:\s+(?:or|and)\s+|\s*/\s*)without\b|\b(\w+)\s+or\s+no\s+\1\b", re.IGNORECASE)
_NOTHING_ELSE = re.compile(r"\b(?:none|nothing|nobody|no\s+one)\s+but\b", re.IGNORECASE)
_DENYING = pattern(r"\s+(?:\w+ly\s+)?{denying}\b")


def read_negations(query: str, read: Read) -> list[Mark]:
    """The marks of a query, of which the reader has read each negation by itself. read: gives the reader's marks."""
    bounds, of_bounds = denied_bounds(query), []
    if bounds and negations(text := blanked(query, bounds)):  # "not over 500 euros without a garden"
        denials = (mark for mark in read(query) if mark.kind in (CUE, EXCLUDED))
        of_bounds = [mark for mark in denials if any(s <= mark.start and mark.end <= e for s, e in bounds)]
        query = text
    marks = read(query)
    if any(mark.kind == EXCLUDED for mark in marks) and (text := without_idioms(query)) != query:
        marks = read(text)
        ends = [match.end() for match in _ALL_THE_SAME.finditer(query)]
        asked = [mark for mark in marks if not any(_is_behind(query, end, mark) for end in ends)]
        marks, query = asked or marks, text
    groups = negations(query)
    for number, group in enumerate(groups[:MOST_APART]):
        wishes = [mark for mark in marks if mark.kind in (WANTED, ALTERNATIVE)]
        if any(_is_behind(query, cue.end, mark) for cue in group for mark in wishes if cue.rule != "suffix"):
            marks = _corrected(marks, wishes, _read_apart(query, groups, number, read))
    return sorted([*marks, *of_bounds], key=lambda mark: mark.start)


def without_idioms(query: str) -> str:
    """A query with blanks for what looks like a denial and excludes nothing.

    >>> [without_idioms(query) for query in ("where dogs are not banned", "flats with or without a garden")]
    ['where dogs are           ', 'flats                 a garden']
    """
    cues = [cue for cue in find_cues(query) if cue.rule == "negation"]
    holes = [(cue.start, match.end()) for cue in cues if (match := _DENYING.match(query, cue.end))]
    holes += [match.span() for idiom in (_ALL_THE_SAME, _NOTHING_ELSE) for match in idiom.finditer(query)]
    return blanked(query, holes)


def _is_behind(query: str, end: int, mark: Mark) -> bool:
    """Whether nothing but small words stands between a place and a mark behind it."""
    return end <= mark.start and _SMALL_WORDS.fullmatch(query, end, mark.start) is not None


def negations(query: str) -> list[list[CueSpan]]:
    """The words of a query that deny, those together that stand in one part of it, of which one may deny the other.

    >>> [[cue.text for cue in group] for group in negations("no hotels without a lift, and not in Rome")]
    [['no', 'without'], ['and not']]
    >>> [[cue.text for cue in group] for group in negations("hotels without a lift that are not in Rome")]
    [['without'], ['not']]
    """
    groups: list[list[CueSpan]] = []
    for cue in find_cues(query):
        if cue.operator != "not" or (cue.weak and cue.rule != "suffix"):
            continue
        if groups and (cue.rule == "nor" or not _is_apart(query, groups[-1], cue)):
            groups[-1].append(cue)
        else:
            groups.append([cue])
    return groups


def _is_apart(query: str, group: Sequence[CueSpan], cue: CueSpan) -> bool:
    """Whether a cue stands in another part than those before it."""
    begins = _JOINS.match(cue.text) or _JOINED.search(query, group[-1].end, cue.start)
    return bool(begins or group[0].rule in _OF_ITS_OWN or _PART.search(query, group[-1].end, cue.start))


def _read_apart(query: str, groups: Sequence[Sequence[CueSpan]], number: int, read: Read) -> list[Mark]:
    """What a group of negations excludes when the reader sees no other, with its cues."""
    group = groups[number]
    start, end = group[0].start, groups[number + 1][0].start if number + 1 < len(groups) else len(query)
    holes = [(cue.start, cue.end) for cue in chain(*groups) if cue not in group]
    holes += [match.span() for match in _PREFIX.finditer(query, 0, start)]
    # What a part of its own says stands without what is before it; "..., without a shop" says it of something before.
    lefts = ([match.end() for match in edge.finditer(query, 0, start)] for edge in (_PART, _SENTENCE_END))
    holes += [(0, left[-1]) for left in lefts if left and content(query[left[-1] : start])][:1]
    if (stop := _SENTENCE_END.search(query, group[-1].end)) is not None:
        holes.append((stop.start(), len(query)))
    alone = blanked(query, holes)
    marks = read(alone) if alone != query else []
    cues = [mark for mark in marks if mark.kind == CUE and start < mark.end and mark.start < end]
    return [*cues, *(mark for mark in marks if mark.kind == EXCLUDED and start <= mark.start < end)]


def _corrected(marks: list[Mark], wishes: Sequence[Mark], apart: Sequence[Mark]) -> list[Mark]:
    """The marks with those that were read apart, as far as they exclude what was taken for a wish."""
    new = [mark for mark in apart if mark.kind == CUE or any(_overlap(mark, wish) for wish in wishes)]
    if all(mark.kind == CUE for mark in new):
        return marks
    left = [mark for mark in marks if not any(_overlap(mark, one) for one in new)]
    alone = [mark for mark in left if mark.kind == ALTERNATIVE and sum(one[0::3] == mark[0::3] for one in left) == 1]
    left = [mark._replace(kind=WANTED, group=0) if mark in alone else mark for mark in left]
    return sorted([*left, *new], key=lambda mark: mark.start)


def _overlap(one: Mark, other: Mark) -> bool:
    return one.start < other.end and other.start < one.end


def denied_twice(found: Query) -> str | None:
    """What a query asks for that says it by two denials in one part of it, in search-box syntax: "hotels AND pool" for
    "hotels except those without a pool". The words that deny would take its vector to the documents that lack it.

    None where nothing is denied twice: something is excluded or may be, by a negation in another part, or no word that
    excludes stands before what is wanted.
    """
    if found.excluded or found.conditions.asks or len(found.conditions.wanted) < 2:
        return None
    parts = [part for group in found.conditions.wanted for part in group]
    query = blanked(found.query, denied_bounds(found.query))
    free = unread_negations(query, [(part.start, part.end) for part in parts])
    between = (query[cue.end : part.start] for cue in free for part in parts if cue.end <= part.start)
    if not any(_SMALL_WORDS.fullmatch(text) for text in between):
        return None
    if sum(not set(free).isdisjoint(group) for group in negations(query)) > 1:
        return None
    groups = [" OR ".join(part.text for part in group) for group in found.conditions.wanted]
    return " AND ".join(groups) if not re.search(r'["“”()]', "".join(groups)) else None
