"""The default model without torch, which takes most of the wait for a first answer.

Its query side comes with the package as an ONNX graph without weights: those are filled in from the encoder's own
files. Its document side is a BERT, which retrieval/int8_encoder.py writes as a graph.

python -m boolbert.search.default_program       # writes both graphs, after the model's code changes
"""

import gzip
import hashlib
import importlib.metadata
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.core.environment import may_have_gpu
from boolbert.core.errors import BoolBertError, run_script
from boolbert.core.files import read_object, write_bytes
from boolbert.retrieval.adapters import BEST_TAGS
from boolbert.retrieval.countries_index import STORED as COUNTRIES
from boolbert.retrieval.countries_index import countries
from boolbert.retrieval.encoders import Encoder, encoder_parts, resolve_encoder
from boolbert.retrieval.evidence import unit_length
from boolbert.retrieval.int8_encoder import LEAST_COSINE, Int8Encoder, check_processor, program_of
from boolbert.retrieval.models import upgraded_note

from .query_encoder import TOLD, QueryEncoder, open_graph

STORED = Path(__file__).parent / "default_query.onnx.gz"
KEPT = 64  # numbers of a weight that stays in the graph


@dataclass(frozen=True)
class DefaultDocuments:
    """The default model for `build_index`, which encodes documents in int8 and never opens it."""

    note: str
    document_encoder: str
    int8: Int8Encoder
    name: None = None


def default_program(folder: Path) -> tuple[bytes, QueryEncoder, str]:
    """The graph with its weights for the default encoder's folder, what encodes queries by it, and the fingerprint of
    the document encoder. Raises where the graph was made from other files or other code."""
    from onnx import numpy_helper

    model, about = _stored(folder)
    weights = _weights(folder)
    for place in model.graph.initializer:
        if place.doc_string:
            name, axes = json.loads(place.doc_string)
            place.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(weights[name].transpose(axes)), place.name))
    graph, told = model.SerializeToString(), (about[name] for name in TOLD)
    queries = QueryEncoder(open_graph(graph), _tokenizer(folder, about).to_str(), *told)
    return graph, queries, about["document_encoder"]


def default_documents() -> DefaultDocuments:
    """Raises as `default_program`, and where documents are not encoded in int8 on this machine."""
    if may_have_gpu():
        raise BoolBertError("documents may be encoded on a GPU")
    default = resolve_encoder()
    _, about = _stored(Path(default.path))
    if about["versions"] != _versions():
        raise BoolBertError("these versions of the libraries may know the encoder by another fingerprint")
    return DefaultDocuments(upgraded_note(default), about["document_encoder"], _int8(default, about))


def default_int8() -> Int8Encoder:
    """The default encoder's document side. Raises where documents are not encoded in int8 on this machine."""
    default = resolve_encoder()
    return _int8(default, _stored(Path(default.path))[1])


def _int8(default: Encoder, about: dict[str, Any]) -> Int8Encoder:
    check_processor()
    folder = Path(default.path)
    config = SimpleNamespace(**read_object(folder / "config.json"))
    tokenizer = _tokenizer(folder, about)

    def tokens(texts: Sequence[str]) -> list[npt.NDArray[np.int32]]:
        return [np.array(found.ids, np.int32) for found in tokenizer.encode_batch_fast(list(texts))]

    encoder = Int8Encoder(
        program_of(_weights(folder), config, is_mean=default.pooling == "mean"),
        tokens,
        is_cosine=about["is_cosine"],
        is_normalised=True,
        fingerprint=lambda: str(about["document_encoder"]),
    )
    _check(encoder)
    return encoder


def _check(encoder: Int8Encoder) -> None:
    """Raise where the vectors of some countries are not near to those that come with the package."""
    from safetensors.numpy import load_file

    expected = load_file(COUNTRIES)["documents"][:3].astype(np.float32)
    lowest = (unit_length(encoder(countries().texts()[:3])) * unit_length(expected)).sum(1).min()
    if not lowest >= LEAST_COSINE:
        raise BoolBertError(f"int8 vectors would have a cosine of {lowest:.2f} to those in float32")


