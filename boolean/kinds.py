"""Which NOT is it? What is excluded is a topic, a set, or a property of the answer.

- topic: "..., excluding anything about X", "apart from X, what else ...?": one subject is left out of a text.
- set: "films that are not westerns", "islands but not monarchies": some members are taken from a collection.
- property: "Which birds are found in Peru but do not migrate?": the text that answers speaks of what is negated, so
  the query's vector stays as it is, and only texts that are about it as a whole lose.

The table of cues says what each cue tends to; the form of the sentence has the last word.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .cues import CueSpan, find_cues, normal
from .exclusion import content
from .parts import Span, read_parts


class Treatment(NamedTuple):
    """What a kind of NOT does to a query whose parts are texts, embedded by themselves. whole_apart: the share of
    the whole query in what is wanted; penalty: how strongly what is excluded counts (a Bool-BERT has learned its own).
    """

    whole_apart: float
    penalty: float


# The sweeps are in docs/results.md. Where a property is negated, the query's vector stays whole.
TREATMENTS = {
    "topic": Treatment(0.3, 1.0),
    "set": Treatment(0.0, 0.7),
    "property": Treatment(1.0, 0.35),
}

_WH = r"(?:what|which|who|whom|whose|when|where|why|how)"
_ASKS = re.compile(
    rf"[\s\"“]*(?:{_WH}|is|are|was|were|do|does|did|can|could|should|has|have)\b|.*[?？]\s*\Z"
    r"|\s*(?:aside from|besides|apart from|in addition to|other than|except for|without|ignoring|excluding)\b.*,\s*"
    rf"{_WH}\b"
    r"|(?:.*,)?\s*(?:please\s+)?(?:briefly\s+)?(?:tell\s+(?:me|us)\s+about|describe|explain)\b",
    re.IGNORECASE | re.DOTALL,
)
# People who ask like this look for members of a collection, not for a passage that answers.
_REQUESTS = re.compile(
    r"\s*(?:(?:is|are) there\b|do you (?:have|sell)\b|any\b"
    r"|(?:can|could) (?:you|i|we|anyone|someone) (?:please )?(?:get|find|buy|recommend|suggest|show)\b"
    r"|where (?:can|could|do) (?:i|we|you|one) (?:get|find|buy|rent|eat|stay|book)\b)"
    r"|.*\b(?:any|some) (?:ideas|suggestions|recommendations|tips)\s*\?*\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
# A question in whose answer the negated words stand: "Which actors ...", "What are the languages that ..."
_WHICH = re.compile(rf"[\s\"“]*(?:(?:in|at|on|for|to|of|from|by)\s+)?{_WH}\b", re.IGNORECASE)
# "What are some books that are not in Hebrew" only asks for a list.
_LIST_REQUEST = re.compile(r"\s*(?:what|which)\s+(?:are|were)\s+(?!the\b)", re.IGNORECASE)
_VERB = re.compile(
    r"\b(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might)\b", re.IGNORECASE
)
_RELATIVE = re.compile(r"\b(?:that|which|who)\s+(?:are|were|is|was)\s+\Z", re.IGNORECASE)
_PLURAL_CLAUSE = re.compile(
    r"\b\w+[^\Wsu]s\s+(?:that|which|who)\s+(?:do|are|were|have|did|can|could|will)?\s*\Z", re.IGNORECASE
)
# "but are not Enterococcus", "but isn't the MyLifeBits project": one thing by its name.
_NAME_NEXT = re.compile(r"\s+(?:the\s+)?(?:[\"“]|[A-Z])")
_INFORMATION = re.compile(
    r"\s*(?:please\s+)?(?:find|get|give\s+me|show\s+me|list)?\s*(?:the\s+)?\b(?:details?|information|data|facts?|duration|history|overview|reasons?)\b",
    re.IGNORECASE,
)
_PREDICATE_NEXT = re.compile(
    r"\s+(?:\w+ed|known|seen|found|made|given|in|on|at|during|for|from|by|of|to|as|under|within|when|if|while|always|only)\b",
    re.IGNORECASE,
)
# "without any information about", "but not related to": a topic, whatever the cue.
_ABOUT = re.compile(
    r"\s+(?:(?:any|the|its|further|other|specific)\s+)*(?:related|relating|asking|regarding|concerning|mentioning|"
    r"(?:information|details?|data|mentions?|references?|facts?|anything)\s+(?:about|of|on|to|from|regarding|related))\b",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(r"[\s\"“]*(?:do|does|did|is|are|was|were|has|have)\b", re.IGNORECASE)
# "that do not include", "but don't involve": a verb that is negated; "please do not include" is a request.
_CLAUSE = re.compile(r"\b(?:that|which|who|but|and)\s+\Z", re.IGNORECASE)
_POLITE = re.compile(r"\b(?:you|me|please)\b", re.IGNORECASE)
_NEGATED = ("do not ", "don't ", "dont ", "did not ")


def kind_of_exclusion(query: str, spans: Sequence[Span] | None = None) -> str:
    """ "topic", "set" or "property": how what a query excludes is to be treated. Where nothing is, "set" behind
    a plural noun with a negated verb, else "property".

    spans: the excluded characters, where they are known; without them the query is read.

    >>> kind_of_exclusion("Who was Bach, excluding anything about his family?")
    'topic'
    >>> kind_of_exclusion("camping stoves that do not need gas"), kind_of_exclusion("Which birds are not able to fly?")
    ('set', 'property')
    """
    if spans is None:
        spans = read_parts(query).scopes("not")
    cues = [cue for cue in find_cues(query) if cue.operator == "not" and not (cue.weak and cue.rule != "suffix")]
    if not spans:  # "countries that do not drive on the left": a negated verb behind a plural noun
        before = [query[: cue.start] for cue in cues if cue.rule == "negation" and not is_question(query)]
        return "set" if any(map(_PLURAL_CLAUSE.search, before)) else "property"
    opening = [cue for cue in cues if cue.start <= spans[0][0]]
    return _kind(query, opening[-1]) if opening else "set"  # `-word` has no cue of the table


def is_question(text: str) -> bool:
    """
    >>> is_question("Which birds fly?"), is_question("who wrote Emma"), is_question("birds that fly")
    (True, True, False)
    >>> is_question("Besides Emma, what did she write"), is_question("please tell us about Jane Austen, without Emma")
    (True, True)
    >>> is_question("is there a hotel with no pool?"), is_question("hotels without a pool, any ideas?")
    (False, False)
    """
    return _ASKS.match(text) is not None and _REQUESTS.match(text) is None


def _kind(query: str, cue: CueSpan) -> str:
    before, after = query[: cue.start], query[cue.end :]
    rule = cue.rule
    if _ABOUT.match(after):
        return "topic"
    is_negated = rule == "request" and normal(cue.text).startswith(_NEGATED)
    if is_negated and _CLAUSE.search(before) and not _POLITE.search(query):
        rule = "negation"
    elif normal(cue.text) == "except" and _PREDICATE_NEXT.match(after) and is_question(query):
        return "property"
    elif cue.kind == "topic":
        return "set" if rule == "always" and _is_collection(before, query) else "topic"
    if not is_question(query) or not content(before) or _YES_OR_NO.match(query):
        return "set"  # in a question for yes or no, plain search finds the excluded text first
    if rule in ("negation", "relative", "neither", "none"):
        return _asked_negation(query, before, after)
    if rule == "contrast" and _WHICH.match(query) and _VERB.search(before):
        return "property" if _PREDICATE_NEXT.match(after) and not _LIST_REQUEST.match(query) else "set"
    return "set"


def _asked_negation(query: str, before: str, after: str) -> str:
    """For a negated verb in a question."""
    if _LIST_REQUEST.match(query) and _RELATIVE.search(before):
        return "set"
    if not _RELATIVE.search(before) and _NAME_NEXT.match(after):
        return "set"
    return "property"


def _is_collection(before: str, query: str) -> bool:
    """Whether no question stands before the cue: "trees of Korea excluding ...", not "Who was Bach, excluding ..."."""
    return bool(before.strip()) and not is_question(query) and not _INFORMATION.match(before)
