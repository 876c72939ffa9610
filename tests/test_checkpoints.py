"""From any plain BERT to a Bool-BERT and back to disk."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close
from transformers import BertConfig, BertForMaskedLM, BertModel

from boolbert import BoolBertConfig, BoolBertForPreTraining, BoolBertModel
from boolbert.configuration_boolbert import is_boolean

CODE = tuple(f"{part}_boolbert.py" for part in ("composing", "configuration", "modeling", "reading"))


@pytest.fixture
def bert_config(tiny_config):
    config = tiny_config.to_dict()
    names = BertConfig().to_dict().keys() - {"model_type", "architectures", "id2label", "label2id"}
    return BertConfig(**{name: config[name] for name in names if name in config})


@pytest.fixture
def bert(bert_config):
    model = BertModel(bert_config).eval()
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter.mul_(10)  # sharper attention than at initialisation, so that a bias on it can be felt
    return model


def states(model, batch, **kwargs):
    with torch.no_grad():
        return model(**batch, **kwargs).last_hidden_state[batch["attention_mask"].bool()]


@pytest.mark.parametrize("model_class", [BoolBertModel, BoolBertForPreTraining])
@pytest.mark.parametrize("source", ["bare", "prefixed", "legacy names"])
def test_any_bert_checkpoint_loads_under_its_own_names(tmp_path, bert, bert_config, batch, source, model_class):
    if source == "prefixed":  # with the `bert.` prefix, and heads that Bool-BERT has no use for
        full = BertForMaskedLM(bert_config)
        full.bert.load_state_dict({k: v for k, v in bert.state_dict().items() if "pooler" not in k})
        full.save_pretrained(tmp_path)
        assert any(name.startswith("bert.") for name in load_file(tmp_path / "model.safetensors"))
    else:
        bert.save_pretrained(tmp_path)
    if source == "legacy names":  # as in bert-base-uncased
        weights = load_file(tmp_path / "model.safetensors")
        renamed = {
            k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
            for k, v in weights.items()
        }
        save_file(renamed, tmp_path / "model.safetensors", metadata={"format": "pt"})

    model, info = model_class.from_pretrained(tmp_path, output_loading_info=True)
    missing = set(info["missing_keys"])
    assert all(is_boolean(name) or (source == "prefixed" and "pooler" in name) for name in missing), missing
    assert {name for name, _ in model.named_parameters() if is_boolean(name)} <= missing
    assert all(name.startswith("cls.") for name in info["unexpected_keys"])
    model.eval()
    off = torch.zeros(3, 3)
    assert_close(states(model, batch, operators=off), states(bert, batch), atol=1e-6, rtol=1e-5)


def test_the_parts_that_a_checkpoint_lacks_are_initialised_as_in_a_new_model(tmp_path, bert):
    bert.save_pretrained(tmp_path)
    model = BoolBertModel.from_pretrained(tmp_path)
    layer = model.encoder.layer[1].attention.self
    assert layer.bias_predictor.sigma.tolist() == [2.0] * 3
    assert layer.scope_predictor.threshold.tolist() == [0.5] * 3
    assert model.cue_predictor.score_bias.item() == -3.0
    assert 0.5 < model.operator_embeddings.std() < 1.5
    assert 0.2 < model.cue_predictor.operator_projection.weight.std() < 0.45
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter).all(), name
        # Nothing is in scope at first: the reader's output, and the layers' corrections of it, start at zero.
        is_zero = "scope_predictor" in name or name == "scope_reader.output.weight"
        if is_boolean(name) and name.endswith("weight") and "norms" not in name:
            assert (parameter.std() > 0.001) != is_zero, name


def test_with_gates_off_it_is_its_bert_also_after_training(tmp_path, bert, batch):
    bert.save_pretrained(tmp_path)
    model = BoolBertForPreTraining.from_pretrained(tmp_path)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = is_boolean(name)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.1)
    model.train()
    for _ in range(5):
        out = model(
            **batch,
            operators=torch.ones(3, 3),
            cue_labels=torch.randint(0, 2, (3, 3, 7)),
            gate_labels=torch.ones(3, 3),
            triplets=torch.tensor([[0, 1, 2]]),
        )
        optimizer.zero_grad()
        out.loss.backward()
        optimizer.step()
    model.eval()
    on = states(model, batch, operators=torch.ones(3, 3))
    assert not torch.allclose(on, states(bert, batch), atol=1e-2)
    assert_close(states(model, batch, operators=torch.zeros(3, 3)), states(bert, batch), atol=1e-5, rtol=1e-4)


def test_a_berts_configuration_is_taken_over_without_a_warning(tmp_path, bert, caplog):
    bert.save_pretrained(tmp_path)
    config = BoolBertConfig.from_pretrained(tmp_path, gate="cue", boolean_layers=[1])
    assert (config.hidden_size, config.num_hidden_layers, config.bias_hidden_size) == (16, 2, 8)
    assert (config.gate, config.boolean_layers, config.model_type) == ("cue", [1], "boolbert")
    assert "model of type" not in caplog.text
    with pytest.raises(ValueError, match="gate must be one of"):
        BoolBertModel.from_pretrained(tmp_path, gate="maybe")


@pytest.mark.parametrize("model_class", [BoolBertModel, BoolBertForPreTraining])
def test_save_and_load_again(tmp_path, lively, batch, model_class):
    model = lively(model_class, boolean_layers=[1], gate="cue", window=3, pooling="mean")
    model.save_pretrained(tmp_path)
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"config.json", "model.safetensors", *CODE}
    saved = json.loads((tmp_path / "config.json").read_text())
    assert saved["auto_map"] == {
        "AutoConfig": "configuration_boolbert.BoolBertConfig",
        "AutoModel": "modeling_boolbert.BoolBertModel",
        "AutoModelForPreTraining": "modeling_boolbert.BoolBertForPreTraining",
    }
    again = model_class.from_pretrained(tmp_path).eval()
    for name in ("gate", "window", "pooling", "boolean_layers", "bias_hidden_size"):
        assert getattr(again.config, name) == getattr(model.config, name)
    assert torch.equal(states(again, batch), states(model, batch))


def test_a_pretrained_head_hands_its_model_on(tmp_path, lively, batch):
    model = lively(BoolBertForPreTraining)
    model.save_pretrained(tmp_path)
    encoder, info = BoolBertModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert torch.equal(states(encoder.eval(), batch), states(model, batch))
