# Copyright 2026 The Bool-BERT authors. All rights reserved.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Bool-BERT: BERT whose self-attention knows AND, OR and NOT ("Boolean-aware Attention for Dense Retrieval").

Shapes: B sentences, L tokens, D hidden size, E = 3 operators in the order of `OPERATORS`, d_o operator embedding size.
The section numbers are the paper's; docs/paper.md has its equations one by one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Unpack

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
from transformers.utils.generic import TransformersKwargs, can_return_tuple
from transformers.utils.import_utils import is_tracing
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from .composing_boolbert import (
    AND,
    NOT,
    PROPERTY,
    QueryComposer,
    SearchVectors,
    begins,
    checked_shape,
    masked_mean,
    token_mask_of,
)
from .configuration_boolbert import OPERATORS, READING_PARTS, BoolBertConfig
from .reading_boolbert import (
    CUE,
    EXCLUDING,
    INITIAL_OUTSIDE,
    BooleanReading,
    LowRank,
    PreTrainingLosses,
    ReadingAdapters,
    ScopeReader,
    along_tokens,
    gaussian_exponent,
    of_kind,
    read_tokens,
    reading_losses,
)

NUM_OPERATORS = len(OPERATORS)

# A token is a cue, an operator is switched on, and the reader's scope reaches a token above this probability.
DECISION = 0.5
# A fresh cue predictor expects a cue on about one token in twenty.
INITIAL_CUE_LOGIT = -3.0
# Attention kernels want head sizes that are a multiple of this.
HEAD_MULTIPLE = 8
# What of the reader's tags is in the scope of each operator.
SCOPE_KINDS = {"and": "wmn", "or": "ao", "not": EXCLUDING}
# The logit of a token whose cue or scope the caller says, or the reader; no layer's own predictor outweighs it.
CERTAIN = 100.0


