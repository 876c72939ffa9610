"""Why a search excludes nothing although its query seems to say NOT, in one line for the user."""

import re
from collections.abc import Sequence

from .cues import CueSpan, find_cues
from .kinds import kind_of_exclusion
from .parts import Span, read_parts
from .search_box import LONGEST_TYPED, is_too_long, unread_signs
from .word_lists import WORDS

_FOREIGN, _FOREIGN_NOT, _ENGLISH = WORDS["foreign"], WORDS["foreign not"], WORDS["english"]
_WORD = re.compile(r"[^\W\d_]+")


def is_english(query: str) -> bool:
    """Whether a query may be English, as far as its small words and its letters tell.

    >>> [is_english(query) for query in ("islands", "La La Land", "países que no son islas", "島国")]
    [True, True, False, False]
    """
    words = _WORD.findall(query.lower())
    letters = "".join(words)
    if letters and sum(letter < "\u0250" for letter in letters) < len(letters) / 2:
        return False  # another alphabet
    foreign = sum((word in _FOREIGN) + 2 * (word in _FOREIGN_NOT) for word in words)
    return foreign < 2 or foreign <= sum(word in _ENGLISH for word in words)


def has_words(query: str) -> bool:
    """Whether a query has a word to look for besides those that only join or exclude.

    >>> [has_words(query) for query in ("islands", "not", "- ?!", "it or not")]
    [True, False, False, True]
    """
    return any(word not in WORDS["operators"] for word in re.findall(r"\w+", query.lower()))


def notes_on_signs(query: str, read_as: str) -> list[str]:
    """A line for what a query has that is not read as it stands there. read_as: the text that was searched for.

    >>> notes_on_signs("ls -la", "ls -la")
    ['“-la” is read as a word of the query; to leave it out, write -"la"']
    >>> notes_on_signs("bars -sugar-free", "bars AND sugar")
    ['the query denies something twice, which asks for it; it is read as: bars AND sugar']
    """
    notes = [
        f'“{sign}” is read as a word of the query; to leave it out, write -"{sign[1:]}"' for sign in unread_signs(query)
    ]
    if read_as != query:
        notes.append(f"the query denies something twice, which asks for it; it is read as: {read_as}")
    return notes


def unread_negations(query: str, read: Sequence[Span] = ()) -> list[CueSpan]:
    """What the rules take for words that exclude, outside of the stretches that were read.

    >>> [cue.text for cue in unread_negations("hotels without a pool, no bar", [(7, 14), (17, 21)])]
    ['no']
    """
    cues = [cue for cue in find_cues(query) if cue.operator == "not" and not cue.weak]
    return [cue for cue in cues if not any(start < cue.end and cue.start < end for start, end in read)]


def why_nothing_excluded(query: str) -> str | None:
    """One line for a query of whose words nothing was excluded; None where it asks for no exclusion.

    >>> why_nothing_excluded("no nuts")
    'nothing is excluded: the query only says what to leave out; say what to look for as well'
    >>> why_nothing_excluded("islands of Greece")
    """
    if not is_english(query):
        return "the query does not look English, the only language in which NOT is understood; -word works in any"
    if is_too_long(query):
        return f"nothing is excluded: -word and NOT are read in queries of up to {LONGEST_TYPED} characters; shorten it"
    counting = unread_negations(query)
    if not counting:
        return None
    cue = counting[0]
    advice = "to leave something out, write -word or “without ...”"
    reading = read_parts(query)
    if reading.excluded:
        found = reading.excluded[0].text
        return f'nothing is excluded: the model did not see that “{cue.text}” excludes “{found}”; write -"{found}"'
    if not query[: cue.start].strip() and not query.rstrip().endswith("?"):
        return "nothing is excluded: the query only says what to leave out; say what to look for as well"
    if cue.rule in ("none", "please", "neither", "nor", "listed"):
        return f"nothing is excluded: “{cue.text}” alone leaves nothing out; {advice}"
    if kind_of_exclusion(query) == "set":
        return f"nothing is excluded: “{cue.text}” negates a verb, and its words stay in the search; {advice}"
    return f"nothing is excluded: “{cue.text}” negates what the question asks about; {advice}"
