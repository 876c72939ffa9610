"""The documents of an index or a vector store that are best for a query's vectors, or for its words as well."""

import math
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from boolbert.core.errors import RetrievalError
from boolbert.retrieval.evidence import Evidence
from boolbert.retrieval.index import Index

from .query_encoder import QueryVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from boolbert.data import Document
    from boolbert.retrieval.bm25 import BM25Index
    from boolbert.retrieval.stores import FileStore, StoreHit, VectorStore
    from boolbert.retrieval.stores.file_store import Snapshot

DEEPEST = 16_384  # documents of a store that are looked through; Milvus gives no more
LEAST_DEPTH = 64  # documents that a store is asked for at first where something is excluded
BLOCK = 8192  # documents that numpy compares at once
Found = TypeVar("Found")


class Candidate(NamedTuple):
    """A document as the index or store has found it."""

    score: float
    row: int | None
    id: str | None
    title: str
    text: str
    vector: npt.NDArray[np.float32]
    reasons: tuple[Any, ...] = ()  # `weighing.Reason`s, where the index has evidence


class WeighedDocuments(NamedTuple):
    """Documents that are ranked by what they say: search/weighing.py.

    vectors: of all rows, with `rows(numbers)` for some of them. allowed: the rows that pass a filter; None: all.
    best: vectors, k -> the rows of the k best of these. candidates: scores, rows -> the documents.
    """

    evidence: Evidence
    vectors: Any
    allowed: npt.NDArray[np.bool_] | None
    best: "Callable[[QueryVectors, int], Sequence[int]]"
    candidates: "Callable[[list[float], list[int]], list[Candidate]]"


