# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Bool-BERT: BERT whose self-attention knows AND, OR and NOT ("Boolean-aware Attention for Dense Retrieval").

Shapes: B sentences, L tokens, D hidden size, E = 3 operators in the order of `OPERATORS`, d_o operator embedding size.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules import module as module_hooks
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import (
    BertAttention,
    BertEmbeddings,
    BertLayer,
    BertPooler,
    BertPreTrainedModel,
    BertSelfAttention,
    eager_attention_forward,
)
from transformers.pytorch_utils import apply_chunking_to_forward
from transformers.utils import ModelOutput
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from .configuration_boolbert import OPERATORS, BoolBertConfig
from .gradients_boolbert import attention_parts, is_trainable
from .kernels_boolbert import (
    are_untouched,
    attention_inputs,
    forget,
    is_usable,
    pack,
    pack_with_distances,
    side_by_side,
    takes_narrow_values,
    working_dtype,
)
from .kernels_boolbert import scope_logits as fused_scope_logits
from .short_boolbert import (
    SharedInputs,
    is_cheaper,
    near_exponent,
    share,
    short_inputs,
    short_layer,
)
from .short_boolbert import cue_logits as short_cue_logits
from .short_boolbert import scope_logits as short_scope_logits

NUM_OPERATORS = len(OPERATORS)
OR, NOT = OPERATORS.index("or"), OPERATORS.index("not")

# A token is a cue, and an operator is switched on, above this probability.
DECISION = 0.5
# A fresh cue predictor expects a cue on about one token in twenty.
INITIAL_CUE_LOGIT = -3.0
# What stands for minus infinity on the key side of the fast path: far below any score, and finite in half precision.
MASKED_SCORE = -30000.0
# The Gaussian's exponent, times sigma squared, where no cue reaches. Finite, or sigma's gradient would be 0 * infinity.
UNREACHED = -1e8
# Fast attention kernels want head sizes that are a multiple of this.
HEAD_MULTIPLE = 8
# So many tokens are few: see `BoolBertSelfAttention.breaks_graphs`.
MOST_APART = 1 << 14
# Neighbouring operators: the first, and the one after the last.
OperatorRange = tuple[int, int]
ALL_OPERATORS: OperatorRange = (0, NUM_OPERATORS)
RANGES = tuple((first, last) for last in range(1, NUM_OPERATORS + 1) for first in range(last))
# Labels with this value do not count in a loss, as everywhere in transformers.
IGNORED_LABEL = -100
# The modules and parameters that Boolean-aware attention adds to a BERT.
BOOLEAN_PARTS = frozenset(
    {"operator_embeddings", "cue_predictor", "scope_reader", "gate", "scope_predictor", "bias_predictor", "composer"}
)
# Those that read cues, scopes and operators off the embeddings; the others act on what they read.
READING_PARTS = ("operator_embeddings", "cue_predictor", "scope_reader", "gate")
# Where a penalty does the rest, so much of the strength of exclusion is left for the vectors themselves.
PENALISED_SHARE = 2 / 3
# In `operators` and `not_scope`: the model decides.
UNKNOWN = -1
# The scope logit of a token of which the caller has said what it is; no layer's own predictor outweighs it.
CERTAIN = 100.0


@dataclass
class BooleanReading(ModelOutput):
    """What is read off a sentence before any layer runs; see [`BoolBertModel.read`].

    cue_logits (B, E, L); gate_logits (B, E), already divided by the gate's temperature; operators (B, E), the 0/1 gate;
    scope_logits (B, E, L) and scope, 0/1, which tokens each operator that is on reaches (None without a scope reader).
    """

    cue_logits: Tensor | None = None
    gate_logits: Tensor | None = None
    operators: Tensor | None = None
    scope_logits: Tensor | None = None
    scope: Tensor | None = None


