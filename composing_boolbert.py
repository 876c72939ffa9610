# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""From the states of a query's tokens to the vectors that search for it: what is wanted, less what is excluded.

To try another composition, change `QueryComposer.exclude`: it gets what is wanted and what is excluded, and everything
that encodes queries with a Bool-BERT uses what it returns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.activations import ACT2FN
from transformers.utils import ModelOutput

from .configuration_boolbert import KINDS_OF_NOT, OPERATORS, BoolBertConfig

AND, OR, NOT = range(len(OPERATORS))
# In a (B, 1, L, L) mask of scores to add, a score below this hides a token.
MASKED_SCORE = -30000.0
PROPERTY = KINDS_OF_NOT.index("property")
# Where a penalty does the rest, this much of the strength of exclusion is left for the vectors themselves.
PENALISED_SHARE = 2 / 3


def checked_shape(input_ids: Tensor | None, inputs_embeds: Tensor | None, longest: int) -> tuple[int, int]:
    """How many sentences of how many tokens are given, in one of two ways; at most `longest` tokens."""
    if (input_ids is None) == (inputs_embeds is None):
        raise ValueError("exactly one of input_ids and inputs_embeds must be given")
    if input_ids is not None and input_ids.ndim != 2:
        raise ValueError(f"input_ids must be (batch, length), got shape {tuple(input_ids.shape)}")
    if inputs_embeds is not None and inputs_embeds.ndim != 3:
        raise ValueError(f"inputs_embeds must be (batch, length, size), got shape {tuple(inputs_embeds.shape)}")
    inputs = input_ids if input_ids is not None else inputs_embeds
    batch, length = inputs.shape[:2]  # type: ignore[union-attr]
    if batch == 0 or length == 0:
        raise ValueError(f"the batch is empty: got {batch} sentences of {length} tokens")
    if length > longest:
        raise ValueError(
            f"{length} tokens are more than the {longest} positions of this model: "
            f"truncate with tokenizer(..., truncation=True, max_length={longest})"
        )
    return batch, length


def token_mask_of(attention_mask: Tensor | None, shape: tuple[int, int], device: torch.device) -> Tensor:
    """Which tokens are not padding: (B, L) float, 1 or 0."""
    if attention_mask is None:
        return torch.ones(shape, device=device)
    if attention_mask.ndim == 2 and attention_mask.shape == shape:
        return (attention_mask != 0).to(device=device, dtype=torch.float32)
    if attention_mask.ndim == 4:  # (B, 1, queries, keys): a token that nobody may look at is padding
        allowed = attention_mask if attention_mask.dtype == torch.bool else attention_mask > MASKED_SCORE
        return allowed.any(dim=2).any(dim=1).to(device=device, dtype=torch.float32).expand(shape)
    raise ValueError(f"attention_mask must be of shape {shape}, got {tuple(attention_mask.shape)}")


def masked_mean(hidden_states: Tensor, token_mask: Tensor) -> Tensor:
    """Mean over the tokens that are not padding: (B, L, D), (B, L) -> (B, D)."""
    weights = token_mask.to(hidden_states.dtype).unsqueeze(-1)
    return (hidden_states * weights).sum(1) / weights.sum(1).clamp_min(1.0)


def begins(inside: Tensor) -> Tensor:
    """Where runs of tokens begin, 0/1: (..., L) of 0/1 alike."""
    return inside * (1 - F.pad(inside[..., :-1], (1, 0)))


@dataclass
class SearchVectors(ModelOutput):
    """What an index is asked with.

    query_vectors (B, 1 + branches, D), the sentence's vector and one for each alternative of OR, and query_mask, which
    of them exist (the others repeat the first: a document's score is its largest dot product with them);
    search_vectors (B, 1 + branches, D), query_vectors with two thirds of the exclusion, and penalty (B, 2), (w, t) for
    the rest: a document's score is its largest cosine a with search_vectors, less w max(0, b - t) for its cosine b with
    excluded_embedding (None without a penalty; w is 0 where nothing is excluded, and with a given strength, which
    search_vectors then have whole).
    """

    query_vectors: Tensor | None = None
    query_mask: Tensor | None = None
    search_vectors: Tensor | None = None
    penalty: Tensor | None = None