class DocumentSearch:
    """An index or a store, and how it is asked.

    device: where torch ranks the documents of an index; None: numpy does, which takes longer for many queries and is
    imported in a tenth of torch's time.
    """

    def __init__(self, index: "Index | VectorStore", device: Any):
        self.index, self.device = index, device
        self._words: tuple[Any, BM25Index] | None = None  # BM25, and what it was made from: an index or a snapshot

    def find(
        self,
        parts: QueryVectors,
        k: int,
        exclude_above: float | None = None,
        where: str | None = None,
        words: str | None = None,
    ) -> list[Candidate]:
        """The k best documents that pass the filter and are not too near to what is excluded; `words`: BM25's too."""
        index = self.index
        if words is not None:
            return self._fused(parts, k, exclude_above, where, words)
        if isinstance(index, Index) and where is None:
            return _candidates(index, *self.rank(index, parts, k, exclude_above))
        return [
            Candidate(score, None, hit.record.id, hit.record.title, hit.record.text, hit.vector)
            for score, hit in best_in_store(self._store, parts, k, exclude_above, where)
        ]

    def rank(
        self, index: Index, parts: QueryVectors, k: int, exclude_above: float | None = None
    ) -> tuple[list[float], list[int]]:
        """The scores and rows of the k best documents, without those that are too near to what is excluded."""
        if self.device is None:
            return _ranked_by_numpy(index, parts, k, exclude_above)
        import torch

        from boolbert.retrieval.neighbours import best_of, block_size, check_shapes, dot_products, top_k

        device = torch.device(self.device)
        vectors = index.vectors.on(device)
        if exclude_above is None or parts.excluded is None:
            scores, rows = top_k(parts.asked[None], vectors, k, device=device)
            return scores[0].tolist(), rows[0].tolist()
        check_shapes(parts.asked[None], vectors, k)
        wanted, unwanted = (torch.from_numpy(part[None]).to(device) for part in (parts.asked, parts.excluded))
        score, excluded = dot_products(wanted, vectors), dot_products(unwanted, vectors)

        def allowed(start: int, end: int) -> torch.Tensor:
            return score(start, end).masked_fill(excluded(start, end) > exclude_above, -math.inf)

        scores, rows = best_of(allowed, len(index), k, block=block_size(wanted, vectors))
        kept = np.isfinite(scores[0])
        return scores[0][kept].tolist(), rows[0][kept].tolist()

    @property
    def vectors(self) -> tuple[Any, npt.NDArray[np.int64]]:
        """The documents' vectors, and the rows that count; none where they are not on this machine."""
        if isinstance(self.index, Index):
            return self.index.vectors, np.arange(len(self.index))
        if not self.index.about().evidence:
            return None, np.empty(0, np.int64)
        now = self.index.local().snapshot()
        return now, np.flatnonzero(now.live)

    def weighed(self, where: str | None, rank: "Callable[[WeighedDocuments], Found]") -> "Found":
        """What `rank` makes of the documents that pass the filter, where there is evidence."""
        index = self.index
        if not isinstance(index, Index) or where is not None:
            store = self._store
            return store.local().read(lambda now: rank(_weighed_in_store(store, now, where)))
        assert index.evidence is not None

        def best(parts: QueryVectors, k: int) -> "Sequence[int]":
            return self.rank(index, parts, k)[1]

        return rank(WeighedDocuments(index.evidence, index.vectors, None, best, partial(_candidates, index)))

    @cached_property
    def _store(self) -> "VectorStore":
        """The store; an index as one, which knows the documents' fields."""
        if not isinstance(self.index, Index):
            return self.index
        from boolbert.retrieval.stores import FileStore

        return FileStore(self.index.folder)

    def _fused(
        self, parts: QueryVectors, k: int, exclude_above: float | None, where: str | None, words: str
    ) -> list[Candidate]:
        """The k best documents of the vectors' and the words' rankings together."""
        from boolbert.retrieval.hybrid import DEPTH, fuse

        index = self.index
        vectors: Any
        if isinstance(index, Index) and where is None:
            depth = min(max(k, DEPTH), len(index))
            close, vectors = self.rank(index, parts, depth, exclude_above)[1], index.vectors
            holding = self._bm25(index, index.documents()).top_k([words], depth)[0].tolist()
            candidates = partial(_candidates, index)
        else:
            from boolbert.retrieval.stores import FileStore
            from boolbert.retrieval.stores.where import fitted_filter

            store = self._store
            if not isinstance(store, FileStore):
                raise RetrievalError(
                    f"{store.name}: hybrid search needs a folder, since BM25 reads all of its documents"
                )
            vectors = now = store.snapshot()
            depth = min(max(k, DEPTH), len(now))
            found = best_in_store(store, parts, depth, exclude_above, where)
            close = [now.row_of[hit.record.id] for _, hit in found if hit.record.id in now.row_of]
            documents = (document for segment in now.segments for document in segment.index.documents())
            ranked = self._bm25(now, documents).top_k([words], len(now))[0].tolist()
            allowed = now.allowed(fitted_filter(where, now.about.fields))
            holding = [row for row in ranked if row >= 0 and allowed[row]][:depth]
            candidates = partial(_candidates_in_store, now)
        holding = far_enough([row for row in holding if row >= 0], vectors, parts, exclude_above)
        (scores,), (rows,) = fuse([[close], [holding]], k)
        return candidates(scores[rows >= 0].tolist(), rows[rows >= 0].tolist())

    def _bm25(self, source: Any, documents: "Iterable[Document]") -> "BM25Index":
        """BM25 over the documents of an index or a snapshot, made when it is first asked."""
        known = self._words  # which other threads may replace
        if known is None or known[0] is not source:
            from boolbert.retrieval.bm25 import BM25Index

            known = self._words = (source, BM25Index(document.text for document in documents))
        return known[1]


def _candidates(index: Index, scores: list[float], rows: list[int]) -> list[Candidate]:
    return [
        Candidate(score, row, None, document.title, document.text, _vector(index.vectors, row))
        for score, row, document in zip(scores, rows, index.at(rows), strict=True)
    ]


def _candidates_in_store(now: "Snapshot", scores: list[float], rows: list[int]) -> list[Candidate]:
    candidates = []
    for score, row in zip(scores, rows, strict=True):
        record = now.full_record(row)
        candidates.append(Candidate(score, None, record.id, record.title, record.text, _vector(now, row)))
    return candidates


