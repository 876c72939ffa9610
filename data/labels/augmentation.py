"""Cue augmentation: a cue is replaced by a synonym of the same operator that fits the words round it.

"Birds of Peru that are not flightless birds" may become "Birds of Peru other than flightless birds", but "birds that
are not in Peru" never "birds other than in Peru". Where nothing fits, the cue stays.
"""

import re
from collections.abc import Sequence
from random import Random

from ...boolean.word_lists import pattern
from .cues import CueSpan, find_cues, normal, operators_of
from .lexicon import cue_table

_WORDINGS = cue_table()
# Between two noun phrases: "A ... B". The first are for any two words, the others for nouns only.
JOIN, JOIN_NOUNS = _WORDINGS.written("join"), _WORDINGS.written("join_nouns")
# "A ... b": the first before any phrase, the others before a plural noun.
ALSO, ALSO_PLURAL = _WORDINGS.written("also"), _WORDINGS.written("also_plural")
# The others stand once in a sentence at most.
OR, OR_ONCE = _WORDINGS.written("or"), _WORDINGS.written("or_once")
# Before a noun phrase that is left out: "A ... B".
LEAVE_OUT = _WORDINGS.written("leave_out")
# Before any phrase that is left out: "plants of Peru ... in the Andes".
BUT_NOT = _WORDINGS.written("but_not")
ARE_NOT = _WORDINGS.written("are_not")
LACKING = _WORDINGS.written("lacking")

_NO_NOUN = pattern(r"\s*(?:{tie}|{no plural}|it|they|he|she|we|i|you)\b")
_END = pattern(r"[,.;?!()]|\b{tie}\b")
_TIE = re.compile(pattern(r"\s*{tie}\b").pattern)
_COLLECTIVE = re.compile(r"flora|fauna|fish|people|men|women|children|cattle|sheep|deer|wildlife|livestock")
_PLURAL = re.compile(r"\w+[^\Wsu]s")
_ADJECTIVE = pattern(r"\w*(?:ern|ic|al|ish|ive|ese|ous|ian|ary|ful|less)|north|south|east|west")
_NAME = re.compile(r"\s*(?:[Tt]he|[A-Z]\w+)\b")
_RELATIVE = pattern(r"\b(?:that|which|who)\s+\Z")
_COPULA = pattern(r"\b(?:that|which|who)\s+are\s+\Z")
_CONJUNCTION = pattern(r"\b(?:but|and|or)\s+\Z")
_BOTH = pattern(r"\bboth\s+(?P<first>(?:(?!\band\b)[^,.;])+)\Z")
_UNFIT_OR = pattern(r"\b(?:n?either|whether|any|one)\b")

Edit = tuple[int, int, Sequence[str]]  # the span to replace, and what may stand there


def augment(text: str, rng: Random, rate: float = 1.0) -> tuple[str, list[CueSpan]]:
    """Replace each cue, with probability `rate`, by a fitting synonym: the new text and its cues.

    The text keeps its operators; the same seed gives the same text.

    >>> augment("Birds of Peru that are not flightless birds", Random(3))[0]
    'Birds of Peru with the exception of flightless birds'
    """
    new, operators = text, operators_of(text)
    for cue in reversed(find_cues(text)):  # from the right, so that the spans on the left stay valid
        if cue.weak or new[cue.start : cue.end] != cue.text or rng.random() >= rate:
            continue
        start, end, choices = _edit(new, cue)
        replaced = new[start:end]
        choices = [choice for choice in choices if choice != normal(replaced)]
        if choices:
            candidate = new[:start] + _cased(rng.choice(choices), replaced) + new[end:]
            if operators_of(candidate) == operators:
                new = candidate
    return new, find_cues(new)


def _edit(text: str, cue: CueSpan) -> Edit:
    word, before, after = normal(cue.text), text[: cue.start], text[cue.end :]
    if not before.strip() or not after.strip():
        return cue.start, cue.end, ()
    if cue.operator == "and":
        return _edit_and(word, cue, before, after)
    if cue.operator == "or":
        if word not in OR + OR_ONCE or _UNFIT_OR.search(before):
            return cue.start, cue.end, ()
        again = any(normal(other.text) in OR_ONCE for other in find_cues(after))
        return cue.start, cue.end, OR if again or _ADJECTIVE.fullmatch(before.split()[-1]) else OR + OR_ONCE
    return _edit_not(word, cue, before, after)


def _edit_and(word: str, cue: CueSpan, before: str, after: str) -> Edit:
    if word == "are also" and (relative := _RELATIVE.search(before)):
        return relative.start(), cue.end, ALSO + ALSO_PLURAL if starts_with_plural(after) else ALSO
    if word == "and" and (both := _BOTH.search(before)):
        first = both["first"]
        return both.start(), cue.end, (f"{first}as well as", f"{first}and also")
    if word not in JOIN + JOIN_NOUNS or _NO_NOUN.match(after) or before.rstrip().endswith((".", "?", "!", ":", ";")):
        return cue.start, cue.end, ()
    # "Northern and Western Europe", "cheap and cheerful", and the last of a list take "as well as" only.
    last = before.split()[-1]
    noun = starts_with_plural(after) or _NAME.match(after)
    nouns = noun and not last.endswith(",") and not _ADJECTIVE.fullmatch(last)
    return cue.start, cue.end, JOIN + JOIN_NOUNS if nouns else JOIN


def _edit_not(word: str, cue: CueSpan, before: str, after: str) -> Edit:
    plural = starts_with_plural(after)
    left_out = LEAVE_OUT if plural else ("but not",)
    opening = {"not": _COPULA, "aren't": _RELATIVE}.get(word)
    if opening and (relative := opening.search(before)):
        introduced = _CONJUNCTION.search(before[: relative.start()])  # "but that are not"
        return relative.start(), cue.end, ARE_NOT if introduced else ARE_NOT + left_out
    if word == "not" and _TIE.match(after) and _is_plural(before.split()[-1]):
        return cue.start, cue.end, (*ARE_NOT, "but not")
    if word in BUT_NOT:
        return cue.start, cue.end, LEAVE_OUT if plural else BUT_NOT
    if word in LEAVE_OUT:  # a noun phrase follows already
        return cue.start, cue.end, LEAVE_OUT
    if word in LACKING and not re.match(r"\s*(?:(?:a|an|the|any)\b|\w+ing\b)", after, re.IGNORECASE):
        return cue.start, cue.end, LACKING
    return cue.start, cue.end, ()


def starts_with_plural(phrase: str) -> bool:
    """Whether a plural noun phrase comes first, as far as the words' endings tell.

    >>> [starts_with_plural(phrase) for phrase in ("French films about war", "flora of Peru", "about wars", "American")]
    [True, True, False, False]
    """
    cues = find_cues(phrase)
    words = _END.split(phrase[: cues[0].start] if cues else phrase)[0].split()
    return not _NO_NOUN.match(phrase) and bool(words) and _is_plural(words[-1])


def _is_plural(word: str) -> bool:
    return any(kind.fullmatch(word.lower()) for kind in (_COLLECTIVE, _PLURAL))


def _cased(replacement: str, replaced: str) -> str:
    """Keep the capital of a cue that opens a sentence."""
    return replacement[0].upper() + replacement[1:] if replaced[0].isupper() and not replaced.isupper() else replacement
