"""Hard negatives by name: those that break an operator, or wrong answers that BM25 or a model ranks high."""

from collections.abc import Sequence

import numpy as np

from boolbert.core.errors import TrainingError
from boolbert.data import HardNegatives
from boolbert.data.tasks import Task
from boolbert.retrieval.bm25 import BM25Index
from boolbert.retrieval.neighbours import Ranked

DEPTH = 100  # of a ranking, that wrong answers are taken from


def hard_negatives(kind: str, task: Task) -> HardNegatives | None:
    """The pools to draw hard negatives from; None for random ones, and for those that a model finds later."""
    if kind in ("random", "mined"):
        return None
    if kind == "bm25":
        return bm25_negatives(task)
    if task.violators is None:
        raise TrainingError(
            "--negatives violating needs the atomic sets of the queries (atoms.json and metadata.atoms), "
            "or listed negatives; this data has none. Try --negatives random, bm25 or mined"
        )
    return task.violators


def bm25_negatives(task: Task) -> HardNegatives:
    """The best documents by BM25 that do not answer the query."""
    ranked = BM25Index(document.text for document in task.corpus).top_k(task.texts, DEPTH)
    return wrong_answers([rows[rows >= 0] for rows in ranked], task)


def wrong_answers(ranked: Sequence[Ranked], task: Task) -> HardNegatives:
    """From the first documents of each query's ranking, those that do not answer it."""
    return HardNegatives([[np.setdiff1d(rows, task.gold[query]).astype(np.int32)] for query, rows in enumerate(ranked)])