@dataclass
class BoolBertOutput(ModelOutput):
    """What a [`BoolBertModel`] returns.

    last_hidden_state (B, L, D); pooler_output (B, D); sentence_embedding (B, D), the vector that obeys;
    query_vectors (B, 1 + branches, D), it and one for each alternative of OR, and query_mask, which of them exist (the
    others repeat the first: a document's score is its largest dot product with them);
    wanted_embedding and excluded_embedding (B, D), what it was composed of (the latter 0 where nothing is excluded);
    search_vectors (B, 1 + branches, D), query_vectors from which less is taken away, and penalty (B, 2), what to do
    with what is excluded instead: a document's score is its largest cosine a with search_vectors, less w max(0, b - t)
    for its cosine b with excluded_embedding (None without a penalty; w is 0 where nothing is excluded);
    and the fields of [`BooleanReading`]. With `output_scopes=True`, `output_biases=True` or
    `output_layer_scope_logits=True` these for each Boolean layer, (B, E, heads, L). With `output_hidden_states` and
    `output_attentions` as any BERT.
    """

    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    sentence_embedding: Tensor | None = None
    query_vectors: Tensor | None = None
    query_mask: Tensor | None = None
    wanted_embedding: Tensor | None = None
    excluded_embedding: Tensor | None = None
    search_vectors: Tensor | None = None
    penalty: Tensor | None = None
    cue_logits: Tensor | None = None
    gate_logits: Tensor | None = None
    operators: Tensor | None = None
    scope_logits: Tensor | None = None
    scope: Tensor | None = None
    scopes: tuple[Tensor, ...] | None = None
    layer_scope_logits: tuple[Tensor, ...] | None = None
    biases: tuple[Tensor, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class BoolBertForPreTrainingOutput(ModelOutput):
    """What a [`BoolBertForPreTraining`] returns: its losses and the model's outputs."""

    loss: Tensor | None = None
    cue_loss: Tensor | None = None
    gate_loss: Tensor | None = None
    scope_loss: Tensor | None = None
    triplet_loss: Tensor | None = None
    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    sentence_embedding: Tensor | None = None
    query_vectors: Tensor | None = None
    query_mask: Tensor | None = None
    wanted_embedding: Tensor | None = None
    excluded_embedding: Tensor | None = None
    search_vectors: Tensor | None = None
    penalty: Tensor | None = None
    cue_logits: Tensor | None = None
    gate_logits: Tensor | None = None
    operators: Tensor | None = None
    scope_logits: Tensor | None = None
    scope: Tensor | None = None
    scopes: tuple[Tensor, ...] | None = None
    layer_scope_logits: tuple[Tensor, ...] | None = None
    biases: tuple[Tensor, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


def is_boolean(name: str) -> bool:
    """Whether a parameter of this name is one that plain BERT does not have.

    >>> is_boolean("query.encoder.layer.0.attention.self.scope_predictor.threshold"), is_boolean("query.pooler.bias")
    (True, False)
    """
    return not BOOLEAN_PARTS.isdisjoint(name.split("."))


def is_traced(tensor: Tensor) -> bool:
    """Whether values cannot be looked at, because a graph is made or there are none."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or tensor.is_meta:
        return True
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def straight_through(hard: Tensor, surrogate: Tensor) -> Tensor:
    """The value of `hard`, to the bit, with the gradient of `surrogate`."""
    return surrogate - surrogate.detach() + hard if surrogate.requires_grad else hard


def masked_mean(hidden_states: Tensor, token_mask: Tensor) -> Tensor:
    """Mean over the tokens that are not padding: (B, L, D), (B, L) -> (B, D)."""
    weights = token_mask.to(hidden_states.dtype).unsqueeze(-1)
    return (hidden_states * weights).sum(1) / weights.sum(1).clamp_min(1.0)


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
    is_not = (torch.arange(NUM_OPERATORS, device=cues.device) == NOT).unsqueeze(-1)  # (E, 1)
    return torch.where(is_not, since, nearest), has_before | (has_after & ~is_not)


def gaussian_exponent(cues: Tensor, window: int) -> Tensor:
    """-r^2 / 2 for each token, and far below where no cue reaches it, so that the Gaussian gives 0: (B, E, L)."""
    distance, reached = relative_positions(cues, window)
    return torch.where(reached, -0.5 * distance.float().square(), UNREACHED)


def convolve(inputs: Tensor, convolution: Any) -> Tensor:
    """What a Conv1d gives, which keeps the length, with the channels last: (B, L, C) -> (B, L, C').

    As one matrix product over each token and its neighbours: on sentences that is faster than a convolution, which
    wants the channels first.
    """
    (reach,), (step,), (kernel,) = convolution.padding, convolution.dilation, convolution.kernel_size
    length = inputs.shape[1]
    padded = F.pad(inputs, (0, 0, reach, reach))
    neighbours = torch.stack([padded[:, k * step : k * step + length] for k in range(kernel)], -1)  # (B, L, C, kernel)
    return F.linear(neighbours.flatten(2), convolution.weight.flatten(1), convolution.bias)


def place_of(module: nn.Module) -> tuple[Any, ...]:
    """Where a module's parameters are: the first of them, its device and its precision."""
    first = next(module.parameters(), None)
    return () if first is None else (id(first), first.device, first.dtype)


def known_range(operators: OperatorRange) -> OperatorRange:
    """The same range, in numbers that a compiled graph knows: those that it is given may be of any size to it."""
    if torch.compiler.is_compiling():
        for known in RANGES:
            if known == operators:
                return known
    return operators


def wants_eights(states: Tensor) -> bool:
    return states.is_cuda and not torch.compiler.is_compiling()


def in_eights(inputs: Tensor, weight: Tensor) -> Tensor:
    """The product with a weight for few numbers, (..., n), (m, n) -> (..., m), where n or m is 3.

    On a GPU in half precision a product of rows that are no multiple of 16 bytes, and above all its gradient, takes
    several times as long as one with zeros behind them.
    """
    rows, columns = weight.shape
    if not wants_eights(inputs):
        return F.linear(inputs, weight)
    weight = F.pad(weight, (0, -columns % 8, 0, -rows % 8))
    return F.linear(F.pad(inputs, (0, -columns % 8)), weight)[..., :rows]


class KeepsCopies(nn.Module):
    """A part of the model of whose weights other forms are kept.

    Changed weights are noticed by themselves. Here what was made of them makes room, and writes that leave no trace are
    met: in training, and where the weights move.
    """

    def _copied(self) -> Iterable[Any]:
        """The modules by whose weights the copies are known."""
        raise NotImplementedError

    def _forget(self) -> None:
        for module in self._copied():
            forget(getattr(module, "weight", None))

    def train(self, mode: bool = True) -> Self:
        if mode:
            self._forget()
        return super().train(mode)

    def _apply(self, *args: Any, **kwargs: Any) -> Self:
        before = place_of(self)
        super()._apply(*args, **kwargs)
        if before != place_of(self):
            self._forget()
        return self


class CuePredictor(KeepsCopies):
    """Which tokens are cues of which operator, read off the embeddings: "not", "as well as", "either ... or".

    p_e = sigmoid(W_c act(H + context(H) + W_o o_e + b_o) + b_c). Without `act` an operator's embedding would only shift
    all scores alike; without the context a token of "other than" could not be told from any other "other" or "than".
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        size, narrow, kernel = config.hidden_size, config.cue_context_size, config.cue_kernel
        self.operator_projection = nn.Linear(config.operator_embedding_size, size)
        self.has_context = kernel > 1
        if self.has_context:
            self.context_projection = nn.Linear(size, narrow)
            self.context = nn.Conv1d(narrow, size, kernel, padding=kernel // 2)
        self.activation = ACT2FN[config.cue_activation]
        self.score = nn.Linear(size, 1, bias=False)
        # A parameter of its own: transformers leaves modules of custom code without one out of `_init_weights`.
        self.score_bias = nn.Parameter(torch.empty(1))

    def _copied(self) -> Iterable[Any]:
        return [self.context_projection] if self.has_context else []

    def forward(self, hidden_states: Tensor, operator_embeddings: Tensor, token_mask: Tensor) -> Tensor:
        if self.has_context and is_cheaper(hidden_states, self.training):
            logits = short_cue_logits(self, hidden_states, operator_embeddings, token_mask)
            if logits is not None:
                return logits
        if self.has_context:
            visible = self.context_projection(hidden_states)
            visible = visible * token_mask.unsqueeze(-1).to(visible.dtype)  # padding looks like the sentence's end
            hidden_states = hidden_states + convolve(visible, self.context)
        operators = self.operator_projection(operator_embeddings)  # (E, D)
        features = self.activation(hidden_states.unsqueeze(1) + operators[:, None, :])  # (B, E, L, D)
        return self.score(features).squeeze(-1) + self.score_bias  # (B, E, L)


class ScopeReader(KeepsCopies):
    """Which words each operator reaches, read off the embeddings once and passed down to every layer.

    A layer's own convolution is too narrow to know that a "not" stood six words before. Here dilated convolutions, each
    of which doubles how far the reader sees, look from a cue to the end of what it excludes.
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        size = config.scope_reader_size
        self.initial_logit = config.initial_scope_logit
        self.dense = nn.Linear(config.hidden_size, size)
        self.cue_weight = nn.Parameter(torch.empty(NUM_OPERATORS, size))
        self.activation = ACT2FN["gelu"]
        self.norms = nn.ModuleList([nn.LayerNorm(size) for _ in range(config.scope_reader_layers)])
        dilations = [2**i for i in range(config.scope_reader_layers)]
        self.convolutions = nn.ModuleList([nn.Conv1d(size, size, 3, padding=d, dilation=d) for d in dilations])
        self.output = nn.Linear(size, NUM_OPERATORS, bias=False)
        self.output_bias = nn.Parameter(torch.empty(NUM_OPERATORS))

    def _copied(self) -> Iterable[Any]:
        return self.norms[:1]

    def forward(self, hidden_states: Tensor, cue_probs: Tensor, token_mask: Tensor) -> Tensor:
        if is_usable(hidden_states, self.training) and not torch.compiler.is_compiling():
            logits = fused_scope_logits(self, hidden_states, cue_probs, token_mask)
            if logits is not None:
                return logits
        if is_cheaper(hidden_states, self.training):
            logits = short_scope_logits(self, hidden_states, cue_probs, token_mask)
            if logits is not None:
                return logits
        visible = token_mask.unsqueeze(-1).to(hidden_states.dtype)  # (B, L, 1); padding looks like the sentence's end
        cues = cue_probs.transpose(1, 2).to(hidden_states.dtype)
        features = self.dense(hidden_states) + in_eights(cues, self.cue_weight.T)
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            features = features + self.activation(convolve(norm(features) * visible, convolution))
        is_plain = are_untouched((self.output,), (nn.Linear,)) and self.output.bias is None
        logits = in_eights(features, self.output.weight) if is_plain else self.output(features)
        return (logits + self.output_bias).transpose(1, 2).float()  # (B, E, L)


class OperatorGate(nn.Module):
    """Which operators a sentence holds, from the mean of its embeddings."""

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.temperature = config.gate_temperature
        self.dense = nn.Linear(config.hidden_size, config.hidden_size // 2)
        self.activation = ACT2FN[config.hidden_act]
        self.output = nn.Linear(config.hidden_size // 2, NUM_OPERATORS)

    def forward(self, hidden_states: Tensor, token_mask: Tensor) -> Tensor:
        hidden = self.activation(self.dense(masked_mean(hidden_states, token_mask)))
        return self.output(hidden) / self.temperature  # (B, E)


class FiLM(nn.Module):
    """Feature-wise linear modulation: an operator's embedding scales and shifts what is computed for it.

    gamma and beta are two halves of one linear map. The scale is 1 + gamma, so that a fresh one changes little.
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.modulation = nn.Linear(config.operator_embedding_size, 2 * config.num_attention_heads)

    def forward(self, features: Tensor, operator_embeddings: Tensor) -> Tensor:  # (B, L, E, heads), (E, d_o)
        gamma, beta = self.modulation(operator_embeddings).to(features.dtype).chunk(2, -1)  # (E, heads) each
        return torch.addcmul(beta, features, 1 + gamma)


class ScopePredictor(nn.Module):
    """Which tokens an operator reaches in one layer: a local convolution, shaped by FiLM, made binary by a threshold.

    The convolution, which starts at zero, corrects what the `ScopeReader` says in this layer and head. Each operator
    has a Conv1D over [H; p_e] of its own. They are computed side by side: one matrix product gives every token's
    contribution to each of its neighbours, which are then moved into place and added.
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.kernel = config.conv_kernel
        self.heads = config.num_attention_heads
        self.temperature = config.gumbel_temperature
        self.initial_threshold = config.threshold
        self.initial_logit = 0.0 if config.scope_reader_size else config.initial_scope_logit
        self.context = nn.Linear(config.hidden_size, self.kernel * NUM_OPERATORS * self.heads, bias=False)
        self.cue_weight = nn.Parameter(torch.empty(self.kernel, NUM_OPERATORS, self.heads))
        self.bias = nn.Parameter(torch.empty(NUM_OPERATORS, self.heads))
        self.film = FiLM(config)
        self.threshold = nn.Parameter(torch.empty(NUM_OPERATORS))

    def taps(self, hidden_states: Tensor, operators: OperatorRange) -> Tensor:
        """Every token's contribution to each of its neighbours: (B, L, kernel x E x heads)."""
        if operators == ALL_OPERATORS:
            return self.context(hidden_states)
        size = hidden_states.shape[-1]
        weight = self.context.weight.view(self.kernel, NUM_OPERATORS, self.heads, size)[:, slice(*operators)]
        return F.linear(hidden_states, weight.reshape(-1, size))

    def logits(
        self,
        hidden_states: Tensor,
        cue_probs: Tensor,
        operator_embeddings: Tensor,
        token_mask: Tensor,
        reader_logits: Tensor | None = None,
        operators: OperatorRange = ALL_OPERATORS,
    ) -> Tensor:
        """The modulated convolution, added to what the reader says: (B, L, E, heads)."""
        batch, length, _ = hidden_states.shape
        chosen, count = slice(*operators), operators[1] - operators[0]
        taps = self.taps(hidden_states, operators).float().view(batch, length, self.kernel, count, self.heads)
        cues = cue_probs.transpose(1, 2)[:, :, None, :, None]
        taps = (taps + cues * self.cue_weight[:, chosen]) * token_mask[:, :, None, None, None]
        # Tap k of the token at i + k - reach belongs to the token at i; beyond either end there are zeros.
        reach = self.kernel // 2
        taps = F.pad(taps, (0, 0, 0, 0, 0, 0, reach, reach))
        moved = taps[:, :length, 0]
        for k in range(1, self.kernel):
            moved = moved + taps[:, k : k + length, k]
        logits = self.film(moved + self.bias[chosen], operator_embeddings)
        return logits if reader_logits is None else logits + reader_logits.transpose(1, 2).unsqueeze(-1)

    def forward(
        self,
        hidden_states: Tensor,
        cue_probs: Tensor,
        operator_embeddings: Tensor,
        token_mask: Tensor,
        reader_logits: Tensor | None = None,
        operators: OperatorRange = ALL_OPERATORS,
    ) -> tuple[Tensor, Tensor]:
        """`operators`: which ones are computed; all that has an entry for each operator is given for these alone."""
        logits = clean = self.logits(
            hidden_states, cue_probs, operator_embeddings, token_mask, reader_logits, operators
        )
        if self.training:  # Gumbel-sigmoid: the difference of two Gumbel variables is logistic
            noise = torch.logit(torch.rand_like(logits), eps=1e-6)
            logits = (logits + noise) / self.temperature
        # 1[P > theta] has no gradient anywhere; P - theta stands in for it, so that theta learns too.
        threshold = self.threshold[slice(*operators), None].float()
        margin = (torch.sigmoid(logits) - threshold) * token_mask[:, :, None, None]
        scope = straight_through((margin > 0).to(margin.dtype), margin)
        # Both (B, E, heads, L): the scope with values in {0, 1}, and its logits without the noise.
        return scope.to(hidden_states.dtype).permute(0, 2, 3, 1), clean.permute(0, 2, 3, 1)


class BiasPredictor(nn.Module):
    """How strongly an operator changes the attention to a token.

    b_e = softplus(FFN_e([H; w(r_e)]) * sigmoid(W_op o_e)) with w(r) = exp(-r^2 / 2 sigma_e^2), and w = 0 where no cue
    reaches. The operators' FFNs are computed side by side.
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.hidden_size = config.bias_hidden_size
        self.initial_sigma = config.sigma
        self.initial_bias = [config.initial_not_bias if e == NOT else config.initial_bias for e in range(NUM_OPERATORS)]
        heads = config.num_attention_heads
        self.sigma = nn.Parameter(torch.empty(NUM_OPERATORS))
        self.dense = nn.Linear(config.hidden_size, NUM_OPERATORS * self.hidden_size)
        self.position_weight = nn.Parameter(torch.empty(NUM_OPERATORS, self.hidden_size))
        self.activation = ACT2FN[config.hidden_act]
        self.output_weight = nn.Parameter(torch.empty(NUM_OPERATORS, self.hidden_size, heads))
        self.output_bias = nn.Parameter(torch.empty(NUM_OPERATORS, heads))
        self.operator_gate = nn.Linear(config.operator_embedding_size, heads, bias=False)

    def hidden_layer(self, hidden_states: Tensor, operators: OperatorRange) -> Tensor:
        """The FFNs' hidden layers before position and activation: (B, L, E x hidden)."""
        if operators == ALL_OPERATORS:
            return self.dense(hidden_states)
        rows = slice(operators[0] * self.hidden_size, operators[1] * self.hidden_size)
        return F.linear(hidden_states, self.dense.weight[rows], self.dense.bias[rows])

    def position_weights(self, exponent: Tensor, operators: OperatorRange = ALL_OPERATORS) -> Tensor:
        """w(r), from `gaussian_exponent`'s -r^2 / 2: (B, E, L)."""
        return torch.exp(exponent / self.sigma[slice(*operators), None].float().square().clamp_min(1e-6))

    def forward(
        self,
        hidden_states: Tensor,
        exponent: Tensor,
        operator_embeddings: Tensor,
        operators: OperatorRange = ALL_OPERATORS,
    ) -> Tensor:
        """`operators`: which ones are computed; all that has an entry for each operator is given for these alone."""
        batch, length, _ = hidden_states.shape
        chosen, count = slice(*operators), operators[1] - operators[0]
        hidden = self.hidden_layer(hidden_states, operators).view(batch, length, count, self.hidden_size)
        position = self.position_weights(exponent, operators).transpose(1, 2).unsqueeze(-1).to(hidden.dtype)
        hidden = torch.addcmul(hidden, position, self.position_weight[chosen].to(hidden.dtype))  # (B, L, E, hidden)
        bias = side_by_side(self.activation(hidden), self.output_weight[chosen])
        bias = (bias + self.output_bias[chosen]) * torch.sigmoid(self.operator_gate(operator_embeddings))
        bias = F.softplus(bias)
        return bias.to(hidden_states.dtype).permute(0, 2, 3, 1)  # (B, E, heads, L), never negative


class BoolBertSelfAttention(KeepsCopies, BertSelfAttention):
    """Self-attention with the Boolean bias S_and + S_or - S_not on its scores, which never exists as a matrix.

    S_e = G_e * Scope_e * Bias_e. The scope of AND and OR is s_i s_j; that of NOT is (1 - s_i) s_j, so that what stands
    outside does not look into what is excluded (`not_reach` has two other forms). Each is a column times a row, so
    S = U V^T with U = [s_and, s_or, 1 - s_not] and V = [G s_and b_and, G s_or b_or, -G s_not b_not]. Attention over
    [Q ; U] and [K ; V / scale] is exactly attention with S added, at the price of a few more dimensions per head, and
    any attention kernel can do it.
    """

    # Whether a compiled layer that learns leaves its experts to their kernel, between two graphs. With few tokens that
    # is faster where steps are recorded, and slower where they are not.
    breaks_graphs = False

    def __init__(self, config: BoolBertConfig, layer_idx: int | None = None):
        super().__init__(config, layer_idx=layer_idx)
        self.not_reach = config.not_reach
        self.scope_predictor = ScopePredictor(config)
        self.bias_predictor = BiasPredictor(config)

    def forward(  # type: ignore[override]
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None,
        boolean: tuple[Any, ...] = (),
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        if not boolean:
            return super().forward(hidden_states, attention_mask, **kwargs)  # type: ignore[return-value, arg-type]
        boolean = (known_range(boolean[0]), *boolean[1:])
        *boolean_parts, packed = boolean
        inputs = None
        if packed is not None:
            inputs = self._fused_inputs(hidden_states, attention_mask is None, boolean, packed)
        if inputs is None:
            inputs = self._plain_inputs(hidden_states, attention_mask is None, *boolean_parts)

        attention = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        output, weights = attention(
            self,
            *inputs,
            attention_mask,
            dropout=self.dropout.p if self.training else 0.0,
            scaling=self.scaling,
            **kwargs,
        )  # (B, L, heads, as wide as the values)
        return output[..., : self.attention_head_size].reshape(*hidden_states.shape[:2], -1), weights

    def _plain_inputs(
        self,
        hidden_states: Tensor,
        has_padding: bool,
        operators: OperatorRange,
        cue_probs: Tensor,
        exponent: Tensor,
        gate: Tensor,
        operator_embeddings: Tensor,
        token_mask: Tensor,
        reader_logits: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Query and key with their Boolean columns, (B, heads, L, head size + columns + spare), and value, of the same
        width or without all that."""
        operators = known_range(operators)
        scope, _ = self.scope_predictor(
            hidden_states, cue_probs, operator_embeddings, token_mask, reader_logits, operators
        )
        bias = self.bias_predictor(hidden_states, exponent, operator_embeddings, operators)

        batch, length, _ = hidden_states.shape
        shape = (batch, length, self.num_attention_heads, self.attention_head_size)
        query = self.query(hidden_states).view(shape).transpose(1, 2)
        key = self.key(hidden_states).view(shape).transpose(1, 2)
        value = self.value(hidden_states).view(shape).transpose(1, 2)
        padding = (1 - token_mask) * MASKED_SCORE if has_padding else None
        query_side, key_side = self.boolean_columns(scope, bias, gate, padding, operators[1] == NUM_OPERATORS)
        # Zeros behind the columns fill the head up to a size that kernels like.
        columns = query_side.shape[-1]
        spare = -(self.attention_head_size + columns) % HEAD_MULTIPLE
        zeros = query.new_zeros(()).expand(*query.shape[:-1], spare)
        is_narrow = self._has_narrow_values(query, self.attention_head_size + columns + spare)
        return (
            torch.cat([query, query_side.to(query.dtype), zeros], -1),
            torch.cat([key, key_side.to(key.dtype), zeros], -1),
            value if is_narrow else F.pad(value, (0, columns + spare)),
        )

    def _has_narrow_values(self, states: Tensor, width: int) -> bool:
        """Whether values need no filling up where queries and keys are of this width."""
        if not states.is_cuda or self.config._attn_implementation != "sdpa":
            return False
        dtype, size = working_dtype(states, states), self.attention_head_size
        dropout = self.dropout.p if self.training else 0.0
        return takes_narrow_values(states.device.index, dtype, size, width, dropout, torch.is_grad_enabled())

    def _fused_inputs(
        self, hidden_states: Tensor, has_padding: bool, boolean: tuple[Any, ...], packed: Tensor | SharedInputs
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """The same in fewer steps, on a GPU one matrix product and one kernel; None where the layer was changed."""
        operators, _, _, gate, operator_embeddings, *_ = boolean
        if isinstance(packed, SharedInputs):
            return short_inputs(self, hidden_states, packed, has_padding=has_padding)
        # Without gradients in training: the first pass of reentrant checkpointing, which needs the same noise.
        if torch.is_grad_enabled() or self.training:
            tokens = hidden_states.shape[0] * hidden_states.shape[1]
            if torch.compiler.is_compiling() and not (self.breaks_graphs and tokens <= MOST_APART):
                return None
            hidden_states = hidden_states.to(working_dtype(hidden_states, hidden_states))
            return self._trained_inputs(hidden_states, has_padding, boolean, packed)
        width = self._width_of(operators, has_padding)
        is_narrow = self._has_narrow_values(hidden_states, width)
        return attention_inputs(
            self,
            hidden_states,
            packed,
            gate,
            operator_embeddings,
            operators,
            widths=(width, self.attention_head_size if is_narrow else width),
            has_padding=has_padding,
            masked_score=MASKED_SCORE,
        )

    def _width_of(self, operators: OperatorRange, has_padding: bool) -> int:
        """How wide a head's query and key are with their columns."""
        has_not = operators[1] == NUM_OPERATORS
        columns = operators[1] - operators[0] + (has_not and self.not_reach == "both") + has_padding
        width = self.attention_head_size + columns
        return width + -width % HEAD_MULTIPLE

    @torch.compiler.disable  # a compiled layer has a graph before and one after it
    def _trained_inputs(
        self, hidden_states: Tensor, has_padding: bool, boolean: tuple[Any, ...], packed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """The same with gradients, on a GPU one product and one kernel; None where the layer was changed."""
        operators, cue_probs, _, gate, operator_embeddings, _, reader_logits, _ = boolean
        width = self._width_of(operators, has_padding)
        is_narrow = self._has_narrow_values(hidden_states, width)
        parts = attention_parts(
            self,
            hidden_states,
            packed,
            cue_probs,
            gate,
            operator_embeddings,
            reader_logits,
            operators,
            widths=(width, self.attention_head_size if is_narrow else width),
            has_padding=has_padding,
            masked_score=MASKED_SCORE,
        )
        if parts is None:
            return None
        query, key, value = parts
        return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)

    def _copied(self) -> Iterable[Any]:
        return [self.query]

    def boolean_columns(
        self, scope: Tensor, bias: Tensor, gate: Tensor, padding: Tensor | None, has_not: bool = True
    ) -> tuple[Tensor, Tensor]:
        """U and V / scale, both (B, heads, L, columns). `padding` (B, L), where given, masks keys by a last column.

        `has_not`: whether the last of the operators is NOT.
        """
        strength = (gate / self.scaling)[:, :, None, None].to(bias.dtype) * bias  # (B, E, heads, L)
        query_side, key_side = list(scope.unbind(1)), list((scope * strength).unbind(1))
        ones = torch.ones_like(query_side[0])
        if has_not:
            inside = query_side.pop()
            outside = ones - inside
            query_side.append(ones if self.not_reach == "all" else outside)
            key_side.append(-key_side.pop())
            if self.not_reach == "both":
                query_side.append(inside)
                key_side.append(-outside * strength[:, -1])
        if padding is not None:
            query_side.append(ones)
            key_side.append(padding.to(bias.dtype).unsqueeze(1).expand_as(ones))
        return torch.stack(query_side, -1), torch.stack(key_side, -1)


class BoolBertAttention(BertAttention):
    """BERT's attention block around Boolean-aware self-attention."""

    def __init__(self, config: BoolBertConfig, layer_idx: int | None = None):
        super().__init__(config, layer_idx=layer_idx)
        self.self = BoolBertSelfAttention(config, layer_idx=layer_idx)

    def forward(  # type: ignore[override]
        self, hidden_states: Tensor, attention_mask: Tensor | None, boolean: tuple[Any, ...], **kwargs: Any
    ) -> Tensor:
        output, _ = self.self(hidden_states, attention_mask, boolean, **kwargs)
        return self.output(output, hidden_states)


class BoolBertLayer(BertLayer):
    """A BERT layer with Boolean-aware attention."""

    def __init__(self, config: BoolBertConfig, layer_idx: int | None = None):
        super().__init__(config, layer_idx=layer_idx)
        self.attention = BoolBertAttention(config, layer_idx=layer_idx)

    # The Boolean tensors are positional arguments so that gradient checkpointing sees them.
    def forward(  # type: ignore[override]
        self, hidden_states: Tensor, attention_mask: Tensor | None, *boolean: Any, **kwargs: Any
    ) -> Tensor:
        attention_output = self.attention(hidden_states, attention_mask, boolean, **kwargs)
        if not self.chunk_size_feed_forward:  # most often; looking up how the function is called takes its time
            return self.feed_forward_chunk(attention_output)
        return apply_chunking_to_forward(
            self.feed_forward_chunk, self.chunk_size_feed_forward, self.seq_len_dim, attention_output
        )


# A layer, its attention block and its self-attention.
PLAIN_KINDS = (BertLayer, BertAttention, BertSelfAttention)
BOOLEAN_KINDS = (BoolBertLayer, BoolBertAttention, BoolBertSelfAttention)


def has_plain_attention(config: BoolBertConfig) -> bool:
    """Whether attention is torch's own, and nobody watches all modules."""
    if module_hooks._global_forward_hooks or module_hooks._global_forward_pre_hooks:
        return False
    return config._attn_implementation == "sdpa" and ALL_ATTENTION_FUNCTIONS["sdpa"] is sdpa_attention_forward


class BoolBertEncoder(KeepsCopies):
    """The stack of layers, Boolean-aware where the configuration says so."""

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.config = config
        layers = set(config.boolean_layers)
        self.layer = nn.ModuleList(
            [
                BoolBertLayer(config, layer_idx=i) if i in layers else BertLayer(config, layer_idx=i)
                for i in range(config.num_hidden_layers)
            ]
        )

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None,
        boolean_mask: Tensor | None,
        boolean: tuple[Any, ...],
        **kwargs: Any,
    ) -> Tensor:
        # On a CPU, layers are computed in fewer steps.
        config, shared = self.config, boolean[-1] if boolean and isinstance(boolean[-1], SharedInputs) else None
        is_asked = any(value is not None and value is not False for value in kwargs.values())
        is_recorded = is_asked or config.output_hidden_states or config.output_attentions
        is_short = not is_recorded and is_cheaper(hidden_states, self.training) and has_plain_attention(config)
        is_exact = shared is None or shared.is_exact
        for layer in self.layer:
            is_boolean = isinstance(layer, BoolBertLayer)
            if is_short and not (is_boolean and boolean and shared is None):
                if is_boolean:
                    found = short_layer(layer, BOOLEAN_KINDS, hidden_states, boolean_mask, is_exact, shared)
                else:
                    found = short_layer(layer, PLAIN_KINDS, hidden_states, attention_mask, is_exact)
                if found is not None:
                    hidden_states = found
                    continue
            if is_boolean:
                hidden_states = layer(hidden_states, boolean_mask, *boolean, **kwargs)
            else:
                hidden_states = layer(hidden_states, attention_mask, **kwargs)
        return hidden_states

    def _copied(self) -> Iterable[Any]:
        return self.modules()


class QueryComposer(nn.Module):
    """One vector that wants A and excludes B, and one for each alternative of OR.

    A is the pooling of what stands outside of NOT's scope, B the mean of what stands inside, both of length 1. The
    vector is A - l (B - (A.B) A), as long as A was: what B has in common with A stays, the rest is taken away. Where
    nothing is excluded it is the pooling of the sentence, to the bit.

    One vector has to take B from every document alike. Who keeps B apart can spare the documents that are only a little
    like it: with a penalty, a document scores max_k v_k.d - w max(0, B.d - t), less being taken from v; w and t learn.
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.pooling = config.pooling
        self.excludes = config.exclusion != "none"
        self.branches = config.branches
        self.initial_weight = config.exclusion_weight
        if self.excludes:
            self.strength = nn.Parameter(torch.empty(1))  # before softplus, which keeps it positive
        self.penalises = self.excludes and config.penalty > 0
        self.initial_penalty = (config.penalty, config.penalty_above)
        if self.penalises:
            self.penalty = nn.Parameter(torch.empty(1))  # before softplus
            self.penalty_above = nn.Parameter(torch.empty(1))
        self.has_head = config.exclusion == "head"
        if self.has_head:
            self.dense = nn.Linear(3 * config.hidden_size, 64)
            self.activation = ACT2FN["gelu"]
            self.head = nn.Linear(64, 1, bias=False)
            self.head_scale = nn.Parameter(torch.empty(1))  # starts at 0: at first every query has the same strength

    def forward(
        self, hidden_states: Tensor, token_mask: Tensor, scope: Tensor | None, not_weight: Tensor | float | None = None
    ) -> dict[str, Tensor]:
        """`scope` (B, E, L), 0/1 and 0 for operators that are off; `not_weight` stands in for the learned strength."""
        not_weight = not_weight.reshape(-1) if isinstance(not_weight, Tensor) else not_weight
        pooled = self.pool(hidden_states, token_mask)
        inside = torch.zeros_like(token_mask) if scope is None else scope[:, NOT].to(token_mask.dtype) * token_mask
        outside = token_mask - inside
        has_excluded = ((inside.sum(1) > 0) & (outside.sum(1) > 0)).unsqueeze(1) & self.excludes  # (B, 1)
        inside, outside = inside * has_excluded, torch.where(has_excluded, outside, token_mask)
        excluded = masked_mean(hidden_states, inside)

        wanted = torch.where(has_excluded, self.pool(hidden_states, outside), pooled)
        alternatives, exists = [wanted], [torch.ones_like(has_excluded)]
        if self.branches and scope is not None:
            for tokens, is_there in self.alternatives(scope[:, OR].to(token_mask.dtype) * outside):
                alternatives.append(masked_mean(hidden_states, tokens))
                exists.append(is_there)
        shares = (1.0, PENALISED_SHARE) if self.penalises else (1.0,)
        vectors, *penalised = self.exclude(torch.stack(alternatives, 1), excluded, has_excluded, not_weight, shares)
        query_mask = torch.cat(exists, 1)
        composed = {
            "sentence_embedding": vectors[:, 0].contiguous(),
            "query_vectors": self.filled(vectors, query_mask),
            "query_mask": query_mask,
            "wanted_embedding": wanted,
            "excluded_embedding": excluded * has_excluded,
        }
        if self.penalises:
            (less,) = penalised
            weight = F.softplus(self.penalty.float()) * has_excluded
            if isinstance(not_weight, Tensor):  # who gives a strength asks for one vector
                given = ~not_weight.to(weight.device).isnan().unsqueeze(1)
                weight, less = weight * ~given, torch.where(given.unsqueeze(2), vectors, less)
            elif not_weight is not None:
                weight, less = torch.zeros_like(weight), vectors
            penalty = torch.cat([weight, self.penalty_above.float().expand_as(weight)], 1)
            composed |= {"search_vectors": self.filled(less, query_mask), "penalty": penalty}
        return composed

    def filled(self, vectors: Tensor, exists: Tensor) -> Tensor:
        """(B, 1 + branches, D). Where there is no alternative the first stands again: the largest score is the same."""
        return torch.where(exists.unsqueeze(-1), vectors, vectors[:, :1])

    def pool(self, hidden_states: Tensor, token_mask: Tensor) -> Tensor:
        return hidden_states[:, 0] if self.pooling == "cls" else masked_mean(hidden_states, token_mask)

    def exclude(
        self,
        wanted: Tensor,
        excluded: Tensor,
        has_excluded: Tensor,
        not_weight: Tensor | float | None,
        shares: Sequence[float],
    ) -> list[Tensor]:
        """Vectors (B, K, D) less `excluded` (B, D), for each share of the strength with which it is taken away."""
        if not self.excludes:
            return [wanted] * len(shares)
        a, b = F.normalize(wanted.float(), dim=-1), F.normalize(excluded.float(), dim=-1).unsqueeze(1)
        foreign = b - (a * b).sum(-1, keepdim=True) * a  # what B has besides A
        weight = self.weight(a, b)  # (B, K, 1)
        if isinstance(not_weight, Tensor):  # (B,), NaN for the learned strength
            given = not_weight.to(a.device)[:, None, None]
            weight = torch.where(given.isnan(), weight, given)
        elif not_weight is not None:
            weight = torch.full_like(weight, not_weight)
        away, length = weight * foreign, wanted.float().norm(dim=-1, keepdim=True)
        vectors = [F.normalize(a - share * away, dim=-1) * length for share in shares]
        return [torch.where(has_excluded.unsqueeze(1), vector.to(wanted.dtype), wanted) for vector in vectors]

    def searched_weight(self, wanted: Tensor, excluded: Tensor) -> Tensor:
        """How strongly B is taken away from the vectors to search with: (B, 1)."""
        return self.weight(wanted, excluded) * (PENALISED_SHARE if self.penalises else 1.0)

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
        starts = tokens * (1 - F.pad(tokens[:, :-1], (1, 0)))
        number = starts.cumsum(1) * tokens  # 1, 2, ... within the runs, 0 between them
        count = starts.sum(1, keepdim=True)  # (B, 1)
        return [((number == run).to(tokens.dtype), (count >= max(run, 2))) for run in range(1, self.branches + 1)]


class BoolBertPreTrainedModel(BertPreTrainedModel):
    """Weight initialisation, and loading from any BERT: the BERT parts keep BERT's names."""

    config_class = BoolBertConfig
    config: BoolBertConfig
    base_model_prefix = "bert"
    _no_split_modules = ["BertEmbeddings", "BertLayer", "BoolBertLayer"]  # noqa: RUF012
    _can_record_outputs = {  # noqa: RUF012
        "hidden_states": BertLayer,
        "attentions": BertSelfAttention,
        "scopes": OutputRecorder(ScopePredictor, index=0),
        "layer_scope_logits": OutputRecorder(ScopePredictor, index=1),
        "biases": OutputRecorder(BiasPredictor, index=0),
    }

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        std = self.config.initializer_range
        if isinstance(module, CuePredictor):
            # The embeddings are normalised, so operators have to be about as large to make a difference.
            init.normal_(module.operator_projection.weight, std=self.config.operator_embedding_size**-0.5)
            init.constant_(module.score_bias, INITIAL_CUE_LOGIT)
            if module.has_context:  # as large as the embeddings that it is added to
                for part in (module.context_projection, module.context):
                    init.normal_(part.weight, std=part.weight[0].numel() ** -0.5)
        elif isinstance(module, ScopePredictor):
            # Beside a reader, a layer starts without an opinion of its own.
            own = 0.0 if self.config.scope_reader_size else std
            for weight in (module.context.weight, module.cue_weight, module.film.modulation.weight):
                init.normal_(weight, std=own)
            init.zeros_(module.film.modulation.bias)
            init.constant_(module.bias, module.initial_logit)
            init.constant_(module.threshold, module.initial_threshold)
        elif isinstance(module, ScopeReader):
            init.normal_(module.cue_weight, std=1.0)
            init.normal_(module.dense.weight, std=self.config.hidden_size**-0.5)
            for convolution in module.convolutions:
                init.kaiming_normal_(convolution.weight, nonlinearity="relu")  # type: ignore[arg-type]
            init.zeros_(module.output.weight)
            init.constant_(module.output_bias, module.initial_logit)
        elif isinstance(module, BiasPredictor):
            init.constant_(module.sigma, module.initial_sigma)
            init.normal_(module.position_weight, std=std)
            init.normal_(module.output_weight, std=std)
            # softplus(x * sigmoid(0)) = initial_bias
            for row, bias in zip(module.output_bias, module.initial_bias, strict=True):
                init.constant_(row, 2 * math.log(math.expm1(bias)))
        elif isinstance(module, QueryComposer):
            if module.excludes:
                init.constant_(module.strength, math.log(math.expm1(module.initial_weight)))
            if module.penalises:
                init.constant_(module.penalty, math.log(math.expm1(module.initial_penalty[0])))
                init.constant_(module.penalty_above, module.initial_penalty[1])
            if module.has_head:
                init.zeros_(module.head_scale)
        elif isinstance(module, BoolBertModel):
            init.normal_(module.operator_embeddings)


class BoolBertModel(BoolBertPreTrainedModel):
    """BERT with Boolean-aware attention, the query encoder of a dual-encoder retriever.

    `operators`, a (B, 3) tensor of 0/1 for and, or, not, says which operators a sentence holds; -1 leaves an entry to
    the model. Without it the model's gate decides, so that plain text is enough. With every gate off, and with
    `boolean=False`, which is also as fast, this is exactly the BERT that it was made from.
    """

    def __init__(self, config: BoolBertConfig, add_pooling_layer: bool = True):
        super().__init__(config)
        config.check()  # a value may have been changed since the configuration was built
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.operator_embeddings = nn.Parameter(torch.empty(NUM_OPERATORS, config.operator_embedding_size))
        self.cue_predictor = CuePredictor(config)
        self.scope_reader = ScopeReader(config) if config.scope_reader_size else None
        self.gate = OperatorGate(config)
        self.encoder = BoolBertEncoder(config)
        self.composer = QueryComposer(config)
        self.pooler = BertPooler(config) if add_pooling_layer else None
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embeddings.word_embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embeddings.word_embeddings = value  # type: ignore[assignment]

    def reading_parameters(self) -> dict[str, nn.Parameter]:
        """Those of them that find cues, scopes and operators, before any layer runs."""
        return {name: value for name, value in self.named_parameters() if name.startswith(READING_PARTS)}

    def boolean_parameters(self) -> dict[str, nn.Parameter]:
        """The parameters that plain BERT does not have, by name."""
        return {name: parameter for name, parameter in self.named_parameters() if is_boolean(name)}

    @capture_outputs
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        operators: Tensor | None = None,
        not_weight: Tensor | float | None = None,
        not_scope: Tensor | None = None,
        boolean: bool = True,
        **kwargs: Any,
    ) -> BoolBertOutput:
        """As in BERT. `not_weight`, a number or one per sentence, stands in for the learned strength of exclusion where
        it is not NaN. `not_scope` (B, L) of 0/1 says which tokens NOT excludes, instead of the model; a sentence of -1
        is left to it. `boolean=False` is plain BERT.
        """
        embeddings, token_mask = self._embed(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds)
        reading, passed_down = BooleanReading(), ()
        if boolean:
            reading, cue_probs, gate, scope_logits = self._read(embeddings, token_mask, operators, not_scope)
            passed_down = self._pass_down(
                embeddings, cue_probs, gate, scope_logits, token_mask, self._are_recorded(kwargs)
            )
        plain_mask, boolean_mask = self._attention_masks(attention_mask, embeddings, len(passed_down) > 0)
        hidden_states = self.encoder(embeddings, plain_mask, boolean_mask, passed_down, **kwargs)
        return BoolBertOutput(
            last_hidden_state=hidden_states,
            pooler_output=self.pooler(hidden_states) if self.pooler is not None else None,
            **self.composer(hidden_states, token_mask, reading.scope, not_weight),
            **reading,
        )

    def read(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        operators: Tensor | None = None,
        not_scope: Tensor | None = None,
        **kwargs: Any,
    ) -> BooleanReading:
        """Cues, gates and scopes of sentences, without running the layers."""
        embeddings, token_mask = self._embed(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds)
        return self._read(embeddings, token_mask, operators, not_scope)[0]

    def _embed(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None,
        token_type_ids: Tensor | None,
        position_ids: Tensor | None,
        inputs_embeds: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The embeddings (B, L, D), and which tokens are not padding (B, L)."""
        shape = self._check_inputs(input_ids, inputs_embeds)
        embeddings = self.embeddings(
            input_ids=input_ids,
            position_ids=position_ids,
            token_type_ids=token_type_ids,
            inputs_embeds=inputs_embeds,
        )
        return embeddings, self._token_mask(attention_mask, shape, embeddings.device)

    def _read(
        self, embeddings: Tensor, token_mask: Tensor, operators: Tensor | None, not_scope: Tensor | None = None
    ) -> tuple[BooleanReading, Tensor, Tensor, Tensor | None]:
        """The reading, and what the layers need of it: cue probabilities, the gate, and the reader's scope logits."""
        cue_logits = self.cue_predictor(embeddings, self.operator_embeddings, token_mask)
        cue_probs = torch.sigmoid(cue_logits.float()) * token_mask.unsqueeze(1)
        gate_logits = self.gate(embeddings, token_mask)
        gate = self._predicted_gate(gate_logits, cue_probs)
        if operators is not None:
            operators = self._check_operators(operators, gate.shape[0], gate.device)
            gate = torch.where(operators == UNKNOWN, gate.detach(), operators)

        scope_logits = scope = None
        if self.scope_reader is not None:
            scope_logits = self.scope_reader(embeddings, cue_probs, token_mask)
            scope = (torch.sigmoid(scope_logits) > DECISION) & (token_mask != 0).unsqueeze(1)
            scope = scope.long() * gate.detach().long().unsqueeze(-1)  # (B, E, L)
        if not_scope is not None:
            if scope is None or scope_logits is None:
                raise ValueError("not_scope needs a model with a scope reader: this one has scope_reader_size=0")
            gate, scope_logits, scope = self._with_not_scope(not_scope, token_mask, gate, scope_logits, scope)
        reading = BooleanReading(
            cue_logits=cue_logits,
            gate_logits=gate_logits,
            operators=gate.detach().long(),
            scope_logits=scope_logits,
            scope=scope,
        )
        return reading, cue_probs, gate, scope_logits

    def _with_not_scope(
        self, not_scope: Tensor, token_mask: Tensor, gate: Tensor, scope_logits: Tensor, scope: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gate, scope logits and scope, with NOT's as the caller says: it is on where it excludes something."""
        if not_scope.shape != token_mask.shape:
            raise ValueError(f"not_scope must be of shape {tuple(token_mask.shape)}, got {tuple(not_scope.shape)}")
        not_scope = not_scope.to(token_mask.device)
        is_given = (not_scope[:, :1] != UNKNOWN)[:, :, None]  # (B, 1, 1)
        is_not = torch.arange(NUM_OPERATORS, device=token_mask.device)[:, None] == NOT  # (E, 1)
        excluded = ((not_scope > 0) & (token_mask != 0)).unsqueeze(1)  # (B, 1, L)
        certain = (2.0 * excluded - 1.0) * CERTAIN
        is_on = excluded.any(-1).to(gate.dtype)  # (B, 1)
        return (
            torch.where(is_given.squeeze(-1) & is_not.T, is_on, gate),
            torch.where(is_given & is_not, certain, scope_logits),
            torch.where(is_given & is_not, excluded.to(scope.dtype), scope),
        )

    def _pass_down(
        self,
        states: Tensor,
        cue_probs: Tensor,
        gate: Tensor,
        scope_logits: Tensor | None,
        token_mask: Tensor,
        are_recorded: bool,
    ) -> tuple[Any, ...]:
        """What every Boolean layer gets: the operators that it has to compute, and what it needs for these. The last
        entry is the same once more in the form that `kernels_boolbert.py` wants; None where that is not used.

        Operators that never change attention are left out, except where scopes or biases are recorded. Those that are
        off in the whole batch are left out where looking costs nothing: on a CPU, without gradients, not in a traced
        graph. Nothing, where no operator is left: the layers are plain BERT's then.
        """
        used = [name in self.config.attention_operators for name in OPERATORS]
        if not all(used):
            columns = zip(gate.unbind(1), used, strict=True)
            gate = torch.stack([column if is_used else torch.zeros_like(column) for column, is_used in columns], 1)
        if are_recorded:
            used = [True] * NUM_OPERATORS
        elif gate.device.type == "cpu" and not (torch.is_grad_enabled() or self.training or is_traced(gate)):
            used = (gate != 0).any(0).tolist()
        if not any(used):
            return ()
        first, last = used.index(True), NUM_OPERATORS - used[::-1].index(True)
        chosen = slice(first, last)
        embeddings = self.operator_embeddings[chosen]
        reader = None if scope_logits is None else scope_logits[:, chosen]
        is_fused = not are_recorded and (is_usable(states, self.training) or is_trainable(states))
        packed: Any = None
        if is_fused and not torch.compiler.is_compiling():
            packed = pack_with_distances(
                cue_probs[:, chosen],
                reader,
                token_mask,
                has_not=last == NUM_OPERATORS,
                window=self.config.window,
                decision=DECISION,
                unreached=UNREACHED,
            )
            exponent = packed[:, last - first : 2 * (last - first)]
        else:
            cues, window = cue_probs > DECISION, self.config.window
            is_short = not are_recorded and is_cheaper(states, self.training)
            nearby = near_exponent(cues, window, UNREACHED) if is_short else None
            exponent = gaussian_exponent(cues, window) if nearby is None else nearby
            if is_short:
                packed = self._shared((first, last), cue_probs, exponent, scope_logits, token_mask, gate)
            exponent = exponent[:, chosen]
            if is_fused:
                packed = pack(cue_probs[:, chosen], exponent, reader, token_mask)
        cue_probs, gate = cue_probs[:, chosen], gate[:, chosen]
        gate = gate.contiguous() if is_fused else gate
        return (first, last), cue_probs, exponent, gate, embeddings, token_mask, reader, packed

    def _shared(self, operators: OperatorRange, *read: Any) -> SharedInputs:
        config, heads = self.config, self.config.num_attention_heads
        return share(
            operators,
            self.operator_embeddings,
            *read,
            kernel=config.conv_kernel,
            heads=heads,
            size=config.hidden_size // heads,
            hidden=config.bias_hidden_size,
            masked_score=MASKED_SCORE,
            multiple=1 if config._attn_implementation in ("sdpa", "eager") else HEAD_MULTIPLE,
        )

    def _are_recorded(self, kwargs: dict[str, Any]) -> bool:
        """Whether the caller wants what single layers compute for each operator."""
        names = ("output_scopes", "output_biases", "output_layer_scope_logits")
        return any(kwargs.get(name, getattr(self.config, name, False)) for name in names)

    def _predicted_gate(self, gate_logits: Tensor, cue_probs: Tensor) -> Tensor:
        """The 0/1 gate (B, E) that the model finds by itself, with the gradient of its probability."""
        gate_probs = torch.sigmoid(gate_logits.float()) if self.config.gate == "learned" else cue_probs.amax(-1)
        return straight_through((gate_probs > DECISION).to(gate_probs.dtype), gate_probs)

    def _check_operators(self, operators: Tensor, batch: int, device: torch.device) -> Tensor:
        names = ", ".join(OPERATORS)
        expected = f"operators must be a ({batch}, {NUM_OPERATORS}) tensor of 0/1 for {names}, or -1 for unknown"
        if not isinstance(operators, Tensor):
            raise ValueError(f"{expected}, got a {type(operators).__name__}")
        if operators.shape != (batch, NUM_OPERATORS):
            raise ValueError(f"{expected}, got shape {tuple(operators.shape)}")
        # Reading the values is not possible in a traced graph; there the shape has to do.
        if not is_traced(operators):
            wrong = [value for value in operators.flatten().tolist() if value not in (0, 1, UNKNOWN)]
            if wrong:
                raise ValueError(f"{expected}, got the value {wrong[0]}")
        return operators.to(device=device, dtype=torch.float32)

    def _check_inputs(self, input_ids: Tensor | None, inputs_embeds: Tensor | None) -> tuple[int, int]:
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
        if length > self.config.max_position_embeddings:
            raise ValueError(
                f"{length} tokens are more than the {self.config.max_position_embeddings} positions of this model: "
                f"truncate with tokenizer(..., truncation=True, max_length={self.config.max_position_embeddings})"
            )
        return batch, length

    def _token_mask(self, attention_mask: Tensor | None, shape: tuple[int, int], device: torch.device) -> Tensor:
        """Which tokens are not padding: (B, L) float, 1 or 0."""
        if attention_mask is None:
            return torch.ones(shape, device=device)
        if attention_mask.ndim == 2 and attention_mask.shape == shape:
            return (attention_mask != 0).to(device=device, dtype=torch.float32)
        if attention_mask.ndim == 4:  # (B, 1, queries, keys): a token that nobody may look at is padding
            allowed = attention_mask if attention_mask.dtype == torch.bool else attention_mask > MASKED_SCORE
            return allowed.any(dim=2).any(dim=1).to(device=device, dtype=torch.float32).expand(shape)
        raise ValueError(f"attention_mask must be of shape {shape}, got {tuple(attention_mask.shape)}")

    def _attention_masks(self, attention_mask: Tensor | None, embeddings: Tensor, boolean: bool) -> tuple[Any, Any]:
        """The masks for the plain and for the Boolean layers; with sdpa the latter mask the padding by themselves."""
        folded = (
            boolean
            and self.config._attn_implementation == "sdpa"
            and (attention_mask is None or attention_mask.ndim == 2)
        )
        if folded and len(self.config.boolean_layers) == self.config.num_hidden_layers:
            return None, None
        mask = create_bidirectional_mask(config=self.config, inputs_embeds=embeddings, attention_mask=attention_mask)
        return mask, None if folded else mask


class BoolBertForPreTraining(BoolBertPreTrainedModel):
    """Bool-BERT with the paper's losses for cues, operators and triplets of sentences, and one for scopes."""

    def __init__(self, config: BoolBertConfig):
        super().__init__(config)
        self.bert = BoolBertModel(config)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        operators: Tensor | None = None,
        cue_labels: Tensor | None = None,
        gate_labels: Tensor | None = None,
        scope_labels: Tensor | None = None,
        triplets: Tensor | None = None,
        **kwargs: Any,
    ) -> BoolBertForPreTrainingOutput:
        """Each loss is computed where its labels are given, and `loss` is their weighted sum.

        cue_labels (B, 3, L): 0/1, is the token a cue of the operator; padding and -100 do not count.
        gate_labels (B, 3): 0/1, does the sentence hold the operator.
        scope_labels (B, 3, L): 0/1, does the operator reach the token, in the reader and in every Boolean layer.
        triplets (T, 3): rows of this batch: an anchor, one that means the same, and one that does not.
        """
        if scope_labels is not None:
            kwargs["output_layer_scope_logits"] = True
        outputs = self.bert(
            input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            operators=operators,
            return_dict=True,
            **kwargs,
        )
        layer_logits = outputs.layer_scope_logits or ()
        losses = reading_losses(outputs, attention_mask, cue_labels, gate_labels, scope_labels, layer_logits)
        if triplets is not None:
            if triplets.ndim != 2 or triplets.shape[1] != 3:
                raise ValueError(f"triplets must be of shape (T, 3), got {tuple(triplets.shape)}")
            anchor, positive, negative = (outputs.sentence_embedding[rows] for rows in triplets.unbind(1))
            losses["triplet_loss"] = F.triplet_margin_loss(
                anchor, positive, negative, margin=self.config.triplet_margin
            )
        weights = {"triplet_loss": self.config.triplet_weight, "scope_loss": self.config.scope_weight}
        weighted = [weights.get(name, 1.0) * loss for name, loss in losses.items()]
        return BoolBertForPreTrainingOutput(loss=torch.stack(weighted).sum() if weighted else None, **losses, **outputs)


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


# Saving a model copies this file and the configuration file next to the weights.
BoolBertModel.register_for_auto_class("AutoModel")
BoolBertForPreTraining.register_for_auto_class("AutoModelForPreTraining")

__all__ = [
    "BoolBertForPreTraining",
    "BoolBertForPreTrainingOutput",
    "BoolBertModel",
    "BoolBertOutput",
    "BoolBertPreTrainedModel",
    "BooleanReading",
]
