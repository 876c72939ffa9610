"""A query as it was read: its conditions, and what each of its words is. Built once, and passed on as it is."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

from ..core.errors import cut
from .operators import OPERATORS
from .tags import ALTERNATIVE, ASKED_FOR, BOUND, CUE, DENIAL, DENIED_BOUND, EXCLUDED, EXCLUDING, JOIN, Mark

# A word is a run of letters with its apostrophes; every other sign stands alone, so that "non-" can be a cue.
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_EDGES = " ,;:.?!–—-()"
MOST_QUOTED = 200  # letters
CUT = "The query is longer than the model reads; the rest of it was cut off."
# Blue, green and vermilion, which people who are colour-blind can tell apart too.
COLOURS = {"and": (0, 114, 178), "or": (0, 158, 115), "not": (213, 94, 0)}
MOST_WANTED, MOST_EXCLUDED = 40, 20  # conditions of a query; each is compared with every clause


class Word(NamedTuple):
    """A word, and what it is to the model: a cue of an operator, excluded, or part of an alternative (1, 2, ...)."""

    text: str
    start: int
    end: int
    cue: str | None = None
    excluded: bool = False
    alternative: int | None = None

    @property
    def role(self) -> str:
        """What it is shown as: "excluded", "alternative", the operator that it is a cue of, or ""."""
        return "excluded" if self.excluded else "alternative" if self.alternative else self.cue or ""


class Span(NamedTuple):
    """A stretch `text[start:end]` of a query, and the operator that it is a cue, an alternative or an exclusion of."""

    operator: str
    text: str
    start: int
    end: int

    @property
    def place(self) -> tuple[int, int]:
        return self.start, self.end


@dataclass(frozen=True)
class Condition:
    """The smallest piece of a query that one sentence of a document can affirm or deny by itself.

    excluded: no document that answers has it. group: conditions that are wanted and have the same number are
    alternatives. denies: the denial itself is wanted, "does not allow pets". bound: it bounds a number, "under 50".
    """

    text: str
    start: int
    end: int
    excluded: bool = False
    group: int = 0
    denies: bool = False
    bound: bool = False

    @property
    def place(self) -> tuple[int, int]:
        return self.start, self.end


def quoted(text: str) -> str:
    """A text of a query in quotation marks, without its middle where it is long."""
    return f"“{cut(text, MOST_QUOTED)}”"


def listed(spans: Sequence[Span | Condition], word: str = "and") -> str:
    """
    >>> listed([Span("not", "wars", 0, 4), Span("not", "seas", 8, 12)])
    '“wars” and “seas”'
    """
    return f" {word} ".join(quoted(span.text) for span in spans)


class WordGroup(NamedTuple):
    """Neighbouring words of one role. gap: what stands between them and the group before."""

    role: str
    words: list[Word]
    text: str
    gap: str


@dataclass(frozen=True)
class Query:
    """A query, word by word as far as it is read; its conditions; which operators are on, and who says so.

    kind: what NOT excludes is a "topic", a "set" or a "property"; None where it excludes nothing. asks: it is a
    question, which one passage answers. typed: in search-box syntax, which means its words. plain: nothing of it is
    read, and documents are ranked by its vector alone. notes: what of it is not read as it stands there, for people.
    doubtful: words that may exclude something and were not read so.
    """

    text: str
    words: tuple[Word, ...]
    conditions: tuple[Condition, ...]
    operators: tuple[str, ...]
    decided_by: str
    kind: str | None = None
    asks: bool = False
    typed: bool = False
    plain: bool = False
    truncated: bool = False
    notes: tuple[str, ...] = ()
    doubtful: str = ""

    @property
    def excluded(self) -> tuple[Condition, ...]:
        """What NOT excludes."""
        return tuple(one for one in self.conditions if one.excluded)

    @property
    def groups(self) -> tuple[tuple[Condition, ...], ...]:
        """What is wanted: of each group one alternative has to hold."""
        found: dict[int, list[Condition]] = {}
        for one in self.conditions:
            if not one.excluded:
                found.setdefault(one.group, []).append(one)
        return tuple(map(tuple, found.values()))

    @property
    def alternatives(self) -> tuple[Span, ...]:
        """What OR offers, none or at least two."""
        return tuple(self._span("or", words) for key, words in self._grouped(lambda w: w.alternative) if key)

    def without_alternatives(self) -> "Query":
        """As it is read by what has one vector for all of them."""
        return replace(self, words=tuple(word._replace(alternative=None) for word in self.words))

    @property
    def cues(self) -> tuple[Span, ...]:
        return tuple(self._span(key, words) for key, words in self._grouped(lambda w: w.cue) if key)

    @property
    def wanted(self) -> str:
        """The query without what is excluded, the words that say so, and what stands between them; of a query that does
        not ask, from one condition that is wanted to another.

        >>> from boolbert.boolean.tags import parse_marked
        >>> text, marks = parse_marked("any [w islands] [w of Greece] that are [c not] [x crowded], [w with ferries]")
        >>> query_of(text, marks, "a person").wanted, query_of(text, marks, "a person", asks=True).wanted
        ('islands of Greece with ferries', 'any islands of Greece that are with ferries')
        """
        taken = [word for word in self.words if word.excluded or word.cue == "not"]
        if not taken or not self.excluded:
            return self.text
        edges = [0, *(edge for word in taken for edge in (word.start, word.end)), len(self.text)]
        pieces, is_read = [], len(self.excluded) < len(self.conditions) and not self.asks
        for place, (start, end) in enumerate(zip(edges[::2], edges[1::2], strict=True)):
            inside = [one for one in self.conditions if not one.excluded and start <= one.start and one.end <= end]
            if inside and is_read:
                pieces.append(self.text[inside[0].start : inside[-1].end])
            elif inside or (not is_read and place in (0, len(taken))):
                pieces.append(self.text[start:end].strip(_EDGES))
        return " ".join(filter(None, pieces)) or self.text

    @property
    def wanted_text(self) -> str:
        """The words that are not excluded, as they are shown."""
        grouped = self._grouped(lambda word: word.excluded)
        return " … ".join(self._span("", words).text for excluded, words in grouped if not excluded)

    @property
    def excluded_text(self) -> str:
        return " … ".join(one.text for one in self.excluded)

    @property
    def word_groups(self) -> list[WordGroup]:
        """The words as they are shown: neighbours of one role together. `rest` stands behind them."""
        groups, end = [], 0
        for (role, _), words in self._grouped(lambda word: (word.role, word.alternative)):
            text, gap = self._span("", words).text, self.text[end : words[0].start]
            groups.append(WordGroup(role, words, text, gap))
            end = words[-1].end
        return groups

    @property
    def rest(self) -> str:
        return self.text[self.words[-1].end :] if self.words else self.text

    def _grouped(self, key: Any) -> Iterator[tuple[Any, list[Word]]]:
        return ((value, list(words)) for value, words in groupby(self.words, key))

    def _span(self, operator: str, words: Sequence[Word]) -> Span:
        start, end = words[0].start, words[-1].end
        return Span(operator, self.text[start:end], start, end)

    def as_json(self) -> dict[str, Any]:
        return {
            "query": self.text,
            "operators": list(self.operators),
            "decided_by": self.decided_by,
            "truncated": self.truncated,
            "not_kind": self.kind,
            "asks": self.asks,
            "cues": [span._asdict() for span in self.cues],
            "excluded_words": [Span("not", one.text, *one.place)._asdict() for one in self.excluded],
            "alternatives": [span._asdict() for span in self.alternatives],
            "conditions": [vars(one) for one in self.conditions],
            "notes": list(self.notes),
        }


def query_of(text: str, marks: Sequence[Mark], decided_by: str, *, asks: bool = False, typed: bool = False) -> Query:
    """A query with these marks. What nothing is marked of is wanted as a whole, and so is a pasted text, of which more
    is marked than anybody asks for; `-word` alone wants all the rest. In a question there is nothing to choose from.

    >>> from boolbert.boolean.tags import parse_marked
    >>> found = query_of(*parse_marked("[w films] [a of Rome] or [a Pisa], [c no] [x wars]"), "a person")
    >>> [[one.text for one in group] for group in found.groups], [one.text for one in found.excluded], found.operators
    ([['films'], ['of Rome', 'Pisa']], ['wars'], ('or', 'not'))
    """
    marks = sorted(marks, key=lambda mark: mark.start)
    excluded = [mark for mark in marks if mark.kind in EXCLUDING]
    wanted = [mark for mark in marks if mark.kind in ASKED_FOR]
    words = split_words(text)
    offered = [] if asks else [m for m in wanted if m.kind == ALTERNATIVE and words_in(words, [m[1:3]])]
    offered = offered if len(offered) > 1 else []
    conditions = [
        Condition(
            text[mark.start : mark.end],
            mark.start,
            mark.end,
            excluded=mark.kind in EXCLUDING,
            group=0 if mark.kind in EXCLUDING else -mark.group if mark in offered else number,
            denies=mark.kind == DENIAL,
            bound=mark.kind in (BOUND, DENIED_BOUND),
        )
        for number, mark in enumerate([*wanted, *(excluded if typed else excluded[:MOST_EXCLUDED])], start=1)
    ]
    is_cut = not typed and len(excluded) > MOST_EXCLUDED
    roles = _with_roles(words, marks, offered)
    is_rest = typed and not wanted and bool(excluded)
    if (not wanted and not is_rest) or (not typed and len(wanted) > MOST_WANTED):
        left = Query(text, roles, tuple(one for one in conditions if one.excluded), (), decided_by)
        conditions = [Condition(left.wanted, 0, len(text), group=1), *left.conditions]
    on = {name for name, is_on in (("not", excluded), ("or", offered)) if is_on}
    on |= {"and"} if any(word.cue == "and" for word in roles) else set()
    names = tuple(name for name in OPERATORS if name in on)
    return Query(text, roles, tuple(conditions), names, decided_by, asks=asks, typed=typed, truncated=is_cut)


def _with_roles(words: Sequence[Word], marks: Sequence[Mark], offered: Sequence[Mark]) -> tuple[Word, ...]:
    """The words of a query as these marks have them. A word that joins is a cue of OR between alternatives of one
    group, and else of AND between two conditions that are wanted."""
    found = list(words)

    def give(mark: Mark, **role: Any) -> None:
        for number in words_in(words, [mark[1:3]]):
            found[number] = words[number]._replace(**role)

    excludes = any(mark.kind in EXCLUDING for mark in marks)
    asked = [mark for mark in marks if mark.kind in ASKED_FOR + EXCLUDING]
    for mark in marks:
        if mark.kind in EXCLUDING:
            give(mark, excluded=True)
        elif mark in offered:
            give(mark, alternative=offered.index(mark) + 1)
        elif mark.kind == CUE and excludes:
            give(mark, cue="not")
        elif mark.kind == JOIN:
            before = next((one for one in reversed(asked) if one.end <= mark.start), None)
            after = next((one for one in asked if one.start >= mark.end), None)
            if before in offered and after in offered and before.group == after.group:  # type: ignore[union-attr]
                give(mark, cue="or")
            elif all(one is not None and one.kind not in EXCLUDING for one in (before, after)):
                give(mark, cue="and")
    return tuple(found)


def split_words(text: str) -> list[Word]:
    """
    >>> [word.text for word in split_words("Orlando's non-stop, but not there")]
    ["Orlando's", 'non', '-', 'stop', ',', 'but', 'not', 'there']
    """
    return [Word(match.group(), *match.span()) for match in _WORD.finditer(text)]


def words_in(words: Sequence[Word], spans: Sequence[tuple[int, int]]) -> list[int]:
    """The numbers of the words that lie in spans of characters.

    >>> words_in(split_words("jaguar -car speed"), [(8, 11)])
    [2]
    """
    return [
        number
        for number, word in enumerate(words)
        if any(start <= word.start and word.end <= end for start, end in spans)
    ]


def marks_of_words(words: Sequence[Word], excluded: Sequence[int]) -> list[Mark]:
    """A mark for each run of excluded words, by their numbers."""
    runs: list[list[int]] = []
    for number in sorted(excluded):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [Mark(EXCLUDED, words[run[0]].start, words[run[-1]].end) for run in runs]
