"""Violation rate: the share of the top R (R: how much gold there is) that the query's operators exclude."""

from boolbert.eval.metrics import ranking_metric
from boolbert.retrieval import ranking


class ViolationRate(ranking_metric.RankingMetric):
    """
    >>> import evaluate
    >>> metric = evaluate.load(__file__)
    >>> metric.compute(predictions=[["a", "b"]], references=[["b", "c"]], excluded=[["a"]])["violation_rate"]
    0.5
    """

    metric = "violation_rate"
    description = __doc__ or ""
    arguments = "    excluded: for each query the ids of the documents that its operators exclude.\n"
    extra = ("excluded",)

    def values(self, rows, gold, excluded):
        return ranking.violation_rate(rows, excluded, gold)
