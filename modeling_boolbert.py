# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Bool-BERT: BERT whose self-attention knows AND, OR and NOT ("Boolean-aware Attention for Dense Retrieval").

Shapes: B sentences, L tokens, D hidden size, E = 3 operators in the order of `OPERATORS`, d_o operator embedding size.
The section numbers are the paper's; docs/paper.md has its equations one by one.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import initialization as init
from transformers.activations import ACT2FN
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
from transformers.utils.import_utils import is_tracing
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from .composing_boolbert import NOT, QueryComposer, masked_mean
from .configuration_boolbert import OPERATORS, BoolBertConfig
from .reading_boolbert import CUE, READER_TAGS, LowRank, ReadingAdapters, best_tags, between_specials, of_kind

NUM_OPERATORS = len(OPERATORS)

# A token is a cue, an operator is switched on, and the reader's scope reaches a token above this probability.
DECISION = 0.5
# A fresh cue predictor expects a cue on about one token in twenty.
INITIAL_CUE_LOGIT = -3.0
# What a fresh reader says for "outside of everything", more than `FAVOUR` can make up for.
INITIAL_OUTSIDE = 10.0
# In a (B, 1, L, L) mask of scores to add, a score below this hides a token.
MASKED_SCORE = -30000.0
# The Gaussian's exponent, times sigma squared, where no cue reaches. Finite, or sigma's gradient would be 0 * infinity.
UNREACHED = -1e8
# Attention kernels want head sizes that are a multiple of this.
HEAD_MULTIPLE = 8
# Labels with this value do not count in a loss, as everywhere in transformers.
IGNORED_LABEL = -100
# The modules and parameters that Boolean-aware attention adds to a BERT.
BOOLEAN_PARTS = frozenset(
    {"operator_embeddings", "cue_predictor", "scope_reader", "reader", "gate"}
    | {"scope_predictor", "bias_predictor", "composer"}
)
# Those that read cues, scopes and operators; the others act on what they read.
READING_PARTS = ("operator_embeddings", "cue_predictor", "scope_reader", "reader", "gate")
# What of the reader's tags is in the scope of each operator.
SCOPE_KINDS = {"and": "w", "or": "a", "not": "x"}
# In `operators` and `not_scope`: the model decides.
MODEL_DECIDES = -1
# The scope logit of a token whose scope the caller says, or the reader; no layer's own predictor outweighs it.
CERTAIN = 100.0


@dataclass
class BooleanReading(ModelOutput):
    """What is read off a sentence before any layer runs; see [`BoolBertModel.read`].

    cue_logits (B, E, L); gate_logits (B, E), already divided by the gate's temperature; operators (B, E), the 0/1 gate;
    scope_logits (B, E, L) and scope, 0/1, which tokens each operator that is on reaches by the reader (None without
    one); each layer's attention has its own.
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
    search_vectors (B, 1 + branches, D), query_vectors with two thirds of the exclusion, and penalty (B, 2), (w, t) for
    the rest: a document's score is its largest cosine a with search_vectors, less w max(0, b - t) for its cosine b with
    excluded_embedding (None without a penalty; w is 0 where nothing is excluded, and with a given `not_weight`, which
    search_vectors then have whole);
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
class PreTrainingLosses(ModelOutput):
    """The losses of a [`BoolBertForPreTraining`], each where its labels are given, and their weighted sum."""

    loss: Tensor | None = None
    cue_loss: Tensor | None = None
    gate_loss: Tensor | None = None
    scope_loss: Tensor | None = None
    triplet_loss: Tensor | None = None


@dataclass
class BoolBertForPreTrainingOutput(BoolBertOutput, PreTrainingLosses):
    """What a [`BoolBertForPreTraining`] returns: its losses, then the model's outputs."""


@dataclass
class BooleanContext:
    """What is read off the embeddings, once, and travels down to every Boolean layer."""

    operator_embeddings: Tensor  # (E, d_o)
    gate: Tensor  # (B, E), 1 where an operator is on, and 0 for one that never changes attention
    cue_probs: Tensor  # (B, E, L), 0 on padding
    distance: Tensor  # (B, E, L), -r^2 / 2 for the distance r to the cue that reaches a token, UNREACHED without one
    token_mask: Tensor  # (B, L), 0 on padding
    scope_logits: Tensor | None  # (B, E, L), what the reader says; None without a reader

    def tensors(self) -> tuple[Tensor | None, ...]:
        """Its fields in order: checkpointed layers see gradients in positional arguments only."""
        return tuple(getattr(self, field.name) for field in fields(self))


