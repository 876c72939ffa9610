"""Encode a corpus of any size into shards on disk, with any sentence-transformers model.

Of several processes (`accelerate launch`) each takes every n-th shard. A killed run goes on where it was and ends with
the same bytes. A folder that holds the vectors of another corpus or of another model is refused.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from boolbert.core.checks import check_count
from boolbert.core.errors import RetrievalError
from boolbert.core.progress import shown_progress
from boolbert.data import Corpus
from boolbert.retrieval.fingerprints import corpus_fingerprint, model_fingerprint
from boolbert.retrieval.int8_encoder import Int8Encoder
from boolbert.retrieval.shards import (
    FLOAT32,
    INT8,
    SHARD_SIZE,
    STORAGES,
    Shards,
    begin,
    check_manifest,
    is_whole,
    read_manifest,
    shard_count,
    shard_rows,
    write_shard,
)

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# What the launchers of several processes set, as accelerate looks for it.
LAUNCHED = {"WORLD_SIZE", "LOCAL_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"}


def encode_corpus(
    model: "SentenceTransformer | Int8Encoder",
    corpus: Corpus,
    folder: str | Path,
    *,
    storage: str = "float32",
    batch_size: int | None = None,
    shard_size: int = SHARD_SIZE,
    progress: bool = True,
    mixed: bool = False,
) -> Shards:
    """Encode the documents' texts, or go on where an earlier call in this folder was cut off. mixed: in float32 too
    where that one used int8."""
    if storage not in STORAGES:
        raise RetrievalError(f"storage must be one of {', '.join(STORAGES)}, got {storage!r}")
    for name, value in (("shard_size", shard_size), ("batch_size", batch_size)):
        if value is not None:
            check_count(name, value)
    state = processes()
    folder, precision = Path(folder), INT8 if isinstance(model, Int8Encoder) else FLOAT32
    known = model.fingerprint() if isinstance(model, Int8Encoder) else model_fingerprint(model, "document")
    expected = {"documents": len(corpus), "corpus": corpus_fingerprint(corpus), "model": known, "storage": storage}
    if state.is_main_process:
        sizes = {"shard_size": shard_size, "batch_size": batch_size or default_batch_size(model), "size": _size(model)}
        begin(folder, {**expected, **sizes, "precision": precision})
    state.wait_for_everyone()
    manifest = read_manifest(folder)
    check_manifest(folder, manifest, expected)

    own = range(shard_count(manifest))[state.process_index :: state.num_processes]
    missing = [number for number in own if not is_whole(folder, number, manifest)]
    if missing and manifest["precision"] != precision and not (mixed and precision == FLOAT32):
        raise RetrievalError(
            f"{folder}: was begun in {manifest['precision']} and would go on in {precision}; give another folder"
        )
    counts = {number: len(shard_rows(number, manifest)) for number in own}
    total = sum(counts.values())
    done = total - sum(counts[number] for number in missing)
    shown = progress and state.is_local_main_process

    def write(number: int, vectors: Callable[[], npt.NDArray[np.float32]]) -> None:
        write_shard(folder, number, vectors(), manifest)

    ready: Callable[[], object] = lambda: None  # noqa: E731
    bar = shown_progress("encode", total, "document", done=done, shown=shown)
    with bar as advance, ThreadPoolExecutor(max_workers=1) as writer:  # writes a shard while the next is encoded
        for number, vectors in _vectors(model, corpus, missing, manifest, advance):
            ready()
            ready = writer.submit(write, number, vectors).result
        ready()
    state.wait_for_everyone()
    return Shards(folder)


def _vectors(
    model: "SentenceTransformer | Int8Encoder",
    corpus: Corpus,
    numbers: Sequence[int],
    manifest: dict[str, Any],
    on_batch: Callable[[int], object],
) -> Iterator[tuple[int, Callable[[], npt.NDArray[np.float32]]]]:
    """What gives the vectors of these shards. The texts of the next one are tokenized while the model computes."""
    if isinstance(model, Int8Encoder):
        for number in numbers:
            vectors = model(corpus.texts(shard_rows(number, manifest)), on_batch)
            yield number, partial(np.asarray, vectors)
        return
    from boolbert.retrieval.batches import Preparation, prepared_batches, start_batches
    from boolbert.retrieval.prefetch import prefetch

    preparation = Preparation.of(model, "document")

    def prepare(number: int) -> Any:
        texts = corpus.texts(shard_rows(number, manifest))
        return texts if preparation is None else preparation.tokens(texts)

    size, pin = manifest["batch_size"], model.device.type == "cuda"
    for number, prepared in zip(numbers, prefetch(prepare, numbers, depth=1), strict=True):
        if preparation is None:
            batches = prepared_batches(model, prepared, "document", size)
        else:
            batches = preparation.batches(prepared, size, pin=pin)
        yield number, start_batches(model, batches, "document", on_batch=on_batch)


def _size(model: "SentenceTransformer | Int8Encoder") -> int:
    """How many numbers a vector has."""
    if isinstance(model, Int8Encoder):
        return model.size
    from boolbert.retrieval.batches import encode_inputs

    return model.get_embedding_dimension() or encode_inputs(model, ["size"], "document", 1).shape[1]


def default_batch_size(model: "SentenceTransformer | Int8Encoder") -> int:
    """Documents of full length in a batch."""
    return 32 if isinstance(model, Int8Encoder) or model.device.type != "cuda" else 256


def processes() -> Any:
    """Which of the launched processes this one is; without a GPU, accelerate needs `cpu=True`."""
    if not LAUNCHED & os.environ.keys():  # nothing to ask accelerate for, which imports torch
        alone = {"is_main_process": True, "is_local_main_process": True, "process_index": 0, "num_processes": 1}
        return SimpleNamespace(**alone, wait_for_everyone=lambda: None)
    import torch
    from accelerate import PartialState

    return PartialState(cpu=not torch.accelerator.is_available())
