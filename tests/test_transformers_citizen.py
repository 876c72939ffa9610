"""What people do with any transformers model works with this one."""

import pytest
import torch
from torch.testing import assert_close
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, flash_attention_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from boolbert import BoolBertConfig, BoolBertForPreTraining, BoolBertModel
from boolbert.modeling_boolbert import BoolBertLayer

ALWAYS = [
    *("last_hidden_state", "pooler_output", "sentence_embedding"),
    *("wanted_embedding", "excluded_embedding", "cue_logits", "gate_logits", "operators", "scope_logits", "scope"),
]
OPERATORS = torch.tensor([[1, 0, 1], [0, 1, 0], [1, 1, 1]])


def states(model, batch, **kwargs):
    with torch.no_grad():
        return model(**batch, operators=OPERATORS, **kwargs).last_hidden_state[batch["attention_mask"].bool()]


def test_outputs(lively, batch):
    out = lively(attn_implementation="eager")(
        **batch, output_scopes=True, output_biases=True, output_hidden_states=True, output_attentions=True
    )
    assert list(out.keys()) == [*ALWAYS, *("hidden_states", "attentions", "scopes", "biases")]
    assert out.last_hidden_state.shape == (3, 7, 16)
    assert out.pooler_output.shape == (3, 16)
    assert out.cue_logits.shape == (3, 3, 7)
    assert out.gate_logits.shape == out.operators.shape == (3, 3)
    assert [scope.shape for scope in out.scopes] == [(3, 3, 2, 7)] * 2
    assert [bias.shape for bias in out.biases] == [(3, 3, 2, 7)] * 2
    assert [hidden.shape for hidden in out.hidden_states] == [(3, 7, 16)] * 3
    assert torch.equal(out.hidden_states[-1], out.last_hidden_state)
    assert [weights.shape for weights in out.attentions] == [(3, 2, 7, 7)] * 2
    assert_close(out.attentions[0].sum(-1), torch.ones(3, 2, 7))


def test_what_is_not_asked_for_is_not_returned(lively, batch):
    out = lively()(**batch)
    assert list(out.keys()) == ALWAYS
    as_tuple = lively()(**batch, return_dict=False)
    assert isinstance(as_tuple, tuple)
    assert torch.equal(as_tuple[0], out.last_hidden_state)


def test_inputs_embeds(lively, batch):
    model = lively()
    embeds = model.get_input_embeddings()(batch["input_ids"])
    assert_close(
        states(model, {"inputs_embeds": embeds, "attention_mask": batch["attention_mask"]}), states(model, batch)
    )


def test_only_the_chosen_layers_are_boolean(lively, batch):
    model = lively(boolean_layers=[1])
    assert [isinstance(layer, BoolBertLayer) for layer in model.encoder.layer] == [False, True]
    assert len(model(**batch, output_scopes=True, output_biases=True).scopes) == 1
    assert_close(states(lively(boolean_layers=[1], attn_implementation="eager"), batch), states(model, batch))
    plain = lively(boolean_layers=[])
    assert plain(**batch, output_scopes=True, output_biases=True).scopes == ()


def test_a_mask_over_pairs_of_tokens_is_taken_as_by_any_bert(lively, batch):
    """(B, 1, L, L), boolean or additive."""
    model = lively()
    pairs = batch["attention_mask"].bool()[:, None, None, :].expand(3, 1, 7, 7)
    additive = torch.zeros(3, 1, 7, 7).masked_fill(~pairs, torch.finfo(torch.float32).min)
    for mask in (pairs, additive):
        with torch.no_grad():
            out = model(batch["input_ids"], attention_mask=mask, operators=OPERATORS)
        real = batch["attention_mask"].bool()
        assert_close(out.last_hidden_state[real], states(model, batch), atol=1e-5, rtol=1e-4)


