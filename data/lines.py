"""Lines of a text file, plain or gzip, one at a time, with the place of every fault."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import IO, cast

from tqdm import tqdm

from ..core.errors import DataError

LONGEST_LINE = 1 << 27  # bytes of a row
LARGEST_TEXT = 1 << 31  # letters of a file that is read as a whole
_TICK = 1000  # lines between two looks at the progress
_DELAY = 2.0  # seconds until the progress bar comes up


def is_gzip(path: Path) -> bool:
    return path.suffix == ".gz"


def read_lines(path: Path, *, progress: bool = True) -> Iterator[tuple[int, str]]:
    """The file's lines with their numbers from 1, without their line ends.

    Strict: UTF-8 that does not decode, a blank line between rows, a damaged or cut gzip and a file without rows
    are `DataError`s. Blank lines at the end are no rows. The progress bar comes up on a terminal after some seconds.
    """
    number, blank = 0, 0
    try:
        with ExitStack() as stack:
            raw = stack.enter_context(open(path, "rb"))
            stream = cast(IO[bytes], stack.enter_context(gzip.open(raw)) if is_gzip(path) else raw)
            bar = stack.enter_context(_progress_bar(path, progress))
            for number, line in enumerate(whole_lines(stream, path), start=1):
                if not bar.disable and number % _TICK == 0:
                    bar.update(raw.tell() - bar.n)
                if not line.strip():
                    blank = blank or number
                    continue
                if blank:
                    raise DataError(f"{path}:{blank}: blank line between rows; every line must hold one row")
                yield number, _decode(line, path, number)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path}:{number + 1}: the gzip file is cut short or damaged after {number:,} whole lines ({error})"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    if number == 0 or blank == 1:
        raise DataError(f"{path}: the file is empty; expected at least one row")


def whole_lines(stream: IO[bytes] | gzip.GzipFile, path: Path) -> Iterator[bytes]:
    """The lines of a stream. One that does not end is an error before it fills the memory: gzip packs gigabytes of
    one letter into a megabyte."""
    for number in count(1):
        line = stream.readline(LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > LONGEST_LINE:
            raise DataError(f"{path}:{number}: a line of more than {LONGEST_LINE:,} bytes; expected one row per line")
        yield line


def read_text(path: Path) -> str:
    """A whole file, plain or gzip, with the same strictness."""
    lines, size = [], 0
    for number, line in read_lines(path, progress=False):
        size += len(line)
        if size > LARGEST_TEXT:
            raise DataError(f"{path}:{number}: an array of more than {LARGEST_TEXT:,} letters; write a row per line")
        lines.append(line)
    return "\n".join(lines)


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}:{number}: invalid UTF-8: byte 0x{line[error.start]:02x} at position {error.start} of the line"
        ) from None
    if number == 1:
        text = text.removeprefix("\ufeff")
    return text.rstrip("\r\n")


def _progress_bar(path: Path, progress: bool) -> tqdm:
    return tqdm(
        desc=path.name,
        total=path.stat().st_size,
        unit="B",
        unit_scale=True,
        delay=_DELAY,
        leave=False,
        disable=None if progress else True,  # None: off where the output is no terminal
    )