def _weighed_in_store(store: "VectorStore", now: "Snapshot", where: str | None) -> WeighedDocuments:
    """The documents of a store that pass the filter. Its own search finds the best of them by vectors."""
    from boolbert.retrieval.stores import FileStore
    from boolbert.retrieval.stores.where import fitted_filter

    allowed = now.allowed(fitted_filter(where, now.about.fields))

    def best(parts: QueryVectors, k: int) -> list[int]:
        if isinstance(store, FileStore):
            return _best_rows(store, now, parts, k, allowed)
        ids = (hit.record.id for _, hit in best_in_store(store, parts, k, None, where))
        return [now.row_of[id] for id in ids if id in now.row_of]

    return WeighedDocuments(now.evidence, now, allowed, best, partial(_candidates_in_store, now))


def best_in_store(
    store: "VectorStore", parts: QueryVectors, k: int, exclude_above: float | None, where: str | None
) -> "list[tuple[float, StoreHit]]":
    """The k best documents of a store, which knows nothing of what is excluded, with their scores."""
    from boolbert.retrieval.penalty import ask_deeper

    def look(_: "Sequence[int]", depth: int) -> "list[tuple[list[StoreHit], list[float], float | None]]":
        found = store.search(parts.fetched_by[None], depth, where)[0]
        vectors = np.array([hit.vector for hit in found], dtype=np.float32).reshape(len(found), parts.wanted.shape[-1])
        is_near = parts.is_near_excluded(vectors, exclude_above)
        scores = parts.scores(vectors) if parts.rows is not None and found else [hit.score for hit in found]
        kept = [(hit, float(score)) for hit, score, near in zip(found, scores, is_near, strict=True) if not near]
        bound = None if len(found) < depth else found[-1].score
        return [([hit for hit, _ in kept], [score for _, score in kept], bound)]

    return ask_deeper(look, 1, k, _first_depth(parts, k), DEEPEST)[0]


def _best_rows(
    store: "FileStore", now: "Snapshot", parts: QueryVectors, k: int, allowed: npt.NDArray[np.bool_]
) -> list[int]:
    """The rows of the k best documents of a store on this machine; no document is read."""
    from boolbert.retrieval.penalty import ask_deeper

    def look(_: "Sequence[int]", depth: int) -> list[tuple[list[int], list[float], float | None]]:
        products, found = store.best_rows(now, parts.fetched_by, depth, allowed)  # (K, depth) each
        is_there = (found >= 0) & np.isfinite(products)
        rows = np.unique(found[is_there])
        bound = float(products[:, -1].max()) if is_there.all() and found.shape[1] == depth else None
        return [(rows.tolist(), parts.scores(now.rows(rows)).tolist() if len(rows) else [], bound)]

    return [row for _, row in ask_deeper(look, 1, k, _first_depth(parts, k), DEEPEST)[0]]


def _first_depth(parts: QueryVectors, k: int) -> int:
    """How many documents a store is asked for at first, which knows nothing of what is excluded."""
    return k if parts.excluded is None else max(k, min(max(4 * k, LEAST_DEPTH), DEEPEST))


def _ranked_by_numpy(
    index: Index, parts: QueryVectors, k: int, exclude_above: float | None
) -> tuple[list[float], list[int]]:
    scores = np.empty(len(index), np.float32)
    for start in range(0, len(index), BLOCK):
        block = index.vectors[start : start + BLOCK].astype(np.float32, copy=False)
        near = parts.is_near_excluded(block, exclude_above)
        scores[start : start + BLOCK] = np.where(near, -np.inf, parts.scores(block))
    if np.isnan(scores).any():
        raise RetrievalError(f"{index.folder}: its vectors hold NaN; index again")
    best = np.argsort(-scores, kind="stable")[:k]  # ties by the lower row
    best = best[scores[best] > -np.inf]
    return scores[best].tolist(), best.tolist()


def far_enough(rows: list[int], vectors: Any, parts: QueryVectors, exclude_above: float | None) -> list[int]:
    """The rows that are not too near to what is excluded."""
    return [row for row in rows if not parts.is_near_excluded(_vector(vectors, row)[None], exclude_above)[0]]


def _vector(vectors: Any, row: int) -> npt.NDArray[np.float32]:
    return vectors[row : row + 1][0].astype(np.float32)
