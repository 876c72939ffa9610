"""Models whose query side is cached as an ONNX file, so that `boolbert search` answers at once.

To import torch, transformers and sentence-transformers and to open a model takes seconds, a query a few hundredths of
one. A cached file is used only while the model's files, this package's and the libraries' versions are those that it
was made with, if its SHA-256 is the recorded one, and from a folder that is the user's alone.
"""

import hashlib
import importlib.metadata
import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boolbert.core.environment import may_have_gpu
from boolbert.core.errors import BoolBertError
from boolbert.core.files import cache_root, delete, write_bytes, write_json
from boolbert.retrieval.encoders import default_folder, encoder_parts, resolve_encoder
from boolbert.retrieval.fingerprints import document_encoder_of
from boolbert.retrieval.models import (
    SearchModel,
    bool_bert,
    default_bert,
    load_model,
    note_on,
    upgraded_note,
)

from .query_encoder import TOLD, QueryEncoder, open_graph

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from boolbert.retrieval.index import Index
    from boolbert.retrieval.stores import VectorStore

GRAPH, SETTINGS = "query.onnx", "settings.json"
COMPUTES = ("", "boolean/", "retrieval/", "search/")  # folders of the package on which a cached file depends
CACHED_MODELS = 4  # at most: a graph is as large as its model


@dataclass(frozen=True)
class CachedModel:
    """A `SearchModel` that is opened only if more than its query side is asked for."""

    name: str | None
    note: str
    trained: bool
    document_encoder: str  # its fingerprint, by which an index knows it
    queries: QueryEncoder

    @cached_property
    def encoder(self) -> "SentenceTransformer":
        return load_model(self.name, device="cpu").encoder

    @cached_property
    def bert(self) -> Any | None:
        return default_bert() if self.name is None else bool_bert(self.encoder)


def cached_model(name: str | None) -> CachedModel | None:
    """The cached model of a folder; without a name the default one. None: not cached."""
    if name is not None and not Path(name).is_dir():
        return None
    note = None if name is None else note_on(name, is_boolean=True)
    # Whatever is wrong with a cache, the model itself can be opened, or says what is wrong.
    with suppress(Exception):
        return _read(name, note)
    if name is None:
        with suppress(Exception):
            return _from_package()
    return None


def cached_for(
    name: str | Path | None, documents: "Index | VectorStore | None", device: str | None
) -> CachedModel | None:
    """The cached model, where queries are computed on the CPU and it has encoded the documents; else None."""
    if device != "cpu" and (device is not None or may_have_gpu()):
        return None
    model = cached_model(None if name is None else str(name))
    return model if model is not None and (documents is None or documents.fits(model)) else None


def cache_model(model: SearchModel | CachedModel) -> None:
    """Export a model's query side for `cached_model`, where that can be done and was not done before."""
    if isinstance(model, CachedModel):
        return
    from .export import checked_encoder, export_graph

    if model.bert is None or model.path is None or model.bert.device.type != "cpu":
        return
    # No room, no permission, no ONNX Runtime: without the file a search takes longer, that is all.
    with suppress(Exception):
        graph = export_graph(model.encoder)
        queries = checked_encoder(graph, model.encoder)
        cached = CachedModel(model.name, model.note, model.trained, document_encoder_of(model), queries)
        _write(cached, model.path, graph)


def _from_package() -> CachedModel:
    """The default model, whose graph comes with the package (search/default_program.py)."""
    from .default_program import default_program

    default = resolve_encoder()
    graph, queries, document_encoder = default_program(Path(default.path))
    model = CachedModel(None, upgraded_note(default), True, document_encoder, queries)
    with suppress(Exception):  # without a cache the next search does the same again
        _write(model, default.path, graph)
    return model


def _write(model: CachedModel, path: str, graph: bytes) -> None:
    """Write a model whose files lie under a path, for `_read`."""
    folder, source = _folder(model.name and path), Path(path).resolve()
    _make_private(folder)
    write_bytes(folder / GRAPH, graph)
    settings: dict[str, Any] = {"path": str(source), "fingerprint": _fingerprint(source), "sha256": _sha256(graph)}
    settings |= {name: getattr(model, name) for name in ("note", "trained", "document_encoder")}
    settings["queries"] = [getattr(model.queries, name) for name in ("tokenizer", *TOLD)]
    write_json(folder / SETTINGS, {**settings, "check": _check_of(settings)})
    _delete_oldest(folder.parent)


def _read(name: str | None, note: str | None) -> CachedModel:
    folder = _folder(name)
    _check_private(folder)
    settings = json.loads(_own_bytes(folder / SETTINGS))
    if settings.pop("check") != _check_of(settings):
        raise BoolBertError(f"{folder}: was changed after it was written")
    path, own = Path(settings["path"]), default_folder() if name is None else Path(name)
    if own is None or path != own.resolve() or settings["fingerprint"] != _fingerprint(path):
        raise BoolBertError(f"{folder}: was made from another model, or by other versions")
    graph = _own_bytes(folder / GRAPH)
    if _sha256(graph) != settings["sha256"]:
        raise BoolBertError(f"{folder}: was changed after it was written")
    queries = QueryEncoder(open_graph(graph), *settings["queries"])
    return CachedModel(name, note or settings["note"], settings["trained"], settings["document_encoder"], queries)


def _make_private(folder: Path) -> None:
    """Make a folder that is the user's alone, empty or as an earlier call left it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        try:
            _check_private(folder)
        except BoolBertError:
            delete(folder)
    folder.mkdir(mode=0o700, exist_ok=True)
    _check_private(folder)
    (folder / SETTINGS).unlink(missing_ok=True)


def _check_private(folder: Path) -> None:
    """Raise unless a folder belongs to this user and nobody else may look into it."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise BoolBertError(f"{folder}: is not a folder of this user alone")


def _own_bytes(path: Path) -> bytes:
    """A file's content; raises where it is a link, a pipe, or another user's."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            raise BoolBertError(f"{path}: is no file of this user")
        return file.read()


def _check_of(settings: dict[str, Any]) -> str:
    """By which it is noticed that settings are not those that were written."""
    return _sha256(json.dumps(settings, sort_keys=True).encode())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _delete_oldest(root: Path) -> None:
    folders = sorted(root.iterdir(), key=lambda folder: folder.stat().st_mtime_ns)
    for folder in folders[:-CACHED_MODELS]:
        with suppress(OSError):
            delete(folder)


def _folder(name: str | None) -> Path:
    """Where a model's files are cached; None is the default model."""
    key = "" if name is None else str(Path(name).resolve())
    return cache_root() / "exported" / _sha256(key.encode())[:16]


def _fingerprint(folder: Path) -> str:
    """Changes with any file of the model, with this package's that compute, and with the libraries' versions."""
    package = Path(__file__).parent.parent
    files = [file for name in COMPUTES for file in sorted(package.glob(f"{name}*.*")) if file.is_file()]
    for part in encoder_parts(folder):
        files += sorted(file for file in part.iterdir() if file.suffix in (".json", ".txt", ".model", ".safetensors"))
    stamps = [[str(file), (status := file.stat()).st_size, status.st_mtime_ns] for file in files]
    versions = [importlib.metadata.version(name) for name in ("torch", "transformers", "tokenizers", "onnxruntime")]
    return _sha256(json.dumps([stamps, versions]).encode())