def is_boolean(name: str) -> bool:
    """Whether a parameter of this name is one that plain BERT does not have.

    >>> is_boolean("query.encoder.layer.0.attention.self.scope_predictor.threshold"), is_boolean("query.pooler.bias")
    (True, False)
    """
    return not BOOLEAN_PARTS.isdisjoint(name.split("."))


def straight_through(hard: Tensor, surrogate: Tensor) -> Tensor:
    """The value of `hard`, to the bit, with the gradient of `surrogate`."""
    return surrogate - surrogate.detach() + hard if surrogate.requires_grad else hard


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


def along_tokens(convolution: Any, states: Tensor) -> Tensor:
    """A Conv1d over tokens, as one matrix product: (B, L, C) -> (B, L, C'). On a CPU it learns in half the time."""
    (kernel,), (padding,), (dilation,) = convolution.kernel_size, convolution.padding, convolution.dilation
    length = states.shape[1]
    padded = F.pad(states, (0, 0, padding, padding))
    windows = torch.cat([padded[:, k * dilation : k * dilation + length] for k in range(kernel)], -1)  # (B, L, K x C)
    return F.linear(windows, convolution.weight.transpose(1, 2).flatten(1), convolution.bias)


class CuePredictor(nn.Module):
    """2.1, which tokens are cues of which operator, read off the embeddings: "not", "as well as", "either ... or".

    p_e = sigmoid(W_c act(H + context(H) + W_o o_e + b_o) + b_c). Without `act` an operator's embedding would only shift
    all scores alike; without the context "other than" would look like any other "other" and "than".
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

    def forward(self, hidden_states: Tensor, operator_embeddings: Tensor, token_mask: Tensor) -> Tensor:
        if self.has_context:
            visible = token_mask.unsqueeze(-1).to(hidden_states.dtype)  # the batch's length changes nothing
            hidden_states = hidden_states + along_tokens(self.context, self.context_projection(hidden_states) * visible)
        operators = self.operator_projection(operator_embeddings)  # (E, D)
        features = self.activation(hidden_states.unsqueeze(1) + operators[:, None, :])  # (B, E, L, D)
        return self.score(features).squeeze(-1) + self.score_bias  # (B, E, L)


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
        self.cue_weight = nn.Parameter(torch.empty(NUM_OPERATORS, size))
        self.activation = ACT2FN["gelu"]
        self.norms = nn.ModuleList([nn.LayerNorm(size) for _ in range(config.scope_reader_layers)])
        dilations = [2**i for i in range(config.scope_reader_layers)]
        self.convolutions = nn.ModuleList([nn.Conv1d(size, size, 3, padding=d, dilation=d) for d in dilations])
        self.output = nn.Linear(size, NUM_OPERATORS, bias=False)
        self.output_bias = nn.Parameter(torch.empty(NUM_OPERATORS))

    def forward(self, hidden_states: Tensor, cue_probs: Tensor, token_mask: Tensor) -> Tensor:
        visible = token_mask.unsqueeze(-1).to(hidden_states.dtype)  # (B, L, 1); padding looks like the sentence's end
        features = self.dense(hidden_states) + cue_probs.transpose(1, 2).to(hidden_states.dtype) @ self.cue_weight
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            features = features + self.activation(along_tokens(convolution, norm(features) * visible))
        return (self.output(features) + self.output_bias).transpose(1, 2).float()  # (B, E, L)


class OperatorGate(nn.Module):
    """2.4, which operators a sentence holds, from the mean of its embeddings."""

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
    """2.2, feature-wise linear modulation: an operator's embedding scales and shifts what is computed for it.

    gamma and beta are two halves of one linear map. The scale is 1 + gamma, so that a fresh one changes little.
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.modulation = nn.Linear(config.operator_embedding_size, 2 * config.num_attention_heads)

    def forward(self, features: Tensor, operator_embeddings: Tensor) -> Tensor:  # (B, L, E, heads), (E, d_o)
        gamma, beta = self.modulation(operator_embeddings).to(features.dtype).chunk(2, -1)  # (E, heads) each
        return torch.addcmul(beta, features, 1 + gamma)


