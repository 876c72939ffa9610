# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Ranking metrics for Boolean queries, as a module of the `evaluate` library. Their formulas: `retrieval/ranking.py`.

metric = evaluate.load("eval/boolean_ranking.py", "recall_at_k")
metric.compute(predictions=[["a", "b"]], references=[["b", "c"]], k=2)["recall_at_k"]
"""

from collections import defaultdict
from itertools import count
from typing import Any

import datasets
import evaluate

from boolbert.eval.significance import bootstrap
from boolbert.retrieval import ranking

OF_TOP_K = ("recall_at_k", "mrecall_at_k", "accuracy_at_k", "mrr_at_k", "ndcg_at_k")
METRICS = (*OF_TOP_K, "r_precision", "violation_rate", "pairwise_accuracy")
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
            description=getattr(ranking, self.config_name).__doc__.splitlines()[0],
            citation="",
            inputs_description=(PAIR_INPUTS if pairs else RANKING_INPUTS) + RETURNS,
            features=datasets.Features({"predictions": scores} if pairs else dict.fromkeys(names, ids)),
        )

    def _compute(self, predictions: Any, references: Any = (), excluded: Any = (), k: int = 10) -> dict[str, Any]:
        name, row_of = self.config_name, defaultdict[str, int](count().__next__)
        if name != "pairwise_accuracy":
            longest = max(map(len, predictions), default=0)
            for query, ids in enumerate(predictions):
                if len(set(ids)) < len(ids):
                    twice = next(document for document in ids if ids.count(document) > 1)
                    raise ValueError(f"predictions of query {query} name the document {twice!r} twice")
            predictions = [[*(row_of[one] for one in ids), *[-1] * (longest - len(ids))] for ids in predictions]
        sets = [[[row_of[one] for one in ids] for ids in each] for each in (excluded, references) if each]
        values = getattr(ranking, name)(predictions, *sets, **({"k": k} if name in OF_TOP_K else {}))
        average = bootstrap({name: values})[name]
        return {name: average.pop("mean"), **average, "per_query": values.tolist()}