def _stored(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The graph without its weights, and what is known of it."""
    import onnx

    model = onnx.load_from_string(gzip.decompress(STORED.read_bytes()))
    about = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    if about["files"] != _hashes(folder) or about["code"] != _code_hash():
        raise BoolBertError(f"{STORED}: was made from another encoder, or by other code")
    return model, about


def _tokenizer(folder: Path, about: dict[str, Any]) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(about["length"])
    return tokenizer


def without_weights(graph: bytes, folder: Path, about: dict[str, Any]) -> bytes:
    """An exported graph whose weights are replaced by the names of those that they are, in the files of a folder."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load_from_string(graph)
    known: dict[Any, tuple[str, tuple[int, ...]]] = {}
    for name, weight in _weights(folder).items():
        for axes in itertools.permutations(range(weight.ndim)):
            turned = weight.transpose(axes)
            known.setdefault((turned.shape, turned.tobytes()), (name, axes))
    for place in model.graph.initializer:
        value = numpy_helper.to_array(place)
        if value.size > KEPT and (source := known.get((value.shape, value.tobytes()))):
            place.ClearField("raw_data")
            place.doc_string = json.dumps(source)
    facts = {**about, "files": _hashes(folder), "code": _code_hash(), "versions": _versions()}
    onnx.helper.set_model_props(model, {name: json.dumps(value) for name, value in facts.items()})
    return gzip.compress(model.SerializeToString(), mtime=0)


def _weights(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """The encoder's weights in float32."""
    from safetensors.numpy import load_file

    found = load_file(folder / "model.safetensors")
    return {name: weight.astype(np.float32, copy=False) for name, weight in found.items()}


def _hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of an encoder that shapes its vectors."""
    files = [file for part in encoder_parts(folder) for file in part.iterdir()]
    chosen = [file for file in files if file.suffix in (".json", ".safetensors") and file.name != "data_config.json"]
    return {file.relative_to(folder).as_posix(): _sha256(file) for file in sorted(chosen)}


def _code_hash() -> str:
    """Changes with the model's code, with that of the export, and with what reads queries."""
    package = Path(__file__).parent.parent
    files = sorted(package.glob("*_boolbert.py"))
    files += [package / name for name in ("retrieval/penalty.py", "search/export.py")]
    return hashlib.sha256("".join(map(_sha256, files)).encode()).hexdigest()


def _versions() -> list[str]:
    """Of the libraries whose settings are part of an encoder's fingerprint."""
    return [importlib.metadata.version(name) for name in ("transformers", "sentence-transformers")]


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _silence(bert: Any) -> None:
    """Make the weights of attention's biases zero, which a fresh model draws at random: they move a score by some 1e-6,
    and zeros need no room in the package."""
    import torch

    with torch.no_grad():
        for layer in bert.encoder.layer:
            if (predictor := getattr(layer.attention.self, "bias_predictor", None)) is not None:
                for weight in (predictor.dense.weight, predictor.output_weight, predictor.position_weight):
                    weight.zero_()


def main() -> None:
    from boolbert.retrieval.fingerprints import document_encoder_of
    from boolbert.retrieval.models import default_model

    from .export import checked_encoder, decoder_graph, export_graph, tokenizer_of

    model, copy = default_model("cpu"), default_model("cpu")
    if model.path is None or not model.trained:
        raise BoolBertError("the default encoder cannot be had here")
    _silence(copy.bert)
    graph = export_graph(copy.encoder)
    queries = checked_encoder(graph, model.encoder)
    length = json.loads(tokenizer_of(model.encoder))["truncation"]["max_length"]
    about = {name: getattr(queries, name) for name in TOLD}
    about |= {"document_encoder": document_encoder_of(model), "length": length}
    write_bytes(STORED, without_weights(graph, Path(model.path), about))
    write_bytes(BEST_TAGS, gzip.compress(decoder_graph(), mtime=0))
    for file in (STORED, BEST_TAGS):
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    run_script(main)
