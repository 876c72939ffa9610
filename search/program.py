"""What a model computes for a query, as one program: a TorchScript file, or a graph for ONNX Runtime.

TorchScript needs nothing but torch and is opened at once, for a single query. ONNX Runtime takes half of torch's time
for a short one on a CPU, since it arranges the weights once and not for each product, for one query after the other.
"""

import io
import math
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from boolbert.boolean import OPERATORS
from boolbert.core.errors import optional
from boolbert.retrieval.models import SearchModel, bool_bert, side_modules, twin_of

from .closest import QueryVectors

MODEL_DECIDES = -1  # in `operators` and `not_scope`
TOKENS = ("input_ids", "attention_mask", "token_type_ids")
SPANS = "spans"
INPUTS = (*TOKENS, "operators", "not_scope", "not_weight")
READ = ("cue_logits", "operators", "scope")
ENCODED = ("query_vectors", "query_mask", "wanted_embedding", "excluded_embedding", "search_vectors", "penalty")
# What is asked before a program is used: answers to these have to be those of the model that it was made from.
# The last is longer than any model reads, and not the same at both ends.
CHECKED = ("islands", "films set in Vietnam but not about war", "a or b", "no films about war" + " or books" * 600)
TOLERANCE = 1e-5  # for vectors of length 1
# Threads that look for more work when a query is done would take a core from the ranking.
RESTING = {"session.force_spinning_stop": "1"}
ONNX_VERSION = 18

Run = Callable[..., Sequence[Tensor]]  # (*INPUTS) -> (*READ, *ENCODED); what a model does not have is empty


class Found(NamedTuple):
    """What the model finds in a query's tokens: 0/1 per operator, cue probabilities and scopes (E, L) each, vectors.

    vectors: None where the query was only read.
    """

    operators: list[int]
    cues: npt.NDArray[np.float64]
    scope: npt.NDArray[np.float64] | None
    vectors: QueryVectors | None = None


class Program:
    """A query's text to its tokens, and these to what the model would find in them."""

    def __init__(self, run: Run, tokenizer: str, prompt: str, is_cosine: bool):
        """tokenizer: what `tokenizer_of` gives."""
        from tokenizers import Tokenizer

        self._run, self._tokenizer = run, Tokenizer.from_str(tokenizer)
        self._prompt, self._is_cosine = prompt, is_cosine

    def tokens(self, query: str) -> dict[str, Any]:
        """A query as the model takes it, and where each token begins and ends in the query with its prompt."""
        found = self._tokenizer.encode(self._prompt + query)
        rows = (found.ids, found.attention_mask, found.type_ids)
        return {name: torch.tensor([row]) for name, row in zip(TOKENS, rows, strict=True)} | {SPANS: found.offsets}

    def cuts(self, query: str) -> bool:
        """Whether a query is longer than the model reads."""
        return bool(self._tokenizer.encode(self._prompt + query).overflowing)

    def __call__(
        self,
        tokens: dict[str, Any],
        labels: Sequence[int] | None,
        not_scope: Sequence[int] | None,
        not_weight: float | None,
    ) -> Found:
        """labels: 0/1 for and, or, not, not_scope: for each token; None leaves them to the model."""
        count = tokens["input_ids"].shape[1]
        row = [MODEL_DECIDES] * len(OPERATORS) if labels is None else list(labels)
        inside = [MODEL_DECIDES] * count if not_scope is None else list(not_scope)
        weight = math.nan if not_weight is None else not_weight
        given = (torch.tensor([row]), torch.tensor([inside]), torch.tensor([weight]))
        found = self._run(*(tokens[name] for name in TOKENS), *given)
        cues, operators, scope, vectors, exists, wanted, excluded, search_vectors, penalty = found
        keeps_apart = penalty.numel() > 0 and self._is_cosine
        parts = QueryVectors.of(
            vectors[0][exists[0]].numpy(),
            wanted[0].numpy(),
            excluded[0].numpy() if bool(excluded.any()) else None,
            (search_vectors if keeps_apart else vectors)[0][exists[0]].numpy(),
            tuple(penalty[0].tolist()) if keeps_apart else None,
        )
        inner = scope[0].double().numpy() if scope.numel() else None
        return Found(operators[0].tolist(), torch.sigmoid(cues[0].double()).numpy(), inner, parts)


class QueryEncoder(nn.Module):
    """A query's tokens to all that a search asks for."""

    def __init__(self, encoder: Any):
        super().__init__()
        self.encoder = encoder
        self.bert: Any = bool_bert(encoder)

    def forward(
        self, ids: Tensor, mask: Tensor, types: Tensor, operators: Tensor, not_scope: Tensor, not_weight: Tensor
    ) -> Any:
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types, "operators": operators}
        if self.bert.scope_reader is not None:
            inputs["not_scope"] = not_scope
        out = self.encoder({**inputs, "not_weight": not_weight, "task": "query"}, task="query")
        return tuple(out.get(name, ids.new_empty(0)) for name in (*READ, *ENCODED))


