"""Does a NOT cue exclude something from a wanted set, or does it only negate a predicate?

"Films that are not westerns" wants films and excludes westerns. "Which birds do not fly?" is about flying, and nothing
is to be taken away from it. False alarms cost more than misses: where in doubt, nothing is excluded.
"""

import re

from ...boolean.word_lists import WORDS, pattern
from .cues import CueSpan, normal

LONGEST_AROUND_CUE = 500  # characters that are looked at before a cue, and that an exclusion may take behind it
# Within an exclusion, only cues of these rules begin another one by themselves.
OPENS_ANEW = frozenset({"always", "beyond", "contrast", "command", "request"})

# How a request or a question opens before it names what is wanted.
OPENING = pattern(
    r"\s*(?:please\s+)?(?:(?:can|could|would|will)\s+you\s+(?:please\s+)?(?:{tell}|{name})(?:\s+me)?"
    r"|{tell}|{name}|what\s+(?:are|is|were|was)|which\s+are|who\s+(?:are|were)|do\s+you\s+know|are\s+there|is\s+there"
    r"|(?:i|we)(?:\s+am|\s+are|['’]m|['’]re)?\s+(?:looking\s+for|interested\s+in|want|need|would\s+like|like|prefer)"
    r"|(?:they|he|she)\s+asked\s+for)(?:\s+(?:some|any|all|the|a\s+few|more))?(?:\s+of\s+the)?\b"
)
# A full stop behind one letter or one of these ends no sentence: "John B. Murphy".
ABBREVIATION = pattern(r"(?:(?<![\w'’])\w|\b{short})\Z")
_SENTENCE_END = re.compile(r"[?!;]|\.(?=\s)")
# "that are", "which do", "but is", ", and have": the clause that the negation opens.
_RELATIVE = pattern(r"\b(?:that|which|who)\s+(?:(?P<verb>{auxiliary})\s+)?(?:\w+ly\s+)?\Z")
_BUT = pattern(
    r"\b(?:but|yet|though|although)\s+(?:(?:that|which|who|it|they|he|she)\s+)?(?:{auxiliary}\s+)?(?:\w+ly\s+)?\Z"
)
_AND = pattern(r"\band\s+(?:(?:that|which|who)\s+)?(?:{auxiliary}\s+)?\Z")
_ANY_AUXILIARY = pattern(r"\b{auxiliary}\b")
_ANY_RELATIVE = pattern(r"\b(?:that|which|who|whose)\s+\w+")
_INDEFINITE = pattern(r"\b{indefinite}\b")
_WHICH = pattern(r"\s*(?:what|which)\s+(?!is\b|are\b|was\b|were\b)")
_DEFINITE_ONE = pattern(r"\bthe\s+(?:only|first|last|one|man|woman|person|king|queen|president)\b")
_PLURAL = pattern(r"\b\w+[^\Wsu]s\b|\b(?:flora|fauna|fish|people|men|women|children)\b")
# Verbs that say what a thing holds: "recipes that do not contain nuts".
_HOLD = pattern(r"\s*(?:also\s+)?(?:include|contain|involve|feature|mention|cover|concern|relate)\b")
_PREPOSITION = pattern(r"\s*{preposition}\b")
_PREPOSITION_BEFORE = pattern(r"\b{preposition}\s+\Z")
_COPULA = pattern(r"\b(?:that|which|who)\s+are\b")
# "What is a shadow that isn't dark?", "Who ate nothing that was not white?" ask for one thing and one person.
_ONE_ASKED = pattern(r"\s*(?:what(?:\s+is|\s+was|['’]s)|who)\b")
# Of the participles, only those that say of which kind a thing is.
_NOUN_NEXT = pattern(r"\s*(?:{kind}\b|(?!(?:{no noun})\b|\w+(?:ed|ing)\b)\w)")
_ASKS_HOW = pattern(r"\s*(?:how|why|{auxiliary}|when|where|what\s+happens|he|she|it|they|we|i|you|there|this)\b")
_WHY = pattern(r"\s*(?:why|how\s+come)\b")
_COMMAND = pattern(r"(?:\A|[,;.?!:(]|\b(?:please|but|and|to|then|also|just))\s*\Z")
_SET_APART = pattern(
    r"\b(?:(?:sets?|setting)\s+(?!in\b|on\b|at\b|during\b)|(?:tells?(?!\s+(?:me|us)\b)|keeps?|stands?|told|kept|stood|"
    r"makes?|live|lived|grow|grew)\b)[^,;.?!]{0,60}\Z"
)
# "Not without a fight", "spiders that hunt without webs", "born without fingerprints".
_VERB_BEFORE = pattern(
    r"(?:\A\s*\w+ing|\b(?:not|born|live|lives|living|survive|surviving|go|going|do|doing|(?:that|which|who)\s+"
    r"(?:\w+|(?!(?:are|is|were|was|have|has)\b)\w+(?:\s+\w+){1,2})))\s+\Z"
)
_NEITHER = pattern(r"\b(?:(?:that|which|who|but)\s+(?:are|is|were|was|have|has)|{preposition})\s+\Z")
_PLEASE = pattern(r"\s[^,.;?!]{1,60},?\s+(?:please|thanks|thank\s+you)\b")
_ASKS = pattern(r"\s*(?:who|what|which|whose|when|where|why|how)\b")
_IS_BEFORE = pattern(r"\b(?:am|is|are|was|were|be|been|being|seem|seems|seemed|['’]s)\s+\Z")
_ATTRIBUTE = pattern(r"(?:,?\s+(?:and\s+)?\w+-free)*\s+(?!(?:and|or|but|that|which|with|in|at|for|from|nor)\b)\w")
_ANY_OR = pattern(r"\bn?or\b")
_FIRST_PERSON = pattern(r"\b(?:i|we)(?:\s+am|\s+are|['’]m|['’]re|['’]d)?\s+\Z")
_DO = pattern(r"\b(?:do|does|did|can|could|will|would|should|must)\s+\Z")
_WORDS = re.compile(r"\w+(?:['’-]\w+)*")


