"""The parts of any text: what is wanted, what AND joins, which alternatives OR offers, what NOT excludes.

`read_parts` is where the rules decide where a part begins and ends: for training labels, for evaluation, and for search
without the query reader. `exclusion.py` decides which NOT cues exclude at all.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ...boolean.marks import Part, Parts
from ...boolean.word_lists import pattern
from .cues import HYPHENS, CueSpan, find_cues, normal
from .exclusion import ABBREVIATION, LONGEST_AROUND_CUE, OPENING, OPENS_ANEW, content, excludes, sentence_start
from .lexicon import ENGLISH

Span = tuple[int, int]


class Stretch(NamedTuple):
    """An exclusion: it reaches from start to end, with its cue; its excluded words from left to right."""

    start: int
    left: int
    right: int
    end: int


class Reading(NamedTuple):
    """A text with its counting cues and its parts, both from left to right."""

    text: str
    cues: tuple[CueSpan, ...]
    parts: Parts

    @property
    def wanted(self) -> Parts:
        return tuple(part for part in self.parts if part.operator != "not")

    @property
    def excluded(self) -> Parts:
        return tuple(part for part in self.parts if part.operator == "not")

    def scopes(self, operator: str) -> tuple[Span, ...]:
        """The characters that an operator reaches: what NOT excludes, OR's alternatives, the parts that AND joins.

        A list that one NOT excludes is one stretch, with the "or" in it.

        >>> reading = read_parts("cats or dogs but not wolves or lions")
        >>> reading.scopes("or"), reading.scopes("not")
        (((0, 4), (8, 12)), ((21, 36),))
        """
        if operator == "not":
            return tuple(self._excluded_stretches())
        spans: dict[Span, None] = {}
        left: Part | None = None
        for part in self.wanted:
            if part.operator == operator and left is not None:
                spans[left.start, left.end] = None
                spans[part.start, part.end] = None
            left = part
        return tuple(spans)

    def _excluded_stretches(self) -> Iterator[Span]:
        edges = [cue.start for cue in self.cues if cue.excludes]
        by_cue = groupby(self.excluded, key=lambda part: bisect_right(edges, part.start))
        for _, group in by_cue:
            parts = list(group)
            yield parts[0].start, parts[-1].end


_QUOTED = r'"[^"]{1,100}"|“[^”]{1,100}”'
_STOPS = pattern(
    rf"(?P<quoted>{_QUOTED})|(?P<open>\()|(?P<close>\))|(?P<end>[?!;？]|:(?=\s))|(?P<dot>\.(?=\s|\Z))|(?P<comma>[,，])"
    r"|(?P<dash>\s[-–—]\s)|(?P<clause>\s+and\s+(?={opens clause}\b))"
    r"|(?P<but>\s+(?:but|while|whereas|because|though|yet)\s+)|(?P<other>\s+(?={wh}\s+(?:other|else)\b))"
    r"|(?P<relative>\s+(?=(?:that|which|who)\s+(?:are|is|were|was|have|has|do|does|also)\b))"
    r"|(?P<andverb>\s+and\s+(?=(?:\w+ed|set|shot|made|written|about|in|on|by|from|of|for)\b))"
    r"|(?P<verb>\s+(?=(?:did|does|do|has|have|had|is|are|was|were|will|can|could|would)\b))"
    r"|(?P<past>\s+(?={past}\s+(?!by\b)))"
)
# A comma after which a list, a date, a place or a description goes on.
_ITEM = pattern(r"\s*(?!(?:{opens clause}|{no item})\b)")
_CONJUNCTION = pattern(r"\b(?:or|nor|and)\s+(?!(?:{opens clause}|{no item})\b)")
_LIST_COMMA = pattern(rf"{_QUOTED}|, (?!(?:{{opens clause}}|{{no item}})\b|\d)")
_OR_NEXT = pattern(r"\s*(?:or|nor)\s+(?!else\b|alternatively\b)")
_AND_NEXT = pattern(r"\s*and\s+(?!{opens clause}\b)")
_ASKS = pattern(r"{wh}")
_DATE = re.compile(r"\s*\d{3,4}\b|\d")
_PLACE = re.compile(rf"\s*(?:{_QUOTED})|\s*(?!I\b)[A-Z][\w.'’-]*(?:\s+[A-Z][\w.'’-]*){{0,3}}\s*(?=[?!;,)]|\.?\s*\Z)")
_DESCRIPTION = pattern(
    r"\s*(?:(?:an?|the|one\s+of)\s|(?:which|who|where)\s+(?:is|was|are|were|has|had|have|\w+ed|\w+s)\b|whose\s|whom\s"
    r"|(?:known|directed|written|founded|based|released|especially|part\s+of)\s)"
)
# Where the main clause begins after an exclusion that stands in front.
_MAIN = pattern(
    r"\s*(?:(?:what|how|why)\b|(?:who|which|where|when)\s+(?:other|else)\b"
    r"|(?:in|to|with|for|at|on|of)\s+which\b|(?:can|could|would|will|do|does|did|is|are|was|were|has|have)\s+\w+"
    r"|please\b|(?:tell|list|find|show|name|give|describe|explain)\b|i\b|we\b)"
)
_WEAK_MAIN = pattern(r"\s*(?:who|which|where|when)\b")
# A question whose verb is still to come: "Which films other than westerns were shot in Spain?"
_VERBLESS = pattern(
    r"\s*(?:which|what|who)\b(?!.*\b(?:did|does|do|has|have|had|is|are|was|were|will|can|could|would|should)\b)",
    re.DOTALL,
)
_NAME_THEN = re.compile(
    r"\s*(?:the\s+)?[A-Z][\w.'’-]*(?:\s+(?:(?:of|the|de|van|von)\s+)?[A-Z][\w.'’-]*)*(?=\s+(?:to\s+the|\w+ed\s+(?!by\b|in\b|on\b)|won|wrote|made|sang)\b)"
)
_WHO = pattern(r"\s*who(?:\s+else)?[\s,]*\Z")  # "Who besides Brahms wrote waltzes?"
# What stands before the excluded thing and says nothing about it.
_FILLER = pattern(
    r"\s*(?:(?:include|involve|contain|mention|feature|have(?:\s+to\s+do\s+with)?|including|mentioning|discussing)\b\s*)?"
    r"(?:(?:the\s+fact\s+that)\s+"
    r"|(?:those|ones|anything|something|things)\s+(?:that|which|who)\s+(?:are|is|were|was|have|has|had)\s+"
    r"|(?:(?:any|all|the|some|further|other)\s+)*(?:(?:specific|particular|personal|other|further)\s+)*"
    r"{information}\s+(?:specifically\s+|specific\s+)?"
    r"(?:about|related\s+to|relating\s+to|regarding|concerning|on|of|to|from|involving|with)\s+)?"
)
_EMPTY_LEAD = pattern(r"(?:(?:any|all|one)\s+of\s+)?(?:these|the\s+following)\s*:|(?:being|any|either|both|also)\s+|:")
_TRAIL = pattern(r"(?:\s+{trailing})+\Z")
_EDGES = " \t\r\n,，;:.?!？()–—-"
_CLOSING_AND = re.compile(r"\balso\b|\baddition\b|\bbut\b")
_JOINED = pattern(r"(?:[,;(]|\b(?:but|and|or))\s*(?:(?:is|are|was|were|do|does|has|have)\s+)?\Z")
_WORD = re.compile(r"\w+(?:-\w+)*")
LISTING = frozenset({"and", "or", "&", "as well as", "and/or", "either", "any of"})
LONGEST_ITEM = 60


def read_parts(text: str, language: str = ENGLISH) -> Reading:
    """Take any text apart.

    >>> [part[::3] for part in read_parts("films (not westerns) of the 1950s").parts]
    [('', 'films'), ('not', 'westerns'), ('', 'of the 1950s')]
    >>> [part[::3] for part in read_parts("Birds of Peru as well as Chile, but not of Brazil or Cuba").parts]
    [('', 'Birds of Peru'), ('and', 'Chile'), ('not', 'of Brazil'), ('not', 'Cuba')]
    >>> [part[::3] for part in read_parts("Which birds do not fly?").parts]
    [('', 'Which birds do not fly')]
    """
    cues = [cue for cue in find_cues(text, language) if not cue.weak or cue.rule == "suffix"]
    stretches = _exclusions(text, cues)
    wanted = _wanted(text, _outside(text, stretches), cues)
    if stretches and not any(content(part.text) for part in wanted):
        stretches, wanted = [], _wanted(text, [(0, len(text))], cues)  # nothing is wanted, so nothing is taken from it
    if not wanted or (all(cue.operator == "not" for cue in cues) and not stretches):
        whole = text.strip(_EDGES) or text.strip()  # nothing joins and nothing is excluded
        start = text.index(whole)
        wanted = [Part("", start, start + len(whole), whole)]
    excluded = [
        Part("not", *span, text[slice(*span)]) for stretch in stretches for span in _pieces(text, stretch, cues)
    ]
    opening = {stretch.start for stretch in stretches}
    cues = [cue._replace(excludes=cue.start in opening) for cue in cues]
    return Reading(text, tuple(cues), tuple(sorted([*wanted, *excluded], key=lambda part: part.start)))


def _exclusions(text: str, cues: Sequence[CueSpan]) -> list[Stretch]:
    """What the cues exclude, from left to right."""
    found: list[Stretch] = []
    for cue in cues:
        if cue.operator != "not":
            continue
        inside = bool(found) and cue.start < found[-1].end
        if cue.rule == "suffix":
            if not inside and excludes(text, cue):  # "sugar-free desserts": the excluded word stands before the hyphen
                hyphen = max(cue.text.rfind(sign) for sign in HYPHENS)
                found.append(Stretch(cue.start, cue.start, cue.start + hyphen, cue.end))
            continue
        if cue.rule == "nor":
            follows = bool(found) and not text[found[-1].end : cue.start].strip(" ,")
            opens = follows or inside
        else:
            opens = excludes(text, cue)
        if inside and opens:
            # "Excluding pleas without a trial": the second belongs to what the first excludes.
            if cue.rule not in OPENS_ANEW | {"nor"} and not _JOINED.search(text, found[-1].left, cue.start):
                continue
            found[-1] = found[-1]._replace(right=cue.start, end=cue.start)
        if opens:
            end = _end_of_exclusion(text, cue, cues)
            found.append(Stretch(cue.start, cue.end, end, end))
    return found


def _end_of_exclusion(text: str, cue: CueSpan, cues: Sequence[CueSpan]) -> int:
    word = normal(cue.text)
    if cue.rule == "prefix":
        match = _WORD.search(text, cue.end)
        return match.end() if match else cue.end
    sentence = sentence_start(text, cue.start)
    before = text[sentence : cue.start]
    limit = _next_condition(text, cue, cues)
    commands = cue.rule == "command" or word.startswith(
        ("do not", "don't", "dont", "avoid ", "let's not", "cannot", "can't")
    )
    if not commands and not content(before) and not before.strip().endswith("("):
        front = _end_in_front(text, cue.end)
        if front is not None:
            return front
    name = _NAME_THEN.match(text, cue.end)
    if name and _VERBLESS.match(before):
        return name.end()
    predicate = cue.rule in ("absence", "negation")
    verbless = _VERBLESS.match(before) is not None
    depth, listing, described = 0, False, -1
    first = text[cue.end : cue.end + 12].split()[:1]
    asks = bool(first) and _ASKS.fullmatch(first[0]) is not None
    for stop in _STOPS.finditer(text, cue.end, limit):
        kind, start = stop.lastgroup, stop.start()
        if kind == "quoted" or not text[cue.end : start].strip():
            depth += kind == "open"
            continue
        if kind == "open":
            depth += 1
        elif kind == "close":
            if depth == 0:
                return start
            depth -= 1
        elif depth:
            continue
        elif kind == "dot":
            if not ABBREVIATION.search(text, cue.end, start) or not text[start + 1 :].strip():
                return start
        elif kind == "comma":
            goes_on, listing = _goes_on(text, stop.end(), listing)
            if not goes_on:
                return start
            described = stop.end()
        elif kind == "clause":
            if not asks:
                return start
        elif kind in ("relative", "andverb"):
            if predicate and start != described:  # ", which was shot in 1994" belongs to what stands before it
                return start
        elif kind == "past":
            if _WHO.match(before):
                return start
        elif kind == "verb":
            if verbless and not re.search(r"\b(?:that|which|who|what|how|whether|if)\b", text[cue.end : start]):
                return start
        else:
            return start
    return limit


def _next_condition(text: str, cue: CueSpan, cues: Sequence[CueSpan]) -> int:
    """Where another exclusion, or an AND that opens another condition, ends this one: "not B and also C"."""
    limit = min(len(text), cue.end + LONGEST_AROUND_CUE)
    for other in _between(cues, cue.end, limit):
        if other.operator == "not" and other.rule in OPENS_ANEW and excludes(text, other):
            return other.start
        if other.operator == "and" and _CLOSING_AND.search(normal(other.text)):
            return other.start
        if other.operator == "or" and normal(other.text) in ("or alternatively", "alternatively", "or else"):
            return other.start
    return limit


def _between(cues: Sequence[CueSpan], start: int, end: int) -> Sequence[CueSpan]:
    """The cues that lie in a stretch; looking for them from the left would take the square of a text's length."""
    first = bisect_left(cues, start, key=lambda cue: cue.start)
    last = bisect_left(cues, end, key=lambda cue: cue.start)
    return [cue for cue in cues[first:last] if cue.end <= end]


