"""Bad input gets one clear line."""

import pytest
import torch

from boolbert import BoolBertForPreTraining


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        (
            torch.ones(3),
            r"operators must be a \(3, 3\) tensor of 0/1 for and, or, not, or -1 for unknown, got shape \(3,\)",
        ),
        (torch.ones(2, 3), r"got shape \(2, 3\)"),
        (torch.ones(3, 4), r"got shape \(3, 4\)"),
        (torch.tensor([[0, 1, 2]] * 3), "got the value 2"),
        (torch.tensor([[0.0, 0.5, 1.0]] * 3), "got the value 0.5"),
        (torch.tensor([[0.0, float("nan"), 1.0]] * 3), "got the value nan"),
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


def test_longer_than_the_position_table(lively):
    with pytest.raises(ValueError, match=r"33 tokens are more than the 32 positions .* max_length=32"):
        lively()(torch.ones(1, 33, dtype=torch.long))


@pytest.mark.parametrize("shape", [(0, 5), (2, 0)])
def test_empty_batch(lively, shape):
    with pytest.raises(ValueError, match=f"the batch is empty: got {shape[0]} sentences of {shape[1]} tokens"):
        lively()(torch.ones(shape, dtype=torch.long))


def test_neither_or_both_inputs(lively):
    model = lively()
    ids = torch.ones(1, 4, dtype=torch.long)
    with pytest.raises(ValueError, match="exactly one of input_ids and inputs_embeds"):
        model()
    with pytest.raises(ValueError, match="exactly one of input_ids and inputs_embeds"):
        model(ids, inputs_embeds=model.embeddings.word_embeddings(ids))


def test_wrong_shapes(lively):
    model = lively()
    with pytest.raises(ValueError, match=r"input_ids must be \(batch, length\), got shape \(4,\)"):
        model(torch.ones(4, dtype=torch.long))
    with pytest.raises(ValueError, match=r"inputs_embeds must be \(batch, length, size\), got shape \(2, 16\)"):
        model(inputs_embeds=torch.ones(2, 16))
    with pytest.raises(ValueError, match=r"attention_mask must be of shape \(1, 4\), got \(1, 5\)"):
        model(torch.ones(1, 4, dtype=torch.long), attention_mask=torch.ones(1, 5))


def test_labels_of_another_shape(lively, batch):
    model = lively(BoolBertForPreTraining)
    with pytest.raises(ValueError, match=r"cue_labels must be of shape \(3, 3, 7\), got \(3, 7\)"):
        model(**batch, cue_labels=torch.zeros(3, 7))
    with pytest.raises(ValueError, match=r"gate_labels must be of shape \(3, 3\), got \(3, 2\)"):
        model(**batch, gate_labels=torch.zeros(3, 2))
    with pytest.raises(ValueError, match=r"triplets must be of shape \(T, 3\), got \(4, 2\)"):
        model(**batch, triplets=torch.zeros(4, 2, dtype=torch.long))
