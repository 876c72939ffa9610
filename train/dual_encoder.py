"""Two encoders and one space: Bool-BERT (or BERT) for queries, BERT for documents."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from boolbert.modeling_boolbert import masked_mean

QUERY, DOCUMENT = "query", "document"


class DualEncoder(nn.Module):
    """Embeds queries and documents: [CLS] or the mean of the tokens, of length 1 where compared by cosine."""

    def __init__(self, query: PreTrainedModel, document: PreTrainedModel, *, pooling: str, similarity: str):
        super().__init__()
        self.query: PreTrainedModel = query
        self.document: PreTrainedModel = document
        self.pooling = pooling
        self.similarity = similarity

    def forward(self, side: str, inputs: dict[str, Any]) -> Tensor:
        """The vectors (B, D) of a side's texts, in float32."""
        encoder = self.query if side == QUERY else self.document
        hidden_states = encoder(**inputs).last_hidden_state
        first = self.pooling == "cls"
        vectors = hidden_states[:, 0] if first else masked_mean(hidden_states, inputs["attention_mask"])
        vectors = vectors.float()
        return F.normalize(vectors, dim=-1) if self.similarity == "cosine" else vectors
