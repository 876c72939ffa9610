"""Hard negatives by name: those that break an operator, or wrong answers that BM25 finds."""

from collections.abc import Sequence

import numpy as np

from boolbert.data import Corpus, Gold, HardNegatives
from boolbert.data.tasks import Task
from boolbert.errors import TrainingError

BM25_DEPTH = 100


def hard_negatives(kind: str, task: Task) -> HardNegatives | None:
    """The pools to draw hard negatives from; None for random negatives only."""
    if kind == "random":
        return None
    if kind == "bm25":
        return bm25_negatives(task.texts, task.corpus, task.gold)
    if task.violators is None:
        raise TrainingError(
            "--negatives violating needs the atomic sets of the queries (atoms.json and metadata.atoms), "
            "or listed negatives; this data has none. Try --negatives random or bm25"
        )
    return task.violators


def bm25_negatives(texts: Sequence[str], corpus: Corpus, gold: Gold, depth: int = BM25_DEPTH) -> HardNegatives:
    """The best documents by BM25 that do not answer the query."""
    try:
        import bm25s
    except ImportError:
        raise TrainingError("--negatives bm25 needs the package bm25s: pip install bm25s") from None
    index = bm25s.BM25()
    index.index(bm25s.tokenize([document.text for document in corpus], show_progress=False), show_progress=False)
    words = bm25s.tokenize(list(texts), show_progress=False)
    depth = min(depth, len(corpus))
    rows, scores = index.retrieve(words, k=depth, show_progress=False)
    found = np.where(scores > 0, rows, -1).astype(np.int64)  # a document without a word of the query is no find
    pools = [[np.setdiff1d(ranked[ranked >= 0], gold[query]).astype(np.int32)] for query, ranked in enumerate(found)]
    return HardNegatives(pools, {"found by no word": sum(not len(pool) for (pool,) in pools)})
