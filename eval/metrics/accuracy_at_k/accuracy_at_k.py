"""Accuracy@K: the share of queries with any gold document in the top K."""

from boolbert.eval.metrics import ranking_metric
from boolbert.retrieval import ranking


class AccuracyAtK(ranking_metric.RankingMetric):
    """
    >>> import evaluate
    >>> metric = evaluate.load(__file__)
    >>> metric.compute(predictions=[["a", "b"]], references=[["b", "c"]], k=2)["accuracy_at_k"]
    1.0
    """

    metric = "accuracy_at_k"
    description = __doc__ or ""
    arguments = "    k: how many ranked documents count.\n"

    def values(self, rows, gold, k=10):
        return ranking.accuracy_at_k(rows, gold, k)
