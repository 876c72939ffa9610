"""What every framework does with a query: fetch candidates by its vectors, then rank them by what they say."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from boolbert.core.checks import check_count
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.functions import listed
from boolbert.search.obey import EncodedTexts, Reranked, obey
from boolbert.sentence_boolbert import QueryParts

FETCH = 100  # candidates that a store is asked for
KEPT = "boolbert_clauses"  # the field of a document's metadata that keeps its clauses

Item = TypeVar("Item")


def query_parts(parts: EncodedTexts | QueryParts) -> QueryParts:
    """The vectors of what `encode_query_parts` returns: `obey` adds the texts, a Bool-BERT does not."""
    return parts.vectors if isinstance(parts, EncodedTexts) else parts


def obeying(encoder: Any) -> Any:
    """An encoder that obeys: the one that was given, the one inside of a framework's embedding, or `obey` of an
    embedder that does not."""
    inner = getattr(encoder, "encoder", None)
    for found in (encoder, inner):
        if hasattr(found, "encode_query_parts"):
            return found
    return obey(encoder)


def fetch(
    encoder: Any, query: str, search: Callable[[list[float]], Iterable[Item]], key: Callable[[Item], Hashable]
) -> list[Item]:
    """What a search finds by the vectors of what a query wants, one for each alternative; each candidate once."""
    if hasattr(encoder, "search_vectors"):
        vectors = encoder.search_vectors(query)
    else:
        vectors = query_parts(encoder.encode_query_parts(query)).search_vectors
    return list({key(item): item for vector in vectors for item in search(vector.tolist())}.values())


def rank(
    encoder: Any, query: str, texts: Sequence[str], k: int | None, kept: Sequence[str | None] | None = None
) -> list[Reranked]:
    """The k best texts for a query. `obey` weighs their clauses too; a Bool-BERT compares their vectors. kept: the
    clauses that are in the documents' metadata."""
    if k is not None:
        check_count("k", k)
    if hasattr(encoder, "rerank"):
        return encoder.rerank(query, texts, k, kept=kept)
    texts = listed(texts)
    if not texts:
        return []
    scores = encoder.encode_query_parts(query).scores(encoder.encode_document(list(texts)))
    best = np.argsort(-scores, kind="stable")[:k].tolist()
    return [Reranked(row, float(scores[row]), texts[row], ()) for row in best]


def clauses_of(encoder: Any, texts: Sequence[str]) -> list[str]:
    """The clauses of texts, to be kept in their metadata."""
    found = obeying(encoder)
    if not hasattr(found, "keep_clauses"):
        raise RetrievalError(f"clauses are kept by an encoder of `obey`; a {type(found).__name__} ranks by vectors")
    return found.keep_clauses(texts)


def plain_reasons(ranked: Reranked) -> list[dict[str, Any]]:
    """The clauses for and against a text as plain data, for a framework's metadata."""
    return [asdict(reason) for reason in ranked.reasons]
