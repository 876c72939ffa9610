"""Pairwise accuracy, as in NevIR: the share of pairs of queries in which each prefers its own of two documents."""

import datasets
import evaluate

from boolbert.eval.metrics import ranking_metric
from boolbert.retrieval import ranking

INPUTS = """
Args:
    predictions: for each query of a pair its scores for the first and the second document, [[s11, s12], [s21, s22]].
"""


class PairwiseAccuracy(evaluate.Metric):
    """
    >>> metric = evaluate.load(__file__)
    >>> metric.compute(predictions=[[[0.9, 0.1], [0.2, 0.3]], [[0.9, 0.1], [0.9, 0.1]]])["pairwise_accuracy"]
    0.5
    """

    def _info(self):
        scores = datasets.Sequence(datasets.Sequence(datasets.Value("float64")))
        return evaluate.MetricInfo(
            description=__doc__ or "",
            citation="",
            inputs_description=INPUTS + ranking_metric.RETURNS,
            features=datasets.Features({"predictions": scores}),
        )

    def _compute(self, predictions):
        return ranking_metric.as_result("pairwise_accuracy", ranking.pairwise_accuracy(predictions))