def _end_in_front(text: str, start: int) -> int | None:
    """The comma that closes "Apart from X, ...": before the main clause, else the first that ends no item of a list."""
    commas, depth = [], 0
    for stop in _STOPS.finditer(text, start, start + LONGEST_AROUND_CUE):
        kind = stop.lastgroup
        depth += (kind == "open") - (kind == "close")
        if (kind == "comma" or stop.group().endswith((',"', ",”"))) and depth <= 0:
            commas.append(stop)  # or a title that holds the comma: Apart from "Fearless," what ...
        elif kind == "other" and text[start : stop.start()].strip():
            if not any(_MAIN.match(text, comma.end()) for comma in commas):
                return stop.start()
            break
        elif kind == "end" and depth <= 0:
            break
    for main in (_MAIN, _WEAK_MAIN):
        for comma in commas:
            if main.match(text, comma.end()):
                return comma.start() if comma.lastgroup == "comma" else comma.end()
    listing = False
    commas = [stop for stop in commas if stop.lastgroup == "comma"]
    for comma in commas[:-1]:
        goes_on, listing = _goes_on(text, comma.end(), listing)
        if not goes_on:
            return comma.start()
    return commas[-1].start() if commas else None


def _goes_on(text: str, start: int, listing: bool) -> tuple[bool, bool]:
    """Whether the excluded words go on behind a comma, and whether they are a list."""
    if _OR_NEXT.match(text, start) or (listing and _AND_NEXT.match(text, start)):
        return True, listing
    if _DATE.match(text, start):
        return True, listing
    if _is_list(text, start):
        return True, True
    return bool(_PLACE.match(text, start) or _DESCRIPTION.match(text, start)), listing


