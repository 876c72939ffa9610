"""The losses of the paper's appendix, against loops."""

import math

import pytest
import torch

from boolbert import BoolBertForPreTraining


def cross_entropy(logit, label):
    p = 1 / (1 + math.exp(-logit))
    return -(label * math.log(p) + (1 - label) * math.log(1 - p))


def mean_loss(logits, labels, lengths=(7, 5, 2)):
    """The mean over the real tokens of each sentence and operator, one by one, but for ignored labels."""
    places = [(b, e, i) for b, length in enumerate(lengths) for e in range(3) for i in range(length)]
    terms = [cross_entropy(logits[at].item(), labels[at].item()) for at in places if labels[at] != -100]
    return sum(terms) / len(terms)


@pytest.fixture
def model(lively):
    return lively(BoolBertForPreTraining)


@pytest.fixture
def labels():
    generator = torch.Generator().manual_seed(5)
    return {
        "cue_labels": torch.randint(0, 2, (3, 3, 7), generator=generator),
        "gate_labels": torch.randint(0, 2, (3, 3), generator=generator),
        "scope_labels": torch.randint(0, 2, (3, 3, 7), generator=generator),
        "triplets": torch.tensor([[0, 1, 2], [2, 0, 1]]),
    }


def test_cue_loss_is_the_mean_over_real_tokens(model, batch, labels):
    out = model(**batch, cue_labels=labels["cue_labels"])
    assert out.cue_loss.item() == pytest.approx(mean_loss(out.cue_logits, labels["cue_labels"]), rel=1e-5)
    assert out.loss.item() == pytest.approx(out.cue_loss.item())
    assert out.gate_loss is None


def test_padding_and_ignored_labels_never_count(model, batch, labels):
    loss = model(**batch, cue_labels=labels["cue_labels"]).cue_loss
    other = labels["cue_labels"].clone()
    other[:, :, :][~batch["attention_mask"].bool()[:, None].expand_as(other)] = 1
    assert model(**batch, cue_labels=other).cue_loss.item() == pytest.approx(loss.item())

    ignored = labels["cue_labels"].clone()
    ignored[0, :, 3:] = -100
    out = model(**batch, cue_labels=ignored)
    assert out.cue_loss.item() == pytest.approx(mean_loss(out.cue_logits, labels["cue_labels"], (3, 5, 2)), rel=1e-5)


def test_gate_loss_is_the_mean_over_sentences_and_operators(model, batch, labels):
    out = model(**batch, gate_labels=labels["gate_labels"])
    expected = mean_loss(out.gate_logits[..., None], labels["gate_labels"][..., None], (1, 1, 1))
    assert out.gate_loss.item() == pytest.approx(expected, rel=1e-4)


def test_scope_loss_is_the_mean_over_the_reader_and_every_head_of_every_layer(model, batch, labels):
    ignored = labels["scope_labels"].clone()
    ignored[0, 1, 2:] = -100
    out = model(**batch, scope_labels=ignored)
    rows = [out.scope_logits, *(layer[:, :, head] for layer in out.layer_scope_logits for head in range(2))]
    assert len(rows) == 1 + 2 * 2
    means = [mean_loss(logits, ignored) for logits in rows]
    assert out.scope_loss.item() == pytest.approx(sum(means) / len(means), rel=1e-4)
    assert out.loss.item() == pytest.approx(out.scope_loss.item())


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_triplet_loss(lively, batch, labels, pooling):
    model = lively(BoolBertForPreTraining, pooling=pooling, triplet_margin=0.5, exclusion="none")
    out = model(**batch, triplets=labels["triplets"])
    vectors = []
    for row, length in zip(out.last_hidden_state.tolist(), [7, 5, 2], strict=True):
        real = row[:length]
        vectors.append(row[0] if pooling == "cls" else [sum(column) / length for column in zip(*real, strict=True)])
    terms = [
        max(0.0, math.dist(vectors[a], vectors[p]) - math.dist(vectors[a], vectors[n]) + 0.5)
        for a, p, n in labels["triplets"].tolist()
    ]
    assert max(terms) > 0
    assert out.triplet_loss.item() == pytest.approx(sum(terms) / 2, rel=1e-4)


def test_the_sum_weighs_the_triplets_by_alpha(model, batch, labels):
    out = model(**batch, **labels)
    expected = out.cue_loss + out.gate_loss + out.scope_loss + 0.2 * out.triplet_loss
    assert out.loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert model(**batch).loss is None


@pytest.mark.parametrize("gate", ["learned", "cue"])
def test_gradients_reach_every_new_parameter(lively, batch, labels, gate):
    """Theta and sigma included, through the triplets; the gate and the cue predictor by their own losses."""
    model = lively(BoolBertForPreTraining, gate=gate, exclusion="head", triplet_margin=100.0).train()
    model(**batch, operators=torch.ones(3, 3), **labels).loss.backward()
    for name, parameter in model.named_parameters():
        if "pooler" in name or name.endswith("key.bias"):  # a bias on every key shifts whole rows of scores
            continue
        assert parameter.grad.abs().max() > 0, name
        assert torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize(("gate", "reached"), [("learned", "gate.output.weight"), ("cue", "cue_predictor.score_bias")])
def test_a_predicted_gate_learns_from_the_task_too(lively, batch, gate, reached):
    model = lively(BoolBertForPreTraining, gate=gate, triplet_margin=100.0)
    model(**batch, triplets=torch.tensor([[0, 1, 2]])).loss.backward()
    assert model.bert.get_parameter(reached).grad.abs().max() > 0
