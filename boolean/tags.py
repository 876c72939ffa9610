"""What each word of a query is: wanted, excluded, an alternative, or a cue that excludes; and the spans they form.

A query reader gives every word a tag. A condition's first word has "B-", the others "I-", so that neighbours stay
apart: "no [pets] and no [smoking]", "no [nuts], [dairy] or [eggs]".
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

WANTED, EXCLUDED, ALTERNATIVE, CUE = "w", "x", "a", "c"
OUTSIDE = "O"
TAGS = (OUTSIDE, *(f"{place}-{kind}" for kind in (WANTED, EXCLUDED, ALTERNATIVE, CUE) for place in "BI"))
_MARK = re.compile(r"\[([wxabc]) ([^\[\]]*)\]")
JOINS = re.compile(r"\W*(?:\b(?:or|and|either|an?|the|even|maybe|alternatively|possibly|vs|versus)\b\W*)*")


class Mark(NamedTuple):
    """The stretch `text[start:end]` of a query, and what it is: WANTED, EXCLUDED, ALTERNATIVE or CUE. group: which
    alternatives belong together."""

    kind: str
    start: int
    end: int
    group: int = 0


def parse_marked(line: str) -> tuple[str, list[Mark]]:
    """A query with its marks, from the form in which people label it. "b" is a second group of alternatives.

    >>> text, marks = parse_marked("[w hotels] [c without] a [x pool]")
    >>> text, [(mark.kind, text[mark.start : mark.end]) for mark in marks]
    ('hotels without a pool', [('w', 'hotels'), ('c', 'without'), ('x', 'pool')])
    """
    text, marks, left = "", [], 0
    for match in _MARK.finditer(line):
        text += line[left : match.start()]
        kind, group = (ALTERNATIVE, "ab".index(match[1])) if match[1] in "ab" else (match[1], 0)
        marks.append(Mark(kind, len(text), len(text) + len(match[2]), group))
        text, left = text + match[2], match.end()
    return text + line[left:], marks


def word_tags(words: Sequence[tuple[int, int]], marks: Sequence[Mark]) -> list[int]:
    """The tag of each word, as a number in TAGS, from the marks. words: where each begins and ends in the text.

    >>> _, marks = parse_marked("[w hotels] [c without] a [x pool]")
    >>> [TAGS[tag] for tag in word_tags([(0, 6), (7, 14), (15, 16), (17, 21)], marks)]
    ['B-w', 'B-c', 'O', 'B-x']
    """
    tags = [0] * len(words)
    for mark in marks:
        inside = [number for number, (start, end) in enumerate(words) if start < mark.end and mark.start < end]
        for place, number in enumerate(inside):
            tags[number] = TAGS.index(f"{'I' if place else 'B'}-{mark.kind}")
    return tags


def best_tags(scores: npt.NDArray[np.floating]) -> list[int]:
    """The best sequence of tags for words of these scores (W, T), in which nothing goes on that has not begun, and a
    cue stands beside something excluded: one is not there without the other.

    >>> scores = np.full((2, len(TAGS)), -9.0)
    >>> scores[0, TAGS.index("B-c")], scores[1, TAGS.index("B-w")], scores[1, TAGS.index("I-x")] = 0, -1, -2
    >>> scores[1, TAGS.index("B-x")] = -3
    >>> [TAGS[tag] for tag in best_tags(scores)]
    ['B-c', 'B-x']
    """
    # What the best sequence so far scores, by which of cues and exclusions it has and by its last tag: (4, T).
    best = np.where(np.arange(len(_SEEN))[:, None] == _HAS, scores[0] + _FIRST, -np.inf)
    back = []
    for row in scores[1:]:
        ways = best[:, :, None] + _FOLLOWS  # has, from, to
        found = np.full((len(_SEEN), *best.shape), -np.inf)  # has now, had before, to
        for had in range(len(_SEEN)):
            found[had | _HAS, had, np.arange(len(TAGS))] = ways[had].max(0)
        back.append((found.argmax(1), ways.argmax(1)))
        best = found.max(1) + row
    has, tag = max(((has, int(best[has].argmax())) for has in _SEEN_TOGETHER), key=lambda end: best[end])
    tags = [tag]
    for befores, froms in reversed(back):
        has, tag = (before := int(befores[has, tag])), int(froms[before, tag])
        tags.append(tag)
    return tags[::-1]


def marks_of(text: str, words: Sequence[tuple[int, int]], tags: Sequence[int]) -> list[Mark]:
    """The marks that tags form, from left to right. Alternatives with nothing but "or" and commas between them are one
    group; one that is left alone is wanted.

    >>> text = "cork or kerry hotels"
    >>> tags = [TAGS.index(tag) for tag in ("B-a", "O", "B-a", "B-w")]
    >>> [(mark.kind, text[mark.start : mark.end]) for mark in marks_of(text, [(0, 4), (5, 7), (8, 13), (14, 20)], tags)]
    [('a', 'cork'), ('a', 'kerry'), ('w', 'hotels')]
    """
    marks: list[Mark] = []
    for (start, end), tag in zip(words, tags, strict=True):
        if tag == 0:
            continue
        place, kind = TAGS[tag].split("-")
        if place == "I" and marks and marks[-1].kind == kind:
            marks[-1] = marks[-1]._replace(end=end)
        else:
            marks.append(Mark(kind, start, end))
    return _grouped(text, marks)


def _grouped(text: str, marks: list[Mark]) -> list[Mark]:
    alternatives = [number for number, mark in enumerate(marks) if mark.kind == ALTERNATIVE]
    group, found = 0, list(marks)
    for before, number in zip([None, *alternatives], alternatives, strict=False):
        if before is not None and not JOINS.fullmatch(text[marks[before].end : marks[number].start].lower()):
            group += 1
        found[number] = marks[number]._replace(group=group)
    sizes = [sum(mark.kind == ALTERNATIVE and mark.group == number for mark in found) for number in range(group + 1)]
    return [
        mark._replace(kind=WANTED, group=0) if mark.kind == ALTERNATIVE and sizes[mark.group] == 1 else mark
        for mark in found
    ]


_GOES_ON = np.array([[before[2:] == after[2:] and before != OUTSIDE for after in TAGS] for before in TAGS])
_IS_INSIDE = np.array([tag.startswith("I-") for tag in TAGS])
_FOLLOWS = np.where(_IS_INSIDE[None, :] & ~_GOES_ON, -1e4, 0.0)
_FIRST = np.where(_IS_INSIDE, -1e4, 0.0)
_HAS = np.array([1 if tag.endswith(f"-{CUE}") else 2 if tag.endswith(f"-{EXCLUDED}") else 0 for tag in TAGS])
_SEEN, _SEEN_TOGETHER = range(4), (0, 3)  # nothing, a cue, an exclusion, both; neither or both
