# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""The reader: which words of a query are wanted, excluded, alternatives of one another, or cues of NOT.

The encoder's own layers read, each changed by adapters of low rank, and a head gives each token a score for each tag.
`best_tags` decides, in tensors of any batch, so that every door of a Bool-BERT (this code on any device, and the graph
that is exported of it) reads a query alike.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.activations import ACT2FN
from transformers.models.bert.modeling_bert import BertLayer

from .configuration_boolbert import BoolBertConfig

# What the reader calls a token: outside of everything, or the begin (B) or inside (I) of what is wanted (w), excluded
# (x), an alternative (a), or a cue of NOT (c).
KINDS = WANTED, EXCLUDED, ALTERNATIVE, CUE = "w", "x", "a", "c"
READER_TAGS = ("O", *(f"{place}-{kind}" for kind in KINDS for place in "BI"))
# An exclusion that is missed is worse than one too many: what it gets on top, in the logs of probabilities.
FAVOUR = 2.0
# So many tokens before and behind it have a say in a token's tag. Longer conditions than that are told by their words.
WINDOW = 6
IMPOSSIBLE = -1e4


class LowRank(nn.Module):
    """A change of low rank to a linear layer that stays as it is: W x + U (D x)."""

    def __init__(self, inputs: int, outputs: int, rank: int):
        super().__init__()
        self.down = nn.Parameter(torch.empty(rank, inputs))
        self.up = nn.Parameter(torch.empty(outputs, rank))

    def forward(self, linear: nn.Linear, states: Tensor) -> Tensor:
        return linear(states) + states @ self.down.T @ self.up.T


