"""A text in clauses, each with what it denies: the pieces of a document that are compared with the parts of a query.

A clause says one thing: it ends at . ; : and at commas, "but", "and" and "while" that join more than the items of a
short list; the items of a long one are clauses each. What is denied stands in a clause of its own where there is enough
round it to stand alone, so that "Almond bars without sugar" affirms almonds and denies sugar.
"""

import re
from dataclasses import dataclass
from itertools import chain

from .denials import Denial, Span, find_denials, may_deny, small_letters
from .word_lists import WORDS, pattern

SHORTEST = 3  # words of a clause; a piece of fewer words joins its neighbour, unless only one of the two denies
LIST = 6  # from this many short pieces on, a sentence is a list, and each item is a clause
LONGEST_SENTENCE = 1000  # characters; a longer one is cut, since reading takes time that grows with its square
FARTHEST = 1000  # characters between the parenthesis that opens a row's fields and the name of a field
CONTENT = 2  # content words that a short piece beside a denial needs to stay a clause of its own

# A full stop behind a title or an initial ends no sentence, behind other short forms unless a capital letter follows.
_TITLES, _SHORTENED = ("|".join(sorted(WORDS[name])) for name in ("titles", "shortened"))
_ABBREVIATION = re.compile(rf"(?<![\w'’])(?:(?P<title>[^\W\d_]|{_TITLES})|{_SHORTENED})\Z")
# Every alternative begins with a character of its own, which makes the search fast.
_CLOSING = r"[\"'”’)\]]*+"
_BREAK = re.compile(
    rf"(?P<stop>\.){_CLOSING}(?=\s|\Z)"
    rf"|(?P<strong>[!?…](?<![!?…]{{2}})[!?…]*+{_CLOSING}(?=\s|\Z)|;|:(?=\s)|[–\-](?<=\s.)(?=\s)|—|[()\[\]|•·])"
    rf"|(?P<line>\n\s*)"
    rf"|(?P<weak>,(?=\s)(?:\s+(?:and|but|while|whereas|yet)\b)?"
    rf"|a(?<=\sa)nd(?=\s)|b(?<=\sb)ut(?=\s)|w(?<=\sw)h(?:ile|ereas)(?=\s))"
)
_COLON = re.compile(r":(?=\s)")
_LABEL = re.compile(r"\s*[^\W\d_][\w /-]{0,40}")
_LETTER = re.compile(r"\w")
_IN_WORD = re.compile(r"[\w\-‐‑]")
_CONTENT = re.compile(pattern(r"\b(?!{no content}\b)[^\W_][\w'’\-]+").pattern)  # small letters alone


@dataclass(frozen=True, slots=True)
class Clause:
    """`text[start:end]`; where it denies, `denied` has the spans of what: "nuts" in "contains no nuts"."""

    start: int
    end: int
    denies: bool
    denied: tuple[Span, ...] = ()


def split_clauses(text: str) -> list[Clause]:
    """The clauses of a text, from left to right.

    >>> text = "Oat bars with honey, dates and figs, but no nuts or milk. Not only for hikers."
    >>> [(text[clause.start : clause.end], clause.denies) for clause in split_clauses(text)]
    [('Oat bars with honey, dates and figs', False), ('no nuts or milk', True), ('Not only for hikers', False)]
    >>> text = "Likes plum jam, fig cake, lemon tea, paper kites, river walks, wool hats and old maps."
    >>> [text[clause.start : clause.end] for clause in split_clauses(text)][:3]
    ['Likes plum jam', 'fig cake', 'lemon tea']
    """
    clauses: list[Clause] = []
    small = small_letters(text)
    denies = may_deny(small)
    start, weak = 0, list[Span]()
    for match in chain(_BREAK.finditer(small), [None]):
        end = match.start() if match else len(text)
        while end - start > LONGEST_SENTENCE:
            left, right = weak[-1] if weak else _last_space(small, start, start + LONGEST_SENTENCE)
            clauses += _sentence(text, small, start, left, weak, denies)
            start, weak = right, []
        if match is None:
            break
        if match["weak"]:
            weak.append(match.span())
            continue
        if match["stop"] and _goes_on(text, small, *match.span()):
            continue
        if match["strong"] == ":" and _label(small, match.start()) is not None:
            continue  # a field's name and its value are one clause
        if match["line"] and match["line"].count("\n") == 1 and text[match.end() : match.end() + 1].islower():
            continue  # a line that is full, in the midst of a sentence
        clauses += _sentence(text, small, start, match.start(), weak, denies)
        start, weak = match.end(), []
    return clauses + _sentence(text, small, start, len(text), weak, denies)


