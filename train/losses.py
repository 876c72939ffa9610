"""The contrastive loss of a dual encoder."""

from torch import Tensor
from torch.nn import functional as F


def contrastive_loss(
    queries: Tensor, documents: Tensor, targets: Tensor, excluded: Tensor | None = None, temperature: float = 1.0
) -> Tensor:
    """Cross-entropy of each query's target among all documents: (Q, D), (C, D), (Q,), (Q, C) bool.

    `excluded` marks documents that are no negatives of a query: they answer it as well.

    >>> import torch
    >>> vectors = torch.eye(2)
    >>> excluded = torch.tensor([[False, True], [False, False]])
    >>> contrastive_loss(vectors, vectors, torch.tensor([0, 1]), excluded)
    tensor(0.1566)
    """
    scores = queries.float() @ documents.float().T / temperature  # (Q, C)
    if excluded is not None:
        scores = scores.masked_fill(excluded, float("-inf"))
    return F.cross_entropy(scores, targets)
