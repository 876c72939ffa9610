"""The GPU's way through a Boolean layer against the plain one and the slow one.

The joined product and its memory are tested everywhere. The kernel itself needs Triton and a GPU, or Triton alone with
TRITON_INTERPRET=1, which runs it as Python on the CPU.
"""

import copy
import gc
import pickle
import weakref

import pytest
import slow_reference as slow
import torch
from torch import nn
from torch.testing import assert_close

from boolbert import gradients_boolbert as gradients
from boolbert import kernels_boolbert as kernels
from boolbert import modeling_boolbert as modeling

ALL = (0, 3)
OPERATORS = [[1, 0, 1], [0, 1, 0], [1, 1, 1]]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def lively(lively):
    """With a narrow reader: Triton's interpreter takes its time."""
    return lambda *args, **changes: lively(*args, **{"scope_reader_size": 16, **changes})


def layer_of(model, index=0):
    return model.encoder.layer[index].attention.self


def joined(model, operators=ALL, dtype=torch.float32, widths=(16, 16)):
    embeddings = model.operator_embeddings[slice(*operators)]
    return kernels.joined_weights(kernels.weights_of(layer_of(model)), embeddings, operators, dtype, widths)


# --------------------------------------------------------------------------------------------------- the joined product


@pytest.mark.parametrize("operators", [(0, 3), (2, 3), (0, 2)])
@pytest.mark.parametrize(("conv_kernel", "value_width"), [(1, 16), (3, 16), (3, 8)])
def test_one_product_gives_what_five_gave(lively, operators, conv_kernel, value_width):
    model = lively(conv_kernel=conv_kernel)
    layer, states = layer_of(model), torch.randn(2, 5, 16)
    with torch.no_grad():
        weight, bias, *_ = joined(model, operators, widths=(16, value_width))
        product = nn.functional.linear(states, weight, bias)
        heads = [part(states).view(2, 5, 2, 8) for part in (layer.query, layer.key, layer.value)]
        dense = layer.bias_predictor.dense(states).view(2, 5, 3, 8)[:, :, slice(*operators)]
        taps = layer.scope_predictor.context(states).view(2, 5, conv_kernel, 3, 2)[:, :, :, slice(*operators)]
    *parts, rest = product.split([2 * 16, 2 * 16, 2 * value_width, product.shape[-1] - 2 * (32 + value_width)], -1)
    for part, expected in zip(parts, heads, strict=True):
        wide = part.view(2, 5, 2, -1)
        assert_close(wide[..., :8], expected)
        assert (wide[..., 8:] == 0).all()  # room for the columns
    count = operators[1] - operators[0]
    assert_close(rest[..., : count * 8], dense.flatten(2))
    assert_close(rest[..., count * 8 : count * (8 + conv_kernel * 2)], taps.flatten(2))
    assert weight.shape[0] % 16 == 0
    assert weight.shape[0] == kernels.product_columns(2, (16, value_width), count, 8, conv_kernel)


@pytest.mark.parametrize("operators", [1, 3])
def test_operators_side_by_side(monkeypatch, operators):
    """One product with zeros between the operators, as on a GPU: the same values and gradients as one by one."""
    features = torch.randn(2, 5, operators, 8, requires_grad=True)
    weight = torch.randn(operators, 8, 3, requires_grad=True)
    expected = torch.stack([features[:, :, e] @ weight[e] for e in range(operators)], 2)
    gradients = torch.autograd.grad(expected.square().sum(), (features, weight))
    for is_joined in (False, True):
        monkeypatch.setattr(kernels, "is_joined", lambda _, is_joined=is_joined: is_joined)
        got = kernels.side_by_side(features, weight)
        assert_close(got, expected)
        for found, wanted in zip(torch.autograd.grad(got.square().sum(), (features, weight)), gradients, strict=True):
            assert_close(found, wanted, atol=1e-4, rtol=1e-4)


