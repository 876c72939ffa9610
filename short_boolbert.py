# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Bool-BERT's inference on a CPU: one matrix product and a dozen small steps in place of a layer's fifty.

`modeling_boolbert.py` computes the same step by step wherever this file does not apply: with gradients, in training, in
a traced or compiled graph, in any other precision than float32, and for parts that somebody changed.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.models.bert.modeling_bert import BertIntermediate, BertLayer, BertOutput, BertSelfOutput

from .kernels_boolbert import (
    NUM_OPERATORS,
    OperatorRange,
    are_untouched,
    is_gelu,
    is_interpreted,
    keep,
    weights_of,
)

# The scope logit of padding, and of operators that are off in a sentence.
NEVER = -1e9
# Distances of all pairs of tokens are looked at in sentences up to this length, and up to so many pairs in a batch.
LONGEST_PAIRED, MOST_PAIRS = 128, 1 << 20
# Whether oneDNN may compute float32 products, and rearranges a weight each time: on ARM processors without SVE.
HAS_ACL = getattr(torch.backends.mkldnn, "is_acl_available", bool)()  # Arm's Compute Library
REARRANGES = HAS_ACL and torch.backends.cpu.get_cpu_capability() == "DEFAULT"
# MKL does so too, and loses time by it with up to so many tokens.
FEW_TOKENS = 64
OUTPUTS = (BertSelfOutput, BertOutput)

# The parts of the reading: what they are, and which parameters they have.
Parts = Mapping[str, tuple[type[nn.Module], list[str]]]
CUE_PARTS: Parts = {
    "context_projection": (nn.Linear, ["weight", "bias"]),
    "context": (nn.Conv1d, ["weight", "bias"]),
    "operator_projection": (nn.Linear, ["weight", "bias"]),
    "score": (nn.Linear, ["weight"]),
}
READER_PARTS: Parts = {
    "norms": (nn.LayerNorm, ["weight", "bias"]),
    "convolutions": (nn.Conv1d, ["weight", "bias"]),
    "dense": (nn.Linear, ["weight", "bias"]),
    "output": (nn.Linear, ["weight"]),
}


def is_cheaper(layer_input: Tensor, is_training: bool) -> bool:
    """Whether the short version may stand in for the plain one."""
    if is_training or torch.is_grad_enabled() or layer_input.device.type != "cpu" or is_interpreted():
        return False
    if torch.jit.is_tracing() or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
        return False
    return type(layer_input) is Tensor and layer_input.dtype == torch.float32


def are_countable(weights: Sequence[Tensor]) -> bool:
    """Whether weights are in float32, and their changes are counted: those made in inference mode are not."""
    return all(weight.dtype == torch.float32 and not weight.is_inference() for weight in weights)


def is_plain_gelu(activation: Any) -> bool:
    """Whether an activation is GELU, and nobody watches it."""
    return is_gelu(activation) and are_untouched((activation,), ())


def activated(states: Tensor, activation: Any) -> Tensor:
    """What an activation gives for states that nobody else needs: GELU in their own memory."""
    return torch.ops.aten.gelu_(states) if is_plain_gelu(activation) else activation(states)


def times(states: Tensor, linear: nn.Linear, is_exact: bool) -> Tensor:
    """What an untouched linear layer gives; with `is_exact` to the bit.

    Where a library rearranges weights, a copy that needs none is faster, by a third with few tokens and on ARM by a
    tenth with many, and rounds otherwise.
    """
    turned = None if is_exact or linear.bias is None else turned_weight(states, linear)
    if turned is None:
        return F.linear(states, linear.weight, linear.bias)
    return torch.addmm(linear.bias, states.flatten(0, -2), turned).view(*states.shape[:-1], -1)


def turned_weight(states: Tensor, linear: nn.Linear) -> Tensor | None:
    """A linear layer's weight in the form that no library has to rearrange, (D, m); None where none does."""
    weight: Tensor = linear.weight
    if not is_rearranged(states) or not are_countable([weight]):
        return None
    (turned,) = keep([weight], ("turned", sampled(weight)), lambda: (as_factor(weight),))
    return turned


def sampled(weight: Tensor) -> float:
    """A number that changes with a weight, also where a write leaves no trace, as those of merged adapters do."""
    return weight.trace().item()


def is_rearranged(states: Tensor) -> bool:
    if REARRANGES:
        return bool(torch.backends.mkldnn.enabled)
    return torch.backends.mkl.is_available() and states.numel() <= FEW_TOKENS * states.shape[-1]


