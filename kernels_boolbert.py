# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Bool-BERT's inference on a GPU: one matrix product and one Triton kernel in place of a layer's fifty small steps.

`modeling_boolbert.py` computes the same step by step wherever this file does not apply: with gradients, in training, in
a traced graph, without Triton, and for layers that somebody changed. `short_boolbert.py` is the same for CPUs.
"""

import contextlib
import os
import warnings
import weakref
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.weak import WeakIdKeyDictionary
from transformers.activations import GELUActivation

# Tensor cores take no less than this many rows and columns.
SMALLEST_DOT = 16
# The kernel holds the weights of one of the reader's taps at once.
LARGEST_READER = 128
# What was made of a layer's weights is kept for so many settings: operators, precision, widths.
KEPT_SETTINGS = 4
# Up to so many tokens a GPU is not busy yet.
FEW_TOKENS = 8192
# Tokens and hidden units that the experts' kernel takes at once, and its warps: with few tokens, and with many.
SMALL_BLOCKS, LARGE_BLOCKS = (16, 128, 4), (32, 64, 4)
# The first of some neighbouring operators, and the one after the last.
OperatorRange = tuple[int, int]
# How many columns the queries and keys of a head have, and how many its values.
Widths = tuple[int, int]
# The rows of [`join`]'s constants for each operator. The convolution's weights for the cue follow, one per tap.
CONV_BIAS, SCALE, SHIFT, OUTPUT_BIAS, OPERATOR_GATE, THRESHOLD, SPREAD, CUE_WEIGHT = range(8)
REACHES = ("outside", "both", "all")
NUM_OPERATORS = 3
# The module of the hooks with which transformers records what layers give.
RECORDER = "transformers.utils.output_capturing"
DTYPES = (torch.float32, torch.bfloat16, torch.float16)

# Where torch prefers cuDNN's attention: on these cards (Hopper and Blackwell), from this version on.
CUDNN_CARDS, OLDEST_CUDNN = ((9, 0), (10, 0)), 90900

HAS_TRITON = find_spec("triton") is not None
# Bound by `triton_kernels`: Triton looks the name up among the globals of a kernel's file.
tl: Any = None


def is_interpreted() -> bool:
    """Whether Triton runs kernels as Python on the CPU, as tests do."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def is_usable(layer_input: Tensor, is_training: bool) -> bool:
    """Whether the kernels may stand in for the plain version: on these states, at this moment."""
    if is_training or torch.is_grad_enabled() or not (layer_input.is_cuda or is_interpreted()):
        return False
    # `torch.compiler.is_exporting()` is true in every compiled graph before torch 2.12, so the flag itself is read.
    if torch.jit.is_tracing() or getattr(torch.compiler, "_is_exporting_flag", False):
        return False
    if torch.compiler.is_compiling():
        return has_kernels()
    return type(layer_input) is Tensor and has_kernels()


@torch.compiler.assume_constant_result
def has_kernels() -> bool:
    """Whether there is a Triton that works."""
    return HAS_TRITON and bool(triton_kernels())


def on_device_of(states: Tensor) -> contextlib.AbstractContextManager[Any]:
    """Triton starts kernels on the current GPU, which may be another one than that of the states."""
    if not states.is_cuda or states.device.index == torch.cuda.current_device():
        return contextlib.nullcontext()
    return torch.cuda.device(states.device)


class Made(NamedTuple):
    """What was made of some weights, and how these were then."""

    weights: list[Any]
    stamp: Any
    made: tuple[Tensor, ...]

    def is_of(self, weights: Sequence[Tensor], stamp: Any) -> bool:
        if self.stamp != stamp:
            return False
        for seen, weight in zip(self.weights, weights, strict=True):  # noqa: SIM110 - asked often: half the time of all()
            if seen() is not weight:
                return False
        return True


class Kept:
    """What was made of some weights, for the last few settings. Threads read and replace it as a whole."""

    def __init__(self) -> None:
        self.by_setting: dict[Any, Made] = {}
        # A CUDA graph reads the memory that it was recorded with as long as it lives.
        self.recorded: dict[int, tuple[Tensor, ...]] = {}


# By the first of the weights: gone when that is gone, and no part of a module that could be saved, copied or traced.
_kept: Any = WeakIdKeyDictionary()