class QueryComposer(nn.Module):
    """One vector that wants A and excludes B, and one for each alternative of OR.

    A is the mean of the tokens outside of NOT's scope ([CLS] with pooling "cls"), B the mean of those inside. Both are
    normalised, the vector is A - l (B - (A.B) A), and it gets A's length again: what B has in common with A stays, the
    rest is taken away. Where nothing is excluded it is the pooling of the sentence, to the bit; so it is where NOT
    negates a property of the answer, since the text that answers speaks of it.

    Taking B from the vector lowers every document in proportion to its similarity with B. With a penalty only those
    lose that are nearer to it than t: a document scores max_k v_k.d - w max(0, B.d - t), and less of B is taken from v.
    w and t learn.
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.pooling = config.pooling
        self.excludes = config.exclusion != "none"
        self.branches = config.branches
        self.initial_weight = config.exclusion_weight
        if self.excludes:
            self.strength = nn.Parameter(torch.empty(1))  # before softplus, which keeps it positive
        self.has_penalty = self.excludes and config.penalty > 0
        self.initial_penalty = (config.penalty, config.penalty_above)
        if self.has_penalty:
            self.penalty = nn.Parameter(torch.empty(1))  # before softplus
            self.penalty_above = nn.Parameter(torch.empty(1))
        self.has_head = config.exclusion == "head"
        if self.has_head:
            self.dense = nn.Linear(3 * config.hidden_size, 64)
            self.activation = ACT2FN["gelu"]
            self.head = nn.Linear(64, 1, bias=False)
            self.head_scale = nn.Parameter(torch.empty(1))  # starts at 0: at first every query has the same strength

    def forward(
        self, hidden_states: Tensor, token_mask: Tensor, scope: Tensor | None, kind: Tensor | None
    ) -> dict[str, Tensor]:
        """The vector of each sentence, and what it is composed of. `scope` (B, E, L), 0/1 and 0 for operators that are
        off; `kind` (B,), what NOT excludes."""
        inside, outside, has_excluded = self.sides(token_mask, scope, kind)
        wanted, excluded = self.parts(hidden_states, token_mask, inside, outside, has_excluded)
        (vectors,) = self.exclude(wanted.unsqueeze(1), excluded, has_excluded, None, (1.0,))
        return {
            "sentence_embedding": vectors[:, 0].contiguous(),
            "wanted_embedding": wanted,
            "excluded_embedding": excluded,
        }

    def search(
        self,
        hidden_states: Tensor,
        token_mask: Tensor,
        scope: Tensor | None,
        kind: Tensor | None,
        not_weight: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The same, and [`SearchVectors`]. `not_weight` (B,) stands in for the learned strength, where it is no NaN."""
        inside, outside, has_excluded = self.sides(token_mask, scope, kind)
        wanted, excluded = self.parts(hidden_states, token_mask, inside, outside, has_excluded)
        alternatives, exists = [wanted], [torch.ones_like(has_excluded)]
        if self.branches and scope is not None:
            for tokens, is_there in self.alternatives(scope[:, OR].to(token_mask.dtype) * outside):
                alternatives.append(masked_mean(hidden_states, tokens))
                exists.append(is_there)
        shares = (1.0, PENALISED_SHARE) if self.has_penalty else (1.0,)
        vectors, *penalised = self.exclude(torch.stack(alternatives, 1), excluded, has_excluded, not_weight, shares)
        query_mask = torch.cat(exists, 1)
        composed = {
            "sentence_embedding": vectors[:, 0].contiguous(),
            "wanted_embedding": wanted,
            "excluded_embedding": excluded,
            "query_vectors": self.filled(vectors, query_mask),
            "query_mask": query_mask,
        }
        if self.has_penalty:
            (less,) = penalised
            weight = F.softplus(self.penalty.float()) * has_excluded
            if not_weight is not None:  # a given strength is for one vector, without penalty
                given = ~not_weight.isnan().unsqueeze(1)
                weight, less = weight * ~given, torch.where(given.unsqueeze(2), vectors, less)
            penalty = torch.cat([weight, self.penalty_above.float().expand_as(weight)], 1)
            composed |= {"search_vectors": self.filled(less, query_mask), "penalty": penalty}
        return composed

    def sides(self, token_mask: Tensor, scope: Tensor | None, kind: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Which tokens are excluded, which are not (both (B, L)), and whether anything is taken away (B, 1)."""
        inside = torch.zeros_like(token_mask) if scope is None else scope[:, NOT].to(token_mask.dtype) * token_mask
        outside = token_mask - inside
        has_excluded = ((inside.sum(1) > 0) & (outside.sum(1) > 0)).unsqueeze(1)
        if kind is not None:
            has_excluded = has_excluded & (kind != PROPERTY).unsqueeze(1)
        if not self.excludes:
            has_excluded = torch.zeros_like(has_excluded)
        return inside * has_excluded, torch.where(has_excluded, outside, token_mask), has_excluded

    def parts(
        self, hidden_states: Tensor, token_mask: Tensor, inside: Tensor, outside: Tensor, has_excluded: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What is wanted and what is excluded, (B, D) each."""
        pooled = self.pool(hidden_states, token_mask)
        wanted = torch.where(has_excluded, self.pool(hidden_states, outside), pooled)
        return wanted, masked_mean(hidden_states, inside) * has_excluded

    def filled(self, vectors: Tensor, exists: Tensor) -> Tensor:
        """(B, 1 + branches, D). Where there is no alternative the first stands again: the largest score is the same."""
        return torch.where(exists.unsqueeze(-1), vectors, vectors[:, :1])

    def pool(self, hidden_states: Tensor, token_mask: Tensor) -> Tensor:
        return hidden_states[:, 0] if self.pooling == "cls" else masked_mean(hidden_states, token_mask)

    def exclude(
        self, wanted: Tensor, excluded: Tensor, has_excluded: Tensor, not_weight: Tensor | None, shares: Sequence[float]
    ) -> list[Tensor]:
        """Vectors (B, K, D) less `excluded` (B, D), for each share of the strength with which it is taken away."""
        if not self.excludes:
            return [wanted] * len(shares)
        a, b = F.normalize(wanted.float(), dim=-1), F.normalize(excluded.float(), dim=-1).unsqueeze(1)
        foreign = b - (a * b).sum(-1, keepdim=True) * a  # what B has besides A
        weight = self.weight(a, b)  # (B, K, 1)
        if not_weight is not None:
            given = not_weight[:, None, None]
            weight = torch.where(given.isnan(), weight, given)
        away, length = weight * foreign, wanted.float().norm(dim=-1, keepdim=True)
        vectors = [F.normalize(a - share * away, dim=-1) * length for share in shares]
        return [torch.where(has_excluded.unsqueeze(1), vector.to(wanted.dtype), wanted) for vector in vectors]

    def searched_weight(self, wanted: Tensor, excluded: Tensor) -> Tensor:
        """How strongly B is taken away from the vectors to search with: (B, 1)."""
        return self.weight(wanted, excluded) * (PENALISED_SHARE if self.has_penalty else 1.0)

    def weight(self, wanted: Tensor, excluded: Tensor) -> Tensor:
        """How strongly B is taken away: (..., 1), for A of (..., D) and B of the same shape or one B for several."""
        raw = self.strength.float().expand(*wanted.shape[:-1], 1)
        if self.has_head:
            features = torch.cat([wanted, excluded.expand_as(wanted), wanted * excluded], -1)
            features = features.to(self.dense.weight.dtype)
            raw = raw + self.head_scale * self.head(self.activation(self.dense(features))).float()
        return F.softplus(raw)

    def alternatives(self, tokens: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The runs of tokens in OR's scope, (B, L), up to `branches` of them, each with whether it exists, (B, 1).

        A lone run is no alternative to anything.
        """
        starts = begins(tokens)
        number = starts.cumsum(1) * tokens  # 1, 2, ... within the runs, 0 between them
        count = starts.sum(1, keepdim=True)  # (B, 1)
        return [((number == run).to(tokens.dtype), (count >= max(run, 2))) for run in range(1, self.branches + 1)]
