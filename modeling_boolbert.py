# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Bool-BERT: BERT whose self-attention knows AND, OR and NOT ("Boolean-aware Attention for Dense Retrieval").

Shapes: B sentences, L tokens, D hidden size, E = 3 operators in the order of `OPERATORS`, d_o operator embedding size.
"""

import math
from dataclasses import dataclass
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
from transformers.utils.output_capturing import capture_outputs

from .configuration_boolbert import OPERATORS, BoolBertConfig

NUM_OPERATORS = len(OPERATORS)
NOT = OPERATORS.index("not")

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
# Labels with this value do not count in a loss, as everywhere in transformers.
IGNORED_LABEL = -100


@dataclass
class BoolBertOutput(ModelOutput):
    """What a [`BoolBertModel`] returns.

    last_hidden_state (B, L, D); pooler_output (B, D); cue_logits (B, E, L); gate_logits (B, E), already divided by the
    gate's temperature; operators (B, E), the 0/1 gate that was used. With `output_boolean=True` also scopes and biases:
    for each Boolean layer (B, E, heads, L). With `output_hidden_states` and `output_attentions` as any BERT.
    """

    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    cue_logits: Tensor | None = None
    gate_logits: Tensor | None = None
    operators: Tensor | None = None
    scopes: tuple[Tensor, ...] | None = None
    biases: tuple[Tensor, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class BoolBertForPreTrainingOutput(ModelOutput):
    """What a [`BoolBertForPreTraining`] returns: its losses, the sentence vectors (B, D) and the model's outputs."""

    loss: Tensor | None = None
    cue_loss: Tensor | None = None
    gate_loss: Tensor | None = None
    triplet_loss: Tensor | None = None
    sentence_embedding: Tensor | None = None
    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    cue_logits: Tensor | None = None
    gate_logits: Tensor | None = None
    operators: Tensor | None = None
    scopes: tuple[Tensor, ...] | None = None
    biases: tuple[Tensor, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


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


class CuePredictor(nn.Module):
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

    def forward(self, hidden_states: Tensor, operator_embeddings: Tensor, token_mask: Tensor) -> Tensor:
        if self.has_context:
            visible = self.context_projection(hidden_states)
            visible = visible * token_mask.unsqueeze(-1).to(visible.dtype)  # padding looks like the sentence's end
            hidden_states = hidden_states + self.context(visible.transpose(1, 2)).transpose(1, 2)
        operators = self.operator_projection(operator_embeddings)  # (E, D)
        features = self.activation(hidden_states.unsqueeze(1) + operators[:, None, :])  # (B, E, L, D)
        return self.score(features).squeeze(-1) + self.score_bias  # (B, E, L)


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
    """Which tokens an operator reaches: a local convolution, shaped per operator by FiLM, made binary by a threshold.

    Each operator has a Conv1D over [H; p_e] of its own. They are computed side by side: one matrix product gives every
    token's contribution to each of its neighbours, which are then moved into place and added.
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.kernel = config.conv_kernel
        self.heads = config.num_attention_heads
        self.temperature = config.gumbel_temperature
        self.initial_threshold = config.threshold
        self.context = nn.Linear(config.hidden_size, self.kernel * NUM_OPERATORS * self.heads, bias=False)
        self.cue_weight = nn.Parameter(torch.empty(self.kernel, NUM_OPERATORS, self.heads))
        self.bias = nn.Parameter(torch.empty(NUM_OPERATORS, self.heads))
        self.film = FiLM(config)
        self.threshold = nn.Parameter(torch.empty(NUM_OPERATORS))

    def logits(
        self, hidden_states: Tensor, cue_probs: Tensor, operator_embeddings: Tensor, token_mask: Tensor
    ) -> Tensor:
        """The modulated convolution: (B, L, E, heads)."""
        batch, length, _ = hidden_states.shape
        taps = self.context(hidden_states).float().view(batch, length, self.kernel, NUM_OPERATORS, self.heads)
        taps = taps + cue_probs.transpose(1, 2)[:, :, None, :, None] * self.cue_weight
        taps = taps * token_mask[:, :, None, None, None]
        # Tap k of the token at i + k - reach belongs to the token at i; beyond either end there are zeros.
        reach = self.kernel // 2
        taps = F.pad(taps, (0, 0, 0, 0, 0, 0, reach, reach))
        shifted = [taps[:, k : k + length, k] for k in range(self.kernel)]
        return self.film(torch.stack(shifted).sum(0) + self.bias, operator_embeddings)

    def forward(
        self, hidden_states: Tensor, cue_probs: Tensor, operator_embeddings: Tensor, token_mask: Tensor
    ) -> Tensor:
        logits = self.logits(hidden_states, cue_probs, operator_embeddings, token_mask)
        if self.training:  # Gumbel-sigmoid: the difference of two Gumbel variables is logistic
            noise = torch.logit(torch.rand_like(logits), eps=1e-6)
            logits = (logits + noise) / self.temperature
        # 1[P > theta] has no gradient anywhere; P - theta stands in for it, so that theta learns too.
        margin = (torch.sigmoid(logits) - self.threshold[:, None].float()) * token_mask[:, :, None, None]
        scope = straight_through((margin > 0).to(margin.dtype), margin)
        return scope.to(hidden_states.dtype).permute(0, 2, 3, 1)  # (B, E, heads, L), values in {0, 1}


class BiasPredictor(nn.Module):
    """How strongly an operator changes the attention to a token.

    b_e = softplus(FFN_e([H; w(r_e)]) * sigmoid(W_op o_e)) with w(r) = exp(-r^2 / 2 sigma_e^2), and w = 0 where no cue
    reaches. The operators' FFNs are computed side by side.
    """

    def __init__(self, config: BoolBertConfig):
        super().__init__()
        self.hidden_size = config.bias_hidden_size
        self.initial_sigma = config.sigma
        self.initial_bias = config.initial_bias
        heads = config.num_attention_heads
        self.sigma = nn.Parameter(torch.empty(NUM_OPERATORS))
        self.dense = nn.Linear(config.hidden_size, NUM_OPERATORS * self.hidden_size)
        self.position_weight = nn.Parameter(torch.empty(NUM_OPERATORS, self.hidden_size))
        self.activation = ACT2FN[config.hidden_act]
        self.output_weight = nn.Parameter(torch.empty(NUM_OPERATORS, self.hidden_size, heads))
        self.output_bias = nn.Parameter(torch.empty(NUM_OPERATORS, heads))
        self.operator_gate = nn.Linear(config.operator_embedding_size, heads, bias=False)

    def position_weights(self, exponent: Tensor) -> Tensor:
        """w(r), from `gaussian_exponent`'s -r^2 / 2: (B, E, L)."""
        return torch.exp(exponent / self.sigma.float().square().clamp_min(1e-6)[:, None])

    def forward(self, hidden_states: Tensor, exponent: Tensor, operator_embeddings: Tensor) -> Tensor:
        batch, length, _ = hidden_states.shape
        position = self.position_weights(exponent).transpose(1, 2)  # (B, L, E)
        hidden = self.dense(hidden_states).view(batch, length, NUM_OPERATORS, self.hidden_size)
        position = position.unsqueeze(-1) * self.position_weight  # (B, L, E, hidden)
        hidden = self.activation(hidden + position.to(hidden.dtype))
        bias = torch.einsum("bleh,ehn->blen", hidden, self.output_weight) + self.output_bias
        bias = F.softplus(bias * torch.sigmoid(self.operator_gate(operator_embeddings)))
        return bias.to(hidden_states.dtype).permute(0, 2, 3, 1)  # (B, E, heads, L), never negative


class BoolBertSelfAttention(BertSelfAttention):
    """Self-attention with the Boolean bias S_and + S_or - S_not on its scores, which never exists as a matrix.

    S_e = G_e * Scope_e * Bias_e, where the scope of AND and OR is s_i s_j and that of NOT is s_j. So S has rank 3:
    S = U V^T with U = [s_and, s_or, 1] and V = [G s_and b_and, G s_or b_or, -G s_not b_not]. Attention over [Q ; U] and
    [K ; V / scale] is exactly attention with S added, at the price of three more dimensions a head, and any attention
    kernel can do it.
    """

    def __init__(self, config: BoolBertConfig, layer_idx: int | None = None):
        super().__init__(config, layer_idx=layer_idx)
        self.scope_predictor = ScopePredictor(config)
        self.bias_predictor = BiasPredictor(config)

    def forward(  # type: ignore[override]
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None,
        boolean: tuple[Tensor, ...],
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
        cue_probs, exponent, gate, operator_embeddings, token_mask = boolean
        scope = self.scope_predictor(hidden_states, cue_probs, operator_embeddings, token_mask)
        bias = self.bias_predictor(hidden_states, exponent, operator_embeddings)

        batch, length, _ = hidden_states.shape
        shape = (batch, length, self.num_attention_heads, self.attention_head_size)
        query = self.query(hidden_states).view(shape).transpose(1, 2)
        key = self.key(hidden_states).view(shape).transpose(1, 2)
        value = self.value(hidden_states).view(shape).transpose(1, 2)

        query_side = scope[:, :NOT].permute(0, 2, 3, 1).to(query.dtype)  # s_and and s_or, (B, heads, L, 2)
        # U's last column is 1; behind it stand zeros that fill the head up to a size that kernels like.
        spare = -(self.attention_head_size + NUM_OPERATORS) % HEAD_MULTIPLE
        filling = F.pad(query.new_ones(1), (0, spare)).expand(*query.shape[:-1], -1)
        key_side = gate[:, :, None, None].to(bias.dtype) * scope * bias / self.scaling  # V / scale
        and_or, minus_not = key_side[:, :NOT], -key_side[:, NOT:]  # (B, 2, heads, L), (B, 1, heads, L)
        if attention_mask is None:
            # NOT's column meets a 1 in every query, so it can mask the padding as well, and no mask is needed.
            minus_not = minus_not + ((1 - token_mask) * MASKED_SCORE).to(bias.dtype)[:, None, None, :]
        key_side = torch.cat([and_or, minus_not], 1).permute(0, 2, 3, 1).to(key.dtype)  # (B, heads, L, 3)

        attention = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        output, weights = attention(
            self,
            torch.cat([query, query_side, filling], -1),
            F.pad(torch.cat([key, key_side], -1), (0, spare)),
            F.pad(value, (0, NUM_OPERATORS + spare)),
            attention_mask,
            dropout=self.dropout.p if self.training else 0.0,
            scaling=self.scaling,
            **kwargs,
        )  # (B, L, heads, head size + 3 + spare)
        output = output[..., : self.attention_head_size].reshape(batch, length, -1)
        return output, weights, scope, bias


class BoolBertAttention(BertAttention):
    """BERT's attention block around Boolean-aware self-attention."""

    def __init__(self, config: BoolBertConfig, layer_idx: int | None = None):
        super().__init__(config, layer_idx=layer_idx)
        self.self = BoolBertSelfAttention(config, layer_idx=layer_idx)

    def forward(  # type: ignore[override]
        self, hidden_states: Tensor, attention_mask: Tensor | None, boolean: tuple[Tensor, ...], **kwargs: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        output, _, scope, bias = self.self(hidden_states, attention_mask, boolean, **kwargs)
        return self.output(output, hidden_states), scope, bias


class BoolBertLayer(BertLayer):
    """A BERT layer with Boolean-aware attention. Returns its hidden states, scope and bias."""

    def __init__(self, config: BoolBertConfig, layer_idx: int | None = None):
        super().__init__(config, layer_idx=layer_idx)
        self.attention = BoolBertAttention(config, layer_idx=layer_idx)

    # The Boolean tensors are positional arguments so that gradient checkpointing sees them.
    def forward(  # type: ignore[override]
        self, hidden_states: Tensor, attention_mask: Tensor | None, *boolean: Tensor, **kwargs: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        attention_output, scope, bias = self.attention(hidden_states, attention_mask, boolean, **kwargs)
        hidden_states = apply_chunking_to_forward(
            self.feed_forward_chunk, self.chunk_size_feed_forward, self.seq_len_dim, attention_output
        )
        return hidden_states, scope, bias


class BoolBertEncoder(nn.Module):
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
        boolean: tuple[Tensor, ...],
        **kwargs: Any,
    ) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        scopes, biases = [], []
        for layer in self.layer:
            if isinstance(layer, BoolBertLayer):
                hidden_states, scope, bias = layer(hidden_states, boolean_mask, *boolean, **kwargs)
                scopes.append(scope)
                biases.append(bias)
            else:
                hidden_states = layer(hidden_states, attention_mask, **kwargs)
        return hidden_states, tuple(scopes), tuple(biases)


class BoolBertPreTrainedModel(BertPreTrainedModel):
    """Weight initialisation, and loading from any BERT: the BERT parts keep BERT's names."""

    config_class = BoolBertConfig
    config: BoolBertConfig
    base_model_prefix = "bert"
    _no_split_modules = ["BertEmbeddings", "BertLayer", "BoolBertLayer"]  # noqa: RUF012
    _can_record_outputs = {"hidden_states": BertLayer, "attentions": BertSelfAttention}  # noqa: RUF012

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
            init.normal_(module.cue_weight, std=std)
            init.zeros_(module.bias)
            init.constant_(module.threshold, module.initial_threshold)
        elif isinstance(module, BiasPredictor):
            init.constant_(module.sigma, module.initial_sigma)
            init.normal_(module.position_weight, std=std)
            init.normal_(module.output_weight, std=std)
            # softplus(x * sigmoid(0)) = initial_bias
            init.constant_(module.output_bias, 2 * math.log(math.expm1(module.initial_bias)))
        elif isinstance(module, BoolBertModel):
            init.normal_(module.operator_embeddings)


class BoolBertModel(BoolBertPreTrainedModel):
    """BERT with Boolean-aware attention, the query encoder of a dual-encoder retriever.

    `operators`, a (B, 3) tensor of 0/1 for and, or, not, says which operators a sentence holds. Without it the gate
    decides, so that plain text is enough. With every gate off this is exactly the BERT that it was made from.
    """

    def __init__(self, config: BoolBertConfig, add_pooling_layer: bool = True):
        super().__init__(config)
        config.check()  # a value may have been changed since the configuration was built
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.operator_embeddings = nn.Parameter(torch.empty(NUM_OPERATORS, config.operator_embedding_size))
        self.cue_predictor = CuePredictor(config)
        self.gate = OperatorGate(config)
        self.encoder = BoolBertEncoder(config)
        self.pooler = BertPooler(config) if add_pooling_layer else None
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embeddings.word_embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embeddings.word_embeddings = value  # type: ignore[assignment]

    @capture_outputs
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        operators: Tensor | None = None,
        output_boolean: bool = False,
        **kwargs: Any,
    ) -> BoolBertOutput:
        shape = self._check_inputs(input_ids, inputs_embeds)
        embeddings = self.embeddings(
            input_ids=input_ids,
            position_ids=position_ids,
            token_type_ids=token_type_ids,
            inputs_embeds=inputs_embeds,
        )
        token_mask = self._token_mask(attention_mask, shape, embeddings.device)

        cue_logits = self.cue_predictor(embeddings, self.operator_embeddings, token_mask)
        cue_probs = torch.sigmoid(cue_logits.float()) * token_mask.unsqueeze(1)
        exponent = gaussian_exponent(cue_probs > DECISION, self.config.window)
        gate_logits = self.gate(embeddings, token_mask)
        if operators is None:
            gate = self._predicted_gate(gate_logits, cue_probs)
        else:
            gate = self._given_gate(operators, shape[0], embeddings.device)

        plain_mask, boolean_mask = self._attention_masks(attention_mask, embeddings)
        boolean = (cue_probs, exponent, gate, self.operator_embeddings, token_mask)
        hidden_states, scopes, biases = self.encoder(embeddings, plain_mask, boolean_mask, boolean, **kwargs)
        return BoolBertOutput(
            last_hidden_state=hidden_states,
            pooler_output=self.pooler(hidden_states) if self.pooler is not None else None,
            cue_logits=cue_logits,
            gate_logits=gate_logits,
            operators=gate.detach().long(),
            scopes=scopes if output_boolean else None,
            biases=biases if output_boolean else None,
        )

    def _predicted_gate(self, gate_logits: Tensor, cue_probs: Tensor) -> Tensor:
        """The 0/1 gate (B, E) that the model finds by itself, with the gradient of its probability."""
        gate_probs = torch.sigmoid(gate_logits.float()) if self.config.gate == "learned" else cue_probs.amax(-1)
        return straight_through((gate_probs > DECISION).to(gate_probs.dtype), gate_probs)

    def _given_gate(self, operators: Tensor, batch: int, device: torch.device) -> Tensor:
        expected = f"operators must be a ({batch}, {NUM_OPERATORS}) tensor of 0/1 for {', '.join(OPERATORS)}"
        if not isinstance(operators, Tensor):
            raise ValueError(f"{expected}, got a {type(operators).__name__}")
        if operators.shape != (batch, NUM_OPERATORS):
            raise ValueError(f"{expected}, got shape {tuple(operators.shape)}")
        # Reading the values is not possible in a traced graph; there the shape has to do.
        if not (torch.compiler.is_compiling() or torch.jit.is_tracing() or operators.is_meta):
            wrong = operators[(operators != 0) & (operators != 1)]
            if wrong.numel():
                raise ValueError(f"{expected}, got the value {wrong[0].item()}")
        return operators.to(device=device, dtype=torch.float32)

    def _check_inputs(self, input_ids: Tensor | None, inputs_embeds: Tensor | None) -> tuple[int, int]:
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("exactly one of input_ids and inputs_embeds must be given")
        if input_ids is not None and input_ids.ndim != 2:
            raise ValueError(f"input_ids must be (batch, length), got shape {tuple(input_ids.shape)}")
        if inputs_embeds is not None and inputs_embeds.ndim != 3:
            raise ValueError(f"inputs_embeds must be (batch, length, size), got shape {tuple(inputs_embeds.shape)}")
        given = input_ids if input_ids is not None else inputs_embeds
        batch, length = given.shape[:2]  # type: ignore[union-attr]
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

    def _attention_masks(self, attention_mask: Tensor | None, embeddings: Tensor) -> tuple[Any, Any]:
        """The masks for the plain and for the Boolean layers; with sdpa the latter mask the padding by themselves."""
        folded = self.config._attn_implementation == "sdpa" and (attention_mask is None or attention_mask.ndim == 2)
        if folded and len(self.config.boolean_layers) == self.config.num_hidden_layers:
            return None, None
        mask = create_bidirectional_mask(config=self.config, inputs_embeds=embeddings, attention_mask=attention_mask)
        return mask, None if folded else mask


class BoolBertForPreTraining(BoolBertPreTrainedModel):
    """Bool-BERT with the losses of the paper's appendix: cues, operators, and triplets of sentences."""

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
        triplets: Tensor | None = None,
        **kwargs: Any,
    ) -> BoolBertForPreTrainingOutput:
        """Each loss is computed where its labels are given, and `loss` is their weighted sum.

        cue_labels (B, 3, L): 0/1, is the token a cue of the operator; padding and -100 do not count.
        gate_labels (B, 3): 0/1, does the sentence hold the operator.
        triplets (T, 3): rows of this batch: an anchor, one that means the same, and one that does not.
        """
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
        hidden_states = outputs.last_hidden_state
        token_mask = self.bert._token_mask(attention_mask, hidden_states.shape[:2], hidden_states.device)
        embedding = hidden_states[:, 0] if self.config.pooling == "cls" else masked_mean(hidden_states, token_mask)

        cue_loss = gate_loss = triplet_loss = None
        if cue_labels is not None:
            _check_labels("cue_labels", cue_labels, outputs.cue_logits)
            counted = (cue_labels != IGNORED_LABEL) & (token_mask != 0).unsqueeze(1)
            cue_loss = masked_binary_cross_entropy(outputs.cue_logits, cue_labels, counted)
        if gate_labels is not None:
            _check_labels("gate_labels", gate_labels, outputs.gate_logits)
            gate_loss = masked_binary_cross_entropy(outputs.gate_logits, gate_labels, gate_labels != IGNORED_LABEL)
        if triplets is not None:
            if triplets.ndim != 2 or triplets.shape[1] != 3:
                raise ValueError(f"triplets must be of shape (T, 3), got {tuple(triplets.shape)}")
            anchor, positive, negative = (embedding[rows] for rows in triplets.unbind(1))
            triplet_loss = F.triplet_margin_loss(anchor, positive, negative, margin=self.config.triplet_margin)

        terms = [(1.0, cue_loss), (1.0, gate_loss), (self.config.triplet_weight, triplet_loss)]
        given = [weight * loss for weight, loss in terms if loss is not None]
        return BoolBertForPreTrainingOutput(
            loss=torch.stack(given).sum() if given else None,
            cue_loss=cue_loss,
            gate_loss=gate_loss,
            triplet_loss=triplet_loss,
            sentence_embedding=embedding,
            **outputs,
        )


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
]