def _is_list(text: str, start: int) -> bool:
    """Whether short items follow, and then an "or" or "and": "B, C or D" behind "A,"."""
    rest = re.sub(rf"{_QUOTED}|\([^()]*\)", "x", text[start : start + 8 * LONGEST_ITEM])
    rest = re.split(r"[;?!()]|(?<!\b\w)\.(?=\s|\Z)", rest, maxsplit=1)[0]
    for item in rest.split(","):
        if not _ITEM.match(item):
            return False
        conjunction = _CONJUNCTION.search(item[: LONGEST_ITEM + 6])
        if conjunction or len(item) > LONGEST_ITEM:
            return conjunction is not None
    return False


def _outside(text: str, stretches: Sequence[Stretch]) -> list[Span]:
    spans, left = [], 0
    for stretch in stretches:
        spans.append((left, stretch.start))
        left = stretch.end
    return [(start, end) for start, end in [*spans, (left, len(text))] if start < end]


def _pieces(text: str, stretch: Stretch, cues: Sequence[CueSpan]) -> Iterator[Span]:
    """The excluded words, cut at "or", "and" and the commas of a list."""
    _, start, end, _ = stretch
    left = after_filler(text, start, end)
    for cue in _between(cues, left, end):
        if normal(cue.text) not in LISTING:
            continue
        yield from _items(text, left, cue.start, True)
        left = cue.end
    yield from _items(text, left, end, False)


