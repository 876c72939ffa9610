"""Lines of a text file, plain or gzip, one at a time, with the place of every fault; and rows written as lines."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, cast

from ..core.errors import DataError
from ..core.files import write_text
from ..core.progress import shown_progress

LONGEST_LINE = 1 << 27  # bytes of a row
LARGEST_TEXT = 1 << 31  # letters of a file that is read as a whole
_TICK = 1000  # lines between two looks at the progress


def read_lines(path: Path, *, progress: bool = True) -> Iterator[tuple[int, str]]:
    """The file's rows, one per line, with their numbers from 1. Blank lines may stand at its end only."""
    rows, blank = 0, 0
    for number, line in text_lines(path, progress=progress):
        if not line.strip():
            blank = blank or number
            continue
        if blank:
            raise DataError(f"{path}:{blank}: blank line between rows; every line must hold one row")
        rows += 1
        yield number, line
    if not rows:
        raise DataError(f"{path}: the file is empty; expected at least one row")


def text_lines(path: Path, *, progress: bool = False) -> Iterator[tuple[int, str]]:
    """All lines with their numbers from 1, without their line ends. What cannot be read is a `DataError`."""
    number = 0
    try:
        with ExitStack() as stack:
            raw = stack.enter_context(open(path, "rb"))
            stream = cast(IO[bytes], stack.enter_context(gzip.open(raw)) if path.suffix == ".gz" else raw)
            told, size = 0, path.stat().st_size
            advance = stack.enter_context(shown_progress(path.name, size, "byte", shown=progress, brief=True))
            # A line that does not end is an error before it fills the memory: gzip packs gigabytes of one letter into
            # a megabyte.
            for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 1), b""), start=1):
                if len(line) > LONGEST_LINE:
                    raise DataError(
                        f"{path}:{number}: a line of more than {LONGEST_LINE:,} bytes; expected one row per line"
                    )
                if progress and number % _TICK == 0:
                    advance(raw.tell() - told)
                    told = raw.tell()
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        problem = f"invalid UTF-8: byte 0x{error.object[error.start]:02x} at position {error.start} of the line"
        raise DataError(f"{path}:{number}: {problem}; save the file with the encoding UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path}:{number + 1}: the gzip file is cut short or damaged after {number:,} whole lines ({error})"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def read_text(path: Path) -> str:
    """A whole file, plain or gzip, with the same strictness."""
    lines, size = [], 0
    for number, line in read_lines(path, progress=False):
        size += len(line)
        if size > LARGEST_TEXT:
            raise DataError(f"{path}:{number}: an array of more than {LARGEST_TEXT:,} letters; write a row per line")
        lines.append(line)
    return "\n".join(lines)


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line; the file is replaced as a whole."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
