# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Ranking metrics for Boolean queries, as a module of the `evaluate` library.

    metric = evaluate.load("eval/boolean_ranking.py", "recall_at_k")
    metric.compute(predictions=[["a", "b"]], references=[["b", "c"]], k=2)["recall_at_k"]

The second argument names the metric: recall_at_k, mrecall_at_k, accuracy_at_k, mrr_at_k, ndcg_at_k, r_precision,
violation_rate or pairwise_accuracy. This file needs nothing but `evaluate`, `datasets` and `numpy`, so it can be
published on the Hub by itself. A test compares it with boolbert's own metrics.
"""

from collections.abc import Callable, Sequence
from typing import Any

import datasets
import evaluate
import numpy as np

RESAMPLES = 1000
RANKING_INPUTS = """
Args:
    predictions: for each query the ids of the ranked documents (strings), best first, none twice.
    references: for each query the ids of its gold documents.
    k: how many ranked documents count, for the metrics whose name ends in _at_k (10 if not given).
    excluded: only for violation_rate: for each query the ids of the documents that its operators exclude.
"""
PAIR_INPUTS = """
Args:
    predictions: for each pair of queries the scores of two documents, [[s11, s12], [s21, s22]].
"""
RETURNS = """
Returns: the mean under the metric's name; `low` and `high` (bootstrap 95% interval), `queries` (how many have a value)
and `per_query`. A query without gold has no value.
"""
CITATION = """
@inproceedings{malaviya-etal-2023-quest,
    title = {{QUEST}: A Retrieval Dataset of Entity-Seeking Queries with Implicit Set Operations},
    author = {Malaviya, Chaitanya and Shaw, Peter and Chang, Ming-Wei and Lee, Kenton and Toutanova, Kristina},
    booktitle = {ACL},
    year = {2023}
}
"""

Ids = Sequence[str]


def recall_at_k(ranked: Ids, gold: set[str], k: int) -> float:
    """The share of the gold that stands in the top K."""
    return len(gold.intersection(ranked[:k])) / len(gold)


def mrecall_at_k(ranked: Ids, gold: set[str], k: int) -> float:
    """1 where all gold stands in the top K (where there is more gold than K: where all K are gold), else 0."""
    return float(len(gold.intersection(ranked[:k])) >= min(len(gold), k))


def accuracy_at_k(ranked: Ids, gold: set[str], k: int) -> float:
    """1 where any gold stands in the top K, else 0."""
    return float(not gold.isdisjoint(ranked[:k]))


def mrr_at_k(ranked: Ids, gold: set[str], k: int) -> float:
    """1 / the rank of the first gold document, 0 beyond K."""
    return next((1 / rank for rank, document in enumerate(ranked[:k], start=1) if document in gold), 0.0)


def ndcg_at_k(ranked: Ids, gold: set[str], k: int) -> float:
    """Discounted gain of the gold in the top K over that of the best order there could be."""
    gains = 1 / np.log2(np.arange(2, k + 2))
    found = [document in gold for document in ranked[:k]]
    return float(gains[: len(found)] @ np.array(found, dtype=float) / gains[: len(gold)].sum())


def r_precision(ranked: Ids, gold: set[str]) -> float:
    """The share of gold in the top R, R being how much gold the query has."""
    return recall_at_k(ranked, gold, len(gold))


def violation_rate(ranked: Ids, gold: set[str], excluded: set[str]) -> float:
    """The share of the top R (R: how much gold the query has) that the query's operators exclude."""
    return len(excluded.intersection(ranked[: len(gold)])) / len(gold) if excluded else float("nan")


def pairwise_accuracy(scores: Sequence[Sequence[float]]) -> float:
    """As in NevIR: 1 where each of two queries prefers its own of two documents, else 0."""
    (first, second), (third, fourth) = scores
    return float(first > second and fourth > third)


METRICS: dict[str, Callable[..., float]] = {
    function.__name__: function
    for function in (
        recall_at_k,
        mrecall_at_k,
        accuracy_at_k,
        mrr_at_k,
        ndcg_at_k,
        r_precision,
        violation_rate,
        pairwise_accuracy,
    )
}


class BooleanRanking(evaluate.Metric):
    """The metric that the configuration names."""

    def _info(self) -> evaluate.MetricInfo:
        if self.config_name not in METRICS:
            raise ValueError(
                f'name a metric, as in evaluate.load("boolean_ranking", "recall_at_k"): one of {", ".join(METRICS)}; '
                f"got {self.config_name!r}"
            )
        ids = datasets.Sequence(datasets.Value("string"))
        scores = datasets.Sequence(datasets.Sequence(datasets.Value("float64")))
        pairs = self.config_name == "pairwise_accuracy"
        names = ("predictions", "references", *(["excluded"] if self.config_name == "violation_rate" else []))
        return evaluate.MetricInfo(
            description=METRICS[self.config_name].__doc__ or "",
            citation=CITATION,
            inputs_description=(PAIR_INPUTS if pairs else RANKING_INPUTS) + RETURNS,
            features=datasets.Features({"predictions": scores} if pairs else dict.fromkeys(names, ids)),
        )

    def _compute(self, predictions: Any, references: Any = None, excluded: Any = None, k: int = 10) -> dict[str, Any]:
        name = self.config_name
        metric = METRICS[name]
        if name == "pairwise_accuracy":
            return with_interval(name, [metric(scores) for scores in predictions])
        values = []
        for query, (ranked, gold) in enumerate(zip(predictions, references, strict=True)):
            check_ranking(query, ranked)
            options: dict[str, Any] = {"k": k} if name.endswith("_at_k") else {}
            if name == "violation_rate":
                options["excluded"] = set(excluded[query])
            values.append(metric(ranked, set(gold), **options) if gold else float("nan"))
        return with_interval(name, values)


def check_ranking(query: int, ranked: Ids) -> None:
    if len(set(ranked)) != len(ranked):
        twice = next(document for rank, document in enumerate(ranked) if document in ranked[:rank])
        raise ValueError(f"predictions of query {query} name the document {twice!r} twice")


def with_interval(name: str, values: Sequence[float]) -> dict[str, Any]:
    """The mean over the queries that have a value, and the 2.5% and 97.5% quantiles of the means of resampled ones."""
    table = np.array(values, dtype=np.float64)
    known = table[~np.isnan(table)]
    result = {"queries": len(known), "per_query": list(values)}
    if not len(known):
        return {name: float("nan"), "low": float("nan"), "high": float("nan"), **result}
    drawn = np.random.default_rng(0).integers(0, len(known), size=(RESAMPLES, len(known)))
    low, high = np.quantile(known[drawn].mean(axis=1), [0.025, 0.975])
    return {name: float(known.mean()), "low": float(low), "high": float(high), **result}