class ScopePredictor(nn.Module):
    """2.2, which tokens an operator reaches in one layer: a local convolution, shaped by FiLM, made binary by theta.

    s_e = 1[sigmoid(FiLM(Conv1D_e([H; p_e]))) > theta_e]. With a reader, which is not in the paper, the
    convolution starts at zero, and adds this layer's and head's correction to the reader's logits. The operators'
    convolutions are computed side by side: one matrix product gives every token's contribution to each of its
    neighbours, moved into place and added.
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.kernel = config.conv_kernel
        self.heads = config.num_attention_heads
        self.temperature = config.gumbel_temperature
        self.initial_threshold = config.threshold
        self.initial_logit = 0.0 if config.reads_scopes else config.initial_scope_logit
        self.context = nn.Linear(config.hidden_size, self.kernel * NUM_OPERATORS * self.heads, bias=False)
        self.cue_weight = nn.Parameter(torch.empty(self.kernel, NUM_OPERATORS, self.heads))
        self.bias = nn.Parameter(torch.empty(NUM_OPERATORS, self.heads))
        self.film = FiLM(config)
        self.threshold = nn.Parameter(torch.empty(NUM_OPERATORS))

    def logits(self, hidden_states: Tensor, context: BooleanContext) -> Tensor:
        """The modulated convolution, added to what the reader says: (B, L, E, heads)."""
        batch, length, _ = hidden_states.shape
        taps = self.context(hidden_states).float().view(batch, length, self.kernel, NUM_OPERATORS, self.heads)
        cues = context.cue_probs.transpose(1, 2)[:, :, None, :, None]
        taps = (taps + cues * self.cue_weight) * context.token_mask[:, :, None, None, None]
        # Tap k of the token at i + k - reach belongs to the token at i; beyond either end there are zeros.
        reach = self.kernel // 2
        taps = F.pad(taps, (0, 0, 0, 0, 0, 0, reach, reach))
        convolved = sum(taps[:, k : k + length, k] for k in range(self.kernel)) + self.bias
        logits = self.film(convolved, context.operator_embeddings)
        if context.scope_logits is not None:
            logits = logits + context.scope_logits.transpose(1, 2).unsqueeze(-1)
        return logits

    def forward(self, hidden_states: Tensor, context: BooleanContext) -> tuple[Tensor, Tensor]:
        clean = logits = self.logits(hidden_states, context)
        if self.training:  # Gumbel-sigmoid: the difference of two Gumbel variables is logistic
            noise = torch.logit(torch.rand_like(logits), eps=1e-6)
            logits = (logits + noise) / self.temperature
        # 1[P > theta] has no gradient anywhere; P - theta stands in for it, so that theta learns too.
        margin = (torch.sigmoid(logits) - self.threshold[:, None].float()) * context.token_mask[:, :, None, None]
        scope = straight_through((margin > 0).to(margin.dtype), margin)
        # Both (B, E, heads, L): the scope with values in {0, 1}, and its logits without the noise.
        return scope.to(hidden_states.dtype).permute(0, 2, 3, 1), clean.permute(0, 2, 3, 1)


class BiasPredictor(nn.Module):
    """2.3, how strongly an operator changes the attention to a token.

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

    def position_weights(self, distance: Tensor) -> Tensor:
        """w(r), from `gaussian_exponent`'s -r^2 / 2: (B, E, L)."""
        return torch.exp(distance / self.sigma[:, None].float().square().clamp_min(1e-6))

    def forward(self, hidden_states: Tensor, context: BooleanContext) -> Tensor:
        hidden = self.dense(hidden_states).unflatten(-1, (NUM_OPERATORS, self.hidden_size))
        position = self.position_weights(context.distance).transpose(1, 2).unsqueeze(-1).to(hidden.dtype)
        hidden = torch.addcmul(hidden, position, self.position_weight.to(hidden.dtype))  # (B, L, E, hidden)
        bias = torch.einsum("bleh,ehn->blen", self.activation(hidden), self.output_weight) + self.output_bias
        bias = F.softplus(bias * torch.sigmoid(self.operator_gate(context.operator_embeddings)))
        return bias.to(hidden_states.dtype).permute(0, 2, 3, 1)  # (B, E, heads, L), never negative


