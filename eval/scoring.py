"""From rankings to metrics: one value a query, then averages over all queries and over each group."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.data.tasks import Task
from boolbert.eval.significance import Average, bootstrap
from boolbert.eval.systems import System
from boolbert.retrieval import ranking
from boolbert.retrieval.metrics import PerQuery, depths
from boolbert.retrieval.neighbours import BlockScorer
from boolbert.retrieval.ranking import Ranked, Values

CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def recall_curve(task: Task, rows: Ranked) -> dict[int, Values]:
    """Recall at ever more documents, for the picture."""
    return {k: ranking.recall_at_k(rows, task.gold, k) for k in depths(len(task.corpus), CURVE)}


def pair_accuracy(task: Task, system: System) -> Values | None:
    """NevIR's pairwise accuracy on the task's negation pairs; None where it has none."""
    if not task.pairs:
        return None
    questions = [question for pair in task.pairs for question in pair.questions]
    wanted = np.repeat([pair.rows for pair in task.pairs], 2, axis=0)  # (2P, 2)
    scores = _scores_of(system.scorer(questions), wanted, system.documents)
    return ranking.pairwise_accuracy(scores.reshape(-1, 2, 2))


def _scores_of(score: BlockScorer, wanted: npt.NDArray[np.int64], documents: int, block: int = 4096) -> Values:
    """The scores of given documents (Q, n), computed in the same blocks for every system."""
    result = np.full(wanted.shape, np.nan)
    for start in range(0, documents, block):
        inside = (wanted >= start) & (wanted < start + block)
        if inside.any():
            scores = score(start, min(start + block, documents)).float().cpu().numpy()
            rows, columns = np.nonzero(inside)
            result[rows, columns] = scores[rows, wanted[rows, columns] - start]
    return result


def averages(per_query: Mapping[str, Values], groups: Mapping[str, Sequence[str]], seed: int = 0) -> dict[str, Any]:
    """Every metric's average with its interval: `{"all": {metric: Average}, "template": {name: {...}}}`."""
    result: dict[str, Any] = {"all": bootstrap(per_query, seed=seed)}
    for kind, labels in groups.items():
        names = np.array(labels)
        result[kind] = {
            name: bootstrap({metric: values[names == name] for metric, values in per_query.items()}, seed=seed)
            for name in dict.fromkeys(labels)
        }
    return result


def over_seeds(runs: Sequence[PerQuery]) -> PerQuery:
    """The mean of several runs of one system on the same queries.

    >>> over_seeds([{"mrr@10": np.array([1.0, 0.0])}, {"mrr@10": np.array([0.5, 0.0])}])["mrr@10"]
    array([0.75, 0.  ])
    """
    return {metric: np.mean([run[metric] for run in runs], axis=0) for metric in runs[0]}


def as_json(value: Any) -> Any:
    """Averages as plain dictionaries; NaN becomes None."""
    if isinstance(value, Average):
        return {name: _finite(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): as_json(part) for name, part in value.items()}
    return value


def _finite(value: float) -> float | None:
    return None if value != value else value
