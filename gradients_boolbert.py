# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Bool-BERT's training on a GPU: a layer's products joined, and its experts, each way, in one Triton kernel.

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
)
from .kernels_boolbert import triton_kernels as kernels_of_inference

# The rows of a block's share of the gradients for each operator. The convolution's for the cue follow, one per tap, and
# the output's weight, one per hidden unit.
CONV_BIAS, GAMMA, BETA, GATE_LOGIT, OUTPUT_BIAS, THRESHOLD, SIGMA, CUE_WEIGHT = range(8)
# Joined products have rows of a multiple of so many numbers: tensor cores and Triton's loads want that.
ALIGNED = 16
# Tokens and hidden units that a program takes at once, and its warps: with few tokens, and with many.
SMALL_BLOCKS, LARGE_BLOCKS = (16, 128, 4), (32, 64, 4)
# Numbers of each token that are copied at once.
COPIED = 256
# Strides are told in these units where they are multiples of it: that lets Triton move as many numbers at once.
STRIDE_UNIT = 8
# Bound by `triton_kernels`: Triton looks the name up among the globals of a kernel's file.
tl: Any = None


class Setting(NamedTuple):
    """What a layer's kernels are made for."""

    heads: int
    head_size: int
    width: int  # of a head's query and key: its size, the columns, and spare ones
    value_width: int
    first: int  # of the operators
    reach: int  # of `REACHES`
    has_padding: bool
    masked_score: float
    scaling: float
    temperature: float


def is_trainable(states: Tensor) -> bool:
    """Whether the kernels may stand in for the plain version: with gradients, on these states, at this moment.

    A model that is compiled as a whole keeps the plain version; for compiled layers see `breaks_graphs`.
    """
    if not torch.is_grad_enabled() or not HAS_TRITON or not (states.is_cuda or is_interpreted()):
        return False
    if torch.jit.is_tracing() or torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return type(states) is Tensor and bool(triton_kernels())


