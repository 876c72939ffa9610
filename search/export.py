"""Export a run's query encoder to ONNX, and measure what was lost.

    boolbert export RUN_DIR --output query.onnx          # checked against torch
    boolbert export RUN_DIR --output query.onnx --int8   # and query.int8.onnx, with its loss of quality

Inputs: input_ids and attention_mask (batch, length); operators (batch, 3) of 0/1 for and, or, not; not_scope (batch,
length) of 0/1, the tokens that NOT excludes, if the model reads with adapters; not_weight (batch,), the strength of
exclusion. -1 in operators and not_scope, and NaN in not_weight, leave the decision to the model.

Outputs: sentence_embedding (batch, size); query_vectors (batch, 1 + branches, size), it and one for each alternative of
OR; query_mask, which of them exist; wanted_embedding and excluded_embedding (batch, size); cue_logits, operators_on and
scope, how the query was read. With a penalty also penalty (batch, 2) and penalised_query (batch, 2 + branches,
size + 1): a document d of length 1 scores the largest product of [d; 1] with all rows but the last, less its product
with the last where that is positive.
"""

import argparse
import logging
import math
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional as F

from boolbert.boolean import OPERATORS
from boolbert.core.arguments import Parser
from boolbert.core.environment import without_telemetry
from boolbert.core.errors import BoolBertError, RetrievalError, first_line, run_script
from boolbert.core.files import check_file, write_bytes
from boolbert.data.tasks import quest_task
from boolbert.reading_boolbert import KIND, best_tags
from boolbert.retrieval.models import SearchModel, bool_bert, is_cosine, load_encoder, prompt_of, side_modules, twin_of
from boolbert.retrieval.neighbours import top_k
from boolbert.retrieval.penalty import penalised_query
from boolbert.retrieval.ranking import r_precision, recall_at_k
from boolbert.retrieval.recorded import RecordedStep

from .query_encoder import INPUTS, Arrays, QueryEncoder, QueryVectors, Run, Told, open_graph

# What a published file takes: it reads by itself.
PUBLISHED_INPUTS = ("input_ids", "attention_mask", "operators", "not_scope", "not_weight")
# As the model names them; "operators" is an input too.
OUTPUTS = ("sentence_embedding", "query_vectors", "query_mask", "wanted_embedding", "excluded_embedding")
READ = ("cue_logits", "operators", "scope")
LONG = (
    "input_ids",
    "attention_mask",
    "not_scope",
    "cues",
    "scope",
)  # inputs with a value for each token, the last axis
LENGTH_MULTIPLE = 8  # of recorded queries
ONNX_VERSION = 18
# Asked of an exported encoder before it is used: short and long, with and without each operator.
CHECKED = ("islands", "films set in Vietnam but not about war", "a or b", "no films about war" + " or books" * 16)
TOLERANCE = 1e-5  # for vectors of length 1


class QuerySide(nn.Module):
    """A model's query side as one function of tensors: `INPUTS`, which say how a query is read, to the outputs by name.
    reads: it takes `PUBLISHED_INPUTS` instead and reads what they leave open."""

    def __init__(self, encoder: SentenceTransformer, *, reads: bool = False):
        super().__init__()
        self.encoder, self.reads = encoder, reads
        bert: Any = bool_bert(encoder)
        if bert is None:
            raise BoolBertError("the query encoder of this model is not a Bool-BERT: there are no operators to export")
        # Without a reader the layers find cues and scopes; what a scope reader says of them the layers correct.
        self.takes_scopes = bert.reader is not None if reads else bert.config.reads_scopes
        self.is_cosine = is_cosine(encoder)
        self.inputs = PUBLISHED_INPUTS if reads else INPUTS

    def forward(self, *inputs: Tensor) -> dict[str, Tensor]:
        features: dict[str, Any] = dict(zip(self.inputs, inputs, strict=True))
        features |= {"token_type_ids": torch.zeros_like(features["input_ids"]), "task": "query"}
        if not self.takes_scopes:
            features = {name: value for name, value in features.items() if name not in ("cues", "scope", "not_scope")}
        found = self.encoder(features, task="query")
        outputs = {name: found[name] for name in (*OUTPUTS, *(READ if self.reads else ())) if name in found}
        if self.reads:
            outputs["operators_on"] = outputs.pop("operators")
        if "penalty" in found and self.is_cosine:
            outputs["penalty"] = found["penalty"]
            parts = (found[name] for name in ("search_vectors", "excluded_embedding", "penalty"))
            outputs["penalised_query"] = penalised_query(*parts)
        return outputs


