"""The model of stages 2 and 3, Bool-BERT (or BERT) for queries and BERT for documents, and its loss."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from boolbert.composing_boolbert import masked_mean
from boolbert.configuration_boolbert import BoolBertConfig
from boolbert.retrieval.penalty import has_penalty, penalised_query, penalised_scores

QUERY, DOCUMENT = "query", "document"
TEMPERATURES = {"dot": 1.0, "cosine": 0.05}


class DualEncoder(nn.Module):
    """Embeds queries and documents: [CLS] or the mean of the tokens, of length 1 where compared by cosine."""

    def __init__(self, query: PreTrainedModel, document: PreTrainedModel, *, pooling: str, similarity: str):
        super().__init__()
        self.query: PreTrainedModel = query
        self.document: PreTrainedModel = document
        self.pooling = pooling
        self.similarity = similarity

    def forward(self, side: str, inputs: dict[str, Any]) -> Tensor:
        """The vectors of a side's texts in float32: (B, D), or (B, K, D) for queries with a vector per alternative.

        A query with a penalty has two forms that both learn: these K vectors, and behind them `penalised_query`.
        """
        model: Any = self.query if side == QUERY else self.document
        output, mask = model(**inputs), inputs["attention_mask"]
        if side == QUERY and model.config.model_type == BoolBertConfig.model_type:  # which composes its vectors
            found = model.search(output, mask)
            if "penalty" in found and self.similarity == "cosine":
                composed = F.pad(F.normalize(found["query_vectors"].float(), dim=-1), (0, 1))
                parts = (found[name] for name in ("search_vectors", "excluded_embedding", "penalty"))
                return torch.cat([composed, penalised_query(*parts)], 1)
            vectors = found["query_vectors"]
            vectors = vectors if vectors.shape[1] > 1 else found["sentence_embedding"]
        else:
            states = output.last_hidden_state
            vectors = states[:, 0] if self.pooling == "cls" else masked_mean(states, mask)
        vectors = vectors.float()
        return F.normalize(vectors, dim=-1) if self.similarity == "cosine" else vectors


def both_forms(queries: Tensor) -> tuple[Tensor, Tensor]:
    """A query's composed vectors (B, K, D), and its form with a penalty (B, K + 1, D + 1)."""
    count = (queries.shape[1] - 1) // 2
    return queries[:, :count, :-1], queries[:, count:]


def searched_with(queries: Tensor, documents: Tensor) -> Tensor:
    """The form in which queries of a `DualEncoder` are searched with."""
    return both_forms(queries)[1] if has_penalty(queries, documents) else queries


def contrastive_loss(
    queries: Tensor, documents: Tensor, targets: Tensor, excluded: Tensor | None = None, temperature: float = 1.0
) -> Tensor:
    """Cross-entropy of each query's target among all documents: (Q, D) or (Q, K, D), (C, D), (Q,), (Q, C) bool.

    With several vectors per query the largest dot product is the score. For queries in two forms the loss is the mean
    of both. `excluded` marks documents that are no negatives of a query: they answer it as well.

    >>> import torch
    >>> vectors = torch.eye(2)
    >>> excluded = torch.tensor([[False, True], [False, False]])
    >>> contrastive_loss(vectors, vectors, torch.tensor([0, 1]), excluded)
    tensor(0.1566)
    """
    documents = documents.float()
    if has_penalty(queries, documents):
        composed, penalised = both_forms(queries)
        all_scores = [(composed @ documents.T).amax(1), penalised_scores(penalised, documents)]
    else:
        scores = queries.float() @ documents.T  # (Q, C) or (Q, K, C)
        all_scores = [scores.amax(1) if scores.ndim == 3 else scores]
    losses = []
    for scores in all_scores:
        scores = scores / temperature
        if excluded is not None:
            scores = scores.masked_fill(excluded, float("-inf"))
        losses.append(F.cross_entropy(scores, targets))
    return torch.stack(losses).mean()
