"""Search-box syntax, read exactly and without a model: `-word`, `NOT x`, `"a" OR "b"` and the like.

| typed | read as |
| --- | --- |
| `-word`  `-"a phrase"`  `!word`  `-(b OR c)` | the word, the phrase, or each of the group is excluded |
| `NOT x`  `AND NOT x`  `--no x, y`  `w/o x`  `minus x` | what follows is excluded, up to a comma or the next operator |
| `a OR b`  `a \\| b`  `a AND b`  `a && b` | alternatives, and conditions that both hold |

NOT, AND and OR count in capitals, and not in a sentence ("Why do birds NOT fly?"). A sign counts before a word and not
within one ("e-mail", "Wham!"). What is not supported is an error of one line.
"""

import re
from functools import cache
from typing import NamedTuple

from ..core.errors import BoolBertError
from .cues import CueSpan
from .exclusion import content
from .lexicon import cue_table
from .parts import Part, Reading
from .word_lists import WORDS, pattern

_QUOTED = r'(?<!\w)"[^"]*"|“[^”]*”'
_TOKEN = re.compile(
    rf"(?P<quoted>{_QUOTED})|(?P<open>\()|(?P<close>\))|(?P<comma>[,;](?!\d))"
    # A sign, at the beginning of a word of three letters or more, or of capitals: "ls -la" has a flag.
    r"|(?P<sign>(?<![^\s(])(?<!\w\()[-!](?=[\"“(]|[^\W\d_]{3}|[A-Z]{2}\b|\w-[^\W\d_]{3}))"
    r"|(?P<no>(?<!\S)--no(?=\s))"
    r"|(?P<without>(?<!\S)[wW]/[oO](?=\s)|(?<=\S\s)(?i:minus)(?=\s))"
    r"|(?P<not>\b(?:AND\s+)?NOT\b)|(?P<and>\bAND\b|(?<=\s)&&(?=\s))|(?P<or>\bOR\b|(?<=[\s\")”])\|{1,2}(?=[\s\"(“]))"
)
_UNSUPPORTED = (
    (pattern(r"(?<!\S)-?(?:site|filetype|inurl|intitle|allintitle|intext|related|cache):(?=\S)"), "{}"),
    (re.compile(r"\b(?:NEAR|AROUND|ADJ|WITHIN)(?:/\d+|\(\d+\))"), "the distance {}"),
    (re.compile(r'"~\d+'), "the distance {}"),
    (re.compile(r"(?<!\S)[a-z]{3,}\*(?!\S)"), "the open ending {}"),
)
_SENTENCE = pattern(r"\s*{opens sentence}\b|.*\?\s*\Z", re.DOTALL)
# "that are NOT westerns", "you must NOT enter": emphasis, which the ordinary reading understands.
_VERB_BEFORE = pattern(r"\b{before emphasis}\s+\Z")
_GATE = pattern(r"\s+(?:gates?|operators?|operations?|functions?|circuits?|logic)\b")
# "C minus", "5 minus 3", "minus sign"
_NUMBER_BEFORE = re.compile(
    r"(?:\d|\b[A-Fa-f]|\b(?:is|one|two|three|four|five|six|seven|eight|nine|ten|plus|a|the|of))\s+\Z"
)
_NUMBER_AFTER = re.compile(r"\s+(?:[\d$€£%]|(?:one|two|three|four|signs?|infinity|degrees?|points?|the\s+Bear)\b)")
_LIST = pattern(r"\s*,\s*(?:(?:and|or)\s+)?|\s+(?:and|or)\s+")
LONGEST = 1000  # characters; a longer text was not typed into a search box
_EDGES = " \t\r\n,;:.?!"


class _Token(NamedTuple):
    kind: str
    start: int
    end: int


def read_search_box(text: str) -> Reading | None:
    """The parts of a query with search-box syntax, None where there is none.

    >>> reading = read_search_box('"solar power" | wind -subsidies NOT nuclear energy')
    >>> [(part.operator, part.text) for part in reading.parts]
    [('', 'solar power'), ('or', 'wind'), ('not', 'subsidies'), ('not', 'nuclear energy')]
    >>> read_search_box("e-mail from 2010-2015, non-fiction, Wham!")
    """
    if len(text) > LONGEST:
        return None
    for unknown, name in _UNSUPPORTED:
        if found := unknown.search(text):
            raise BoolBertError(f"the search does not know {name.format(repr(found.group()))}; leave it out")
    tokens = _tokens(text)
    if not any(token.kind in _OPERATORS for token in tokens):
        return None
    _check_balance(text, tokens)
    return _Reader(text, tokens).read()


