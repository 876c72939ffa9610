"""Rows out of the files people have: JSONL, CSV, TSV, parquet, a folder of texts, or a Hub data set."""

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol, runtime_checkable

from ...core.addresses import shown_name
from ...core.errors import DataError
from ...core.files import user_path
from ...core.progress import shown_progress
from ..lines import LONGEST_LINE, text_lines
from ..rows import Row, json_rows
from ..sources import open_source
from .fields import ID, TEXT, TITLE

JSON, COLUMNS, PARQUET, TEXTS = (".jsonl", ".json", ".ndjson"), (".csv", ".tsv"), (".parquet",), (".txt", ".md")
TABLES = (*JSON, *COLUMNS, *PARQUET)
EXPECTED = "a .jsonl, .json, .csv, .tsv or .parquet file, a folder of .txt or .md files, or a Hub data set (owner/name)"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_HEADING = re.compile(r"#{1,6}\s+(.+)")
# A first line of two columns is a header only if it names something known.
_KNOWN_COLUMNS = {"text", "query", "category", *TEXT, *TITLE, *ID}


@runtime_checkable
class RowSource(Protocol):
    """Rows that can be read as often as needed: a file's, or those of a user's table in a database."""

    @property
    def name(self) -> str: ...

    def rows(self, *, progress: bool = True) -> Iterator[Row]: ...


@dataclass(frozen=True)
class RowFile:
    """Rows that can be read as often as needed. `names` are fields the caller asked for, which tell a header."""

    name: str
    path: Path | None  # None: a data set on the Hub
    names: frozenset[str]
    follow_links: bool = False  # in a folder, also those that lead out of it

    def rows(self, *, progress: bool = True) -> Iterator[Row]:
        if self.path is None:
            return _hub_rows(self.name, progress)
        if self.path.is_dir():
            return _folder_rows(self.path, self.follow_links, progress)
        kind = suffix_of(self.path)
        if kind in JSON:
            return json_rows(self.path, progress=progress)
        if kind in COLUMNS:
            return _column_rows(self.path, self.names, progress)
        return _parquet_rows(self.path, progress) if kind in PARQUET else _line_rows(self.path, progress)


def find_rows(source: str | Path, names: Collection[str] = (), *, follow_links: bool = False) -> RowFile:
    """The rows of a file, a folder or a Hub data set. Nothing is read; a name that is not there is an error at once.

    A folder is a data folder (documents.jsonl), holds one table, or holds .txt and .md files, a document each.
    """
    path = user_path(source)
    wanted = frozenset(names)
    if path.is_file():
        if suffix_of(path) not in (*TABLES, *TEXTS):
            raise DataError(f"{path}: unknown file type {path.suffix!r}; expected {EXPECTED}")
        return RowFile(str(path), path, wanted)
    if path.is_dir():
        return RowFile(str(path), _inside(path, follow_links), wanted, follow_links)
    if _HUB_ID.fullmatch(str(source)) and suffix_of(path) not in (*TABLES, *TEXTS) and not path.parent.exists():
        return RowFile(str(source), None, wanted)
    if path.exists():
        raise DataError(f"{source}: is neither a file nor a folder but a pipe or a device; write it into a file first")
    here = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, here, n=1)
    hint = f"did you mean {path.parent / near[0]}?" if near else f"expected {EXPECTED}"
    raise DataError(f"{shown_name(str(source))}: no such file or folder; {hint}")


def suffix_of(path: Path) -> str:
    """
    >>> suffix_of(Path("recipes.CSV.gz")), suffix_of(Path("notes.md"))
    ('.csv', '.md')
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _inside(folder: Path, follow_links: bool) -> Path:
    """The table a folder holds, or the folder itself where its files are texts."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    tables = [path for path in files if suffix_of(path) in TABLES and not path.name.startswith("atoms.json")]
    main = [path for path in tables if path.name.split(".")[0] in ("documents", "corpus")]
    if len(main) == 1 or len(tables) == 1:
        return _checked_link((main or tables)[0], folder, follow_links)
    if not tables and next(_text_files(folder, follow_links), None) is not None:
        return folder
    if tables:
        names = ", ".join(path.name for path in tables[:5])
        raise DataError(f"{folder}: holds several tables ({names}); name the one with the documents")
    raise DataError(f"{folder}: holds no documents; expected {EXPECTED}")


def _checked_link(path: Path, folder: Path, follow_links: bool) -> Path:
    """The file; an error where a link leads to it from a folder that it does not lie in."""
    if not follow_links and not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"{path}: is a link that leads out of the folder; remove it, or pass --follow-links to read it")
    return path


