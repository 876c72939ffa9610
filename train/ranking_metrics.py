"""The dev metrics of a dual encoder: recall, MRR, R-precision, violations, over all queries and per group."""

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from boolbert.retrieval.ranking import mrr_at_k, r_precision, recall_at_k, violation_rate
from boolbert.retrieval.neighbours import top_k
from boolbert.train.retrieval_data import Split

DEPTHS = (20, 50, 100, 1000)


def depths(documents: int) -> list[int]:
    """The k of recall@k that mean something in a corpus of this size.

    >>> depths(195), depths(40_000)
    ([20, 50, 100], [20, 50, 100, 1000])
    """
    return [k for k in DEPTHS if k < documents] or [documents]


def default_metric(documents: int) -> str:
    """Recall@100 as in the paper; in a small corpus, where nearly all is found, R-precision.

    >>> default_metric(195), default_metric(325_505)
    ('r_precision', 'recall@100')
    """
    return "recall@100" if documents >= 10 * 100 else "r_precision"


def ranking_metrics(queries: Tensor, documents: Tensor, split: Split) -> dict[str, Any]:
    """Means over the queries that have gold, and the same for each group under "groups"."""
    count = len(documents)
    depth = max(*depths(count), int(split.gold.counts.max(initial=1)))
    _, rows = top_k(queries, documents, min(depth, count), device=documents.device)
    gold = [split.gold[query] for query in range(len(split))]
    values = {f"recall@{k}": recall_at_k(rows, gold, k) for k in depths(count)}
    values["mrr@10"] = mrr_at_k(rows, gold, 10)
    values["r_precision"] = r_precision(rows, gold)
    if split.violating is not None:
        broken = [np.concatenate([np.empty(0, np.int32), *split.violating[query]]) for query in range(len(split))]
        values["violations"] = violation_rate(rows, broken, gold)
    if split.negated is not None:
        values["negated"] = violation_rate(rows, split.negated, gold)
    groups = np.array(split.groups)
    result: dict[str, Any] = means(values)
    result["groups"] = {
        str(group): {"queries": int((groups == group).sum()), **means(values, groups == group)}
        for group in sorted(set(split.groups))
    }
    return result


def means(values: dict[str, npt.NDArray[Any]], chosen: Any = slice(None)) -> dict[str, float]:
    """The mean of each metric over the chosen queries for which it is defined; left out where it is for none.

    >>> means({"a": np.array([1.0, np.nan, 0.0]), "b": np.array([np.nan] * 3)})
    {'a': 0.5}
    """
    defined = {name: row[chosen][~np.isnan(row[chosen])] for name, row in values.items()}
    return {name: float(row.mean()) for name, row in defined.items() if len(row)}
