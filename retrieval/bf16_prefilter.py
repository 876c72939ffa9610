"""The best documents of one query at a time, on a CPU: a bfloat16 copy of the vectors rules nearly all of them out.

A query's time goes into reading all vectors from memory. The copy is half as long, and its products are off by a known
bound: a document further below the k-th best than twice that bound cannot be among the best. The scores of the others
come from the vectors themselves, so the answer is the one that `neighbours.top_k` gives.

Without a copy, a query with a penalty is first searched without it: the penalty only lowers scores, so this rules out
nearly all documents as well.
"""

import itertools
import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from boolbert.retrieval.neighbours import Ranked, Scores, as_tensor, best_of, check_shapes, top_k
from boolbert.retrieval.penalty import has_penalty, penalised_scores, subtract_penalty, wanted_vectors
from boolbert.retrieval.shards import SHARD_SIZE, Shards

# The copy is made at this query, so that one or two queries do not wait for it.
AFTER = 3
# A copy is made for at least this many documents, and if it has at most this many bytes.
FEWEST, LARGEST = 20_000, 1 << 30
# Largest error of the product of two vectors of length 1: both are rounded to 8 bits, and so is the product; the rest
# is for sums.
ERROR = 3.1 * 2.0**-8
# How often each way is timed.
TRIES = 3
# Without instructions for it a processor takes a hundred times as long in half precision. It is timed on this many
# documents first, and no copy is made where half precision is this many times slower.
PROBED, HOPELESS = 512, 8
# The copy is given up after this many queries in a row for which it ruled out too few documents.
MOST_IN_VAIN = 8
# The copy is of use where at most this share of the documents remains.
MOST_LEFT = 1 / 16
# How many of the best documents without the penalty get their final score: 512, and 4 for each that is wanted.
BEST_WANTED, BEST_FOR_EACH = 512, 4
# The k-th best score has to exceed the best possible score of the other documents by this: ten times the error of a
# float32 product of vectors of length 1.
ROUNDING = 1e-5


