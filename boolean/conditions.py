"""What a query wants, group by group, by rules: AND where no word says so. What it excludes is the reader's to find.

"Landlocked African monarchies that have hosted the Olympics" asks for three things, and no AND stands between them.
`read_parts` cuts a query at its operators' cues; here what it leaves whole is cut further, at relative clauses, at
"with", "in" and participles behind a noun that says something already, and behind an adjective made of a verb.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .decompose import parsed_parts
from .kinds import is_question, kind_of_exclusion
from .lacking import read_lacking
from .parts import Part, Span, trim
from .word_lists import pattern

_RELATIVE = pattern(r"[\s,]+(?=(?:that|which|who)\s+(?!{no verb}\b)\w)")
# Behind a plural noun: what begins here says something else of it.
_AFTER_NOUN = pattern(
    r"(?<=[^\Wsu]s)\s+(?=(?:with|in|bordering|sharing|using|having|featuring|starring|containing|costing|"
    r"(?:set|based|located|made|shot|filmed|born|published|released|written|directed|built|founded|designed)\s+"
    r"(?:in|at|on|by|of|from|for)|of\s+(?:more|fewer|less|over|under|at\s+(?:least|most)))\s)"
)
# "left-driving", "officially French-speaking", "landlocked" before another word that says which.
_ADJECTIVE = pattern(r"(?:\w+ly\s+)?(?:\w+-(?:\w+ing|\w+ed|free)|\w{3,}ed)\s+(?!{small}\b)(?=\w+(?:\s|-)\w)")
# ", have" within the enumeration of a relative clause: "that are islands, have a monarch and ..."
_VERB = re.compile(r",\s+(?=(?:are|is|were|was|have|has|had|do|does|did|can|lie|lies|use|uses|belong|belongs)\s)")
_PRONOUN = pattern(r"(?:that|which|who)\s+(?:(?:both|all|also)\s+)?")
_EACH = pattern(r"\s*(?:(?:that|which|who)\s+)?(?:both|all|either|any\s+of|not\s+only|not\s+just)\b")
_STEM = pattern(
    r"(?:\b(?:in|on|at|of|by|from|with|about|for|to|under|near|former)"
    r"|\b(?:that|which|who)\s+(?!are\b|is\b|were\b|was\b)\w+)\Z"
)
_QUESTION = pattern(r"\s*{opens question}\b")
# Asks for one thing, or about it: "Who won the match and kept the title?" wants one answer, not a set.
_NO_NOUN = r"(?:was|has|does|his|its|who|that|which|whose|in|of|on|from|by|with|at)\b"
_PLURAL = rf"(?:(?!{_NO_NOUN})\w+\s+){{0,3}}?(?!{_NO_NOUN})\w+[^\Wsu]s\b"
_ASKS_FOR_ONE = pattern(
    r"\s*(?:{asks for one}\b"
    rf"|(?:what|who)\s+(?!are\b|were\b|{_PLURAL})|(?:which|what)\s+(?!{_PLURAL})(?!are\b|were\b|of\b)"
    r"|(?:in|on|at|by|for|from|to|of|with)\s+(?:what|which|whom)\b"
    rf"|(?:identify|determine|find|name|explain|describe|tell\s+me)\s+(?:the|an?)\s+(?!{_PLURAL}))"
)
_EMPTY_LEAD = re.compile(r"\A\s*(?:(?:which|what|all|any|the|some|those|find|list|show|me|of|a)\s+)+")
_THOSE_THAT = pattern(r"(?:(?:the\s+)?(?:those|ones|anything|any|all)\s+)?(?:that|which|who)\s+(?=\w)")
_THOSE = frozenset({"those", "ones", "the ones", "any", "all", "anything"})


class Conditions(NamedTuple):
    """What a query asks for: of each wanted group one alternative has to hold, and nothing that is excluded."""

    wanted: tuple[tuple[Part, ...], ...]
    excluded: tuple[Part, ...] = ()
    asks: bool = False  # it is a question, which a passage answers
    kind: str = "set"  # of what is excluded: `kind_of_exclusion`
    typed: bool = False  # it is excluded by search-box syntax: who types "-word" means the word
    plain: bool = False  # nothing of the query is read, and documents are ranked by its vector alone


def read_conditions(text: str, excluded: Sequence[Span] | None = None, cues: Sequence[Span] = ()) -> Conditions:
    """The conditions of a query, by rules. excluded: what NOT excludes, where a reader has found it; cues: the words
    that say so.

    >>> asked = read_conditions("landlocked monarchies that have hosted the Olympics, but not in Africa or Asia")
    >>> [[part.text for part in group] for group in asked.wanted], [part.text for part in asked.excluded]
    ([['landlocked monarchies'], ['have hosted the Olympics']], ['in Africa', 'Asia'])
    """
    query, asks = text, is_question(text)
    if excluded is None and (lacking := read_lacking(text)) is not None:
        excluded, cues = lacking.scopes("not"), [(cue.start, cue.end) for cue in lacking.cues]
    if excluded is None:
        parts = _with_antecedents(parsed_parts(text))
        unwanted = [part for part in parts if part.operator == "not"]
    else:
        unwanted = [
            part._replace(operator="not", start=part.start + start, end=part.end + start)
            for start, end in excluded
            for part in parsed_parts(text[start:end])
            if part.text.lower() not in _THOSE
        ]
        text = blanked(text, [*excluded, *cues])
        parts = _wanted_only(text)
    unwanted = [_without_pronoun(part) for part in unwanted]
    kind = kind_of_exclusion(query, [(part.start, part.end) for part in unwanted]) if unwanted else "set"
    if _ASKS_FOR_ONE.match(text) and not any(part.operator == "not" for part in parts):
        start, end = trim(text, 0, len(text))
        return Conditions(((Part("", start, end, text[start:end]),),), tuple(unwanted), asks, kind)
    groups: list[list[Part]] = []
    for part in parts:
        if part.operator == "or" and groups:
            groups[-1].append(part)
        elif part.operator != "not":
            groups.append([part])
    finer = (group for old in groups for group in _finer(text, old, len(groups)))
    wanted = tuple(tuple(part._replace(text=" ".join(part.text.split())) for part in group) for group in finer)
    if not wanted:  # signs without a word
        wanted = ((Part("", 0, len(text), text),),)
    return Conditions(wanted, tuple(unwanted), asks, kind)


def _without_pronoun(part: Part) -> Part:
    """Of "those that contain nuts", what is said of them."""
    lead = _THOSE_THAT.match(part.text)
    return part._replace(start=part.start + lead.end(), text=part.text[lead.end() :]) if lead else part


def _with_antecedents(parts: Sequence[Part]) -> list[Part]:
    """The parts, where "those" and "that have a coast" behind it are one: what is excluded."""
    found: list[Part] = []
    for part in parts:
        if found and found[-1].operator == "not" and found[-1].text.lower() in _THOSE and _PRONOUN.match(part.text):
            found[-1] = part._replace(operator="not")
        else:
            found.append(part)
    return found


def blanked(text: str, holes: Sequence[Span]) -> str:
    """A text with blanks in place of some stretches."""
    letters = list(text)
    for start, end in holes:
        letters[start:end] = " " * (end - start)
    blanked = "".join(letters)
    return blanked if blanked.strip() else text


def _wanted_only(text: str) -> list[Part]:
    """The parts of a text in which nothing is excluded, whatever its words look like."""
    parts = parsed_parts(text)
    if any(part.operator == "not" for part in parts):
        parts = (Part("", 0, len(text), text),)
    spans = [trim(text, part.start, part.end) for part in parts]
    return [Part(part.operator, *span, text[slice(*span)]) for part, span in zip(parts, spans, strict=True)]


def _finer(text: str, group: list[Part], groups: int) -> list[list[Part]]:
    """The groups that a group becomes when its parts are cut into conditions."""
    first = group[0]
    # "countries that both ... and ...", "which countries either ... or ...": every document is one.
    is_bare = _is_bare(first.text) and _EACH.match(text, first.end) is not None
    if len(group) == 1:
        if groups > 1 and is_bare:
            return []
        return [[Part("and", *span, text[slice(*span)])] for span in _cut(text, first.start, first.end)]
    if is_bare:
        group = group[1:]
    elif _STEM.search(first.text):  # "countries which border" of "countries which border either A or B"
        stem = _PRONOUN.split(first.text)[-1]
        group = [part._replace(text=f"{stem} {part.text}") for part in group[1:]]
    finer = []
    for part in group:
        verbs = [match.start() for match in _VERB.finditer(text, part.start, part.end)]
        for span in _at(text, part.start, part.end, verbs):
            finer.append(Part("or", *span, part.text if span == part[1:3] else text[slice(*span)]))
    return [finer]


def _cut(text: str, start: int, end: int) -> list[Span]:
    """The conditions of a stretch.

    >>> text = "officially French-speaking EU member states in Northern Europe that are monarchies, have a coast"
    >>> [text[slice(*span)] for span in _cut(text, 0, len(text))]
    ['officially French-speaking', 'EU member states', 'in Northern Europe', 'are monarchies', 'have a coast']
    >>> text = "countries that have French as an official language"
    >>> [text[slice(*span)] for span in _cut(text, 0, len(text))]
    ['countries that have French as an official language']
    """
    if _QUESTION.match(text, start, end):
        return [(start, end)]
    cuts: list[int] = []
    relative = _RELATIVE.search(text, start, end)
    head = relative.start() if relative else end
    adjective = _ADJECTIVE.match(text, start, head)
    if adjective:
        cuts.append(adjective.end())
    left = adjective.end() if adjective else start
    nouns = [match.start() for match in _AFTER_NOUN.finditer(text, left, head)]
    cuts += [cut for cut in nouns if not _is_bare(text[left:cut])][:1]
    if relative and not _is_bare(text[start:head]):
        cuts.append(head)
    cuts += [match.start() for match in _VERB.finditer(text, start, end)]
    return _at(text, start, end, cuts)


def _at(text: str, start: int, end: int, cuts: Sequence[int]) -> list[Span]:
    """The pieces of a stretch that is cut at these places, without joining words at their edges ("and", "that")."""
    found = []
    for left, right in zip([start, *cuts], [*cuts, end], strict=True):
        if cuts:
            left, right = trim(text, left, right)
            pronoun = _PRONOUN.match(text, left, right)
            left = pronoun.end() if pronoun else left
        if left < right:
            found.append((left, right))
    return found


def _is_bare(text: str) -> bool:
    """Whether a noun stands alone, so that it names no more than the kind of documents: "countries", "which films"."""
    return len(_EMPTY_LEAD.sub("", text.lower()).split()) <= 1
