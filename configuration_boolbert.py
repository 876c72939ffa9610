# Copyright 2026 The Bool-BERT authors. All rights reserved.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Bool-BERT's configuration: BERT's, and what Boolean-aware attention adds to it."""

from typing import Any, ClassVar

from transformers import BertConfig
from transformers.activations import ACT2FN

# The one order of the operators: every tensor with an operator axis follows it.
OPERATORS = ("and", "or", "not")
# What NOT excludes: a subject of a text, members of a set, or a property of the answer, which leaves the vector alone.
KINDS_OF_NOT = ("topic", "set", "property")
# What the reader's head says, and how it is decoded. Folders of another version are read by the code that lies in them.
READING_VERSION = 3
GATES = ("learned", "cue")
POOLINGS = ("cls", "mean")
NOT_REACHES = ("outside", "both", "all")
EXCLUSIONS = ("none", "scalar", "head")
SIZES = ("operator_embedding_size", "bias_hidden_size", "cue_context_size", "scope_reader_layers", "window")
# The paper's own form: scopes without a reader, tiny biases to begin with, and a vector that is only pooled.
PAPER: dict[str, Any] = {
    "scope_reader_size": 0,
    "reader_rank": 0,
    "initial_scope_logit": 0.0,
    "initial_not_bias": 0.05,
    "not_reach": "all",
    "exclusion": "none",
    "branches": 0,
    "cue_activation": "linear",
    "cue_kernel": 1,
}
UPPER_HALF = "upper half"
# What an upgraded encoder is: only NOT changes its attention. AND and OR are read, but the plain encoder's own way with
# them stays as it is until training has something better. The lower layers see the whole query, so that the words that
# are wanted keep their meaning; docs/results.md has what this is worth.
UPGRADED: dict[str, Any] = {
    "reader_rank": 16,
    "gate": "cue",
    "boolean_layers": UPPER_HALF,
    "attention_operators": ["not"],
    "not_reach": "outside",
    "exclusion": "scalar",
    "exclusion_weight": 0.3,
    "penalty": 0.35,
    "penalty_above": 0.45,
}
# At most 1.5% more parameters than BERT: a bias of rank 8, a narrow reader, and layers that correct it token by token.
# `BoolBertConfig(**LITE)`, or `boolbert upgrade --lite`; docs/results.md has what it costs in quality.
LITE: dict[str, Any] = {
    "boolean_layers": UPPER_HALF,
    "bias_hidden_size": 8,
    "scope_reader_size": 64,
    "cue_context_size": 32,
    "conv_kernel": 1,
}
# The modules and parameters that Boolean-aware attention adds to a BERT.
BOOLEAN_PARTS = frozenset(
    {"operator_embeddings", "cue_predictor", "scope_reader", "reader", "gate"}
    | {"scope_predictor", "bias_predictor", "composer"}
)
# Those that read cues, scopes and operators; the others act on what they read.
READING_PARTS = ("operator_embeddings", "cue_predictor", "scope_reader", "reader", "gate")
# Where `trust_remote_code=True` finds the classes. A checkpoint of either model serves both: heads load as encoders.
AUTO_MAP = {
    "AutoConfig": "configuration_boolbert.BoolBertConfig",
    "AutoModel": "modeling_boolbert.BoolBertModel",
    "AutoModelForPreTraining": "modeling_boolbert.BoolBertForPreTraining",
}


