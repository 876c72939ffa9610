"""Bad input gets one clear line."""

import pytest
import torch

from boolbert import BoolBertForPreTraining, BoolBertModel


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        (torch.ones(3), r"operators must be a \(3, 3\) tensor of 0 and 1, rows of and, or, not, got shape \(3,\)"),
        (torch.ones(2, 3), r"got shape \(2, 3\)"),
        (torch.ones(3, 4), r"got shape \(3, 4\)"),
        (torch.tensor([[0, 1, -1]] * 3), "got other values; leave operators out where it is not known"),
        (torch.tensor([[0.0, 0.5, 1.0]] * 3), "got other values"),
        (torch.tensor([[0.0, float("nan"), 1.0]] * 3), "got other values"),
        ([["and"], ["or"], ["not"]], "got a list"),
    ],
)
def test_operators(lively, batch, operators, message):
    with pytest.raises(ValueError, match=message) as error:
        lively()(**batch, operators=operators)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32])
def test_operators_of_any_kind_of_number(lively, batch, dtype):
    model = lively()
    expected = model(**batch, operators=torch.tensor([[1, 0, 1]] * 3))
    got = model(**batch, operators=torch.tensor([[1, 0, 1]] * 3).to(dtype))
    assert torch.equal(got.last_hidden_state, expected.last_hidden_state)
    assert got.operators.tolist() == [[1, 0, 1]] * 3


def ids(*shape):
    return torch.ones(shape, dtype=torch.long)


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("33 tokens are more than the 32 positions .* max_length=32", lambda m, _: m(ids(1, 33))),
        ("the batch is empty: got 0 sentences of 5 tokens", lambda m, _: m(ids(0, 5))),
        ("the batch is empty: got 2 sentences of 0 tokens", lambda m, _: m(ids(2, 0))),
        ("exactly one of input_ids and inputs_embeds", lambda m, _: m()),
        ("exactly one of input_ids and inputs_embeds", lambda m, _: m(ids(1, 4), inputs_embeds=torch.ones(1, 4, 16))),
        (r"input_ids must be \(batch, length\), got shape \(4,\)", lambda m, _: m(ids(4))),
        (r"inputs_embeds must be \(batch, length, size\), got shape", lambda m, _: m(inputs_embeds=ids(2, 16))),
        (r"attention_mask must be of shape \(1, 4\), got", lambda m, _: m(ids(1, 4), attention_mask=ids(1, 5))),
        (r"cue_labels must be of shape \(3, 3, 7\), got \(3, 7\)", lambda m, b: m(**b, cue_labels=torch.zeros(3, 7))),
        (r"gate_labels must be of shape \(3, 3\), got \(3, 2\)", lambda m, b: m(**b, gate_labels=torch.zeros(3, 2))),
        (r"triplets must be of shape \(T, 3\), got \(4, 2\)", lambda m, b: m(**b, triplets=ids(4, 2))),
    ],
)
def test_shapes_that_do_not_fit(lively, batch, message, call):
    has_labels = "labels" in message or "triplets" in message
    model = lively(BoolBertForPreTraining if has_labels else BoolBertModel)
    with pytest.raises(ValueError, match=message):
        call(model, batch)