def changes():
    def step(model):
        model.zero_grad()
        with torch.enable_grad():
            sum(weight.sum() for weight in kernels.weights_of(layer_of(model))).backward()
        torch.optim.AdamW(model.parameters(), lr=0.1).step()

    def load(model, **options):
        model.load_state_dict({name: 2 * value for name, value in model.state_dict().items()}, **options)

    def replace(model):
        layer_of(model).key.weight = nn.Parameter(2 * layer_of(model).key.weight.detach())

    def move(model):
        model.to(torch.float64).to(torch.float32)

    def through_data(model):
        layer_of(model).value.weight.data.mul_(2)
        model.train().eval()

    def in_inference_mode(model):
        with torch.inference_mode():
            layer_of(model).bias_predictor.sigma.mul_(2)

    def embeddings(model):
        with torch.no_grad():
            model.operator_embeddings.mul_(2)

    return {
        "an optimizer's step": step,
        "load_state_dict": load,
        "load_state_dict, assigned": lambda model: load(model, assign=True),
        "another parameter": replace,
        "to": move,
        "data, then train": through_data,
        "inference mode": in_inference_mode,
        "the operators' embeddings": embeddings,
    }


@pytest.mark.parametrize("change", changes())
def test_every_change_of_a_weight_is_noticed(lively, change):
    model = lively()
    first = joined(model)
    assert joined(model) is first
    changes()[change](model)
    second = joined(model)
    assert second is not first
    with torch.no_grad():
        expected = kernels.join(
            kernels.weights_of(layer_of(model)), model.operator_embeddings, ALL, torch.float32, (16, 16)
        )
    for got, wanted in zip(second, expected, strict=True):
        assert torch.equal(got, wanted)
    assert change == "to" or any(not torch.equal(old, new) for old, new in zip(first, second, strict=True))


def test_the_reader_notices_writes_that_leave_no_trace_after_train(lively, batch, fused):
    model = lively()
    fused(model, batch, operators=given())
    model.scope_reader.output_bias.data.add_(1)
    expected, got, _ = fused(model.train().eval(), batch, operators=given())
    assert_close(got.scope_logits, expected.scope_logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("index", range(19))
def test_every_weight_counts(lively, index):
    model = lively()
    before = joined(model)
    weights = kernels.weights_of(layer_of(model))
    assert len(weights) == 19
    with torch.no_grad():
        weights[index].add_(1)
    assert any(not torch.equal(old, new) for old, new in zip(before, joined(model), strict=True))


def test_dtype_operators_and_widths_are_kept_apart(lively):
    model = lively()
    assert joined(model)[0].dtype == torch.float32
    assert joined(model, dtype=torch.bfloat16)[0].dtype == torch.bfloat16
    assert joined(model, widths=(16, 8))[0].shape[0] < joined(model)[0].shape[0]
    assert joined(model, (2, 3))[0].shape[0] < joined(model)[0].shape[0] < joined(model, widths=(24, 16))[0].shape[0]


def test_what_was_made_for_the_last_settings_is_kept(lively):
    """Queries with NOT and with OR take turns; so do a search and an `encode`."""
    model = lively()
    settings = [(ALL, (16, 16)), ((2, 3), (16, 16)), (ALL, (16, 8)), ((0, 2), (16, 16))]
    made = [joined(model, operators, widths=widths) for operators, widths in settings]
    assert len(settings) == kernels.KEPT_SETTINGS
    for (operators, widths), before in zip(settings, made, strict=True):
        assert joined(model, operators, widths=widths) is before
    joined(model, widths=(24, 24))
    assert joined(model, settings[1][0], widths=settings[1][1]) is made[1]
    assert joined(model) is not made[0]  # the oldest had to go
    with torch.no_grad():
        layer_of(model).query.weight.mul_(2)
    assert all(joined(model, operators, widths=widths) is not made[n] for n, (operators, widths) in enumerate(settings))


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_narrow_values_change_nothing(lively, batch, monkeypatch, implementation):
    """Attention takes values of another width than queries and keys; the output needs no cutting then."""
    model = lively(attn_implementation=implementation)

    def run():
        model.zero_grad()
        states = model(**batch, operators=torch.tensor(OPERATORS)).last_hidden_state[batch["attention_mask"].bool()]
        states.square().sum().backward()
        return states.detach(), [weight.grad for weight in layer_of(model).parameters()]

    expected, gradients = run()
    asked = []
    monkeypatch.setattr(modeling.BoolBertSelfAttention, "_has_narrow_values", lambda *args: asked.append(args) or True)
    got, found = run()
    assert len(asked) == 2
    assert_close(got, expected, atol=1e-5, rtol=1e-5)
    for one, other in zip(found, gradients, strict=True):
        assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_who_takes_narrow_values(monkeypatch):
    """Only where torch would take cuDNN anyway; what it says is asked once for each case."""
    calls = []

    def can_use(params):
        calls.append((params.query.shape[-1], params.value.shape[-1], params.dropout))
        return True

    monkeypatch.setattr(torch, "device", lambda *_: "cpu")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: {0: (9, 0), 1: (8, 0), 2: (12, 0)}[index])
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91900)
    monkeypatch.setattr(torch.backends.cuda, "can_use_cudnn_attention", can_use)
    kernels._cudnn_takes.cache_clear()
    is_on = [True]
    monkeypatch.setattr(torch.backends.cuda, "cudnn_sdp_enabled", lambda: is_on[0])
    case = (torch.bfloat16, 64, 72, 0.1, False)
    assert kernels.takes_narrow_values(0, *case)
    assert kernels.takes_narrow_values(0, *case)
    assert calls == [(72, 64, 0.1)]
    assert not kernels.takes_narrow_values(1, *case)
    assert not kernels.takes_narrow_values(2, *case)
    is_on[0] = False
    assert not kernels.takes_narrow_values(0, *case)
    is_on[0] = True
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    assert not kernels.takes_narrow_values(0, *case)
    monkeypatch.undo()
    kernels._cudnn_takes.cache_clear()


