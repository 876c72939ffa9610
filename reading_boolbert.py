# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""The reader: which words of a query are wanted, excluded, alternatives of one another, or cues of NOT, and what kind
of thing NOT excludes.

The encoder's own layers read, each changed by adapters of low rank, and a head gives each token a score for each tag.
`best_tags` decides, in tensors of any batch, so that every door of a Bool-BERT (this code on any device, and the graph
that is exported of it) reads a query alike. A `ScopeReader` is a smaller one, which stage 1 teaches.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.activations import ACT2FN
from transformers.models.bert.modeling_bert import BertLayer
from transformers.utils import ModelOutput

from .composing_boolbert import NOT, PROPERTY
from .configuration_boolbert import KINDS_OF_NOT, OPERATORS, BoolBertConfig

# What the reader calls a token: outside of everything, or the begin (B) or inside (I) of a condition that is wanted
# (w), of the first of some alternatives (a) or another of them (o), of a bound on a number (m), of a denial that is
# wanted (n), of what is excluded (x), of a bound that is denied (y), of a cue of NOT (c), or of a word that joins (j).
KINDS = WANTED, ALTERNATIVE, OTHER, BOUND, DENIAL, EXCLUDED, DENIED_BOUND, CUE, JOIN = tuple("waomnxycj")
EXCLUDING = EXCLUDED + DENIED_BOUND
READER_TAGS = ("O", *(f"{place}-{kind}" for kind in KINDS for place in "BI"))
# What the head says of a token: a score for each tag, and one above 0 where it is a further piece of a word. And of the
# sentence, as the mean over its words: a score for each kind of NOT, and one above 0 where it asks.
PIECE = len(READER_TAGS)
KIND = PIECE + 1
ASKS = KIND + len(KINDS_OF_NOT)
HEAD_SIZE = ASKS + 1
# What a fresh reader says for "outside of everything", more than `FAVOUR` can make up for.
INITIAL_OUTSIDE = 10.0
# An exclusion that is missed is worse than one too many: what it gets on top, in the logs of probabilities.
FAVOUR = 1.0
# Where a property is negated nothing is taken away: so much clearer than the other kinds it has to be, in logits.
LEAD = 0.5
# So many tokens before and behind it have a say in a token's tag. Longer conditions than that are told by their words.
WINDOW = 6
IMPOSSIBLE = -1e4
# The Gaussian's exponent, times sigma squared, where no cue reaches. Finite, or sigma's gradient would be 0 * infinity.
UNREACHED = -1e8
# Labels with this value do not count in a loss, as everywhere in transformers.
IGNORED_LABEL = -100


@dataclass
class BooleanReading(ModelOutput):
    """What is read off a sentence before any layer runs; see [`BoolBertModel.read`].

    cue_logits (B, E, L); gate_logits (B, E), already divided by the gate's temperature; operators (B, E), the 0/1 gate;
    scope_logits (B, E, L) and scope, 0/1, which tokens each operator that is on reaches by the reader (None without
    one); each layer's attention has its own. kind (B,), by a reader with adapters: what NOT excludes, a number in
    `KINDS_OF_NOT`.
    """

    cue_logits: Tensor | None = None
    gate_logits: Tensor | None = None
    operators: Tensor | None = None
    scope_logits: Tensor | None = None
    scope: Tensor | None = None
    kind: Tensor | None = None


@dataclass
class PreTrainingLosses(ModelOutput):
    """The losses of a [`BoolBertForPreTraining`], each where its labels are given, and their weighted sum."""

    loss: Tensor | None = None
    cue_loss: Tensor | None = None
    gate_loss: Tensor | None = None
    scope_loss: Tensor | None = None
    triplet_loss: Tensor | None = None


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

    def __init__(self, config: BoolBertConfig, rank: int | None = None, outputs: int = HEAD_SIZE):
        super().__init__()
        rank = rank or config.reader_rank
        self.layer = nn.ModuleList([ReadingLayer(config, rank) for _ in range(config.num_hidden_layers)])
        self.head = nn.Linear(config.hidden_size, outputs)

    def forward(self, layers: Iterable[BertLayer], embeddings: Tensor, token_mask: Tensor) -> Tensor:
        """The layers of a BERT, its embeddings (B, L, D), which tokens are not padding (B, L) -> (B, L, outputs)."""
        mask = (token_mask != 0)[:, None, None]
        for own, layer in zip(self.layer, layers, strict=True):
            embeddings = own(layer, embeddings, mask)
        return self.head(embeddings)