@dataclass
class BoolBertOutput(ModelOutput):
    """What a [`BoolBertModel`] returns.

    last_hidden_state (B, L, D); pooler_output (B, D); sentence_embedding (B, D), the vector that obeys;
    wanted_embedding and excluded_embedding (B, D), what it was composed of (the latter 0 where nothing is excluded);
    and the fields of [`BooleanReading`]. With `output_scopes=True`, `output_biases=True` or
    `output_layer_scope_logits=True` these for each Boolean layer, (B, E, heads, L). With `output_hidden_states` and
    `output_attentions` as any BERT.
    """

    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    sentence_embedding: Tensor | None = None
    wanted_embedding: Tensor | None = None
    excluded_embedding: Tensor | None = None
    cue_logits: Tensor | None = None
    gate_logits: Tensor | None = None
    operators: Tensor | None = None
    scope_logits: Tensor | None = None
    scope: Tensor | None = None
    kind: Tensor | None = None
    scopes: tuple[Tensor, ...] | None = None
    layer_scope_logits: tuple[Tensor, ...] | None = None
    biases: tuple[Tensor, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class BoolBertRetrievalOutput(BoolBertOutput, SearchVectors):
    """What a [`BoolBertForRetrieval`] returns: the model's outputs, and what to search with."""


@dataclass
class BoolBertForPreTrainingOutput(BoolBertOutput, PreTrainingLosses):
    """What a [`BoolBertForPreTraining`] returns: its losses, then the model's outputs."""


class BoolBertKwargs(TransformersKwargs, total=False):
    """What may be asked of a [`BoolBertModel`] besides its inputs.

    boolean: False for plain BERT. output_scopes, output_biases, output_layer_scope_logits: what single layers compute.
    """

    boolean: bool
    output_scopes: bool
    output_biases: bool
    output_layer_scope_logits: bool


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


def straight_through(hard: Tensor, surrogate: Tensor) -> Tensor:
    """The value of `hard`, to the bit, with the gradient of `surrogate`."""
    return surrogate - surrogate.detach() + hard if surrogate.requires_grad else hard


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
        # CODEPATH: beside a reader (upgraded and LITE models) a layer only corrects; PAPER's layers find scopes alone.
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
        # CODEPATH: upgraded and LITE models are Boolean in their upper half, PAPER and the default in every layer.
        self.layer = nn.ModuleList(
            [
                # CODEPATH: as above.
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
    _no_split_modules = ["BertEmbeddings", "BertLayer", "BoolBertLayer"]
    _can_record_outputs = {
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
            # CODEPATH: PAPER has no reader.
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

    Plain text is enough: the model reads which operators a sentence holds, where their cues stand and which words they
    reach. Whoever knows says so, in whole tensors: `operators` (B, E), `cues` and `scope` (B, E, L), all of 0 and 1.
    With every operator off, and with `boolean=False`, this is exactly the BERT that it was made from: on a CPU to the
    bit where no gradients are asked for.
    """

    def __init__(self, config: BoolBertConfig, add_pooling_layer: bool = True):
        super().__init__(config)
        config.check()  # a value may have been changed since the configuration was built
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.operator_embeddings = nn.Parameter(torch.empty(NUM_OPERATORS, config.operator_embedding_size))
        self.cue_predictor = CuePredictor(config)
        has_adapters = config.reader_rank > 0
        # CODEPATH: upgraded models read with adapters, those of stage 1 with a scope reader, PAPER without either.
        self.scope_reader = ScopeReader(config) if config.scope_reader_size and not has_adapters else None
        self.reader = ReadingAdapters(config, config.reader_rank) if has_adapters else None
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
    def forward(  # type: ignore[misc]  # transformers' keywords have position_ids too
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        operators: Tensor | None = None,
        cues: Tensor | None = None,
        scope: Tensor | None = None,
        **kwargs: Unpack[BoolBertKwargs],
    ) -> BoolBertOutput:
        """As in BERT. `operators` (B, E), which are on; `cues` and `scope` (B, E, L), which tokens are cues and which
        are reached; what is not given is read. `boolean=False` is plain BERT, for documents."""
        embeddings, token_mask = self._embed(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds)
        reading, context = BooleanReading(), None
        if kwargs.pop("boolean", True):
            reading, context = self._read(embeddings, token_mask, operators, cues, scope)
            if self._changes_nothing(context) and not self._records_layers(kwargs):
                context = None
        mask = create_bidirectional_mask(config=self.config, inputs_embeds=embeddings, attention_mask=attention_mask)
        hidden_states = self.encoder(embeddings, mask, context, **kwargs)
        return BoolBertOutput(
            last_hidden_state=hidden_states,
            pooler_output=self.pooler(hidden_states) if self.pooler is not None else None,
            **self.composer(hidden_states, token_mask, reading.scope, reading.kind),
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
        cues: Tensor | None = None,
        scope: Tensor | None = None,
    ) -> BooleanReading:
        """Cues, gates and scopes of sentences; layers run for a reader with adapters alone."""
        embeddings, token_mask = self._embed(input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds)
        return self._read(embeddings, token_mask, operators, cues, scope)[0]

    def search(
        self, outputs: BoolBertOutput, attention_mask: Tensor | None = None, not_weight: Tensor | None = None
    ) -> dict[str, Tensor]:
        """The vectors to search with, [`SearchVectors`], of what this model has returned for some sentences."""
        states: Any = outputs.last_hidden_state
        token_mask = token_mask_of(attention_mask, states.shape[:2], states.device)
        return self.composer.search(states, token_mask, outputs.scope, outputs.kind, not_weight)

    def _embed(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None,
        token_type_ids: Tensor | None,
        position_ids: Tensor | None,
        inputs_embeds: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The embeddings (B, L, D), and which tokens are not padding (B, L)."""
        shape = checked_shape(input_ids, inputs_embeds, self.config.max_position_embeddings)
        embeddings = self.embeddings(
            input_ids=input_ids, position_ids=position_ids, token_type_ids=token_type_ids, inputs_embeds=inputs_embeds
        )
        return embeddings, token_mask_of(attention_mask, shape, embeddings.device)

    def _read(
        self,
        embeddings: Tensor,
        token_mask: Tensor,
        operators: Tensor | None,
        cues: Tensor | None,
        scope: Tensor | None,
    ) -> tuple[BooleanReading, BooleanContext]:
        """What the sentences say, and what the layers need to know of it."""
        said_operators, cues, scope = self._checked(token_mask, operators=operators, cues=cues, scope=scope)
        found: Any = self._found(embeddings, token_mask, cues, scope)
        cue_probs = torch.sigmoid(found.cue_logits.float()) * token_mask.unsqueeze(1)
        reached = None
        if found.scope_logits is not None:
            reached = (torch.sigmoid(found.scope_logits) > DECISION) & (token_mask != 0).unsqueeze(1)  # (B, E, L)
        if said_operators is not None:
            gate = said_operators
        elif scope is not None:
            gate = scope.amax(-1)
        else:
            gate = self._predicted_gate(found, cue_probs, reached)
        found.operators = gate.detach().long()
        found.scope = None if reached is None else reached.long() * found.operators.unsqueeze(-1)
        changes_attention = [
            # CODEPATH: in an upgraded model only NOT changes attention, in all others every operator does.
            column if name in self.config.attention_operators else torch.zeros_like(column)
            for name, column in zip(OPERATORS, gate.unbind(1), strict=True)
        ]
        if found.kind is not None:  # a text that answers speaks of the property that is negated
            changes_attention[NOT] = changes_attention[NOT] * (found.kind != PROPERTY)
        context = BooleanContext(
            operator_embeddings=self.operator_embeddings,
            gate=torch.stack(changes_attention, 1),
            cue_probs=cue_probs,
            distance=gaussian_exponent(cue_probs > DECISION, self.config.window),
            token_mask=token_mask,
            scope_logits=found.scope_logits,
        )
        return found, context

    def _found(
        self, embeddings: Tensor, token_mask: Tensor, cues: Tensor | None, scope: Tensor | None
    ) -> BooleanReading:
        """The logits of cues, operators and scopes, and the kind of NOT; what the caller says is certain.

        A reader with adapters finds NOT's cues too. It learns by itself (train/query_reader.py): no other loss reaches
        it.
        """
        cue_logits, scope_logits = (None if said is None else (2.0 * said - 1.0) * CERTAIN for said in (cues, scope))
        kind = None
        if cue_logits is None:
            cue_logits = self.cue_predictor(embeddings, self.operator_embeddings, token_mask)
        if self.reader is not None and (cues is None or scope is None):
            with torch.no_grad():
                tags, kind = read_tokens(self.reader(self.encoder.layer, embeddings, token_mask), token_mask)
                names = (*(SCOPE_KINDS[name] for name in OPERATORS), CUE)
                inside = torch.stack([of_kind(tags, name) for name in names], 1)
                *scopes, not_cues = ((2.0 * inside - 1.0) * CERTAIN).unbind(1)
            if cues is None:
                is_not = torch.arange(NUM_OPERATORS, device=token_mask.device)[:, None] == NOT  # (E, 1)
                cue_logits = torch.where(is_not, not_cues.unsqueeze(1).to(cue_logits.dtype), cue_logits)
            if scope is None:
                scope_logits = torch.stack(scopes, 1)
        elif self.scope_reader is not None and scope is None:
            cue_probs = torch.sigmoid(cue_logits.float()) * token_mask.unsqueeze(1)
            scope_logits = self.scope_reader(embeddings, cue_probs, token_mask)
        gate_logits = self.gate(embeddings, token_mask)
        return BooleanReading(cue_logits=cue_logits, gate_logits=gate_logits, scope_logits=scope_logits, kind=kind)

    def _changes_nothing(self, context: BooleanContext) -> bool:
        """Whether all layers are plain BERT's, because every operator is off. A gate of 0 still has a gradient, and
        nobody waits for a GPU to say what its gates are."""
        gate = context.gate
        if torch.is_grad_enabled() or is_tracing(gate) or gate.device.type != "cpu":
            return False
        return not gate.any()

    def _records_layers(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether the caller wants to see what single layers compute for each operator."""
        names = ("output_scopes", "output_biases", "output_layer_scope_logits")
        return any(kwargs.get(name, getattr(self.config, name, False)) for name in names)

    def _predicted_gate(self, found: Any, cue_probs: Tensor, reached: Tensor | None) -> Tensor:
        """The 0/1 gate (B, E) that the model finds by itself, with the gradient of its probability.

        With adapters an operator is on where it reaches a word; AND, where two conditions are wanted.
        """
        learned = self.config.gate == "learned"
        gate_probs = torch.sigmoid(found.gate_logits.float()) if learned else cue_probs.amax(-1)
        gate = straight_through((gate_probs > DECISION).to(gate_probs.dtype), gate_probs)
        if self.reader is None or reached is None or learned:
            return gate
        count = begins(reached.to(gate.dtype)).sum(-1)
        return (count > (torch.arange(NUM_OPERATORS, device=count.device) == AND)).to(gate.dtype)

    def _checked(self, token_mask: Tensor, **given: Tensor | None) -> list[Tensor | None]:
        """What the caller says of operators, cues and scopes, as numbers on the model's device."""
        batch, length = token_mask.shape
        shapes = {"operators": (batch, NUM_OPERATORS)}
        found: list[Tensor | None] = []
        for name, value in given.items():
            shape = shapes.get(name, (batch, NUM_OPERATORS, length))
            expected = f"{name} must be a {shape} tensor of 0 and 1, rows of {', '.join(OPERATORS)}"
            if value is not None and not isinstance(value, Tensor):
                raise ValueError(f"{expected}, got a {type(value).__name__}")
            if value is not None and value.shape != shape:
                raise ValueError(f"{expected}, got shape {tuple(value.shape)}")
            # The values of a traced graph, or on a GPU, cannot be looked at without a wait.
            can_look = value is not None and value.device.type == "cpu" and not is_tracing(value)
            if can_look and not ((value == 0) | (value == 1)).all():  # type: ignore[union-attr]
                raise ValueError(f"{expected}, got other values; leave {name} out where it is not known")
            found.append(None if value is None else value.to(device=token_mask.device, dtype=torch.float32))
        return found


class BoolBertForRetrieval(BoolBertPreTrainedModel):
    """Bool-BERT with what an index is asked with: a vector for each alternative of OR, and the penalty of exclusion."""

    def __init__(self, config: BoolBertConfig):
        super().__init__(config)
        self.bert = BoolBertModel(config)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        not_weight: Tensor | None = None,
        **kwargs: Unpack[BoolBertKwargs],
    ) -> BoolBertRetrievalOutput:
        """As [`BoolBertModel`]. `not_weight` (B,) is taken instead of the learned strength of exclusion, where it is no
        NaN."""
        outputs = self.bert(input_ids, attention_mask=attention_mask, return_dict=True, **kwargs)
        return BoolBertRetrievalOutput(**{**outputs, **self.bert.search(outputs, attention_mask, not_weight)})


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


# Saving a model copies this file and those that it imports next to the weights.
BoolBertModel.register_for_auto_class("AutoModel")
BoolBertForPreTraining.register_for_auto_class("AutoModelForPreTraining")

__all__ = [
    "BoolBertForPreTraining",
    "BoolBertForPreTrainingOutput",
    "BoolBertForRetrieval",
    "BoolBertModel",
    "BoolBertOutput",
    "BoolBertPreTrainedModel",
    "BoolBertRetrievalOutput",
    "BooleanReading",
]
