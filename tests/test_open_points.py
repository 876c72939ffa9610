"""The paper's open points, one by one: what its literal reading does, and what is done instead (docs/paper.md)."""

import math

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoTokenizer, BertModel

from boolbert import BoolBertModel
from boolbert.configuration_boolbert import PAPER
from boolbert.modeling_boolbert import BooleanContext, straight_through
from boolbert.reading_boolbert import gaussian_exponent, relative_positions

AND, OR, NOT = 0, 1, 2
SHOWN = dict.fromkeys(("output_attentions", "output_scopes", "output_biases"), True)


def test_1_a_not_scope_on_the_query_axis_does_nothing(lively, batch):
    """(B, heads, L, 1) adds one number to a whole row of scores, and softmax does not see it."""
    scores = torch.randn(1, 2, 5, 5)
    scope, bias = torch.randint(0, 2, (1, 2, 5)).float(), torch.rand(1, 2, 5)
    literal = scores - (scope * bias)[..., :, None]
    assert_close(literal.softmax(-1), scores.softmax(-1))
    on_keys = scores - (scope * bias)[..., None, :]
    assert not torch.allclose(on_keys.softmax(-1), scores.softmax(-1), atol=1e-3)

    # In the model a negated token gets less attention from every token; here in the paper's form.
    model = lively(attn_implementation="eager", not_reach="all")
    off, negated = torch.zeros(3, 3, dtype=torch.long), torch.tensor([[0, 0, 1]] * 3)
    with torch.no_grad():
        plain, boolean = (model(**batch, operators=operators, **SHOWN) for operators in (off, negated))
    inside = boolean.scopes[0][0, NOT, 0].bool()
    assert 0 < inside.sum() < 7
    attention, plain_attention = boolean.attentions[0][0, 0], plain.attentions[0][0, 0]
    assert (attention[:, inside].sum(-1) < plain_attention[:, inside].sum(-1)).all()


def test_2_clipping_at_zero_makes_nots_weight_largest_before_its_cue():
    cue, sigma = 3, 2.0
    literal = [math.exp(-(max(0, i - cue) ** 2) / (2 * sigma**2)) for i in range(7)]
    assert literal[:3] == [1.0, 1.0, 1.0]
    assert literal[4] < 1.0

    cues = torch.zeros(1, 3, 7, dtype=torch.bool)
    cues[0, :, cue] = True
    _, reached = relative_positions(cues, window=5)
    assert reached[0, NOT].tolist() == [False] * 3 + [True] * 4
    assert reached[0, AND].all()


@pytest.mark.parametrize("activation", ["linear", "gelu"])
def test_3_a_linear_cue_scorer_cannot_tell_operators_apart(lively, batch, activation):
    model = lively(cue_activation=activation)
    with torch.no_grad():
        logits = model(**batch).cue_logits
    difference = (logits[:, NOT] - logits[:, AND])[batch["attention_mask"].bool()]
    if activation == "linear":
        assert difference.std() < 1e-5  # the same shift for every token: no token is more NOT than AND than another
    else:
        assert difference.std() > 0.1


@pytest.mark.parametrize("cue_kernel", [1, 5])
def test_4_a_cue_of_several_words_needs_its_neighbours(lively, cue_kernel):
    """Only the word after "other" changes. Without context, "other" cannot know."""
    model = lively(cue_kernel=cue_kernel)
    with torch.no_grad():
        logits = [model(torch.tensor([[2, 10, next_word, 3]])).cue_logits[0, :, 1] for next_word in (20, 30)]
    assert torch.allclose(*logits, atol=1e-6) == (cue_kernel == 1)


def test_5_a_threshold_gets_no_gradient_through_the_indicator():
    probability = torch.tensor([0.2, 0.7, 0.9], requires_grad=True)
    threshold = torch.tensor(0.5, requires_grad=True)
    hard = (probability > threshold).float()
    assert not hard.requires_grad

    # The usual straight-through estimator passes the gradient to P alone: the threshold would never learn.
    straight_through(hard, probability).sum().backward()
    assert probability.grad.tolist() == [1.0, 1.0, 1.0]
    assert threshold.grad is None

    probability.grad = None
    scope = straight_through(hard, probability - threshold)
    assert scope.tolist() == [0.0, 1.0, 1.0]
    scope.sum().backward()
    assert probability.grad.tolist() == [1.0, 1.0, 1.0]
    assert threshold.grad.item() == -3.0


def test_6_several_cues_count_by_the_nearest_and_none_gives_no_weight(lively):
    module = lively().encoder.layer[0].attention.self.bias_predictor
    cues = torch.zeros(1, 3, 9, dtype=torch.bool)
    cues[0, :2, [1, 7]] = True
    distance, _ = relative_positions(cues, window=5)
    assert distance[0, AND].tolist() == [1, 0, 1, 2, 3, 2, 1, 0, 1]
    assert (module.position_weights(gaussian_exponent(cues, window=5))[0, NOT] == 0).all()


def test_7_and_binds_pairs_in_scope_by_the_keys_bias(lively, batch):
    """Log-attention against the plain one: within a row it rises by s_i s_j b_j, up to the row's own constant."""
    model = lively(attn_implementation="eager").double()
    with torch.no_grad():
        plain, both = (model(**batch, operators=torch.tensor([[on, 0, 0]] * 3), **SHOWN) for on in (0, 1))
    head = next(head for head in range(2) if 0 < both.scopes[0][0, AND, head].sum() < 7)
    scope, bias = both.scopes[0][0, AND, head], both.biases[0][0, AND, head]
    rise = both.attentions[0][0, head].log() - plain.attentions[0][0, head].log()
    expected = scope[:, None] * scope[None, :] * bias[None, :]
    assert_close(rise - rise[:, :1], expected - expected[:, :1], atol=1e-6, rtol=1e-5)


