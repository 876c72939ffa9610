"""Ranking metrics on rows: (Q, k) ranked documents, best first, against each query's gold. One value per query.

`rows` may be padded with -1, and `gold` is a sequence of collections of rows, such as `boolbert.data.Gold`. A query
without gold has no value: NaN, which an average has to leave out (`numpy.nanmean`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]
Ranked = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
RowSets = Sequence[Any]  # each a collection of row numbers


def hits(rows: npt.ArrayLike, gold: RowSets) -> npt.NDArray[np.bool_]:
    """Which ranked documents are gold.

    >>> hits([[3, 1, -1], [0, 2, 1]], [{1, 7}, []])
    array([[False,  True, False],
           [False, False, False]])
    """
    ranked = _ranked(rows, gold)
    found = [np.isin(of_query, list(wanted)) for of_query, wanted in zip(ranked, gold, strict=True)]
    return np.array(found, dtype=np.bool_).reshape(ranked.shape)


def recall_at_k(rows: npt.ArrayLike, gold: RowSets, k: int) -> Values:
    """The share of the gold that stands in the top k.

    >>> recall_at_k([[3, 1, 2]], [{1, 7}], k=2)
    array([0.5])
    """
    return _share(hits(rows, gold)[:, :k].sum(axis=1), sizes(gold))


def mrecall_at_k(rows: npt.ArrayLike, gold: RowSets, k: int) -> Values:
    """1 where all gold stands in the top k (where there is more gold than k: where all k are gold), else 0.

    >>> mrecall_at_k([[3, 1, 2], [3, 1, 2]], [{1, 3}, {1, 7}], k=2)
    array([1., 0.])
    """
    count = sizes(gold)
    return _defined(hits(rows, gold)[:, :k].sum(axis=1) >= np.minimum(count, k), count)


def accuracy_at_k(rows: npt.ArrayLike, gold: RowSets, k: int) -> Values:
    """1 where any gold stands in the top k, else 0.

    >>> accuracy_at_k([[3, 1, 2]], [{1, 7}], k=1)
    array([0.])
    """
    return _defined(hits(rows, gold)[:, :k].any(axis=1), sizes(gold))


def mrr_at_k(rows: npt.ArrayLike, gold: RowSets, k: int = 10) -> Values:
    """1 / the rank of the first gold document, 0 beyond k.

    >>> mrr_at_k([[3, 1, 2]], [{1, 7}])
    array([0.5])
    """
    found = hits(rows, gold)[:, :k]
    ranks = 1.0 / np.arange(1, found.shape[1] + 1)
    return _defined((found * ranks).max(axis=1, initial=0.0), sizes(gold))


def r_precision(rows: npt.ArrayLike, gold: RowSets) -> Values:
    """The share of gold in the top R, R being how much gold there is; `rows` must reach that far.

    >>> r_precision([[3, 1, 2]], [{1, 7}])
    array([0.5])
    """
    count = sizes(gold)
    return _share((hits(rows, gold) & _top_r(rows, count)).sum(axis=1), count)


def ndcg_at_k(rows: npt.ArrayLike, gold: RowSets, k: int = 10) -> Values:
    """Discounted gain of the gold in the top k over that of the best order there could be.

    >>> ndcg_at_k([[1, 3, 7]], [{1, 7}]).round(4)
    array([0.9197])
    """
    found = hits(rows, gold)[:, :k]
    count = sizes(gold)
    best = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2, k + 2)))])
    gain = found @ (1.0 / np.log2(np.arange(2, found.shape[1] + 2)))
    return _share(gain, best[np.minimum(count, k)])


def violation_rate(rows: npt.ArrayLike, excluded: RowSets, gold: RowSets) -> Values:
    """The share of the top R (as many as there is gold) that is excluded; NaN where a query excludes nothing.

    >>> violation_rate([[3, 1, 2], [3, 1, 2]], excluded=[{3}, []], gold=[{1, 7}, {1, 7}])
    array([0.5, nan])
    """
    count = sizes(gold)
    broken = (hits(rows, excluded) & _top_r(rows, count)).sum(axis=1)
    return np.where(sizes(excluded) > 0, _share(broken, count), np.nan)


def pairwise_accuracy(scores: npt.ArrayLike) -> Values:
    """NevIR's measure on (P, 2, 2) scores of two queries by their two documents: 1 where each prefers its own.

    >>> pairwise_accuracy([[[0.9, 0.1], [0.2, 0.3]], [[0.9, 0.1], [0.9, 0.1]]])
    array([1., 0.])
    """
    pairs = np.asarray(scores, dtype=np.float64).reshape(-1, 2, 2)
    return ((pairs[:, 0, 0] > pairs[:, 0, 1]) & (pairs[:, 1, 1] > pairs[:, 1, 0])).astype(np.float64)


def sizes(gold: RowSets) -> npt.NDArray[np.int64]:
    """How many different rows each collection holds."""
    return np.array([len(set(map(int, rows_of_one))) for rows_of_one in gold], dtype=np.int64)


def _ranked(rows: npt.ArrayLike, gold: RowSets) -> Ranked:
    ranked = np.asarray(rows)
    if ranked.ndim != 2 or (ranked.size and not np.issubdtype(ranked.dtype, np.integer)):
        raise ValueError(f"rows must be whole numbers of shape (queries, k), got {ranked.dtype} {ranked.shape}")
    if len(ranked) != len(gold):
        raise ValueError(f"there are rankings for {len(ranked)} queries, but gold for {len(gold)}")
    return ranked.astype(np.int64)


def _top_r(rows: npt.ArrayLike, count: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return np.arange(np.shape(rows)[1])[None, :] < count[:, None]


def _share(found: npt.NDArray[Any], total: npt.NDArray[Any]) -> Values:
    """found / total, NaN where total is 0."""
    return np.divide(found, total, out=np.full(len(total), np.nan), where=total > 0)


def _defined(values: Any, count: npt.NDArray[np.int64]) -> Values:
    return np.where(count > 0, np.asarray(values, dtype=np.float64), np.nan)
