"""Approximate nearest neighbours with FAISS, and how much of the exact result they are."""

from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.errors import RetrievalError, optional
from boolbert.retrieval.neighbours import DOCUMENT_BLOCK, Ranked, Scores, Vectors, check_shapes, merge_vectors, top_k

TRAINING_VECTORS = 100_000


class FaissIndex:
    """Document vectors in an index that FAISS's own description names, such as "HNSW32,Flat"."""

    def __init__(self, documents: Vectors, factory: str = "HNSW32,Flat"):
        faiss = optional("faiss", "faiss", "eval")
        self.documents = documents
        try:
            self._index: Any = faiss.index_factory(documents.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
        except RuntimeError as error:
            reason = str(error).splitlines()[0][:200]
            raise RetrievalError(f"--faiss {factory!r}: no index of FAISS: {reason}") from None
        if not self._index.is_trained:
            self._index.train(np.array(documents[:TRAINING_VECTORS], dtype=np.float32))
        for start in range(0, len(documents), DOCUMENT_BLOCK):
            self._index.add(np.array(documents[start : start + DOCUMENT_BLOCK], dtype=np.float32))

    def search(self, queries: npt.NDArray[np.float32], k: int) -> tuple[Scores, Ranked]:
        """The documents of the highest dot product, best first; where fewer are found than k, the last rows are -1."""
        check_shapes(queries, self.documents, k)
        count, size = min(k, len(self.documents)), queries.shape[-1]
        scores, rows = self._index.search(np.ascontiguousarray(queries.reshape(-1, size), np.float32), count)
        rows = rows.astype(np.int64)
        if queries.ndim == 2:
            return scores, rows
        shape = (len(queries), queries.shape[1], count)
        return merge_vectors(scores.reshape(shape), rows.reshape(shape))


def recall_of_exact(
    rows: Ranked, queries: npt.NDArray[np.float32], documents: Vectors, device: Any = None
) -> npt.NDArray[np.float64]:
    """For each query the share of the exact top k that stands in `rows` (Q, k)."""
    _, exact = top_k(queries, documents, rows.shape[1], device=device)
    shared = [len(np.intersect1d(found, best)) for found, best in zip(rows, exact, strict=True)]
    return np.array(shared, dtype=np.float64) / exact.shape[1]
