"""Vectors of a corpus on disk, in shards: each a fixed range of documents, whole or not there.

manifest.json        how many documents, of which corpus, by which model, and how they are cut and stored
vectors-00000.npy    the vectors of the first `shard_size` documents, and so on
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.core.errors import RetrievalError, shorten
from boolbert.core.files import make_folder, read_object, save_array, whole_file, write_json

MANIFEST = "manifest.json"
FIELDS = {
    "documents": int,
    "size": int,
    "shard_size": int,
    "batch_size": int,
    "storage": str,
    "corpus": str,
    "model": str,
    "precision": str,
}
STORAGES = ("float32", "float16")
FLOAT32, INT8 = "float32", "int8"  # of the products by which documents were encoded: retrieval/int8_encoder.py
SHARD_SIZE = 8192


class Vectors:
    """Several arrays of vectors, one after the other: `shape`, `len` and slices of rows work as for one array."""

    def __init__(self, parts: Sequence[npt.NDArray[Any]], size: int):
        self.parts = parts
        self._edges = np.cumsum([0, *map(len, parts)])
        self.shape = (int(self._edges[-1]), size)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        start, end, step = rows.indices(len(self))
        if step != 1:
            raise ValueError(f"vectors can be sliced in steps of 1 only, got {step}")
        first, last = np.searchsorted(self._edges, [start, max(start, end - 1)], side="right")
        edges = zip(self._edges[first - 1 :], self.parts[first - 1 : last], strict=False)
        pieces = [part[max(start - edge, 0) : max(end - edge, 0)] for edge, part in edges]
        return pieces[0] if len(pieces) == 1 else np.concatenate([self._empty(0), *pieces])

    def rows(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The vectors of some rows, copied."""
        found = self._empty(len(rows))
        for number, inside, is_there in rows_by_part(self._edges, rows):
            found[is_there] = self.parts[number][inside]
        return found

    def _empty(self, count: int) -> npt.NDArray[Any]:
        return np.empty((count, self.shape[1]), self.parts[0].dtype if self.parts else np.float32)


