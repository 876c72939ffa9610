"""Encode a corpus of any size into shards on disk, with any sentence-transformers model.

python retrieval/encode.py --model DIR_OR_HUB_ID --data DIR_OR_HUB_ID --output_dir vectors
accelerate launch retrieval/encode.py ...                # several processes or GPUs: each takes every n-th shard

A killed run goes on where it was and ends with the same bytes: a shard is a fixed range of documents and is
renamed into place when it is whole. A corpus or a model other than the one a folder was begun with is refused.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from boolbert.data import Corpus
from boolbert.errors import EvaluationError
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.fingerprints import corpus_fingerprint, model_fingerprint

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MANIFEST = "manifest.json"
STORAGES = ("float32", "float16")
SHARD_SIZE = 8192


class Shards:
    """The vectors of a corpus, memory-mapped: only what is sliced is read.

    `shape`, `len` and slices of rows work as for an array.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)
        self.shape = (self.manifest["documents"], self.manifest["size"])
        self._shard_size = self.manifest["shard_size"]
        count = -(-self.shape[0] // self._shard_size)
        missing = [number for number in range(count) if not is_whole(self.folder, number, self.manifest)]
        if missing:
            raise EvaluationError(
                f"{self.folder}: {len(missing)} of {count} shards are missing or damaged, first "
                f"{shard_path(self.folder, missing[0]).name}; encode again, it goes on where it was"
            )
        self._parts = [np.load(shard_path(self.folder, number), mmap_mode="r") for number in range(count)]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        start, end, step = rows.indices(len(self))
        if step != 1:
            raise ValueError(f"Shards can be sliced in steps of 1 only, got {step}")
        pieces = []
        while start < end:
            number, first = divmod(start, self._shard_size)
            piece = self._parts[number][first : first + end - start]
            pieces.append(piece)
            start += len(piece)
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate([np.empty((0, self.shape[1]), self.manifest["storage"]), *pieces])


def encode_corpus(
    model: "SentenceTransformer",
    corpus: Corpus,
    folder: str | Path,
    *,
    storage: str = "float32",
    batch_size: int | None = None,
    shard_size: int = SHARD_SIZE,
    progress: bool = True,
) -> Shards:
    """Encode the documents' texts, or go on where an earlier call in this folder was cut off."""
    if storage not in STORAGES:
        raise EvaluationError(f"storage must be one of {', '.join(STORAGES)}, got {storage!r}")
    state = _processes()
    folder = Path(folder)
    wanted = {
        "documents": len(corpus),
        "corpus": corpus_fingerprint(corpus),
        "model": model_fingerprint(model, "document"),
        "storage": storage,
    }
    begun = {"shard_size": shard_size, "batch_size": batch_size or default_batch_size(model)}
    if state.is_main_process:
        _begin(folder, {**wanted, **begun}, model)
    state.wait_for_everyone()
    manifest = read_manifest(folder)
    check_manifest(folder, manifest, wanted)

    numbers = range(-(-len(corpus) // manifest["shard_size"]))[state.process_index :: state.num_processes]
    mine = [number for number in numbers if not is_whole(folder, number, manifest)]
    done = sum(len(_rows(number, manifest)) for number in numbers if number not in set(mine))
    total = sum(len(_rows(number, manifest)) for number in numbers)
    disable = None if progress and state.is_local_main_process else True
    with tqdm(total=total, initial=done, desc="encode", unit="doc", unit_scale=True, disable=disable) as bar:
        for number in mine:
            texts = [corpus.text(row) for row in _rows(number, manifest)]
            vectors = encode_inputs(model, texts, "document", manifest["batch_size"], on_batch=bar.update)
            _write_shard(folder, number, vectors, manifest)
    state.wait_for_everyone()
    return Shards(folder)


def default_batch_size(model: "SentenceTransformer") -> int:
    """Documents of full length in a batch."""
    return 256 if model.device.type == "cuda" else 32


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EvaluationError(f"{folder}: holds no encoded corpus ({MANIFEST} is missing)") from None
    except ValueError as error:
        raise EvaluationError(f"{path}: broken JSON: {error}; delete the folder and encode again") from None


def check_manifest(folder: Path, manifest: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise where a folder holds the vectors of another corpus or model."""
    if any(manifest.get(name) != wanted[name] for name in ("documents", "corpus")):
        raise EvaluationError(
            f"{folder}: the corpus has changed since it was encoded ({manifest.get('documents'):,} documents then, "
            f"{wanted['documents']:,} now, content hash {manifest.get('corpus')} / {wanted['corpus']}); "
            "encode it into another folder, or delete this one"
        )
    for name in ("model", "storage"):
        if manifest.get(name) != wanted[name]:
            raise EvaluationError(
                f"{folder}: was encoded with another {name} ({manifest.get(name)}, now {wanted[name]}); "
                "encode into another folder, or delete this one"
            )


def shard_path(folder: Path, number: int) -> Path:
    return folder / f"vectors-{number:05d}.npy"


def is_whole(folder: Path, number: int, manifest: dict[str, Any]) -> bool:
    try:
        shard = np.load(shard_path(folder, number), mmap_mode="r")
    except (OSError, ValueError):
        return False
    return shard.shape == (len(_rows(number, manifest)), manifest["size"]) and shard.dtype == manifest["storage"]


def _begin(folder: Path, manifest: dict[str, Any], model: "SentenceTransformer") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for unfinished in folder.glob(".vectors-*"):  # of a run that was killed while it wrote
        unfinished.unlink()
    if not (folder / MANIFEST).exists():
        size = model.get_embedding_dimension() or encode_inputs(model, ["size"], "document", 1).shape[1]
        replace_file(folder / MANIFEST, (json.dumps({**manifest, "size": size}, indent=2) + "\n").encode())


def _rows(number: int, manifest: dict[str, Any]) -> range:
    return range(manifest["documents"])[number * manifest["shard_size"] :][: manifest["shard_size"]]


def _write_shard(folder: Path, number: int, vectors: npt.NDArray[np.float32], manifest: dict[str, Any]) -> None:
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        row = _rows(number, manifest)[int(np.argmin(finite))]
        raise EvaluationError(
            f"document {row}: the model gives NaN or infinity; it is broken, or overflows in half precision"
        )
    with np.errstate(over="ignore"):
        stored = vectors.astype(manifest["storage"])
    if not np.isfinite(stored).all():
        raise EvaluationError(f"{folder}: a vector is too large for float16; store float32")
    path = shard_path(folder, number)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with open(aside, "wb") as file:
        np.save(file, stored)
    os.replace(aside, path)


def replace_file(path: Path, content: bytes) -> None:
    """Write aside and rename, so that nobody sees half a file."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_bytes(content)
    os.replace(aside, path)


def _processes() -> Any:
    from accelerate import PartialState

    return PartialState()


@dataclass
class Arguments:
    model: str | None = field(default=None, metadata={"help": "model folder or Hub id; all-MiniLM-L6-v2 if not given"})
    data: str | None = field(default=None, metadata={"help": "data folder or Hub data set id; the embedded countries"})
    output_dir: str = field(default="runs/vectors", metadata={"help": "folder for the shards"})
    precision: str = field(default="float32", metadata={"help": "of the model: float32, float16 or bfloat16"})
    storage: str = field(default="float32", metadata={"help": "of the vectors on disk: float32 or float16"})
    batch_size: int | None = field(default=None, metadata={"help": "documents of full length in a batch"})
    shard_size: int = field(default=SHARD_SIZE, metadata={"help": "documents of a shard"})
    device: str | None = field(default=None, metadata={"help": "cpu, cuda, ...; the best there is if not given"})


def main(arguments: Sequence[str] | None = None) -> None:
    from boolbert.data import Quest
    from boolbert.eval.arguments import parse
    from boolbert.retrieval.models import load_encoder

    args = parse(Arguments, __doc__, arguments)
    model = load_encoder(args.model, device=args.device, precision=args.precision)
    shards = encode_corpus(
        model,
        Quest(args.data).corpus,
        args.output_dir,
        storage=args.storage,
        batch_size=args.batch_size,
        shard_size=args.shard_size,
    )
    print(f"{len(shards):,} vectors of size {shards.shape[1]} in {args.output_dir}")


if __name__ == "__main__":
    from boolbert.errors import run_script

    run_script(main)
