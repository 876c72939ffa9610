"""A Boolean layer's training on a GPU against the plain version: the same states and the same gradients.

The kernel needs Triton and a GPU, or Triton alone with TRITON_INTERPRET=1, which runs it as Python on the CPU.
"""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from boolbert import BoolBertForPreTraining
from boolbert import gradients_boolbert as gradients
from boolbert import modeling_boolbert as modeling
from boolbert.train import loop

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Softmax does not see what is added to all keys: what is left of its gradient is rounding.
UNSEEN = "key.bias"


@pytest.fixture(autouse=True)
def has_triton():
    if not gradients.HAS_TRITON or not (DEVICE == "cuda" or gradients.is_interpreted()):
        pytest.skip("needs Triton, and a GPU or TRITON_INTERPRET=1")


@pytest.fixture
def lively(lively):
    """With one Boolean layer and a narrow reader: Triton's interpreter takes its time."""
    return lambda *args, **changes: lively(*args, **{"scope_reader_size": 16, "boolean_layers": [1], **changes})


def boolean_layers(model):
    return [model.encoder.layer[index].attention.self for index in model.config.boolean_layers]


@pytest.fixture
def calls(monkeypatch):
    """Which ways the kernel went: False forwards, True backwards."""
    found, run = [], gradients.run

    def counted(*args, is_backward):
        found.append(is_backward)
        run(*args, is_backward=is_backward)

    monkeypatch.setattr(gradients, "run", counted)
    return found


def step(model, batch, monkeypatch, is_plain=False, **kwargs):
    """The states of a training step, and all gradients."""
    model.zero_grad()
    torch.manual_seed(7)  # noise and dropout
    with monkeypatch.context() as patch:
        if is_plain:
            patch.setattr(modeling, "is_trainable", lambda *_: False)
        states = model(**{name: value.to(DEVICE) for name, value in batch.items()}, **kwargs).last_hidden_state
    states = states * batch["attention_mask"].to(DEVICE).unsqueeze(-1)
    (states.float() * torch.linspace(-1, 1, states.numel(), device=DEVICE).view_as(states)).sum().backward()
    return states.detach(), {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def compare(model, batch, monkeypatch, tolerance=1e-3, **kwargs):
    expected_states, expected = step(model, batch, monkeypatch, is_plain=True, **kwargs)
    states, got = step(model, batch, monkeypatch, **kwargs)
    assert_close(states, expected_states, atol=tolerance, rtol=tolerance)
    assert got.keys() == expected.keys()
    for name, gradient in got.items():
        if not name.endswith(UNSEEN):
            largest = expected[name].abs().max().item()
            assert_close(gradient, expected[name], atol=tolerance * largest + 1e-6, rtol=tolerance, msg=name)
    return got


def given(rows):
    return {"operators": torch.tensor(rows, device=DEVICE)}


MIXED = [[1, 0, 1], [0, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"not_reach": "both"},
        {"not_reach": "all", "conv_kernel": 1},
        {"attention_operators": ["not"]},
        {"attention_operators": ["and", "or"], "conv_kernel": 5},
        {"scope_reader_size": 0, "exclusion": "none"},
        {"bias_hidden_size": 24, "gumbel_temperature": 0.5},
        {"boolean_layers": [0, 1]},
        {"hidden_size": 300, "num_attention_heads": 15},  # copied in two blocks
        {"hidden_size": 51, "num_attention_heads": 17},  # strides that are no multiple of anything
    ],
    ids=str,
)
def test_states_and_gradients_are_the_plain_version_s(lively, batch, monkeypatch, calls, changes, training):
    model = lively(**changes).to(DEVICE).train(training)
    got = compare(model, batch, monkeypatch, **given(MIXED))
    layers = len(model.config.boolean_layers)
    assert calls == [False] * layers + [True] * layers
    layer = f"encoder.layer.{model.config.boolean_layers[0]}.attention.self."
    # Operators that never change attention have no gradients; the others do, where one of their scopes holds a token.
    used = [operator in model.config.attention_operators for operator in modeling.OPERATORS]
    for name in ("scope_predictor.threshold", "scope_predictor.bias", "bias_predictor.output_weight"):
        felt = (got[layer + name].reshape(3, -1).abs().sum(1) > 0).tolist()
        assert any(felt)
        assert felt == used or changes, name
        assert not any(is_felt and not is_used for is_felt, is_used in zip(felt, used, strict=True)), name


