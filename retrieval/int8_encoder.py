"""Documents on a CPU in int8: twice as fast as in float32, and the vectors have a cosine of about .998 to those.

A BERT is written as an ONNX program in half a second. Weights and activations are rounded to int8, with a scale for
each column of weights and for each token. One text at a time, on as many threads as there are: the same bits come out
whatever other texts are encoded beside it, so an index is the same whether it was built in one go or in ten.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from boolbert.core.environment import without_telemetry
from boolbert.core.errors import RetrievalError, first_line
from boolbert.retrieval.evidence import unit_length
from boolbert.retrieval.models import is_cosine, side_modules
from boolbert.retrieval.shards import FLOAT32, INT8

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Vectors = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
# AVX-512 VNNI, AVX-VNNI and ARM's dot products, as /proc/cpuinfo calls them: without them int8 gains nothing.
INSTRUCTIONS = {"avx512_vnni", "avx_vnni", "asimddp"}
# Other processors add two products in 16 bits, where 2 x 255 x 127 has no room: there weights have half as many steps.
STEPS, STEPS_IN_16_BITS = 127, 63
EXACT = frozenset(INSTRUCTIONS)
TINY = np.finfo(np.float32).tiny
LEAST_SIZE = 128  # of a BERT's hidden states: smaller ones gain nothing
AT_ONCE = 8  # texts that a thread takes at a time
# Encoded by torch too before a program is used. All vectors must have this cosine at least.
CHECKED = ("a", "Owls are birds that hunt at night, and hardly make a sound.", "Ünïcode, 1952.\n" * 90)
LEAST_COSINE = 0.98
# ONNX Runtime joins an addition and `LayerNormalization` into one operator that takes four times as long as both.
SLOW_FUSION = "SkipLayerNormFusion"


class CannotUseInt8(Exception):
    """Why a model's documents cannot be encoded in int8 on this machine."""


def int8_encoder(
    model: "SentenceTransformer", precision: str | None, name: object, *, float32: bool = False
) -> "Int8Encoder | None":
    """What encodes a model's documents in int8; None where they are encoded in float32.

    precision: that of the index `name` they are added to, which goes on as it began; None for a new one. float32: the
    user wants no int8.
    """
    if float32 and precision == INT8:
        raise RetrievalError(f"{name}: its vectors were computed in int8; leave --float32 out, or index into a new one")
    if float32 or precision == FLOAT32:
        return None
    try:
        return Int8Encoder.of(model)
    except CannotUseInt8 as reason:
        if precision == INT8:
            what = "new ones are computed in float32 and have a cosine of about .998 to those in int8"
            print(f"note: {name}: its vectors were computed in int8, and here {reason}: {what}", file=sys.stderr)
        return None


class Int8Encoder:
    """A BERT's document side, from texts to vectors.

    tokens: the token ids of texts. is_cosine: whether vectors are compared by it, and made of length 1. fingerprint:
    by which an index knows the document encoder.
    """

    def __init__(
        self,
        program: bytes,
        tokens: Callable[[Sequence[str]], list[Ids]],
        *,
        is_cosine: bool,
        is_normalised: bool,
        fingerprint: Callable[[], str],
    ):
        self._session = open_program(program)
        self.tokens, self.is_cosine, self.fingerprint = tokens, is_cosine, fingerprint
        self._is_normalised = is_cosine or is_normalised
        self.size: int = self._session.get_outputs()[0].shape[-1]

    @classmethod
    def of(cls, model: "SentenceTransformer") -> "Int8Encoder":
        """A model's, compared with it on a few texts. Raises `CannotUseInt8` where there is none on this machine."""
        from boolbert.retrieval.batches import Preparation, encode_inputs
        from boolbert.retrieval.fingerprints import model_fingerprint

        if model.device.type != "cpu":
            raise CannotUseInt8(f"the model is on {model.device}")
        check_processor()
        is_normalised, preparation = _check_parts(model), Preparation.of(model, "document")
        if preparation is None:
            raise CannotUseInt8("the model does more with texts than to tokenize them")

        def tokens(texts: Sequence[str]) -> list[Ids]:
            found = preparation.tokens(texts)
            return np.split(found.ids, found.offsets[1:-1]) if texts else []

        transformer, pooling = side_modules(model, "document")[:2]
        weights = {name: value.detach().numpy() for name, value in transformer.model.state_dict().items()}
        try:
            encoder = cls(
                program_of(weights, transformer.model.config, is_mean=pooling.pooling_mode == "mean"),
                tokens,
                is_cosine=is_cosine(model),
                is_normalised=is_normalised,
                fingerprint=lambda: model_fingerprint(model, "document"),
            )
            found, expected = encoder(CHECKED), encode_inputs(model, CHECKED, "document", len(CHECKED))
        except Exception as error:  # of onnx or ONNX Runtime, which have many kinds
            raise CannotUseInt8(first_line(error)) from error
        lowest = (unit_length(found) * unit_length(expected)).sum(1).min()
        if not lowest >= LEAST_COSINE:
            raise CannotUseInt8(f"its vectors would have a cosine of {lowest:.2f} to those in float32")
        return encoder

    def __call__(self, texts: Sequence[str], on_batch: Callable[[int], object] = lambda count: None) -> Vectors:
        """The vectors of texts. on_batch: called with how many more are done."""
        rows, found = self.tokens(texts), [np.empty((0, self.size), np.float32)]
        with ThreadPoolExecutor(threads()) as pool:
            for vectors in pool.map(
                self._encode, (rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE))
            ):
                found.append(vectors)
                on_batch(len(vectors))
        return np.concatenate(found)

    def _encode(self, rows: Sequence[Ids]) -> Vectors:
        places = (np.arange(len(ids), dtype=np.int32) for ids in rows)
        texts = ({"ids": ids[None], "places": place[None]} for ids, place in zip(rows, places, strict=True))
        found = np.concatenate([self._session.run(None, text)[0] for text in texts])
        return unit_length(found) if self._is_normalised else found