def along_tokens(convolution: Any, states: Tensor) -> Tensor:
    """A Conv1d over tokens, as one matrix product: (B, L, C) -> (B, L, C'). On a CPU it learns in half the time."""
    (kernel,), (padding,), (dilation,) = convolution.kernel_size, convolution.padding, convolution.dilation
    length = states.shape[1]
    padded = F.pad(states, (0, 0, padding, padding))
    windows = torch.cat([padded[:, k * dilation : k * dilation + length] for k in range(kernel)], -1)  # (B, L, K x C)
    return F.linear(windows, convolution.weight.transpose(1, 2).flatten(1), convolution.bias)


class ScopeReader(nn.Module):
    """Which words each operator reaches, read off the embeddings once and passed down to every layer.

    A layer's own convolution is too narrow to know that a "not" stood six words before. Here dilated convolutions, each
    of which doubles how far the reader sees, look from a cue to the end of what it excludes.
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        size = config.scope_reader_size
        self.initial_logit = config.initial_scope_logit
        self.dense = nn.Linear(config.hidden_size, size)
        self.cue_weight = nn.Parameter(torch.empty(len(OPERATORS), size))
        self.activation = ACT2FN["gelu"]
        self.norms = nn.ModuleList([nn.LayerNorm(size) for _ in range(config.scope_reader_layers)])
        dilations = [2**i for i in range(config.scope_reader_layers)]
        self.convolutions = nn.ModuleList([nn.Conv1d(size, size, 3, padding=d, dilation=d) for d in dilations])
        self.output = nn.Linear(size, len(OPERATORS), bias=False)
        self.output_bias = nn.Parameter(torch.empty(len(OPERATORS)))

    def forward(self, hidden_states: Tensor, cue_probs: Tensor, token_mask: Tensor) -> Tensor:
        visible = token_mask.unsqueeze(-1).to(hidden_states.dtype)  # (B, L, 1); padding looks like the sentence's end
        features = self.dense(hidden_states) + cue_probs.transpose(1, 2).to(hidden_states.dtype) @ self.cue_weight
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            features = features + self.activation(along_tokens(convolution, norm(features) * visible))
        return (self.output(features) + self.output_bias).transpose(1, 2).float()  # (B, E, L)


def read_tokens(scores: Tensor, token_mask: Tensor) -> tuple[Tensor, Tensor]:
    """The tags of tokens (B, L), and the kind of NOT (B,), from what the head says of them (B, L, HEAD_SIZE)."""
    words = between_specials(token_mask)
    said = of_sentence(scores, words)
    is_property = torch.arange(len(KINDS_OF_NOT), device=scores.device) == PROPERTY
    kinds = said[:, : len(KINDS_OF_NOT)] - LEAD * is_property
    return best_tags(scores[..., :KIND], words), kinds.argmax(-1)


def of_sentence(scores: Tensor, words: Tensor) -> Tensor:
    """What the head says of sentences: (B, L, HEAD_SIZE), and which tokens are words, (B, L) -> (B, kinds + 1)."""
    counted = words.unsqueeze(-1).to(scores.dtype)
    return (scores[..., KIND:] * counted).sum(1) / counted.sum(1).clamp_min(1.0)


def between_specials(token_mask: Tensor) -> Tensor:
    """Which tokens are words: neither padding nor the first or the last of a sentence, [CLS] and [SEP]. (B, L) bool."""
    before, after = token_mask.cumsum(1), token_mask.flip(1).cumsum(1).flip(1)
    return (token_mask != 0) & (before > 1) & (after > 1)


def of_kind(tags: Tensor, kinds: str) -> Tensor:
    """Which tags, as numbers in `READER_TAGS`, are of one of these kinds."""
    found = torch.zeros_like(tags, dtype=torch.bool)
    for kind in kinds:
        first = READER_TAGS.index(f"B-{kind}")
        found = found | (tags == first) | (tags == first + 1)
    return found


def best_tags(scores: Tensor, words: Tensor) -> Tensor:
    """The tags of tokens, (B, L), from the scores of the head, (B, L, KIND). words (B, L): the others get "O".

    Nothing goes on that has not begun, and a sentence has both cues of NOT and exclusions, or neither: whichever of the
    two the scores say, with `FAVOUR` for what excludes. All pieces of a word are what the first is.
    """
    goes_on = (scores[..., PIECE] > 0) & words & F.pad(words[:, :-1], (1, 0))
    scores = scores[..., :PIECE]
    scores = F.log_softmax(scores.float(), -1)
    tags = torch.arange(len(READER_TAGS), device=scores.device)
    is_outside = tags == 0
    scores = torch.where(words.unsqueeze(-1) | is_outside, scores, IMPOSSIBLE)
    scores = torch.where(words.unsqueeze(-1) | ~is_outside, scores, 0.0)
    silent = torch.where(of_kind(tags, CUE + EXCLUDING), IMPOSSIBLE, scores)
    heard, neither = with_neighbours(scores), with_neighbours(silent).argmax(-1)
    both = heard.argmax(-1)
    forced = scores
    for kind, other in ((CUE, EXCLUDING), (EXCLUDING, CUE)):
        forced = torch.where(_must_become(both, heard, kind, other) & ~of_kind(tags, kind), IMPOSSIBLE, forced)
    both = with_neighbours(forced).argmax(-1)
    has_both = of_kind(both, CUE).any(1) & of_kind(both, EXCLUDING).any(1)  # which a single word cannot be
    excludes = has_both & (_total(forced, both) + FAVOUR >= _total(scores, neither))
    return _as_first_piece(torch.where(excludes.unsqueeze(1), both, neither), goes_on)


def _as_first_piece(tags: Tensor, goes_on: Tensor) -> Tensor:
    """The tags, those of a word's further pieces as that of its first, which they go on with."""
    here = torch.arange(tags.shape[1], device=tags.device)
    before = (here[:, None] >= here) & ~goes_on.unsqueeze(1)  # (B, L, L): the beginnings of words up to each token
    first = (before * here).amax(-1)
    of_word = tags.gather(1, first)
    begins = of_word % 2 == 1  # "B-" tags are odd, and "I-" is the next
    return torch.where(goes_on & begins, of_word + 1, of_word)


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