class BoolBertConfig(BertConfig):
    """The configuration of a [`BoolBertModel`]; the defaults are base size.

    Args (beyond those of `BertConfig`):
        operator_embedding_size: size of an operator's embedding.
        window: AND and OR clip a token's distance to its cue at this many tokens.
        sigma: initial spread of the Gaussian weight on that distance; learned.
        threshold: initial probability above which a token is in an operator's scope; learned.
        conv_kernel: how many tokens the scope predictor's convolution sees; odd.
        bias_hidden_size: hidden size of the bias predictor; half of `hidden_size` if not given.
        scope_reader_size: width of the reader that finds the scopes on the embeddings, once for all layers; 0 for none.
        reader_rank: rank of the adapters with which the encoder's own layers read cues and scopes, in place of that
            reader; 0 for none. A model reads well with them, and takes twice as long for a query.
        reading_version: of that reader; those of another version are refused.
        scope_reader_layers: how many convolutions it has; each doubles how far it sees. Five see 31 tokens either way.
        initial_scope_logit: what a fresh scope predictor says of every token; below 0, nothing is in scope, so a fresh
            Bool-BERT is the BERT that it was made from.
        initial_bias: what AND and OR add to the attention to a token in their scope before anything is learned.
        initial_not_bias: what NOT takes from it. 8 leaves 0.03% of the attention.
        attention_operators: the operators that change attention. The others are read, but leave attention alone.
        not_reach: who attends less to what NOT excludes: "outside" (the tokens outside of the scope), "both" (and the
            tokens inside attend less to the outside), or "all" (every token, as in the paper).
        exclusion: how the sentence vector excludes: "none", "scalar" (one learned strength) or "head" (a strength for
            each query, from what is wanted and what is excluded).
        exclusion_weight: the strength to begin with.
        penalty: how much a document loses, where what is wanted and what is excluded are kept apart (search and
            evaluation do), of its cosine with what is excluded that exceeds `penalty_above`; learned; 0 for none.
        penalty_above: that threshold to begin with; learned.
        branches: up to how many alternatives of OR get a vector of their own; 0 for none.
        gate: what switches the operators on when the caller does not: "learned" (a classifier) or "cue" (on where a
            cue is found; with adapters, NOT and OR are on where they reach a word).
        gate_temperature: divides the learned gate's logits.
        cue_activation: the non-linearity of the cue predictor; "linear" gives the paper's formula.
        cue_kernel: how many tokens the cue predictor sees, so that "other than" is told from "other"; odd, 1 for none.
        cue_context_size: to how many numbers a neighbour is reduced there.
        gumbel_temperature: of the scope's Gumbel-sigmoid, in training.
        boolean_layers: indices of the layers with Boolean-aware attention, or "upper half"; all if not given.
        pooling: how a sentence becomes one vector: "cls" or "mean".
        scope_weight: weight of the scope loss in pretraining.
        triplet_weight: weight of the triplet loss in pretraining (the paper's alpha).
        triplet_margin: margin of the triplet loss.
    """

    model_type: ClassVar[str] = "boolbert"

    operator_embedding_size: int = 10
    window: int = 5
    sigma: float = 2.0
    threshold: float = 0.5
    conv_kernel: int = 3
    bias_hidden_size: int = None  # type: ignore[assignment]  # derived below
    scope_reader_size: int = 128
    scope_reader_layers: int = 5
    reader_rank: int = 0
    reading_version: int = READING_VERSION
    initial_scope_logit: float = -3.0
    initial_bias: float = 0.05
    initial_not_bias: float = 8.0
    attention_operators: list[str] = None  # type: ignore[assignment]  # derived below
    not_reach: str = "outside"
    exclusion: str = "scalar"
    exclusion_weight: float = 0.3
    penalty: float = 0.0
    penalty_above: float = 0.45
    branches: int = 0
    gate: str = "learned"
    gate_temperature: float = 0.1
    cue_activation: str = "gelu"
    cue_kernel: int = 5
    cue_context_size: int = 64
    gumbel_temperature: float = 1.0
    boolean_layers: list[int] = None  # type: ignore[assignment]  # derived below
    pooling: str = "cls"
    scope_weight: float = 1.0
    triplet_weight: float = 0.2
    triplet_margin: float = 1.0

    def __post_init__(self, **kwargs):
        super().__post_init__(**{"auto_map": dict(AUTO_MAP), **kwargs})
        if self.bias_hidden_size is None:
            self.bias_hidden_size = self.hidden_size // 2
        if self.boolean_layers is None:
            self.boolean_layers = list(range(self.num_hidden_layers))
        elif self.boolean_layers == UPPER_HALF:
            self.boolean_layers = list(range(self.num_hidden_layers // 2, self.num_hidden_layers))
        if self.attention_operators is None:
            self.attention_operators = list(OPERATORS)
        self.check()
        self.boolean_layers = sorted(self.boolean_layers)

    @property
    def reads_scopes(self) -> bool:
        """Whether scopes are read before any layer runs, by adapters or by the scope reader."""
        return bool(self.reader_rank or self.scope_reader_size)

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs):
        """As in transformers, but a value given by the caller is there before the defaults are derived and checked."""
        version = config_dict.get("reading_version", 1)
        if config_dict.get("reader_rank") and version != READING_VERSION:
            raise ValueError(
                f"its reader is of version {version}, and this code reads version {READING_VERSION}: make the model "
                "again with `boolbert upgrade`"
            )
        fields = cls.__dataclass_fields__.keys() - {"dtype"}
        given = {name: kwargs.pop(name) for name in fields & kwargs.keys()}
        return super().from_dict({**config_dict, **given}, **kwargs)

    @classmethod
    def get_config_dict(cls, *args, **kwargs):
        """Any BERT's configuration is a Bool-BERT's with the defaults, so it loads without a warning."""
        config_dict, kwargs = super().get_config_dict(*args, **kwargs)
        if config_dict.get("model_type") == "bert":
            config_dict = {**config_dict, "model_type": cls.model_type}
        return config_dict, kwargs

    def check(self) -> None:
        """Raise a ValueError for the first value that no Bool-BERT can be built with."""
        for name in (*SIZES, "conv_kernel", "cue_kernel"):
            _require(self, name, _is_integer(getattr(self, name)) and getattr(self, name) >= 1, "a whole number >= 1")
        for name in ("conv_kernel", "cue_kernel"):
            _require(self, name, getattr(self, name) % 2 == 1, "odd, so that it is centred on its token")
        for name in ("scope_reader_size", "reader_rank", "branches"):
            _require(self, name, _is_integer(getattr(self, name)) and getattr(self, name) >= 0, "a whole number >= 0")
        temperatures = ("gate_temperature", "gumbel_temperature")
        for name in ("sigma", "initial_bias", "initial_not_bias", "exclusion_weight", *temperatures):
            _require(self, name, _is_number(getattr(self, name)) and getattr(self, name) > 0, "a number > 0")
        _require(self, "threshold", _is_number(self.threshold) and 0 < self.threshold < 1, "a number between 0 and 1")
        for name in ("initial_scope_logit", "penalty_above"):
            _require(self, name, _is_number(getattr(self, name)), "a number")
        for name in ("scope_weight", "triplet_weight", "triplet_margin", "penalty"):
            _require(self, name, _is_number(getattr(self, name)) and getattr(self, name) >= 0, "a number >= 0")
        choices = {"gate": GATES, "pooling": POOLINGS, "not_reach": NOT_REACHES, "exclusion": EXCLUSIONS}
        for name, values in choices.items():
            _require(self, name, getattr(self, name) in values, f"one of {values}")
        operators = self.attention_operators
        listed = isinstance(operators, (list, tuple)) and all(name in OPERATORS for name in operators)
        _require(self, "attention_operators", listed, f"a list of names out of {OPERATORS}")
        if not self.reads_scopes and (self.exclusion != "none" or self.branches):
            raise ValueError(
                "exclusion and branches need scopes to be read: set reader_rank or scope_reader_size, or "
                "exclusion='none' and branches=0"
            )
        known = isinstance(self.cue_activation, str) and self.cue_activation in ACT2FN
        _require(self, "cue_activation", known, f"one of {sorted(ACT2FN)}")
        layers, indices = self.boolean_layers, range(self.num_hidden_layers)
        listed = isinstance(layers, (list, tuple)) and all(_is_integer(layer) and layer in indices for layer in layers)
        distinct = listed and len(set(layers)) == len(layers)
        _require(self, "boolean_layers", distinct, f"a list of different layer indices from 0 to {len(indices) - 1}")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size must be a multiple of num_attention_heads, got {self.hidden_size} and "
                f"{self.num_attention_heads}"
            )
        if self.is_decoder or self.add_cross_attention:
            raise ValueError("is_decoder and add_cross_attention must be False: Bool-BERT is an encoder")


def is_boolean(name: str) -> bool:
    """Whether a parameter of this name is one that plain BERT does not have.

    >>> is_boolean("query.encoder.layer.0.attention.self.scope_predictor.threshold"), is_boolean("query.pooler.bias")
    (True, False)
    """
    return not BOOLEAN_PARTS.isdisjoint(name.split("."))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _require(config: BoolBertConfig, name: str, holds: bool, expected: str) -> None:
    if not holds:
        raise ValueError(f"{name} must be {expected}, got {getattr(config, name)!r}")


# Saving a model copies this file and the modeling file next to the weights.
BoolBertConfig.register_for_auto_class()
