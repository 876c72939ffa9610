"""On a CPU, without gradients, a Boolean layer takes fewer steps: they give what the plain ones give."""

import pytest
import torch

from boolbert import kernels_boolbert as kernels
from boolbert import modeling_boolbert as modeling

OPERATORS = [[1, 1, 1], [0, 0, 1], [1, 0, 0], [1, 1, 0], [0, 1, 0]]


@pytest.fixture
def both(monkeypatch):
    """Calls a model, and once more without the short version."""

    def call(model, **inputs):
        with torch.no_grad():
            short = model(**inputs).last_hidden_state
            with monkeypatch.context() as patch:
                patch.setattr(modeling, "is_cheaper", lambda *_: False)
                return short, model(**inputs).last_hidden_state

    return call


@pytest.mark.parametrize("not_reach", ["outside", "both", "all"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_it_gives_what_the_plain_version_gives(lively, batch, both, not_reach, attention):
    for settings in ({}, {"conv_kernel": 5}, {"scope_reader_size": 0, "exclusion": "none"}):
        model = lively(not_reach=not_reach, **settings)
        model.set_attn_implementation(attention)
        changed = False
        for on in OPERATORS:
            inputs = {**batch, "operators": torch.tensor([on] * 3)}
            short, plain = both(model, **inputs)
            torch.testing.assert_close(short, plain, atol=1e-5, rtol=1e-5)
            with torch.no_grad():
                changed |= not torch.equal(plain, model(**batch, boolean=False).last_hidden_state)
        assert changed


def test_one_token_and_no_padding(lively, both):
    for length in (1, 2, 9):
        ids = torch.arange(5, 5 + length)[None]
        short, plain = both(lively(), input_ids=ids, operators=torch.ones(1, 3))
        torch.testing.assert_close(short, plain, atol=1e-5, rtol=1e-5)


def test_changed_weights_are_noticed(lively, batch, both):
    model, on = lively(), torch.ones(3, 3)
    before, _ = both(model, **batch, operators=on)
    attention = model.encoder.layer[-1].attention.self
    parts = attention.scope_predictor, attention.bias_predictor, attention.scope_predictor.film
    for parameter in (parameter for part in parts for parameter in part.parameters()):
        with torch.no_grad():
            parameter += 0.5
        after, plain = both(model, **batch, operators=on)
        torch.testing.assert_close(after, plain, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(before, after)
    with torch.no_grad():
        model.operator_embeddings += 1.0
    after, plain = both(model, **batch, operators=on)
    torch.testing.assert_close(after, plain, atol=1e-5, rtol=1e-5)
    attention.bias_predictor.output_bias.data += 3.0  # leaves no trace, until the model has been in training
    after, plain = both(model.train().eval(), **batch, operators=on)
    torch.testing.assert_close(after, plain, atol=1e-5, rtol=1e-5)


def test_hooks_are_called(lively, batch):
    model, called = lively(), []
    layer = model.encoder.layer[-1]
    for part in (layer.attention.self.bias_predictor.dense, layer.attention.self.query, layer.intermediate):
        part.register_forward_hook(lambda module, *_: called.append(module))
    with torch.no_grad():
        model(**batch, operators=torch.ones(3, 3))
    assert len(called) == 3


@pytest.mark.parametrize("length", [1, 2, 7, 40])
def test_the_exponents_of_all_pairs(length):
    cues = torch.rand(4, 3, length, generator=torch.Generator().manual_seed(length)) < 0.2
    found = kernels.near_exponent(cues, 6, modeling.UNREACHED)
    assert torch.equal(found, modeling.gaussian_exponent(cues, 6))
    assert kernels.near_exponent(torch.zeros(1, 3, kernels.LONGEST_PAIRED + 1, dtype=torch.bool), 6, -1.0) is None
