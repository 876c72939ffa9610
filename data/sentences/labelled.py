"""Sentences as people type them, with the words that each operator reaches: what the scope reader learns from.

A sentence knows what it excludes, because it was built that way. The parser (`data/labels/parts.py`) says exactly where
the excluded words begin and end, wherever it agrees.
"""

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from ..labels import CueSpan, cue_table, read_parts
from .lists import DOMAINS, TYPED, domain_of_split
from .names import Names

Span = tuple[int, int]
Pieces = list[tuple[str, bool]]  # texts, and whether they are excluded
# What stands between what is wanted and what is excluded behind it, and which of these may stand without a comma.
_END_CUES, _COMMA_FREE = cue_table().written("end"), cue_table().written("no_comma")
# What opens a question whose excluded part stands in front; the others only where it asks for more than that part.
_FRONT_CUES = tuple(cue.capitalize() for cue in cue_table().written("front"))
_BEYOND_CUES = tuple(cue.capitalize() for cue in cue_table().phrases("beyond"))
FILLED = 0.5  # of the excluded things have words such as "any information about" before them
AGREES = 0.5  # of the excluded characters: above it the parser's exact ends are taken
_SENTENCE_END = re.compile(r"[?!](?=\s)|(?<=\w{3})\.(?=\s)")


class Sentence(NamedTuple):
    """A text, its operators, its cues, and the spans that each operator reaches."""

    text: str
    operators: tuple[str, ...]
    cues: tuple[CueSpan, ...]
    scopes: dict[str, tuple[Span, ...]]


def labelled_sentences(n: int, seed: int = 0, split: str = "train") -> list[Sentence]:
    """`n` sentences; the same seed gives the same ones. The words of "train" and "dev" are kept apart.

    >>> sentence = labelled_sentences(1, seed=3)[0]
    >>> set(sentence.scopes) <= {"and", "or", "not"}
    True
    """
    writer = _Writer(Random(f"labelled/{seed}/{split}"), split)
    found: dict[str, Sentence] = {}
    for _ in range(3 * n + 100):
        if len(found) == n:
            break
        sentence = writer.sentence()
        found.setdefault(sentence.text, sentence)
    return list(found.values())


