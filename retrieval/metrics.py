"""The metrics of a ranking, the same in training and evaluation, and their means over queries and groups."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from boolbert.data.tasks import Task
from boolbert.retrieval import ranking
from boolbert.retrieval.ranking import Ranked, Values

DEPTHS = (20, 50, 100, 1000)
ACCURACIES = (1, 5, 10, 20, 100)

# The metrics that stand in tables, in this order, with the titles of their columns; a metric that was not measured has
# no column. metrics.json holds all metrics.
COLUMNS = {
    "recall@20": "R@20",
    "recall@50": "R@50",
    "recall@100": "R@100",
    "recall@1000": "R@1000",
    "mrecall@100": "MR@100",
    "mrr@10": "MRR@10",
    "accuracy@1": "Acc@1",
    "accuracy@10": "Acc@10",
    "negative_mrr@10": "neg. MRR@10",
    "negative_accuracy@10": "neg. Acc@10",
    "ndcg@10": "nDCG@10",
    "r_precision": "R-prec",
    "violations": "Violations",
    "negated": "Negated",
    "pairwise_accuracy": "Pairs",
    "found_of_exact": "Of exact",
}

PerQuery = dict[str, Values]
Metrics = Callable[[Task, Ranked], PerQuery]


def depths(documents: int, wanted: Sequence[int] = DEPTHS) -> list[int]:
    """The K that mean something in a corpus of this size.

    >>> depths(195), depths(325_505)
    ([20, 50, 100], [20, 50, 100, 1000])
    """
    return [k for k in wanted if k < documents] or [documents]


def main_metric(documents: int) -> str:
    """What systems are ordered by and the best epoch is chosen by: Recall@100, in a small corpus R-precision.

    >>> main_metric(195), main_metric(40_000)
    ('r_precision', 'recall@100')
    """
    return "recall@100" if documents >= 1000 else "r_precision"


def search_depth(task: Task) -> int:
    """How far down a ranking the metrics look: the largest K, and all of the top R."""
    return min(len(task.corpus), max(*depths(len(task.corpus)), *map(len, task.gold), 1))


def quest_metrics(task: Task, rows: Ranked) -> PerQuery:
    """QUEST's recalls, and what they do not see: order, precision and violations."""
    found = {f"recall@{k}": ranking.recall_at_k(rows, task.gold, k) for k in depths(len(task.corpus))}
    found |= {f"mrecall@{k}": ranking.mrecall_at_k(rows, task.gold, k) for k in depths(len(task.corpus))}
    found["mrr@10"] = ranking.mrr_at_k(rows, task.gold, 10)
    found["ndcg@10"] = ranking.ndcg_at_k(rows, task.gold, 10)
    found["r_precision"] = ranking.r_precision(rows, task.gold)
    if task.violating is not None:
        found["violations"] = ranking.violation_rate(rows, task.violating, task.gold)
    if task.negated is not None:
        found["negated"] = ranking.violation_rate(rows, task.negated, task.gold)
    return found


def boolquestions_metrics(task: Task, rows: Ranked) -> PerQuery:
    """BoolQuestions': MRR@10 and accuracy@K on the positives (higher is better) and on the negatives (lower is)."""
    found: PerQuery = {}
    violating: ranking.RowSets = task.violating or [[]] * len(task)
    sides: list[tuple[str, ranking.RowSets]] = [("", task.gold), ("negative_", violating)]
    for name, wanted in sides:
        found[f"{name}mrr@10"] = ranking.mrr_at_k(rows, wanted, 10)
        for k in depths(len(task.corpus), ACCURACIES):
            found[f"{name}accuracy@{k}"] = ranking.accuracy_at_k(rows, wanted, k)
    found["ndcg@10"] = ranking.ndcg_at_k(rows, task.gold, 10)
    found["r_precision"] = ranking.r_precision(rows, task.gold)
    found["violations"] = ranking.violation_rate(rows, violating, task.gold)
    return found


def lower_is_better(metric: str) -> bool:
    """Whether a metric counts mistakes.

    >>> lower_is_better("violations"), lower_is_better("negative_mrr@10"), lower_is_better("recall@100")
    (True, True, False)
    """
    return metric in ("violations", "negated") or metric.startswith("negative_")


def means(per_query: Mapping[str, Values], chosen: Any = slice(None)) -> dict[str, float]:
    """The mean of each metric over the chosen queries for which it is defined; left out where it is for none.

    >>> means({"a": np.array([1.0, np.nan, 0.0]), "b": np.array([np.nan] * 3)})
    {'a': 0.5}
    """
    defined = {name: values[chosen][~np.isnan(values[chosen])] for name, values in per_query.items()}
    return {name: float(values.mean()) for name, values in defined.items() if len(values)}


def group_means(per_query: Mapping[str, Values], labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """For each group, how many queries it has and the means over them."""
    names = np.array(labels)
    return {
        group: {"queries": int((names == group).sum()), **means(per_query, names == group)}
        for group in sorted(set(labels))
    }


def area_under_curve(scores: Any, is_right: Any) -> float:
    """How often something right scores higher than something wrong; equal scores count half.

    >>> area_under_curve([0.1, 0.9, 0.9], [False, True, False])
    0.75
    """
    scores, is_right = np.asarray(scores, np.float64), np.asarray(is_right, bool)
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    right, wrong = int(is_right.sum()), int((~is_right).sum())
    return float((ranks[is_right].sum() - right * (right + 1) / 2) / max(1, right * wrong))


def calibration_error(probabilities: Any, is_right: Any, bins: int = 10) -> float:
    """The mean distance between what is said and how often it is so, over bins of equal width.

    >>> calibration_error([0.9, 0.9, 0.1, 0.1], [True, True, False, False])
    0.1
    """
    said, is_right = np.asarray(probabilities, np.float64), np.asarray(is_right, np.float64)
    place = np.minimum((said * bins).astype(int), bins - 1)
    gaps = [abs((said - is_right)[place == one].sum()) for one in set(place.tolist())]
    return round(float(sum(gaps)) / max(1, len(said)), 4)


def saying_metrics(shares: Any, says: Sequence[str]) -> dict[str, float]:
    """How well probabilities (N, 3) of affirmed, denied and silent tell what texts say.

    >>> saying_metrics([[0.9, 0.0, 0.1], [0.0, 0.9, 0.1]], ["affirmed", "denied"])["affirmed against denied"]
    1.0
    """
    shares, classes = np.asarray(shares), ("affirmed", "denied", "silent")
    is_yes, is_no = (np.array([one == name for one in says]) for name in classes[:2])
    spoken = is_yes | is_no
    right = [classes[column] == one for column, one in zip(shares.argmax(1), says, strict=True)]
    return {
        "affirmed against the rest": area_under_curve(shares[:, 0], is_yes),
        "affirmed against denied": area_under_curve((shares[:, 0] - shares[:, 1])[spoken], is_yes[spoken]),
        "right of three": float(np.mean(right)),
        "calibration error": calibration_error(shares[:, 0], is_yes),
    }