def script_of(model: SearchModel) -> bytes:
    """A model's query side as a TorchScript file."""
    query, example = _traceable(model)
    buffer = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        # The file holds what was computed for this example; `agree` finds out whether that holds for others. Traced as
        # a function its weights are constants: it is made in half the time of a module, and opened in a third.
        torch.jit.save(torch.jit.trace(lambda *inputs: query(*inputs), example, check_trace=False), buffer)
    return buffer.getvalue()


def open_script(file: Path) -> Run:
    script: Any = torch.jit.load(str(file), map_location="cpu")

    @torch.inference_mode()
    def run(*inputs: Tensor) -> Sequence[Tensor]:
        with torch.jit.optimized_execution(False):
            return script(*inputs)

    return run


def graph_of(model: SearchModel) -> bytes:
    """A model's query side as an ONNX graph for one query of any length."""
    query, example = _traceable(model)
    names: dict[str, Any] = {
        "input_names": list(INPUTS),
        "output_names": [f"found_{name}" for name in (*READ, *ENCODED)],
        "dynamic_axes": {name: {1: "length"} for name in (*TOKENS, "not_scope")},
    }
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        file = Path(folder, "query.onnx")
        # The newer exporter, which reads the program and not a trace of it, takes ten times as long.
        torch.onnx.export(query, example, file, opset_version=ONNX_VERSION, dynamo=False, **names)
        return file.read_bytes()


def open_graph(graph: bytes) -> Run:
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3  # errors
    for name, value in RESTING.items():
        options.add_session_config_entry(name, value)
    session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    known = {given.name for given in session.get_inputs()}  # a model without a reader has no use for `not_scope`

    def run(*inputs: Tensor) -> Sequence[Tensor]:
        given = {name: value.numpy() for name, value in zip(INPUTS, inputs, strict=True) if name in known}
        return [torch.from_numpy(found) for found in session.run(None, given)]

    return run


def tokenizer_of(model: SearchModel) -> str:
    """The tokenizer of a model's queries, cut at its length, as text."""
    from tokenizers import Tokenizer

    first = side_modules(model.encoder, "query")[0]
    tokenizer = Tokenizer.from_str(first.tokenizer.backend_tokenizer.to_str())
    tokenizer.no_padding()
    tokenizer.enable_truncation(first.max_seq_length, direction=first.tokenizer.truncation_side)
    return tokenizer.to_str()


def onnx_program(model: SearchModel, prompt: str, is_cosine: bool) -> Program:
    """A model's query side for ONNX Runtime."""
    for package in ("onnx", "onnxruntime"):
        optional(package, package, "onnx")
    return Program(open_graph(graph_of(model)), tokenizer_of(model), prompt, is_cosine)


def agree(quick: Any, searcher: Any) -> bool:
    """Whether two searchers read and encode alike, left to the model and told what it has read."""
    for query in CHECKED:
        readings, vectors = zip(*(one._read(query, None, None, encodes=True) for one in (quick, searcher)), strict=True)
        if readings[0] != readings[1]:
            return False
        told = [one._vectors(readings[0], None) for one in (quick, searcher)]
        for found, expected in (vectors, told):
            parts = zip(quick._scaled_parts(found), searcher._scaled_parts(expected), strict=True)
            if not all(_are_near(*pair) for pair in parts):
                return False
    return True


def _are_near(found: Any, expected: Any) -> bool:
    """Whether two arrays, or none, differ by rounding alone."""
    if found is None or expected is None:
        return found is expected
    found, expected = np.asarray(found), np.asarray(expected)
    largest = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return found.shape == expected.shape and np.allclose(found, expected, atol=TOLERANCE * largest)


def _traceable(model: SearchModel) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A model's query side, and an example of what it is given."""
    encoder = twin_of(model.encoder).eval()
    for part in encoder.modules():
        for name, weight in list(part.named_parameters(recurse=False)):
            setattr(part, name, nn.Parameter(weight, requires_grad=False))  # what learns cannot be a constant
    composer: Any = bool_bert(encoder).composer  # type: ignore[union-attr]
    composer.excludes = torch.tensor(composer.excludes)  # TorchScript has no Tensor & bool
    ids = torch.ones(1, 7, dtype=torch.long)
    unknown = torch.full((1, len(OPERATORS)), MODEL_DECIDES), torch.full_like(ids, MODEL_DECIDES)
    return QueryEncoder(encoder).eval(), (ids, ids, ids * 0, *unknown, torch.tensor([math.nan]))