def _must_become(tags: Tensor, scores: Tensor, kinds: str, other: str) -> Tensor:
    """The token that has to be of one of some kinds, because none is: the one that loses least by it, but not the only
    one of the other kinds. (B, L, 1) bool."""
    of_tags = of_kind(torch.arange(len(READER_TAGS), device=tags.device), kinds)
    is_other = of_kind(tags, other)
    is_only = is_other & (is_other.sum(1, keepdim=True) == 1)
    loss = scores.amax(-1) - torch.where(of_tags, scores, -torch.inf).amax(-1)
    least = torch.where(is_only, -IMPOSSIBLE, loss).argmin(1, keepdim=True)
    here = torch.arange(tags.shape[1], device=tags.device) == least
    return (here & ~of_kind(tags, kinds).any(1, keepdim=True)).unsqueeze(-1)


def _total(scores: Tensor, tags: Tensor) -> Tensor:
    return scores.gather(-1, tags.unsqueeze(-1)).squeeze(-1).sum(1)


def last_cue(cues: Tensor) -> tuple[Tensor, Tensor]:
    """For each token the index of the nearest cue at or before it, and whether there is one: both (..., L)."""
    count = cues.long().cumsum(-1)  # the number of the cue that each token follows, 0 for none
    index = torch.arange(cues.shape[-1], device=cues.device).expand_as(count)
    # The n-th cue writes its index into slot n. All other tokens write into slot 0, which is never used.
    slots = F.pad(torch.zeros_like(count), (1, 0)).scatter(-1, count * cues, index)
    return slots.gather(-1, count), count > 0


