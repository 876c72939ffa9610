"""Boolean cues in a text: where they stand and which operator they carry."""

import re
from functools import cache
from typing import NamedTuple

from ...boolean.word_lists import pattern
from .lexicon import ENGLISH, Cue, cue_table

APOSTROPHES = "'’‘ʼ`´′＇"
HYPHENS = "-‐‑–"
_HYPHENS = re.escape(HYPHENS)  # for a character class


class CueSpan(NamedTuple):
    """A span `text[start:end]` that carries an operator; weak where only some sentences mean it.

    `excludes` is set by `read_parts`: a NOT that takes something from what is wanted, not one that negates a verb.
    `rule` and `kind` are those of its line in the table.
    """

    start: int
    end: int
    operator: str
    text: str
    weak: bool = False
    excludes: bool = False
    rule: str = "join"
    kind: str | None = None


def _pattern(phrase: str) -> str:
    """A phrase as a regular expression: any white space, any apostrophe."""
    escaped = re.escape(phrase).replace(r"\ ", r"\s+")
    return escaped.replace("'", f"[{re.escape(APOSTROPHES)}]")


_TO_PLAIN = str.maketrans(dict.fromkeys(APOSTROPHES, "'"))


def normal(text: str) -> str:
    """A matched text as it is written in the lexicon."""
    return " ".join(text.lower().split()).translate(_TO_PLAIN)


# No letter or hyphen at either side: "Android", "black-and-white" and "not-for-profit" hold no cue.
_BEFORE, _AFTER = rf"(?<![\w{_HYPHENS}])", rf"(?!\w|[{_HYPHENS}]\w)"
NON = Cue("non-", "not", "set", "prefix")  # it stands before a word, not beside one
# What depends on the words that follow.
_CONTEXT: dict[str, str] = {
    "either": r"(?=\s.{0,200}?\bor\b)",  # not the one of "and not B either"
    "over": r"(?!\s+\d)",
}
_WEAK_AND = r"(?!\s+(?:also|both|not|neither|never|no)\b)"
_BETWEEN = r"between(?:\s+(?!and\b)\S+){1,6}\s+and"
_NUMBER = r"(?P<number>no\.?\s*(?=\d+\b))"


@cache
def _matcher(language: str) -> re.Pattern[str]:
    """All phrases, the longest first; grouped by their first letter, which more than halves the search time."""
    groups: dict[str, list[str]] = {}
    own_kinds, suffixes = [], []  # "non-fiction" excludes nothing from a query; "-free" stands behind a word
    for phrase, cue in sorted(cue_table(language).cues.items(), key=lambda item: len(item[0]), reverse=True):
        if phrase.startswith("non-"):
            own_kinds.append(re.escape(phrase.removeprefix("non-")))
            continue
        if phrase.startswith("-"):
            suffixes.append(re.escape(phrase.removeprefix("-")))
            continue
        context = _WEAK_AND if cue.weak and cue.operator == "and" else _CONTEXT.get(phrase, "")
        groups.setdefault(phrase[0], []).append(_pattern(phrase[1:]) + context)
    phrases = "|".join(f"{re.escape(letter)}(?:{'|'.join(rest)})" for letter, rest in groups.items())
    non = rf"(?P<non>non(?:[{_HYPHENS}]|(?=\s)))(?!\s*(?:{'|'.join(own_kinds)})\b)(?=\s*\w)"
    suffix = rf"[^\W\d_]\w{{1,30}}[{_HYPHENS}](?P<suffix>{'|'.join(suffixes) or '(?!)'})"
    return re.compile(
        rf"{_BEFORE}(?:{_BETWEEN}{_AFTER}|{_NUMBER}|{non}|(?:{phrases}){_AFTER}|{suffix}{_AFTER})",
        re.IGNORECASE | re.DOTALL,
    )


