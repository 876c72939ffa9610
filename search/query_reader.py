"""Take a query apart into texts, for any embedding model: what it wants, what it excludes, its alternatives.

    >>> from boolbert import read
    >>> parts = read('jaguar -car OR leopard')
    >>> parts.wanted, [span.text for span in parts.excluded], [span.text for span in parts.alternatives]
    ('jaguar OR leopard', ['car'], ['jaguar', 'leopard'])

Search-box syntax is read as it is typed. Other queries are read by the reader that comes with the package, which needs
the word embeddings of all-MiniLM-L6-v2 and none of its layers; where these are not to be had, by the cue parser. The
reader says what an operator reaches, and the table of cues whether there is one: what it finds without a word for NOT
or OR is a mistake (docs/results.md).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from boolbert.boolean import (
    OPERATORS,
    WHOLE_WEIGHTS,
    CueSpan,
    find_cues,
    from_multi_hot,
    kind_of_exclusion,
    multi_hot,
    read_lacking,
    read_parts,
    read_search_box,
)
from boolbert.boolean import Reading as RuleReading
from boolbert.boolean.kinds import is_question
from boolbert.core.errors import RetrievalError

from .reading import QueryReading, with_cues, with_roles, word_at, words_in, words_of

SEARCH_BOX, READER, PARSER = "the search-box syntax", "the reader", "the cue parser"


def read(query: str, not_kind: str | None = None) -> QueryReading:
    """The parts of a query, each with its place in it: `query[span.start:span.end]`.

    not_kind: what NOT excludes is a "topic", a "set" or a "property"; if not given, the query's words tell.
    """
    check_kind(not_kind)
    reading = read_words(query)
    if not reading.excluded:
        return reading
    return replace(reading, kind=not_kind or kind_of_exclusion(query, [span.place for span in reading.excluded]))


def check_kind(not_kind: str | None) -> None:
    if not_kind is not None and not_kind not in WHOLE_WEIGHTS:
        raise RetrievalError(f"not_kind must be one of {', '.join(WHOLE_WEIGHTS)}, got {not_kind!r}")


def read_words(query: str) -> QueryReading:
    """What each word of a query is: a cue, excluded, or part of an alternative."""
    check_query(query)
    if (typed := read_search_box(query)) is not None:
        return by_rules(typed, SEARCH_BOX)
    if (lacking := read_lacking(query)) is not None:
        return by_rules(lacking, PARSER)
    reader = _reader()
    found = by_rules(read_parts(query), PARSER) if reader is None else _by_reader(query, *reader)
    # Alternatives are for collections: "Who won the Nobel Prize in Physiology or Medicine?" has one answer.
    return found.without_alternatives() if is_question(query) else found


def check_query(query: str) -> None:
    """Raise for what is no text, for a query without a word, or with letters that no tokenizer takes."""
    if not isinstance(query, str):
        raise RetrievalError(f"the query must be a text, got {type(query).__name__}")
    if not query.strip():
        raise RetrievalError("the query is empty; give some words to search for")
    if any("\ud800" <= letter <= "\udfff" for letter in query):
        raise RetrievalError(f"the query {query!r} is not valid UTF-8; check the terminal's or the file's encoding")


@cache
def _reader() -> Any:
    from boolbert.retrieval.models import default_reader

    return default_reader()


def _by_reader(query: str, bert: Any, tokenizer: Any) -> QueryReading:
    import torch

    words, tokens = words_of(query), tokenizer.encode(query)
    places = [word_at(start, end, words) for start, end in tokens.offsets]
    with torch.inference_mode():
        found = bert.read(torch.tensor([tokens.ids]))
    cues, scope = torch.sigmoid(found.cue_logits[0]).double().numpy(), found.scope[0].double().numpy()
    known = known_operators(find_cues(query))
    names = tuple(name for name in from_multi_hot(found.operators[0].tolist()) if name in known)
    scope[[name not in known for name in OPERATORS]] = 0
    roles = with_roles(words[: max(places) + 1], places, names, cues, scope)
    return QueryReading(query, names, READER, tuple(roles), truncated=bool(tokens.overflowing))


def known_operators(cues: Sequence[CueSpan]) -> set[str]:
    """Those that a query can have: NOT and OR without a word for it are a mistake of who reads it.

    >>> sorted(known_operators(find_cues("films but not westerns")))
    ['and', 'not']
    """
    return {"and", *(cue.operator for cue in cues)}


def by_rules(reading: RuleReading, decided_by: str) -> QueryReading:
    """What the parser or the search box has read, word by word.

    >>> found = by_rules(read_parts("cats or dogs without fleas"), PARSER)
    >>> [span.text for span in found.excluded], [span.text for span in found.alternatives], found.operators
    (['fleas'], ['cats', 'dogs'], ('or', 'not'))
    """
    words = words_of(reading.text)
    excluded = set(words_in(words, reading.scopes("not")))
    alternatives = {
        number: place for place, span in enumerate(reading.scopes("or"), start=1) for number in words_in(words, [span])
    }
    cues = [cue for cue in reading.cues if cue.excludes or cue.operator != "not"]
    roles = [
        word._replace(excluded=number in excluded, alternative=alternatives.get(number))
        for number, word in enumerate(with_cues(words, cues))
    ]
    names = from_multi_hot(multi_hot({cue.operator for cue in cues}))
    return QueryReading(reading.text, names, decided_by, tuple(roles))
