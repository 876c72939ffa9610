"""Export a run's query encoder to ONNX, and measure what was lost.

    boolbert export RUN_DIR --output query.onnx          # checked against torch
    boolbert export RUN_DIR --output query.onnx --int8   # and query.int8.onnx, with its loss of quality

Inputs: input_ids and attention_mask (batch, length), operators (batch, 3) of 0/1 for and, or, not, where -1 leaves the
decision to the model. Outputs: sentence_embedding (batch, size); query_vectors (batch, 1 + branches, size), it and one
for each alternative of OR; query_mask, which of them exist. With a penalty also two_sided (batch, 2 + branches,
size + 1): a document d of length 1 scores the largest product of [d; 1] with all rows but the last, less its product
with the last where that is positive.
"""

import argparse
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from boolbert.core.errors import BoolBertError, optional, run_script
from boolbert.data import Quest
from boolbert.retrieval.models import is_cosine, load_encoder
from boolbert.retrieval.neighbours import top_k
from boolbert.retrieval.penalty import penalised_query
from boolbert.retrieval.ranking import r_precision, recall_at_k
from boolbert.sentence_boolbert import UNKNOWN, BoolBertTransformer, operator_row

Vectors = npt.NDArray[np.float32]
INPUTS = ("input_ids", "attention_mask", "operators")
OUTPUT = "sentence_embedding"
OUTPUTS = (OUTPUT, "query_vectors", "query_mask", "two_sided")
# More than rounding: the graph computes something else than the model.
TOLERANCE = 1e-3


class QueryEncoder(nn.Module):
    """The query route as one function of tensors: Bool-BERT, then whatever comes after the pooling."""

    def __init__(self, model: SentenceTransformer):
        super().__init__()
        self.bert: Any = query_module(model).model
        self.after = nn.ModuleList(list(model.children())[2:])  # what comes after the pooling
        composer: Any = self.bert.composer
        self.keeps_apart = composer.has_penalty and is_cosine(model)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, operators: Tensor) -> tuple[Tensor, ...]:
        output = self.bert(input_ids, attention_mask=attention_mask, operators=operators)
        vectors = self.passed(output.query_vectors)
        found = (vectors[:, 0], vectors, output.query_mask)
        if not self.keeps_apart:
            return found
        excluded = self.passed(output.excluded_embedding.unsqueeze(1))[:, 0]
        return *found, penalised_query(self.passed(output.search_vectors), excluded, output.penalty)

    def passed(self, vectors: Tensor) -> Tensor:
        """Vectors (batch, count, size) through what comes after the pooling."""
        batch, count, size = vectors.shape
        features = {OUTPUT: vectors.reshape(batch * count, size)}
        for module in self.after:
            features = module(features)
        return features[OUTPUT].reshape(batch, count, -1)


def query_module(model: SentenceTransformer) -> BoolBertTransformer:
    """The Bool-BERT of a dual encoder."""
    found = next((module for module in model.modules() if isinstance(module, BoolBertTransformer)), None)
    if found is None:
        raise BoolBertError("the query encoder of this model is not a Bool-BERT: there are no operators to export")
    return found


def export_onnx(model: SentenceTransformer, file: str | Path) -> None:
    """Write the query encoder as one ONNX file that takes any batch and any length."""
    encoder = QueryEncoder(model).eval().cpu()
    config = encoder.bert.config
    ids = torch.arange(1, 13).view(2, 6) % config.vocab_size
    example = (ids, torch.ones_like(ids), torch.tensor([[1, 0, 1], [UNKNOWN] * 3]))
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=config.max_position_embeddings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter speaks of torchvision and of its own deprecations
        for library in ("torch.onnx", "onnxscript", "onnx_ir"):
            logging.getLogger(library).setLevel(logging.ERROR)
        torch.onnx.export(
            encoder,
            example,
            str(file),
            input_names=list(INPUTS),
            output_names=list(OUTPUTS if encoder.keeps_apart else OUTPUTS[:3]),
            dynamic_shapes=({0: batch, 1: length}, {0: batch, 1: length}, {0: batch}),
            dynamo=True,
            external_data=False,
            verbose=False,
        )


