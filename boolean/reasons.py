"""Why a search excludes nothing although its query seems to say NOT, in one line for the user."""

import re
from collections.abc import Sequence

from .cues import CueSpan, find_cues
from .kinds import kind_of_exclusion
from .languages import denying_word, foreign_language
from .parts import Span, read_parts
from .search_box import LONGEST_TYPED, is_too_long, unread_signs
from .word_lists import WORDS


def has_words(query: str) -> bool:
    """Whether a query has a word to look for besides those that only join or exclude.

    >>> [has_words(query) for query in ("islands", "not", "- ?!", "it or not")]
    [True, False, False, True]
    """
    return any(word not in WORDS["operators"] for word in re.findall(r"\w+", query.lower()))


def _unquoted(word: str) -> str:
    return word[1:-1] if len(word) > 2 and word[0] in "'‘’" and word[-1] in "'’" else word


def notes_on_reading(query: str, read_as: str, typed: bool = False) -> tuple[str, ...]:
    """A line for each thing that a query has and that is not read as it stands there. read_as: the text that was
    searched for. typed: the query has search-box syntax, which is read in any language.

    >>> notes_on_reading("ls -la", "ls -la")
    ('“-la” is read as a word of the query; to leave it out, write -"la"',)
    >>> notes_on_reading("bars -sugar-free", "bars AND sugar")
    ('the query denies something twice, which asks for it; it is read as: bars AND sugar',)
    >>> notes_on_reading("postres sin nueces", "postres sin nueces")
    ('the query looks Spanish: only English is read, so “sin” leaves nothing out; -word does, in any language',)
    """
    words = [(sign, _unquoted(sign[1:])) for sign in unread_signs(query)]
    notes = [f'“{sign}” is read as a word of the query; to leave it out, write -"{word}"' for sign, word in words]
    if read_as != query:
        notes.append(f"the query denies something twice, which asks for it; it is read as: {read_as}")
    if (language := foreign_language(query)) is not None:
        looks = f"the query looks {language}: only English is read, so"
        if (word := denying_word(query, language)) is not None:
            notes.append(f"{looks} “{word}” leaves nothing out; -word does, in any language")
        elif not typed:
            notes.append(f"{looks} it is searched as it stands; -word leaves something out, in any language")
    return tuple(notes)


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
