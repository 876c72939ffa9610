"""Readers: the default encoder with adapters that came with the package, run by ONNX Runtime on the CPU.

The adapters are changes of low rank to the encoder's own weights (`ReadingAdapters` in reading_boolbert.py), 1.3 MB
for each reader. They are added to the weights once, when the reader is opened; torch is not needed. On a GPU:
retrieval/gpu_reader.py.
"""

import gzip
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.boolean.tags import ASKS, CUE, EXCLUDING, KIND, KINDS_OF_NOT, LEAD, LEAST_ASKING, OUTSIDE, TAGS
from boolbert.core.errors import RetrievalError
from boolbert.core.files import read_object
from boolbert.retrieval.encoders import NoEncoder, check_files, default_folder, embeddings_mark, resolve_encoder
from boolbert.retrieval.int8_encoder import open_program, threads
from boolbert.retrieval.token_program import Ranges, token_program

DOCUMENT_READER = Path(__file__).parent / "document_reader.safetensors"
DOCUMENT_RANGES = Path(__file__).parent / "document_ranges.safetensors"  # of train/reader_ranges.py
# `best_tags` of reading_boolbert.py as an ONNX graph; search/default_program.py writes it.
BEST_TAGS = Path(__file__).parent / "best_tags.onnx.gz"
# A layer's matrices, as `ReadingLayer` and as a BERT names them.
MATRICES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "inside": "intermediate.dense",
    "output": "output.dense",
}

Array = npt.NDArray[np.float32]
_IS_PROPERTY = np.array(KINDS_OF_NOT) == "property"
_EXCLUDES = np.array([tag != OUTSIDE and tag[2:] in CUE + EXCLUDING for tag in TAGS])


class Said(NamedTuple):
    """What the query reader says of a query's tokens (L,): their tags, as numbers in `TAGS`, and how probable it is
    that each is a cue of NOT or excluded. kind: what NOT excludes, if it excludes anything; asks: it is a question."""

    tags: npt.NDArray[np.int64]
    excludes: Array
    kind: str
    asks: bool


class Reader:
    """An encoder with a reader's adapters: from token ids to the numbers that its head gives each token."""

    def __init__(self, folder: Path, adapters: Path, ranges: Ranges | None = None, *, float32: bool = False):
        """folder: the encoder's; adapters: a file that one of `train/*_reader.py` has written for it. ranges: what
        `ranges_of` has found for them. float32: nothing is rounded to int8."""
        weights, head, bias = weights_of(folder, adapters)
        self._words = weights["embeddings.word_embeddings.weight"]
        self._places = weights["embeddings.position_embeddings.weight"]
        self._places = self._places + weights["embeddings.token_type_embeddings.weight"][0]
        config = SimpleNamespace(**read_object(folder / "config.json", RetrievalError))
        self._session = open_program(token_program(weights, config, head, bias, ranges, float32=float32))
        self.tokenizer, self.at_once = open_tokenizer(folder), threads()

    def scores(self, ids: Sequence[int]) -> Array:
        """The head's numbers for each token of one text, (L, outputs)."""
        embeddings = self._words[ids] + self._places[: len(ids)]
        (found,) = self._session.run(None, {"embeddings": embeddings[None]})
        own: Array = found[0]
        return own

    def read(self, ids: Sequence[int]) -> Said:
        """What a query says; the first and the last of its tokens are no words."""
        scores = self.scores(ids)
        words = np.ones((1, len(ids)), bool)
        words[:, [0, -1]] = False
        (tags,) = _decoder().run(None, {"scores": scores[None, :, :KIND], "words": words})
        odds = np.exp(scores[:, : len(TAGS)] - scores[:, : len(TAGS)].max(1, keepdims=True))
        sentence = scores[1:-1].mean(0)
        kinds = sentence[KIND:ASKS] - LEAD * _IS_PROPERTY
        excludes = odds[:, _EXCLUDES].sum(1) / odds.sum(1)
        return Said(tags[0], excludes, KINDS_OF_NOT[int(kinds.argmax())], bool(sentence[ASKS] > LEAST_ASKING))

    def all_scores(self, texts: Sequence[Sequence[int]]) -> list[Array]:
        """The same for many texts, on all cores; each alone, so that its bits do not depend on the others. The longest
        come first, so that all cores end together."""
        if len(texts) < 2:
            return list(map(self.scores, texts))
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        with ThreadPoolExecutor(threads()) as pool:
            found = dict(zip(order, pool.map(self.scores, (texts[row] for row in order)), strict=True))
        return [found[row] for row in range(len(texts))]


@cache
def _decoder() -> Any:
    return open_program(gzip.decompress(BEST_TAGS.read_bytes()))


def open_tokenizer(folder: Path) -> Any:
    """The tokenizer of an encoder, for whole texts."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def weights_of(folder: Path, adapters: Path) -> tuple[dict[str, npt.NDArray[Any]], Array, Array]:
    """A BERT's weights with the changes of adapters, and the weight and bias of the adapters' head."""
    from safetensors.numpy import load_file

    own = {name: value.astype(np.float32) for name, value in load_file(adapters).items()}
    return adapted(load_file(folder / "model.safetensors"), own), own["head.weight"], own["head.bias"]


def adapted(weights: Mapping[str, npt.NDArray[Any]], own: Mapping[str, Array]) -> dict[str, npt.NDArray[Any]]:
    """A BERT's weights with the changes of adapters added to them."""
    found = dict(weights)
    for name in own:
        if name.endswith(".down"):
            _, layer, matrix, _ = name.split(".")
            target = f"encoder.layer.{layer}.{MATRICES[matrix]}.weight"
            found[target] = weights[target] + own[name.removesuffix("down") + "up"] @ own[name]
    return found


def ranges_of(adapters: Path, file: Path = DOCUMENT_RANGES) -> Ranges | None:
    """How large numbers become inside the reader of these adapters; None where the file is of other ones."""
    from safetensors import safe_open

    if not file.exists():
        return None
    with safe_open(file, framework="np") as opened:
        if (opened.metadata() or {}).get("adapters") != adapters_mark(adapters):
            return None
        return {name: opened.get_tensor(name).astype(np.float32) for name in opened.keys()}  # noqa: SIM118


def adapters_mark(adapters: Path) -> str:
    """A hash of adapters, by which their ranges know them."""
    import hashlib

    return hashlib.sha256(adapters.read_bytes()).hexdigest()[:16]


@cache
def open_reader(adapters: Path) -> Reader | None:
    """A reader of queries that came with the package, in float32: a query is short, and is read alike on every
    processor. None where its encoder is not to be had."""
    folder = encoder_of(adapters)
    return None if folder is None else Reader(folder, adapters, float32=True)


def encoder_of(adapters: Path) -> Path | None:
    """The folder of the encoder that adapters were learned for; None where it is not to be had."""
    from safetensors import safe_open

    folder = default_folder()  # the Hub's client takes longer to import than a query to answer
    try:
        folder = folder or Path(resolve_encoder().path)
    except NoEncoder:
        return None
    check_files(folder)
    if not adapters.exists():
        return None
    with safe_open(adapters, framework="np") as file:
        expected = (file.metadata() or {}).get("encoder")
    return folder if expected == encoder_mark(folder) else None


def encoder_mark(folder: Path) -> str:
    """The mark (`embeddings_mark`) of the encoder in a folder."""
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="np") as file:
        return embeddings_mark(file.get_slice("embeddings.word_embeddings.weight"))
