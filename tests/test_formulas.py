"""Each formula of the model against its slow version, in double precision."""

import pytest
import slow_reference as slow
import torch
from torch.nn.functional import gelu
from torch.testing import assert_close

from boolbert import BoolBertForRetrieval
from boolbert.modeling_boolbert import BooleanContext
from boolbert.reading_boolbert import gaussian_exponent, relative_positions


@pytest.fixture
def model(lively):
    return lively().double()


@pytest.fixture
def inputs(model, batch):
    """Embeddings, a mask, and cue probabilities on both sides of one half."""
    with torch.no_grad():
        hidden = model.embeddings(batch["input_ids"])
    generator = torch.Generator().manual_seed(3)
    mask = batch["attention_mask"].double()
    cue_probs = torch.rand(3, 3, 7, generator=generator, dtype=torch.double) * mask[:, None]
    return hidden, mask, cue_probs, model.operator_embeddings.detach()


def context_of(cue_probs, operator_embeddings, mask):
    """What a layer gets, without a reader and with every operator on."""
    distance = gaussian_exponent(cue_probs > 0.5, window=5)
    return BooleanContext(operator_embeddings, torch.ones(len(mask), 3), cue_probs, distance, mask, None)


@pytest.mark.parametrize(
    ("changes", "activation"),
    [
        *(({"cue_kernel": kernel}, gelu) for kernel in (1, 3, 5)),
        ({"cue_kernel": 1, "cue_activation": "linear"}, lambda x: x),  # the paper's scorer
    ],
)
def test_cue_logits(lively, inputs, changes, activation):
    model = lively(**changes).double()
    hidden, mask, _, _ = inputs
    operators = model.operator_embeddings.detach()
    expected = slow.cue_logits(model.cue_predictor, hidden, operators, mask, activation)
    assert_close(model.cue_predictor(hidden, operators, mask).detach(), expected)


@pytest.mark.parametrize("conv_kernel", [1, 3, 5])
def test_scope(lively, inputs, conv_kernel):
    model = lively(conv_kernel=conv_kernel).double()
    hidden, mask, cue_probs, operators = inputs
    module = model.encoder.layer[0].attention.self.scope_predictor
    with torch.no_grad():
        module.threshold.copy_(torch.tensor([0.3, 0.5, 0.6]))
        scope, _ = module(hidden, context_of(cue_probs, operators, mask))
    expected = slow.scope(module, hidden, cue_probs, operators, mask)
    assert 0.1 < expected.mean() < 0.9  # both values occur, or the test would show nothing
    assert_close(scope, expected)


def test_scope_has_the_gradient_of_probability_minus_threshold(model, inputs):
    hidden, mask, cue_probs, operators = inputs
    module = model.encoder.layer[0].attention.self.scope_predictor
    hidden = hidden.clone().requires_grad_()
    weights = torch.randn(3, 3, 2, 7, dtype=torch.double)
    (module(hidden, context_of(cue_probs, operators, mask))[0] * weights).sum().backward()
    got = {"hidden": hidden.grad.clone(), **{n: p.grad.clone() for n, p in module.named_parameters()}}

    hidden.grad = None
    module.zero_grad()
    probabilities = torch.sigmoid(module.logits(hidden, context_of(cue_probs, operators, mask))).permute(0, 2, 3, 1)
    surrogate = (probabilities - module.threshold[:, None, None]) * mask[:, None, None, :]
    (surrogate * weights).sum().backward()
    assert_close(got["hidden"], hidden.grad)
    for name, parameter in module.named_parameters():
        assert_close(got[name], parameter.grad, msg=name)
        assert got[name].abs().sum() > 0, name


def test_training_samples_the_scope_with_logistic_noise(lively, batch):
    """P(in scope) under Gumbel-sigmoid at temperature 1 and threshold 1/2 is the scope probability itself."""
    model = lively(std=0.2)
    module = model.encoder.layer[0].attention.self.scope_predictor.train()
    hidden = model.embeddings(batch["input_ids"][:1]).detach().expand(4000, -1, -1)
    cue_probs, mask = torch.zeros(4000, 3, 7), torch.ones(4000, 7)
    with torch.no_grad():
        scope, _ = module(hidden, context_of(cue_probs, model.operator_embeddings, mask))
        logits = module.logits(hidden[:1], context_of(cue_probs[:1], model.operator_embeddings, mask[:1]))
    assert set(scope.unique().tolist()) == {0.0, 1.0}
    assert_close(scope.mean(0), torch.sigmoid(logits)[0].permute(1, 2, 0), atol=0.04, rtol=0)