class ReadingLayer(nn.ModuleDict):
    """A BERT layer's six matrices, each with a change of low rank."""

    def __init__(self, config: BoolBertConfig, rank: int):
        size, inside = config.hidden_size, config.intermediate_size
        shapes = dict.fromkeys(("query", "key", "value", "attended"), (size, size))
        shapes |= {"inside": (size, inside), "output": (inside, size)}
        super().__init__({name: LowRank(*shape, rank) for name, shape in shapes.items()})
        self.heads, self.activation = config.num_attention_heads, ACT2FN[config.hidden_act]

    def forward(self, layer: BertLayer, states: Tensor, mask: Tensor) -> Tensor:  # mask (B, 1, 1, L): not padding
        own, attention = layer.attention.self, layer.attention.output
        linears = {"query": own.query, "key": own.key, "value": own.value}
        parts = (self[name](linear, states).unflatten(-1, (self.heads, -1)) for name, linear in linears.items())
        query, key, value = (part.transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        attended = self["attended"](attention.dense, attended.transpose(1, 2).flatten(2))
        states = attention.LayerNorm(attended + states)
        inside = self.activation(self["inside"](layer.intermediate.dense, states))
        return layer.output.LayerNorm(self["output"](layer.output.dense, inside) + states)


class ReadingAdapters(nn.Module):
    """What turns the encoder's own layers into a reader: a change of low rank to each, and a head for each token.

    The encoder's weights stay as they are, so one copy of them both reads and embeds.
    """

    def __init__(self, config: BoolBertConfig, rank: int, outputs: int):
        super().__init__()
        self.layer = nn.ModuleList([ReadingLayer(config, rank) for _ in range(config.num_hidden_layers)])
        self.head = nn.Linear(config.hidden_size, outputs)

    def forward(self, layers: Iterable[BertLayer], embeddings: Tensor, token_mask: Tensor) -> Tensor:
        """The layers of a BERT, its embeddings (B, L, D), which tokens are not padding (B, L) -> (B, L, outputs)."""
        mask = (token_mask != 0)[:, None, None]
        for own, layer in zip(self.layer, layers, strict=True):
            embeddings = own(layer, embeddings, mask)
        return self.head(embeddings)


def between_specials(token_mask: Tensor) -> Tensor:
    """Which tokens are words: neither padding nor the first or the last of a sentence, [CLS] and [SEP]. (B, L) bool."""
    before, after = token_mask.cumsum(1), token_mask.flip(1).cumsum(1).flip(1)
    return (token_mask != 0) & (before > 1) & (after > 1)


def of_kind(tags: Tensor, kind: str) -> Tensor:
    """Which tags, as numbers in `READER_TAGS`, are of a kind."""
    first = READER_TAGS.index(f"B-{kind}")
    return (tags == first) | (tags == first + 1)


def best_tags(scores: Tensor, words: Tensor) -> Tensor:
    """The tags of tokens, (B, L), from the scores of the head, (B, L, T). words (B, L): the others get "O".

    Nothing goes on that has not begun, and a sentence has both cues of NOT and exclusions, or neither: whichever of the
    two the scores say, with `FAVOUR` for what excludes.
    """
    scores = F.log_softmax(scores.float(), -1)
    tags = torch.arange(len(READER_TAGS), device=scores.device)
    is_outside = tags == 0
    scores = torch.where(words.unsqueeze(-1) | is_outside, scores, IMPOSSIBLE)
    scores = torch.where(words.unsqueeze(-1) | ~is_outside, scores, 0.0)
    silent = torch.where(of_kind(tags, CUE) | of_kind(tags, EXCLUDED), IMPOSSIBLE, scores)
    heard, neither = with_neighbours(scores), with_neighbours(silent).argmax(-1)
    both = heard.argmax(-1)
    forced = scores
    for kind, other in ((CUE, EXCLUDED), (EXCLUDED, CUE)):
        forced = torch.where(_must_become(both, heard, kind, other) & ~of_kind(tags, kind), IMPOSSIBLE, forced)
    both = with_neighbours(forced).argmax(-1)
    has_both = of_kind(both, CUE).any(1) & of_kind(both, EXCLUDED).any(1)  # which a single word cannot be
    excludes = has_both & (_total(forced, both) + FAVOUR >= _total(scores, neither))
    return torch.where(excludes.unsqueeze(1), both, neither)


def with_neighbours(scores: Tensor) -> Tensor:
    """What the best sequence scores in which a token has a tag, as far as `WINDOW` neighbours tell: (B, L, T) alike.

    Each token hears from the one before and the one behind it which of its tags fit theirs, `WINDOW` times over.
    """
    before, behind = torch.zeros_like(scores), torch.zeros_like(scores)
    for _ in range(WINDOW):
        said = scores + before
        free = said.amax(-1, keepdim=True)
        inside = said[..., 1:].unflatten(-1, (len(KINDS), 2)).amax(-1)  # what was of a kind may go on
        begins = free.expand_as(inside)
        onward = torch.cat([free, torch.stack([begins, inside], -1).flatten(-2)], -1) - free
        before = F.pad(onward, (0, 0, 1, -1))  # what the token before says
        said = scores + behind
        apart = torch.cat([said[..., :1], said[..., 1::2]], -1).amax(-1, keepdim=True)  # a new condition, or nothing
        goes_on = torch.maximum(apart, said[..., 2::2])
        back = torch.cat([apart, torch.stack([goes_on, goes_on], -1).flatten(-2)], -1)
        back = back - back.amax(-1, keepdim=True)
        behind = F.pad(back, (0, 0, -1, 1))
    return scores + before + behind


def _must_become(tags: Tensor, scores: Tensor, kind: str, other: str) -> Tensor:
    """The token that has to be of a kind, because none is: the one that loses least by it, but not the only one of the
    other kind. (B, L, 1) bool."""
    first = READER_TAGS.index(f"B-{kind}")
    is_other = of_kind(tags, other)
    is_only = is_other & (is_other.sum(1, keepdim=True) == 1)
    loss = scores.amax(-1) - scores[..., first : first + 2].amax(-1)
    least = torch.where(is_only, -IMPOSSIBLE, loss).argmin(1, keepdim=True)
    here = torch.arange(tags.shape[1], device=tags.device) == least
    return (here & ~of_kind(tags, kind).any(1, keepdim=True)).unsqueeze(-1)


def _total(scores: Tensor, tags: Tensor) -> Tensor:
    return scores.gather(-1, tags.unsqueeze(-1)).squeeze(-1).sum(1)