QUERIES = [
    "films set in Vietnam but not about war",
    "novels by Agatha Christie or Dorothy Sayers that are not set in England",
    "birds of Colombia and Ecuador other than hummingbirds",
    "1990s comedies",
]


@pytest.fixture
def berts(pretrained_bert):
    """Real queries, a plain BERT, and a function that makes Bool-BERTs of it."""
    batch = AutoTokenizer.from_pretrained(pretrained_bert)(QUERIES, padding=True, return_tensors="pt")
    bert = BertModel.from_pretrained(pretrained_bert).eval()
    return batch, bert, lambda **changes: BoolBertModel.from_pretrained(pretrained_bert, **changes).eval()


def test_8_the_papers_form_starts_almost_like_its_bert(berts):
    """Nearly the same with all gates on, the same with all gates off."""
    batch, bert, make = berts
    model = make(**PAPER)
    with torch.no_grad():
        plain = bert(**batch).last_hidden_state
        fresh = model(**batch, operators=torch.ones(4, 3), output_scopes=True, output_biases=True)
        off = model(**batch, operators=torch.zeros(4, 3)).last_hidden_state
    assert all(0.02 < bias.mean() < 0.1 for bias in fresh.biases)
    assert all(scope.any() for scope in fresh.scopes)
    for pooled in (lambda x: x[:, 0], lambda x: (x * batch["attention_mask"][..., None]).sum(1)):
        cosine = torch.cosine_similarity(pooled(fresh.last_hidden_state), pooled(plain))
        assert (cosine > 0.999).all(), cosine
    real = batch["attention_mask"].bool()
    assert not torch.allclose(fresh.last_hidden_state[real], plain[real], atol=1e-4)
    assert_close(off[real], plain[real], atol=1e-5, rtol=1e-4)


# Point 9, padding, is test_properties.py::test_padding_changes_nothing and test_pretraining.py.


@pytest.mark.parametrize("gate", ["learned", "cue"])
def test_10_text_alone_is_enough(lively, batch, gate):
    model = lively(gate=gate)
    with torch.no_grad():  # each operator's best cue score is above the line in some sentences only
        best = model(**batch).cue_logits.masked_fill(batch["attention_mask"][:, None] == 0, -99).amax(-1)
        model.cue_predictor.score_bias -= best.median() - 1e-3
        out = model(**batch)
    probabilities = torch.sigmoid(out.cue_logits) * batch["attention_mask"][:, None]
    expected = out.gate_logits > 0 if gate == "learned" else (probabilities > 0.5).any(-1)
    assert out.operators.bool().tolist() == expected.tolist()
    assert 0 < out.operators.sum() < 9


def test_11_a_narrow_convolution_cannot_see_the_cue_and_the_reader_can(lively):
    """Only the second word changes. What is said of the tenth must follow, and a convolution of width 3 cannot know."""
    model = lively()
    ids = torch.arange(5, 20).unsqueeze(0)
    other = ids.clone()
    other[0, 1] = 40
    with torch.no_grad():
        readings = [model.read(text) for text in (ids, other)]
        hidden = [model.embeddings(text) for text in (ids, other)]
        predictor = model.encoder.layer[0].attention.self.scope_predictor
        no_cues = torch.zeros(1, 3, 15)
        context = BooleanContext(model.operator_embeddings, torch.ones(1, 3), no_cues, no_cues, torch.ones(1, 15), None)
        narrow = [predictor.logits(states, context)[0, 9] for states in hidden]
    assert torch.equal(*narrow)
    assert not torch.allclose(readings[0].scope_logits[0, :, 9], readings[1].scope_logits[0, :, 9], atol=1e-4)


def test_12_excluded_words_still_see_one_another(lively, batch):
    """What stands outside does not look in; in the paper's form the excluded words do not see one another either."""
    operators = torch.tensor([[0, 0, 1]] * 3)
    for not_reach, blinded in (("outside", False), ("all", True)):
        model = lively(attn_implementation="eager", not_reach=not_reach).double()
        with torch.no_grad():
            for layer in model.encoder.layer:
                layer.attention.self.bias_predictor.output_bias.fill_(100.0)
            plain = model(**batch, boolean=False, output_attentions=True).attentions[0][0, 0]
            out = model(**batch, operators=operators, output_attentions=True, output_scopes=True)
        inside = out.scopes[0][0, NOT, 0].bool()
        assert 1 < inside.sum() < 6
        attention = out.attentions[0][0, 0]
        assert (attention[~inside][:, inside] < 1e-4).all()
        within = attention[inside][:, inside].sum(-1)
        assert (within < 1e-4).all() if blinded else torch.allclose(within, plain[inside][:, inside].sum(-1))


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_13_a_fresh_model_is_its_bert_to_the_bit_whatever_the_gates(berts, pooling):
    batch, bert, make = berts
    model = make(pooling=pooling)
    with torch.no_grad():
        plain = bert(**batch).last_hidden_state
        outputs = [model(**batch, operators=torch.full((4, 3), gate)) for gate in (0, 1)]
        outputs += [model(**batch), model(**batch, boolean=False)]
        strength = model(**batch, output_biases=True).biases
    mask = batch["attention_mask"].unsqueeze(-1)
    pooled = plain[:, 0] if pooling == "cls" else (plain * mask).sum(1) / mask.sum(1).clamp_min(1)
    real = batch["attention_mask"].bool()
    for output in outputs:
        assert torch.equal(output.last_hidden_state[real], plain[real])
        assert torch.equal(output.sentence_embedding, pooled)
    assert all((bias[:, NOT] > 6).all() for bias in strength)  # a scope means something as soon as it is learned
