"""Search-box syntax, read exactly and without a model: `-word`, `NOT x`, `"a" OR "b"` and the like.

| typed | read as |
| --- | --- |
| `-word`  `-"a phrase"`  `!word`  `-(b OR c)` | the word, the phrase, or each of the group is excluded |
| `NOT x`  `AND NOT x`  `--no x, y`  `w/o x`  `minus x` | what follows is excluded, up to a comma or the next operator |
| `a OR b`  `a \\| b`  `a AND b`  `a && b` | alternatives, and conditions that both hold |

NOT, AND and OR count in capitals, and not in a sentence ("Why do birds NOT fly?"). A sign counts before a word and not
within one ("e-mail", "Wham!"); a dash before a word is a minus. A double negation asks for the thing: `-sugar-free`
wants sugar. What is not supported is an error of one line.
"""

import re
from functools import cache
from typing import NamedTuple

from ..core.errors import BoolBertError
from .tags import ALTERNATIVE, CUE, EXCLUDED, JOIN, WANTED, Mark
from .word_lists import FIXED, WORDS, pattern

Span = tuple[int, int]

_MINUS = "−－﹣‐‑-"  # as it is typed in any alphabet; the last one stands there as itself
_QUOTED = r'(?<!\w)"[^"]*"|“[^”]*”'
_TOKEN = re.compile(
    rf"(?P<quoted>{_QUOTED})|(?P<open>\()|(?P<close>\))|(?P<comma>[,;](?!\d))"
    rf"|(?P<sign>(?<![^\s(])(?<!\w\()[!–—{_MINUS}](?=[\"“(]|\w))"
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
# What a sign is read before: a group or phrase, a word of two letters or more ("tv", "戦"), or one with a digit ("U2",
# "5g"), a hyphen ("e-book"), an apostrophe ("l'eau") or another sign ("R&D", "C++"). "-5", "-20C" and the flag "-v" are
# none.
_WORD = re.compile(
    r"[\"“(]|[^\W\d_]{2}|[^\u0000-\u024f]|[^\W\d_](?:\d|['’&-]\w|[+#])|\d+(?!(?:[cCfF]|dB)\b)[^\W\d_]|\d\w*-[^\W\d_]"
)
_FLAG = re.compile(r"[a-z]{1,2}(?![\w'’-])")
_COMMAND_LINE = pattern(r"(?:\A\s*{command}\s|.*\b(?:command|flag|option|switch|linux|unix|bash|shell)s?\b)", re.DOTALL)
# A word behind a minus, also with other signs before it (".NET", "@me"), but no arrow ("->x").
_MINUS_BEFORE_WORD = re.compile(rf"(?<!\S)[{_MINUS}](?:[^\W\d_][\w-]*|[^a-zA-Z0-9\s>\"“({_MINUS}]+[^\W\d_]\S*)")
# The dash that closes what another one opens: "Rome —the city— in films".
_CLOSING_DASH = re.compile(r"\w[–—](?!\S)")
# What an excluded text denies itself: "without nuts", "non-alcoholic", "sugar-free". "No Country for Old Men" is a name
_DENIES = re.compile(
    r"(?:without|w/o|with\s+no|lacking|free\s+(?:of|from)|no|non(?=[\s-]))[\s-]+(?:(?:an?|any|the)\s+)?(?P<before>\w.*)"
    r"|(?P<behind>\w.*?)[\s-]free",
    re.DOTALL,
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
_EXCLUDED_WORD = re.compile(r"[^\u0000-\u024f\s][^\s,;.?!()\"“”|]*|\w+(?:[+#]*['’./&+-]\w+)*[+#]*")
_LIST = pattern(r"\s*,\s*(?:(?:and|or)\s+)?|\s+(?:and|or)\s+")
LONGEST_TYPED = 1000  # characters of a query with search-box syntax; longer texts are not read as such
_EDGES = " \t\r\n,;:.?!"
_LETTERS = re.compile(r"\w+")


class _Token(NamedTuple):
    kind: str
    start: int
    end: int


def has_words(text: str) -> bool:
    """Whether a query has a word to look for besides those that only join or exclude.

    >>> [has_words(query) for query in ("islands", "not", "- ?!", "it or not")]
    [True, False, False, True]
    """
    return any(word not in WORDS["operators"] for word in _LETTERS.findall(text.lower()))


def read_search_box(text: str) -> list[Mark] | None:
    """The marks of a query with search-box syntax, None where there is none.

    >>> text = '"solar power" | wind -subsidies NOT nuclear energy'
    >>> [(mark.kind, text[mark.start : mark.end]) for mark in read_search_box(text) if mark.kind not in "cj"]
    [('a', 'solar power'), ('a', 'wind'), ('x', 'subsidies'), ('x', 'nuclear energy')]
    >>> read_search_box("e-mail from 2010-2015, non-fiction, Wham!")
    """
    if len(text) > LONGEST_TYPED:
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
    return len(text) > LONGEST_TYPED and any(
        _OPERATORS.get(token.kind) == "not" for token in _tokens(text[:LONGEST_TYPED])
    )


def notes_on_signs(text: str) -> tuple[str, ...]:
    """A line for each sign that looks like an exclusion and is read as a word of the query.

    >>> notes_on_signs("ls -la")
    ('“-la” is read as a word of the query; to leave it out, write -"la"',)
    """
    words = [(sign, _unquoted(sign[1:])) for sign in unread_signs(text)]
    return tuple(f'“{sign}” is read as a word of the query; to leave it out, write -"{word}"' for sign, word in words)


def _unquoted(word: str) -> str:
    return word[1:-1] if len(word) > 2 and word[0] in "'‘’" and word[-1] in "'’" else word


def unread_signs(text: str) -> list[str]:
    """What begins with a minus like an exclusion and is read as a word of the query.

    >>> unread_signs("ls -la"), unread_signs("jaguar -car at -5 degrees"), unread_signs("courses -.NET, -'C++'")
    (['-la'], [], ['-.NET', "-'C++'"])
    """
    read = {token.start for token in _tokens(text[:LONGEST_TYPED]) if token.kind == "sign"}
    signs = _MINUS_BEFORE_WORD.finditer(text[:LONGEST_TYPED])
    return [match.group().rstrip(_EDGES) for match in signs if match.start() not in read]


def without_double_negation(text: str) -> str:
    """A query in which what it denies twice is asked for; every other text as it is.

    >>> without_double_negation("bars -sugar-free -nuts"), without_double_negation("bars NOT without nuts or milk")
    ('bars -nuts AND sugar', 'bars AND nuts OR milk')
    >>> without_double_negation("bars without nuts")
    'bars without nuts'
    """
    tokens = _tokens(text) if len(text) <= LONGEST_TYPED else []
    if not any(_OPERATORS.get(token.kind) == "not" for token in tokens):
        return text
    reader = _Reader(text, tokens)
    try:
        _check_balance(text, tokens)
        reader.read()
    except BoolBertError:  # which `read_search_box` tells
        return text
    if not reader.turned:
        return text
    pieces: list[str] = []
    asked: list[str] = []
    end = 0
    for turned in reader.turned:
        kept = f"-({' OR '.join(turned.kept)})" if turned.kept else ""
        pieces += [text[end : turned.start].strip(_EDGES), kept]
        asked += turned.asked
        end = turned.end
    pieces.append(text[end:].strip(_EDGES))
    return " AND ".join(filter(None, [" ".join(filter(None, pieces)), *asked]))


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
        elif kind == "sign" and not _is_minus(text, start, is_prose):
            continue
        found.append(_Token(kind, start, end))
    return found


def _is_minus(text: str, start: int, is_prose: bool) -> bool:
    """Whether the sign at `start`, which stands before a word, excludes that word."""
    sign, word = text[start], text[start + 1 : start + 21].lower().split(maxsplit=1)[0]
    if not _WORD.match(text, start + 1) or word in WORDS["no words"]:
        return False
    if sign in "–—":  # else "Rome –the eternal city", "Rome —so they say— is old"
        return not (is_prose or word in WORDS["empty"] or _CLOSING_DASH.search(text, start))
    return not (_FLAG.match(text, start + 1) and _COMMAND_LINE.match(text))


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
    phrases = "|".join(map(re.escape, FIXED))
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


def _denied(text: str) -> Span | None:
    """What an excluded text denies itself.

    >>> [_denied(text) for text in ("sugar-free", "no nuts", "duty-free", "No Country for Old Men")]
    [(0, 5), (3, 7), None, None]
    """
    found = _DENIES.fullmatch(text)
    if found is None or (found["behind"] and _fixed().fullmatch(text)):
        return None
    return found.span(found.lastgroup or 0)


def _content(text: str) -> bool:
    """Whether a text names something to look for.

    >>> _content("tell me about all of the"), _content("tell me about the moon")
    (False, True)
    """
    return any(word not in WORDS["empty"] for word in _LETTERS.findall(text.lower()))


class _Turned(NamedTuple):
    """A double negation `text[start:end]`: the terms that stay excluded, and those that it asks for."""

    start: int
    end: int
    kept: list[str]
    asked: list[str]


class _Reader:
    """Goes through the tokens once and collects the marks."""

    def __init__(self, text: str, tokens: list[_Token]):
        self.text, self.tokens = text, tokens
        self.marks: list[Mark] = []
        self.cues: list[Mark] = []
        self.group = 0  # of the last alternatives
        self.operator = ""  # what joins the next wanted part
        self.turned: list[_Turned] = []

    def read(self) -> list[Mark]:
        start, number = 0, 0
        while number < len(self.tokens):
            token = self.tokens[number]
            if token.kind in ("quoted", "comma") or (token.kind in ("open", "close") and not self._is_group(number)):
                number += 1  # part of the words round it
                continue
            self._want(start, token.start)
            operator = _OPERATORS.get(token.kind)
            if operator:
                self.cues.append(Mark(CUE if operator == "not" else JOIN, token.start, token.end))
            if operator == "not":
                if self.operator == "or":
                    raise BoolBertError("the search does not know OR NOT; ask for each of the two by itself")
                start, number = self._exclude(number)
                continue
            self.operator = operator or self.operator
            start, number = token.end, number + 1
        self._want(start, len(self.text))
        if not any(_content(self.text[mark.start : mark.end]) for mark in self.marks):
            raise BoolBertError(f"the query {self.text!r} only says AND and OR; say what to look for as well")
        return sorted([*self.marks, *self.cues], key=lambda mark: mark.start)

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
            self._add(self.operator, (left, right))
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
                word = _EXCLUDED_WORD.match(self.text, left)
                end = word.end() if word else left
        else:
            end = len(self.text)
            while number + 1 < len(self.tokens):
                token = self.tokens[number + 1]
                if token.kind in _OPERATORS or token.kind == "close" or (token.kind == "comma" and sign != "no"):
                    end = token.start
                    break
                number += 1
        self._exclude_all([(left, end)], end)
        return end, number + 1

    def _exclude_group(self, number: int) -> tuple[int, int]:
        left = self.tokens[number].end
        stretches = []
        for place in range(number + 1, len(self.tokens)):
            token = self.tokens[place]
            if token.kind in ("or", "close"):
                stretches.append((left, token.start))
                left = token.end
                if token.kind == "close":
                    self._exclude_all(stretches, left)
                    return left, place + 1
            elif token.kind == "and":
                raise BoolBertError("the search does not know NOT (a AND b); exclude each by itself")
            elif token.kind in _OPERATORS or token.kind == "open":
                raise BoolBertError("the search knows neither NOT nor a group within NOT (...); exclude each by itself")
        raise AssertionError("a group without an end has been refused before")

    def _exclude_all(self, stretches: list[Span], end: int) -> None:
        """Exclude what stands in the stretches behind the last cue, of which the last ends at `end`."""
        kept, asked = [], []
        for stretch in stretches:
            terms = self._terms(*stretch, listed=True)
            if not terms:
                sign = self.text[self.cues[-1].start : self.cues[-1].end]
                raise BoolBertError(f"nothing follows {sign!r} in the query {self.text!r}")
            denied = _denied(self.text[slice(*terms[0])])
            if denied is None:
                kept += [self._add("not", term) for term in terms]
                continue
            terms[0] = (terms[0][0] + denied[0], terms[0][0] + denied[1])
            asked.append(" OR ".join(self._add("or" if n else "and", term) for n, term in enumerate(terms)))
        if asked:
            self.turned.append(_Turned(self.cues[-1].start, end, kept, asked))
            if not kept:
                self.cues[-1] = self.cues[-1]._replace(kind=JOIN)

    def _add(self, operator: str, span: Span) -> str:
        """Mark a stretch that an operator joins to those before it; its text."""
        wanted = [number for number, mark in enumerate(self.marks) if mark.kind != EXCLUDED]
        if operator == "not":
            self.marks.append(Mark(EXCLUDED, *span))
        elif operator == "or" and wanted:
            last = self.marks[wanted[-1]]
            if last.kind == WANTED:
                self.group += 1
                self.marks[wanted[-1]] = last._replace(kind=ALTERNATIVE, group=self.group)
            self.marks.append(Mark(ALTERNATIVE, *span, self.group))
        else:
            self.marks.append(Mark(WANTED, *span))
        return self.text[slice(*span)]

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
            if left < right and _LETTERS.search(self.text, left, right):
                terms.append((left, right))
        return terms

    def _is_one_term(self, start: int, end: int) -> bool:
        """Whether a comma, "and" or "or" stands in quotation marks or in an expression such as "salt and pepper"."""
        quoted = ((token.start, token.end) for token in self.tokens if token.kind == "quoted")
        fixed = (match.span() for match in _fixed().finditer(self.text))
        return any(left < start and end < right for left, right in (*quoted, *fixed))
