"""A query as it was read: its conditions, and what each of its words is."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.boolean import CueSpan
from boolbert.boolean.conditions import Conditions
from boolbert.boolean.parts import trim
from boolbert.core.errors import cut

# A word is a run of letters with its apostrophes; every other sign stands alone, so that "non-" can be a cue.
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
IS_CUE = 0.5
# What is left of "with no pool" behind what is wanted.
# Between a cue and what it excludes, or between two exclusions: "or", "those with a", "any that have".
_LINKS = re.compile(
    r"\W*(?:\b(?:or|and|nor|either|even|an?|the|any|anything|all|those|ones?|kinds?|types?|of|them|that|which|who|with|have"
    r"|has|having|contain(?:s|ing)?|includ(?:e|es|ing)|come|comes)\b\W*)*",
    re.IGNORECASE,
)
_ONES = re.compile(r"\s+ones?\b", re.IGNORECASE)  # "no animated ones"
_JOINING = re.compile(r"(?:\s+(?:with|that|which|who|has|have|and|but))+\Z", re.IGNORECASE)
MOST_QUOTED = 200  # letters
CUT = "The query is longer than the model reads; the rest of it was cut off."
# Blue, green and vermilion, which people who are colour-blind can tell apart too.
COLOURS = {"and": (0, 114, 178), "or": (0, 158, 115), "not": (213, 94, 0)}


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
    """A stretch `query[start:end]`, and the operator that it is a cue, an alternative or an exclusion of."""

    operator: str
    text: str
    start: int
    end: int

    @property
    def place(self) -> tuple[int, int]:
        return self.start, self.end


def quoted(text: str) -> str:
    """A text of a query in quotation marks, without its middle where it is long."""
    return f"“{cut(text, MOST_QUOTED)}”"


def listed(spans: Sequence[Span], word: str = "and") -> str:
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

    conditions: groups of alternatives that are wanted, and what is excluded, by which documents are ranked. kind: what
    NOT excludes is a "topic", a "set" or a "property"; None where it excludes nothing. notes: what of it is not read as
    it stands there, for people.
    """

    query: str
    operators: tuple[str, ...]
    decided_by: str
    conditions: Conditions
    words: tuple[Word, ...] = ()
    truncated: bool = False
    kind: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def excluded(self) -> tuple[Span, ...]:
        """What NOT excludes."""
        return tuple(self._span("not", words) for key, words in self._grouped(lambda w: w.excluded) if key)

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
        """The query without what is excluded and the words that say so."""
        holes = [span.place for span in (*self.excluded, *self.cues) if span.operator == "not"]
        return without(self.query, holes) if self.excluded else self.query

    @property
    def wanted_text(self) -> str:
        """The words that are not excluded, as they are shown."""
        grouped = self._grouped(lambda word: word.excluded)
        return " … ".join(self._span("", words).text for excluded, words in grouped if not excluded)

    @property
    def excluded_text(self) -> str:
        return " … ".join(span.text for span in self.excluded)

    @property
    def word_groups(self) -> list[WordGroup]:
        """The words as they are shown: neighbours of one role together. `rest` stands behind them."""
        groups, end = [], 0
        for (role, _), words in self._grouped(lambda word: (word.role, word.alternative)):
            text, gap = self._span("", words).text, self.query[end : words[0].start]
            groups.append(WordGroup(role, words, text, gap))
            end = words[-1].end
        return groups

    @property
    def rest(self) -> str:
        return self.query[self.words[-1].end :] if self.words else self.query

    def _grouped(self, key: Any) -> Iterator[tuple[Any, list[Word]]]:
        return ((value, list(words)) for value, words in groupby(self.words, key))

    def _span(self, operator: str, words: Sequence[Word]) -> Span:
        start, end = words[0].start, words[-1].end
        return Span(operator, self.query[start:end], start, end)

    def as_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "operators": list(self.operators),
            "decided_by": self.decided_by,
            "truncated": self.truncated,
            "not_kind": self.kind,
            "cues": [span._asdict() for span in self.cues],
            "excluded_words": [span._asdict() for span in self.excluded],
            "alternatives": [span._asdict() for span in self.alternatives],
            "notes": list(self.notes),
        }


def split_words(text: str) -> list[Word]:
    """
    >>> [word.text for word in split_words("Orlando's non-stop, but not there")]
    ["Orlando's", 'non', '-', 'stop', ',', 'but', 'not', 'there']
    """
    return [Word(match.group(), *match.span()) for match in _WORD.finditer(text)]


def word_at(start: int, end: int, words: Sequence[Word]) -> int:
    """The word that a span of characters lies in.

    >>> words = split_words("not former")
    >>> word_at(4, 7, words), word_at(7, 10, words), word_at(0, 0, words)
    (1, 1, -1)
    """
    return next((number for number, word in enumerate(words) if start < end and word.start <= start < word.end), -1)


def per_word(
    values: npt.NDArray[np.float64], tokens: Sequence[int], count: int, *, highest: bool = False
) -> npt.NDArray[np.float64]:
    """Values of tokens (E, L) as values of words (E, W): the mean, or the highest, over a word's pieces.

    >>> per_word(np.array([[9.0, 1.0, 3.0, 5.0]]), [-1, 0, 0, 1], 2).tolist()
    [[2.0, 5.0]]
    """
    is_piece = np.arange(count)[:, None] == np.asarray(tokens)  # (W, L)
    pieces = is_piece.sum(1)
    if highest:
        best = np.where(is_piece, values[:, None], -np.inf).max(2, initial=-np.inf)
        return np.where(pieces > 0, best, 0.0)
    return values @ is_piece.T / np.maximum(pieces, 1)


def with_cues(words: Sequence[Word], cues: Sequence[CueSpan]) -> list[Word]:
    """The words with cues that were read by rules, for what no model has learned.

    >>> from boolbert.boolean import find_cues
    >>> [word.cue for word in with_cues(split_words("a but not b"), find_cues("a but not b"))]
    [None, 'not', 'not', None]
    """
    found = (next((cue.operator for cue in cues if cue.start <= word.start < cue.end), None) for word in words)
    return [word._replace(cue=cue) for word, cue in zip(words, found, strict=True)]


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


def without(text: str, holes: Sequence[tuple[int, int]]) -> str:
    """What is left of a text around some stretches, without the words and signs that joined them; all if nothing is.

    >>> without("films that are (not westerns) of the 1950s", [(16, 19), (20, 28)])
    'films of the 1950s'
    >>> without("Apart from his music, what did Bach do?", [(0, 10), (11, 20)])
    'what did Bach do?'
    >>> without("hotels without a pool or a bar", [(7, 14), (17, 21), (27, 30)])
    'hotels'
    >>> without("hotels except those with a pool", [(7, 13), (27, 31)])
    'hotels'
    >>> without("films, no old ones", [(7, 9), (10, 13)])
    'films'
    """
    edges = [0, *(edge for hole in sorted(holes) for edge in hole), len(text)]
    left = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if start and end < len(text) and _LINKS.fullmatch(text[start:end]):
            continue
        if start and (ones := _ONES.match(text, start)):
            start = ones.end()
        inner = trim(text, start, end) if start < end else (start, start)
        piece = text[inner[0] if start else 0 : inner[1] if end < len(text) else end].strip(" ,")
        piece = _JOINING.sub("", piece) if end < len(text) else piece
        left += [piece] if re.search(r"\w", piece) else []
    return " ".join(left) or text
