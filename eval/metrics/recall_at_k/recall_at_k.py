"""Recall@K: the share of a query's gold documents that stand in the top K."""

from boolbert.eval.metrics import ranking_metric
from boolbert.retrieval import ranking


class RecallAtK(ranking_metric.RankingMetric):
    """
    >>> import evaluate
    >>> metric = evaluate.load(__file__)
    >>> metric.compute(predictions=[["a", "b"]], references=[["b", "c"]], k=2)["recall_at_k"]
    0.5
    """

    metric = "recall_at_k"
    description = __doc__ or ""
    arguments = "    k: how many ranked documents count.\n"

    def values(self, rows, gold, k=100):
        return ranking.recall_at_k(rows, gold, k)