def test_weights_made_in_inference_mode_are_not_kept(lively):
    with torch.inference_mode():
        model = lively()
        first = joined(model)
        layer_of(model).query.weight.mul_(2)
        assert not torch.equal(joined(model)[0], first[0])


def test_the_memory_is_no_part_of_the_model(lively, batch):
    model = lively()
    names = set(model.state_dict())
    made = weakref.ref(joined(model)[0])
    assert layer_of(model).query.weight in kernels._kept
    assert set(model.state_dict()) == names
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert layer_of(other).query.weight not in kernels._kept
        with torch.no_grad():
            layer_of(other).query.weight.zero_()
            assert not torch.equal(joined(other)[0], joined(model)[0])
    del model, other
    gc.collect()
    assert made() is None


def test_a_changed_layer_keeps_the_plain_way(lively):
    class Adapter(nn.Linear):
        pass

    def hook(*_):
        return None

    model = lively()
    layer = layer_of(model)
    assert kernels.weights_of(layer)
    handle = layer.bias_predictor.register_forward_hook(hook)
    assert kernels.weights_of(layer) is None
    handle.remove()
    layer.scope_predictor.forward = layer.scope_predictor.forward
    assert kernels.weights_of(layer) is None
    del layer.scope_predictor.forward
    assert kernels.weights_of(layer)
    layer.value = Adapter(16, 16)
    assert kernels.weights_of(layer) is None


def test_recording_leaves_the_layer_plain(lively, batch):
    model = lively()
    with torch.no_grad():
        model(**batch, output_scopes=True, output_biases=True)
    assert kernels.weights_of(layer_of(model))