def torch_encoder(encoder: SentenceTransformer) -> QueryEncoder:
    """A model's query side, computed by torch; on a GPU recorded, for lengths that are rounded up to few."""
    side, on_gpu = QuerySide(encoder), encoder.device.type == "cuda"
    step = RecordedStep(lambda inputs: side(*inputs), encoder.device, on=on_gpu, name="queries")
    one_at_a_time = Lock() if on_gpu else nullcontext()  # a recording has one place for its inputs
    positions = bool_bert(encoder).config.max_position_embeddings  # type: ignore[union-attr]

    @torch.inference_mode()
    def run(inputs: Arrays) -> Arrays:
        if encoder.training:
            encoder.eval()
        length = inputs["input_ids"].shape[1]
        spare = min(-length % LENGTH_MULTIPLE, positions - length) if on_gpu else 0
        tensors = (torch.from_numpy(inputs[name]) for name in INPUTS)
        padded = [F.pad(value, (0, spare * (name in LONG))) for name, value in zip(INPUTS, tensors, strict=True)]
        with one_at_a_time:
            return {name: _as_array(value) for name, value in step(padded).items()}

    return _with_tokenizer(run, encoder)


def exported_encoder(model: SearchModel) -> QueryEncoder:
    """The same by ONNX Runtime, after it was exported and checked."""
    name, bert = model.name or "the default encoder", model.bert
    if bert is None:
        raise RetrievalError(f"onnx cannot be given: the query encoder of {name} is no Bool-BERT")
    if bert.device.type != "cpu":
        raise RetrievalError(f'onnx cannot be given: the model is on {bert.device}; open it with device="cpu"')
    if bert.dtype != torch.float32:
        raise RetrievalError(f"onnx cannot be given: {name} is in {bert.dtype}; it has to be in torch.float32")
    try:
        return checked_encoder(export_graph(model.encoder), model.encoder)
    except BoolBertError as error:
        raise RetrievalError(f"{name}: {error}") from None


def checked_encoder(graph: bytes, encoder: SentenceTransformer) -> QueryEncoder:
    """An exported graph of this model; raises where it computes anything else than torch."""
    expected = torch_encoder(encoder)
    try:
        found = _with_tokenizer(open_graph(graph), encoder)
        is_right = all(_agree(found, expected, query) for query in CHECKED)
    except Exception as error:  # of the runtime, which has many kinds
        raise RetrievalError(f"cannot be run by ONNX Runtime: {first_line(error)}") from error
    if not is_right:
        raise RetrievalError("ONNX Runtime computes other vectors than torch; go without onnx")
    return found


def export_graph(encoder: SentenceTransformer, *, reads: bool = False) -> bytes:
    """A model's query side as an ONNX graph for any number of queries of any length; reads: see `QuerySide`."""
    for package in ("onnx", "onnxruntime"):  # before an export that nothing could open
        if find_spec(package) is None:
            raise RetrievalError(f"cannot be exported to ONNX: {package} is not installed")
    side = QuerySide(twin_of(encoder), reads=reads).eval()
    given = dict(zip(side.inputs, _example(reads), strict=True))
    axes = {name: {0: "batch"} | ({value.ndim - 1: "length"} if name in LONG else {}) for name, value in given.items()}
    example = tuple(given.values())
    return _exported(side, example, list(given), list(side(*example)), axes)


