"""Approximate search with FAISS, and how much of the exact result it finds."""

import numpy as np
import numpy.typing as npt

from boolbert.errors import EvaluationError, optional
from boolbert.retrieval.neighbours import DOCUMENT_BLOCK, Ranked, Scores, Vectors, check_shapes, top_k

TRAINING_VECTORS = 100_000


def faiss_top_k(
    queries: npt.NDArray[np.float32], documents: Vectors, k: int, factory: str = "HNSW32,Flat"
) -> tuple[Scores, Ranked]:
    """The documents of the highest dot product by an index of FAISS's own description; rows it lacks are -1."""
    faiss = optional("faiss", "faiss", "eval")
    check_shapes(queries, documents, k)
    try:
        index = faiss.index_factory(documents.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise EvaluationError(f"--faiss {factory!r}: no index of FAISS: {str(error).splitlines()[0][:200]}") from None
    if not index.is_trained:
        index.train(np.array(documents[:TRAINING_VECTORS], dtype=np.float32))
    for start in range(0, len(documents), DOCUMENT_BLOCK):
        index.add(np.array(documents[start : start + DOCUMENT_BLOCK], dtype=np.float32))
    scores, rows = index.search(np.ascontiguousarray(queries, dtype=np.float32), min(k, len(documents)))
    return scores, rows.astype(np.int64)


def recall_of_exact(rows: Ranked, queries: npt.NDArray[np.float32], documents: Vectors) -> float:
    """The share of the exact top k that an approximate search found."""
    _, exact = top_k(queries, documents, rows.shape[1])
    shared = [len(np.intersect1d(mine, theirs)) for mine, theirs in zip(rows, exact, strict=True)]
    return float(np.mean(shared) / exact.shape[1])
