"""How well queries are read, word by word, next to what people have marked in them.

"F1": words of what is excluded. "exactly": queries that exclude something and whose excluded words are found, all of
them and no others. "silent": queries that exclude nothing, read so. "wanted": F1 of the words that are wanted.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from boolbert.boolean.tags import ALTERNATIVE, ASKED_FOR, DENIED_BOUND, EXCLUDED, EXCLUDING, WANTED

from .reading import MarkedQuery, marked_queries

_WORD = re.compile(r"\w+")
# Where a condition begins and ends may be argued about: these words do not count.
_EDGES = "a an the any of in on at with and or no not that is are to for by from s"
EDGES = frozenset(_EDGES.split())
_KINDS = (EXCLUDING, ASKED_FOR)


class Labelled(NamedTuple):
    """A query, and the words that it excludes and wants; None where that is not known."""

    text: str
    excluded: frozenset[str]
    wanted: frozenset[str] | None = None


def words(texts: Iterable[str]) -> frozenset[str]:
    """
    >>> sorted(words(["in a Pool", "lifts"]))
    ['lifts', 'pool']
    """
    return frozenset(word for text in texts for word in _WORD.findall(text.lower()) if word not in EDGES)


def own_queries(split: str) -> list[Labelled]:
    """The queries of a split of `data/reading`."""
    found = []
    for query in marked_queries(split):
        spans = {kind: [query.text[m.start : m.end] for m in query.marks if m.kind in kind] for kind in _KINDS}
        found.append(Labelled(query.text, *(words(spans[kind]) for kind in _KINDS)))
    return found


def runs(text: str, places: Sequence[Sequence[int]], chosen: Sequence[bool]) -> list[str]:
    """The stretches of a text whose tokens are chosen.

    >>> runs("a big pool", [(0, 1), (2, 5), (6, 10)], [False, True, True])
    ['big pool']
    """
    found: list[list[int]] = []
    for number, (start, end) in enumerate(places):
        if chosen[number] and number and chosen[number - 1]:
            found[-1][1] = end
        elif chosen[number]:
            found.append([start, end])
    return [text[start:end] for start, end in found]


def measured(queries: Sequence[Labelled], reads: Callable[[str], tuple[list[str], list[str]]]) -> dict[str, Any]:
    """The figures, and under "wrong" the queries with what was found. reads: a query to what it excludes and wants."""
    excluded, wanted, wrong = Counts(), Counts(), list[str]()
    exactly, silent = list[bool](), list[bool]()
    for query in queries:
        out, wants = map(words, reads(query.text))
        own = out if query.wanted is None else out - (query.wanted - query.excluded)
        excluded.add(own, query.excluded)
        if query.wanted is not None:
            wanted.add(wants, query.wanted)
        (exactly if query.excluded else silent).append(own == query.excluded)
        if own != query.excluded:
            wrong.append(f"{query.text}\n    right: {sorted(query.excluded)}, read: {sorted(own)}")
    return {
        "F1": round(excluded.f1, 3),
        "precision": round(excluded.precision, 3),
        "recall": round(excluded.recall, 3),
        "exactly": f"{sum(exactly)} of {len(exactly)}",
        "silent": f"{sum(silent)} of {len(silent)}",
        "wanted": round(wanted.f1, 3),
        "wrong": wrong,
    }


class Counts:
    """Words that were found and are right, found and wrong, and missed."""

    def __init__(self) -> None:
        self.right = self.found = self.expected = 0

    def add(self, found: frozenset[str], expected: frozenset[str]) -> None:
        self.right += len(found & expected)
        self.found += len(found)
        self.expected += len(expected)

    @property
    def precision(self) -> float:
        return self.right / max(1, self.found)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.expected)

    @property
    def f1(self) -> float:
        return 2 * self.right / max(1, self.found + self.expected)


def alike(right: MarkedQuery, found: MarkedQuery) -> dict[str, bool]:
    """What of two readings of a query is the same: what is excluded, each member of a list by itself; every condition,
    with its role and which alternatives belong together; what NOT excludes; whether the query asks."""
    return {
        "excluded": _conditions(right, EXCLUDING) == _conditions(found, EXCLUDING),
        "conditions": _conditions(right) == _conditions(found) and _groups(right) == _groups(found),
        "kind": right.kind == found.kind,
        "asks": right.asks == found.asks,
    }


def _conditions(query: MarkedQuery, kinds: str = ASKED_FOR + EXCLUDING) -> list[tuple[str, list[str]]]:
    """Every condition: its role, and its words."""
    roles = {ALTERNATIVE: WANTED, DENIED_BOUND: EXCLUDED} if kinds == EXCLUDING else {ALTERNATIVE: WANTED}
    own = (mark for mark in query.marks if mark.kind in kinds)
    return sorted((roles.get(mark.kind, mark.kind), sorted(words([query.text[mark.start : mark.end]]))) for mark in own)


def _groups(query: MarkedQuery) -> set[frozenset[frozenset[str]]]:
    groups: dict[int, set[frozenset[str]]] = {}
    for mark in query.marks:
        if mark.kind == ALTERNATIVE:
            groups.setdefault(mark.group, set()).add(words([query.text[mark.start : mark.end]]))
    return {frozenset(group) for group in groups.values()}