def excludes(text: str, cue: CueSpan) -> bool:
    """Whether a NOT cue opens an exclusion, as far as the words round it tell.

    >>> from .cues import find_cues
    >>> def ask(text): return [excludes(text, cue) for cue in find_cues(text) if cue.operator == "not"]
    >>> ask("films that are not westerns"), ask("Which birds do not fly?"), ask("Who had no love for the violin?")
    ([True], [False], [False])
    """
    if cue.operator != "not" or (cue.weak and cue.rule != "suffix"):
        return False
    word = normal(cue.text)
    start = sentence_start(text, cue.start)
    before, after = text[start : cue.start], text[cue.end : cue.end + 200]
    match cue.rule:
        case "request":
            return _is_request(word, before)
        case "always" | "beyond":
            return not (word == "apart from" and _SET_APART.search(before))
        case "contrast":
            return _contrasts(word, before, after)
        case "absence":
            if _VERB_BEFORE.search(before):
                return False
            return before.rstrip().endswith((",", "(")) or not _ASKS_HOW.match(_unopened(before))
        case "command":
            return bool(_COMMAND.search(before) or _RELATIVE.search(before))
        case "relative":
            one = word.endswith("s") and not _INDEFINITE.search(before)  # "the language that lacks a word"
            return bool(_RELATIVE.search(before)) and not one
        case "prefix":
            return len(_WORDS.findall(after)) > 1 or content(before)
        case "having":  # "dishes with ginger and no garlic"; "roses with no thorns" are a kind
            return _PLEASE.match(after) is not None or bool(re.search(r"\b(?:with|have|has)\b", before, re.IGNORECASE))
        case "neither":
            return bool(_NEITHER.search(before)) and content(before)
        case "please":
            return _PLEASE.match(after) is not None and not _ASKS.match(before)
        case "anything":
            return not _IS_BEFORE.search(before)
        case "place":
            return not _ASKS_HOW.match(_unopened(before))
        case "suffix":  # "sugar-free desserts", not "cakes or sugar-free pies", "is the bread gluten-free?"
            denied = _ASKS_HOW.match(before) or _IS_BEFORE.search(before) or _ANY_OR.search(text)
            return bool(_ATTRIBUTE.match(after)) and not denied
        case "listed":
            return bool(_NEITHER.search(before)) and ":" in after
        case "negation":
            return _negates_a_set(word, before, after)
        case "nor" | "none":  # "nor" goes on with the exclusion before it, which `read_parts` knows
            return False
    raise ValueError(f"no rule {cue.rule!r}")