def keep(weights: Sequence[Tensor], setting: Any, make: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """What `make` gives for a setting, kept until a weight changes, or other settings take its place.

    A change is one of object (`load_state_dict(assign=True)`), of memory (`.to()`) or of version (an optimizer's step,
    `load_state_dict`). A write through `.data` leaves no trace, nor does an optimizer's step in a CUDA graph: see
    [`forget`], which training mode calls. A CUDA graph is recorded with the weights of that moment.
    """
    is_recording = weights[0].is_cuda and torch.cuda.is_current_stream_capturing()
    try:
        stamp = [*(weight._version for weight in weights), *(weight.data_ptr() for weight in weights)]
    except RuntimeError:  # made in inference mode: nobody counts the changes
        return make()
    kept = _kept.get(weights[0])
    found = None if kept is None else kept.by_setting.get(setting)
    if found is not None and found.is_of(weights, stamp):
        if is_recording:
            kept.recorded[id(found.made)] = found.made
        return found.made
    with torch.inference_mode(False), torch.no_grad(), torch.autocast(weights[0].device.type, enabled=False):
        made = make()
    if not is_recording:  # or the memory would belong to the graph
        kept = _kept.setdefault(weights[0], Kept()) if kept is None else kept
        others = [pair for pair in kept.by_setting.items() if pair[0] != setting and pair[1].is_of(weights, stamp)]
        new = Made([weakref.ref(weight) for weight in weights], stamp, made)
        kept.by_setting = {**dict(others[1 - KEPT_SETTINGS :]), setting: new}
    return made


def forget(weight: Tensor | None) -> None:
    """Drop what was made of this weight and others."""
    kept = None if weight is None else _kept.get(weight)
    if kept is not None:
        kept.by_setting = {}


def joined_weights(
    weights: Sequence[Tensor], embeddings: Tensor, operators: OperatorRange, dtype: torch.dtype, widths: Widths
) -> tuple[Tensor, ...]:
    """[`join`], kept. The operators' embeddings come as a new view each time, of the same memory and version."""
    try:
        setting = (operators, dtype, widths, embeddings.data_ptr(), embeddings._version)
    except RuntimeError:
        return join(weights, embeddings, operators, dtype, widths)
    return keep(weights, setting, lambda: join(weights, embeddings, operators, dtype, widths))


def are_untouched(modules: Sequence[nn.Module], kinds: Sequence[type[nn.Module]]) -> bool:
    """Whether modules are what their classes say, the first ones exactly of these kinds: no adapter, no quantised
    weight, nobody's hook, not compiled by themselves."""
    for module, kind in zip(modules, kinds, strict=False):
        if type(module) is not kind:
            return False
    for module in modules:
        if module._backward_hooks or module._backward_pre_hooks or module._compiled_call_impl is not None:
            return False
        if module._forward_pre_hooks or module._forward_hooks or "forward" in module.__dict__:
            # transformers leaves its recording hooks behind; where something is recorded nobody asks here.
            hooks = [getattr(hook, "__module__", "") for hook in module._forward_hooks.values()]
            if module._forward_pre_hooks or "forward" in module.__dict__ or set(hooks) != {RECORDER}:
                return False
    return True


def weights_of(layer: Any) -> list[Tensor] | None:
    """All that [`join`] reads, in its order; None where somebody has changed the layer.

    This is asked of every layer in every call, so it looks things up where `nn.Module` keeps them.
    """
    modules = layer._modules
    scope, bias = modules["scope_predictor"], modules["bias_predictor"]
    film, inner = scope._modules.get("film"), bias._modules
    if film is None or "modulation" not in film._modules or "dense" not in inner:  # somebody's wrapper
        return None
    linears = (
        *(modules["query"], modules["key"], modules["value"], inner["dense"], scope._modules["context"]),
        *(film._modules["modulation"], inner["operator_gate"]),
    )
    if not are_untouched((*linears, scope, bias, film), [nn.Linear] * len(linears)):
        return None
    own = [linear._parameters for linear in linears]
    weights = [
        *(part.get(name) for part in own[:4] for name in ("weight", "bias")),
        own[4].get("weight"),
        *(scope._parameters.get(name) for name in ("cue_weight", "bias", "threshold")),
        *(own[5].get("weight"), own[5].get("bias"), own[6].get("weight")),
        *(bias._parameters.get(name) for name in ("sigma", "position_weight", "output_weight", "output_bias")),
    ]
    return None if any(weight is None for weight in weights) else weights


def join(
    weights: Sequence[Tensor], embeddings: Tensor, operators: OperatorRange, dtype: torch.dtype, widths: Widths
) -> tuple[Tensor, ...]:
    """Weight and bias of the one product, the experts' constants, and the bias predictor's two own weights.

    The product's columns: query, key and value, heads x their width, where zeros leave room behind each head; the bias
    predictors' hidden layers; the convolution's taps.
    """
    query, query_bias, key, key_bias, value, value_bias, dense, dense_bias, context = weights[:9]
    cue_weight, conv_bias, threshold, film, film_bias, operator_gate = weights[9:15]
    sigma, position_weight, output_weight, output_bias = weights[15:]
    (kernel, _, heads), (_, hidden), size = cue_weight.shape, position_weight.shape, query.shape[1]
    chosen, rows = slice(*operators), slice(operators[0] * hidden, operators[1] * hidden)
    count = operators[1] - operators[0]
    spare = [width - query.shape[0] // heads for width in (widths[0], *widths)]

    parts = zip((query, key, value), (query_bias, key_bias, value_bias), spare, strict=True)
    projections, biases = [], []
    for part, part_bias, room in parts:
        projections.append(F.pad(part.view(heads, -1, size), (0, 0, 0, room)).flatten(0, 1))
        biases.append(F.pad(part_bias.view(heads, -1), (0, room)).flatten())
    taps = context.view(kernel, -1, heads, size)[:, chosen].flatten(0, 2)
    weight, bias = torch.cat([*projections, dense[rows], taps]), torch.cat([*biases, dense_bias[rows]])
    columns = product_columns(heads, widths, count, hidden, kernel)
    weight = F.pad(weight, (0, 0, 0, columns - weight.shape[0])).to(dtype).contiguous()
    bias = F.pad(bias, (0, columns - bias.shape[0])).to(dtype)

    gamma, beta = F.linear(embeddings, film, film_bias).float().chunk(2, -1)  # (E, heads) each
    block = block_of(heads)
    constants = torch.ones(count, CUE_WEIGHT + kernel, block, device=weight.device)
    of_heads = {
        CONV_BIAS: conv_bias[chosen],
        SCALE: 1 + gamma,
        SHIFT: beta,
        OUTPUT_BIAS: output_bias[chosen],
        OPERATOR_GATE: torch.sigmoid(F.linear(embeddings, operator_gate)),
        THRESHOLD: threshold[chosen, None],
        SPREAD: sigma[chosen, None].float().square().clamp_min(1e-6),
    }
    for row, values in of_heads.items():
        constants[:, row, :heads] = values.float()
    constants[:, CUE_WEIGHT:, :heads] = cue_weight[:, chosen].float().transpose(0, 1)
    output_weight = F.pad(output_weight[chosen], (0, block - heads)).to(dtype).contiguous()  # (E, hidden, block)
    return weight, bias, constants, position_weight[chosen].to(dtype, copy=True), output_weight


def product_columns(heads: int, widths: Widths, operators: int, hidden: int, kernel: int) -> int:
    """How many columns the one product has, filled up to a multiple of 16."""
    columns = heads * (2 * widths[0] + widths[1]) + operators * (hidden + kernel * heads)
    return columns + -columns % 16


def is_joined(features: Tensor) -> bool:
    """Whether one large product, though most of it may be zeros, is faster than several small ones."""
    return features.is_cuda


def side_by_side(features: Tensor, weight: Tensor) -> Tensor:
    """The product of each operator's features with its own weight: (B, L, E, H), (E, H, n) -> (B, L, E, n).

    On a GPU as one product with zeros between the operators: that is faster than several of a few columns.
    """
    if not is_joined(features):
        return torch.einsum("bleh,ehn->blen", features, weight)
    block = torch.block_diag(*weight.unbind(0))  # (E H, E n)
    spare = -block.shape[1] % SMALLEST_DOT
    product = features.flatten(2) @ F.pad(block, (0, spare))
    return product[..., : block.shape[1]].unflatten(-1, (weight.shape[0], -1))


@torch.compiler.assume_constant_result
def takes_narrow_values(index: int, dtype: torch.dtype, size: int, width: int, dropout: float, gradient: bool) -> bool:
    """Whether attention on this GPU takes values of `size` columns where queries and keys have `width`.

    cuDNN does, and torch prefers it on some cards. Elsewhere it prefers a kernel that wants all of one width.
    """
    if not torch.backends.cuda.cudnn_sdp_enabled():
        return False
    return _cudnn_takes(index, dtype, size, width, dropout, gradient, torch.are_deterministic_algorithms_enabled())


@cache
def _cudnn_takes(
    index: int, dtype: torch.dtype, size: int, width: int, dropout: float, gradient: bool, deterministic: bool
) -> bool:
    is_preferred = torch.cuda.get_device_capability(index) in CUDNN_CARDS
    if deterministic or not is_preferred or (torch.backends.cudnn.version() or 0) < OLDEST_CUDNN:
        return False
    device = torch.device("cuda", index)
    with torch.inference_mode(False):
        query, value = (torch.empty(1, 2, 64, columns, dtype=dtype, device=device) for columns in (width, size))
        query.requires_grad_(gradient)
    asked = torch.backends.cuda.SDPAParams(query, query, value, None, dropout, False, False)
    return torch.backends.cuda.can_use_cudnn_attention(asked)


def block_of(size: int) -> int:
    """The smallest power of two that holds `size` and that a tensor core takes.

    >>> block_of(12), block_of(17)
    (16, 32)
    """
    return max(SMALLEST_DOT, 1 << (size - 1).bit_length())


def is_gelu(activation: Any) -> bool:
    """Whether an activation is GELU, as exact as torch has it."""
    return type(activation) is GELUActivation and activation.act is F.gelu


def pack(cue_probs: Tensor, exponent: Tensor, reader_logits: Tensor | None, token_mask: Tensor) -> Tensor:
    """What is the same for all layers, side by side: (B, 3 E + 1, L)."""
    reader_logits = torch.zeros_like(cue_probs) if reader_logits is None else reader_logits
    return torch.cat([cue_probs, exponent, reader_logits, token_mask.unsqueeze(1)], 1)


def pack_with_distances(
    cue_probs: Tensor,
    reader_logits: Tensor | None,
    token_mask: Tensor,
    *,
    has_not: bool,
    window: int,
    decision: float,
    unreached: float,
) -> Tensor:
    """The same, the Gaussian's exponents included: one kernel for the forty steps of `gaussian_exponent`."""
    batch, operators, length = cue_probs.shape
    packed = cue_probs.new_empty(batch, 3 * operators + 1, length)
    reader = cue_probs if reader_logits is None else reader_logits
    with on_device_of(cue_probs):
        triton_kernels()["distances"][(batch * operators, -(-length // 64))](
            cue_probs,
            reader,
            token_mask,
            packed,
            length,
            window,
            *cue_probs.stride(),
            *reader.stride(),
            *token_mask.stride(),
            OPERATORS=operators,
            HAS_NOT=has_not,
            HAS_READER=reader_logits is not None,
            DECISION=decision,
            UNREACHED=unreached,
            BLOCK=64,
            num_warps=4,
        )
    return packed


def scope_logits(reader: Any, hidden_states: Tensor, cue_probs: Tensor, token_mask: Tensor) -> Tensor | None:
    """What the `ScopeReader` gives, (B, E, L), with one kernel for each of its layers; None where it was changed."""
    dtype = working_dtype(hidden_states, reader.dense.weight)
    depth, size = len(reader.convolutions), reader.dense.out_features
    linears = (reader.dense, reader.output)
    modules = (*linears, *reader.norms, *reader.convolutions)
    kinds = [nn.Linear] * 2 + [nn.LayerNorm] * depth + [nn.Conv1d] * depth
    # Without tensor cores a product of this size does not fit into a block's registers.
    is_slow = dtype == torch.float32 and hidden_states.is_cuda
    if is_slow or dtype not in DTYPES or size > LARGEST_READER or not are_untouched(modules, kinds):
        return None
    parts = [
        *(part for module in modules[2:] for part in (module.weight, module.bias)),
        *(reader.dense.weight, reader.dense.bias, reader.cue_weight, reader.output.weight, reader.output_bias),
    ]

    def prepare() -> tuple[Tensor, ...]:
        convolutions = [part.weight.permute(2, 1, 0) for part in reader.convolutions]  # (3, in, out)
        norms = [(norm.weight, norm.bias) for norm in reader.norms]
        vectors = [torch.stack([*norm, part.bias]) for norm, part in zip(norms, reader.convolutions, strict=True)]
        others = (part.to(dtype, copy=True) for part in parts[-5:])
        return torch.stack(convolutions).to(dtype), torch.stack(vectors).float(), *others

    weights, vectors, dense, dense_bias, cue_weight, output, output_bias = keep(parts, dtype, prepare)
    (batch, length, _), device = hidden_states.shape, hidden_states.device.type
    tokens = batch * length
    block = SMALLEST_DOT if tokens <= FEW_TOKENS else 2 * SMALLEST_DOT
    with torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else contextlib.nullcontext():
        features = F.linear(hidden_states.to(dtype), dense, dense_bias).view(tokens, size)
        cues = cue_probs.transpose(1, 2).to(dtype).reshape(tokens, -1)
        features = torch.addmm(features, cues, cue_weight)
        for layer, norm in enumerate(reader.norms):
            after = torch.empty_like(features)
            with on_device_of(features):
                triton_kernels()["reader"][(-(-tokens // block),)](
                    features,
                    after,
                    token_mask,
                    weights[layer],
                    vectors[layer],
                    tokens,
                    length,
                    2**layer,
                    token_mask.stride(0),
                    token_mask.stride(1),
                    EPSILON=norm.eps,
                    SIZE=size,
                    BLOCK=block,
                    BLOCK_SIZE=block_of(size),
                    num_warps=4,
                )
            features = after
        logits = F.linear(features, output, output_bias)
    return logits.view(batch, length, -1).transpose(1, 2).float()


def working_dtype(hidden_states: Tensor, weight: Tensor) -> torch.dtype:
    device = hidden_states.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype


def attention_inputs(
    layer: Any,
    hidden_states: Tensor,
    packed: Tensor,
    gate: Tensor,
    embeddings: Tensor,
    operators: OperatorRange,
    *,
    widths: Widths,
    has_padding: bool,
    masked_score: float,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Query and key with their Boolean columns, and value, (B, heads, L, width) each; None for a changed layer."""
    weights = weights_of(layer) if layer.config.hidden_act == "gelu" else None
    if weights is None:
        return None
    dtype = working_dtype(hidden_states, weights[0])
    if dtype not in DTYPES:
        return None
    heads, size = layer.num_attention_heads, layer.attention_head_size
    # A graph gets the whole as one operation; without one, that detour would only take time.
    make = product_operation if torch.compiler.is_compiling() else boolean_product
    product = make(
        hidden_states,
        packed,
        gate,
        embeddings,
        weights,
        operators[0],
        operators[1],
        dtype,
        heads,
        size,
        widths,
        REACHES.index(layer.not_reach),
        has_padding,
        masked_score,
        layer.scaling,
    )
    parts = product[..., : heads * (2 * widths[0] + widths[1])].split(
        [heads * width for width in (widths[0], *widths)], -1
    )
    query, key, value = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)
    return query, key, value


def boolean_product(
    hidden_states: Tensor,
    packed: Tensor,
    gate: Tensor,
    embeddings: Tensor,
    weights: Sequence[Tensor],
    first: int,
    last: int,
    dtype: torch.dtype,
    heads: int,
    size: int,
    widths: Sequence[int],
    reach: int,
    has_padding: bool,
    masked_score: float,
    scaling: float,
) -> Tensor:
    """The one product, with the Boolean columns written into it: (B, L, columns of the product)."""
    made = joined_weights(weights, embeddings, (first, last), dtype, (widths[0], widths[1]))
    weight, bias, constants, position_weight, output_weight = made
    device = hidden_states.device.type
    if torch.is_autocast_enabled(device):
        with torch.autocast(device, enabled=False):
            product = F.linear(hidden_states.to(dtype), weight, bias)
    else:
        product = F.linear(hidden_states.to(dtype), weight, bias)
    batch, length, row = product.shape
    tokens = batch * length
    # Few tokens: small blocks, one operator each, keep all of the GPU busy. Many: larger ones read the weights less
    # often, and write all columns of a head at once.
    is_small, hidden = tokens <= FEW_TOKENS, position_weight.shape[1]
    block, block_hidden, warps = SMALL_BLOCKS if is_small else LARGE_BLOCKS
    count = 1 if is_small else last - first
    with on_device_of(product):
        triton_kernels()["experts"][(-(-tokens // block), (last - first) // count)](
            product,
            packed,
            gate,
            constants,
            position_weight,
            output_weight,
            tokens,
            length,
            ROW=row,
            OPERATORS=last - first,
            COUNT=count,
            HEADS=heads,
            HEAD=size,
            WIDTH=widths[0],
            VALUE_WIDTH=widths[1],
            HIDDEN=hidden,
            TAPS=constants.shape[1] - CUE_WEIGHT,
            HAS_NOT=last == 3,
            REACH=reach,
            HAS_PADDING=has_padding,
            MASKED=masked_score,
            STRENGTH=1 / scaling,
            BLOCK=block,
            BLOCK_HEADS=constants.shape[2],
            BLOCK_HIDDEN=min(block_hidden, block_of(hidden)),
            BLOCK_COLUMNS=1 << (widths[0] - size - 1).bit_length(),
            num_warps=warps,
        )
    return product


# Published models bring a copy of this file: the name of the operation has to differ.
product_operation = torch.library.custom_op(
    f"boolbert::product_{zlib.crc32(__name__.encode()):08x}",
    boolean_product,
    mutates_args=(),
    schema="(Tensor hidden_states, Tensor packed, Tensor gate, Tensor embeddings, Tensor[] weights, int first, "
    "int last, ScalarType dtype, int heads, int size, int[] widths, int reach, bool has_padding, float masked_score, "
    "float scaling) -> Tensor",
)


@product_operation.register_fake
def _(
    hidden_states: Tensor,
    packed: Tensor,
    gate: Tensor,
    embeddings: Tensor,
    weights: Sequence[Tensor],
    first: int,
    last: int,
    dtype: torch.dtype,
    heads: int,
    size: int,
    widths: Sequence[int],
    *others: Any,
) -> Tensor:
    kernel, hidden = weights[9].shape[0], weights[16].shape[1]
    columns = product_columns(heads, (widths[0], widths[1]), last - first, hidden, kernel)
    return hidden_states.new_empty(*hidden_states.shape[:2], columns, dtype=dtype)


def can_start(start: Callable[[], Any]) -> bool:
    """Whether Triton gets a kernel to run: for its first one it needs a C compiler, which slim images do not have."""
    try:
        start()
    except Exception as error:  # of Triton, of a compiler, of the operating system
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        warnings.warn(
            f"Triton cannot start kernels here ({reason}): Bool-BERT goes on without them, slower. "
            "Where a C compiler is missing: apt install gcc",
            stacklevel=2,
        )
        return False
    return True


@cache
def triton_kernels() -> dict[str, Any]:
    """The kernels, made when they are first needed; none without Triton, or where it does not work."""
    global tl
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return {}

    @triton.jit
    def probe(out):
        tl.store(out, 1.0)

    device = "cpu" if is_interpreted() else "cuda"
    if not can_start(lambda: probe[(1,)](torch.zeros(1, device=device))):
        return {}

    # Whatever the length, one compiled kernel: a CUDA graph could not be recorded while another is compiled.
    @triton.jit(do_not_specialize=["tokens", "length"])
    def experts(
        product,
        packed,
        gate,
        constants,
        position_weight,
        output_weight,
        tokens,
        length,
        ROW: tl.constexpr,
        OPERATORS: tl.constexpr,
        COUNT: tl.constexpr,
        HEADS: tl.constexpr,
        HEAD: tl.constexpr,
        WIDTH: tl.constexpr,
        VALUE_WIDTH: tl.constexpr,
        HIDDEN: tl.constexpr,
        TAPS: tl.constexpr,
        HAS_NOT: tl.constexpr,
        REACH: tl.constexpr,
        HAS_PADDING: tl.constexpr,
        MASKED: tl.constexpr,
        STRENGTH: tl.constexpr,
        BLOCK: tl.constexpr,
        BLOCK_HEADS: tl.constexpr,
        BLOCK_HIDDEN: tl.constexpr,
        BLOCK_COLUMNS: tl.constexpr,
    ):
        """A block of tokens and COUNT operators: scope and bias of each head, written behind its query and key."""
        FIRST_HIDDEN: tl.constexpr = HEADS * (2 * WIDTH + VALUE_WIDTH)
        FIRST_TAP: tl.constexpr = FIRST_HIDDEN + OPERATORS * HIDDEN
        ROWS: tl.constexpr = 7 + TAPS  # of the constants
        PACKED: tl.constexpr = 3 * OPERATORS + 1

        token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        first_operator = tl.program_id(1)
        is_token = token < tokens
        sentence, place = token // length, token % length
        start = token.to(tl.int64) * ROW
        read = packed + sentence.to(tl.int64) * (PACKED * length) + place
        mask = tl.load(read + 3 * OPERATORS * length, mask=is_token, other=0.0)
        head = tl.arange(0, BLOCK_HEADS)
        is_head = head < HEADS
        both = is_token[:, None] & is_head[None, :]
        column = tl.arange(0, BLOCK_COLUMNS)[None, None, :]
        query_side = tl.zeros((BLOCK, BLOCK_HEADS, BLOCK_COLUMNS), tl.float32)
        key_side = tl.zeros((BLOCK, BLOCK_HEADS, BLOCK_COLUMNS), tl.float32)

        for step in tl.static_range(COUNT):
            e = step if COUNT == OPERATORS else first_operator  # known beforehand where it can be
            own = constants + e * ROWS * BLOCK_HEADS + head
            # The scope: each neighbour's tap, moved into place.
            taps = tl.zeros((BLOCK, BLOCK_HEADS), tl.float32)
            for k in tl.static_range(TAPS):
                shift = k - TAPS // 2
                is_there = is_token & (place + shift >= 0) & (place + shift < length)
                where = product + start + shift * ROW + FIRST_TAP + (k * OPERATORS + e) * HEADS
                tap = tl.load(where[:, None] + head[None, :], mask=is_there[:, None] & is_head[None, :], other=0.0)
                cue = tl.load(read + e * length + shift, mask=is_there, other=0.0)
                seen = tl.load(read + 3 * OPERATORS * length + shift, mask=is_there, other=0.0)
                cue_weight = tl.load(own + (7 + k) * BLOCK_HEADS)
                taps += (tap.to(tl.float32) + cue[:, None] * cue_weight[None, :]) * seen[:, None]
            logits = (taps + tl.load(own)[None, :]) * tl.load(own + BLOCK_HEADS)[None, :]
            logits += tl.load(own + 2 * BLOCK_HEADS)[None, :]
            logits += tl.load(read + (2 * OPERATORS + e) * length, mask=is_token, other=0.0)[:, None]
            margin = (1 / (1 + tl.exp(-logits)) - tl.load(own + 5 * BLOCK_HEADS)[None, :]) * mask[:, None]
            scope = tl.where(margin > 0, 1.0, 0.0)

            # The bias: what the position adds to the hidden layer, the activation, and the product with the output.
            exponent = tl.load(read + (OPERATORS + e) * length, mask=is_token, other=0.0)
            position = tl.exp(exponent / tl.load(constants + (e * ROWS + 6) * BLOCK_HEADS))
            bias = tl.zeros((BLOCK, BLOCK_HEADS), tl.float32)
            for first in range(0, HIDDEN, BLOCK_HIDDEN):
                unit = first + tl.arange(0, BLOCK_HIDDEN)
                is_unit = unit < HIDDEN
                where = product + start + FIRST_HIDDEN + e * HIDDEN
                hidden = tl.load(where[:, None] + unit[None, :], mask=is_token[:, None] & is_unit[None, :], other=0.0)
                weight = tl.load(position_weight + e * HIDDEN + unit, mask=is_unit, other=0.0).to(tl.float32)
                hidden = hidden.to(tl.float32) + position[:, None] * weight[None, :]
                hidden = 0.5 * hidden * (1 + tl.erf(hidden * 0.7071067811865476))
                output = tl.load(
                    output_weight + (e * HIDDEN + unit[:, None]) * BLOCK_HEADS + head[None, :],
                    mask=is_unit[:, None],
                    other=0.0,
                )
                bias += tl.dot(hidden.to(output.dtype), output, input_precision="ieee")
            bias = (bias + tl.load(own + 3 * BLOCK_HEADS)[None, :]) * tl.load(own + 4 * BLOCK_HEADS)[None, :]
            bias = tl.maximum(bias, 0.0) + tl.log(1 + tl.exp(-tl.abs(bias)))  # softplus
            is_on = tl.load(gate + sentence * OPERATORS + e, mask=is_token, other=0.0)
            strength = bias * (is_on * STRENGTH)[:, None]

            query_column, key_column = scope, scope * strength
            if HAS_NOT:
                is_not = e == OPERATORS - 1
                if REACH == 1:
                    is_second = is_not & (column == OPERATORS)
                    query_side = tl.where(is_second, scope[:, :, None], query_side)
                    key_side = tl.where(is_second, ((scope - 1.0) * strength)[:, :, None], key_side)
                outside = scope * 0 + 1.0 if REACH == 2 else 1.0 - scope
                query_column = tl.where(is_not, outside, query_column)
                key_column = tl.where(is_not, -key_column, key_column)
            query_side = tl.where(column == e, query_column[:, :, None], query_side)
            key_side = tl.where(column == e, key_column[:, :, None], key_side)

        if HAS_PADDING:
            LAST: tl.constexpr = OPERATORS + 1 if HAS_NOT and REACH == 1 else OPERATORS
            query_side = tl.where(column == LAST, 1.0, query_side)
            key_side = tl.where(column == LAST, ((1 - mask) * MASKED)[:, None, None], key_side)
        where = product + start[:, None, None] + head[None, :, None] * WIDTH + HEAD + column
        is_column = both[:, :, None] & (column < WIDTH - HEAD)
        if COUNT < OPERATORS:  # who has the last operator writes what follows its column too
            is_last = first_operator == OPERATORS - 1
            is_column &= (column == first_operator) | (is_last & (column >= OPERATORS))
        tl.store(where, query_side.to(product.dtype.element_ty), mask=is_column)
        tl.store(where + HEADS * WIDTH, key_side.to(product.dtype.element_ty), mask=is_column)

    strides = [f"{name}_{axis}" for name in ("cue", "reader") for axis in ("batch", "operator", "token")]
    mask_strides = ["mask_batch", "mask_token"]

    @triton.jit(do_not_specialize=["length", "window", *strides, *mask_strides])
    def distances(
        cue_probs,
        reader,
        mask,
        packed,
        length,
        window,
        cue_batch,
        cue_operator,
        cue_token,
        reader_batch,
        reader_operator,
        reader_token,
        mask_batch,
        mask_token,
        OPERATORS: tl.constexpr,
        HAS_NOT: tl.constexpr,
        HAS_READER: tl.constexpr,
        DECISION: tl.constexpr,
        UNREACHED: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """A block of tokens of one sentence and operator: each of them is compared with all that may be cues."""
        sentence, operator = tl.program_id(0) // OPERATORS, tl.program_id(0) % OPERATORS
        place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        is_token = place < length
        FAR: tl.constexpr = 1 << 30
        since = tl.full((BLOCK,), FAR, tl.int32)
        until = tl.full((BLOCK,), FAR, tl.int32)
        cues = cue_probs + sentence * cue_batch + operator * cue_operator
        for first in range(0, length, BLOCK):
            other = first + tl.arange(0, BLOCK)
            is_cue = tl.load(cues + other * cue_token, mask=other < length, other=0.0) > DECISION
            distance = place[:, None] - other[None, :]
            before = tl.where(is_cue[None, :] & (distance >= 0), distance, FAR)
            after = tl.where(is_cue[None, :] & (distance <= 0), -distance, FAR)
            since = tl.minimum(since, tl.min(before, 1))
            until = tl.minimum(until, tl.min(after, 1))
        is_not = HAS_NOT & (operator == OPERATORS - 1)
        nearest = tl.where(is_not, since, tl.minimum(since, until))
        clipped = tl.where(is_not, nearest, tl.minimum(nearest, window)).to(tl.float32)
        exponent = tl.where(nearest < FAR, -0.5 * clipped * clipped, UNREACHED)

        out = packed + sentence * (3 * OPERATORS + 1) * length + place
        tl.store(out + operator * length, tl.load(cues + place * cue_token, mask=is_token, other=0.0), mask=is_token)
        tl.store(out + (OPERATORS + operator) * length, exponent, mask=is_token)
        logits = tl.zeros((BLOCK,), tl.float32)
        if HAS_READER:
            where = reader + sentence * reader_batch + operator * reader_operator + place * reader_token
            logits = tl.load(where, mask=is_token, other=0.0)
        tl.store(out + (2 * OPERATORS + operator) * length, logits, mask=is_token)
        seen = tl.load(mask + sentence * mask_batch + place * mask_token, mask=is_token, other=0.0)
        tl.store(out + 3 * OPERATORS * length, seen, mask=is_token & (place * 0 + operator == 0))

    @triton.jit(do_not_specialize=["tokens", "length", "dilation", "mask_batch", "mask_token"])
    def reader(
        features,
        after,
        mask,
        weight,
        vectors,
        tokens,
        length,
        dilation,
        mask_batch,
        mask_token,
        EPSILON: tl.constexpr,
        SIZE: tl.constexpr,
        BLOCK: tl.constexpr,
        BLOCK_SIZE: tl.constexpr,
    ):
        """A block of tokens through one layer of the reader: normalised neighbours, their product, GELU, and itself."""
        token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        is_token = token < tokens
        sentence, place = token // length, token % length
        unit = tl.arange(0, BLOCK_SIZE)
        is_unit = unit < SIZE
        scale = tl.load(vectors + unit, mask=is_unit, other=0.0)
        shift = tl.load(vectors + SIZE + unit, mask=is_unit, other=0.0)
        total = tl.zeros((BLOCK, BLOCK_SIZE), tl.float32)
        for k in tl.static_range(3):
            step = (k - 1) * dilation
            is_there = is_token & (place + step >= 0) & (place + step < length)
            where = features + (token + step)[:, None].to(tl.int64) * SIZE + unit[None, :]
            own = tl.load(where, mask=is_there[:, None] & is_unit[None, :], other=0.0).to(tl.float32)
            centred = tl.where(is_unit[None, :], own - (tl.sum(own, 1) / SIZE)[:, None], 0.0)
            spread = tl.sum(centred * centred, 1) / SIZE
            normal = centred * (1 / tl.sqrt(spread + EPSILON))[:, None] * scale[None, :] + shift[None, :]
            seen = tl.load(mask + sentence * mask_batch + (place + step) * mask_token, mask=is_there, other=0.0)
            taps = tl.load(
                weight + k * SIZE * SIZE + unit[:, None] * SIZE + unit[None, :],
                mask=is_unit[:, None] & is_unit[None, :],
                other=0.0,
            )
            total += tl.dot((normal * seen[:, None]).to(taps.dtype), taps, input_precision="ieee")
        total += tl.load(vectors + 2 * SIZE + unit, mask=is_unit, other=0.0)[None, :]
        place_in_memory = token[:, None].to(tl.int64) * SIZE + unit[None, :]
        is_own = is_token[:, None] & is_unit[None, :]
        own = tl.load(features + place_in_memory, mask=is_own, other=0.0).to(tl.float32)
        own += 0.5 * total * (1 + tl.erf(total * 0.7071067811865476))
        tl.store(after + place_in_memory, own.to(after.dtype.element_ty), mask=is_own)

    return {"experts": experts, "distances": distances, "reader": reader}