@pytest.mark.parametrize(
    ("cues", "operator", "expected"),
    [
        ([0, 0, 1, 0, 0, 0, 0, 0, 0, 0], "and", [2, 1, 0, 1, 2, 3, 3, 3, 3, 3]),
        ([0, 0, 1, 0, 0, 0, 0, 1, 0, 0], "or", [2, 1, 0, 1, 2, 2, 1, 0, 1, 2]),
        ([0, 0, 1, 0, 0, 0, 0, 1, 0, 0], "not", [None, None, 0, 1, 2, 3, 4, 0, 1, 2]),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "and", [None] * 10),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "not", [None] * 9 + [0]),
    ],
)
def test_relative_positions_by_hand(cues, operator, expected):
    row = ("and", "or", "not").index(operator)
    all_cues = torch.zeros(1, 3, 10, dtype=torch.bool)
    all_cues[0, row] = torch.tensor(cues, dtype=torch.bool)
    distance, reached = relative_positions(all_cues, window=3)
    got = [d if r else None for d, r in zip(distance[0, row].tolist(), reached[0, row].tolist(), strict=True)]
    assert got == expected


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("not_reach", ["outside", "both", "all"])
@pytest.mark.parametrize("gate", [[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
def test_attention_is_softmax_with_the_dense_bias(lively, batch, implementation, not_reach, gate):
    model = lively(attn_implementation=implementation, not_reach=not_reach).double()
    operators = torch.tensor([gate] * 3)
    mask = batch["attention_mask"]
    captured = {}
    layer = model.encoder.layer[1].attention.self
    layer.register_forward_hook(lambda _, args, out: captured.update(hidden=args[0], out=out))
    with torch.no_grad():
        out = model(**batch, operators=operators, output_scopes=True, output_biases=True)
        hidden, (output, weights) = captured["hidden"], captured["out"]
        split = [p(hidden).view(3, 7, 2, 8).transpose(1, 2) for p in (layer.query, layer.key, layer.value)]
    dense = slow.boolean_bias(out.scopes[1], out.biases[1], operators, not_reach)
    assert (dense.abs().max() > 0.1) == any(gate)
    expected, expected_weights = slow.attention(*split, dense, mask)
    real = mask.bool()
    assert_close(output[real], expected.transpose(1, 2).reshape(3, 7, 16)[real])
    if implementation == "eager":
        assert_close(weights, expected_weights)


def test_the_whole_forward_pass_from_slow_parts(lively, batch):
    """Embeddings, cues, gate and both layers, every Boolean part from loops."""
    model = lively().double()
    mask = batch["attention_mask"]
    with torch.no_grad():
        for layer in model.encoder.layer:
            layer.attention.self.bias_predictor.sigma.copy_(torch.tensor([0.7, 2.0, 3.0]))
        out = model(**batch, output_scopes=True, output_biases=True)
        hidden = model.embeddings(batch["input_ids"])
        operators = model.operator_embeddings
        cue_probs = torch.sigmoid(slow.cue_logits(model.cue_predictor, hidden, operators, mask)) * mask[:, None]
        gate = (slow.gate_logits(model.gate, hidden, mask, 0.1) > 0).double()
        reader = slow.reader_logits(model.scope_reader, hidden, cue_probs, mask)
        assert gate.tolist() == out.operators.tolist()
        for index, layer in enumerate(model.encoder.layer):
            part = layer.attention.self
            scope = slow.scope(part.scope_predictor, hidden, cue_probs, operators, mask, reader)
            bias = slow.bias(part.bias_predictor, hidden, cue_probs > 0.5, operators, model.config.window)
            real = mask[:, None, None, :].expand_as(scope).bool()
            assert bias[real].std() > 0.05
            assert_close(out.scopes[index], scope)
            assert_close(out.biases[index][real], bias[real], rtol=1e-4, atol=1e-5)
            split = [p(hidden).view(3, 7, 2, 8).transpose(1, 2) for p in (part.query, part.key, part.value)]
            attended, _ = slow.attention(*split, slow.boolean_bias(scope, bias, gate), mask)
            attended = layer.attention.output(attended.transpose(1, 2).reshape(3, 7, 16), hidden)
            hidden = layer.feed_forward_chunk(attended)
    assert gate.sum() > 0
    real = mask.bool()
    assert_close(out.last_hidden_state[real], hidden[real], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("not_reach", ["outside", "both", "all"])
def test_the_fast_path_has_the_dense_forms_gradients(lively, batch, not_reach):
    """Scopes and biases get the same gradient through the columns as through the matrix S."""
    layer = lively(not_reach=not_reach).double().encoder.layer[0].attention.self
    generator = torch.Generator().manual_seed(2)
    scope = (torch.rand(3, 3, 2, 7, generator=generator, dtype=torch.double) > 0.5).double().requires_grad_()
    bias = torch.rand(3, 3, 2, 7, generator=generator, dtype=torch.double).requires_grad_()
    gate = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0]], dtype=torch.double)
    query_side, key_side = layer.boolean_columns(scope, bias, gate)
    fast = query_side @ key_side.transpose(-1, -2) * layer.scaling

    strength = gate[:, :, None, None] * bias
    rows, columns = scope.unsqueeze(-1), scope.unsqueeze(-2)  # s_i, s_j
    dense = (rows * columns * strength.unsqueeze(-2))[:, :2].sum(1)
    row, column = rows[:, 2], columns[:, 2]
    weakened = {"all": column, "outside": (1 - row) * column, "both": (1 - row) * column + row * (1 - column)}
    dense = dense - weakened[not_reach] * strength[:, 2].unsqueeze(-2)
    assert_close(fast, dense)
    weights = torch.randn(fast.shape, generator=generator, dtype=torch.double)
    got, expected = (torch.autograd.grad((form * weights).sum(), (scope, bias)) for form in (fast, dense))
    assert_close(got, expected)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("branches", [0, 2, 4])
def test_query_vectors(lively, batch, pooling, branches):
    """Exclusion and alternatives from loops, over random scopes."""
    composer = lively(pooling=pooling, branches=branches).double().composer
    generator = torch.Generator().manual_seed(4)
    hidden = torch.randn(40, 9, 16, generator=generator, dtype=torch.double)
    mask = (torch.arange(9) < torch.randint(1, 10, (40, 1), generator=generator)).double()
    scope = torch.randint(0, 2, (40, 3, 9), generator=generator) * mask.long()[:, None]
    with torch.no_grad():
        got = composer.search(hidden, mask, scope, None)
        own = composer(hidden, mask, scope, None)
        weight = float(torch.nn.functional.softplus(composer.strength))
    expected = slow.query_vectors(hidden, mask, scope, pooling, weight, branches)
    assert {len(vectors) for vectors in expected} >= ({1} if branches == 0 else {1, 3})
    for row, vectors in enumerate(expected):
        assert got["query_mask"][row].sum() == len(vectors)
        assert_close(got["query_vectors"][row][got["query_mask"][row]], vectors, atol=1e-5, rtol=1e-4)
    assert_close(got["sentence_embedding"], got["query_vectors"][:, 0])
    assert all(torch.equal(own[name], got[name]) for name in own)


def test_a_given_strength(lively, batch):
    """One for each sentence, NaN for the learned one; and vectors that can be saved."""
    model = lively(branches=2, penalty=1.0)
    head = BoolBertForRetrieval(model.config).eval()
    head.bert = model
    operators, learned = torch.ones(3, 3, dtype=torch.long), float("nan")
    with torch.no_grad():
        own, expected, some = (
            head(**batch, operators=operators, not_weight=weights)
            for weights in (None, torch.full((3,), 0.4), torch.tensor([learned, 0.4, learned]))
        )
    for name in ("query_vectors", "search_vectors", "penalty", "sentence_embedding"):
        assert torch.equal(some[name][0], own[name][0])
        assert torch.equal(some[name][1], expected[name][1])
    assert not torch.equal(own.query_vectors, expected.query_vectors)
    assert torch.equal(own.last_hidden_state, model(**batch, operators=operators).last_hidden_state)
    assert torch.equal(own.sentence_embedding, model(**batch, operators=operators).sentence_embedding)
    assert own.sentence_embedding.is_contiguous()
