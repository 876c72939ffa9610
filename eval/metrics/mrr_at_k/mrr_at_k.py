"""MRR@K: the mean of 1 / the rank of the first gold document, 0 beyond K."""

from boolbert.eval.metrics import ranking_metric
from boolbert.retrieval import ranking


class MRRAtK(ranking_metric.RankingMetric):
    """
    >>> import evaluate
    >>> metric = evaluate.load(__file__)
    >>> metric.compute(predictions=[["a", "b"]], references=[["b", "c"]], k=10)["mrr_at_k"]
    0.5
    """

    metric = "mrr_at_k"
    description = __doc__ or ""
    arguments = "    k: how many ranked documents count.\n"

    def values(self, rows, gold, k=10):
        return ranking.mrr_at_k(rows, gold, k)