def test_the_cpu_keeps_the_plain_way(lively, batch, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    model = lively()
    monkeypatch.setattr(modeling, "attention_inputs", None)  # calling it would fail
    with torch.inference_mode():
        model(**batch)


# ----------------------------------------------------------------------------------------------------------- the kernel


@pytest.fixture
def fused(monkeypatch):
    """Calls a model both ways: the plain outputs, the kernel's, and how many layers took the kernel."""
    if not kernels.HAS_TRITON or not (DEVICE == "cuda" or kernels.is_interpreted()):
        pytest.skip("needs Triton, and a GPU or TRITON_INTERPRET=1")
    count = []

    def counted(*args, **kwargs):
        inputs = kernels.attention_inputs(*args, **kwargs)
        count.append(inputs is not None)
        return inputs

    monkeypatch.setattr(modeling, "attention_inputs", counted)

    def both(model, batch, mode=torch.inference_mode, call=None, **kwargs):
        model = model.to(DEVICE)
        batch = {name: value.to(DEVICE) for name, value in batch.items()}
        count.clear()
        with mode():
            got = (model if call is None else call)(**batch, **kwargs)
        taken = sum(count)
        with monkeypatch.context() as patch, torch.no_grad():
            patch.setattr(modeling, "is_usable", lambda *_: False)
            expected = model(**batch, **kwargs)
        return expected, got, taken

    return both


def given(count=3):
    return torch.tensor((OPERATORS * count)[:count], device=DEVICE)


def random_batch(sentences, length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, length + 1, (sentences, 1), generator=generator)
    lengths[0] = length
    mask = (torch.arange(length) < lengths).long()
    return {"input_ids": torch.randint(1, 64, mask.shape, generator=generator) * mask, "attention_mask": mask}


SETTINGS = [
    ({}, (3, 7)),
    ({"not_reach": "both"}, (3, 7)),
    ({"not_reach": "all"}, (1, 32)),
    ({"attention_operators": ["not"], "conv_kernel": 5}, (4, 9)),
    ({"attention_operators": ["and", "or"], "conv_kernel": 1}, (5, 4)),
    ({"attention_operators": ["or"], "not_reach": "both"}, (2, 17)),
    ({"hidden_size": 51, "num_attention_heads": 17, "bias_hidden_size": 70}, (2, 11)),
    ({"scope_reader_size": 0, "exclusion": "none"}, (2, 12)),
    ({"boolean_layers": [1], "bias_hidden_size": 8}, (3, 1)),
]


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize(("changes", "shape"), SETTINGS)
def test_the_kernel_gives_the_plain_version(lively, fused, monkeypatch, changes, shape, is_busy):
    """With few tokens, one operator at a time; and as with many."""
    monkeypatch.setattr(kernels, "FEW_TOKENS", 0 if is_busy else 8192)
    model = lively(**changes)
    batch = random_batch(*shape)
    expected, got, taken = fused(model, batch, operators=given(shape[0]))
    assert taken == len(model.config.boolean_layers)
    real = batch["attention_mask"].bool().to(DEVICE)
    assert_close(got.last_hidden_state[real], expected.last_hidden_state[real], atol=1e-4, rtol=1e-4)
    with torch.no_grad():  # operators make a difference, or the comparison would show nothing
        off = model(**{name: value.to(DEVICE) for name, value in batch.items()}, operators=0 * given(shape[0]))
    assert shape[1] == 1 or (off.last_hidden_state - expected.last_hidden_state)[real].abs().max() > 1e-3


@pytest.mark.parametrize(("not_reach", "value_width"), [("outside", 16), ("both", 8), ("all", 16)])
def test_the_kernels_columns_are_the_slow_bias(lively, batch, fused, not_reach, value_width):
    """Its queries and keys hold the dense S of loops, and the padding."""
    model = lively(not_reach=not_reach)
    layer, mask, gate = layer_of(model), batch["attention_mask"].float(), torch.tensor(OPERATORS).float()
    embeddings = model.operator_embeddings.detach()
    states = torch.randn(3, 7, 16)
    cue_probs, reader = torch.rand(3, 3, 7) * mask[:, None], torch.randn(3, 3, 7)
    exponent = modeling.gaussian_exponent(cue_probs > 0.5, model.config.window)
    scope = slow.scope(layer.scope_predictor, states, cue_probs, embeddings, mask, reader)
    bias = slow.bias(layer.bias_predictor, states, cue_probs > 0.5, embeddings, model.config.window)
    assert 0.1 < scope[mask.bool()[:, None, None].expand_as(scope)].mean() < 0.9
    expected = slow.boolean_bias(scope, bias, gate, not_reach)
    expected += (1 - mask)[:, None, None] * modeling.MASKED_SCORE * layer.scaling

    model.to(DEVICE)
    with torch.no_grad():
        query, key, value = (
            part.cpu()
            for part in kernels.attention_inputs(
                layer,
                states.to(DEVICE),
                kernels.pack(cue_probs, exponent, reader, mask).to(DEVICE),
                gate.to(DEVICE),
                model.operator_embeddings[:],
                ALL,
                widths=(16, value_width),
                has_padding=True,
                masked_score=modeling.MASKED_SCORE,
            )
        )
    dense = query[..., 8:].double() @ key[..., 8:].double().transpose(-1, -2) * layer.scaling
    real = mask.bool()[:, None, :, None].expand_as(dense)
    assert_close(dense[real], expected[real], rtol=1e-4, atol=1e-4)
    assert value.shape[-1] == value_width
    assert (value[..., 8:] == 0).all()


@pytest.mark.parametrize("operators", [(0, 3), (2, 3), (0, 1), (1, 3)])
@pytest.mark.parametrize(("sentences", "length"), [(3, 1), (4, 40), (2, 130)])
def test_distances(fused, operators, sentences, length):
    """Few cues, so that some sentences have none, at either end and in the middle."""
    chosen, mask = slice(*operators), random_batch(sentences, length)["attention_mask"].float()
    cue_probs = torch.rand(sentences, 3, length).pow(8)
    logits = torch.randn(sentences, length, 3).transpose(1, 2)  # as the reader gives them
    for reader in (logits[:, chosen], None):
        got = kernels.pack_with_distances(
            cue_probs[:, chosen].to(DEVICE),
            None if reader is None else reader.to(DEVICE),
            mask.to(DEVICE),
            has_not=operators[1] == 3,
            window=4,
            decision=0.5,
            unreached=modeling.UNREACHED,
        )
        exponent = modeling.gaussian_exponent(cue_probs > 0.5, 4)
        assert torch.equal(got.cpu(), kernels.pack(cue_probs[:, chosen], exponent[:, chosen], reader, mask))


@pytest.mark.parametrize("size", [16, 20, 128])
def test_the_reader_in_kernels_is_the_slow_reader(lively, batch, fused, size):
    model = lively(scope_reader_size=size)
    mask = batch["attention_mask"].float()
    with torch.no_grad():
        hidden = model.embeddings(batch["input_ids"])
    cue_probs = torch.rand(3, 3, 7) * mask[:, None]
    expected = slow.reader_logits(model.scope_reader, hidden, cue_probs, mask).float()
    # In full precision a GPU keeps the plain way.
    dtype, error = (torch.float32, 1e-4) if DEVICE == "cpu" else (torch.float16, 2e-2)
    model.to(DEVICE, dtype)
    hidden, cue_probs, mask = hidden.to(DEVICE, dtype), cue_probs.to(DEVICE), mask.to(DEVICE)
    with torch.inference_mode():
        got = kernels.scope_logits(model.scope_reader, hidden, cue_probs, mask).cpu()
    real = mask.bool().cpu()[:, None].expand_as(got)
    assert_close(got[real], expected[real], atol=error * expected.abs().max().item(), rtol=0)
    model.scope_reader.norms[0].register_forward_hook(lambda *_: None)
    assert kernels.scope_logits(model.scope_reader, hidden, cue_probs, mask) is None


# Triton's interpreter multiplies matrices of bfloat16 as if they were whole numbers.
HALF = [torch.float16, *([torch.bfloat16] if DEVICE == "cuda" else [])]


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision(lively, batch, fused, dtype):
    expected, got, taken = fused(lively(std=0.1).to(dtype), batch, operators=given())
    assert taken == 2
    real = batch["attention_mask"].bool().to(DEVICE)
    assert got.last_hidden_state.dtype == dtype
    cosine = torch.cosine_similarity(got.last_hidden_state[real].float(), expected.last_hidden_state[real].float())
    assert cosine.median() > 0.999


@pytest.mark.parametrize("dtype", HALF)
def test_mixed_precision(lively, batch, fused, dtype):
    model = lively(std=0.1)
    with torch.autocast(DEVICE, dtype):
        expected, got, taken = fused(model, batch, operators=given())
    assert taken == 2
    real = batch["attention_mask"].bool().to(DEVICE)
    cosine = torch.cosine_similarity(got.last_hidden_state[real].float(), expected.last_hidden_state[real].float())
    assert cosine.median() > 0.999


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_mask_for_each_pair_of_tokens(lively, batch, fused, implementation):
    """Then the padding has no column of its own."""
    model = lively(attn_implementation=implementation)
    mask = batch["attention_mask"].bool()
    batch = {**batch, "attention_mask": (mask[:, None, None] & mask[:, None, :, None]) | torch.eye(7, dtype=torch.bool)}
    expected, got, taken = fused(model, batch, operators=given())
    assert taken == 2
    real = mask.to(DEVICE)
    assert_close(got.last_hidden_state[real], expected.last_hidden_state[real], atol=1e-4, rtol=1e-4)


def test_triton_without_a_compiler(lively, batch, fused, monkeypatch):
    """Slim images have a GPU's libraries and no C compiler, which Triton needs for its first kernel."""

    def fail():
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC environment variable")

    with pytest.warns(UserWarning, match=r"Triton cannot start kernels here \(Failed to find C compiler\.\): .*gcc"):
        assert not kernels.can_start(fail)
    assert kernels.can_start(lambda: None)
    monkeypatch.setattr(kernels, "can_start", lambda start: False)
    kernels.triton_kernels.cache_clear()
    gradients.triton_kernels.cache_clear()
    try:
        assert fused(lively(), batch, operators=given())[2] == 0
        assert fused(lively().train(), batch, mode=torch.enable_grad, operators=given())[2] == 0
        assert not gradients.is_trainable(torch.ones(1, device=DEVICE))
    finally:
        kernels.triton_kernels.cache_clear()
        gradients.triton_kernels.cache_clear()


def test_what_the_kernel_leaves_alone(lively, batch, fused):
    model = lively()
    assert fused(model, batch, mode=torch.enable_grad, operators=given())[2] == 0
    expected, got, taken = fused(model, batch, operators=given(), output_scopes=True, output_biases=True)
    assert taken == 0
    assert torch.equal(got.scopes[0], expected.scopes[0])
    assert fused(model, batch, operators=given())[2] == 2  # and recording leaves no trace
    assert fused(lively(hidden_act="relu"), batch, operators=given())[2] == 0
    assert fused(lively().double(), batch, operators=given())[2] == 0
    assert fused(model.train(), batch, operators=given())[2] == 0


def test_a_training_step_in_between(lively, batch, fused):
    model = lively()
    before = fused(model, batch, operators=given())[1].last_hidden_state
    with torch.no_grad():
        for weight in kernels.weights_of(layer_of(model)):
            weight.mul_(1.2)
    expected, got, taken = fused(model, batch, operators=given())
    assert taken == 2
    real = batch["attention_mask"].bool().to(DEVICE)
    assert_close(got.last_hidden_state[real], expected.last_hidden_state[real], atol=1e-4, rtol=1e-4)
    assert (got.last_hidden_state - before)[real].abs().max() > 1e-2


def test_a_compiled_model_takes_the_kernel_as_one_operation(lively, batch, fused, monkeypatch):
    model = lively()
    made, join = [], kernels.join
    monkeypatch.setattr(kernels, "join", lambda *args: made.append(1) or join(*args))
    compiled = torch.compile(model, fullgraph=True, backend="inductor" if DEVICE == "cuda" else "aot_eager")
    real = batch["attention_mask"].bool().to(DEVICE)
    for _ in range(2):
        expected, got, _ = fused(model, batch, mode=torch.no_grad, call=compiled, operators=given())
        assert_close(got.last_hidden_state[real], expected.last_hidden_state[real], atol=1e-4, rtol=1e-4)
    assert len(made) == 2  # once for each layer: the graph knows what was joined before
