"""What each word of a query is to the reader, and the marks that its tags form.

The reader gives every word a tag. A condition's first word has "B-", the others "I-", so that neighbours stay apart:
"no [pets] and no [smoking]", "no [nuts], [dairy] or [eggs]".
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

# Wanted; the first of some alternatives, and another one of them; a bound on a number; a denial that is wanted;
# excluded; a bound that is denied; words that exclude; words that join.
KINDS = WANTED, ALTERNATIVE, OTHER, BOUND, DENIAL, EXCLUDED, DENIED_BOUND, CUE, JOIN = tuple("waomnxycj")
EXCLUDING = EXCLUDED + DENIED_BOUND
ASKED_FOR = WANTED + ALTERNATIVE + BOUND + DENIAL
OUTSIDE = "O"
TAGS = (OUTSIDE, *(f"{place}-{kind}" for kind in KINDS for place in "BI"))
# Behind the tags the reader's head has a number that tells pieces of words; then, as the mean over its words,
# what it says of the query: what NOT excludes, and whether it asks. reading_boolbert.py has the same.
KINDS_OF_NOT = ("topic", "set", "property")
LEAD = 0.5  # so much clearer than other kinds a property has to be
# A question counts as one from this number of the head: read for one that looks for items, it loses its passage.
LEAST_ASKING = -3.0
KIND = len(TAGS) + 1
ASKS = KIND + len(KINDS_OF_NOT)
_MARK = re.compile(r"\[([wxabcnmy]) ([^\[\]]*)\]")


class Mark(NamedTuple):
    """The stretch `text[start:end]` of a query, and what it is: one of `KINDS` but OTHER. group: which alternatives
    belong together."""

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

    >>> _, marks = parse_marked("[a hotels] or [a inns] [c without] a [x pool]")
    >>> [TAGS[tag] for tag in word_tags([(0, 6), (7, 9), (10, 14), (15, 22), (23, 24), (25, 29)], marks)]
    ['B-a', 'O', 'B-o', 'B-c', 'O', 'B-x']
    """
    tags = [0] * len(words)
    begun = set()
    for mark in marks:
        kind = OTHER if mark.kind == ALTERNATIVE and mark.group in begun else mark.kind
        begun |= {mark.group} if kind == ALTERNATIVE else set()
        inside = [number for number, (start, end) in enumerate(words) if start < mark.end and mark.start < end]
        for place, number in enumerate(inside):
            tags[number] = TAGS.index(f"{'I' if place else 'B'}-{kind}")
    return tags


def marks_of(words: Sequence[tuple[int, int]], tags: Sequence[int]) -> list[Mark]:
    """The marks that tags form, from left to right. An alternative that no other one follows is wanted, and so is
    another one that follows none.

    >>> tags = [TAGS.index(tag) for tag in ("B-a", "O", "B-o", "B-w")]
    >>> [(mark.kind, mark.start, mark.group) for mark in marks_of([(0, 4), (5, 7), (8, 13), (14, 20)], tags)]
    [('a', 0, 1), ('a', 8, 1), ('w', 14, 0)]
    """
    marks: list[Mark] = []
    group = 0
    for (start, end), tag in zip(words, tags, strict=True):
        if tag == 0:
            continue
        place, kind = TAGS[tag].split("-")
        if place == "I" and marks and marks[-1].kind == kind:
            marks[-1] = marks[-1]._replace(end=end)
        else:
            group += kind == ALTERNATIVE
            marks.append(Mark(kind, start, end, group if kind in (ALTERNATIVE, OTHER) else 0))
    counts = {group: sum(mark.group == group for mark in marks) for group in {mark.group for mark in marks}}
    found = []
    for mark in marks:
        if mark.kind in (ALTERNATIVE, OTHER):
            is_one_of_some = mark.group > 0 and counts[mark.group] > 1
            mark = mark._replace(kind=ALTERNATIVE) if is_one_of_some else mark._replace(kind=WANTED, group=0)
        found.append(mark)
    return found
