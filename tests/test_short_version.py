"""On a CPU, without gradients, the reading and a Boolean layer take fewer steps: they give what the plain ones give."""

import gc
import weakref

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel

from boolbert import BoolBertModel, short_boolbert
from boolbert import kernels_boolbert as kernels
from boolbert import modeling_boolbert as modeling

OPERATORS = [[1, 1, 1], [0, 0, 1], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
SHORT = ("short_layer", "short_inputs", "short_cue_logits", "short_scope_logits")


@pytest.fixture
def both(monkeypatch):
    """Calls a model, and once more without the short version; what is read has to be the same."""

    def call(model, **inputs):
        with torch.no_grad():
            short = model(**inputs)
            with monkeypatch.context() as patch:
                patch.setattr(modeling, "is_cheaper", lambda *_: False)
                plain = model(**inputs)
        for name in ("cue_logits", "scope_logits"):
            if plain.get(name) is not None:
                torch.testing.assert_close(short[name], plain[name], atol=1e-4, rtol=1e-4)  # they are large
        return short.last_hidden_state, plain.last_hidden_state

    return call


@pytest.fixture
def short_calls(monkeypatch):
    """The names of the short steps that were taken, and whether they gave something."""
    calls = []

    def noted(name, step):
        def call(*args, **kwargs):
            found = step(*args, **kwargs)
            calls.append((name, found is not None))
            return found

        return call

    for name in SHORT:
        monkeypatch.setattr(modeling, name, noted(name, getattr(modeling, name)))
    monkeypatch.setattr(short_boolbert, "short_inputs", modeling.short_inputs)
    return calls


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


@pytest.mark.parametrize("shape", [(1, 16), (4, 8), (5, 8), (5, 20)])
@pytest.mark.parametrize("is_padded", [True, False])
def test_few_tokens_and_many(lively, both, shape, is_padded):
    sentences, length = shape
    ids = torch.randint(1, 64, shape, generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(ids)
    if is_padded:
        mask = (torch.arange(length) < torch.linspace(length // 2, length, sentences).long()[:, None]).long()
    for on in OPERATORS:
        inputs = {"input_ids": ids, "attention_mask": mask, "operators": torch.tensor([on] * sentences)}
        short, plain = both(lively(), **inputs)
        torch.testing.assert_close(short, plain, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("not_reach", ["outside", "both", "all"])
def test_each_sentence_has_its_own_operators(lively, batch, both, not_reach):
    for rows in ([[1, 1, 1], [0, 0, 1], [0, 0, 0]], [[0, 1, 0], [1, 0, 0], [1, 1, 0]]):
        short, plain = both(lively(not_reach=not_reach), **batch, operators=torch.tensor(rows))
        torch.testing.assert_close(short, plain, atol=1e-5, rtol=1e-5)


def test_a_sentence_with_nothing_in_scope_is_bert_s_to_the_bit(lively, batch, monkeypatch):
    """Also among others: query, key and value then come from the products that BERT makes."""
    model, shared = lively(), []

    def noted(*args, **kwargs):
        shared.append(short_boolbert.share(*args, **kwargs))
        return shared[-1]

    monkeypatch.setattr(modeling, "share", noted)
    operators, not_scope = torch.tensor([[0, 0, 1], [0, 0, 1], [0, 0, 0]]), torch.zeros_like(batch["input_ids"])
    not_scope[0, 2:4] = 1
    with torch.no_grad():
        plain = model(**batch, boolean=False).last_hidden_state
        states = model(**batch, operators=operators, not_scope=not_scope).last_hidden_state
        first = {name: tensor[:1] for name, tensor in batch.items()}
        alone = model(**first, operators=operators[:1], not_scope=not_scope[:1]).last_hidden_state
    assert [inputs.is_exact for inputs in shared] == [True, False]
    assert not torch.allclose(states[0], plain[0], atol=1e-3)
    assert torch.equal(states[1:], plain[1:])
    torch.testing.assert_close(alone[0], states[0], atol=1e-5, rtol=1e-5)


@pytest.fixture(params=["oneDNN", "MKL", "none"])
def rearranging(request, monkeypatch):
    """The library that rearranges weights on this machine, and whether it does."""
    monkeypatch.setattr(short_boolbert, "REARRANGES", request.param == "oneDNN")
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", True)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: request.param == "MKL")
    return request.param != "none"


@pytest.fixture
def turned(monkeypatch):
    """The shapes of the weights of which a copy was asked for."""
    asked, keep = [], short_boolbert.keep
    monkeypatch.setattr(
        short_boolbert,
        "keep",
        lambda weights, setting, make: (
            ("turned" in setting and asked.append(weights[0].shape)) or keep(weights, setting, make)
        ),
    )
    return asked


def test_layers_without_a_bias_are_bert_s_to_the_bit(lively, batch, rearranging, turned):
    """Those of a model whose operators are off, and the lower ones of one that has them in its upper half."""
    for settings in ({}, {"boolean_layers": [1]}):
        model = lively(**settings)
        bert = BertModel(BertConfig.from_dict(model.config.to_dict()), add_pooling_layer=False).eval()
        bert.load_state_dict(model.state_dict(), strict=False)
        for inputs in (batch, {"input_ids": batch["input_ids"][:1, :5]}):
            with torch.no_grad():
                expected = bert(**inputs).last_hidden_state
                assert torch.equal(model(**inputs, boolean=False).last_hidden_state, expected)
                off = torch.zeros(len(expected), 3, dtype=torch.long)
                assert torch.equal(model(**inputs, operators=off).last_hidden_state, expected)
    assert not turned


def test_weights_are_turned_where_that_is_faster_and_bits_do_not_matter(
    lively, batch, both, rearranging, turned, monkeypatch
):
    for settings in ({}, {"boolean_layers": [1]}):
        model, turned[:] = lively(**settings), []
        short, plain = both(model, **batch, operators=torch.ones(3, 3))
        torch.testing.assert_close(short, plain, atol=1e-5, rtol=1e-5)
        # Of a Boolean layer all that comes after its attention; of a plain one query, key and value too.
        assert len(turned) == (0 if not rearranging else 6 if not settings else 9)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)  # by somebody else
    monkeypatch.setattr(short_boolbert, "FEW_TOKENS", 20)  # of 21
    turned[:] = []
    both(model, **batch, operators=torch.ones(3, 3))
    assert not turned


@pytest.mark.parametrize("is_boolean", [False, True])
def test_what_is_asked_of_layers(lively, batch, monkeypatch, is_boolean):
    """Hidden states, feed-forward in chunks, hooks and changed parts, as the plain version gives them."""
    given, short_layer = [], modeling.short_layer

    def noted(*args):
        found = short_layer(*args)
        given.append(found is not None)
        return found

    monkeypatch.setattr(modeling, "short_layer", noted)
    inputs = {**batch, "operators": torch.ones(3, 3)} if is_boolean else {**batch, "boolean": False}
    place = 1 if is_boolean else 0  # of the layer that is changed

    def states_of(change, **asked):
        model = lively(boolean_layers=[1])
        change(model.encoder.layer[place])
        given.clear()
        with torch.no_grad():
            short = model(**inputs, **asked)
            with monkeypatch.context() as patch:
                patch.setattr(modeling, "is_cheaper", lambda *_: False)
                plain = model(**inputs, **asked)
        near = {"atol": 1e-5, "rtol": 1e-5} if is_boolean else {"atol": 0, "rtol": 0}
        torch.testing.assert_close(short.last_hidden_state, plain.last_hidden_state, **near)
        return short, list(given)

    def in_chunks(layer):
        layer.chunk_size_feed_forward = 7

    def doubled(layer):
        layer.attention.self.key.register_forward_hook(lambda module, inputs, output: 2 * output)

    all_but_this = [layer != place for layer in range(2)]
    ordinary, used = states_of(lambda layer: None)
    assert used == [True, True]
    assert states_of(in_chunks)[1] == all_but_this
    changed, used = states_of(doubled)
    assert used == all_but_this
    assert not torch.allclose(changed.last_hidden_state, ordinary.last_hidden_state)
    seen = []
    _, used = states_of(lambda layer: layer.register_forward_hook(lambda *_: seen.append(1)))
    assert used == all_but_this
    assert len(seen) == 2
    found, used = states_of(lambda layer: None, output_hidden_states=True)
    assert len(found.hidden_states) == 3
    assert not used

    def wrapped(*path):
        def change(layer):
            owner = layer.get_submodule(".".join(path[:-1]))
            setattr(owner, path[-1], Around(owner.get_submodule(path[-1])))

        return change

    for path in (("attention",), ("attention", "self"), ("attention", "self", "key")):
        assert states_of(wrapped(*path))[1] == all_but_this
    for path in (("attention", "output"), ("intermediate",), ("intermediate", "intermediate_act_fn"), ("output",)):
        assert states_of(wrapped(*path))[1] == [True, True]

    def halved(layer):
        plain = layer.feed_forward_chunk
        layer.feed_forward_chunk = lambda states: plain(states) / 2

    changed, _ = states_of(halved)
    assert not torch.allclose(changed.last_hidden_state, ordinary.last_hidden_state)
    seen.clear()
    states_of(lambda layer: layer.intermediate.intermediate_act_fn.register_forward_hook(lambda *_: seen.append(1)))
    assert len(seen) == 2


@pytest.mark.parametrize("name", ["film", "activation"])
def test_changed_experts_are_asked(lively, batch, both, short_calls, name):
    """Somebody's modulation leaves the layer to the plain version, another activation does not. It gets what it would
    get there, and may keep it."""
    model, seen = lively(), []
    attention = model.encoder.layer[0].attention.self
    owner = attention.scope_predictor if name == "film" else attention.bias_predictor
    setattr(owner, name, Around(getattr(owner, name)))
    owner.get_submodule(name).register_forward_hook(
        lambda module, inputs, output: seen.append((inputs[0], inputs[0].clone()))
    )
    short_calls.clear()
    short, plain = both(model, **batch, operators=torch.ones(3, 3))
    torch.testing.assert_close(short, plain, atol=1e-5, rtol=1e-5)
    assert [is_given for step, is_given in short_calls if step == "short_layer"] == [name == "activation", True]
    (first, first_then), (second, _) = seen
    torch.testing.assert_close(first, second, atol=1e-5, rtol=1e-5)
    assert torch.equal(first, first_then)


def test_layers_of_other_sizes_are_left_to_the_plain_version(lively, batch, both, short_calls):
    for settings in ({"conv_kernel": 5}, {"bias_hidden_size": 4}, {"num_attention_heads": 4}):
        model = lively()
        model.encoder.layer[0] = lively(**settings).encoder.layer[0]
        short_calls.clear()
        short, plain = both(model, **batch, operators=torch.ones(3, 3))
        torch.testing.assert_close(short, plain, atol=1e-5, rtol=1e-5)
        assert [is_given for step, is_given in short_calls if step == "short_layer"] == [False, True]


def test_noise_that_somebody_switched_on_is_honoured(lively, batch):
    model = lively()
    model.encoder.layer[0].attention.self.scope_predictor.train()
    with torch.no_grad():
        first, second = (model(**batch, operators=torch.ones(3, 3)).last_hidden_state for _ in range(2))
    assert not torch.allclose(first, second)


def test_states_whose_memory_is_in_another_order(lively, batch, both, rearranging):
    """Sequences first, as a hook or a replaced part may give them."""
    model = lively()
    model.embeddings.register_forward_hook(
        lambda module, inputs, output: output.transpose(0, 1).contiguous().transpose(0, 1)
    )
    short, plain = both(model, **batch, operators=torch.ones(3, 3))
    torch.testing.assert_close(short, plain, atol=1e-5, rtol=1e-5)


def test_who_watches_all_layers_sees_them(lively, batch, short_calls, monkeypatch):
    """By hooks of all modules, by an attention of their own, by compiling a layer."""
    model, seen = lively(), []

    def layers_given():
        short_calls.clear()
        with torch.no_grad():
            model(**batch, operators=torch.ones(3, 3), output_attentions=False)
        return [is_given for step, is_given in short_calls if step == "short_layer"]

    assert layers_given() == [True, True]
    hook = nn.modules.module.register_module_forward_hook(lambda module, *_: seen.append(type(module)))
    assert layers_given() == []
    assert seen.count(modeling.BoolBertLayer) == 2
    hook.remove()
    sdpa = modeling.ALL_ATTENTION_FUNCTIONS["sdpa"]
    monkeypatch.setitem(modeling.ALL_ATTENTION_FUNCTIONS, "sdpa", lambda *args, **kwargs: sdpa(*args, **kwargs))
    assert layers_given() == []
    monkeypatch.undo()


def test_a_layer_that_was_compiled_is_the_compiled_one(lively, batch):
    model, compiled = lively(), []
    model.encoder.layer[0].compile(backend=lambda graph, _: compiled.append(graph) or graph.forward)
    with torch.no_grad():
        model(**batch, operators=torch.ones(3, 3))
    assert compiled


class Around(nn.Module):
    """Somebody's module around another one, without its attributes."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)


def test_a_whole_layer_that_somebody_replaced_is_asked(lively, batch):
    model = lively(boolean_layers=[1])
    with torch.no_grad():
        expected = model(**batch, boolean=False).last_hidden_state
        model.encoder.layer[0] = Around(model.encoder.layer[0])
        assert torch.equal(model(**batch, boolean=False).last_hidden_state, expected)


def test_what_was_recorded_once_does_not_slow_down_what_follows(lively, batch, monkeypatch):
    model, given = lively(boolean_layers=[1]), []
    short_layer = modeling.short_layer
    monkeypatch.setattr(modeling, "short_layer", lambda *args: given.append(short_layer(*args)) or given[-1])
    with torch.no_grad():
        assert len(model(**batch, boolean=False, output_hidden_states=True).hidden_states) == 3
        assert not given
        model(**batch, boolean=False)
        assert [found is not None for found in given] == [True, True]
        model.config.output_hidden_states = True
        assert len(model(**batch, boolean=False).hidden_states) == 3
        assert len(given) == 2


@pytest.mark.parametrize("on", [0, 1])
def test_dropout_that_somebody_switched_on_is_honoured(lively, batch, on):
    """As those do who want several answers of one model."""
    model = lively(hidden_dropout_prob=0.5, boolean_layers=[1])
    for name, part in model.named_modules():
        if isinstance(part, nn.Dropout) and name.startswith("encoder"):
            part.train()
    with torch.no_grad():
        first, second = (model(**batch, operators=torch.full((3, 3), on)).last_hidden_state for _ in range(2))
    assert not torch.allclose(first, second)


def test_writes_without_a_trace_by_merged_adapters_are_noticed(lively, batch, both, rearranging):
    model, on = lively(boolean_layers=[1]), torch.ones(3, 3)
    both(model, **batch, operators=on)
    lower, upper = model.encoder.layer
    for part in (lower.attention.self.query, lower.intermediate.dense, upper.output.dense, upper.attention.self.value):
        part.weight.data += torch.randn_like(part.weight)
        after, plain = both(model, **batch, operators=on)
        torch.testing.assert_close(after, plain, atol=1e-4, rtol=1e-4)


def test_copies_go_with_the_precision(lively, batch, both, monkeypatch):
    monkeypatch.setattr(short_boolbert, "REARRANGES", True)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", True)
    model = lively()
    both(model, **batch, operators=torch.ones(3, 3))
    weights = [layer.output.dense.weight for layer in model.encoder.layer]
    assert all(kernels._kept[weight].by_setting for weight in weights)
    model.float()
    assert all(kernels._kept[weight].by_setting for weight in weights)
    model.to(torch.bfloat16)
    assert not any(kernels._kept[weight].by_setting for weight in weights)


def test_changed_weights_are_noticed(lively, batch, both, rearranging):
    model, on = lively(), torch.ones(3, 3)
    before, _ = both(model, **batch, operators=on)
    attention = model.encoder.layer[-1].attention.self
    parts = attention.scope_predictor, attention.bias_predictor, attention.query, attention.key, attention.value
    parts += model.cue_predictor, model.scope_reader, *model.encoder.layer[-1].children()
    for parameter in (parameter for part in parts for parameter in part.parameters()):
        with torch.no_grad():
            parameter += 0.1
        after, plain = both(model, **batch, operators=on)
        torch.testing.assert_close(after, plain, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(before, after)
    with torch.no_grad():
        model.operator_embeddings += 1.0
    after, plain = both(model, **batch, operators=on)
    torch.testing.assert_close(after, plain, atol=1e-5, rtol=1e-5)
    model.load_state_dict({name: weight * 0.9 for name, weight in model.state_dict().items()}, assign=True)
    after, plain = both(model, **batch, operators=on)
    torch.testing.assert_close(after, plain, atol=1e-5, rtol=1e-5)


def test_writes_without_a_trace_are_met_by_training(lively, batch, both, rearranging):
    model, on = lively(), torch.ones(3, 3)
    both(model, **batch, operators=on)
    attention = model.encoder.layer[-1].attention.self
    parts = (attention.bias_predictor.output_bias, model.cue_predictor.context.weight)
    layer = model.encoder.layer[-1]
    parts += (layer.attention.output.dense.weight, layer.intermediate.dense.weight, layer.output.dense.weight)
    for parameter in (*parts, model.scope_reader.convolutions[0].weight):
        parameter.data[:1] += 3.0
        after, plain = both(model.train().eval(), **batch, operators=on)
        torch.testing.assert_close(after, plain, atol=1e-5, rtol=1e-5)


def test_hooks_are_called(lively, batch):
    model, called = lively(), []
    layer = model.encoder.layer[-1]
    attention = layer.attention.self
    parts = (attention.bias_predictor.dense, attention.query, layer.intermediate)
    parts += (model.cue_predictor.context_projection, model.scope_reader.norms[1], model.scope_reader.output)
    for part in parts:
        part.register_forward_hook(lambda module, *_: called.append(module))
    with torch.no_grad():
        model(**batch, operators=torch.ones(3, 3))
    assert len(called) == len(parts)


def test_parts_that_somebody_replaced_are_asked(lively, batch, both):
    class Doubled(nn.Linear):
        def forward(self, states):
            return 2 * super().forward(states)

    for name in ("encoder.layer.1.attention.self.value", "cue_predictor.context_projection", "scope_reader.dense"):
        model, on = lively(), torch.ones(3, 3)
        before, _ = both(model, **batch, operators=on)
        old = model.get_submodule(name)
        new = Doubled(old.in_features, old.out_features)
        new.load_state_dict(old.state_dict())
        model.set_submodule(name, new)
        after, plain = both(model, **batch, operators=on)
        torch.testing.assert_close(after, plain, atol=1e-5, rtol=1e-5)
        assert not torch.allclose(before, after)


def test_where_it_applies(lively, batch, short_calls):
    model, on = lively(), torch.ones(3, 3)
    short_calls.clear()
    with torch.inference_mode():
        inferred = model(**batch, operators=on).last_hidden_state
    assert {name for name, _ in short_calls} == set(SHORT)
    assert all(is_given for _, is_given in short_calls)
    with torch.no_grad():
        assert torch.equal(inferred, model(**batch, operators=on).last_hidden_state)

    short_calls.clear()
    model(**batch, operators=on)  # gradients
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        model(**batch, operators=on)
    with torch.no_grad():
        model.train()(**batch, operators=on)
        for dtype in (torch.float64, torch.bfloat16):
            lively().to(dtype)(**batch, operators=on)
        lively()(**batch, operators=on, output_scopes=True)
    assert {name for name, _ in short_calls} == {"short_cue_logits", "short_scope_logits"}  # scopes are recorded


def test_a_model_made_in_inference_mode(lively, batch, short_calls):
    ordinary = lively()
    short_calls.clear()
    with torch.inference_mode():
        model = BoolBertModel(ordinary.config).eval()
        model.load_state_dict(ordinary.state_dict())
        found = model(**batch, operators=torch.ones(3, 3)).last_hidden_state
    assert {name for name, _ in short_calls} == set(SHORT)
    assert not any(is_given for _, is_given in short_calls)  # changes of its weights are not counted
    with torch.no_grad():
        expected = ordinary(**batch, operators=torch.ones(3, 3)).last_hidden_state
    torch.testing.assert_close(found.clone(), expected, atol=1e-5, rtol=1e-5)


def test_what_was_made_goes_with_the_model(lively, batch):
    model = lively()
    with torch.no_grad():
        model(**batch, operators=torch.ones(3, 3))
    attention = model.encoder.layer[-1].attention.self
    weights = attention.query.weight, model.cue_predictor.context_projection.weight, model.scope_reader.norms[0].weight
    seen = [weakref.ref(weight) for weight in weights]
    del model, attention, weights
    gc.collect()
    assert [weight() for weight in seen] == [None] * 3


@pytest.mark.parametrize("length", [1, 2, 7, 40])
def test_the_exponents_of_all_pairs(length):
    cues = torch.rand(4, 3, length, generator=torch.Generator().manual_seed(length)) < 0.2
    found = short_boolbert.near_exponent(cues, 6, modeling.UNREACHED)
    assert torch.equal(found, modeling.gaussian_exponent(cues, 6))
    assert (
        short_boolbert.near_exponent(torch.zeros(1, 3, short_boolbert.LONGEST_PAIRED + 1, dtype=torch.bool), 6, -1.0)
        is None
    )


def test_a_bias_that_somebody_gave_the_reader_counts(lively, batch):
    model = lively()
    with torch.no_grad():
        before = model(**batch).scope_logits
        output = nn.Linear(model.scope_reader.output.in_features, 3)
        output.weight.copy_(model.scope_reader.output.weight)
        output.bias.fill_(3.0)
        model.scope_reader.output = output
        torch.testing.assert_close(model(**batch).scope_logits, before + 3.0, atol=1e-4, rtol=1e-4)