def added_and_normed(part: Any, states: Tensor, residual: Tensor, is_exact: bool) -> Tensor:
    """What a `BertSelfOutput` or `BertOutput` gives, in fewer steps where nobody has changed it."""
    dense, norm, dropout = (part._modules.get(name) for name in ("dense", "LayerNorm", "dropout"))
    kinds = (nn.Linear, nn.LayerNorm, nn.Dropout)
    if type(part) not in OUTPUTS or not are_untouched((dense, norm, dropout, part), kinds) or dropout.training:
        return part(states, residual)
    turned = None if is_exact or dense.bias is None else turned_weight(states, dense)
    if turned is None:
        return norm(times(states, dense, is_exact).add_(residual))
    # To this the product is added, instead of the other way round: a pass less.
    added = (residual.flatten(0, 1) + dense.bias).addmm_(states.flatten(0, 1), turned)
    return norm(added.view(residual.shape))


def fed_forward(layer: Any, states: Tensor, is_exact: bool) -> Tensor:
    """What a `BertLayer`'s `feed_forward_chunk` gives, in fewer steps where nobody has changed it."""
    if type(layer).feed_forward_chunk is not BertLayer.feed_forward_chunk or "feed_forward_chunk" in layer.__dict__:
        return layer.feed_forward_chunk(states)
    inner = layer.intermediate
    dense = inner._modules.get("dense")
    if not are_untouched((inner, dense), (BertIntermediate, nn.Linear)):
        hidden = inner(states)
    else:
        hidden = activated(times(states, dense, is_exact), inner.intermediate_act_fn)
    return added_and_normed(layer.output, hidden, states, is_exact)


def short_layer(
    layer: Any,
    kinds: Sequence[type[nn.Module]],
    states: Tensor,
    mask: Tensor | None,
    is_exact: bool,
    shared: "SharedInputs | None" = None,
) -> Tensor | None:
    """What a layer gives, with torch's own attention; None where somebody has changed it.

    `kinds` are those of the layer, its attention block and its self-attention; `shared` is for a Boolean bias.
    """
    attention = layer._modules.get("attention")
    inner = None if attention is None else attention._modules.get("self")
    if inner is None or not are_untouched((layer, attention, inner), kinds):
        return None
    parts = [inner._modules.get(name) for name in ("query", "key", "value", "dropout")]
    if not are_untouched(parts, (nn.Linear, nn.Linear, nn.Linear, nn.Dropout)):
        return None
    if layer.training or attention.training or inner.training:
        return None
    if inner.is_causal or layer.chunk_size_feed_forward or layer.add_cross_attention:
        return None
    if shared is None:
        shape = (*states.shape[:2], inner.num_attention_heads, inner.attention_head_size)
        query, key, value = (times(states, part, is_exact).view(shape).transpose(1, 2) for part in parts[:3])
    else:
        inputs = short_inputs(inner, states, shared, has_padding=mask is None)
        if inputs is None:
            return None
        query, key, value = inputs
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=inner.scaling)
    context = context[..., : inner.attention_head_size].transpose(1, 2).flatten(2)
    attended = added_and_normed(attention.output, context, states, is_exact)
    return fed_forward(layer, attended, is_exact)


def as_factor(weight: Tensor) -> Tensor:
    """A copy of a weight that no library has to rearrange: (m, D) -> (D, m)."""
    return weight.T.clone(memory_format=torch.contiguous_format)


def parameters_of(module: nn.Module, parts: Parts) -> list[Tensor] | None:
    """The parameters of a module's parts, one part or list of parts after the other, and then its own; None where
    somebody has changed a part."""
    weights: list[Any] = []
    for name, (kind, names) in parts.items():
        part = module._modules.get(name)
        found: list[Any] = list(part._modules.values()) if type(part) is nn.ModuleList else [part]
        if not are_untouched(found, [kind] * len(found)):
            return None
        for one in found:
            own = {key: weight for key, weight in one._parameters.items() if weight is not None}
            if list(own) != names:
                return None
            weights += own.values()
    weights += module._parameters.values()
    return weights if are_countable(weights) else None


