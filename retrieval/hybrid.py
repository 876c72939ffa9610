"""Rankings fused by reciprocal ranks: the words of BM25 beside the meaning of vectors."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from boolbert.retrieval.ranking import Ranked, Scores

DEPTH = 1000  # documents of each ranking that are fused
CONSTANT = 60  # of reciprocal rank fusion, as in its paper (Cormack et al. 2009)


def fuse(rankings: Sequence[npt.ArrayLike], k: int) -> tuple[Scores, Ranked]:
    """The k best documents by the sum of 1 / (CONSTANT + rank) over several rankings (Q, any), where -1 is padding.

    These sums and the rows, (Q, k) each.

    >>> fuse([[[7, 8, 9]], [[9, 7, -1]]], k=3)[1]
    array([[7, 9, 8]])
    """
    ranked = [np.asarray(rows, dtype=np.int64) for rows in rankings]
    rows = np.concatenate(ranked, axis=1)
    gains = np.concatenate([1.0 / (CONSTANT + 1 + np.arange(part.shape[1])) for part in ranked])
    fused = np.full((len(rows), k), -1, dtype=np.int64)
    sums = np.zeros((len(rows), k), dtype=np.float32)
    for query, of_query in enumerate(rows):
        real = of_query >= 0
        found, place = np.unique(of_query[real], return_inverse=True)
        scores = np.bincount(place, weights=gains[real], minlength=len(found))
        best = np.lexsort((found, -scores))[:k]
        fused[query, : len(best)], sums[query, : len(best)] = found[best], scores[best]
    return sums, fused
