"""nDCG@K: the discounted gain of the gold documents in the top K, over the best there could be."""

from boolbert.eval.metrics import ranking_metric
from boolbert.retrieval import ranking


class NDCGAtK(ranking_metric.RankingMetric):
    """
    >>> import evaluate
    >>> metric = evaluate.load(__file__)
    >>> metric.compute(predictions=[["b", "a"]], references=[["b"]], k=10)["ndcg_at_k"]
    1.0
    """

    metric = "ndcg_at_k"
    description = __doc__ or ""
    arguments = "    k: how many ranked documents count.\n"

    def values(self, rows, gold, k=10):
        return ranking.ndcg_at_k(rows, gold, k)