def sentence_start(text: str, position: int) -> int:
    """Where the sentence begins in which a character stands."""
    start = max(0, position - LONGEST_AROUND_CUE)
    for match in _SENTENCE_END.finditer(text, start, position):
        if match.group() != "." or not ABBREVIATION.search(text, max(0, match.start() - 6), match.start()):
            start = match.end()
    return start


def content(text: str) -> bool:
    """Whether a text names something to look for.

    >>> content("tell me about all of the"), content("tell me about the moon")
    (False, True)
    """
    return bool(_content_words(text))


def _content_words(text: str) -> list[str]:
    return [word for word in _WORDS.findall(text.lower()) if word not in WORDS["empty"]]


def _unopened(before: str) -> str:
    """What follows the opening of a request: "films" of "Can you show me films"."""
    opening = OPENING.match(before)
    return before[opening.end() :] if opening else before


def _is_request(word: str, before: str) -> bool:
    if word in ("not interested in",):
        return bool(_FIRST_PERSON.search(before))
    if word.startswith("not to "):
        return bool(re.search(r"\b(?:but|please|prefer|allowed|want|try)\s+\Z", before, re.IGNORECASE))
    if word == "nothing about":
        return not before.strip() or before.rstrip().endswith((",", "but", "and", "please"))
    if word == "nothing to do with":
        return bool(re.search(r"\b(?:that|which|who|but)\s+(?:have|has|had)\s+\Z", before, re.IGNORECASE))
    return before.rstrip().endswith((",", "but", "please")) or not _WHY.match(before)


def _contrasts(word: str, before: str, after: str) -> bool:
    if word == "minus":
        return not (before.rstrip()[-1:].isdigit() or after.lstrip()[:1].isdigit())
    if word == "but not":
        return not _WHY.match(before)
    if word.endswith("never") and not (_PREPOSITION.match(after) or _COPULA.search(before)):
        return False  # "he tried but never won"
    if word == "rather than" and re.search(r"\b(?:choose|chose|use|used|prefer)\b", before, re.IGNORECASE):
        return False
    return before.rstrip().endswith(",") or not _ASKS_HOW.match(_unopened(before))


def _negates_a_set(word: str, before: str, after: str) -> bool:
    """For "not", "aren't", "never": in a relative clause, after "but", behind a noun."""
    if _WHY.match(before):
        return False
    if _BUT.search(before):
        return True
    relative = _RELATIVE.search(before)
    if relative:
        return _restricts(relative, word, before, after)
    if _AND.search(before):
        return _ANY_RELATIVE.search(before) is not None
    if word not in ("not", "never") or not content(before):
        return False
    if before.rstrip().endswith((",", "(")):
        return not _DO.search(before) and (word == "not" or _PREPOSITION.match(after) is not None)
    return word == "not" and _follows_a_set(before, after)


def _restricts(relative: re.Match[str], word: str, before: str, after: str) -> bool:
    """For a negation in a relative clause: whether the clause takes some things from a set."""
    head = _unopened(before[: relative.start()])
    verb = (relative["verb"] or word).lower()
    if not content(head) or _DEFINITE_ONE.search(head):
        return False
    if verb in WORDS["singular verb"]:
        return _ONE_ASKED.match(before) is None and bool(
            _INDEFINITE.search(before) or _WHICH.match(before) or _HOLD.match(after)
        )
    if verb in WORDS["be"]:
        return True
    if verb not in WORDS["plural verb"] and not (_PLURAL.search(head) or _INDEFINITE.search(before)):
        return False
    # "Dogs that don't shed" are a kind of their own; "small dogs of Peru that don't shed" are some of a set.
    return bool(_HOLD.match(after)) or len(_content_words(head)) > 1


def _follows_a_set(before: str, after: str) -> bool:
    """For a "not" behind a noun: "films not set in India", but not "car not starting" or "what did she not finish"."""
    clause = _ANY_RELATIVE.sub("", _unopened(before))
    if _ANY_AUXILIARY.search(clause) or _ASKS_HOW.match(clause):
        return False
    if not _PLURAL.search(clause) or _PREPOSITION_BEFORE.search(clause):
        return False
    return _NOUN_NEXT.match(after) is not None
