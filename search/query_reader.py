"""How a query is read: what it wants, what it excludes, its alternatives.

    >>> from boolbert import read
    >>> parts = read('jaguar -car OR leopard')
    >>> parts.wanted, [span.text for span in parts.excluded], [span.text for span in parts.alternatives]
    ('jaguar OR leopard', ['car'], ['jaguar', 'leopard'])

Search-box syntax is read as it is typed. Other queries are read by a Bool-BERT, if one searches; else by the reader
that comes with the package, which needs the word embeddings of all-MiniLM-L6-v2 and none of its layers; where these are
not to be had, by the cue parser. A model says what an operator reaches, and the table of cues whether there is one:
what it finds without a word for NOT or OR is a mistake (docs/results.md).
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from boolbert.boolean import (
    OPERATORS,
    WHOLE_WEIGHTS,
    CueSpan,
    find_cues,
    from_multi_hot,
    has_words,
    kind_of_exclusion,
    multi_hot,
    read_lacking,
    read_parts,
    read_search_box,
    without_double_negation,
)
from boolbert.boolean import Reading as RuleReading
from boolbert.boolean.kinds import is_question
from boolbert.core.errors import RetrievalError

from .query_encoder import QueryEncoder, QueryVectors
from .reading import QueryReading, Word, with_cues, with_roles, word_at, words_in, words_of

LONGEST_QUERY = 5000  # characters; the time to read a text grows with its length
# Who decides which operators are on.
CALLER, MODEL, LEXICON = "the caller", "the model's gate", "the cue lexicon"
SEARCH_BOX, READER, PARSER = "the search-box syntax", "the reader", "the cue parser"


def read(query: str, not_kind: str | None = None) -> QueryReading:
    """The parts of a query, each with its place in it: `query[span.start:span.end]`.

    not_kind: what NOT excludes is a "topic", a "set" or a "property"; if not given, the query's words tell.
    """
    check_query(query, not_kind)
    reading = _read_words(without_double_negation(query))
    if not reading.excluded:
        return reading
    places = [span.place for span in reading.excluded]
    return replace(reading, kind=not_kind or kind_of_exclusion(reading.query, places))


def _read_words(query: str) -> QueryReading:
    """What each word of a query is: a cue, excluded, or part of an alternative."""
    if (typed := read_search_box(query)) is not None:
        return by_rules(typed, SEARCH_BOX)
    if (lacking := read_lacking(query)) is not None:
        return by_rules(lacking, PARSER)
    reader = _reader()
    found = by_rules(read_parts(query), PARSER) if reader is None else _by_reader(query, *reader)
    # Alternatives are for collections: "Who won the Nobel Prize in Physiology or Medicine?" has one answer.
    return found.without_alternatives() if is_question(query) else found


def check_query(query: str, not_kind: str | None = None) -> None:
    """Raise for what is no text, for a query without a word, or with letters that no tokenizer takes."""
    if not_kind is not None and not_kind not in WHOLE_WEIGHTS:
        raise RetrievalError(f"not_kind must be one of {', '.join(WHOLE_WEIGHTS)}, got {not_kind!r}")
    if not isinstance(query, str):
        raise RetrievalError(f"the query must be a text, got {type(query).__name__}")
    if not query.strip():
        raise RetrievalError("the query is empty; give some words to search for")
    if len(query) > LONGEST_QUERY:
        raise RetrievalError(f"the query has {len(query):,} characters; at most {LONGEST_QUERY:,} are read: shorten it")
    if not has_words(query):
        raise RetrievalError(f"the query {query!r} has no words to look for")
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


def read_by_model(
    queries: QueryEncoder,
    query: str,
    labels: list[int] | None,
    excluded: Collection[int] | None,
    not_weight: float | None,
    not_kind: str | None,
    *,
    trained: bool,
) -> tuple[QueryReading, QueryVectors]:
    """How a query is read, and its vectors, from one pass of the model. labels: the operators, where the caller
    has said which are on; trained: whether the model has learned to read; the others are as in `BoolSearcher.search`.
    """
    decided_by = CALLER if labels is not None else MODEL
    words = words_of(query)
    seen = find_cues(query)
    cues = [cue for cue in seen if not cue.weak]
    is_free = queries.can_exclude and labels is None and excluded is None  # nothing was said by the caller
    typed = read_search_box(query) if is_free else None
    by_rule = typed or (read_lacking(query) if is_free else None)
    if by_rule is not None:
        decided_by, cues = LEXICON if typed is None else SEARCH_BOX, list(by_rule.cues)
        labels = multi_hot({cue.operator for cue in cues})
        excluded = words_in(words, by_rule.scopes("not")) or None
    elif labels is None and not trained:
        labels, decided_by = multi_hot({cue.operator for cue in cues}), LEXICON
    tokens = queries.tokens(query)
    places = queries.token_words(tokens, words)
    not_scope = _not_scope(queries, places, words, excluded)
    kind = not_kind or ("set" if not_weight is not None else _kind(query, words, excluded))
    told = {"not_scope": not_scope, "not_weight": not_weight, "whole_weight": WHOLE_WEIGHTS[kind]}
    found = queries.encode(tokens, operators=labels, **told)
    names, known = from_multi_hot(found.operators), known_operators(seen)
    if is_free and labels is None and not known.issuperset(names):
        found = queries.encode(tokens, operators=multi_hot(known.intersection(names)), **told)
        names = from_multi_hot(found.operators)

    roles = words[: max(places) + 1]
    if trained:
        roles = with_roles(roles, places, names, found.cues, found.scope)
    if by_rule is not None or not trained:
        roles = with_cues(roles, [cue for cue in cues if cue.operator in names])
    if not_scope is not None:
        roles = [word._replace(excluded=number in (excluded or ())) for number, word in enumerate(roles)]
    is_cut = bool(tokens.overflowing)
    reading = QueryReading(query, names, decided_by, tuple(roles), truncated=is_cut, not_scope=not_scope)
    return replace(reading, kind=kind if reading.excluded or not_kind else None), found.vectors


def _kind(query: str, words: Sequence[Word], excluded: Collection[int] | None) -> str:
    """What kind of NOT a query has, by its words; "set" where the parser finds nothing and the model decides."""
    if excluded is None:
        spans = list(read_parts(query).scopes("not"))
    else:
        spans = [(words[number].start, words[number].end) for number in sorted(excluded)]
    return kind_of_exclusion(query, spans) if spans else "set"


def _not_scope(
    queries: QueryEncoder, places: Sequence[int], words: Sequence[Word], excluded: Collection[int] | None
) -> tuple[int, ...] | None:
    """For each token whether it is a piece of an excluded word; None where the model shall decide."""
    if excluded is None:
        return None
    if not queries.can_exclude:
        raise RetrievalError("the model is built without exclusion, so no word can be excluded by hand")
    wrong = [number for number in excluded if not 0 <= number < len(words)]
    if wrong:
        raise RetrievalError(f"excluded names word {wrong[0]}, but the query has the words 0 to {len(words) - 1}")
    return tuple(int(word in excluded) for word in places)