def rows_by_part(
    edges: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """Each part that holds some of the rows: its number, these rows inside of it, and which of all they are.

    edges: the first row of each part.
    """
    numbers = np.searchsorted(edges, rows, side="right") - 1
    for number in np.flatnonzero(np.bincount(numbers)):
        is_there = numbers == number
        yield int(number), rows[is_there] - edges[number], is_there


class Shards(Vectors):
    """The vectors of a corpus, memory-mapped: only what is sliced is read."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)
        count = shard_count(self.manifest)
        missing = [number for number in range(count) if not is_whole(self.folder, number, self.manifest)]
        if missing:
            raise RetrievalError(
                f"{self.folder}: {len(missing)} of {count} shards are missing or damaged, first "
                f"{shard_path(self.folder, missing[0]).name}; encode again, it goes on where it was"
            )
        # Copy on write: torch takes such arrays as they are, and the files cannot change.
        # And plain arrays: a slice of a `np.memmap` takes three times as long.
        maps = (np.load(shard_path(self.folder, number), mmap_mode="c") for number in range(count))
        super().__init__([np.asarray(part) for part in maps], self.manifest["size"])
        self._copies: dict[str, Any] = {}

    def on(self, device: Any) -> Any:
        """The vectors where they are searched: copied once to a GPU that has room for them, else as they lie here."""
        import torch

        device = torch.device(device)
        if device.type != "cuda":
            return self
        if str(device) not in self._copies:
            size = self.shape[0] * self.shape[1] * self.parts[0].itemsize
            fits = 2 * size < torch.cuda.mem_get_info(device)[0]
            parts = (torch.from_numpy(part).to(device) for part in self.parts)
            self._copies[str(device)] = torch.cat(list(parts)) if fits else self
        return self._copies[str(device)]


def begin(folder: Path, manifest: dict[str, Any]) -> None:
    """Make a folder ready for shards. A manifest that is there stays: an earlier call is continued."""
    make_folder(folder)
    if not (folder / MANIFEST).exists():
        if foreign := next(folder.glob("vectors-*.npy"), None):
            raise RetrievalError(f"{foreign}: was not written by this command; give another folder")
        write_json(folder / MANIFEST, manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = read_object(folder / MANIFEST, RetrievalError)
        manifest.setdefault("precision", FLOAT32)  # earlier versions had no int8
        check_fields(folder / MANIFEST, manifest, FIELDS)
        if manifest["precision"] not in (FLOAT32, INT8):
            raise RetrievalError(f"{folder / MANIFEST}: field 'precision' must be {FLOAT32} or {INT8}")
    except FileNotFoundError:
        raise RetrievalError(f"{folder}: holds no encoded corpus ({MANIFEST} is missing)") from None
    except RetrievalError as error:
        raise RetrievalError(f"{error}; give another folder, or delete this one and encode again") from None
    return manifest


def precision_of(folder: Path) -> str | None:
    """Whether vectors were computed in float32 or int8; None where none are begun."""
    return read_manifest(folder)["precision"] if (folder / MANIFEST).exists() else None


def check_fields(path: Path, manifest: dict[str, Any], fields: dict[str, type]) -> None:
    """Raise where a manifest lacks a field, or holds another type of value there; counts and sizes are at least 1."""
    for name, kind in fields.items():
        value = manifest.get(name)
        if type(value) is not kind or (isinstance(value, int) and value < 1):
            raise RetrievalError(f"{path}: field {name!r} is missing or wrong: {shorten(value)}")


def check_manifest(folder: Path, manifest: dict[str, Any], expected: dict[str, Any]) -> None:
    """Raise where a folder holds the vectors of another corpus or model."""
    if any(manifest.get(name) != expected[name] for name in ("documents", "corpus")):
        raise RetrievalError(
            f"{folder}: the corpus has changed since it was encoded ({manifest.get('documents'):,} documents then, "
            f"{expected['documents']:,} now, content hash {manifest.get('corpus')} / {expected['corpus']}); "
            "encode it into another folder, or delete this one"
        )
    for name in ("model", "storage"):
        if manifest.get(name) != expected[name]:
            raise RetrievalError(
                f"{folder}: was encoded with another {name} ({manifest.get(name)}, now {expected[name]}); "
                "encode into another folder, or delete this one"
            )


def shard_count(manifest: dict[str, Any]) -> int:
    return -(-manifest["documents"] // manifest["shard_size"])


def shard_rows(number: int, manifest: dict[str, Any]) -> range:
    """The documents of a shard.

    >>> shard_rows(1, {"documents": 10, "shard_size": 8})
    range(8, 10)
    """
    start = number * manifest["shard_size"]
    return range(start, min(start + manifest["shard_size"], manifest["documents"]))


def shard_path(folder: Path, number: int) -> Path:
    return folder / f"vectors-{number:05d}.npy"


def is_whole(folder: Path, number: int, manifest: dict[str, Any]) -> bool:
    try:
        shard = np.load(shard_path(folder, number), mmap_mode="r")
    except Exception:  # empty, cut short or anything else: numpy has an error type for each
        return False
    return shard.shape == (len(shard_rows(number, manifest)), manifest["size"]) and shard.dtype == manifest["storage"]


def write_shard(folder: Path, number: int, vectors: npt.NDArray[np.float32], manifest: dict[str, Any]) -> None:
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        row = shard_rows(number, manifest)[int(np.argmin(finite))]
        raise RetrievalError(
            f"document {row}: the model gives NaN or infinity; it is broken, or overflows in half precision"
        )
    with np.errstate(over="ignore"):
        stored = vectors.astype(manifest["storage"])
    if not np.isfinite(stored).all():
        raise RetrievalError(f"{folder}: a vector is too large for float16; store float32")
    with whole_file(shard_path(folder, number)) as aside:
        save_array(aside, stored)