@pytest.mark.parametrize("gate", ["cue", "learned"])
def test_a_gate_of_the_model_s_own_learns_through_it(lively, batch, monkeypatch, calls, gate):
    model = lively(gate=gate).to(DEVICE).train()
    got = compare(model, batch, monkeypatch)
    assert calls
    assert any("cue_predictor" in name and gradient.abs().sum() > 0 for name, gradient in got.items())


def test_sentences_of_one_token_and_no_padding(lively, monkeypatch, calls):
    model = lively(conv_kernel=5).to(DEVICE).train()
    for shape in ((1, 1), (2, 10)):  # more than a block of tokens, and neighbours beyond both ends
        ids = torch.arange(1, 1 + shape[0] * shape[1]).view(shape) % 60
        compare(model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, monkeypatch)
    assert calls


def test_frozen_weights_have_no_gradients(lively, batch, monkeypatch, calls):
    model = lively().to(DEVICE).train()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("bias_predictor" in name)
    got = compare(model, batch, monkeypatch, **given(MIXED))
    assert calls
    assert got
    assert all("bias_predictor" in name for name in got)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_both_kinds_of_attention(lively, batch, monkeypatch, calls, attention):
    compare(lively(attn_implementation=attention).to(DEVICE), batch, monkeypatch, **given(MIXED))
    assert calls