def _example(reads: bool) -> tuple[Tensor, ...]:
    """Inputs of two queries of seven tokens; with `reads` all is left to the model."""
    ids, strength = torch.ones(2, 7, dtype=torch.long), torch.full((2,), math.nan)
    operators = torch.ones(2, len(OPERATORS), dtype=torch.long)
    if reads:
        return ids, torch.ones_like(ids), -operators, torch.full_like(ids, -1), strength
    cues, scope = operators.unsqueeze(2) * ids.unsqueeze(1), torch.zeros(2, len(OPERATORS), 7, dtype=torch.long)
    return ids, torch.ones_like(ids), operators, cues, scope, strength


def _exported(
    module: nn.Module, example: tuple[Any, ...], inputs: list[str], outputs: list[str], axes: dict[str, Any]
) -> bytes:
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            file = Path(folder, "exported.onnx")
            names: dict[str, Any] = {"input_names": inputs, "output_names": outputs, "dynamic_axes": axes}
            # The newer exporter, which reads the program and not a trace of it, takes twenty times as long.
            torch.onnx.export(module, example, file, opset_version=ONNX_VERSION, dynamo=False, **names)
            return file.read_bytes()
    except Exception as error:  # of the exporter, which has many kinds
        raise RetrievalError(f"cannot be exported to ONNX: {first_line(error)}") from error


def decoder_graph() -> bytes:
    """`best_tags` as an ONNX graph: `scores` (1, length, KIND) and `words` (1, length) to `tags` (1, length)."""

    class Decoder(nn.Module):
        def forward(self, scores: Tensor, words: Tensor) -> Tensor:
            return best_tags(scores, words)

    example = (torch.zeros(1, 5, KIND), torch.ones(1, 5, dtype=torch.bool))
    return _exported(
        Decoder(), example, ["scores", "words"], ["tags"], {"scores": {1: "length"}, "words": {1: "length"}}
    )


def tokenizer_of(encoder: SentenceTransformer) -> str:
    """The tokenizer of a model's queries, cut at its length, as a tokenizer.json holds it."""
    from tokenizers import Tokenizer

    first = side_modules(encoder, "query")[0]
    tokenizer = Tokenizer.from_str(first.tokenizer.backend_tokenizer.to_str())
    tokenizer.no_padding()
    length = getattr(first, "query_length", None) or first.max_seq_length
    tokenizer.enable_truncation(length, direction=first.tokenizer.truncation_side)
    return tokenizer.to_str()


def _with_tokenizer(run: Run, encoder: SentenceTransformer) -> QueryEncoder:
    can_exclude = bool_bert(encoder).config.exclusion != "none"  # type: ignore[union-attr]
    prompt = prompt_of(encoder, "query") or ""
    return QueryEncoder(run, tokenizer_of(encoder), prompt, is_cosine(encoder), can_exclude)


def _as_array(values: Tensor) -> Any:
    return (values.float() if values.is_floating_point() else values).cpu().numpy()


def _agree(found: QueryEncoder, expected: QueryEncoder, query: str) -> bool:
    """Whether two encoders encode a query alike, with every operator off and with all of them on."""
    tokens = expected.tokens(query)
    places = np.arange(len(tokens.ids)) % 4
    cues, scope = (np.stack([places == first + row for row in range(len(OPERATORS))]) for first in (0, 1))
    off, on = ([value] * len(OPERATORS) for value in (0, 1))
    told_off, told_on = Told(off, cues, scope), Told(on, cues, scope)
    cases: list[tuple[Told, float | None]] = [(told_off, None), (told_on, None), (told_on, 0.5)]
    return all(_are_near(found.encode(tokens, *case), expected.encode(tokens, *case)) for case in cases)


def _are_near(found: QueryVectors, expected: QueryVectors) -> bool:
    """Whether two results differ by rounding alone."""
    for ours, theirs in zip(found, expected, strict=True):
        if ours is None or theirs is None:
            if ours is not theirs:
                return False
            continue
        one, other = np.asarray(ours), np.asarray(theirs)
        largest = max(1.0, float(np.abs(other).max(initial=0.0)))
        if one.shape != other.shape or not np.allclose(one, other, atol=TOLERANCE * largest):
            return False
    return True