def is_too_long(text: str) -> bool:
    """Whether a text that is too long for a search box excludes something in its syntax.

    >>> is_too_long("cats " + "-dogs " * 500), is_too_long("cats -dogs")
    (True, False)
    """
    return len(text) > LONGEST and any(_OPERATORS.get(token.kind) == "not" for token in _tokens(text[:LONGEST]))


_OPERATORS = {"sign": "not", "no": "not", "without": "not", "not": "not", "and": "and", "or": "or"}


def _tokens(text: str) -> list[_Token]:
    is_prose = _SENTENCE.match(text) is not None or _is_caps_lock(text)
    fixed = [match.span() for match in _fixed().finditer(text)]
    found = []
    for match in _TOKEN.finditer(text):
        kind, (start, end) = match.lastgroup or "", match.span()
        if kind in ("without", "not", "and", "or") and match.group()[0] not in "&|":
            in_fixed = any(left <= start and end <= right for left, right in fixed)  # "dead OR alive"
            if is_prose or in_fixed or not _is_operator(text, kind, start, end):
                continue
        elif kind == "sign" and text[end : end + 20].lower().split(maxsplit=1)[0] in WORDS["no words"]:
            continue
        found.append(_Token(kind, start, end))
    return found


def _is_operator(text: str, kind: str, start: int, end: int) -> bool:
    """Whether a word that looks like an operator is one, by the words beside it."""
    before, after = text[max(0, start - 20) : start], text[end : end + 20]
    if _GATE.match(after) or not after.strip(_EDGES):
        return False
    if text[start:end].lower() == "minus":
        return not (_NUMBER_BEFORE.search(before) or _NUMBER_AFTER.match(after))
    if kind == "not":
        return not _VERB_BEFORE.search(before)
    return kind == "without" or not before.rstrip().endswith(",")  # "Portland, OR hotels"


def _is_caps_lock(text: str) -> bool:
    """Whether everything is in capitals, and too much for names.

    >>> _is_caps_lock("THE CAT AND THE HAT"), _is_caps_lock("NASA OR ESA")
    (True, False)
    """
    words = re.findall(r"[^\W\d_]+", re.sub(r"\b(?:AND|OR|NOT)\b", " ", text))
    return len(words) > 3 and all(word.isupper() for word in words)


@cache
def _fixed() -> re.Pattern[str]:
    phrases = "|".join(map(re.escape, cue_table().phrases("fixed")))
    return re.compile(rf"(?<!\w)(?:{phrases})(?!\w)", re.IGNORECASE)


