"""What each word of a query is: wanted, excluded, an alternative, or a cue that excludes; and the spans they form.

A query reader gives every word a tag. A condition's first word has "B-", the others "I-", so that neighbours stay
apart: "no [pets] and no [smoking]", "no [nuts], [dairy] or [eggs]".
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .cues import quoted_names

WANTED, EXCLUDED, ALTERNATIVE, CUE = "w", "x", "a", "c"
OUTSIDE = "O"
TAGS = (OUTSIDE, *(f"{place}-{kind}" for kind in (WANTED, EXCLUDED, ALTERNATIVE, CUE) for place in "BI"))
# Behind the tags the reader's head has a number that tells pieces of words; then, as the mean over its words,
# what it says of the query: what NOT excludes, and whether it asks. reading_boolbert.py has the same.
KINDS_OF_NOT = ("topic", "set", "property")
LEAD = 0.5  # so much clearer than other kinds a property has to be
KIND = len(TAGS) + 1
ASKS = KIND + len(KINDS_OF_NOT)
_MARK = re.compile(r"\[([wxabcnmy]) ([^\[\]]*)\]")
JOINS = re.compile(r"\W*(?:\b(?:or|and|either|an?|the|even|maybe|alternatively|possibly|vs|versus)\b\W*)*")
_OR = re.compile(r"\bor\b|\|")


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


def joined_words(
    word_ids: Sequence[int | None], offsets: Sequence[tuple[int, int]]
) -> tuple[list[int], list[tuple[int, int]]]:
    """The first token of each word, and where the word begins and ends in the text. word_ids: the word of each token,
    None for one that stands for no text; offsets: the place of each.

    >>> joined_words([None, 0, 1, 1, None], [(0, 0), (0, 4), (5, 8), (8, 10), (0, 0)])
    ([1, 2], [(0, 4), (5, 10)])
    """
    first: list[int] = []
    words: list[tuple[int, int]] = []
    for token, (word, (start, end)) in enumerate(zip(word_ids, offsets, strict=True)):
        if word is None:
            continue
        if first and word == word_ids[token - 1]:
            words[-1] = (words[-1][0], end)
        else:
            first.append(token)
            words.append((start, end))
    return first, words


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


def marks_of(text: str, words: Sequence[tuple[int, int]], tags: Sequence[int]) -> list[Mark]:
    """The marks that tags form, from left to right. Alternatives with "or" or a comma between them are one group;
    one that is left alone is wanted.

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


def without_false_cues(text: str, marks: Sequence[Mark]) -> list[Mark]:
    """The marks without cues that exclude nothing: signs, of which those that do are search-box syntax, and words of a
    name in quotes. What they exclude is wanted.

    >>> text = "salt-and-pepper +chips"
    >>> marks = [Mark("w", 0, 8), Mark("c", 8, 9), Mark("x", 9, 15), Mark("c", 16, 17), Mark("x", 17, 22)]
    >>> [(mark.kind, text[mark.start : mark.end]) for mark in without_false_cues(text, marks)]
    [('w', 'salt-and-pepper'), ('w', 'chips')]
    """
    found: list[Mark] = []
    sign = -1  # where the last sign ends
    for mark in marks:
        if not any(map(str.isalnum, text[mark.start : mark.end])):
            sign = mark.end if mark.kind == CUE else sign
        elif mark.kind == EXCLUDED and sign >= 0 and not text[sign : mark.start].strip():
            if found and found[-1].kind == WANTED and not any(map(str.isspace, text[found[-1].end : mark.start])):
                found[-1] = found[-1]._replace(end=mark.end)  # within a word
            else:
                found.append(mark._replace(kind=WANTED))
        else:
            found.append(mark)
    for start, end in quoted_names(text):
        inside = [mark for mark in found if start <= mark.start < end]
        if any(mark.kind == CUE for mark in inside):
            found = [*(mark for mark in found if mark not in inside), Mark(WANTED, start + 1, end - 1)]
    return sorted(found, key=lambda mark: mark.start)


def _grouped(text: str, marks: list[Mark]) -> list[Mark]:
    """The marks, alternatives in their groups. With nothing between them two alternatives are the end of one group and
    the beginning of the next, "cats or dogs | from a shelter or a breeder", or one that was cut in two."""
    runs: list[list[int]] = []  # numbers of marks: alternatives that stand side by side
    joins = []  # of each run but the first: it goes on where the run before it ends
    alternatives = [number for number, mark in enumerate(marks) if mark.kind == ALTERNATIVE]
    for before, number in zip([None, *alternatives], alternatives, strict=False):
        between = "" if before is None else text[marks[before].end : marks[number].start].lower()
        is_joined = before is not None and number == before + 1 and bool(between.strip())
        if is_joined and (JOINS.fullmatch(between) or _OR.search(between)):
            runs[-1].append(number)
        else:
            joins += [before is not None and number == before + 1 and not between.strip()] if runs else []
            runs.append([number])
    found = list(marks)
    for place, is_next in enumerate(joins, 1):
        if is_next and min(len(runs[place - 1]), len(runs[place])) == 1:
            last, first = runs[place - 1].pop(), runs[place][0]
            found[first] = found[first]._replace(start=found[last].start)
            runs[place] = runs[place - 1] + runs[place]
            runs[place - 1] = []
            found[last] = found[last]._replace(end=found[last].start)  # nothing is left of it
    for group, run in enumerate(filter(None, runs)):
        for number in run:
            kind = {"kind": WANTED, "group": 0} if len(run) == 1 else {"group": group}
            found[number] = found[number]._replace(**kind)
    return [mark for mark in found if mark.end > mark.start]
