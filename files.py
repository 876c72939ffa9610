# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Files that are whole or not there, JSON that is read with a clear error, and the one place for cached data."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boolbert.errors import BoolBertError


def cache_root() -> Path:
    """Where this package keeps what it can make again: $BOOLBERT_CACHE, else boolbert/ in the user's cache."""
    if chosen := os.environ.get("BOOLBERT_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "boolbert"


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file so that no reader ever sees half of it: write to the path this gives, which is renamed at the end.

    with whole_file("vectors.npy") as aside, aside.open("wb") as file:
        np.save(file, vectors)
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        os.chmod(aside, 0o666 & ~_umask())  # mkstemp's files are readable by their owner alone
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    with whole_file(path) as aside:
        aside.write_bytes(content)


def write_text(path: str | os.PathLike[str], content: str) -> None:
    write_bytes(path, content.encode())


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: str | os.PathLike[str], error: type[BoolBertError] = BoolBertError) -> Any:
    """The content of a JSON file; raises `error` where it is broken, and FileNotFoundError where it is not there."""
    try:
        return json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: not found") from None
    except ValueError as problem:  # broken JSON, or bytes that are no text
        raise error(f"{path}: not valid JSON: {problem}") from None


def _umask() -> int:
    """The permissions that this process takes away from new files; it can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
