"""Exact nearest neighbours by blockwise matrix product: queries x documents never exists as a whole."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from boolbert.core.checks import check_count
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.penalty import has_penalty, penalised_scores, products
from boolbert.retrieval.ranking import Ranked, Scores
from boolbert.retrieval.shards import SHARD_SIZE

Vectors = Any  # (N, D): an array, a memory map, a tensor, or what slices like one, such as `shards.Shards`
BlockScorer = Callable[[int, int], Tensor]  # (first row, last row + 1) of the documents -> scores (Q, rows)

QUERY_BLOCK = 1024
DOCUMENT_BLOCK = SHARD_SIZE  # a block that lies in two shards would have to be copied together
# Scores from which the best are chosen together; block by block that would cost more than the products.
SCORES_AT_ONCE = 1 << 20
# On a GPU starting and awaiting a block takes longer than computing it, so blocks are larger. Vectors that are
# not in float32 are copied into it, at most `GPU_COPIED` numbers at a time.
GPU_SCORES, GPU_ROWS, GPU_COPIED = 1 << 24, 1 << 18, 1 << 24


def top_k(
    queries: Vectors, documents: Vectors, k: int, *, device: str | torch.device | None = None, block: int | None = None
) -> tuple[Scores, Ranked]:
    """The k documents of the highest dot product for each query: scores and rows, best first, ties by the lower row.

    A corpus smaller than k gives as many columns as it has documents. Products are in float32. A query may have several
    vectors, (Q, K, D): a document's score is then the largest of its dot products. Or with a penalty, see `penalty.py`.

    >>> scores, rows = top_k(np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), k=2)
    >>> rows.tolist()
    [[1, 2], [0, 2]]
    """
    check_shapes(queries, documents, k)
    target = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    width = min(k, len(documents))
    scores, rows = [np.empty((0, width), np.float32)], [np.empty((0, width), np.int64)]
    for start in range(0, len(queries), QUERY_BLOCK):
        block_queries = as_tensor(queries, start, start + QUERY_BLOCK, target)
        check_finite(block_queries, "query", start)
        at_once = block or block_size(block_queries, documents)
        block_scores, block_rows = best_of(dot_products(block_queries, documents), len(documents), k, block=at_once)
        scores.append(block_scores)
        rows.append(block_rows)
    return np.concatenate(scores), np.concatenate(rows)


def block_size(queries: Tensor, documents: Vectors) -> int:
    """How many documents these queries are compared with at once."""
    if not (isinstance(documents, Tensor) and documents.is_cuda):
        return DOCUMENT_BLOCK
    rows = GPU_ROWS if documents.dtype == torch.float32 else GPU_COPIED // documents.shape[1]
    return max(DOCUMENT_BLOCK, min(rows, GPU_SCORES // queries[..., 0].numel()))


def merge_vectors(scores: Scores, rows: Ranked) -> tuple[Scores, Ranked]:
    """The results of several vectors per query, (Q, K, k) each, as one ranking (Q, k) by the largest score.

    This is how any index that takes one vector at a time serves a query with alternatives.

    >>> scores, rows = merge_vectors(np.float32([[[0.9, 0.5], [0.8, 0.7]]]), np.array([[[4, 7], [7, 2]]]))
    >>> rows.tolist()
    [[4, 7]]
    """
    merged_scores = np.full((len(scores), scores.shape[2]), -np.inf, np.float32)
    merged_rows = np.full(merged_scores.shape, -1, np.int64)
    for query in range(len(scores)):
        all_scores, all_rows = scores[query].ravel(), rows[query].ravel()
        order = np.lexsort((all_rows, -all_scores))
        order = order[all_rows[order] >= 0]
        _, first = np.unique(all_rows[order], return_index=True)
        best = order[np.sort(first)][: merged_rows.shape[1]]
        merged_scores[query, : len(best)], merged_rows[query, : len(best)] = all_scores[best], all_rows[best]
    return merged_scores, merged_rows


def dot_products(queries: Tensor, documents: Vectors) -> BlockScorer:
    """The scorer of dense retrieval: queries of shape (Q, D) or (Q, K, D), or with a penalty, against any documents."""
    if queries.ndim == 3 and queries.shape[1] == 1:
        queries = queries[:, 0]

    def score(start: int, end: int) -> Tensor:
        block = as_tensor(documents, start, end, queries.device)
        if queries.ndim == 2:
            scores = queries @ block.T
        elif has_penalty(queries, block):
            scores = penalised_scores(queries, block)
        else:
            scores = products(queries, block).amax(1)
        # A vector with NaN or infinity has such a score with any query, and there are far fewer scores than values.
        # Their sum is then not finite either. If it merely overflows, the vectors are looked at in vain.
        if not math.isfinite(scores.sum()):
            check_finite(block, "document", start)
        return scores

    return score


def best_of(score: BlockScorer, documents: int, k: int, *, block: int | None = None) -> tuple[Scores, Ranked]:
    """The k best documents by any score that can be computed for a block of documents at a time.

    >>> best_of(lambda start, end: torch.arange(start, end).float()[None] % 3, documents=5, k=3, block=2)[1].tolist()
    [[2, 1, 4]]
    """
    step, first = block or DOCUMENT_BLOCK, 0
    waiting: list[Tensor] = []  # scores of blocks of which the best are still to be chosen
    best_scores, best_rows = torch.empty(0), torch.empty(0, dtype=torch.long)
    for start in range(0, documents, step):
        end = min(start + step, documents)
        waiting.append(score(start, end))
        if end < documents and sum(scores.numel() for scores in waiting) < SCORES_AT_ONCE:
            continue
        scores = torch.cat(waiting, dim=1) if len(waiting) > 1 else waiting[0]
        scores, rows = _best_of_block(scores, min(k, scores.shape[1]))
        rows = rows + first
        if first:  # earlier documents stand first, so a stable sort keeps ties in the order of the rows
            scores = torch.cat([best_scores, scores], dim=1)
            rows = torch.cat([best_rows, rows], dim=1)
            scores, order = torch.sort(scores, dim=1, descending=True, stable=True)
            scores, rows = scores[:, :k], rows.gather(1, order[:, :k])
        best_scores, best_rows, first = scores, rows, end
        waiting.clear()
    return best_scores.float().cpu().numpy(), best_rows.cpu().numpy()


def check_shapes(queries: Vectors, documents: Vectors, k: int) -> None:
    """Raise where these vectors cannot be searched."""
    check_count("k", k)
    for name, vectors, dimensions in (("queries", queries, (2, 3)), ("documents", documents, (2,))):
        if len(vectors.shape) not in dimensions:
            raise RetrievalError(f"{name} must be of shape (number, size), got {tuple(vectors.shape)}")
    if queries.shape[-1] != documents.shape[1] and not has_penalty(queries, documents):
        raise RetrievalError(
            f"query vectors are of size {queries.shape[-1]}, document vectors of size {documents.shape[1]}: "
            "they come from different models; encode both with the same one"
        )
    if not len(documents):
        raise RetrievalError("there are no documents to search")


def as_tensor(vectors: Vectors, start: int, end: int, device: torch.device) -> Tensor:
    """A slice of the vectors as float32 on the device, copied only where it has to be."""
    part = vectors[start:end]
    if isinstance(part, Tensor):
        return part.detach().to(device, torch.float32)
    # torch warns of arrays that cannot be written to.
    return torch.from_numpy(part if part.flags.writeable else np.array(part)).to(device, torch.float32)


def check_finite(vectors: Tensor, what: str, first: int) -> None:
    """Raise for the first row that holds a value that is not finite; `first` is the number of the first row."""
    finite = torch.isfinite(vectors).flatten(1).all(dim=1)
    if not finite.all():
        row = first + int((~finite).nonzero()[0])
        raise RetrievalError(f"{what} vector {row} holds NaN or infinity: the model or the stored vectors are broken")


def _best_of_block(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best columns of each row, ties by the lower column, which `torch.topk` alone leaves open."""
    columns = scores.topk(k, dim=1).indices
    last = scores.gather(1, columns).amin(dim=1, keepdim=True)
    crowded = ((scores >= last).sum(dim=1) > k).nonzero().flatten()  # more documents tie at the edge than there is room
    if len(crowded):
        columns[crowded] = torch.sort(scores[crowded], dim=1, descending=True, stable=True).indices[:, :k]
    columns = columns.sort(dim=1).values
    best, order = torch.sort(scores.gather(1, columns), dim=1, descending=True, stable=True)
    return best, columns.gather(1, order)
