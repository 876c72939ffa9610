"""Data that the package makes itself, as folders in QUEST's format: made on first use and kept in the user's cache."""

import atexit
import hashlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..core.files import cache_root, whole_file, whole_folder

Write = Callable[[Path], Path]


def embedded_folder(name: str, write: Write, files: Sequence[str]) -> Path:
    """The folder that `write` fills with `files`; it is made if it is not there yet.

    It stands in the user's cache (`cache_root`), under a name that changes with what it is made from. Where that place
    cannot be written, it is a temporary folder.
    """
    root = cache_root()
    folder = root / f"{name}-{_version(name)}"
    if _is_complete(folder, files):
        return folder
    try:
        root.mkdir(parents=True, exist_ok=True)
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
        with whole_folder(folder) as aside:  # nobody ever sees half of it, even when two processes make it
            write(aside)
        return folder
    except OSError as error:
        return _temporary_folder(name, write, f"{folder}: {error.strerror or error}")


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line; the file is replaced as a whole."""
    _write_lines(path, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_atoms(path: Path, atoms: Mapping[str, Sequence[int]]) -> None:
    """The atomic sets, one a line."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(list(rows))}" for key, rows in atoms.items())
    _write_lines(path, [f"{{\n{lines}\n}}\n"])


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with whole_file(path) as aside, aside.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


@cache
def _temporary_folder(name: str, write: Write, problem: str) -> Path:
    """One folder for this process, deleted at its end. It has a folder round it, which an index may stand in too."""
    warnings.warn(f"the cache cannot be written ({problem}); using a temporary folder", stacklevel=3)
    root = Path(tempfile.mkdtemp(prefix="boolbert-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return write(root / f"{name}-{_version(name)}")


@cache
def _version(name: str) -> str:
    """A hash of everything that the files are made from: the package that makes them, and the language of queries."""
    here = Path(__file__).parent
    sources = [*(here / name).glob("*.*"), Path(__file__), *(here.parent / "boolean").glob("*.*")]
    digest = hashlib.sha256()
    for source in sorted(sources):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _is_complete(folder: Path, files: Sequence[str]) -> bool:
    return all((folder / name).is_file() and (folder / name).stat().st_size for name in files)