def check_published(graph: bytes, encoder: SentenceTransformer) -> None:
    """Raise where a file that reads by itself gives other vectors than the model."""
    found, expected = published_vectors(graph, encoder, CHECKED), encoder.encode_query(list(CHECKED))
    if not np.allclose(found, expected, atol=TOLERANCE * max(1.0, float(np.abs(expected).max()))):
        raise RetrievalError("ONNX Runtime computes other vectors than torch")


def published_vectors(graph: bytes, encoder: SentenceTransformer, queries: Sequence[str]) -> Any:
    """The vectors of queries by a file that reads by itself."""
    run = open_graph(graph)
    tokenizer = _with_tokenizer(run, encoder)
    found = []
    for query in queries:
        ids = np.array([tokenizer.tokens(query).ids])
        operators, not_scope = np.full((1, len(OPERATORS)), -1), np.full_like(ids, -1)
        given = (ids, np.ones_like(ids), operators, not_scope, np.full(1, math.nan, np.float32))
        found.append(run(dict(zip(PUBLISHED_INPUTS, given, strict=True)))["sentence_embedding"][0])
    return np.stack(found)


def quantize(file: str | Path, target: str | Path) -> None:
    """Write a copy with embeddings and matrix products in int8, the activations quantised on the way."""
    import onnx

    with without_telemetry():
        from onnxruntime.quantization import QuantType, quantize_dynamic

    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)  # it recommends a preprocessing that gains nothing here
    try:
        # A scale for each output channel: with one for the whole matrix the vectors lose several times as much.
        kinds = ["MatMul", "Gemm", "Gather"]
        graph = onnx.load(str(file))
        quantize_dynamic(graph, str(target), weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=kinds)
    finally:
        logger.setLevel(level)


def measure(model: SentenceTransformer, file: str | Path) -> dict[str, float]:
    """The file against torch on the dev split of the embedded countries: its vectors, and what they find."""
    task = quest_task(None, "dev", progress=False)
    queries = task.texts
    documents = model.encode_document([document.text for document in task.corpus])
    expected = model.encode_query(queries)
    found = published_vectors(Path(file).read_bytes(), model, queries)
    norms = np.linalg.norm(expected, axis=1) * np.linalg.norm(found, axis=1)
    cosines = (expected * found).sum(axis=1) / norms
    report = {
        "queries": len(queries),
        "largest difference": float(np.abs(expected - found).max()),
        "lowest cosine": float(cosines.min()),
        "mean cosine": float(cosines.mean()),
    }
    for name, vectors in (("torch", expected), ("onnx", found)):
        _, rows = top_k(vectors, documents, k=len(documents))
        report[f"R-precision, {name}"] = float(np.nanmean(r_precision(rows, task.gold)))
        report[f"Recall@20, {name}"] = float(np.nanmean(recall_at_k(rows, task.gold, 20)))
    return report


def show(file: Path, report: dict[str, float]) -> None:
    print(f"{file}: {file.stat().st_size / 2**20:.1f} MiB, on {report['queries']} queries of the embedded countries:")
    print(f"  largest difference {report['largest difference']:.1e}, ", end="")
    print(f"cosine {report['mean cosine']:.4f} on average, {report['lowest cosine']:.4f} at worst")
    for metric in ("R-precision", "Recall@20"):
        before, after = report[f"{metric}, torch"], report[f"{metric}, onnx"]
        print(f"  {metric}: {before:.4f} with torch, {after:.4f} with this file ({after - before:+.4f})")


def main(words: Sequence[str] | None = None) -> None:
    parser = Parser(prog="boolbert export", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir", help="a folder written by training or by save_dual_encoder")
    parser.add_argument("--output", type=Path, required=True, help="the ONNX file to write")
    parser.add_argument("--int8", action="store_true", help="also write an int8 copy, with .int8 before its suffix")
    args = parser.parse_args(words)
    check_file(args.output)
    model = load_encoder(args.run_dir, device="cpu", quiet=True)
    graph = export_graph(model, reads=True)
    check_published(graph, model)
    write_bytes(args.output, graph)
    show(args.output, measure(model, args.output))
    if args.int8:
        target = args.output.with_suffix(f".int8{args.output.suffix}")
        quantize(args.output, target)
        show(target, measure(model, target))


if __name__ == "__main__":
    run_script(main)
