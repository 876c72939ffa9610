"""What the ranking modules share: ranked ids a query in, an average with its 95% interval out."""

from collections.abc import Callable, Sequence
from typing import Any

import datasets
import evaluate
import numpy as np
import numpy.typing as npt

from boolbert.eval.significance import bootstrap
from boolbert.retrieval.ranking import Values

KWARGS = """
Args:
    predictions: for each query the ids of the ranked documents (strings), best first, none twice.
    references: for each query the ids of its gold documents.
"""
RETURNS = """
Returns: the mean under the metric's name, and `low`, `high` (bootstrap 95% interval), `queries` (how many have gold)
and `per_query`.
"""
CITATION = """
@inproceedings{malaviya-etal-2023-quest,
    title = {{QUEST}: A Retrieval Dataset of Entity-Seeking Queries with Implicit Set Operations},
    author = {Malaviya, Chaitanya and Shaw, Peter and Chang, Ming-Wei and Lee, Kenton and Toutanova, Kristina},
    booktitle = {ACL},
    year = {2023}
}
"""


class RankingMetric(evaluate.Metric):
    """A metric on rankings; a module names it, describes it and gives `values`."""

    metric = ""
    description = ""
    arguments = ""
    extra: Sequence[str] = ()  # more collections of ids a query, beside the references
    values: Callable[..., Values]  # (rows, gold, and what else the metric takes) -> one value a query

    def _info(self) -> evaluate.MetricInfo:
        ids = datasets.Sequence(datasets.Value("string"))
        return evaluate.MetricInfo(
            description=self.description,
            citation=CITATION,
            inputs_description=KWARGS + self.arguments + RETURNS,
            features=datasets.Features(dict.fromkeys(("predictions", "references", *self.extra), ids)),
        )

    def _compute(self, predictions: Any, references: Any, **options: Any) -> dict[str, Any]:
        number: dict[str, int] = {}
        rows = ranked_rows(predictions, number)
        sets = {name: _rows(options.pop(name), number) for name in self.extra}
        found = self.values(rows, _rows(references, number), **sets, **options)
        return as_result(self.metric, found)


def ranked_rows(predictions: Sequence[Sequence[str]], number: dict[str, int]) -> npt.NDArray[np.int64]:
    """Ids as row numbers, padded with -1; `number` learns the ids it has not seen. An id that comes twice is an error.

    >>> ranked_rows([["a", "b"], ["b"]], {})
    array([[ 0,  1],
           [ 1, -1]])
    """
    rows = np.full((len(predictions), max(map(len, predictions), default=0)), -1, dtype=np.int64)
    for query, ids in enumerate(predictions):
        if len(set(ids)) != len(ids):
            twice = next(name for place, name in enumerate(ids) if name in ids[:place])
            raise ValueError(f"predictions of query {query} name the document {twice!r} twice")
        rows[query, : len(ids)] = [number.setdefault(name, len(number)) for name in ids]
    return rows


def as_result(name: str, values: Values) -> dict[str, Any]:
    average = bootstrap({name: values})[name]
    return {
        name: average.mean,
        "low": average.low,
        "high": average.high,
        "queries": average.queries,
        "per_query": values.tolist(),
    }


def _rows(collections: Sequence[Sequence[str]], number: dict[str, int]) -> list[list[int]]:
    return [[number.setdefault(name, len(number)) for name in ids] for ids in collections]