def _check_balance(text: str, tokens: list[_Token]) -> None:
    edges = [0, *(edge for token in tokens for edge in token[1:]), len(text)]
    outside = (text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
    if any(re.search(r'(?<!\d)"|[“”]', between) for between in outside):
        raise BoolBertError(f"a quotation mark in the query {text!r} has no partner; close it or leave it out")
    depth = 0
    for token in tokens:
        depth += (token.kind == "open") - (token.kind == "close")
        if depth < 0:
            break
    if depth:
        raise BoolBertError(f"a parenthesis in the query {text!r} has no partner; close it or leave it out")


class _Reader:
    """Goes through the tokens once and collects the parts."""

    def __init__(self, text: str, tokens: list[_Token]):
        self.text, self.tokens = text, tokens
        self.parts: list[Part] = []
        self.cues: list[CueSpan] = []
        self.operator = ""  # what joins the next wanted part

    def read(self) -> Reading:
        start, number = 0, 0
        while number < len(self.tokens):
            token = self.tokens[number]
            if token.kind in ("quoted", "comma") or (token.kind in ("open", "close") and not self._is_group(number)):
                number += 1  # part of the words round it
                continue
            self._want(start, token.start)
            operator = _OPERATORS.get(token.kind)
            if operator:
                span = (token.start, token.end)
                self.cues.append(CueSpan(*span, operator, self.text[slice(*span)], excludes=operator == "not"))
            if operator == "not":
                if self.operator == "or":
                    raise BoolBertError("the search does not know OR NOT; ask for each of the two by itself")
                start, number = self._exclude(number)
                continue
            self.operator = operator or self.operator
            start, number = token.end, number + 1
        self._want(start, len(self.text))
        if not any(content(part.text) for part in self.parts if part.operator != "not"):
            only = "what to leave out" if any(cue.operator == "not" for cue in self.cues) else "AND and OR"
            raise BoolBertError(f"the query {self.text!r} only says {only}; say what to look for as well")
        return Reading(self.text, tuple(self.cues), tuple(sorted(self.parts, key=lambda part: part.start)))

    def _is_group(self, number: int) -> bool:
        """Whether a parenthesis holds an operator; else it belongs to the words, as in "Birdman (film)"."""
        token, depth = self.tokens[number], 0
        around = self.tokens[number:] if token.kind == "open" else self.tokens[number::-1]
        for other in around:
            depth += (other.kind == "open") - (other.kind == "close")
            if other.kind in _OPERATORS:
                return True
            if depth == 0:
                return False
        return False

    def _want(self, start: int, end: int) -> None:
        for left, right in self._terms(start, end):
            joined = self.operator if any(part.operator != "not" for part in self.parts) else ""
            self.parts.append(Part(joined, left, right, self.text[left:right]))
            self.operator = ""

    def _exclude(self, number: int) -> tuple[int, int]:
        """Read what the operator at `number` excludes: where the rest begins, and its first token."""
        sign, left = self.tokens[number].kind, self.tokens[number].end
        following = self.tokens[number + 1] if number + 1 < len(self.tokens) else None
        if following and following.kind == "open" and not self.text[left : following.start].strip():
            return self._exclude_group(number + 1)
        if sign == "sign":
            if following and following.kind == "quoted" and following.start == left:
                end, number = following.end, number + 1
            else:
                word = re.compile(r"\w+(?:['’./-]\w+)*").match(self.text, left)
                end = word.end() if word else left
        else:
            end = len(self.text)
            while number + 1 < len(self.tokens):
                token = self.tokens[number + 1]
                if token.kind in _OPERATORS or token.kind == "close" or (token.kind == "comma" and sign != "no"):
                    end = token.start
                    break
                number += 1
        self._excluded(left, end)
        return end, number + 1

    def _exclude_group(self, number: int) -> tuple[int, int]:
        left = self.tokens[number].end
        for place in range(number + 1, len(self.tokens)):
            token = self.tokens[place]
            if token.kind in ("or", "close"):
                self._excluded(left, token.start)
                left = token.end
                if token.kind == "close":
                    return left, place + 1
            elif token.kind == "and":
                raise BoolBertError("the search does not know NOT (a AND b); exclude each by itself")
            elif token.kind in _OPERATORS or token.kind == "open":
                raise BoolBertError("the search knows neither NOT nor a group within NOT (...); exclude each by itself")
        raise AssertionError("a group without an end has been refused before")

    def _excluded(self, start: int, end: int) -> None:
        terms = list(self._terms(start, end, listed=True))
        if not terms:
            raise BoolBertError(f"nothing follows {self.cues[-1].text!r} in the query {self.text!r}")
        self.parts += [Part("not", left, right, self.text[left:right]) for left, right in terms]

    def _terms(self, start: int, end: int, listed: bool = False) -> list[tuple[int, int]]:
        """The stretch without signs at its edges; a phrase without its quotation marks; a list, cut at its commas."""
        cuts = [match.span() for match in _LIST.finditer(self.text, start, end)] if listed else []
        cuts = [cut for cut in cuts if not self._is_one_term(*cut)]
        edges = [start, *(edge for cut in cuts for edge in cut), end]
        terms = []
        for left, right in zip(edges[::2], edges[1::2], strict=True):
            right = left + len(self.text[left:right].rstrip(_EDGES))
            left = right - len(self.text[left:right].lstrip(_EDGES))
            if right - left > 2 and re.fullmatch(_QUOTED, self.text[left:right]):
                left, right = left + 1, right - 1
            if left < right and re.search(r"\w", self.text[left:right]):
                terms.append((left, right))
        return terms

    def _is_one_term(self, start: int, end: int) -> bool:
        """Whether a comma, "and" or "or" stands in quotation marks or in an expression such as "salt and pepper"."""
        quoted = ((token.start, token.end) for token in self.tokens if token.kind == "quoted")
        fixed = (match.span() for match in _fixed().finditer(self.text))
        return any(left < start and end < right for left, right in (*quoted, *fixed))
