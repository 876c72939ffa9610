"""A query as vectors, and the documents of a store that are closest to it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from boolbert.retrieval.penalty import ask_deeper, penalised_query, penalised_scores, wanted_vectors
from boolbert.retrieval.stores import StoreHit, VectorStore

DEEPEST = 16_384  # documents of a store that are looked through; Milvus gives no more
LEAST_DEPTH = 64  # documents that a store is asked for at first where something is excluded


class QueryVectors(NamedTuple):
    """A query's own vector and one for each alternative (K, D), what it wants, and what it excludes, if any.

    rows: as `penalised_query` gives them, for a model with a penalty; else None, and the vectors are searched with.
    """

    vectors: npt.NDArray[np.float32]
    wanted: npt.NDArray[np.float32]
    excluded: npt.NDArray[np.float32] | None
    rows: npt.NDArray[np.float32] | None = None
    penalty: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        vectors: npt.NDArray[np.float32],
        wanted: npt.NDArray[np.float32],
        excluded: npt.NDArray[np.float32] | None,
        search_vectors: npt.NDArray[np.float32],
        penalty: tuple[float, float] | None,
    ) -> "QueryVectors":
        """From what a model gives: the first fields of its `QueryParts`."""
        if excluded is None or penalty is None or not penalty[0]:
            return cls(vectors, wanted, excluded)
        apart = torch.from_numpy(search_vectors)[None], torch.from_numpy(excluded)[None]
        return cls(vectors, wanted, excluded, penalised_query(*apart, torch.tensor([penalty]))[0].numpy(), penalty)

    @property
    def asked(self) -> npt.NDArray[np.float32]:
        """What documents are ranked by."""
        return self.vectors if self.rows is None else self.rows

    @property
    def fetched_by(self) -> npt.NDArray[np.float32]:
        """Vectors with which no document's dot product is below its score."""
        return self.vectors if self.rows is None else wanted_vectors(self.rows[None])[0]


class Candidate(NamedTuple):
    """A document as the index or store has found it."""

    score: float
    row: int | None
    id: str | None
    title: str
    text: str
    vector: npt.NDArray[np.float32]
    reasons: tuple[Any, ...] = ()  # `weighing.Reason`s, where the index has evidence


def in_store(
    store: VectorStore, parts: QueryVectors, k: int, exclude_above: float | None, where: str | None
) -> list[Candidate]:
    """The k best documents of a store."""
    return [
        Candidate(score, None, hit.record.id, hit.record.title, hit.record.text, hit.vector)
        for score, hit in closest(store, parts, k, exclude_above, where)
    ]


def closest(
    store: VectorStore, parts: QueryVectors, k: int, exclude_above: float | None, where: str | None
) -> list[tuple[float, StoreHit]]:
    """The k best documents of a store, which knows nothing of what is excluded, with their scores."""

    def look(_: Sequence[int], depth: int) -> list[tuple[list[StoreHit], list[float], float | None]]:
        found = store.search(parts.fetched_by[None], depth, where)[0]
        kept = [hit for hit in found if not _is_near(hit.vector, parts, exclude_above)]
        scores = [hit.score for hit in kept]
        if parts.rows is not None and kept:
            vectors = torch.from_numpy(np.stack([hit.vector for hit in kept]))
            scores = penalised_scores(torch.from_numpy(parts.rows)[None], vectors)[0].tolist()
        return [(kept, scores, None if len(found) < depth else found[-1].score)]

    depth = k if parts.excluded is None else max(k, min(max(4 * k, LEAST_DEPTH), DEEPEST))
    return ask_deeper(look, 1, k, depth, DEEPEST)[0]


def far_enough(rows: list[int], vectors: Any, parts: QueryVectors, exclude_above: float | None) -> list[int]:
    """The rows that are not too near to what is excluded."""
    if exclude_above is None or parts.excluded is None:
        return rows
    return [row for row in rows if not _is_near(vectors[row : row + 1][0].astype(np.float32), parts, exclude_above)]


def _is_near(vector: npt.NDArray[np.float32], parts: QueryVectors, exclude_above: float | None) -> bool:
    """Whether a document is too near to what is excluded."""
    return exclude_above is not None and parts.excluded is not None and float(vector @ parts.excluded) > exclude_above
