"""The configuration: its defaults, what it refuses, and the sizes that follow from it."""

import json

import pytest
import torch
from transformers import BertConfig, BertModel

from boolbert import BoolBertConfig, BoolBertModel, boolean
from boolbert.configuration_boolbert import LITE, OPERATORS, PAPER, UPGRADED, is_boolean


def test_defaults_are_the_papers():
    config = BoolBertConfig()
    assert (config.operator_embedding_size, config.window, config.sigma, config.threshold) == (10, 5, 2.0, 0.5)
    assert (config.conv_kernel, config.bias_hidden_size) == (3, 384)
    assert (config.gate, config.gate_temperature) == ("learned", 0.1)
    assert config.boolean_layers == list(range(12))
    assert (config.hidden_size, config.num_hidden_layers, config.vocab_size) == (768, 12, 30522)


def test_an_upgraded_model_has_boolean_attention_in_its_upper_half():
    assert BoolBertConfig(**UPGRADED).boolean_layers == [6, 7, 8, 9, 10, 11]
    assert BoolBertConfig(boolean_layers="upper half", num_hidden_layers=3).boolean_layers == [1, 2]


def test_the_operators_stand_in_one_order_everywhere():
    assert OPERATORS == ("and", "or", "not") == tuple(boolean.OPERATORS)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ({}, 121e6),
        ({"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}, 378e6),
    ],
)
def test_parameter_counts_are_the_papers(size, expected):
    """Within 1% in the paper's form, within 1.5% with the scope reader."""
    with torch.device("meta"):
        paper, model = (BoolBertModel(BoolBertConfig(**size, **changes)) for changes in (PAPER, {}))
    assert paper.num_parameters() == pytest.approx(expected, rel=0.01)
    assert model.num_parameters() == pytest.approx(expected, rel=0.015)
    boolean = sum(parameter.numel() for name, parameter in model.named_parameters() if is_boolean(name))
    with torch.device("meta"):
        bert = BertModel(BertConfig(**size))
    assert boolean == model.num_parameters() - bert.num_parameters()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"operator_embedding_size": 0}, "operator_embedding_size must be a whole number >= 1, got 0"),
        ({"window": 2.5}, "window must be a whole number >= 1, got 2.5"),
        ({"window": True}, "window must be a whole number >= 1, got True"),
        ({"sigma": 0.0}, "sigma must be a number > 0, got 0.0"),
        ({"sigma": "wide"}, "sigma must be a number > 0, got 'wide'"),
        ({"threshold": 1.0}, "threshold must be a number between 0 and 1, got 1.0"),
        ({"conv_kernel": 4}, "conv_kernel must be odd"),
        ({"bias_hidden_size": -8}, "bias_hidden_size must be a whole number >= 1, got -8"),
        ({"gate": "given"}, r"gate must be one of \('learned', 'cue'\), got 'given'"),
        ({"gate_temperature": 0}, "gate_temperature must be a number > 0, got 0"),
        ({"cue_activation": "nothing"}, "cue_activation must be one of .*'gelu'.*'linear'.*, got 'nothing'"),
        ({"cue_activation": None}, "cue_activation must be one of"),
        ({"gumbel_temperature": -1.0}, "gumbel_temperature must be a number > 0, got -1.0"),
        ({"boolean_layers": [0, 12]}, r"boolean_layers must be a list of different layer indices from 0 to 11, got \["),
        ({"boolean_layers": [-1]}, "boolean_layers must be a list of different layer indices from 0 to 11"),
        ({"boolean_layers": [3, 3]}, "boolean_layers must be a list of different layer indices"),
        ({"boolean_layers": "all"}, "boolean_layers must be a list of different layer indices"),
        ({"pooling": "max"}, "pooling must be one of"),
        ({"hidden_size": 100}, "hidden_size must be a multiple of num_attention_heads, got 100 and 12"),
        ({"is_decoder": True}, "Bool-BERT is an encoder"),
    ],
)
def test_a_bad_value_says_what_would_be_right(change, message):
    with pytest.raises(ValueError, match=message):
        BoolBertConfig(**change)


def test_a_value_changed_later_is_checked_when_a_model_is_built(tiny_config):
    tiny_config.gate = "sometimes"
    with pytest.raises(ValueError, match="gate must be one of"):
        BoolBertModel(tiny_config)


def test_json_round_trip(tmp_path):
    config = BoolBertConfig(boolean_layers=(11, 0), gate="cue", cue_activation="linear", sigma=3)
    config.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["boolean_layers"] == [0, 11]
    again = BoolBertConfig.from_pretrained(tmp_path)
    assert again.to_dict() == config.to_dict()


def test_a_smaller_model_from_a_larger_ones_configuration(tmp_path):
    BertConfig().save_pretrained(tmp_path)
    config = BoolBertConfig.from_pretrained(tmp_path, num_hidden_layers=4, hidden_size=384)
    assert (config.boolean_layers, config.bias_hidden_size) == ([0, 1, 2, 3], 192)


MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}


@pytest.mark.parametrize(
    ("shape", "changes", "least", "most"),
    [
        ({}, LITE, 1, 1.015),
        (MINILM, LITE, 1, 1.015),
        (MINILM, UPGRADED, 1.07, 1.08),
        (MINILM, {**UPGRADED, **LITE}, 1.035, 1.045),
    ],
)
def test_how_many_parameters_are_added(shape, changes, least, most):
    with torch.device("meta"):  # names and sizes alone
        plain, changed = BertModel(BertConfig(**shape)), BoolBertModel(BoolBertConfig(**shape, **changes))
    assert least < changed.num_parameters() / plain.num_parameters() <= most