class _Writer:
    """Fills frames and remembers which of their words are excluded."""

    def __init__(self, rng: Random, split: str):
        self.rng = rng
        self.names = Names(rng, split)
        self.domains = [domain_of_split(domain, split) for domain in DOMAINS]
        self.choice = rng.choice
        self.kinds: list[tuple[int, Callable[[], Pieces]]] = [  # with their shares
            (20, self._end),
            (9, self._front),
            (7, lambda: self._fill(self.choice(TYPED["middles"]))),
            (6, self._own_sentence),
            (17, lambda: self._fill(self.choice(TYPED["relatives"]))),
            (8, lambda: self._maybe_asked(TYPED["alternatives"])),
            (6, lambda: self._maybe_asked(TYPED["joined"])),
            (18, lambda: self._fill(self.choice(TYPED["nothing excluded"]))),
            (10, self._plain),
        ]

    def sentence(self) -> Sentence:
        _, write = self.rng.choices(self.kinds, [share for share, _ in self.kinds])[0]
        pieces = write()
        if self.rng.random() < 0.15:
            pieces = [*self._fill(self.choice(TYPED["openings"])), (" ", False), *pieces]
        if self.rng.random() < 0.3:
            pieces = [(text.lower(), inside) for text, inside in pieces]
        if self.rng.random() < 0.2 and pieces[-1][0].endswith(("?", ".")) and not pieces[-1][1]:
            pieces[-1] = (pieces[-1][0][:-1], False)
        return _labelled(pieces)

    def _end(self) -> Pieces:
        wanted, mark = self._wanted()
        cue = self.choice(_END_CUES)
        comma = ", " if cue not in _COMMA_FREE or self.rng.random() < 0.5 else " "
        pieces = [*wanted, (f"{comma}{cue} ", False), *self._excluded()]
        if mark == "?" and self.rng.random() < 0.15:
            pieces += self._fill(self.choice(TYPED["after"]))
        return [*pieces, (mark, False)]

    def _front(self) -> Pieces:
        if self.rng.random() < 0.4:
            cue = self.choice((*_FRONT_CUES, *_BEYOND_CUES))
            wanted, mark = self._fill(self.choice(TYPED["others"])), "?"
        else:
            cue = self.choice(_FRONT_CUES)
            wanted, mark = self._wanted(asked=True)
            wanted[0] = (wanted[0][0][:1].lower() + wanted[0][0][1:], False)
        return [(f"{cue} ", False), *self._excluded(), (", ", False), *wanted, (mark, False)]

    def _own_sentence(self) -> Pieces:
        wanted, mark = self._wanted(asked=True)
        before, _, after = self.choice(TYPED["own"]).partition("{B}")
        pieces = [*wanted, (f"{mark or '.'} {before}", False), *self._excluded(), (after, False)]
        if self.rng.random() < 0.2:
            pieces += [(" ", False), *self._fill(self.choice(TYPED["plain"]))]
        return pieces

    def _plain(self) -> Pieces:
        if self.rng.random() < 0.5:
            return self._fill(self.choice(TYPED["plain"]))
        wanted, mark = self._wanted()
        pieces = [*wanted, (mark, False)]
        if self.rng.random() < 0.3:
            pieces += [(" ", False), *self._fill(self.choice(TYPED["plain"]))]
        return pieces

    def _maybe_asked(self, frames: Sequence[str]) -> Pieces:
        pieces = self._fill(self.choice(frames))
        if self.rng.random() < 0.25 and not pieces[-1][0].endswith("?"):
            pieces += [(f", {self.choice(cue_table().written('after_list'))} ", False), *self._excluded()]
        if self.rng.random() < 0.3 and not pieces[0][0][:1].isupper():
            pieces = [(self.choice(("Find ", "Show me ", "I am looking for ", "list ")), False), *pieces]
        return pieces

    def _wanted(self, asked: bool = False) -> tuple[Pieces, str]:
        group = self.rng.choices(("question", "request", "bare"), (5, 2, 0 if asked else 3))[0]
        frames = {"question": TYPED["questions"], "request": TYPED["requests"], "bare": TYPED["bare"]}[group]
        mark = {"question": "?", "request": self.choice((".", "?", "")), "bare": ""}[group]
        pieces = self._fill(self.choice(frames))
        if group == "question" and self.rng.random() < 0.15:
            pieces += self._fill(self.choice((" and what is {fact}", " in {place}", " during {event}", " and why")))
        return pieces, mark

    def _excluded(self) -> Pieces:
        """One to three things, with what may stand before them."""
        count = self.rng.choices((1, 2, 3), (7, 3, 1))[0]
        things = [self._fill(self.choice(TYPED["things"])) for _ in range(count)]
        items = ["".join(text for text, _ in pieces) for pieces in things]
        joiner = self.choice((" and ", " or "))
        text = items[0] if count == 1 else ", ".join(items[:-1]) + joiner + items[-1]
        filler = self.choice(TYPED["fillers"]) + " " if self.rng.random() < FILLED else ""
        return [(filler, False), (text, True)]

    def _fill(self, frame: str) -> Pieces:
        """The frame with its slots filled; a slot {B_...} is excluded."""
        domain = self.rng.choice(self.domains)
        pieces: Pieces = []
        rest = frame
        while "{" in rest:
            text, _, rest = rest.partition("{")
            slot, _, rest = rest.partition("}")
            excluded = slot.startswith("B_")
            name = slot.removeprefix("B_").rstrip("23")
            pieces += [(text, False), (self.names.slot(name, domain), excluded)]
        return [piece for piece in [*pieces, (rest, False)] if piece[0]]


def _labelled(pieces: Sequence[tuple[str, bool]]) -> Sentence:
    text = "".join(piece for piece, _ in pieces)
    meant, start = [], 0
    for piece, excluded in pieces:
        if excluded:
            meant.append((start, start + len(piece)))
        start += len(piece)
    reading = read_parts(text)
    scopes = {name: reading.scopes(name) for name in ("and", "or", "not")}
    if _overlap(meant, scopes["not"]) < AGREES:
        scopes["not"] = tuple(meant)
    for name in ("and", "or"):
        scopes[name] = _outside(text, scopes[name], [*meant, *scopes["not"]])
    cues = tuple(cue for cue in reading.cues if not cue.weak)
    operators = tuple(name for name in ("and", "or", "not") if any(cue.operator == name for cue in cues))
    return Sentence(text, operators, cues, {name: spans for name, spans in scopes.items() if spans})


def _outside(text: str, spans: Sequence[Span], excluded: Sequence[Span]) -> tuple[Span, ...]:
    """What AND or OR joins among the wanted words, each within its sentence; nothing where fewer than two are left.

    >>> text = "jazz or blues? No rock or folk."
    >>> _outside(text, [(0, 4), (8, 22), (26, 30)], [(18, 30)])
    ((0, 4), (8, 13))
    """
    kept = []
    for start, end in spans:
        stop = _SENTENCE_END.search(text, start, end)
        end = stop.start() if stop else end
        if not any(start < last and first < end for first, last in excluded):
            kept.append((start, end))
    return tuple(kept) if len(kept) > 1 else ()


def _overlap(first: Sequence[Span], second: Sequence[Span]) -> float:
    """How far two sets of characters agree: 1 where they are the same, both empty included.

    >>> _overlap([(0, 4)], [(2, 4)]), _overlap([], []), _overlap([(0, 4)], [])
    (0.5, 1.0, 0.0)
    """
    one, other = ({place for start, end in spans for place in range(start, end)} for spans in (first, second))
    return len(one & other) / len(one | other) if one | other else 1.0