def threads() -> int:
    """As many as torch would take."""
    chosen = os.environ.get("OMP_NUM_THREADS", "")
    return int(chosen) if chosen.isdecimal() and int(chosen) else len(os.sched_getaffinity(0))


@cache
def processor() -> frozenset[str]:
    """What the processor says of itself; nothing where it does not tell."""
    try:
        return frozenset(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return frozenset()


def check_processor() -> None:
    """Raise where the processor has no products of int8."""
    if not INSTRUCTIONS & processor():
        raise CannotUseInt8("the processor has no int8 products, or does not tell")


def _check_parts(model: "SentenceTransformer") -> bool:
    """Raise for another model than a BERT with [CLS] or mean pooling; whether it makes its vectors of length 1."""
    transformer, *others = side_modules(model, "document")
    config: Any = getattr(getattr(transformer, "model", None), "config", None)
    kinds = [type(module).__name__.removeprefix("BoolBert") for module in others]
    is_bert = getattr(config, "model_type", None) in ("bert", "boolbert") and config.hidden_act == "gelu"
    if not is_bert or kinds not in (["Pooling"], ["Pooling", "Normalize"]):
        raise CannotUseInt8("the model is no BERT with a pooling of its tokens")
    is_float32, is_large = str(model.dtype) == "torch.float32", config.hidden_size >= LEAST_SIZE
    if others[0].pooling_mode not in ("cls", "mean") or not is_float32 or not is_large:
        raise CannotUseInt8("the model's pooling, precision or size is not among those that int8 is made for")
    return "Normalize" in kinds


def program_of(weights: Mapping[str, npt.NDArray[Any]], config: Any, *, is_mean: bool) -> bytes:
    """A BERT as an ONNX program for one text: `ids` and `places` (1, length) to `vector` (1, size).

    weights, config: the BERT's. is_mean: the mean of all tokens, else that of the first.
    """
    graph = Graph(weights, config)
    before = "embeddings."
    places = weights[f"{before}position_embeddings.weight"] + weights[f"{before}token_type_embeddings.weight"][0]
    words = graph.node("Gather", graph.constant(f"{before}word_embeddings.weight"), "ids")
    placed = graph.node("Gather", graph.stored("places_embeddings", places), "places")
    states = graph.layers(graph.normalised(graph.node("Add", words, placed), f"{before}LayerNorm"))
    axis = graph.stored("axis", np.array([1]))
    if not is_mean:
        edges = (graph.stored("first", np.array([0])), graph.stored("end", np.array([1])))
        states = graph.node("Slice", states, *edges, axis)
    graph.output("ReduceMean", [states, axis], "vector", keepdims=0)
    return graph.program({"ids": "length", "places": "length"}, [1, config.hidden_size])


class Graph:
    """The nodes and constants of an ONNX program that is written for a BERT."""

    def __init__(self, weights: Mapping[str, npt.NDArray[Any]], config: Any):
        from onnx import helper, numpy_helper

        self.weights, self.config, self._onnx, self._as_onnx = weights, config, helper, numpy_helper
        self.nodes, self.constants = list[Any](), list[Any]()
        self._one, self._part, self._tiny = (
            self.stored(f"{value}", np.array([value], np.float32)) for value in (1, 1 / 127, TINY)
        )
        self._zero, self._last = self.stored("zero", np.array([128], np.uint8)), self.stored("last", np.array([-1]))
        self._zeros = ""  # `zero` for each token, which QuantizeLinear wants

    def constant(self, *names: str) -> str:
        """The weights of these names, one after the other."""
        return self.stored(names[0], np.concatenate([self.weights[name] for name in names]))

    def stored(self, name: str, value: npt.NDArray[Any]) -> str:
        self.constants.append(self._as_onnx.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **settings: Any) -> Any:
        names = [f"{len(self.nodes)}.{number}" for number in range(outputs)]
        self.nodes.append(self._onnx.make_node(kind, inputs, names, domain=domain, **settings))
        return names[0] if outputs == 1 else names

    def output(self, kind: str, inputs: Sequence[str], name: str, **settings: Any) -> None:
        self.nodes.append(self._onnx.make_node(kind, inputs, [name], **settings))

    def product(self, inputs: str, *names: str) -> str:
        rounded, scales = in_int8(np.concatenate([self.weights[f"{name}.weight"] for name in names]).T)
        columns = self.stored(f"{names[0]}.rounded", rounded), self.stored(f"{names[0]}.scales", scales)
        highest = self.node("ReduceMax", self.node("Abs", inputs), self._last)
        scale = self.node("Max", self.node("Mul", highest, self._part), self._tiny)  # per token
        scales_of_tokens = self.node("Reshape", scale, self._last)
        self._zeros = self._zeros or self.node("Expand", self._zero, self.node("Shape", scales_of_tokens))
        tokens = self.node("QuantizeLinear", inputs, scales_of_tokens, self._zeros, axis=1)
        found = self.node(
            "MatMulIntegerToFloat", tokens, columns[0], self._one, columns[1], self._zero, domain="com.microsoft"
        )
        return str(self.node("Mul", found, scale))

    def normalised(self, states: str, name: str) -> str:
        given = self.constant(f"{name}.weight"), self.constant(f"{name}.bias")
        return str(self.node("LayerNormalization", states, *given, epsilon=self.config.layer_norm_eps))

    def added(self, states: str, inputs: str, name: str) -> str:
        """States with what a product makes of the inputs, and its bias."""
        both = self.node("Add", states, self.product(inputs, name))
        return str(self.node("Add", both, self.constant(f"{name}.bias")))

    def layers(self, states: str) -> str:
        """The BERT's layers, from its embeddings to the last states. Of two ways to write a step in ONNX Runtime's
        operators the faster one is taken: `MultiHeadAttention` takes one and a half times as long as `Attention`."""
        heads = self.config.num_attention_heads
        for number in range(self.config.num_hidden_layers):
            layer = f"encoder.layer.{number}"
            own = [f"{layer}.attention.self.{name}" for name in ("query", "key", "value")]
            together = self.node("Add", self.product(states, *own), self.constant(*(f"{name}.bias" for name in own)))
            parts = self.node("Split", together, outputs=3, axis=-1, num_outputs=3)
            attended = self.node("Attention", *parts, q_num_heads=heads, kv_num_heads=heads)
            output = f"{layer}.attention.output"
            states = self.normalised(self.added(states, attended, f"{output}.dense"), f"{output}.LayerNorm")
            inside, bias = f"{layer}.intermediate.dense", self.constant(f"{layer}.intermediate.dense.bias")
            active = self.node("BiasGelu", self.product(states, inside), bias, domain="com.microsoft")
            output = f"{layer}.output"
            states = self.normalised(self.added(states, active, f"{output}.dense"), f"{output}.LayerNorm")
        return states

    def token_states(self, embeddings: str) -> str:
        """The last states, from the sum of the embeddings of words and places."""
        return self.layers(self.normalised(embeddings, "embeddings.LayerNorm"))

    def program(self, inputs: Mapping[str, Any], shape: Sequence[Any]) -> bytes:
        """inputs: what stands behind (1, length) in the shape of each, or "length" for numbers of tokens."""
        from onnx import TensorProto

        taken = [
            self._onnx.make_tensor_value_info(name, TensorProto.INT32, [1, "length"])
            if last == "length"
            else self._onnx.make_tensor_value_info(name, TensorProto.FLOAT, [1, "length", last])
            for name, last in inputs.items()
        ]
        outputs = [self._onnx.make_tensor_value_info("vector", TensorProto.FLOAT, list(shape))]
        graph = self._onnx.make_graph(self.nodes, "encoder", taken, outputs, self.constants)
        versions = [self._onnx.make_opsetid("", 23), self._onnx.make_opsetid("com.microsoft", 1)]
        content: bytes = self._onnx.make_model(graph, opset_imports=versions, ir_version=10).SerializeToString()
        return content


def in_int8(matrix: Vectors, steps: int | None = None) -> tuple[npt.NDArray[np.int8], Vectors]:
    """A matrix rounded to int8, and the scale of each column. steps: as many as this processor adds up exactly, unless
    they are given.

    >>> rounded, scales = in_int8(np.array([[2.0, 0.1], [-1.0, 0.0]], np.float32), 127)
    >>> rounded.tolist(), (scales * 127).round(2).tolist()
    ([[127, 127], [-64, 0]], [2.0, 0.10000000149011612])
    """
    steps = steps or (STEPS if EXACT & processor() else STEPS_IN_16_BITS)
    scales = np.maximum(np.abs(matrix).max(0) / steps, TINY)
    return np.rint(matrix / scales).astype(np.int8), scales


def open_program(program: bytes) -> Any:
    with without_telemetry():
        import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # a text is computed by one thread, and others by others
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        program, options, providers=["CPUExecutionProvider"], disabled_optimizers=[SLOW_FUSION]
    )
