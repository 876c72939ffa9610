"""A reader's BERT as an ONNX program in int8 that gives numbers to each token.

The products of a BERT in int8 take two fifths of the time of `int8_encoder.Graph`; most of the rest looks for the
largest number of each token, by which its numbers are rounded, and multiplies by it afterwards. Where it is known in
advance how large the numbers become (train/reader_ranges.py), each column is divided by its own range within a product
or a `LayerNormalization` that is computed anyway, and nothing is looked for. The inputs of a layer's last product
alone, which differ most, keep a scale for each token.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.retrieval.int8_encoder import Graph, Vectors, in_int8

GELU_LEAST = 0.17  # GELU gives nothing below -0.17
ROOM = 16  # of the 256 steps of an int8, for what GELU gives below 0

Ranges = Mapping[str, Vectors]


def token_program(
    weights: Mapping[str, npt.NDArray[Any]],
    config: Any,
    head: npt.NDArray[Any],
    bias: npt.NDArray[Any],
    ranges: Ranges | None = None,
    *,
    float32: bool = False,
) -> bytes:
    """A BERT's layers and a head as an ONNX program for one text: `embeddings` (1, length, size), of words and places
    together, to `vector` (1, length, outputs).

    ranges: for the inputs of each product in RANGED, by its name, how large each of their numbers becomes. float32:
    nothing is rounded.
    """
    if float32:
        graph: Graph = FloatGraph(weights, config)
    else:
        graph = Graph(weights, config) if ranges is None else RangedGraph(weights, config, ranges)
    found = graph.node("MatMul", graph.token_states("embeddings"), graph.stored("head", head.T.astype(np.float32)))
    graph.output("Add", [found, graph.stored("head_bias", bias.astype(np.float32))], "vector")
    return graph.program({"embeddings": config.hidden_size}, [1, "length", len(bias)])


def ranged_products(layer: str) -> tuple[str, str, str]:
    """The products of a layer whose inputs have ranges: that of queries, keys and values, by its first name, that of
    what was attended to, and that before GELU."""
    return f"{layer}.attention.self.query", f"{layer}.attention.output.dense", f"{layer}.intermediate.dense"


class FloatGraph(Graph):
    """As `Graph`, with nothing rounded."""

    def product(self, inputs: str, *names: str) -> str:
        matrix = np.concatenate([self.weights[f"{name}.weight"] for name in names]).T.astype(np.float32)
        return str(self.node("MatMul", inputs, self.stored(f"{names[0]}.columns", matrix)))


class RangedGraph(Graph):
    """As `Graph`, with ranges of what is rounded that are known in advance."""

    def __init__(self, weights: Mapping[str, npt.NDArray[Any]], config: Any, ranges: Ranges):
        super().__init__(weights, config)
        self._ranges = {name: np.maximum(value.astype(np.float32), 1e-4) for name, value in ranges.items()}
        self._step = self.stored("step", np.array(1 / 127, np.float32))
        self._middle = self.stored("middle", np.array(128, np.uint8))
        self._gelu_step = self.stored("gelu_step", np.array([1 / (255 - ROOM)], np.float32))
        self._gelu_least = self.stored("gelu_least", np.array([GELU_LEAST / ROOM], np.float32))
        self._room = self.stored("room", np.array([ROOM], np.uint8))
        self._rooms = ""  # `room` for each token

    def token_states(self, embeddings: str) -> str:
        added, before = embeddings, "embeddings.LayerNorm"
        for number in range(self.config.num_hidden_layers):
            layer = f"encoder.layer.{number}"
            own, output, inside = ranged_products(layer)
            states, rounded = self.normalised_and_rounded(added, before, self._ranges[own])
            kinds = (own, own.replace("query", "key"), own.replace("query", "value"))
            # What is attended to is a mean of values, so their ranges are those of the next product's inputs.
            ranges = (None, None, self._ranges[output])
            parts = [
                self.ranged_product(rounded, name, self._ranges[own], after)
                for name, after in zip(kinds, ranges, strict=True)
            ]
            heads = self.config.num_attention_heads
            attended = self.node("Attention", *parts, q_num_heads=heads, kv_num_heads=heads)
            added = self.node("Add", states, self.ranged_product(self.rounded(attended), output, self._ranges[output]))
            before = f"{layer}.attention.output.LayerNorm"
            states, rounded = self.normalised_and_rounded(added, before, self._ranges[inside])
            active = self.node("Gelu", self.ranged_product(rounded, inside, self._ranges[inside]))
            with_bias = self.node("Add", states, self.constant(f"{layer}.output.dense.bias"))
            added = self.node("Add", with_bias, self.product_after_gelu(active, f"{layer}.output.dense"))
            before = f"{layer}.output.LayerNorm"
        return self.normalised(added, before)

    def normalised_and_rounded(self, states: str, name: str, ranges: Vectors) -> tuple[str, str]:
        """The output of a `LayerNormalization`, and the same divided by the ranges of its numbers, in int8."""
        own = [
            self.stored(f"{name}.{part}.ranged", (self.weights[f"{name}.{part}"] / ranges).astype(np.float32))
            for part in ("weight", "bias")
        ]
        divided = self.node("LayerNormalization", states, *own, epsilon=self.config.layer_norm_eps)
        return self.node("Mul", divided, self.stored(f"{name}.ranges", ranges)), self.rounded(divided)

    def rounded(self, states: str) -> str:
        """Numbers from -1 to 1 in int8."""
        return str(self.node("QuantizeLinear", states, self._step, self._middle))

    def ranged_product(self, rounded: str, name: str, ranges: Vectors, after: Vectors | None = None) -> str:
        """What a product makes of inputs that were divided by their ranges and rounded, with its bias. after: ranges by
        which its outputs are divided."""
        weight, bias = (self.weights[f"{name}.{part}"].astype(np.float32) for part in ("weight", "bias"))
        after = np.ones(len(bias), np.float32) if after is None else after
        matrix, scales = in_int8((weight / after[:, None]).T * ranges[:, None])
        stored = self.stored(f"{name}.rounded", matrix), self.stored(f"{name}.scales", scales)
        own = self.stored(f"{name}.bias.ranged", bias / after)
        given = (rounded, stored[0], self._step, stored[1], self._middle, "", own)
        return str(self.node("MatMulIntegerToFloat", *given, domain="com.microsoft"))

    def product_after_gelu(self, active: str, name: str) -> str:
        """What a product makes of GELU's outputs, without its bias. Few of their steps are below 0, as GELU's are."""
        matrix, scales = in_int8(self.weights[f"{name}.weight"].T)
        stored = self.stored(f"{name}.rounded", matrix), self.stored(f"{name}.scales", scales)
        highest = self.node("ReduceMax", active, self._last)
        scale = self.node("Max", self.node("Mul", highest, self._gelu_step), self._gelu_least)  # per token
        scales_of_tokens = self.node("Reshape", scale, self._last)
        self._rooms = self._rooms or self.node("Expand", self._room, self.node("Shape", scales_of_tokens))
        tokens = self.node("QuantizeLinear", active, scales_of_tokens, self._rooms, axis=1)
        given = (tokens, stored[0], self._one, stored[1], self._room)
        return str(self.node("Mul", self.node("MatMulIntegerToFloat", *given, domain="com.microsoft"), scale))
