"""Hard negatives by name: those that break an operator, or wrong answers that BM25 finds."""

import numpy as np

from boolbert.data import HardNegatives
from boolbert.data.tasks import Task
from boolbert.errors import TrainingError
from boolbert.retrieval.bm25 import BM25Index

BM25_DEPTH = 100


def hard_negatives(kind: str, task: Task) -> HardNegatives | None:
    """The pools to draw hard negatives from; None for random negatives only."""
    if kind == "random":
        return None
    if kind == "bm25":
        return bm25_negatives(task)
    if task.violators is None:
        raise TrainingError(
            "--negatives violating needs the atomic sets of the queries (atoms.json and metadata.atoms), "
            "or listed negatives; this data has none. Try --negatives random or bm25"
        )
    return task.violators


def bm25_negatives(task: Task, depth: int = BM25_DEPTH) -> HardNegatives:
    """The best documents by BM25 that do not answer the query."""
    scores, rows = BM25Index(document.text for document in task.corpus).top_k(task.texts, depth)
    # A document without a word of the query is no find.
    pools = [[np.setdiff1d(rows[query][scores[query] > 0], task.gold[query])] for query in range(len(task))]
    pools = [[pool.astype(np.int32)] for (pool,) in pools]
    return HardNegatives(pools, {"found by no word": sum(not len(pool) for (pool,) in pools)})
