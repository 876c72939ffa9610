"""R-precision: the share of gold in the top R, R being how much gold the query has."""

from boolbert.eval.metrics import ranking_metric
from boolbert.retrieval import ranking


class RPrecision(ranking_metric.RankingMetric):
    """
    >>> import evaluate
    >>> metric = evaluate.load(__file__)
    >>> metric.compute(predictions=[["a", "b"]], references=[["b", "c"]])["r_precision"]
    0.5
    """

    metric = "r_precision"
    description = __doc__ or ""

    def values(self, rows, gold):
        return ranking.r_precision(rows, gold)
