"""How a Bool-BERT reads a query: by its gate, where the query has words for an operator; search-box syntax by rules."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from boolbert.boolean import (
    WHOLE_WEIGHTS,
    find_cues,
    from_multi_hot,
    kind_of_exclusion,
    multi_hot,
    read_lacking,
    read_parts,
    read_search_box,
)
from boolbert.core.errors import RetrievalError

from .query_encoder import QueryEncoder, QueryVectors
from .query_reader import SEARCH_BOX, known_operators
from .reading import QueryReading, Word, with_cues, with_roles, words_in, words_of

# Who decides which operators are on.
CALLER, MODEL, LEXICON = "the caller", "the model's gate", "the cue lexicon"


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
    found = queries.encode(tokens, labels, not_scope, not_weight, WHOLE_WEIGHTS[kind])
    names = from_multi_hot(found.operators)
    known = known_operators(seen)
    if is_free and labels is None and not known.issuperset(names):
        labels = multi_hot(known.intersection(names))
        found = queries.encode(tokens, labels, not_scope, not_weight, WHOLE_WEIGHTS[kind])
        names = from_multi_hot(found.operators)

    roles = words[: max(places) + 1]
    if trained:
        roles = with_roles(roles, places, names, found.cues, found.scope)
    if by_rule is not None or not trained:
        roles = with_cues(roles, [cue for cue in cues if cue.operator in names])
    if not_scope is not None:
        roles = [word._replace(excluded=number in (excluded or ())) for number, word in enumerate(roles)]
    reading = QueryReading(query, names, decided_by, tuple(roles), truncated=tokens.is_cut, not_scope=not_scope)
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