def test_flash_attention_gets_what_its_kernels_want(lively, batch, monkeypatch):
    """Equal head sizes that are a multiple of 8, the 2D mask, and the true scale. The stand-in computes it slowly."""
    seen = []

    def stand_in(module, query, key, value, attention_mask, dropout=0.0, scaling=None, **kwargs):
        seen.append((query.shape, key.shape, value.shape, attention_mask.shape, scaling, dropout))
        scores = (query @ key.transpose(2, 3)) * scaling
        scores = scores.masked_fill(attention_mask[:, None, None, :] == 0, float("-inf"))
        return (scores.softmax(-1) @ value).transpose(1, 2), None

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "slow_flash", stand_in)
    monkeypatch.setitem(ALL_MASK_ATTENTION_FUNCTIONS._global_mapping, "slow_flash", flash_attention_mask)
    model = lively()
    expected = states(model, batch)
    model.config._attn_implementation = "slow_flash"
    assert_close(states(model, batch), expected, atol=1e-5, rtol=1e-4)
    assert seen == [((3, 2, 7, 16), (3, 2, 7, 16), (3, 2, 7, 16), (3, 7), 8**-0.5, 0.0)] * 2


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_gives_the_same_gradients(lively, batch, reentrant):
    labels = {"gate_labels": OPERATORS, "triplets": torch.tensor([[0, 1, 2]])}

    def gradients(checkpointing):
        model = lively(BoolBertForPreTraining, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        model.train()
        torch.manual_seed(7)  # the same Gumbel noise
        model(**batch, **labels).loss.backward()
        return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}

    plain, checkpointed = gradients(False), gradients(True)
    assert plain.keys() == checkpointed.keys()
    for name, gradient in plain.items():
        assert_close(checkpointed[name], gradient, atol=1e-6, rtol=1e-4, msg=name)


# Two convolutions one after the other are as many as it takes; compiling takes the longer the more there are.
SMALL_GRAPH = {"num_hidden_layers": 1, "boolean_layers": [0], "scope_reader_layers": 2}


of_both_readers = pytest.mark.parametrize("reader_rank", [0, 4])


@pytest.mark.long
@pytest.mark.parametrize(("gate", "reader_rank"), [("learned", 0), ("cue", 0), ("given", 0), ("cue", 4)])
def test_torch_compile_in_one_graph(lively, batch, gate, reader_rank):
    model = lively(**SMALL_GRAPH, reader_rank=reader_rank, **({} if gate == "given" else {"gate": gate}))
    inputs = {**batch, **({"operators": OPERATORS} if gate == "given" else {})}
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        expected, got = (act(**inputs, output_scopes=True, output_biases=True) for act in (model, compiled))
    assert_close(got.last_hidden_state, expected.last_hidden_state, atol=1e-5, rtol=1e-4)
    assert_close(got.scopes[0], expected.scopes[0])


@of_both_readers
def test_meta_device(tiny_config, reader_rank):
    with torch.device("meta"):
        model = BoolBertModel(BoolBertConfig(**{**tiny_config.to_dict(), "reader_rank": reader_rank}))
    assert all(parameter.is_meta for parameter in model.parameters())
    out = model(torch.ones(2, 5, dtype=torch.long, device="meta"), operators=torch.ones(2, 3, device="meta"))
    assert out.last_hidden_state.shape == (2, 5, 16)


@pytest.mark.parametrize("training", [False, True])
def test_autocast_in_bfloat16(lively, batch, training):
    model = lively(BoolBertForPreTraining).train(training)
    expected = states(model, batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(**batch, operators=OPERATORS, gate_labels=OPERATORS, triplets=torch.tensor([[0, 1, 2]]))
        assert out.loss.dtype == torch.float32
    out.loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
    if not training:
        got = out.last_hidden_state[batch["attention_mask"].bool()].float()
        assert torch.cosine_similarity(got, expected).min() > 0.95


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_model_in_half_precision(lively, batch, dtype, implementation):
    model = lively(attn_implementation=implementation, std=0.2)
    expected = states(model, batch)
    got = states(model.to(dtype), batch)
    assert got.dtype == dtype
    assert torch.isfinite(got).all()
    assert torch.cosine_similarity(got.float(), expected).median() > 0.98


def test_resizing_the_vocabulary(lively, batch):
    model = lively()
    expected = states(model, batch)
    model.resize_token_embeddings(70)
    assert_close(states(model, batch), expected)


@pytest.mark.long
@of_both_readers
def test_export(lively, batch, reader_rank):
    """One graph for any batch and length, the operators an input of it."""
    model = lively(**SMALL_GRAPH, reader_rank=reader_rank)
    batch_size, length = torch.export.Dim("batch", max=64), torch.export.Dim("length", max=32)
    program = torch.export.export(
        model,
        (),
        {**batch, "operators": OPERATORS},
        dynamic_shapes={
            "input_ids": {0: batch_size, 1: length},
            "attention_mask": {0: batch_size, 1: length},
            "operators": {0: batch_size},
        },
    )
    ids, operators = torch.randint(1, 64, (5, 11)), torch.randint(0, 2, (5, 3))
    mask = torch.ones_like(ids)
    got = program.module()(input_ids=ids, attention_mask=mask, operators=operators)
    with torch.no_grad():
        expected = model(ids, attention_mask=mask, operators=operators)
    assert_close(got.last_hidden_state, expected.last_hidden_state, atol=1e-5, rtol=1e-4)
