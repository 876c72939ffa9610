"""The countries as a data folder in QUEST's format, made on first use and kept in the user's cache."""

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...core.files import cache_root, whole_file, whole_folder
from .atoms import country_atoms
from .describe import country_documents
from .queries import SIZES, country_queries

FILES = ("documents.jsonl", *(f"{split}.jsonl" for split in SIZES), "atoms.json")


def countries_folder(cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """A folder with documents, train, dev, test and atoms; it is made if it is not there yet.

    It stands in `cache_dir`, else in $BOOLBERT_CACHE, $XDG_CACHE_HOME/boolbert or ~/.cache/boolbert, under a name that
    changes with the table and the code that writes it. Where that place cannot be written, it is a temporary folder.
    """
    root = Path(cache_dir) if cache_dir is not None else cache_root()
    folder = root / f"countries-{_version()}"
    if _is_complete(folder):
        return folder
    try:
        root.mkdir(parents=True, exist_ok=True)
        return _make(folder)
    except OSError as error:
        if cache_dir is not None:
            raise OSError(f"cannot write the countries to {folder}: {error.strerror or error}") from error
        return _temporary_folder(f"{folder}: {error.strerror or error}")


def write_countries(folder: str | os.PathLike[str]) -> Path:
    """Write the data files into a folder; each file is replaced as a whole."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        with whole_file(folder / name) as aside, aside.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(_lines(name))
    return folder


def _make(folder: Path) -> Path:
    """Nobody ever sees half of it, even when two processes make it."""
    if folder.exists() and not _is_complete(folder):
        shutil.rmtree(folder, ignore_errors=True)
    with whole_folder(folder) as aside:
        write_countries(aside)
    return folder


@cache
def _temporary_folder(problem: str) -> Path:
    """One folder for this process, deleted at its end. It has a folder round it, which an index may stand in too."""
    warnings.warn(f"the cache cannot be written ({problem}); using a temporary folder", stacklevel=3)
    root = Path(tempfile.mkdtemp(prefix="boolbert-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return write_countries(root / f"countries-{_version()}")


@cache
def _version() -> str:
    """A hash of everything that the files are made from: the table, this package, and the cue lexicon."""
    here = Path(__file__).parent
    boolean = here.parents[1] / "boolean"
    sources = [*here.glob("*.csv"), *here.glob("*.py"), *boolean.glob("*.py"), *boolean.glob("*.tsv")]
    digest = hashlib.sha256()
    for source in sorted(sources):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() and (folder / name).stat().st_size for name in FILES)


def _lines(name: str) -> Iterable[str]:
    if name == "atoms.json":
        atoms = ",\n".join(f"{json.dumps(key)}: {json.dumps(rows)}" for key, rows in country_atoms().items())
        return [f"{{\n{atoms}\n}}\n"]
    rows: Iterable[Mapping[str, Any]] = (
        country_documents() if name == "documents.jsonl" else country_queries(name.removesuffix(".jsonl"))
    )
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
