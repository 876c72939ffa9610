"""MRecall@K: the share of queries all of whose gold documents stand in the top K."""

from boolbert.eval.metrics import ranking_metric
from boolbert.retrieval import ranking


class MRecallAtK(ranking_metric.RankingMetric):
    """
    >>> import evaluate
    >>> metric = evaluate.load(__file__)
    >>> metric.compute(predictions=[["a", "b"]], references=[["b", "c"]], k=2)["mrecall_at_k"]
    0.0
    """

    metric = "mrecall_at_k"
    description = __doc__ or ""
    arguments = "    k: how many ranked documents count.\n"

    def values(self, rows, gold, k=100):
        return ranking.mrecall_at_k(rows, gold, k)