def _items(text: str, start: int, end: int, listed: bool) -> Iterator[Span]:
    """A stretch, cut at its commas where an "and" or "or" follows: the comma of "A, B or C" says the same."""
    found = _LIST_COMMA.finditer(text[start:end]) if listed else ()
    commas = [(start + match.start(), start + match.end()) for match in found if match.group().startswith(",")]
    for right, following in [*commas, (end, end)]:
        span = trim(text, start, right)
        if span[0] < span[1]:
            yield span
        start = following


def _wanted(text: str, outside: Sequence[Span], cues: Sequence[CueSpan]) -> list[Part]:
    """What is wanted, cut at the cues of AND and OR."""
    joins = [cue for cue in cues if cue.operator != "not"]
    parts: list[Part] = []
    for number, (start, end) in enumerate(outside):
        left, operator = start, ""
        if number == 0 and (joins or end < len(text)):
            opening = OPENING.match(text, 0, end)
            left = opening.end() if opening and content(text[opening.end() : end]) else start
        for cue in [*_between(joins, start, end), None]:
            for span in _items(text, left, cue.start if cue else end, cue is not None):
                parts.append(Part(operator if parts else "", *span, text[slice(*span)]))
                operator = cue.operator if cue else ""
            if cue is not None:
                operator, left = cue.operator, cue.end
    return parts


def after_filler(text: str, start: int, end: int) -> int:
    """Where what is excluded begins, behind words that say nothing about it.

    >>> text = "any information about his family"
    >>> text[after_filler(text, 0, len(text)) :]
    'his family'
    """
    filler = _FILLER.match(text, start, end)
    return filler.end() if filler and text[filler.end() : end].strip() else start


def trim(text: str, start: int, end: int) -> Span:
    """A stretch without the signs and the joining words at its edges; quotation marks stay in pairs."""
    while True:
        piece = text[start:end]
        inner = piece.strip(_EDGES)
        left = start + len(piece) - len(piece.lstrip(_EDGES))
        right = left + len(inner)
        if inner.count("(") > inner.count(")") and text[right : right + 1] == ")" and right < end:
            right += 1  # "Mama (film)" keeps its bracket
        lead = _EMPTY_LEAD.match(text, left, right)
        trail = _TRAIL.search(text, max(left, right - 60), right)
        new = (lead.end() if lead else left, trail.start() if trail else right)
        if new == (start, end) or new[0] >= new[1]:
            return (new[0], max(new))
        start, end = new