# A name in double quotes; a text that is quoted as a whole is no name.
_QUOTED = re.compile(r'(?<![^\s(])"(?=\S)[^"]{1,100}(?<=\S)"|“[^”]{1,100}”')
# "In addition to Y, what other X": behind a "beyond" cue; "what other X in addition to Y": before it.
_OTHERS_AFTER = pattern(
    r"[^?!]{1,200}?[,，]\s*(?:\w+\s+){0,3}?(?:what|which|who|whom|where|how|can|could|please)\b"
    r"[^.?!]{0,80}?\b(?:other|else|another)\b"
)
_OTHERS_BEFORE = pattern(r"\b(?:what|which|who|where)\s+(?:\w+\s+)?(?:other|else)\b[^.?!,]{0,80}\Z")
# "In addition to Y, X stars in which films?": a question that opens with a "beyond" cue asks for more than Y.
_ASKED_AFTER = pattern(r"[^?!]{1,200}?[,，][^?!]{1,300}?\b(?:what|which|who|whom|where|how)\b[^?!]{0,300}[?？]")
# "Hotels outside Rome" or, where nothing is in capitals, "hotels outside rome".
_PLURAL_BEFORE = pattern(r"\b(?:\w+[^\Wsu]s|people|men|women|children)\s+\Z")
_PLACE_AFTER = re.compile(
    r"\s+(?:the\s+)?[A-Z]\w+|\s+(?!(?:tonight|today|there|here|only)\b)[a-z]{4,}(?=[,.;?!]|\s*\Z)"
)
_OPENS = re.compile(r"(?:^|[.?!])\s*\Z")
# The words between an "and" and the negation that it only introduces: "and (that are) not".
_LINK = pattern(r"\s+(?:(?:that|which|who)\s+)?(?:(?:are|is|were|was|do|does|did|has|have|can|could)\s+)?")


def find_cues(text: str, language: str = ENGLISH) -> list[CueSpan]:
    """The cues of a text from left to right, the longest where several begin together.

    >>> [(cue.text, cue.operator) for cue in find_cues("Birds of Peru as well as Chile, but not Orlando's")]
    [('as well as', 'and'), ('but not', 'not')]
    >>> find_cues("Notting Hill on an Android phone")
    []
    """
    names = quoted_names(text)
    table = cue_table(language).cues
    spans: list[CueSpan] = []
    for match in _matcher(language).finditer(text):
        start, end = match.span()
        if match["number"]:
            continue
        phrase = f"-{match['suffix']}" if match["suffix"] else match.group()
        cue = NON if match["non"] else table.get(normal(phrase))
        if cue is None or cue.operator is None or any(left < start < right for left, right in names):
            continue
        operator, kind = cue.operator, cue.kind
        if cue.rule == "beyond":
            if _asks_for_others(text, start, end):
                operator = "not"
            elif operator == "not":
                continue
            else:
                kind = None
        weak = cue.weak or (cue.rule == "place" and not _is_place(text, start, end))
        if operator == "not" and not (weak or cue is NON) and spans and _introduces(spans[-1], text, start):
            spans.pop()
        spans.append(CueSpan(start, end, operator, text[start:end], weak, rule=cue.rule, kind=kind))
    return spans


def quoted_names(text: str) -> list[tuple[int, int]]:
    """Where names stand in double quotes; a text that is quoted as a whole is none.

    >>> quoted_names('films like "Not One Less"'), quoted_names('"no nuts"')
    ([(11, 25)], [])
    """
    return [match.span() for match in _QUOTED.finditer(text) if match.group() != text.strip()]


def _is_place(text: str, start: int, end: int) -> bool:
    """Whether "outside" stands before a place that others are set against: "countries outside Africa".

    >>> [_is_place(text, 7, 14) for text in ("hotels outside Rome", "lights outside the house", "a town outside Rome")]
    [True, False, False]
    """
    return bool(_PLURAL_BEFORE.search(text, max(0, start - 40), start) and _PLACE_AFTER.match(text, end))


def _introduces(cue: CueSpan, text: str, start: int) -> bool:
    """Whether an "and" belongs to the negation at `start`: "A and are not B" asks for the same as "A but not B"."""
    return normal(cue.text) == "and" and _LINK.fullmatch(text, cue.end, start) is not None


def _asks_for_others(text: str, start: int, end: int) -> bool:
    """Whether what a "beyond" cue names is known already, and something else is asked for."""
    if _OTHERS_BEFORE.search(text, max(0, start - 120), start) or _OTHERS_AFTER.match(text, end):
        return True
    return bool(_OPENS.search(text, max(0, start - 10), start) and _ASKED_AFTER.match(text, end))


def operators_of(text: str, weak: bool = False, language: str = ENGLISH) -> set[str]:
    """The operators whose cues the text holds; weak cues count when asked for.

    >>> sorted(operators_of("Trees of Cuba that are also in Haiti but not Jamaica"))
    ['and', 'not']
    >>> operators_of("articles favoring renewables over fossil fuels"), operators_of("renewables over coal", weak=True)
    (set(), {'not'})
    """
    return {cue.operator for cue in find_cues(text, language) if weak or not cue.weak}