def test_what_the_kernel_leaves_alone(lively, batch, monkeypatch, calls):
    plain = lively(hidden_act="relu").to(DEVICE)
    compare(plain, batch, monkeypatch, **given(MIXED))
    compare(lively().double().to(DEVICE), batch, monkeypatch, **given(MIXED))
    adapted = lively().to(DEVICE)

    class Adapter(nn.Linear):
        pass

    boolean_layers(adapted)[0].bias_predictor.dense.__class__ = Adapter
    compare(adapted, batch, monkeypatch, **given(MIXED))
    with torch.no_grad():
        lively().to(DEVICE)(**{name: value.to(DEVICE) for name, value in batch.items()})
    assert not calls


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing(lively, batch, monkeypatch, calls, reentrant):
    model = lively(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).to(DEVICE).train()
    # The embeddings are frozen in no test of this, or reentrant checkpointing would see no gradients at all.
    expected = step(model, batch, monkeypatch, **given(MIXED))
    count = len(calls)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    got = step(model, batch, monkeypatch, **given(MIXED))
    assert len(calls) > 2 * count  # forwards twice
    assert_close(got[0], expected[0])
    for name, gradient in got[1].items():
        if not name.endswith(UNSEEN):
            assert_close(gradient, expected[1][name], atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize(("dynamic", "is_recorded"), [(None, True), (True, True), (True, False)])
def test_compiled_layers_ask_the_kernel_where_steps_are_recorded(
    lively, batch, monkeypatch, calls, dynamic, is_recorded
):
    monkeypatch.setattr(loop, "COMPILED_PARTS", ())  # the layers are enough
    model = lively().to(DEVICE)
    expected = step(model, batch, monkeypatch, is_plain=True, **given(MIXED))
    loop.compile_layers(model, {"backend": "eager", "dynamic": dynamic}, is_recorded=is_recorded)
    got = step(model, batch, monkeypatch, **given(MIXED))
    layers = len(model.config.boolean_layers)
    assert calls == ([False] * layers + [True] * layers) * is_recorded
    assert_close(got[0], expected[0], atol=1e-5, rtol=1e-5)
    for name, gradient in got[1].items():
        if not name.endswith(UNSEEN):
            assert_close(gradient, expected[1][name], atol=1e-5, rtol=1e-4, msg=name)
    if not is_recorded:
        return
    # With more tokens the plain version is faster.
    calls.clear()
    monkeypatch.setattr(modeling, "MOST_APART", 3)
    torch.compiler.reset()
    step(model, batch, monkeypatch, **given(MIXED))
    assert not calls


class Wrapper(nn.Module):
    """As adapters wrap a module that is trained as a whole."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def forward(self, *args):
        return self.inner(*args)


@pytest.mark.parametrize("name", ["scope_predictor", "bias_predictor"])
def test_what_somebody_added_is_honoured(lively, batch, monkeypatch, calls, name):
    wrapped = lively().to(DEVICE)
    hooked = lively().to(DEVICE)
    changed = lively().to(DEVICE)
    seen = []
    for model in (wrapped, hooked, changed):
        for part in boolean_layers(model):
            if model is wrapped:
                setattr(part, name, Wrapper(getattr(part, name)))
            elif model is hooked:
                getattr(part, name).register_full_backward_hook(lambda *_: seen.append(1))
            else:
                part.bias_predictor.activation = nn.Tanh()
        step(model, batch, monkeypatch, **given(MIXED))
    assert not calls
    assert seen == [1]


def test_functional_gradients(lively, batch, calls):
    model = lively().to(DEVICE)
    inputs = {name: value.to(DEVICE) for name, value in batch.items()}

    def loss(parameters):
        return torch.func.functional_call(model, parameters, kwargs=inputs).last_hidden_state.sum()

    found = torch.func.grad(loss)({name: parameter.detach() for name, parameter in model.named_parameters()})
    assert not calls
    assert any(gradient.abs().sum() > 0 for gradient in found.values())


def test_weights_and_embeddings_of_two_precisions(lively, batch, monkeypatch, calls):
    model = lively().to(DEVICE)
    for layer in boolean_layers(model):
        layer.scope_predictor.film.double()
    step(model, batch, monkeypatch, **given(MIXED))
    assert calls


def test_scopes_that_are_asked_for_are_computed_plainly(lively, batch, calls):
    model = lively(BoolBertForPreTraining).to(DEVICE).train()
    labels = torch.zeros(3, 3, batch["input_ids"].shape[1], dtype=torch.long, device=DEVICE)
    model(**{name: value.to(DEVICE) for name, value in batch.items()}, scope_labels=labels).loss.backward()
    assert not calls


def test_the_same_seed_gives_the_same_step(lively, batch, monkeypatch, calls):
    model = lively().to(DEVICE).train()
    first, second = (step(model, batch, monkeypatch, **given(MIXED)) for _ in range(2))
    assert calls
    assert torch.equal(first[0], second[0])
    if DEVICE == "cpu":  # some of torch's own sums are in another order on a GPU
        assert all(torch.equal(first[1][name], second[1][name]) for name in first[1])


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision_is_as_far_from_float32_as_the_plain_version(lively, batch, monkeypatch, calls, dtype):
    model = lively(std=0.1).to(DEVICE)
    _, exact = step(model, batch, monkeypatch, is_plain=True, **given(MIXED))
    errors = []
    for is_plain in (True, False):
        with torch.autocast(DEVICE, dtype):
            _, got = step(model, batch, monkeypatch, is_plain=is_plain, **given(MIXED))
        off = [(got[name] - exact[name]).norm() / (exact[name].norm() + 1e-6) for name in exact if UNSEEN not in name]
        errors.append(torch.stack(off).median().item())
    assert calls
    assert errors[1] < 2 * errors[0] + 1e-3


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA device")
def test_a_model_in_half_precision_altogether(lively, batch, monkeypatch, calls):
    model = lively(std=0.1).to(DEVICE, torch.bfloat16)
    plain, got = (step(model, batch, monkeypatch, is_plain=is_plain, **given(MIXED))[1] for is_plain in (True, False))
    off = [(got[name] - plain[name]).norm() / (plain[name].norm() + 1e-6) for name in plain if UNSEEN not in name]
    assert calls
    assert torch.stack(off).median() < 0.1
