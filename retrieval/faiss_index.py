"""Approximate nearest neighbours with FAISS, and which share of the exact result they find."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from boolbert.core.errors import RetrievalError, first_line, optional
from boolbert.core.files import whole_file
from boolbert.retrieval.neighbours import DOCUMENT_BLOCK, Ranked, Scores, Vectors, check_shapes, merge_vectors, top_k
from boolbert.retrieval.penalty import ask_deeper, has_penalty, penalised_scores, wanted_vectors

TRAINING_VECTORS = 100_000
LEAST_DEPTH = 200  # documents whose final scores are computed for a query with a penalty, at least


class FaissIndex:
    """Document vectors in an index that FAISS's own description names, such as "HNSW32,Flat".

    `file`: an index of the first of these documents, which `save` has written; the others are added to it.
    """

    def __init__(self, documents: Vectors, factory: str = "HNSW32,Flat", *, file: Path | None = None):
        faiss = optional("faiss", "faiss", "eval")
        self.documents = documents
        self._index: Any = empty_index(factory, documents.shape[1]) if file is None else _read(faiss, file)
        if self._index.d != documents.shape[1] or self._index.ntotal > len(documents):
            raise RetrievalError(f"{file}: is the FAISS index of other documents")
        if not self._index.is_trained:
            try:
                self._index.train(np.array(documents[:TRAINING_VECTORS], dtype=np.float32))
            except RuntimeError as error:
                few = f"cannot learn from {len(documents):,} documents"
                raise RetrievalError(f"--faiss {factory!r}: {few}: {_reason(error)}") from None
        for start in range(self._index.ntotal, len(documents), DOCUMENT_BLOCK):
            self._index.add(np.array(documents[start : start + DOCUMENT_BLOCK], dtype=np.float32))

    def save(self, file: Path) -> None:
        import faiss

        with whole_file(file) as aside:
            faiss.write_index(self._index, str(aside))

    def set_search(self, settings: str) -> None:
        """FAISS's own settings of a search, such as "nprobe=32" or "efSearch=64"."""
        faiss = import_module("faiss")
        faiss.ParameterSpace().set_index_parameters(self._index, settings)

    def search(
        self, queries: npt.NDArray[np.float32], k: int, allowed: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Scores, Ranked]:
        """The documents of the highest dot product, best first; where fewer are found than k, the last rows are -1.

        `allowed`: the documents that may be found; all if not given.
        """
        check_shapes(queries, self.documents, k)
        if has_penalty(queries, self.documents):
            return self._search_with_penalty(queries, k, allowed)
        count, size = min(k, len(self.documents)), queries.shape[-1]
        options = {} if allowed is None else {"params": _only(self._index, allowed)}
        scores, rows = self._index.search(np.ascontiguousarray(queries.reshape(-1, size), np.float32), count, **options)
        rows = rows.astype(np.int64)
        if queries.ndim == 2:
            return scores, rows
        shape = (len(queries), queries.shape[1], count)
        return merge_vectors(scores.reshape(shape), rows.reshape(shape))

    def _search_with_penalty(
        self, queries: npt.NDArray[np.float32], k: int, allowed: npt.NDArray[np.bool_] | None
    ) -> tuple[Scores, Ranked]:
        """FAISS searches without the penalty; the documents it finds are sorted with it."""

        def look(numbers: Sequence[int], depth: int) -> list[tuple[list[int], list[float], float | None]]:
            asked = queries[list(numbers)]
            looks: list[tuple[list[int], list[float], float | None]] = []
            for query, bounds, rows in zip(asked, *self.search(wanted_vectors(asked), depth, allowed), strict=True):
                found = rows[rows >= 0].tolist()
                scores: list[float] = []
                if found:
                    vectors = np.concatenate([self.documents[row : row + 1] for row in found]).astype(np.float32)
                    scores = penalised_scores(torch.from_numpy(query[None]), torch.from_numpy(vectors))[0].tolist()
                looks.append((found, scores, None if len(found) < depth else float(bounds[-1])))
            return looks

        width, deepest = min(k, len(self.documents)), len(self.documents)
        best = ask_deeper(look, len(queries), width, min(max(2 * k, LEAST_DEPTH), deepest), deepest)
        scores, rows = np.full((len(queries), width), -np.inf, np.float32), np.full((len(queries), width), -1)
        for number, pairs in enumerate(best):
            if pairs:
                scores[number, : len(pairs)], rows[number, : len(pairs)] = zip(*pairs, strict=True)
        return scores, rows


def empty_index(factory: str, size: int) -> Any:
    """An index of FAISS without vectors, by its own description."""
    faiss = optional("faiss", "faiss", "eval")
    try:
        return faiss.index_factory(size, factory, faiss.METRIC_INNER_PRODUCT)
    except (RuntimeError, MemoryError) as error:
        raise RetrievalError(f"--faiss {factory!r}: no index of FAISS: {_reason(error)}") from None


def _read(faiss: Any, file: Path) -> Any:
    try:
        return faiss.read_index(str(file))
    except (RuntimeError, MemoryError) as error:
        raise RetrievalError(f"{file}: cannot be read by FAISS: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """FAISS's own words, without the place in its code that stands before them."""
    return first_line(error).rsplit(": ", 1)[-1][:200]


def _only(index: Any, allowed: npt.NDArray[np.bool_]) -> Any:
    """FAISS's parameters of a search among these rows. They replace all of the index's own, so these are repeated."""
    faiss = import_module("faiss")
    selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
    inside = faiss.downcast_index(index)
    if isinstance(inside, faiss.IndexPreTransform):
        inner = faiss.downcast_index(inside.index)
        return faiss.SearchParametersPreTransform(index_params=_only(inner, allowed))
    if isinstance(inside, faiss.IndexHNSW):
        return faiss.SearchParametersHNSW(sel=selector, efSearch=inside.hnsw.efSearch)
    if isinstance(inside, faiss.IndexIVF):
        return faiss.SearchParametersIVF(sel=selector, nprobe=inside.nprobe)
    return faiss.SearchParameters(sel=selector)


def recall_of_exact(
    rows: Ranked, queries: npt.NDArray[np.float32], documents: Vectors, device: Any = None
) -> npt.NDArray[np.float64]:
    """For each query the share of the exact top k that stands in `rows` (Q, k)."""
    _, exact = top_k(queries, documents, rows.shape[1], device=device)
    shared = [len(np.intersect1d(found, best)) for found, best in zip(rows, exact, strict=True)]
    return np.array(shared, dtype=np.float64) / exact.shape[1]