class Prefilter:
    """Vectors of documents, and their copy in half precision once it pays."""

    def __init__(self, vectors: Shards):
        self._vectors = vectors
        self._count = itertools.count(1)  # of queries; threads share it
        self.copy: Copy | None = None  # made at a later query, where it pays
        self._in_vain = 0  # queries in a row for which the copy ruled out too few documents

    def top_k(self, query: Any, k: int) -> tuple[Scores, Ranked]:
        """What `neighbours.top_k` gives for one query, (1, K, D) or with a penalty, on the CPU."""
        copy = self.copy
        if copy is not None:
            check_shapes(query, self._vectors, k)
            found = self._filtered(query, copy, k)
            if found is not None:
                self._in_vain = 0
                return found
            self._in_vain += 1
            if self._in_vain >= MOST_IN_VAIN:
                self.copy = None
        exact = self._exact(query, k)
        if copy is None and next(self._count) == AFTER:
            with suppress(RuntimeError, MemoryError):  # there is no room for a copy; the answer is here already
                self.copy = self._prepared(query, k)
        return exact

    def _exact(self, query: Any, k: int) -> tuple[Scores, Ranked]:
        found = self._best_of_wanted(query, k)
        return self._best_of_all(query, k) if found is None else found

    def _best_of_all(self, query: Any, k: int) -> tuple[Scores, Ranked]:
        found = self._best_of_one(query, k)
        return top_k(query, self._vectors, k, device="cpu") if found is None else found

    def _best_of_one(self, query: Any, k: int) -> tuple[Scores, Ranked] | None:
        """The k best documents of a query of one vector, with fewer steps than `top_k`; None where that is needed."""
        parts = self._vectors.parts
        if parts is None or query.shape[1:] != (1, self._vectors.shape[1]) or k < 1:
            return None
        vector = torch.as_tensor(query[0, 0], dtype=torch.float32)
        products = torch.empty(len(self._vectors))
        for part, found in zip(parts, products.split(self._vectors.manifest["shard_size"]), strict=True):
            torch.mv(part, vector, out=found)
        if not math.isfinite(products.sum()):
            return None  # `neighbours.top_k` says what is wrong
        return best_of(lambda start, end: products[None, start:end], len(products), k, block=len(products))

    def _best_of_wanted(self, query: Any, k: int) -> tuple[Scores, Ranked] | None:
        """The k best documents of a query with a penalty, from the best without it; None where others may be better."""
        depth, count = BEST_WANTED + BEST_FOR_EACH * k, len(self._vectors)
        if not has_penalty(query, self._vectors) or k < 1 or count < FEWEST or depth > MOST_LEFT * count:
            return None
        given = torch.as_tensor(query, dtype=torch.float64)
        if not torch.isfinite(given).all() or not given[0, -1].any():
            return None  # `neighbours.top_k` says what is wrong, and reads no more where nothing is excluded
        bounds, ranked = self._best_of_all(wanted_vectors(query), depth)
        rows = np.sort(ranked[0])
        scores = penalised_scores(given, torch.from_numpy(self._vectors.rows(rows)).double()).float()
        best, places = best_of(lambda start, end: scores[:, start:end], len(rows), k)
        return (best, rows[places]) if best[0, -1] > bounds[0, -1] + ROUNDING else None

    def _prepared(self, query: Any, k: int) -> "Copy | None":
        """A copy of the vectors, if it answers this query sooner than they do, and within its bound."""
        count, size = self._vectors.shape
        if count < FEWEST or 2 * count * size > LARGEST or not self._is_worth_a_copy(query):
            return None
        halves, longest = torch.empty(count, size, dtype=torch.bfloat16), 0.0
        for start in range(0, count, SHARD_SIZE):
            block = as_tensor(self._vectors, start, start + SHARD_SIZE, halves.device)
            halves[start : start + SHARD_SIZE] = block
            longest = max(longest, float(torch.linalg.vector_norm(block, dim=1).max()))
        copy = Copy(halves, longest)
        if not math.isfinite(longest) or self._filtered(query, copy, k) is None:
            return None
        exact = _seconds(lambda: self._exact(query, k))
        return copy if _seconds(lambda: self._filtered(query, copy, k)) < exact else None

    def _is_worth_a_copy(self, query: Any) -> bool:
        """Whether this machine is about as fast in half precision, timed on a few documents."""
        few = as_tensor(self._vectors, 0, PROBED, torch.device("cpu"))
        rows, halves = torch.as_tensor(query[0, :, : few.shape[1]], dtype=torch.float32), few.bfloat16()
        exact = _seconds(lambda: rows @ few.T)
        return _seconds(lambda: _products(halves, rows)) < HOPELESS * exact

    def _filtered(self, query: Any, copy: "Copy", k: int) -> tuple[Scores, Ranked] | None:
        """The k best documents; None where too many are left, or the input or this machine's products are wrong."""
        given = torch.as_tensor(query, dtype=torch.float64)
        if k > MOST_LEFT * len(copy.halves) or not torch.isfinite(given).all():
            return None  # `neighbours.top_k` says what is wrong
        rows = given[0, :, : self._vectors.shape[1]]
        products = _products(copy.halves, rows)  # (N, rows)
        off = ERROR * copy.longest * torch.linalg.vector_norm(rows, dim=1)  # of each row's products, at most
        penalised = has_penalty(query, self._vectors)
        shift = float(given[0, -1, -1])
        scores = _scores(products, shift if penalised else None)
        bound = float(off[:-1].max() + off[-1] if penalised else off.max())
        # Each score is off by at most the bound: that of a document, and that of the k-th best.
        left = (scores >= scores.topk(k).values[-1] - 2 * bound).nonzero().flatten()
        if len(left) > MOST_LEFT * len(scores):
            return None
        # In float64, so that documents that are the same have the same score wherever they stand.
        exact = torch.from_numpy(self._vectors.rows(left.numpy())).double() @ rows.T
        if ((exact - products[left]).abs() > off).any():  # this machine's products are worse than they should be
            return None
        final = _scores(exact, shift if penalised else None).float()
        best, places = best_of(lambda start, end: final[None, start:end], len(left), k)
        return best, left.numpy()[places]


class Copy(NamedTuple):
    """Vectors in half precision, and the length of the longest of them before."""

    halves: Tensor
    longest: float


def _scores(products: Tensor, shift: float | None) -> Tensor:
    """The documents' scores from their products with the rows of a query; `shift` belongs to a query with a penalty."""
    return products.amax(1) if shift is None else subtract_penalty(products.T[None], shift)[0]


def _seconds(work: Callable[[], Any]) -> float:
    """The time of the fastest of some tries."""
    times = []
    for _ in range(TRIES):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def _products(halves: Tensor, rows: Tensor) -> Tensor:
    """All dot products, (N, rows). Documents first: in half precision that is faster than the other way round."""
    rows = rows.to(halves.dtype)
    found = (halves @ rows[0]).unsqueeze(1) if len(rows) == 1 else halves @ rows.T
    return found.float()