def cue_logits(predictor: Any, hidden_states: Tensor, embeddings: Tensor, token_mask: Tensor) -> Tensor | None:
    """What the `CuePredictor` gives, (B, 3, L), in fewer steps; None where it was changed."""
    weights = parameters_of(predictor, CUE_PARTS)
    if weights is None:
        return None
    narrow, narrow_bias, context, context_bias, projection, projection_bias, score, score_bias = weights
    (batch, length, size), kernel = hidden_states.shape, context.shape[2]
    tokens = batch * length

    def prepare() -> tuple[Tensor, ...]:
        factors = (as_factor(weight) for weight in (narrow, context.transpose(1, 2).flatten(1)))
        operators = F.linear(embeddings, projection, projection_bias) + context_bias
        return *factors, operators.unsqueeze(1)  # (D, narrow), (kernel narrow, D), (3, 1, D)

    made = keep([*weights, embeddings], "cues", prepare)
    narrow_factor, context_factor, operators = made
    states = hidden_states.flatten(0, 1)
    visible = torch.addmm(narrow_bias, states, narrow_factor).view(batch, length, -1)
    visible = F.pad(visible * token_mask.unsqueeze(-1), (0, 0, kernel // 2, kernel // 2))
    neighbours = visible.unfold(1, kernel, 1).transpose(2, 3).reshape(tokens, -1)  # (B L, kernel narrow)
    seen = torch.addmm(states, neighbours, context_factor)
    features = seen.view(batch, 1, length, size) + operators
    features = activated(features, predictor.activation).view(-1, size)
    return torch.addmv(score_bias, features, score[0]).view(batch, NUM_OPERATORS, length)


def scope_logits(reader: Any, hidden_states: Tensor, cue_probs: Tensor, token_mask: Tensor) -> Tensor | None:
    """What the `ScopeReader` gives, (B, 3, L), in fewer steps; None where it was changed."""
    weights = parameters_of(reader, READER_PARTS)
    if weights is None:
        return None
    *layers, dense, dense_bias, output, cue_weight, output_bias = weights
    (batch, length, _), size, depth = hidden_states.shape, len(dense), len(layers) // 4
    tokens, norms, convolutions = batch * length, layers[: 2 * depth], layers[2 * depth :]

    def prepare() -> tuple[Tensor, ...]:
        # What each of the three taps gives to a neighbour, side by side. The bias belongs to the one in the middle.
        taps = (as_factor(weight.permute(2, 0, 1).flatten(0, 1)) for weight in convolutions[::2])
        return as_factor(dense), *taps, *(F.pad(bias, (size, size)) for bias in convolutions[1::2])

    dense_factor, *made = keep(weights, "reader", prepare)
    activation, visible = reader.activation, token_mask.reshape(-1, 1)
    features = torch.addmm(dense_bias, hidden_states.flatten(0, 1), dense_factor)
    features.addmm_(cue_probs.transpose(1, 2).reshape(tokens, -1), cue_weight)
    for layer, norm in enumerate(reader.norms):
        step, (scale, shift) = 2**layer, norms[2 * layer : 2 * layer + 2]
        states = F.layer_norm(features, (size,), scale, shift, norm.eps).mul_(visible)
        given = torch.addmm(made[depth + layer], states, made[layer]).view(batch, length, 3 * size)
        own = given[..., size : 2 * size]
        if step < length:
            own[:, step:] += given[:, :-step, :size]
            own[:, :-step] += given[:, step:, 2 * size :]
        features += activated(own, activation).view(tokens, size)
    return F.linear(features, output, output_bias).view(batch, length, -1).transpose(1, 2)


def near_exponent(cues: Tensor, window: int, unreached: float) -> Tensor | None:
    """What `gaussian_exponent` gives, by looking at all pairs of tokens; None where these are too many."""
    batch, operators, length = cues.shape
    if length > LONGEST_PAIRED or batch * operators * length * length > MOST_PAIRS:
        return None
    table = paired_exponents(length, window, unreached)
    return torch.where(cues.unsqueeze(2), table, unreached).amax(-1)


@lru_cache(maxsize=2 * 128)
def paired_exponents(length: int, window: int, unreached: float) -> Tensor:
    """-r^2 / 2 of a token (rows) for each place of a cue (columns) of and, or, not: (3, L, L)."""
    with torch.inference_mode(False), torch.no_grad():
        index = torch.arange(length, dtype=torch.float32, device="cpu")
        since = index[:, None] - index[None, :]
        both_ways = -0.5 * since.abs().clamp_max(window).square()
        return torch.stack([both_ways, both_ways, torch.where(since >= 0, -0.5 * since.square(), unreached)])


class SharedInputs(NamedTuple):
    """What all layers of a call share; see [`share`]. They take turns with its memory, of which most entries are
    views: made once, and not by each layer."""

    operators: OperatorRange
    is_exact: bool  # whether query, key and value must be BERT's to the bit
    embeddings: Tensor  # (3, d_o)
    features: Tensor  # (B L, columns of `split_features`)
    position: Tensor  # (B, L, 3), a part of the features: each layer writes its own
    exponent: Tensor  # (B, L, 3), the Gaussian's
    token_mask: Tensor | None  # (B, L, 1, 1); None without padding
    padding: Tensor | None  # (B, L, 1): what is added to the scores of keys
    product: Tensor  # (B L, 3 D + E (hidden + kernel heads)), of hidden states and weights
    projected: Tensor | None  # (B, L, 3, heads, head size), its first columns; neither has them if `is_exact`
    own: Tensor  # (B L, E (hidden + kernel heads)), all others
    experts: Tensor  # (E, B L, hidden), parts of those
    taps: Tensor  # (B, L, E, kernel heads), the other parts
    shifts: list[tuple[Tensor, Tensor]]  # own taps of tokens, (B, some of L, E, heads), and what neighbours add to them
    logits: Tensor  # (B, L, heads, E), all tokens' own taps
    strength: Tensor  # (E, B L, heads)
    strengths: Tensor  # (B, L, heads, E), the same memory
    inputs: tuple[Tensor, Tensor, Tensor]  # query, key, value: (B, heads, L, width); the rest are their parts
    projections: Tensor  # (B, L, 3, heads, head size)
    query_columns: Tensor  # (B, L, heads, E)
    key_columns: Tensor  # (B, L, heads, E)
    last_column: Tensor  # (B, L, heads), of the keys


def split_features(features: Tensor, kernel: int, dim: int) -> tuple[Tensor, ...]:
    """What a layer reads of a token besides its hidden state. For each operator: the cues of the token and its
    neighbours; the scope reader's logit; 1 where the token cannot be in scope; its position, that is w(r). At the end
    a 1, for what is the same for all tokens."""
    return features.split([NUM_OPERATORS * kernel, NUM_OPERATORS, NUM_OPERATORS, NUM_OPERATORS, 1], dim)


def count_features(kernel: int) -> int:
    return NUM_OPERATORS * (kernel + 3) + 1


def share(
    operators: OperatorRange,
    embeddings: Tensor,
    cue_probs: Tensor,
    exponent: Tensor,
    reader_logits: Tensor | None,
    token_mask: Tensor,
    gate: Tensor,
    *,
    kernel: int,
    heads: int,
    size: int,
    hidden: int,
    masked_score: float,
    multiple: int,
) -> SharedInputs:
    """What is the same for all layers. `operators` are computed; all that has an entry for each is given for all three.

    An operator that is off in a sentence has no token in scope there. A sentence with nothing in scope, alone or among
    others, has BERT's own states to the bit.
    """
    batch, _, length = cue_probs.shape
    reach, count = kernel // 2, operators[1] - operators[0]
    features = cue_probs.new_zeros(batch, length, count_features(kernel))
    cues, reader, is_out, position, one = split_features(features, kernel, -1)
    neighbours = F.pad(cue_probs, (reach, reach)).unfold(2, kernel, 1).transpose(1, 2)  # (B, L, 3, kernel)
    cues.view(batch, length, NUM_OPERATORS, kernel).copy_(neighbours)
    if reader_logits is not None:
        reader.copy_(reader_logits.transpose(1, 2))
    is_padded, visible = not bool(token_mask.all()), token_mask.unsqueeze(-1)  # (B, L, 1)
    is_out.copy_(1 - visible * gate.unsqueeze(1))
    in_scope = gate if reader_logits is None else (reader > 0) & (is_out == 0)
    is_exact = not bool(in_scope.flatten(1).any(1).all())
    one.fill_(1.0)

    plain, tokens = 0 if is_exact else 3 * heads * size, batch * length
    product = cue_probs.new_empty(tokens, plain + count * (hidden + kernel * heads))
    projected, own = product[:, :plain], product[:, plain:]
    experts, taps = own.view(batch, length, count, -1).split([hidden, kernel * heads], -1)
    # Tap k of the token at i + k - reach belongs to the token at i.
    by_tap = taps.unflatten(-1, (kernel, heads))  # (B, L, E, kernel, heads)
    logits, shifts = by_tap[..., reach, :], []
    for step in range(1, min(reach + 1, length)):
        shifts.append((logits[:, step:], by_tap[:, :-step, :, reach - step]))
        shifts.append((logits[:, :-step], by_tap[:, step:, :, reach + step]))
    strength = cue_probs.new_empty(count, tokens, heads)

    # Behind each head: a column for each operator, one more, and zeros up to a size that attention likes.
    width = size + count + 1
    inputs = cue_probs.new_empty(batch, length, 3, heads, width + -width % multiple)
    inputs[..., size:].zero_()
    inputs[:, :, 0, :, size + count].fill_(1.0)
    columns = inputs[..., size : size + count]
    query, key, value = inputs.transpose(1, 3).unbind(2)
    return SharedInputs(
        operators=operators,
        is_exact=is_exact,
        embeddings=embeddings,
        features=features.flatten(0, 1),
        position=position,
        exponent=exponent.transpose(1, 2),
        token_mask=visible.unsqueeze(-1) if is_padded else None,
        padding=(1 - visible) * masked_score if is_padded else None,
        product=product,
        projected=None if is_exact else projected.view(batch, length, 3, heads, size),
        own=own,
        experts=experts.flatten(0, 1).transpose(0, 1),
        taps=taps,
        shifts=shifts,
        logits=logits.transpose(2, 3),
        strength=strength,
        strengths=strength.view(count, batch, length, heads).permute(1, 2, 3, 0),
        inputs=(query, key, value),
        projections=inputs[..., :size],
        query_columns=columns[:, :, 0],
        key_columns=columns[:, :, 1],
        last_column=inputs[:, :, 1, :, size + count],
    )


class JoinedWeights(NamedTuple):
    """A layer's weights as [`short_inputs`] wants them, the operators in the order not, or, and; see [`join_layer`]."""

    weight: Tensor  # (D, 3 D + 3 (hidden + kernel heads)): libraries would rearrange the other form
    bias: Tensor  # (3, heads, head size)
    feature_weight: Tensor  # (features, 3 (hidden + kernel heads))
    narrowness: Tensor  # (3,), 1 / sigma^2 of and, or, not
    output_weight: Tensor  # (3, hidden, heads)
    output_bias: Tensor  # (3, 1, heads)


def join_layer(weights: Sequence[Tensor], embeddings: Tensor, scaling: float) -> JoinedWeights:
    """One weight for query, key and value, and for each operator the bias predictor's hidden layer and the
    convolution's taps; FiLM, thresholds, operator gates and the scale of the scores are worked in.

    It is a second copy of these weights, for all operators. NOT comes first, as it is on most often: what a sentence
    needs is then often the beginning of the weight, and one product is enough.
    """
    query, query_bias, key, key_bias, value, value_bias, dense, dense_bias, context = weights[:9]
    cue_weight, conv_bias, threshold, film, film_bias, operator_gate = weights[9:15]
    sigma, position_weight, output_weight, output_bias = weights[15:]
    (kernel, _, heads), hidden, size = cue_weight.shape, position_weight.shape[1], query.shape[1]
    gamma, beta = F.linear(embeddings, film, film_bias).chunk(2, -1)  # (3, heads) each
    scale = 1 + gamma
    taps = context.view(kernel, -1, heads, size).transpose(0, 1) * scale[:, None, :, None]  # (3, kernel, heads, D)
    own = torch.cat([dense.view(NUM_OPERATORS, hidden, size), taps.flatten(1, 2)], 1)

    # What the features add: to the experts' hidden layers, and to a token's own tap, which becomes its scope logit.
    feature_weight = query.new_zeros(count_features(kernel), NUM_OPERATORS, hidden + kernel * heads)
    cues, reader, is_out, position, one = split_features(feature_weight, kernel, 0)
    logits = slice(hidden + kernel // 2 * heads, hidden + (kernel // 2 + 1) * heads)
    for e in range(NUM_OPERATORS):
        cues[e * kernel : (e + 1) * kernel, e, logits] = cue_weight[:, e] * scale[e]
        reader[e, e, logits] = 1.0
        is_out[e, e, logits] = NEVER
        position[e, e, :hidden] = position_weight[e]
    one[0, :, :hidden] = dense_bias.view(NUM_OPERATORS, hidden)
    # sigmoid(x) > theta where x > logit(theta); a theta that is no probability is never or always passed.
    passed = torch.logit(threshold.clamp(0, 1)).nan_to_num(posinf=1e6, neginf=-1e6)
    one[0, :, logits] = conv_bias * scale + beta - passed.unsqueeze(-1)

    strength = torch.sigmoid(F.linear(embeddings, operator_gate)) / scaling  # (3, heads)
    return JoinedWeights(
        as_factor(torch.cat([query, key, value, own.flip(0).flatten(0, 1)])),
        torch.stack([query_bias, key_bias, value_bias]).view(3, heads, -1),
        feature_weight.flip(1).flatten(1),
        1 / sigma.square().clamp_min(1e-6),
        (output_weight * strength.unsqueeze(1)).flip(0),
        (output_bias * strength).unsqueeze(1).flip(0),
    )


def short_inputs(
    layer: Any, hidden_states: Tensor, shared: SharedInputs, *, has_padding: bool
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Query, key and value with their Boolean columns, (B, heads, L, width) each; None for a layer that was changed.

    U = [s_e, 1] and V = [s_e b_e, -s_not b_not + padding]: (1 - s_i) s_j b_j is s_j b_j less s_i s_j b_j.
    """
    weights, embeddings, scaling = weights_of(layer), shared.embeddings, layer.scaling
    if weights is None or not are_countable(weights) or layer.scope_predictor.training:
        return None
    setting = (scaling, *(sampled(weight) for weight in weights[0:6:2]))
    made = keep([*weights, embeddings], setting, lambda: join_layer(weights, embeddings, scaling))
    weight, bias, feature_weight, narrowness, output_weight, output_bias = made
    first, last = shared.operators
    plain, columns = bias.numel(), shared.own.shape[1]
    block = columns // (last - first)
    if bias.shape != shared.projections.shape[2:] or output_weight.shape[1] != shared.experts.shape[2]:
        return None  # a layer of other sizes than the configuration's
    if feature_weight.shape != (shared.features.shape[1], NUM_OPERATORS * block):
        return None

    states, start = hidden_states.flatten(0, 1), (NUM_OPERATORS - last) * block
    end = start + columns
    if shared.projected is None:
        torch.mm(states, weight[:, plain + start : plain + end], out=shared.own)
        for place, part in enumerate((layer.query, layer.key, layer.value)):
            shared.projections[:, :, place] = part(hidden_states).view(shared.projections[:, :, place].shape)
    else:
        if start == 0:
            torch.mm(states, weight[:, : plain + end], out=shared.product)
        else:
            torch.mm(states, weight[:, plain + start : plain + end], out=shared.own)
            torch.mm(states, weight[:, :plain], out=shared.product[:, :plain])
        torch.add(shared.projected, bias, out=shared.projections)

    if shared.token_mask is not None:
        shared.taps.mul_(shared.token_mask)
    torch.mul(shared.exponent, narrowness, out=shared.position).exp_()
    shared.own.addmm_(shared.features, feature_weight[:, start:end])
    for logits, added in shared.shifts:
        logits += added
    scope = torch.gt(shared.logits, 0, out=shared.query_columns)

    activation, chosen = layer.bias_predictor.activation, slice(NUM_OPERATORS - last, NUM_OPERATORS - first)
    if is_plain_gelu(activation):
        experts = torch.ops.aten.gelu_(shared.experts)
    else:  # somebody's: it gets what the plain version gives it, in memory of its own
        experts = shared.experts.transpose(0, 1).unflatten(0, hidden_states.shape[:2])  # (B, L, E, hidden)
        experts = activation(experts.flip(2)).flip(2).flatten(0, 1).transpose(0, 1)
    torch.baddbmm(output_bias[chosen], experts, output_weight[chosen], out=shared.strength)
    # softplus(x) / scale: the weights have x / scale.
    torch.ops.aten.softplus.out(shared.strength, scaling, out=shared.strength)
    scoped = torch.mul(scope, shared.strengths, out=shared.key_columns)
    padding = shared.padding if has_padding else None
    if last == NUM_OPERATORS:
        inside = scoped[..., 0]
        if padding is None:
            torch.neg(inside, out=shared.last_column)
        else:
            torch.sub(padding, inside, out=shared.last_column)
        if layer.not_reach == "both":
            inside.addcmul_(scope[..., 0] - 1, shared.strengths[..., 0])
        elif layer.not_reach == "all":
            inside.zero_()
    elif padding is not None:
        shared.last_column.copy_(padding)
    return shared.inputs
