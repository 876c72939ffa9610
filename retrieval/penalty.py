"""Queries with a penalty for documents that are similar to what the query excludes, in a form that any search can use.

A document d of length 1 scores max_k v_k.d - w max(0, b.d - t): v_k are the query's vectors, b is what it excludes, and
a document whose cosine with b is above t loses w times the difference. Written with [d; 1], that is the largest product
with all rows but the last, less the product with the last where it is positive. So w and t are a part of the vectors,
and learn through them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

# Two rows over 100,000 documents by OpenBLAS on two ARM cores: 9 ms one after the other, 15 at once; three 13 and 15,
# five 21 and 18. By MKL two rows take 14 and 8.
FEW_ROWS = 3


def penalised_query(vectors: Tensor, excluded: Tensor, penalty: Tensor) -> Tensor:
    """Queries as one tensor: (B, K, D), (B, D), and w and t, (B, 2) -> (B, K + 1, D + 1)."""
    last = torch.cat([F.normalize(excluded.float(), dim=-1), -penalty[:, 1:]], -1) * penalty[:, :1]
    return torch.cat([F.pad(F.normalize(vectors.float(), dim=-1), (0, 1)), last.unsqueeze(1)], 1)


def has_penalty(queries: Any, documents: Any) -> bool:
    """Whether queries are what `penalised_query` gives, for documents of this size."""
    return len(queries.shape) == 3 and queries.shape[-1] == documents.shape[-1] + 1


def wanted_vectors(queries: Any) -> Any:
    """The queries without their penalty, (B, K, D): no document's product with them is below its score."""
    return queries[:, :-1, :-1]


def penalised_scores(queries: Tensor, documents: Tensor) -> Tensor:
    """The scores of documents of length 1: (B, K + 1, D + 1), (N, D) -> (B, N).

    >>> query = penalised_query(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, 0.4]]))
    >>> penalised_scores(query, torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]))
    tensor([[ 1.0000,  0.7000, -0.3000]])
    """
    vectors, shift = queries[..., :-1], queries[:, -1, -1:]
    if not torch.is_grad_enabled() and not vectors[:, -1].any():  # less work where nothing is excluded
        return products(vectors[:, :-1], documents).amax(1)
    found = products(vectors, documents)  # (B, K + 1, N)
    return found[:, :-1].amax(1) - (found[:, -1] + shift).clamp_min(0)


def products(queries: Tensor, documents: Tensor) -> Tensor:
    """All dot products, (B, K, D), (N, D) -> (B, K, N). One matrix product reads the documents once for all rows; a few
    rows are multiplied one after the other where the processor's library is slow at narrow products."""
    rows = queries.flatten(0, 1)
    has_few = 0 < len(rows) <= FEW_ROWS
    if has_few and documents.device.type == "cpu" and not torch.backends.mkl.is_available():
        found = torch.stack([documents @ row for row in rows])
    else:
        found = rows @ documents.T
    return found.unflatten(0, queries.shape[:2])


def ask_deeper(
    look: Callable[[Sequence[int], int], Sequence[tuple[Sequence[Any], Sequence[float], float | None]]],
    queries: int,
    k: int,
    depth: int,
    deepest: int,
) -> list[list[tuple[float, Any]]]:
    """The k best documents of each query, with their scores, from a search that sorts without their penalty.

    look(numbers, depth) searches for these queries. For each it gives the documents, their scores, and a bound: no
    document that is not among them scores more; None if there are no others. More are looked at until none of the
    others could be among the best.

    >>> bounds, scores = [0.9, 0.8, 0.7, 0.6], [0.1, 0.2, 0.7, 0.6]
    >>> ask_deeper(lambda numbers, depth: [(range(depth), scores[:depth], bounds[depth - 1])], 1, 1, 1, 4)
    [[(0.7, 2)]]
    """
    best: list[list[tuple[float, Any]]] = [[] for _ in range(queries)]
    unsure = list(range(queries))
    while True:
        looks = zip(unsure, look(unsure, depth), strict=True)
        unsure = []
        for number, (found, scores, bound) in looks:
            best[number] = sorted(zip(scores, found, strict=True), key=lambda pair: -pair[0])[:k]
            if bound is not None and (len(best[number]) < k or best[number][-1][0] < bound):
                unsure.append(number)
        if not unsure or depth >= deepest:
            return best
        depth = min(4 * depth, deepest)
