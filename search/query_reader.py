"""How a query is read: what it wants, what it excludes, its alternatives.

    >>> from boolbert import read
    >>> query = read('jaguar -car OR leopard')
    >>> query.wanted, [one.text for one in query.excluded], [span.text for span in query.alternatives]
    ('jaguar leopard', ['car'], ['jaguar', 'leopard'])

One order, for every model and every door: what the caller says; search-box syntax, which is read as it is typed; and
the query reader that comes with the package (retrieval/adapters.py), which has learned from `data/reading`.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from boolbert.boolean.languages import denying_word, foreign_language, is_foreign_script, notes_on_language
from boolbert.boolean.operators import from_multi_hot, multi_hot
from boolbert.boolean.query import (
    MOST_EXCLUDED,
    MOST_WANTED,
    Condition,
    Query,
    marks_of_words,
    query_of,
    quoted,
    split_words,
)
from boolbert.boolean.search_box import (
    LONGEST_TYPED,
    has_words,
    is_too_long,
    notes_on_signs,
    read_search_box,
    without_double_negation,
)
from boolbert.boolean.tags import CUE, EXCLUDING, KINDS_OF_NOT, WANTED, Mark, joined_words, marks_of
from boolbert.core.errors import RetrievalError, check_text, shorten
from boolbert.retrieval.adapters import Reader, open_reader
from boolbert.retrieval.encoders import DEFAULT, INSTALL, QUERY_READER

Span = tuple[int, int]
# Who decides what a query says.
CALLER, SEARCH_BOX, READER = "the caller", "the search-box syntax", "the reader"
LANGUAGE = "the query's language"  # which is not English, so that nothing is read
MOST_TOKENS_READ = 256  # of a query; the reader does not see the rest
DOUBT = 0.2  # how probable it is that a word excludes which is not read so, above which that is told
LONGEST_QUERY = 5000  # characters; the time to read a text grows with its length


def read(text: str, not_kind: str | None = None) -> Query:
    """The parts of a query, each with its place in it: `text[one.start:one.end]`.

    not_kind: what NOT excludes is a "topic", a "set" or a "property"; if not given, the reader tells.
    """
    check_query(text, not_kind)
    turned = without_double_negation(text)
    found = _by_itself(turned)
    wanted = len(found.conditions) - len(found.excluded)
    if len(found.excluded) > MOST_EXCLUDED or wanted > MOST_WANTED:
        raise RetrievalError(
            f"the query asks for {wanted} things and excludes {len(found.excluded)}; at most {MOST_WANTED} and "
            f"{MOST_EXCLUDED} are searched: shorten it"
        )
    found = replace(found, notes=_notes(text, found))
    return replace(found, kind=not_kind or found.kind) if found.excluded else found


def with_a_wish(found: Query) -> Query:
    """A query to be found by its vector alone, which needs something to look for; raise where it only excludes."""
    if not found.groups:
        raise RetrievalError(f"the query {found.text!r} only says what to leave out; say what to look for as well")
    return found


def _notes(text: str, found: Query) -> tuple[str, ...]:
    """A line for each thing that a query has and that is not read as it stands there."""
    turned = "the query denies something twice, which asks for it; it is read as: "
    return (
        *notes_on_signs(text),
        *([turned + found.text] if found.text != text else []),
        *(notes_on_language(text, found.typed) if found.typed or not found.excluded else ()),
        *_notes_on_nothing(text, found),
    )


def _notes_on_nothing(text: str, found: Query) -> tuple[str, ...]:
    """Why nothing is excluded, of a query that may say so."""
    if found.excluded or found.plain:
        return ()
    if is_too_long(text):
        most = f"-word and NOT are read in queries of up to {LONGEST_TYPED:,} characters; shorten it"
        return (f"nothing is excluded: {most}",)
    if found.doubtful:
        advice = "to leave something out, write -word or “without ...”"
        return (f"nothing is excluded: it is not certain that {quoted(found.doubtful)} leaves something out; {advice}",)
    return ()


def _by_itself(text: str) -> Query:
    """A query as search-box syntax or the reader reads it; one in another language as it is."""
    if (typed := read_search_box(text)) is not None:
        found = query_of(text, typed, SEARCH_BOX, typed=True)
        return replace(found, kind="set" if found.excluded else None)
    if not text.isascii() and is_foreign_script(text):
        return replace(as_it_is(text, LANGUAGE), plain=True)
    found = by_reader(text, the_reader())
    language = foreign_language(text)
    if language is not None and not (found.excluded and denying_word(text, language)):
        return replace(as_it_is(text, LANGUAGE), plain=True)
    return found


def the_reader() -> Reader:
    """The query reader; an error says how to get it where its encoder is not on this machine."""
    reader = open_reader(QUERY_READER)
    if reader is None:
        raise RetrievalError(f"queries are read by {DEFAULT}, which is not on this machine; run: {INSTALL}")
    return reader


def as_it_is(text: str, decided_by: str = CALLER) -> Query:
    """A query whose words are all wanted, and nothing else is said of them."""
    return Query(text, tuple(split_words(text)), (Condition(text, 0, len(text), group=1),), (), decided_by)


def read_for_caller(text: str, operators: Sequence[str], excluded: Collection[int] | None) -> Query:
    """A query of which the caller says which operators are on, or which words are excluded, by their numbers."""
    check_query(text)
    words = split_words(text)
    wrong = [number for number in excluded or () if not 0 <= number < len(words)]
    if wrong:
        raise RetrievalError(f"excluded names word {wrong[0]}, but the query has the words 0 to {len(words) - 1}")
    found = _by_itself(text)
    if excluded is not None:
        found = _excluding(found, excluded)
    else:
        kept = found.conditions if "not" in operators else tuple(one for one in found.conditions if not one.excluded)
        roles = [
            word._replace(
                excluded=word.excluded and "not" in operators,
                alternative=word.alternative if "or" in operators else None,
                cue=word.cue if word.cue in operators else None,
            )
            for word in found.words
        ]
        found = replace(found, operators=tuple(operators), conditions=kept, words=tuple(roles))
    kind = (found.kind or "set") if found.excluded else None
    return replace(found, decided_by=CALLER, kind=kind, notes=notes_on_signs(text))


def _excluding(found: Query, excluded: Collection[int]) -> Query:
    """A query of which just these words are excluded."""
    words = [word._replace(excluded=number in excluded) for number, word in enumerate(found.words)]
    runs = [(mark.start, mark.end) for mark in marks_of_words(words, list(excluded))]
    kept = [one for one in found.conditions if not one.excluded and not _overlaps(one, runs)]
    taken = [Condition(found.text[start:end], start, end, excluded=True) for start, end in runs]
    left = replace(found, words=tuple(words), conditions=tuple(taken))
    wanted = kept or [Condition(left.wanted, 0, len(found.text), group=1)]
    names = [name for name in found.operators if name != "not"] + (["not"] if runs else [])
    return replace(left, conditions=(*wanted, *taken), operators=from_multi_hot(multi_hot(names)))


def _overlaps(one: Condition | Mark, spans: Sequence[Span]) -> bool:
    return any(start < one.end and one.start < end for start, end in spans)


def check_query(text: str, not_kind: str | None = None) -> None:
    """Raise for what is no text, for a query without a word, or with letters that no tokenizer takes."""
    if not_kind is not None and not_kind not in KINDS_OF_NOT:
        raise RetrievalError(f"not_kind must be one of {', '.join(KINDS_OF_NOT)}, got {not_kind!r}")
    if not isinstance(text, str):
        raise RetrievalError(f"the query must be a text, got {type(text).__name__}")
    if not text.strip():
        raise RetrievalError("the query is empty; give some words to search for")
    if len(text) > LONGEST_QUERY:
        raise RetrievalError(f"the query has {len(text):,} characters; at most {LONGEST_QUERY:,} are read: shorten it")
    if not has_words(text):
        raise RetrievalError(f"the query {shorten(text)} has no words to look for")
    check_text(text, f"the query {shorten(text)}", RetrievalError)


def by_reader(text: str, reader: Reader) -> Query:
    """A query as the reader tags it, word by word."""
    tokens = reader.tokenizer.encode(text)
    ids = tokens.ids[:MOST_TOKENS_READ]
    first, words = joined_words(tokens.word_ids[:MOST_TOKENS_READ], tokens.offsets[:MOST_TOKENS_READ])
    said = reader.read(ids)
    marks = marks_of(words, said.tags[first].tolist()) if words else []
    found = query_of(text, _without_signs(text, marks), READER, asks=said.asks)
    unread = _unread(words, [said.excludes[token] > DOUBT for token in first], marks)
    return replace(
        found,
        kind=said.kind if found.excluded else None,
        truncated=found.truncated or len(tokens.ids) > MOST_TOKENS_READ,
        doubtful=text[slice(*unread)] if unread else "",
    )


def _unread(words: Sequence[Span], may_exclude: Sequence[bool], marks: Sequence[Mark]) -> Span | None:
    """The first word that may exclude something and has no mark; neighbours of what is read so belong to that."""
    for is_one, run in groupby(zip(words, may_exclude, strict=True), key=itemgetter(1)):
        marked = {word: [mark.kind for mark in marks if _overlaps(mark, [word])] for word, _ in run}
        free = [word for word, kinds in marked.items() if not kinds]
        if is_one and free and not any(kind in CUE + EXCLUDING for kinds in marked.values() for kind in kinds):
            return free[0]
    return None


def _without_signs(text: str, marks: Sequence[Mark]) -> list[Mark]:
    """The marks of words. A sign excludes nothing by itself: who types one to exclude is read by the search box."""
    found = [mark for mark in marks if any(map(str.isalnum, text[mark.start : mark.end]))]
    if len(found) < len(marks) and not any(mark.kind == CUE for mark in found):
        found = [mark._replace(kind=WANTED) if mark.kind in EXCLUDING else mark for mark in found]
    return found
