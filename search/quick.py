"""Search that answers at once: the query side of a model as one file, for which torch is enough.

To import transformers and sentence-transformers and to open a model with them takes seconds, a query a few hundredths
of one. So `boolbert search` keeps what a model computes for a query as a TorchScript file in the user's cache, and
asks that from the second call on. Its numbers are the model's own. A file is used only while the model's files, this
package's and torch's version are those that it was made with.
"""

import hashlib
import importlib.metadata
import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from boolbert.boolean import multi_hot
from boolbert.core.files import cache_root, read_object, whole_file, write_json
from boolbert.retrieval.encoders import encoder_parts
from boolbert.retrieval.index import Index, default_index_folder, document_encoder_of, is_index
from boolbert.retrieval.models import (
    READING_FILE,
    newest_run,
    no_warnings,
    note_on,
    run_note,
)

from .program import Program, agree, open_script, script_of, tokenizer_of
from .searcher import BoolSearcher, is_store

PROGRAM, TOKENIZER, SETTINGS = "query.pt", "tokenizer.json", "quick.json"
KEPT = 4  # models


@dataclass(frozen=True)
class QuickModel:
    """What a search needs to know of a model that is not opened; the first fields are a `SearchModel`'s."""

    name: str | None
    note: str
    trained: bool
    document_encoder: str
    prompt: str
    is_cosine: bool
    excludes: bool
    folder: Path  # of the program


class QuickSearcher(BoolSearcher):
    """A `BoolSearcher` that asks a stored program instead of the model, on the CPU."""

    model: QuickModel  # type: ignore[assignment]

    def __init__(self, model: QuickModel, index: Index):
        self.model, self.index = model, index
        index.check_model(model)
        tokenizer = (model.folder / TOKENIZER).read_text(encoding="utf-8")
        self._program = Program(open_script(model.folder / PROGRAM), tokenizer, model.prompt, model.is_cosine)

    @property
    def is_boolean(self) -> bool:
        return True

    @property
    def _excludes(self) -> bool:
        return self.model.excludes

    @property
    def prompt(self) -> str:
        return self.model.prompt

    @property
    def _is_cosine(self) -> bool:
        return self.model.is_cosine

    @property
    def _device(self) -> str:
        return "cpu"

    def _labels(self, operators: Sequence[Any] | None) -> list[int] | None:
        return None if operators is None else list(multi_hot(operators))


def quick_searcher(name: str | None, index: str | None, device: str | None) -> QuickSearcher | None:
    """A searcher for a model's folder, or as without a name; None where nothing is stored that could be used."""
    if device not in (None, "cpu") or (index is not None and is_store(index)):
        return None
    opened = None if index is None else Index(index)
    try:
        model = _stored(name if opened is None or name is not None else opened.model)
        if model is None:
            return None
        if opened is None:
            folder = default_index_folder(model)
            if not is_index(folder):
                return None
            opened = Index(folder)
        return QuickSearcher(model, opened) if opened.fits(model) else None
    except Exception:  # whatever is wrong with a cache, the model itself can be opened, or says what is wrong
        return None


def keep(searcher: BoolSearcher) -> None:
    """Store what a searcher's model computes for a query, for `quick_searcher`."""
    model, index = searcher.model, searcher.index
    if model.bert is None or model.path is None or torch.device(searcher._device).type != "cpu":
        return
    if not isinstance(index, Index):
        return
    home = _home(model.path if model.name is not None else None)
    # No room, no permission, a model that TorchScript cannot hold: without the file a search takes longer, that is all.
    with suppress(Exception), no_warnings():
        home.mkdir(parents=True, exist_ok=True)
        (home / SETTINGS).unlink(missing_ok=True)
        with whole_file(home / PROGRAM) as aside, aside.open("wb") as file:
            file.write(script_of(model))
        with whole_file(home / TOKENIZER) as aside:
            aside.write_text(tokenizer_of(model), encoding="utf-8")
        folder = Path(model.path).resolve()
        settings = {
            "path": str(folder),
            "made_with": _made_with(folder),
            "note": model.note,
            "trained": model.trained,
            "document_encoder": document_encoder_of(model),
            "prompt": searcher.prompt,
            "is_cosine": searcher._is_cosine,
            "excludes": searcher._excludes,
        }
        stored = _as_model(model.name, settings, home)
        if agree(QuickSearcher(stored, index), searcher):
            write_json(home / SETTINGS, settings)
        _forget_the_oldest(home.parent)


def _forget_the_oldest(root: Path) -> None:
    """A program is as large as its model: only those that were made last are kept."""
    made = sorted(root.iterdir(), key=lambda home: home.stat().st_mtime_ns)
    for home in made[:-KEPT]:
        shutil.rmtree(home, ignore_errors=True)


def _stored(name: str | None) -> QuickModel | None:
    """The stored model of a folder, of the newest run, or the default one."""
    note = None
    if name is not None:
        if not Path(name).is_dir():
            return None
        note = note_on(name, is_boolean=True)
    elif (run := newest_run()) is not None:
        name, note = str(run.folder), run_note(run)
    home = _home(name)
    settings = read_object(home / SETTINGS)
    if settings["made_with"] != _made_with(Path(settings["path"])):
        return None
    return _as_model(name, settings if note is None else {**settings, "note": note}, home)


def _as_model(name: str | None, settings: dict[str, Any], home: Path) -> QuickModel:
    names = ("note", "trained", "document_encoder", "prompt", "is_cosine", "excludes")
    return QuickModel(name, **{field: settings[field] for field in names}, folder=home)


def _home(name: str | None) -> Path:
    """Where a model's program is kept; None is the default model."""
    key = "" if name is None else str(Path(name).resolve())
    return cache_root() / "quick" / hashlib.sha256(key.encode()).hexdigest()[:16]


def _made_with(folder: Path) -> str:
    """Changes with any file of the model, of this package's that compute, and with torch and transformers."""
    package = Path(__file__).parent.parent
    here = Path(__file__)
    files = [*sorted(package.glob("*_boolbert.py")), here, here.with_name("program.py"), READING_FILE]
    for part in encoder_parts(folder):
        files += sorted(file for file in part.iterdir() if file.suffix in (".json", ".txt", ".model", ".safetensors"))
    stamps = [[str(file), (status := file.stat()).st_size, status.st_mtime_ns] for file in files]
    versions = [importlib.metadata.version(name) for name in ("torch", "transformers", "tokenizers")]
    return hashlib.sha256(json.dumps([stamps, versions]).encode()).hexdigest()
