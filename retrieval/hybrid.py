"""BM25 that obeys NOT, and rankings fused by reciprocal ranks: the words of BM25 beside the meaning of vectors."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from boolbert.boolean.decompose import parsed_parts
from boolbert.retrieval.bm25 import BM25Index
from boolbert.retrieval.neighbours import Ranked, Scores

Obedience = Literal["none", "wanted"]  # what BM25 does about excluded words: nothing, or leave them out of the query
DEPTH = 1000  # documents of each ranking that are fused
CONSTANT = 60  # of reciprocal rank fusion, as in its paper (Cormack et al. 2009)


def fuse(rankings: Sequence[npt.ArrayLike], k: int) -> Ranked:
    """The k best documents (Q, k) by the sum of 1 / (CONSTANT + rank) over several rankings (Q, any); -1 is padding.

    >>> fuse([[[7, 8, 9]], [[9, 7, -1]]], k=3)
    array([[7, 9, 8]])
    """
    return fuse_scored(rankings, k)[1]


def fuse_scored(rankings: Sequence[npt.ArrayLike], k: int) -> tuple[Scores, Ranked]:
    """The same with the sums: scores and rows (Q, k), best first."""
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


def wanted_words(query: str) -> tuple[str, list[str]]:
    """A query without what it excludes, and the texts that it excludes.

    >>> wanted_words("birds of Peru but not of Brazil")
    ('birds of Peru', ['of Brazil'])
    """
    parts = parsed_parts(query)
    excluded = [part.text for part in parts if part.operator == "not"]
    return " ".join(part.text for part in parts if part.operator != "not") or query, excluded


class WordSearch:
    """BM25 over texts, which can obey NOT."""

    def __init__(self, texts: Sequence[str], obedience: Obedience = "wanted"):
        self.index = BM25Index(texts)
        self.obedience = obedience

    def top_k(self, queries: Sequence[str], k: int) -> Ranked:
        """The k best documents of each query (Q, k); -1 where no other document shares a word with it."""
        k = min(k, len(self.index))
        result = np.full((len(queries), k), -1, dtype=np.int64)
        for row, query in enumerate(queries):
            scores = self.scores(query)
            best = np.argpartition(-scores, k - 1)[:k]
            best = best[np.lexsort((best, -scores[best]))]
            found = best[scores[best] > -np.inf]
            result[row, : len(found)] = found
        return result

    def scores(self, query: str) -> npt.NDArray[np.float64]:
        """The scores of all documents; -inf where one is not to be found."""
        scores = self.index.scores(query if self.obedience == "none" else wanted_words(query)[0]).astype(np.float64)
        scores[scores <= 0] = -np.inf
        return scores
