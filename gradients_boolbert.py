# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Bool-BERT's training on a GPU: the experts of a layer, forwards and backwards, in one Triton kernel each.

Step by step, as `modeling_boolbert.py` does it elsewhere, a Boolean layer launches some seventy kernels forwards and a
hundred backwards, most of them for a few numbers: the processor cannot launch them as fast as a GPU computes them.
Gradients of gradients and forward-mode derivatives are not here: for these, set `modeling_boolbert.is_trainable` aside.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from .kernels_boolbert import (
    DTYPES,
    FEW_TOKENS,
    HAS_TRITON,
    NUM_OPERATORS,
    REACHES,
    OperatorRange,
    block_of,
    is_gelu,
    is_interpreted,
    on_device_of,
    weights_of,
    working_dtype,
)
from .kernels_boolbert import triton_kernels as kernels_of_inference

# The rows of a block's share of the gradients for each operator. The convolution's for the cue follow, one per tap, and
# the output's weight, one per hidden unit.
CONV_BIAS, GAMMA, BETA, OUTPUT_BIAS, GATE_LOGIT, THRESHOLD, SIGMA, CUE_WEIGHT = range(8)
# Tokens and hidden units that a program takes at once, and its warps: with few tokens, and with many.
SMALL_BLOCKS, LARGE_BLOCKS = (16, 128, 4), (32, 64, 4)
# Bound by `triton_kernels`: Triton looks the name up among the globals of a kernel's file.
tl: Any = None


class Setting(NamedTuple):
    """What a layer's kernels are made for."""

    columns: int  # of queries and keys, the spare ones included
    first: int  # of the operators
    reach: int  # of `REACHES`
    has_padding: bool
    masked_score: float
    scaling: float
    temperature: float


def is_trainable(states: Tensor) -> bool:
    """Whether the kernels may stand in for the plain version: with gradients, on these states, at this moment.

    A compiled graph joins the plain version's steps as well by itself.
    """
    if not torch.is_grad_enabled() or not HAS_TRITON or not (states.is_cuda or is_interpreted()):
        return False
    if torch.jit.is_tracing() or torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return type(states) is Tensor and bool(triton_kernels())


def boolean_columns(
    layer: Any,
    hidden_states: Tensor,
    packed: Tensor,
    cue_probs: Tensor,
    gate: Tensor,
    embeddings: Tensor,
    reader_logits: Tensor | None,
    operators: OperatorRange,
    *,
    columns: int,
    has_padding: bool,
    masked_score: float,
) -> tuple[Tensor, Tensor] | None:
    """What goes behind each head's query and key, (B, L, heads, columns) each; None for a layer that was changed.

    `packed` is what `kernels_boolbert.pack` gives, and of these operators alone, as cues, gate, embeddings and logits
    are. Those are there for their gradients.
    """
    if weights_of(layer) is None or working_dtype(hidden_states, hidden_states) not in DTYPES:
        return None
    scopes, biases = layer.scope_predictor, layer.bias_predictor
    if not is_gelu(biases.activation):
        return None
    taps, hidden = scopes.taps(hidden_states, operators), biases.hidden_layer(hidden_states, operators)
    noise = None
    if scopes.training:
        shape = (*hidden_states.shape[:2], operators[1] - operators[0], layer.num_attention_heads)
        noise = torch.rand(shape, dtype=torch.float32, device=hidden.device)
    with torch.autocast(hidden.device.type, enabled=False):  # a few numbers: casts would take longer
        film, gate_logits = (
            linear(embeddings.to(linear.weight.dtype)) for linear in (scopes.film.modulation, biases.operator_gate)
        )
    setting = Setting(
        columns=columns,
        first=operators[0],
        reach=REACHES.index(layer.not_reach),
        has_padding=has_padding,
        masked_score=masked_score,
        scaling=layer.scaling,
        temperature=scopes.temperature if noise is not None else 1.0,
    )
    tensors = (
        *(taps, hidden, cue_probs, reader_logits, gate, film, gate_logits),
        *(scopes.cue_weight, scopes.bias, scopes.threshold, biases.sigma),
        *(biases.position_weight, biases.output_weight, biases.output_bias),
    )
    sides: tuple[Tensor, Tensor] = Experts.apply(packed, noise, setting, *tensors)
    return sides