class BoolBertSelfAttention(BertSelfAttention):
    """2.4, self-attention with the Boolean bias S_and + S_or - S_not on its scores, which never exists as a matrix.

    S_e = G_e * Scope_e * Bias_e. The scope of AND and OR is s_i s_j; that of NOT is (1 - s_i) s_j, so that what stands
    outside does not look into what is excluded; the paper's, s_j, is `not_reach="all"`. Each is a column times a row,
    so S = U V^T with U = [s_and, s_or, 1 - s_not] and V = [G s_and b_and, G s_or b_or, -G s_not b_not]. Attention over
    [Q ; U] and [K ; V / scale] is exactly attention with S added, at the price of a few more dimensions per head, and
    any attention kernel can do it.
    """

    def __init__(self, config: BoolBertConfig, layer_idx: int | None = None):
        super().__init__(config, layer_idx=layer_idx)
        self.not_reach = config.not_reach
        self.scope_predictor = ScopePredictor(config)
        self.bias_predictor = BiasPredictor(config)

    def forward(  # type: ignore[override]
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        context: BooleanContext | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        if context is None:
            return super().forward(hidden_states, attention_mask, **kwargs)  # type: ignore[return-value, arg-type]
        scope, _ = self.scope_predictor(hidden_states, context)
        bias = self.bias_predictor(hidden_states, context)
        query_columns, key_columns = self.boolean_columns(scope, bias, context.gate)

        shape = (*hidden_states.shape[:2], self.num_attention_heads, self.attention_head_size)
        query, key, value = (
            project(hidden_states).view(shape).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        # Zeros behind the columns fill the heads up to a size that kernels like; values get as many, to be as wide.
        columns = query_columns.shape[-1]
        spare = -(self.attention_head_size + columns) % HEAD_MULTIPLE
        attention = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        output, weights = attention(
            self,
            F.pad(torch.cat([query, query_columns.to(query.dtype)], -1), (0, spare)),
            F.pad(torch.cat([key, key_columns.to(key.dtype)], -1), (0, spare)),
            F.pad(value, (0, columns + spare)),
            attention_mask,
            dropout=self.dropout.p if self.training else 0.0,
            scaling=self.scaling,
            **kwargs,
        )  # (B, L, heads, head size + columns + spare)
        return output[..., : self.attention_head_size].reshape(*hidden_states.shape[:2], -1), weights

    def boolean_columns(self, scope: Tensor, bias: Tensor, gate: Tensor) -> tuple[Tensor, Tensor]:
        """U and V / scale, both (B, heads, L, columns), of scope and bias (B, E, heads, L) and gate (B, E)."""
        strength = (gate / self.scaling)[:, :, None, None].to(bias.dtype) * bias  # (B, E, heads, L)
        s_and, s_or, s_not = scope.unbind(1)
        b_and, b_or, b_not = strength.unbind(1)
        outside = 1 - s_not
        query_columns = [s_and, s_or, torch.ones_like(s_not) if self.not_reach == "all" else outside]
        key_columns = [s_and * b_and, s_or * b_or, -s_not * b_not]
        if self.not_reach == "both":
            query_columns.append(s_not)
            key_columns.append(-outside * b_not)
        return torch.stack(query_columns, -1), torch.stack(key_columns, -1)


class BoolBertAttention(BertAttention):
    """BERT's attention block around Boolean-aware self-attention."""

    def __init__(self, config: BoolBertConfig, layer_idx: int | None = None):
        super().__init__(config, layer_idx=layer_idx)
        self.self = BoolBertSelfAttention(config, layer_idx=layer_idx)

    def forward(  # type: ignore[override]
        self, hidden_states: Tensor, attention_mask: Tensor | None, context: BooleanContext | None, **kwargs: Any
    ) -> Tensor:
        output, _ = self.self(hidden_states, attention_mask, context, **kwargs)
        return self.output(output, hidden_states)


class BoolBertLayer(BertLayer):
    """A BERT layer with Boolean-aware attention."""

    def __init__(self, config: BoolBertConfig, layer_idx: int | None = None):
        super().__init__(config, layer_idx=layer_idx)
        self.attention = BoolBertAttention(config, layer_idx=layer_idx)

    def forward(  # type: ignore[override]
        self, hidden_states: Tensor, attention_mask: Tensor | None, *tensors: Any, **kwargs: Any
    ) -> Tensor:
        """`tensors`: those of a `BooleanContext`, in its order; none for a layer of plain BERT."""
        context = BooleanContext(*tensors) if tensors else None
        attention_output = self.attention(hidden_states, attention_mask, context, **kwargs)
        return apply_chunking_to_forward(
            self.feed_forward_chunk, self.chunk_size_feed_forward, self.seq_len_dim, attention_output
        )


class BoolBertEncoder(nn.Module):
    """The stack of layers, Boolean-aware where the configuration says so."""

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.layer = nn.ModuleList(
            [
                BoolBertLayer(config, layer_idx=i) if i in config.boolean_layers else BertLayer(config, layer_idx=i)
                for i in range(config.num_hidden_layers)
            ]
        )

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None, context: BooleanContext | None, **kwargs: Any
    ) -> Tensor:
        passed_down = () if context is None else context.tensors()
        for layer in self.layer:
            is_boolean = isinstance(layer, BoolBertLayer)
            hidden_states = layer(hidden_states, attention_mask, *(passed_down if is_boolean else ()), **kwargs)
        return hidden_states


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
            own = 0.0 if self.config.reads_scopes else std
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
        elif isinstance(module, LowRank):  # which changes nothing to begin with
            init.normal_(module.down, std=module.down.shape[1] ** -0.5)
            init.zeros_(module.up)
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
            if module.has_penalty:
                init.constant_(module.penalty, math.log(math.expm1(module.initial_penalty[0])))
                init.constant_(module.penalty_above, module.initial_penalty[1])
            if module.has_head:
                init.zeros_(module.head_scale)
        elif isinstance(module, BoolBertModel):
            init.normal_(module.operator_embeddings)
            if module.reader is not None:  # a fresh reader finds nothing
                init.zeros_(module.reader.head.weight)
                init.zeros_(module.reader.head.bias)
                init.constant_(module.reader.head.bias[0], INITIAL_OUTSIDE)


class BoolBertModel(BoolBertPreTrainedModel):
    """BERT with Boolean-aware attention, the query encoder of a dual-encoder retriever.

    `operators`, a (B, 3) tensor of 0/1 for and, or, not, says which operators a sentence holds; -1 leaves an entry to
    the model. Without it the model's gate decides, so that plain text is enough. With every gate off, and with
    `boolean=False`, this is exactly the BERT that it was made from, to the bit where no gradients are asked for.
    """

    def __init__(self, config: BoolBertConfig, add_pooling_layer: bool = True):
        super().__init__(config)
        config.check()  # a value may have been changed since the configuration was built
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.operator_embeddings = nn.Parameter(torch.empty(NUM_OPERATORS, config.operator_embedding_size))
        self.cue_predictor = CuePredictor(config)
        has_adapters = config.reader_rank > 0
        self.scope_reader = ScopeReader(config) if config.scope_reader_size and not has_adapters else None
        self.reader = ReadingAdapters(config, config.reader_rank, len(READER_TAGS)) if has_adapters else None
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
        """The parameters that find cues, scopes and operators, by name."""
        return {name: value for name, value in self.named_parameters() if name.startswith(READING_PARTS)}

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
        whole_weight: Tensor | None = None,
        boolean: bool = True,
        **kwargs: Any,
    ) -> BoolBertOutput:
        """As in BERT. `not_weight`, a number or a tensor (B,), is taken instead of the learned strength of exclusion;
        NaN in a tensor leaves it to the model. `not_scope` (B, L) of 0/1 says which tokens NOT excludes, whatever
        `operators` says of NOT; a row that begins with -1 leaves it to the model. `whole_weight` (B,) is the share of
        the whole query in what is wanted: 0 where NOT takes members from a set, 1 where it negates a property of the
        answer, so that nothing is taken away. `boolean=False` is plain BERT.
        """
        embeddings, token_mask = self._embed(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds)
        reading, context, scope = BooleanReading(), None, None
        if boolean:
            reading, context = self._read(embeddings, token_mask, operators, not_scope)
            scope = reading.scope
            if whole_weight is not None:  # where all of the query is wanted, NOT is read and changes nothing
                whole_weight = whole_weight.to(token_mask.device)
                is_not = torch.arange(NUM_OPERATORS, device=token_mask.device) == NOT
                is_on = 1 - ((whole_weight == 1).unsqueeze(1) & is_not).long()  # (B, E)
                context.gate = context.gate * is_on
                scope = None if scope is None else scope * is_on.unsqueeze(-1)
            if self._changes_nothing(context) and not self._records_layers(kwargs):
                context = None
        mask = create_bidirectional_mask(config=self.config, inputs_embeds=embeddings, attention_mask=attention_mask)
        hidden_states = self.encoder(embeddings, mask, context, **kwargs)
        return BoolBertOutput(
            last_hidden_state=hidden_states,
            pooler_output=self.pooler(hidden_states) if self.pooler is not None else None,
            **self.composer(hidden_states, token_mask, scope, not_weight, whole_weight),
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
        """Cues, gates and scopes of sentences; layers run for a reader with adapters alone."""
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
            input_ids=input_ids, position_ids=position_ids, token_type_ids=token_type_ids, inputs_embeds=inputs_embeds
        )
        return embeddings, self._token_mask(attention_mask, shape, embeddings.device)

    def _read(
        self,
        embeddings: Tensor,
        token_mask: Tensor,
        operators: Tensor | None,
        not_scope: Tensor | None,
    ) -> tuple[BooleanReading, BooleanContext]:
        """What the sentences say, and what the layers need to know of it."""
        cue_logits, scope_logits = self._cues_and_scopes(embeddings, token_mask)
        cue_probs = torch.sigmoid(cue_logits.float()) * token_mask.unsqueeze(1)
        gate_logits = self.gate(embeddings, token_mask)
        if scope_logits is None and self.scope_reader is not None:
            scope_logits = self.scope_reader(embeddings, cue_probs, token_mask)
        reached = None
        if scope_logits is not None:
            reached = (torch.sigmoid(scope_logits) > DECISION) & (token_mask != 0).unsqueeze(1)  # (B, E, L)
        gate = self._predicted_gate(gate_logits, cue_probs, reached)
        if operators is not None:
            operators = self._check_operators(operators, gate.shape[0], gate.device)
            gate = torch.where(operators == MODEL_DECIDES, gate.detach(), operators)

        scope = None if reached is None else reached.long() * gate.detach().long().unsqueeze(-1)  # (B, E, L)
        if not_scope is not None:
            if scope is None or scope_logits is None:
                raise ValueError(
                    "not_scope needs a model that reads scopes: this one has reader_rank=0 and scope_reader_size=0"
                )
            gate, scope_logits, scope = self._with_not_scope(not_scope, token_mask, gate, scope_logits, scope)
        reading = BooleanReading(
            cue_logits=cue_logits,
            gate_logits=gate_logits,
            operators=gate.detach().long(),
            scope_logits=scope_logits,
            scope=scope,
        )
        changes_attention = [
            column if name in self.config.attention_operators else torch.zeros_like(column)
            for name, column in zip(OPERATORS, gate.unbind(1), strict=True)
        ]
        context = BooleanContext(
            operator_embeddings=self.operator_embeddings,
            gate=torch.stack(changes_attention, 1),
            cue_probs=cue_probs,
            distance=gaussian_exponent(cue_probs > DECISION, self.config.window),
            token_mask=token_mask,
            scope_logits=scope_logits,
        )
        return reading, context

    def _cues_and_scopes(self, embeddings: Tensor, token_mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """The logits of cues, and those of scopes where a reader with adapters finds them: both (B, E, L).

        The reader finds NOT's cues too, and is certain of what it says. It learns by itself (train/query_reader.py): no
        other loss reaches it.
        """
        cue_logits = self.cue_predictor(embeddings, self.operator_embeddings, token_mask)
        if self.reader is None:
            return cue_logits, None
        with torch.no_grad():
            scores = self.reader(self.encoder.layer, embeddings, token_mask)  # (B, L, tags)
            tags = best_tags(scores, between_specials(token_mask))
            kinds = (*(SCOPE_KINDS[name] for name in OPERATORS), CUE)
            found = torch.stack([of_kind(tags, kind) for kind in kinds], 1)
            *scopes, cues = ((2.0 * found - 1.0) * CERTAIN).unbind(1)
        is_not = torch.arange(NUM_OPERATORS, device=token_mask.device)[:, None] == NOT  # (E, 1)
        return torch.where(is_not, cues.unsqueeze(1).to(cue_logits.dtype), cue_logits), torch.stack(scopes, 1)

    def _with_not_scope(
        self, not_scope: Tensor, token_mask: Tensor, gate: Tensor, scope_logits: Tensor, scope: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gate, scope logits and scope, with NOT's as the caller says: it is on where it excludes something."""
        if not_scope.shape != token_mask.shape:
            raise ValueError(f"not_scope must be of shape {tuple(token_mask.shape)}, got {tuple(not_scope.shape)}")
        not_scope = not_scope.to(token_mask.device)
        is_said = (not_scope[:, :1] != MODEL_DECIDES)[:, :, None]  # (B, 1, 1)
        is_not = torch.arange(NUM_OPERATORS, device=token_mask.device)[:, None] == NOT  # (E, 1)
        excluded = ((not_scope > 0) & (token_mask != 0)).unsqueeze(1)  # (B, 1, L)
        certain = (2.0 * excluded - 1.0) * CERTAIN
        is_on = excluded.any(-1).to(gate.dtype)  # (B, 1)
        return (
            torch.where(is_said.squeeze(-1) & is_not.T, is_on, gate),
            torch.where(is_said & is_not, certain, scope_logits),
            torch.where(is_said & is_not, excluded.to(scope.dtype), scope),
        )

    def _changes_nothing(self, context: BooleanContext) -> bool:
        """Whether all layers are plain BERT's, because every operator is off. A gate of 0 still has a gradient."""
        if torch.is_grad_enabled() or is_tracing(context.gate) or context.gate.is_meta:
            return False
        return not context.gate.any()

    def _records_layers(self, kwargs: dict[str, Any]) -> bool:
        """Whether the caller wants to see what single layers compute for each operator."""
        names = ("output_scopes", "output_biases", "output_layer_scope_logits")
        return any(kwargs.get(name, getattr(self.config, name, False)) for name in names)

    def _predicted_gate(self, gate_logits: Tensor, cue_probs: Tensor, reached: Tensor | None) -> Tensor:
        """The 0/1 gate (B, E) that the model finds by itself, with the gradient of its probability.

        `reached` (B, E, L), the tokens that the reader finds in each scope: adapters switch NOT and OR on with them.
        """
        gate_probs = torch.sigmoid(gate_logits.float()) if self.config.gate == "learned" else cue_probs.amax(-1)
        gate = straight_through((gate_probs > DECISION).to(gate_probs.dtype), gate_probs)
        if self.reader is None or reached is None or self.config.gate == "learned":
            return gate
        by_cue = torch.tensor([name == "and" for name in OPERATORS], device=gate.device)
        return torch.where(by_cue, gate, reached.any(-1).to(gate.dtype))

    def _check_operators(self, operators: Tensor, batch: int, device: torch.device) -> Tensor:
        names = ", ".join(OPERATORS)
        expected = f"operators must be a ({batch}, {NUM_OPERATORS}) tensor of 0/1 for {names}, or -1 for unknown"
        if not isinstance(operators, Tensor):
            raise ValueError(f"{expected}, got a {type(operators).__name__}")
        if operators.shape != (batch, NUM_OPERATORS):
            raise ValueError(f"{expected}, got shape {tuple(operators.shape)}")
        # Reading the values is not possible in a traced graph; there the shape has to do.
        if not (is_tracing(operators) or operators.is_meta):
            wrong = [value for value in operators.flatten().tolist() if value not in (0, 1, MODEL_DECIDES)]
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


# Saving a model copies this file and those that it imports next to the weights.
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
