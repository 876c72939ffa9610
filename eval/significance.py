"""How sure a number is: bootstrap intervals for averages, and a paired permutation test for two systems."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.retrieval.metrics import PerQuery
from boolbert.retrieval.ranking import Values

RESAMPLES = 1000
PERMUTATIONS = 10_000
_CHUNK = 1000


Average = dict[str, float | None]


def bootstrap(values: Mapping[str, Values], *, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Average]:
    """The mean of each metric with the 2.5% and 97.5% quantiles of the means of resampled queries.

    NaN is no value; `queries` is how many have one. All metrics see the same resamples.

    >>> bootstrap({"recall": np.array([1.0, 1.0, np.nan])})["recall"]
    {'mean': 1.0, 'low': 1.0, 'high': 1.0, 'queries': 2}
    """
    table = np.stack(list(values.values()), axis=1)  # (Q, metrics)
    known = ~np.isnan(table)
    filled = np.where(known, table, 0.0)
    queries = len(table)
    drawn = np.random.default_rng(seed).integers(0, queries, size=(resamples, queries))
    weights = np.stack([np.bincount(row, minlength=queries) for row in drawn])  # how often each query was drawn
    counts = weights @ known
    means = np.divide(weights @ filled, counts, out=np.full(counts.shape, np.nan), where=counts > 0)
    result: dict[str, Average] = {}
    for column, name in enumerate(values):
        count = int(known[:, column].sum())
        result[name] = {"mean": None, "low": None, "high": None, "queries": count}
        if count:
            low, high = np.nanquantile(means[:, column], [0.025, 0.975]).tolist()
            result[name] |= {"mean": float(filled[:, column].sum() / count), "low": low, "high": high}
    return result


def permutation_test(first: npt.ArrayLike, second: npt.ArrayLike, *, seed: int = 0) -> float:
    """How often the mean difference of two systems on the same queries would be as large by chance (two-sided p).

    Each permutation swaps the two systems' values on a random half of the queries; where there are few queries, all
    permutations are tried. Queries without a value in either system do not count.

    >>> permutation_test([0.5, 0.7, 0.1], [0.5, 0.7, 0.1])
    1.0
    """
    from scipy import stats

    left, right = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if left.shape != right.shape:
        raise ValueError(f"both systems must be scored on the same queries, got {left.shape} and {right.shape}")
    difference = left - right
    difference = difference[~np.isnan(difference)]
    if len(difference) < 2:  # nothing to permute
        return float("nan") if not len(difference) else 1.0
    found = stats.permutation_test(
        (difference,),  # of a single sample, scipy changes the signs
        lambda sample, axis: np.abs(sample.sum(axis=axis)),
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=_CHUNK,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def averages(per_query: PerQuery, groups: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Every metric's average with its interval, as metrics.json has them: `{"all": {metric: ...}, "template": ...}`."""
    result: dict[str, Any] = {"all": bootstrap(per_query)}
    for kind, labels in groups.items():
        names = np.array(labels)
        result[kind] = {
            name: bootstrap({metric: values[names == name] for metric, values in per_query.items()})
            for name in dict.fromkeys(labels)
        }
    return result