def relative_positions(cues: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """How far each token is from the cue that reaches it, and whether one does: (B, E, L) bool -> two of (B, E, L).

    AND and OR reach both ways, their distance is clipped to the window; NOT reaches its own and later tokens only.
    """
    index = torch.arange(cues.shape[-1], device=cues.device)
    before, has_before = last_cue(cues)
    after, has_after = last_cue(cues.flip(-1))
    after, has_after = (index[-1] - after).flip(-1), has_after.flip(-1)

    since = index - before
    until = torch.where(has_after, after - index, since)
    nearest = torch.where(has_before, torch.minimum(since, until), until).clamp_max(window)
    is_not = (torch.arange(len(OPERATORS), device=cues.device) == NOT).unsqueeze(-1)  # (E, 1)
    return torch.where(is_not, since, nearest), has_before | (has_after & ~is_not)


def gaussian_exponent(cues: Tensor, window: int) -> Tensor:
    """-r^2 / 2 for each token, and far below where no cue reaches it, so that the Gaussian gives 0: (B, E, L)."""
    distance, reached = relative_positions(cues, window)
    return torch.where(reached, -0.5 * distance.float().square(), UNREACHED)


def reading_losses(
    reading: Any,
    attention_mask: Tensor | None,
    cue_labels: Tensor | None = None,
    gate_labels: Tensor | None = None,
    scope_labels: Tensor | None = None,
    layer_scope_logits: Iterable[Tensor] = (),
) -> dict[str, Any]:
    """The losses of a [`BooleanReading`] (or a model's output) whose labels are given, by name.

    `layer_scope_logits` are the scope logits of each Boolean layer, (B, E, heads, L).
    """
    losses: dict[str, Any] = {}
    visible = None if attention_mask is None else (attention_mask != 0).unsqueeze(1)  # (B, 1, L)

    def counted(labels: Tensor) -> Tensor:
        return labels != IGNORED_LABEL if visible is None else (labels != IGNORED_LABEL) & visible

    if cue_labels is not None:
        _check_labels("cue_labels", cue_labels, reading.cue_logits)
        losses["cue_loss"] = masked_binary_cross_entropy(reading.cue_logits, cue_labels, counted(cue_labels))
    if gate_labels is not None:
        _check_labels("gate_labels", gate_labels, reading.gate_logits)
        is_known = gate_labels != IGNORED_LABEL
        losses["gate_loss"] = masked_binary_cross_entropy(reading.gate_logits, gate_labels, is_known)
    if scope_labels is not None:
        _check_labels("scope_labels", scope_labels, reading.cue_logits)
        all_logits = [logits for logits in (reading.scope_logits,) if logits is not None]
        # The heads of a layer share their labels.
        all_logits += [logits for layer in layer_scope_logits for logits in layer.unbind(2)]
        if not all_logits:
            raise ValueError("scope_labels are given, but the model has neither a scope reader nor a Boolean layer")
        where = counted(scope_labels)
        terms = [masked_binary_cross_entropy(logits, scope_labels, where) for logits in all_logits]
        losses["scope_loss"] = torch.stack(terms).mean()
    return losses


def _check_labels(name: str, labels: Tensor, logits: Tensor) -> None:
    if labels.shape != logits.shape:
        raise ValueError(f"{name} must be of shape {tuple(logits.shape)}, got {tuple(labels.shape)}")


def masked_binary_cross_entropy(logits: Tensor, labels: Tensor, counted: Tensor) -> Tensor:
    """Mean binary cross-entropy over the entries that count; all three of the same shape."""
    losses = F.binary_cross_entropy_with_logits(logits.float(), labels.float() * counted, reduction="none")
    return (losses * counted).sum() / counted.sum().clamp_min(1)
