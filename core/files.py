# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Files that are whole or not there, JSON that is read with a clear error, and the one place for cached data."""

import json
import os
import re
import shutil
import socket
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from boolbert.core.errors import FULL, BoolBertError, DiskFull, shorten

DAY = 86_400  # seconds
ROOM = 16_384  # bytes; a disk with less of them free is full
BLOCK = 1 << 20  # bytes that are read at once
FILES = "files"  # how the folder is called that `whole_files` fills


def cache_root() -> Path:
    """Where this package keeps what it can make again: $BOOLBERT_CACHE, else boolbert/ in the user's cache."""
    if chosen := os.environ.get("BOOLBERT_CACHE"):
        return user_path(chosen)
    return user_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "boolbert"


def user_path(name: str | os.PathLike[str]) -> Path:
    """A path as a user writes it, "~/films" too. Where there is no such home it is a name like any other.

    >>> user_path("~nobody-of-this-name/films").name
    'films'
    """
    return Path(os.path.expanduser(name))  # pathlib raises for a user that there is not


@contextmanager
def named_if_full(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise `DiskFull` with this path where writing fails because the disk is full.

    Only the system's own error has a code for it. safetensors repeats its words; numpy, torch and FAISS say that
    writing failed, so the disk is asked.
    """
    try:
        yield
    except (DiskFull, BoolBertError):
        raise
    except Exception as error:
        code = getattr(error, "errno", None)
        is_full = code in FULL or os.strerror(FULL[0]) in str(error)
        if is_full or (code is None and _free(Path(path)) < ROOM):
            raise DiskFull(path) from error
        raise


def _free(path: Path) -> int:
    """How many bytes are free on the disk of a path that need not exist."""
    return shutil.disk_usage(next(each for each in (path, *path.absolute().parents) if each.exists())).free


def check_folder(path: str | os.PathLike[str]) -> Path:
    """The path of a folder that is there or can be made; raises where a file is in its way."""
    path = Path(path)
    nearest = next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
    if os.path.lexists(nearest) and not nearest.is_dir():
        raise BoolBertError(f"{path}: a folder is to be written there, and {nearest} is a file; give another name")
    return path


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, and those that it lies in, where it is not there yet."""
    path = check_folder(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def check_file(path: str | os.PathLike[str]) -> Path:
    """The path of a file that can be written; raises where a folder is in its way, or its own folder is missing."""
    path = Path(path)
    if path.is_dir():
        raise BoolBertError(f"{path}: a file is to be written there, and it is a folder; give a file's name")
    if not path.absolute().parent.is_dir():
        raise BoolBertError(f"{path}: its folder does not exist; make it first")
    if path.exists():
        check_regular(path)
    return path


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file so that no reader ever sees half of it: write to the path this gives; it is renamed at the end."""
    path = check_file(path)
    with _aside(path, is_folder=False) as aside:
        yield aside
        set_modes(aside)
        os.replace(aside, path)


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The same for a folder: fill the one this gives. Where another process has made it meanwhile, that one stays."""
    path = check_folder(path)
    make_folder(path.parent)
    with _aside(path, is_folder=True) as aside:
        yield aside
        set_modes(aside)
        try:
            aside.rename(path)
        except OSError:
            if not path.is_dir():
                raise


@contextmanager
def whole_files(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """The same for some files of a folder that holds others too. The folder that this gives is to be filled; when that
    is done, its files are moved into `folder`, one after the other."""
    folder = Path(folder)
    with _aside(folder / FILES, is_folder=True, named=folder) as aside:
        yield aside
        set_modes(aside)
        for file in sorted(file for file in aside.rglob("*") if file.is_file()):
            target = folder / file.relative_to(aside)
            target.parent.mkdir(exist_ok=True)
            os.replace(file, target)


@contextmanager
def _aside(path: Path, *, is_folder: bool, named: Path | None = None) -> Iterator[Path]:
    """A new file or folder beside a path; it is deleted at the end, unless it has another name by then.

    named: what has no room where the disk is full; the path itself if not given.
    """
    delete_leftovers(path)
    with named_if_full(named or path):
        own = f"{_aside_prefix(path)}{_host()}-{os.getpid()}."
        if is_folder:
            aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=own))
        else:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=own)
            os.close(handle)
            aside = Path(name)
    try:
        with named_if_full(named or path):
            yield aside
    finally:
        if is_folder:
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.unlink(missing_ok=True)