def affirmed(text: str) -> str:
    """The text with a dash for everything that it denies; words such as "nut-free" stay.

    >>> affirmed("Nut-free bars. They contain no milk, eggs or soy, but sesame.")
    'Nut-free bars. They contain no –, but sesame.'
    >>> affirmed("Breakfast is not included.")
    '– is not included.'
    """
    if not may_deny(small_letters(text)):
        return text
    spans = [span for clause in split_clauses(text) for span in clause.denied]
    pieces, left = [], 0
    for start, end in spans:
        if not (_IN_WORD.match(text, end) or (start and _IN_WORD.match(text, start - 1))):
            pieces += [text[left:start], "–"]
            left = end
    return "".join([*pieces, text[left:]])


def without_labels(text: str) -> str:
    """The text without the names of its fields.

    >>> without_labels("Pad thai (cuisine: Thai; spice level: hot). Serve: at once")
    'Pad thai ( Thai;  hot). Serve: at once'
    """
    pieces, left = [], 0
    for colon in _COLON.finditer(text):
        if (label := _label(text, colon.start())) is not None:
            pieces.append(text[left:label])
            left = colon.end()
    return "".join([*pieces, text[left:]])


def _label(text: str, colon: int) -> int | None:
    """Where the name of a field begins that ends at a colon: "cuisine" in "Pad thai (cuisine: Thai; level: hot)"."""
    first = max(0, colon - FARTHEST)
    opened, closed = text.rfind("(", first, colon), text.rfind(")", first, colon)
    start = max(opened, text.rfind(";", first, colon)) + 1
    return start if opened > closed and _LABEL.fullmatch(text, start, colon) else None


def _last_space(small: str, start: int, end: int) -> Span:
    """The last space between two places; the second place where there is none."""
    space = small.rfind(" ", start + 1, end)
    return (space, space + 1) if space >= 0 else (end, end)


def _goes_on(text: str, small: str, start: int, end: int) -> bool:
    """Whether the sentence goes on behind the full stop at `start`: "John B. Murphy", "approx. 5 km"."""
    abbreviation = _ABBREVIATION.search(small, max(0, start - 8), start)
    following = text[end : end + 8].lstrip()[:1]
    return bool(abbreviation and following and (abbreviation["title"] or not following.isupper()))


def _sentence(text: str, small: str, start: int, end: int, weak: list[Span], denies: bool) -> list[Clause]:
    """The clauses of one sentence."""
    if not _LETTER.search(small, start, end):
        return []
    denials = find_denials(text, start, end, small) if denies else []
    breaks = [span for span in weak if not any(denial.start < span[1] and span[0] < denial.end for denial in denials)]
    for denial in denials:
        breaks += [(denial.start, denial.start), (denial.end, denial.end)]
    breaks.sort()
    pieces: list[Span] = []
    left = start
    for before, after in [*breaks, (end, end)]:
        if _LETTER.search(small, left, before):
            pieces.append((left, before))
        left = max(left, after)
    return [_clause(small, *piece, denials) for piece in _joined(small, pieces, denials)]


def _joined(small: str, pieces: list[Span], denials: list[Denial]) -> list[Span]:
    """The pieces with those that are too short to stand alone put to their neighbour."""
    joined: list[Span] = []
    denying: list[bool] = []
    shortest = 1 if sum(_words(small, *piece) < SHORTEST for piece in pieces) >= LIST else SHORTEST
    for start, end in pieces:
        denies = any(start <= denial.start < end for denial in denials)
        if joined:
            before = joined[-1]
            if denies == denying[-1]:
                apart = _words(small, *before) >= shortest and _words(small, start, end) >= shortest
            else:  # whoever does not deny must have something to say
                other = (start, end) if denying[-1] else before
                is_list = bool(small[before[1] : start].strip())
                apart = len(_CONTENT.findall(small, *other)) >= (1 if is_list else CONTENT)
            if not apart:
                joined[-1] = (before[0], end)
                denying[-1] = denying[-1] or denies
                continue
        joined.append((start, end))
        denying.append(denies)
    return joined


def _words(small: str, start: int, end: int) -> int:
    return len(small[start:end].split())


def _clause(text: str, start: int, end: int, denials: list[Denial]) -> Clause:
    """Without the white space and punctuation round it."""
    while start < end and (text[start].isspace() or text[start] in ",-–"):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in ",-–"):
        end -= 1
    denied = tuple(span for denial in denials for span in denial.denied if start <= span[0] and span[1] <= end)
    return Clause(start, end, bool(denied), denied)
