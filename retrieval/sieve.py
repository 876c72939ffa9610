"""The best documents of one query after the other, on a CPU: nearly all are ruled out in half precision.

There the time of a query goes into reading all vectors from memory. A copy in bfloat16 is half as long, and its
products are off by a known bound: who is further below the k-th best than that cannot be among the best. The others'
scores come from the vectors themselves, so the answer is the one that `neighbours.top_k` gives.
"""

import itertools
import math
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from boolbert.retrieval.neighbours import Ranked, Scores, best_of, check_shapes, dot_products, top_k
from boolbert.retrieval.shards import SHARD_SIZE, Shards
from boolbert.retrieval.two_sided import is_two_sided

# The copy is made at this query: who asks once or twice should not wait for it.
AFTER = 3
# Fewer documents are read at once anyway, and a copy of more bytes than this is too much to ask for.
FEWEST, LARGEST = 20_000, 1 << 30
# Of a product of two vectors of length 1: both are rounded to 8 bits, and so is the product; the rest is for sums.
ERROR = 3.1 * 2.0**-8
# How often the copy is timed.
TRIES = 5
# Where more than this share is left, the sieve is of no use.
MOST_LEFT = 1 / 16


class Sieve:
    """Vectors of documents, and their copy in half precision once it pays."""

    def __init__(self, vectors: Shards):
        self._vectors = vectors
        self._count = itertools.count(1)  # of queries; threads share it
        self._copy: Tensor | None = None
        self._longest = 0.0

    def top_k(self, query: Any, k: int) -> tuple[Scores, Ranked]:
        """What `neighbours.top_k` gives for one query, (1, K, D) or `two_sided`, on the CPU."""
        copy, found = self._copy, None
        if copy is not None:
            check_shapes(query, self._vectors, k)
            found = self._sifted(query, copy, self._longest, k)
        if found is not None:
            return found
        began = time.perf_counter()
        found = top_k(query, self._vectors, k, device="cpu")
        if copy is None and next(self._count) == AFTER:
            self._prepare(query, k, time.perf_counter() - began)
        return found

    def _prepare(self, query: Any, k: int, seconds: float) -> None:
        """Make the copy; keep it if it answers in less than the vectors' own seconds, and is within its bound."""
        count, size = self._vectors.shape
        if count < FEWEST or 2 * count * size > LARGEST:
            return
        try:
            copy = torch.empty(count, size, dtype=torch.bfloat16)
        except RuntimeError:  # there is no room
            return
        longest = 0.0
        for start in range(0, count, SHARD_SIZE):
            block = torch.from_numpy(np.asarray(self._vectors[start : start + SHARD_SIZE], dtype=np.float32))
            copy[start : start + SHARD_SIZE] = block
            longest = max(longest, float(torch.linalg.vector_norm(block, dim=1).max()))
        if not math.isfinite(longest) or not self._is_within(query, copy, longest):
            return
        times = []
        for _ in range(TRIES):  # the first one prepares products of this shape, and another may be disturbed
            began = time.perf_counter()
            if self._sifted(query, copy, longest, k) is None:
                return
            times.append(time.perf_counter() - began)
        if min(times) < seconds:
            self._longest = longest
            self._copy = copy  # last: threads look at this one

    def _is_within(self, query: Any, copy: Tensor, longest: float) -> bool:
        """Whether this machine's products in half precision keep to the bound, on some thousand documents."""
        rows, exact = _rows(query, self._vectors), self._vectors[:SHARD_SIZE].astype(np.float64)
        off = (_products(copy[:SHARD_SIZE], rows).double() - torch.from_numpy(exact) @ rows.double().T).abs().amax(0)
        return bool((off <= ERROR * longest * torch.linalg.vector_norm(rows.double(), dim=1)).all())

    def _sifted(self, query: Any, copy: Tensor, longest: float, k: int) -> tuple[Scores, Ranked] | None:
        """The k best documents; None where too many are left."""
        rows = _rows(query, self._vectors)
        if not torch.isfinite(rows).all():
            return None  # `neighbours.top_k` says what is wrong
        products = _products(copy, rows)  # (N, rows)
        reach = torch.linalg.vector_norm(rows, dim=1)
        if is_two_sided(query, self._vectors):
            scores = products[:, :-1].amax(1) - (products[:, -1] + float(query[0, -1, -1])).clamp_min(0)
            off = reach[:-1].max() + reach[-1]
        else:
            scores, off = products.amax(1), reach.max()
        edge = scores.topk(min(k, len(scores))).values[-1] - 2 * ERROR * longest * off
        left = (scores >= edge).nonzero().flatten()
        if len(left) > max(MOST_LEFT * len(scores), k):
            return None
        exact = dot_products(torch.as_tensor(query, dtype=torch.float32), self._vectors.rows(left.numpy()))
        best, places = best_of(exact, len(left), k)
        return best, left.numpy()[places]


def _rows(query: Any, vectors: Shards) -> Tensor:
    """The query's vectors, (rows, D)."""
    return torch.as_tensor(query[0], dtype=torch.float32)[:, : vectors.shape[1]]


def _products(copy: Tensor, rows: Tensor) -> Tensor:
    """All dot products, (N, rows). Documents first: in half precision that is faster than the other way round."""
    rows = rows.to(copy.dtype)
    found = (copy @ rows[0]).unsqueeze(1) if len(rows) == 1 else copy @ rows.T
    return found.float()