def attention_parts(
    layer: Any,
    hidden_states: Tensor,
    packed: Tensor,
    cue_probs: Tensor,
    gate: Tensor,
    embeddings: Tensor,
    reader_logits: Tensor | None,
    operators: OperatorRange,
    *,
    widths: tuple[int, int],
    has_padding: bool,
    masked_score: float,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Query and key with Boolean columns, and value, (B, L, heads, width) each; None for a layer that was changed.

    `packed` is what `kernels_boolbert.pack` gives, and of these operators alone, as cues, gate, embeddings and logits
    are. Those are there for their gradients.
    """
    weights, scopes, biases = weights_of(layer), layer.scope_predictor, layer.bias_predictor
    if weights is None or hidden_states.dtype not in DTYPES or not is_gelu(biases.activation):
        return None
    if operators[1] - operators[0] < NUM_OPERATORS:
        rows = slice(operators[0] * biases.hidden_size, operators[1] * biases.hidden_size)
        dense, dense_bias, context = weights[6:9]
        context = context.view(scopes.kernel, NUM_OPERATORS, scopes.heads, -1)[:, slice(*operators)]
        weights[6:9] = dense[rows], dense_bias[rows], context.flatten(0, 2)
    noise = None
    if scopes.training:
        shape = (*hidden_states.shape[:2], operators[1] - operators[0], scopes.heads)
        noise = torch.rand(shape, dtype=torch.float32, device=hidden_states.device)
    setting = Setting(
        heads=scopes.heads,
        head_size=layer.attention_head_size,
        width=widths[0],
        value_width=widths[1],
        first=operators[0],
        reach=REACHES.index(layer.not_reach),
        has_padding=has_padding,
        masked_score=masked_score,
        scaling=layer.scaling,
        temperature=scopes.temperature if noise is not None else 1.0,
    )
    read = (embeddings, cue_probs, reader_logits, gate)
    parts: tuple[Tensor, Tensor, Tensor] = AttentionParts.apply(packed, noise, setting, hidden_states, *read, *weights)
    return parts


class AttentionParts(torch.autograd.Function):
    """The products of a layer's input with all of its weights, then the kernel, as a step of autograd.

    There would be five, forwards and twice backwards, each with casts of its weight and of its gradient and most with a
    sum over all tokens for their bias. Here there are two forwards, as one of them is not needed on the way back, and
    two backwards, with one sum.
    """

    @staticmethod
    def forward(
        ctx: Any,
        packed: Tensor,
        noise: Tensor | None,
        setting: Setting,
        states: Tensor,
        embeddings: Tensor,
        cue_probs: Tensor,
        reader_logits: Tensor | None,
        gate: Tensor,
        *weights: Any,
    ) -> Any:
        batch, length, _ = states.shape
        heads, size = setting.heads, setting.head_size
        film, film_bias, operator_gate = weights[12:15]
        weight, bias, sizes = join(states, weights[:9])
        inner = 3 * heads * size
        projected = F.linear(states, weight[:inner], bias[:inner])  # query, key and value
        product = F.linear(states, weight[inner:], bias[inner:])  # what the kernel reads
        # gamma, beta and the operator's gate: (E, 3 heads)
        modulation = torch.cat([film, operator_gate]).float()
        with torch.autocast(states.device.type, enabled=False):  # a few numbers: casts would take longer
            modulated = F.linear(embeddings.float(), modulation, F.pad(film_bias.float(), (0, heads)))

        both = states.new_empty(2, batch, length, heads, setting.width)
        outputs = torch.empty(batch, length, len(embeddings), heads, device=states.device)
        gate = gate.contiguous()
        small = [part.contiguous() for part in (modulated, *weights[9:12], *weights[15:])]
        written = [both[0], both[1], outputs, *[outputs] * 6]  # the rest is for the way back
        value = projected.view(batch, length, 3, heads, size)[:, :, 2]
        run(packed, noise, setting, product, sizes[3], gate, small, written, projected, value, is_backward=False)
        ctx.setting, ctx.sizes = setting, sizes
        given = (embeddings, cue_probs, reader_logits, gate, *weights)
        ctx.dtypes = [None if tensor is None else tensor.dtype for tensor in given]
        ctx.save_for_backward(packed, noise, outputs, states, weight, product, embeddings, modulation, gate, *small)
        if setting.value_width > size:
            value = F.pad(value, (0, setting.value_width - size))
        return both[0], both[1], value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_query: Tensor, of_key: Tensor, of_value: Tensor) -> Any:
        packed, noise, outputs, states, weight, product, embeddings, modulation, gate, *small = ctx.saved_tensors
        setting, sizes, cue_weight = ctx.setting, ctx.sizes, small[1]
        (batch, length, _), count, (kernel, _, heads) = states.shape, len(embeddings), cue_weight.shape
        units, device = sizes[3] // count, states.device
        sides = [of_query, of_key]
        if of_query.stride() != of_key.stride() or of_query.stride(3) != 1:
            sides = [side.contiguous() for side in sides]
        if of_value.stride(3) != 1:
            of_value = of_value.contiguous()
        blocks = -(-batch * length // block_sizes(batch * length)[0])
        gradient = states.new_empty(batch, length, len(weight))  # the kernel writes all but the spare columns
        parts = gradient.split([*sizes, gradient.shape[-1] - sum(sizes)], -1)
        parts[-1].zero_()
        of_cues = torch.empty(batch, count, kernel, length, device=device)
        of_tokens = torch.empty(2, batch, count, length, device=device)  # the reader's logits, and the gate
        shares = torch.empty(blocks, count, CUE_WEIGHT + kernel + units, block_of(heads), device=device)
        position_shares = torch.empty(blocks, count, units, device=device)
        written = [*sides, outputs, parts[4], of_cues, of_tokens, parts[3], shares, position_shares]
        run(packed, noise, setting, product, sizes[3], gate, small, written, gradient, of_value, is_backward=True)

        total, of_position = shares.sum(0)[..., :heads], position_shares.sum(0)  # (E, rows, heads), (E, units)
        modulated = total[:, GAMMA : GATE_LOGIT + 1].reshape(count, -1)  # (E, 3 heads)
        if count < NUM_OPERATORS:  # the weights' own gradients are 0 for the others
            around = (setting.first, NUM_OPERATORS - setting.first - count)
            total, of_position = F.pad(total, (0, 0, 0, 0, *around)), F.pad(of_position, (0, 0, *around))
        needed = ctx.needs_input_grad[3:]
        of_modulation = modulated.T @ embeddings.float()
        found: list[Any] = [
            *(modulated @ modulation, of_cues.sum(2) if needed[2] else None, of_tokens[0]),
            of_tokens[1].sum(-1) if needed[4] else None,
            *joined_gradients(gradient, states, sizes, needed[5:14], ctx.dtypes[4]),
            *(total[:, CUE_WEIGHT : CUE_WEIGHT + kernel].transpose(0, 1), total[:, CONV_BIAS]),
            *(total[:, THRESHOLD].sum(-1), of_modulation[: 2 * heads], modulated[:, : 2 * heads].sum(0)),
            *(of_modulation[2 * heads :], total[:, SIGMA, 0], of_position),
            *(total[:, CUE_WEIGHT + kernel :], total[:, OUTPUT_BIAS]),
        ]
        asked = zip(found, ctx.dtypes, needed[1:], strict=True)
        others = (part.to(dtype) if is_needed else None for part, dtype, is_needed in asked)
        return None, None, None, gradient @ weight if needed[0] else None, *others


def join(states: Tensor, linears: Sequence[Tensor]) -> tuple[Tensor, Tensor, list[int]]:
    """Weights, each followed by its bias, the last one without, as one of each in the states' precision; and the
    weights' rows. Rows of zeros fill them up."""
    weights, biases = linears[::2], linears[1::2]
    sizes = [len(weight) for weight in weights]
    rows = sum(sizes) + -sum(sizes) % ALIGNED
    weight, bias = states.new_empty(rows, states.shape[-1]), states.new_zeros(rows)
    *copies, spare = weight.split([*sizes, rows - sum(sizes)])
    torch._foreach_copy_([*copies, *bias.split([*sizes, rows - sum(sizes)])[: len(biases)]], [*weights, *biases])
    spare.zero_()
    return weight, bias, sizes


def joined_gradients(
    gradient: Tensor, states: Tensor, sizes: Sequence[int], needed: Sequence[bool], dtype: torch.dtype
) -> list[Tensor | None]:
    """Those of the weights and biases that were joined, from that of their product, (B, L, rows)."""
    gradient, states = gradient.flatten(0, 1), states.flatten(0, 1)
    # From the first that learns to the last: most often these are all, or the experts'.
    learning = [number for number in range(len(sizes)) if needed[2 * number]]
    first, last = (learning[0], learning[-1] + 1) if learning else (0, 0)
    start, end = sum(sizes[:first]), sum(sizes[:last])
    if (first, last) == (0, len(sizes)):
        end = gradient.shape[1]  # with the spare columns: an even number is faster
    rows = gradient[:, start:end].T
    # In float32 as its sums are, where the weights are: rounded, it would have to be cast.
    is_wider = rows.is_cuda and dtype == torch.float32 and rows.dtype != dtype
    of_weights = torch.mm(rows, states, out_dtype=dtype) if is_wider else torch.mm(rows, states)
    of_biases = gradient.sum(0, dtype=torch.float32) if any(needed[1::2]) else gradient[0]
    weights = of_weights.split([*sizes[first:last], len(of_weights) - sum(sizes[first:last])])
    biases = of_biases.split([*sizes, len(of_biases) - sum(sizes)])
    return [
        None if not is_needed else biases[number // 2] if number % 2 else weights[number // 2 - first]
        for number, is_needed in enumerate(needed)
    ]


def block_sizes(tokens: int) -> tuple[int, int, int]:
    """How many tokens and hidden units a program takes at once, and its warps."""
    return SMALL_BLOCKS if tokens <= FEW_TOKENS else LARGE_BLOCKS


def run(
    packed: Tensor,
    noise: Tensor | None,
    setting: Setting,
    product: Tensor,
    size: int,
    gate: Tensor,
    small: Sequence[Tensor],
    written: Sequence[Tensor],
    joined: Tensor,
    value: Tensor,
    *,
    is_backward: bool,
) -> None:
    """One way through the kernel. `product` has the bias predictors' hidden layers, of this size in all, and the
    convolution's taps; `joined` has query, key and value side by side, or is where their gradients go."""
    (batch, length, _), count, kernel = product.shape, gate.shape[1], len(small[1])
    tokens, units = batch * length, size // count
    block, block_hidden, warps = block_sizes(tokens)
    strides = (*written[0].stride()[:3], *value.stride()[:3])
    unit = 1 if any(stride % STRIDE_UNIT for stride in strides) else STRIDE_UNIT
    launch = triton_kernels()["experts"][(-(-tokens // block), count)]
    hidden, taps = product.split([size, product.shape[-1] - size], -1)
    with on_device_of(product):
        launch(
            taps,
            hidden,
            packed,
            packed if noise is None else noise,
            gate,
            *small,
            *written,
            joined,
            value,
            *(stride // unit for stride in strides),
            joined.stride(1),
            product.stride(1),
            written[3].stride(1) if is_backward else 0,
            tokens,
            length,
            IS_BACKWARD=is_backward,
            OPERATORS=count,
            FIRST=setting.first,
            ALL=NUM_OPERATORS,
            HEADS=setting.heads,
            SIZE=setting.head_size,
            UNIT=unit,
            COLUMNS=setting.width - setting.head_size,
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
            BLOCK_HEADS=block_of(setting.heads),
            BLOCK_HIDDEN=min(block_hidden, block_of(units)),
            BLOCK_COPIED=min(COPIED, block_of(setting.heads * setting.head_size)),
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

    strides = [f"of_{part}" for part in ("sentence", "token", "head", "value_sentence", "value_token", "value_head")]

    @triton.jit(do_not_specialize=["tokens", "length", *strides])
    def experts(
        taps,
        hidden,
        packed,
        noise,
        gate,
        modulated,
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
        joined,
        value,
        of_sentence,
        of_token,
        of_head,
        of_value_sentence,
        of_value_token,
        of_value_head,
        of_joined,
        of_row,
        of_gradient,
        tokens,
        length,
        IS_BACKWARD: tl.constexpr,
        OPERATORS: tl.constexpr,
        FIRST: tl.constexpr,
        ALL: tl.constexpr,
        HEADS: tl.constexpr,
        SIZE: tl.constexpr,
        UNIT: tl.constexpr,
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
        BLOCK_COPIED: tl.constexpr,
    ):
        """A block of tokens and one operator. Forwards, the columns of its scope and bias are written; backwards, they
        hold their gradients, and those of all that came before are written. On the way, the operators' programs share
        the work of copying queries and keys to their columns, and their gradients and the values' back."""
        of_sentence, of_token, of_head = of_sentence * UNIT, of_token * UNIT, of_head * UNIT
        of_value_sentence *= UNIT
        of_value_token *= UNIT
        of_value_head *= UNIT
        token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        e = tl.program_id(1)
        own = e + FIRST  # among all operators, as the weights have them
        is_token = token < tokens
        sentence, place = token // length, token % length
        row = token.to(tl.int64)
        head = tl.arange(0, BLOCK_HEADS)
        is_head = head < HEADS
        both = is_token[:, None] & is_head[None, :]
        for part in tl.static_range(3 if IS_BACKWARD else 2):  # query, key, and value, which is used where it lies
            if e == part % OPERATORS:
                for first in range(0, HEADS * SIZE, BLOCK_COPIED):
                    number = first + tl.arange(0, BLOCK_COPIED)
                    inside = is_token[:, None] & (number < HEADS * SIZE)[None, :]
                    beside = joined + row[:, None] * of_joined + (part * HEADS * SIZE + number)[None, :]
                    of_number = (number // SIZE)[None, :]
                    if part == 2:
                        apart = value + (sentence.to(tl.int64) * of_value_sentence)[:, None]
                        apart += (place.to(tl.int64) * of_value_token)[:, None] + of_number * of_value_head
                    else:
                        apart = query_side if part == 0 else key_side
                        apart += (sentence.to(tl.int64) * of_sentence)[:, None]
                        apart += (place.to(tl.int64) * of_token)[:, None] + of_number * of_head
                    apart += (number % SIZE)[None, :]
                    if IS_BACKWARD:
                        tl.store(beside, tl.load(apart, mask=inside, other=0.0), mask=inside)
                    else:
                        tl.store(apart, tl.load(beside, mask=inside, other=0.0), mask=inside)
        read = packed + sentence.to(tl.int64) * ((3 * OPERATORS + 1) * length) + place
        mask = tl.load(read + 3 * OPERATORS * length, mask=is_token, other=0.0)

        # The scope: each neighbour's tap, moved into place; FiLM; noise; the threshold.
        features = tl.zeros((BLOCK, BLOCK_HEADS), tl.float32)
        for k in tl.static_range(TAPS):
            shift = k - TAPS // 2
            is_there = is_token & (place + shift >= 0) & (place + shift < length)
            where = taps + (row + shift) * of_row + (k * OPERATORS + e) * HEADS
            tap = tl.load(where[:, None] + head[None, :], mask=is_there[:, None] & is_head[None, :], other=0.0)
            cue = tl.load(read + e * length + shift, mask=is_there, other=0.0)
            seen = tl.load(read + 3 * OPERATORS * length + shift, mask=is_there, other=0.0)
            weight = tl.load(cue_weight + (k * ALL + own) * HEADS + head, mask=is_head, other=0.0).to(tl.float32)
            features += (tap.to(tl.float32) + cue[:, None] * weight[None, :]) * seen[:, None]
        features += tl.load(conv_bias + own * HEADS + head, mask=is_head, other=0.0).to(tl.float32)[None, :]
        scale = 1 + tl.load(modulated + e * 3 * HEADS + head, mask=is_head, other=0.0)
        shift_by = tl.load(modulated + (e * 3 + 1) * HEADS + head, mask=is_head, other=0.0)
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
        at_hidden = row * of_row + e * HIDDEN
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
        opened = tl.load(modulated + (e * 3 + 2) * HEADS + head, mask=is_head, other=0.0)
        opened = (1 / (1 + tl.exp(-opened)))[None, :]
        bias = output * opened
        steepness = 1 / (1 + tl.exp(-bias))  # of softplus
        bias = tl.maximum(bias, 0.0) + tl.log(1 + tl.exp(-tl.abs(bias)))
        is_on = (tl.load(gate + sentence * OPERATORS + e, mask=is_token, other=0.0) * STRENGTH).to(tl.float32)
        strength = bias * is_on[:, None]

        is_not = HAS_NOT & (e == OPERATORS - 1)
        at_sentence = sentence.to(tl.int64) * of_sentence + place.to(tl.int64) * of_token + SIZE  # behind the head
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
            tl.store(share + 3 * BLOCK_HEADS, tl.sum(before_gate * output, 0) * tl.sum(opened * (1 - opened), 0))
            output_slope = before_gate * opened
            tl.store(share + 4 * BLOCK_HEADS, tl.sum(output_slope, 0))
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
                to_hidden = hidden_gradient + row * of_gradient + e * HIDDEN
                tl.store(to_hidden[:, None] + unit[None, :], slope.to(kind), mask=inside)
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
                to_tap = tap_gradient + row * of_gradient + (k * OPERATORS + e) * HEADS
                moved = to_tap[:, None] + shift * of_gradient + head[None, :]
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