def _text_files(folder: Path, follow_links: bool) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if suffix_of(path) in TEXTS and path.is_file() and not hidden:
            yield _checked_link(path, folder, follow_links)


def _folder_rows(folder: Path, follow_links: bool, progress: bool) -> Iterator[Row]:
    """A document per file; its title is the first Markdown heading, else the file's name."""
    with shown_progress(folder.name, None, "file", shown=progress, brief=True) as advance:
        for path in _text_files(folder, follow_links):
            text = "\n".join(line for _, line in _text_lines(path)).strip()
            first, _, rest = text.partition("\n")
            heading = _HEADING.fullmatch(first.strip()) if suffix_of(path) == ".md" else None
            title, text = (heading[1].strip(), rest.strip()) if heading else (re.sub(r"[_-]+", " ", path.stem), text)
            advance(1)
            yield Row(str(path), 1, {"id": str(path.relative_to(folder)), "title": title, "text": text})


def _line_rows(path: Path, progress: bool) -> Iterator[Row]:
    """A text file by itself: a document per line."""
    for number, line in _text_lines(path, progress=progress):
        if line.strip():
            yield Row(str(path), number, {"text": line.strip()})


def _column_rows(path: Path, names: frozenset[str], progress: bool) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_LINE)
    tabs = suffix_of(path) == ".tsv"
    lines = (line + "\n" for _, line in _text_lines(path, progress=progress))
    if tabs:  # quotes in it are text, as in MS MARCO's files
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, delimiter=_delimiter(path))
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise DataError(f"{path}:{line}: broken {'TSV' if tabs else 'CSV'}: {error}") from None
        if cells is None:
            break
        if not any(cell.strip() for cell in cells):
            continue
        if tabs:
            cells = [_unquoted(cell) for cell in cells]
        if header is None:
            header = _header(cells, names, path)
            if header == [cell.strip() for cell in cells]:
                continue
        if len(cells) != len(header):
            raise DataError(
                f"{path}:{line}: has {len(cells)} columns, expected {len(header)}: {', '.join(header)[:80]}"
            )
        yield Row(str(path), line, dict(zip(header, cells, strict=True)))
    if header is None:
        raise DataError(f"{path}: the file is empty; expected at least one row")


def _header(cells: list[str], names: frozenset[str], path: Path) -> list[str]:
    """The names of the columns; ["title", "text"] for two columns whose first line names nothing known."""
    stripped = [cell.strip() for cell in cells]
    known = names | _KNOWN_COLUMNS
    names_something = any(cell in names or cell.lower().replace(" ", "_") in known for cell in stripped)
    if len(cells) == 1:
        return stripped if names_something else ["text"]
    if len(cells) == 2 and not names_something:
        return ["title", "text"]
    counts = Counter(stripped)
    bad = next((cell for cell in stripped if not cell or len(cell) > 60 or counts[cell] > 1), None)
    if bad is not None:
        shown = f"holds {bad[:40]!r}" + (" twice" if counts[bad] > 1 else "")
        raise DataError(f"{path}:1: {shown} where a column's name should stand; the first line must name the columns")
    return stripped


def _delimiter(path: Path) -> str:
    """What separates the columns: the commonest of , ; tab and | in the first line, outside of quotes."""
    first = next((line for _, line in _text_lines(path) if line.strip()), "")
    bare = re.sub(r'"[^"]*"', "", first)
    return max(",;\t|", key=bare.count)


def _unquoted(cell: str) -> str:
    quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"') if quoted else cell


def _parquet_rows(path: Path, progress: bool) -> Iterator[Row]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise DataError(f"{path}: reading parquet needs pyarrow: pip install 'boolbert[hub]'") from None
    number = 0
    try:
        file = parquet.ParquetFile(path)
        with shown_progress(path.name, file.metadata.num_rows, "row", shown=progress, brief=True) as advance:
            for batch in file.iter_batches(batch_size=1024):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(str(path), number, values, unit=" row ")
                advance(len(batch))
    except (OSError, ValueError) as error:  # pyarrow's own errors are kinds of these
        raise DataError(f"{path}: cannot be read as parquet: {' '.join(str(error).split())[:200]}") from None
    if not number:
        raise DataError(f"{path}: the file is empty; expected at least one row")


def _hub_rows(name: str, progress: bool) -> Iterator[Row]:
    source = open_source(name)
    tables = source.tables()
    order = ("documents", "corpus", "train")
    table = next((table for wanted in order for table in tables if table.rpartition("/")[2] == wanted), tables[0])
    return source.rows(table, progress=progress)


def _text_lines(path: Path, *, progress: bool = False) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, blank ones too, without the zero bytes that no CSV may hold."""
    return ((number, line.replace("\0", "")) for number, line in text_lines(path, progress=progress))
