"""Every metric against an obvious loop over Python sets."""

import math

import numpy as np
import pytest

from boolbert.retrieval import ranking

K = 5


def random_runs(seed, queries=40, documents=30, width=12):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.permutation(documents)[:width] for _ in range(queries)])
    rows[rng.random(rows.shape) < 0.02] = -1
    gold = [set(rng.choice(documents, size=rng.integers(0, 9), replace=False).tolist()) for _ in range(queries)]
    for row in range(0, queries, 4):  # found by chance, gold hardly ever fills the first ones
        rows[row] = sorted(rows[row].tolist(), key=lambda one: one not in gold[row])
        rows[row, : len(gold[row])] = list(gold[row])
    excluded = [set(range(documents)) - some if index % 3 else set() for index, some in enumerate(gold)]
    return rows, gold, excluded


def slow_ndcg(ranked, gold, k):
    gain = sum(1 / math.log2(place + 2) for place, row in enumerate(ranked[:k]) if row in gold)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(k, len(gold))))


SLOW = {
    "recall_at_k": lambda ranked, gold: len(set(ranked[:K]) & gold) / len(gold),
    "mrecall_at_k": lambda ranked, gold: float(len(set(ranked[:K]) & gold) >= min(K, len(gold))),
    "accuracy_at_k": lambda ranked, gold: float(bool(set(ranked[:K]) & gold)),
    "mrr_at_k": lambda ranked, gold: max(
        [1 / (place + 1) for place, row in enumerate(ranked[:K]) if row in gold] + [0]
    ),
    "ndcg_at_k": lambda ranked, gold: slow_ndcg(ranked, gold, K),
}


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("seed", range(3))
def test_metrics_at_k(name, seed):
    rows, gold, _ = random_runs(seed)
    values = getattr(ranking, name)(rows, gold, K)
    wanted = [SLOW[name](list(ranked), some) if some else math.nan for ranked, some in zip(rows, gold, strict=True)]
    np.testing.assert_allclose(values, wanted)


def test_r_precision_and_violations():
    rows, gold, excluded = random_runs(5)
    tops = [list(ranked[: len(some)]) for ranked, some in zip(rows, gold, strict=True)]
    wanted = [len(set(top) & some) / len(some) if some else math.nan for top, some in zip(tops, gold, strict=True)]
    np.testing.assert_allclose(ranking.r_precision(rows, gold), wanted)
    wanted = [
        len(set(top) & out) / len(some) if some and out else math.nan
        for top, some, out in zip(tops, gold, excluded, strict=True)
    ]
    np.testing.assert_allclose(ranking.violation_rate(rows, excluded, gold), wanted)


def test_gold_may_be_arrays_and_rows_shorter_than_k():
    gold = [np.array([1, 2], dtype=np.int32), np.empty(0, dtype=np.int32)]
    assert ranking.recall_at_k(np.array([[1], [1]]), gold, 100).tolist()[0] == 0.5
    assert np.isnan(ranking.recall_at_k(np.array([[1], [1]]), gold, 100)[1])
    assert not ranking.hits(np.array([[-1], [-1]]), gold).any()


@pytest.mark.parametrize(
    ("rows", "gold", "message"),
    [([[0, 1]], [{0}, {1}], "rankings for 1 queries, but gold for 2"), ([[0.5]], [{0}], "whole numbers")],
)
def test_wrong_shapes(rows, gold, message):
    with pytest.raises(ValueError, match=message):
        ranking.recall_at_k(rows, gold, 1)