def quantize(file: str | Path, target: str | Path) -> None:
    """Write a copy with embeddings and matrix products in int8, the activations quantised on the way."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.getLogger().setLevel(logging.ERROR)  # it recommends a preprocessing that torch's exporter has done
    graph = onnx.load(str(file))
    graph.graph.ClearField("value_info")  # shapes are inferred anew; what the exporter noted may be out of date
    kinds = ["MatMul", "Gemm", "Gather"]
    # A scale for each output channel: with one for the whole matrix the vectors lose several times as much.
    quantize_dynamic(graph, str(target), weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=kinds)


def encode_onnx(
    file: str | Path,
    tokenizer: Any,
    queries: Sequence[str],
    operators: Sequence[Any] | None = None,
    batch_size: int = 32,
) -> Vectors:
    """Query vectors by onnxruntime; `operators` as in `encode_query`."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    rows = [operator_row(names) or [UNKNOWN] * 3 for names in operators or [None] * len(queries)]
    vectors = []
    for start in range(0, len(queries), batch_size):
        part = slice(start, start + batch_size)
        batch = tokenizer(list(queries[part]), padding=True, truncation=True, return_tensors="np")
        inputs = (batch["input_ids"], batch["attention_mask"], np.array(rows[part]))
        vectors.append(session.run([OUTPUT], dict(zip(INPUTS, map(np.int64, inputs), strict=True)))[0])
    return np.concatenate(vectors)


def measure(model: SentenceTransformer, file: str | Path) -> dict[str, float]:
    """The file against torch on the dev split of the embedded countries: its vectors, and what they find."""
    quest = Quest(progress=False)
    asked = quest.queries("dev")
    queries, linked = [query.query for query in asked], quest.gold(asked)
    gold = [linked[index] for index in range(len(asked))]
    documents = model.encode_document([document.text for document in quest.corpus])
    expected = model.encode_query(queries)
    found = encode_onnx(file, query_module(model).tokenizer, queries)
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
        report[f"R-precision, {name}"] = float(np.nanmean(r_precision(rows, gold)))
        report[f"Recall@20, {name}"] = float(np.nanmean(recall_at_k(rows, gold, 20)))
    return report


def show(file: Path, report: dict[str, float]) -> None:
    print(f"{file}: {file.stat().st_size / 2**20:.1f} MiB, on {report['queries']} queries of the embedded countries:")
    print(f"  largest difference {report['largest difference']:.1e}, ", end="")
    print(f"cosine {report['mean cosine']:.4f} on average, {report['lowest cosine']:.4f} at worst")
    for metric in ("R-precision", "Recall@20"):
        before, after = report[f"{metric}, torch"], report[f"{metric}, onnx"]
        print(f"  {metric}: {before:.4f} with torch, {after:.4f} with this file ({after - before:+.4f})")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="boolbert export", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run_dir", help="a folder written by training or by save_dual_encoder")
    parser.add_argument("--output", type=Path, required=True, help="the ONNX file to write")
    parser.add_argument("--int8", action="store_true", help="also write an int8 copy, with .int8 before its suffix")
    args = parser.parse_args(words)
    for module in ("onnx", "onnxruntime", "onnxscript"):
        optional(module, module, "onnx")
    model = load_encoder(args.run_dir, device="cpu", quiet=True)
    export_onnx(model, args.output)
    report = measure(model, args.output)
    show(args.output, report)
    if report["largest difference"] > TOLERANCE:
        raise BoolBertError(f"{args.output}: differs from torch by more than {TOLERANCE}: do not use it")
    if args.int8:
        target = args.output.with_suffix(f".int8{args.output.suffix}")
        quantize(args.output, target)
        show(target, measure(model, target))


if __name__ == "__main__":
    run_script(main)