class Experts(torch.autograd.Function):
    """The kernel's two ways as a step of autograd."""

    @staticmethod
    def forward(ctx: Any, packed: Tensor, noise: Tensor | None, setting: Setting, *tensors: Any) -> Any:
        taps, hidden, _, _, *others = tensors
        taps, hidden, gate, *small = (tensor.contiguous() for tensor in (taps, hidden, *others))
        (batch, length, _), heads = hidden.shape, small[2].shape[2]
        sides = [hidden.new_empty(batch, length, heads, setting.columns) for _ in range(2)]
        outputs = torch.empty(batch, length, gate.shape[1], heads, device=hidden.device)
        strides = sides[0].stride()[:3]
        nothing = [outputs] * 6  # for what only the way back needs
        run(packed, noise, setting, taps, hidden, gate, small, [*sides, outputs, *nothing], strides, is_backward=False)
        ctx.setting = setting
        ctx.dtypes = [None if tensor is None else tensor.dtype for tensor in tensors]
        ctx.save_for_backward(packed, noise, outputs, taps, hidden, gate, *small)
        return tuple(sides)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, query_gradient: Tensor, key_gradient: Tensor) -> Any:
        packed, noise, outputs, taps, hidden, gate, *small = ctx.saved_tensors
        setting, cue_weight = ctx.setting, small[2]
        (batch, length, _), count, (kernel, _, heads) = hidden.shape, gate.shape[1], cue_weight.shape
        units, device = hidden.shape[2] // count, hidden.device
        sides = [query_gradient, key_gradient]
        if sides[0].stride() != sides[1].stride() or sides[0].stride(3) != 1:
            sides = [side.contiguous() for side in sides]
        blocks = -(-batch * length // block_sizes(batch * length)[0])
        tap_gradient, hidden_gradient = torch.empty_like(taps), torch.empty_like(hidden)
        cue_gradient = torch.empty(batch, count, kernel, length, device=device)
        token_gradient = torch.empty(2, batch, count, length, device=device)  # the reader's logits, and the gate
        shares = torch.empty(blocks, count, CUE_WEIGHT + kernel + units, block_of(heads), device=device)
        position_shares = torch.empty(blocks, count, units, device=device)
        written = (tap_gradient, cue_gradient, token_gradient, hidden_gradient, shares, position_shares)
        strides = sides[0].stride()[:3]
        run(packed, noise, setting, taps, hidden, gate, small, [*sides, outputs, *written], strides, is_backward=True)

        total, of_position = shares.sum(0)[..., :heads], position_shares.sum(0)  # (E, rows, heads), (E, units)
        film, gate_logits = total[:, GAMMA : BETA + 1].reshape(count, -1), total[:, GATE_LOGIT]
        if count < NUM_OPERATORS:  # the weights' own gradients are 0 for the others
            around = (setting.first, NUM_OPERATORS - setting.first - count)
            total, of_position = F.pad(total, (0, 0, 0, 0, *around)), F.pad(of_position, (0, 0, *around))
        needed = ctx.needs_input_grad[3:]
        found: tuple[Any, ...] = (
            *(tap_gradient, hidden_gradient, cue_gradient.sum(2) if needed[2] else None, token_gradient[0]),
            *(token_gradient[1].sum(-1) if needed[4] else None, film, gate_logits),
            *(total[:, CUE_WEIGHT : CUE_WEIGHT + kernel].transpose(0, 1), total[:, CONV_BIAS]),
            *(total[:, THRESHOLD].sum(-1), total[:, SIGMA, 0], of_position),
            *(total[:, CUE_WEIGHT + kernel :], total[:, OUTPUT_BIAS]),
        )
        asked = zip(found, ctx.dtypes, needed, strict=True)
        return None, None, None, *(part.to(dtype) if is_needed else None for part, dtype, is_needed in asked)


def block_sizes(tokens: int) -> tuple[int, int, int]:
    """How many tokens and hidden units a program takes at once, and its warps."""
    return SMALL_BLOCKS if tokens <= FEW_TOKENS else LARGE_BLOCKS


def run(
    packed: Tensor,
    noise: Tensor | None,
    setting: Setting,
    taps: Tensor,
    hidden: Tensor,
    gate: Tensor,
    small: Sequence[Tensor],
    written: Sequence[Tensor],
    strides: Sequence[int],
    *,
    is_backward: bool,
) -> None:
    """One way through the kernel. `strides` are those of the columns: of sentences, tokens and heads."""
    (batch, length, _), count, (kernel, _, heads) = hidden.shape, gate.shape[1], small[2].shape
    tokens, units = batch * length, hidden.shape[2] // count
    block, block_hidden, warps = block_sizes(tokens)
    launch = triton_kernels()["experts"][(-(-tokens // block), count)]
    with on_device_of(hidden):
        launch(
            taps,
            hidden,
            packed,
            packed if noise is None else noise,
            gate,
            *small,
            *written,
            *strides,
            tokens,
            length,
            IS_BACKWARD=is_backward,
            OPERATORS=count,
            FIRST=setting.first,
            ALL=NUM_OPERATORS,
            HEADS=heads,
            COLUMNS=setting.columns,
            HIDDEN=units,
            TAPS=kernel,
            HAS_NOT=setting.first + count == NUM_OPERATORS,
            REACH=setting.reach,
            HAS_PADDING=setting.has_padding,
            HAS_NOISE=noise is not None,
            MASKED=setting.masked_score,
            STRENGTH=1 / setting.scaling,
            TEMPERATURE=setting.temperature,
            BLOCK=block,
            BLOCK_HEADS=block_of(heads),
            BLOCK_HIDDEN=min(block_hidden, block_of(units)),
            num_warps=warps,
        )


@cache
def triton_kernels() -> dict[str, Any]:
    """The kernel, made when it is first needed; none without Triton, or where it does not work."""
    global tl
    try:  # transformers asks for whatever a published file imports without this
        import triton
        import triton.language as tl
    except ImportError:
        return {}
    if not kernels_of_inference():
        return {}

    strides = ["of_sentence", "of_token", "of_head"]

    @triton.jit(do_not_specialize=["tokens", "length", *strides])
    def experts(
        taps,
        hidden,
        packed,
        noise,
        gate,
        film,
        gate_logits,
        cue_weight,
        conv_bias,
        threshold,
        sigma,
        position_weight,
        output_weight,
        output_bias,
        query_side,
        key_side,
        outputs,
        tap_gradient,
        cue_gradient,
        token_gradient,
        hidden_gradient,
        shares,
        position_shares,
        of_sentence,
        of_token,
        of_head,
        tokens,
        length,
        IS_BACKWARD: tl.constexpr,
        OPERATORS: tl.constexpr,
        FIRST: tl.constexpr,
        ALL: tl.constexpr,
        HEADS: tl.constexpr,
        COLUMNS: tl.constexpr,
        HIDDEN: tl.constexpr,
        TAPS: tl.constexpr,
        HAS_NOT: tl.constexpr,
        REACH: tl.constexpr,
        HAS_PADDING: tl.constexpr,
        HAS_NOISE: tl.constexpr,
        MASKED: tl.constexpr,
        STRENGTH: tl.constexpr,
        TEMPERATURE: tl.constexpr,
        BLOCK: tl.constexpr,
        BLOCK_HEADS: tl.constexpr,
        BLOCK_HIDDEN: tl.constexpr,
    ):
        """A block of tokens and one operator. Forwards, the columns of its scope and bias are written; backwards, they
        hold their gradients, and those of all that came before are written."""
        token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        e = tl.program_id(1)
        own = e + FIRST  # among all operators, as the weights have them
        is_token = token < tokens
        sentence, place = token // length, token % length
        row = token.to(tl.int64)
        head = tl.arange(0, BLOCK_HEADS)
        is_head = head < HEADS
        both = is_token[:, None] & is_head[None, :]
        read = packed + sentence.to(tl.int64) * ((3 * OPERATORS + 1) * length) + place
        mask = tl.load(read + 3 * OPERATORS * length, mask=is_token, other=0.0)

        # The scope: each neighbour's tap, moved into place; FiLM; noise; the threshold.
        features = tl.zeros((BLOCK, BLOCK_HEADS), tl.float32)
        for k in tl.static_range(TAPS):
            shift = k - TAPS // 2
            is_there = is_token & (place + shift >= 0) & (place + shift < length)
            where = taps + (row + shift) * (TAPS * OPERATORS * HEADS) + (k * OPERATORS + e) * HEADS
            tap = tl.load(where[:, None] + head[None, :], mask=is_there[:, None] & is_head[None, :], other=0.0)
            cue = tl.load(read + e * length + shift, mask=is_there, other=0.0)
            seen = tl.load(read + 3 * OPERATORS * length + shift, mask=is_there, other=0.0)
            weight = tl.load(cue_weight + (k * ALL + own) * HEADS + head, mask=is_head, other=0.0).to(tl.float32)
            features += (tap.to(tl.float32) + cue[:, None] * weight[None, :]) * seen[:, None]
        features += tl.load(conv_bias + own * HEADS + head, mask=is_head, other=0.0).to(tl.float32)[None, :]
        scale = 1 + tl.load(film + e * 2 * HEADS + head, mask=is_head, other=0.0).to(tl.float32)
        shift_by = tl.load(film + (e * 2 + 1) * HEADS + head, mask=is_head, other=0.0).to(tl.float32)
        logits = features * scale[None, :] + shift_by[None, :]
        logits += tl.load(read + (2 * OPERATORS + e) * length, mask=is_token, other=0.0)[:, None]
        if HAS_NOISE:
            where = noise + (row * OPERATORS + e) * HEADS
            uniform = tl.load(where[:, None] + head[None, :], mask=both, other=0.5)
            uniform = tl.minimum(tl.maximum(uniform, 1e-6), 1 - 1e-6)
            logits = (logits + tl.log(uniform / (1 - uniform))) / TEMPERATURE
        probability = 1 / (1 + tl.exp(-logits))
        margin = (probability - tl.load(threshold + own).to(tl.float32)) * mask[:, None]
        scope = tl.where(margin > 0, 1.0, 0.0)

        # The bias: the hidden layer with what the position adds, its product with the output's weight, softplus.
        exponent = tl.load(read + (OPERATORS + e) * length, mask=is_token, other=0.0)
        own_sigma = tl.load(sigma + own).to(tl.float32)
        spread = tl.maximum(own_sigma * own_sigma, 1e-6)
        position = tl.exp(exponent / spread)
        at_hidden = (row * OPERATORS + e) * HIDDEN
        at_heads = (row * OPERATORS + e) * HEADS
        if IS_BACKWARD:
            output = tl.load(outputs + at_heads[:, None] + head[None, :], mask=both, other=0.0)
        else:
            output = tl.zeros((BLOCK, BLOCK_HEADS), tl.float32)
            for first in range(0, HIDDEN, BLOCK_HIDDEN):
                unit = first + tl.arange(0, BLOCK_HIDDEN)
                is_unit = unit < HIDDEN
                inside = is_token[:, None] & is_unit[None, :]
                state = tl.load(hidden + at_hidden[:, None] + unit[None, :], mask=inside, other=0.0).to(tl.float32)
                added = tl.load(position_weight + own * HIDDEN + unit, mask=is_unit, other=0.0).to(tl.float32)
                state += position[:, None] * added[None, :]
                state = 0.5 * state * (1 + tl.erf(state * 0.7071067811865476))
                from_unit = output_weight + (own * HIDDEN + unit[:, None]) * HEADS + head[None, :]
                of_heads = tl.load(from_unit, mask=is_unit[:, None] & is_head[None, :], other=0.0)
                of_heads = of_heads.to(hidden.dtype.element_ty)
                output += tl.dot(state.to(of_heads.dtype), of_heads, input_precision="ieee")
            output += tl.load(output_bias + own * HEADS + head, mask=is_head, other=0.0).to(tl.float32)[None, :]
            tl.store(outputs + at_heads[:, None] + head[None, :], output, mask=both)
        opened = tl.load(gate_logits + e * HEADS + head, mask=is_head, other=0.0).to(tl.float32)
        opened = (1 / (1 + tl.exp(-opened)))[None, :]
        bias = output * opened
        steepness = 1 / (1 + tl.exp(-bias))  # of softplus
        bias = tl.maximum(bias, 0.0) + tl.log(1 + tl.exp(-tl.abs(bias)))
        is_on = (tl.load(gate + sentence * OPERATORS + e, mask=is_token, other=0.0) * STRENGTH).to(tl.float32)
        strength = bias * is_on[:, None]

        is_not = HAS_NOT & (e == OPERATORS - 1)
        at_sentence = sentence.to(tl.int64) * of_sentence + place.to(tl.int64) * of_token
        column = at_sentence[:, None] + head[None, :] * of_head
        SECOND: tl.constexpr = OPERATORS  # where NOT has two columns
        if not IS_BACKWARD:
            outside = scope * 0 + 1.0 if REACH == 2 else 1.0 - scope
            query_column = tl.where(is_not, outside, scope)
            key_column = tl.where(is_not, -scope * strength, scope * strength)
            kind = query_side.dtype.element_ty
            tl.store(query_side + column + e, query_column.to(kind), mask=both)
            tl.store(key_side + column + e, key_column.to(kind), mask=both)
            # Who has the last operator writes what follows its column too.
            is_last = both & (e == OPERATORS - 1)
            NEXT: tl.constexpr = OPERATORS + 1 if HAS_NOT and REACH == 1 else OPERATORS
            if HAS_NOT and REACH == 1:
                tl.store(query_side + column + SECOND, scope.to(kind), mask=is_last)
                tl.store(key_side + column + SECOND, ((scope - 1.0) * strength).to(kind), mask=is_last)
            for extra in tl.static_range(NEXT, COLUMNS):
                ones, padding = scope * 0, scope * 0
                if HAS_PADDING and extra == NEXT:
                    ones, padding = scope * 0 + 1.0, scope * 0 + ((1 - mask) * MASKED)[:, None]
                tl.store(query_side + column + extra, ones.to(kind), mask=is_last)
                tl.store(key_side + column + extra, padding.to(kind), mask=is_last)
        else:
            query_slope = tl.load(query_side + column + e, mask=both, other=0.0).to(tl.float32)
            key_slope = tl.load(key_side + column + e, mask=both, other=0.0).to(tl.float32)
            if REACH == 2:  # NOT's column is 1 whatever the scope is
                query_slope = tl.where(is_not, 0.0, query_slope)
            sign = tl.where(is_not, -1.0, 1.0)
            scope_slope = (query_slope + key_slope * strength) * sign
            strength_slope = key_slope * scope * sign
            if HAS_NOT and REACH == 1:
                second = both & is_not
                query_slope = tl.load(query_side + column + SECOND, mask=second, other=0.0).to(tl.float32)
                key_slope = tl.load(key_side + column + SECOND, mask=second, other=0.0).to(tl.float32)
                scope_slope += query_slope + key_slope * strength
                strength_slope += key_slope * (scope - 1.0)

            # Back through the bias.
            ROWS: tl.constexpr = 7 + TAPS + HIDDEN
            share = shares + (tl.program_id(0).to(tl.int64) * OPERATORS + e) * (ROWS * BLOCK_HEADS) + head
            at_token = (sentence.to(tl.int64) * OPERATORS + e) * length + place
            gate_gradient = token_gradient + OPERATORS * tokens + at_token  # the second half
            tl.store(gate_gradient, tl.sum(strength_slope * bias, 1) * STRENGTH, mask=is_token)
            before_gate = strength_slope * is_on[:, None] * steepness
            tl.store(share + 4 * BLOCK_HEADS, tl.sum(before_gate * output, 0) * tl.sum(opened * (1 - opened), 0))
            output_slope = before_gate * opened
            tl.store(share + 3 * BLOCK_HEADS, tl.sum(output_slope, 0))
            kind = hidden.dtype.element_ty
            position_slope = tl.zeros((BLOCK,), tl.float32)
            for first in range(0, HIDDEN, BLOCK_HIDDEN):
                unit = first + tl.arange(0, BLOCK_HIDDEN)
                is_unit = unit < HIDDEN
                inside = is_token[:, None] & is_unit[None, :]
                state = tl.load(hidden + at_hidden[:, None] + unit[None, :], mask=inside, other=0.0).to(tl.float32)
                added = tl.load(position_weight + own * HIDDEN + unit, mask=is_unit, other=0.0).to(tl.float32)
                state += position[:, None] * added[None, :]
                normal = 0.5 * (1 + tl.erf(state * 0.7071067811865476))
                activated = tl.trans((state * normal).to(kind))
                to_weight = share[None, :] + (7 + TAPS + unit)[:, None] * BLOCK_HEADS
                own_share = tl.dot(activated, output_slope.to(kind), input_precision="ieee")
                tl.store(to_weight, own_share, mask=is_unit[:, None])
                from_head = output_weight + (own * HIDDEN + unit[None, :]) * HEADS + head[:, None]
                of_units = tl.load(from_head, mask=is_unit[None, :] & is_head[:, None], other=0.0).to(kind)
                slope = tl.dot(output_slope.to(kind), of_units, input_precision="ieee")
                slope *= normal + state * tl.exp(-0.5 * state * state) * 0.3989422804014327
                tl.store(hidden_gradient + at_hidden[:, None] + unit[None, :], slope.to(kind), mask=inside)
                to_unit = position_shares + (tl.program_id(0).to(tl.int64) * OPERATORS + e) * HIDDEN + unit
                tl.store(to_unit, tl.sum(slope * position[:, None], 0), mask=is_unit)
                position_slope += tl.sum(slope * added[None, :], 1)
            spread_slope = tl.sum(position_slope * position * (-exponent / (spread * spread)), 0)
            is_free = own_sigma * own_sigma >= 1e-6
            sigma_slope = tl.where(is_free, spread_slope * 2 * own_sigma, 0.0)
            tl.store(share + 6 * BLOCK_HEADS, sigma_slope + tl.zeros((BLOCK_HEADS,), tl.float32))

            # Back through the scope: the margin stands in for the step.
            probability_slope = scope_slope * mask[:, None]
            tl.store(share + 5 * BLOCK_HEADS, -tl.sum(probability_slope, 0))
            logit_slope = probability_slope * probability * (1 - probability) / TEMPERATURE
            tl.store(token_gradient + at_token, tl.sum(logit_slope, 1), mask=is_token)
            tl.store(share + 2 * BLOCK_HEADS, tl.sum(logit_slope, 0))
            tl.store(share + BLOCK_HEADS, tl.sum(logit_slope * features, 0))
            feature_slope = logit_slope * scale[None, :]
            tl.store(share, tl.sum(feature_slope, 0))
            for k in tl.static_range(TAPS):
                shift = k - TAPS // 2
                is_there = is_token & (place + shift >= 0) & (place + shift < length)
                cue = tl.load(read + e * length + shift, mask=is_there, other=0.0)
                seen = tl.load(read + 3 * OPERATORS * length + shift, mask=is_there, other=0.0)
                tap_slope = feature_slope * seen[:, None]
                to_tap = tap_gradient + row * (TAPS * OPERATORS * HEADS) + (k * OPERATORS + e) * HEADS
                moved = to_tap[:, None] + shift * (TAPS * OPERATORS * HEADS) + head[None, :]
                tl.store(moved, tap_slope.to(kind), mask=is_there[:, None] & is_head[None, :])
                tl.store(share + (7 + k) * BLOCK_HEADS, tl.sum(tap_slope * cue[:, None], 0))
                weight = tl.load(cue_weight + (k * ALL + own) * HEADS + head, mask=is_head, other=0.0)
                to_cue = cue_gradient + ((sentence.to(tl.int64) * OPERATORS + e) * TAPS + k) * length + place
                tl.store(to_cue + shift, tl.sum(tap_slope * weight.to(tl.float32)[None, :], 1), mask=is_there)
                # A tap that would belong to a token beyond either end.
                is_lost = is_token & ((place - shift < 0) | (place - shift >= length))
                zeros = feature_slope * 0
                tl.store(to_tap[:, None] + head[None, :], zeros.to(kind), mask=is_lost[:, None] & is_head[None, :])
                tl.store(to_cue, tl.sum(zeros, 1), mask=is_lost)

    return {"experts": experts}