def set_modes(path: Path) -> None:
    """Give a file, or a folder with all that is in it, the mode of any new one: temporary files, and those that
    safetensors writes, are readable by their owner alone."""
    mask = os.umask(0o022)  # it can only be read by setting it
    os.umask(mask)
    for each in (path, *path.rglob("*")) if path.is_dir() else (path,):
        os.chmod(each, (0o777 if each.is_dir() else 0o666) & ~mask)


def is_aside(path: Path) -> bool:
    """Whether something is being written there before it gets its name, or was when its writer was killed.

    >>> is_aside(Path("films/.store.json.aside-host-7.x")), is_aside(Path("films/store.json"))
    (True, False)
    """
    return path.name.startswith(".") and ".aside-" in path.name


def delete_leftovers(path: Path) -> None:
    """Delete what processes that were killed while they wrote this file or folder have left beside it.

    What another machine has left is deleted when it is a day old, since its writer may be alive until then.
    """
    prefix = _aside_prefix(path)
    for entry in os.scandir(path.parent):
        if not entry.name.startswith(prefix):
            continue
        host, _, process = entry.name.removeprefix(prefix).partition(".")[0].rpartition("-")
        dead = process.isdecimal() and not _is_running(int(process)) if host == _host() else _age(entry) > DAY
        if dead:
            with suppress(OSError):
                delete(Path(entry.path))


def delete(path: Path) -> None:
    """Delete a folder with all that is in it, or anything else: `shutil.rmtree` waits for ever at a named pipe."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _aside_prefix(path: Path) -> str:
    """How a hidden name beside the path begins, before the process that writes it; a name has at most 255 bytes."""
    return f".{path.name.encode()[:100].decode(errors='ignore')}.aside-"


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "", socket.gethostname())[:40]


def _age(entry: os.DirEntry[str]) -> float:
    try:
        return time.time() - entry.stat(follow_symlinks=False).st_mtime
    except OSError:  # its writer has just renamed it
        return 0.0


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def check_sum(*contents: Any) -> int:
    """A sum by which it is noticed that bytes or arrays are not what they were: the one that all files here have.

    >>> check_sum(b"ab", b"c") == check_sum(b"abc"), check_sum(b"ab") == check_sum(b"ba")
    (True, False)
    """
    total = 0
    for content in contents:
        total = zlib.crc32(content, total)
    return total


def file_sum(path: str | os.PathLike[str]) -> int:
    """The check sum of a file's content."""
    total = 0
    with open(path, "rb") as file:
        while content := file.read(BLOCK):
            total = zlib.crc32(content, total)
    return total


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    with whole_file(path) as aside:
        aside.write_bytes(content)


def save_array(path: str | os.PathLike[str], values: Any) -> None:
    """Write an array as .npy, by Python's own writes: where numpy writes to a file, an end that does not fit is lost
    without an error."""
    import numpy as np

    with open(path, "wb") as file:
        np.save(SimpleNamespace(write=file.write), values)


def write_text(path: str | os.PathLike[str], content: str) -> None:
    write_bytes(path, content.encode())


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: str | os.PathLike[str], error: type[BoolBertError] = BoolBertError) -> Any:
    """The content of a JSON file; raises `error` where it is broken, and FileNotFoundError where it is not there."""
    try:
        check_regular(path, error)
        return json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: not found") from None
    except ValueError as problem:  # broken JSON, or bytes that are no text
        raise error(f"{path}: not valid JSON: {problem}") from None
    except RecursionError:
        raise error(f"{path}: not valid JSON: nested too deeply") from None


def check_regular(path: str | os.PathLike[str], error: type[BoolBertError] = BoolBertError) -> None:
    """Raise for what would never end, or have no end of content: a named pipe, a device."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise error(f"{os.fspath(path)}: is not a regular file")


def read_object(path: str | os.PathLike[str], error: type[BoolBertError] = BoolBertError) -> dict[str, Any]:
    """The content of a JSON file that holds an object."""
    content = read_json(path, error)
    if not isinstance(content, dict):
        raise error(f"{path}: expected a JSON object, got {shorten(content)}")
    return content
