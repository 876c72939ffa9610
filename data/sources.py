"""Where data comes from: a local folder or file, or a data set on the Hub. Both give tables of rows by name."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..boolean import OPERATORS
from ..errors import DataError
from .rows import Row, json_rows
from .schema import kind_of

_TABLE = re.compile(r"(?P<stem>[^.].*)\.(?:jsonl?|tsv)(?:\.gz)?")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")

# Names that mean the same table.
ALIASES: tuple[tuple[str, ...], ...] = (("dev", "val", "validation"), ("documents", "corpus"))


class Source(ABC):
    """Named tables of rows. A table in a sub-folder or configuration is named "folder/table"."""

    name: str

    @abstractmethod
    def tables(self) -> list[str]: ...

    @abstractmethod
    def rows(self, table: str, *, progress: bool = True, bad: list[DataError] | None = None) -> Iterator[Row]:
        """The rows of a table. Where a list `bad` is given, lines that are no rows go there."""

    def tsv_files(self) -> dict[str, Path]:
        """Tab-separated files beside the tables."""
        return {}

    def atoms_path(self) -> Path | None:
        """The file with the atomic sets, where there is one."""
        return None


class LocalSource(Source):
    """The .jsonl, .json and .tsv files (plain or .gz) of a folder and its direct sub-folders, or one such file."""

    def __init__(self, root: Path, name: str | None = None):
        self.name = name or str(root)
        self.root = root
        self._files: dict[str, list[Path]] = {}
        folders = [root, *sorted(path for path in root.glob("[!.]*/") if path.is_dir())] if root.is_dir() else []
        files = [path for folder in folders for path in sorted(folder.iterdir())] if folders else [root]
        for path in files:
            match = _TABLE.fullmatch(path.name)
            if match and path.is_file() and match["stem"] != "atoms":
                prefix = f"{path.parent.name}/" if folders and path.parent != root else ""
                self._files.setdefault(prefix + match["stem"], []).append(path)

    def tables(self) -> list[str]:
        return [table for table, paths in self._files.items() if not any(map(_is_tsv, paths))]

    def tsv_files(self) -> dict[str, Path]:
        return {table: self._path(table) for table, paths in self._files.items() if any(map(_is_tsv, paths))}

    def rows(self, table: str, *, progress: bool = True, bad: list[DataError] | None = None) -> Iterator[Row]:
        return json_rows(self._path(table), progress=progress, bad=bad)

    def atoms_path(self) -> Path | None:
        folder = self.root if self.root.is_dir() else self.root.parent
        return next((path for name in ("atoms.json", "atoms.json.gz") if (path := folder / name).is_file()), None)

    def _path(self, table: str) -> Path:
        paths = self._files[table]
        if len(paths) > 1:
            raise DataError(f"{self.name}: {' and '.join(p.name for p in paths)} are the same table; keep one of them")
        return paths[0]


class SentenceSource(Source):
    """The project's own Boolean sentences, made when they are read: a table per operator."""

    name = "sentences (embedded)"
    per_operator = 2000

    def tables(self) -> list[str]:
        return list(OPERATORS)

    def rows(self, table: str, *, progress: bool = True, bad: list[DataError] | None = None) -> Iterator[Row]:
        from .sentences import boolean_sentences

        for number, values in enumerate(boolean_sentences(table, self.per_operator), start=1):
            yield Row(f"sentences {table}", number, dict(values), unit=" row ")


def open_source(source: str | Path | None = None) -> Source:
    """A folder, a file, a Hub data set id ("owner/name"), or the embedded data: "countries" (None) and "sentences"."""
    if source is None or source == "countries":
        from .countries import countries_folder

        return LocalSource(countries_folder(), name="countries (embedded)")
    if source == "sentences":
        return SentenceSource()
    path = Path(source).expanduser()
    if path.exists():
        local = LocalSource(path)
        if local.tables() or local.tsv_files():
            return local
        if path.is_file():
            raise DataError(f"{path}: unknown file type; expected .jsonl, .json or .tsv, plain or .gz")
    elif not _HUB_ID.fullmatch(str(source)):
        raise DataError(f"{source}: no such file or folder, nor can it be a Hub data set id (owner/name)")
    from .hub import HubSource

    return HubSource(str(source))


def find_table(source: Source, names: Sequence[str], what: str) -> str:
    """The first of these tables that the source has, by its own name or an alias ("dev" finds "validation").

    >>> class Quest:
    ...     name = "here"
    ...     tables = staticmethod(lambda: ["documents", "train", "val"])
    >>> find_table(Quest(), ["dev"], "split")
    'val'
    """
    tables = source.tables()
    groups = [next((group for group in ALIASES if name in group), ()) for name in names]
    for name in [*names, *(alias for group in groups for alias in group)]:
        if name in tables:
            return name
    raise DataError(f"{source.name}: no {what} {names[0]!r}; found {', '.join(tables) or 'no table at all'}")


def usual_place(table: str) -> int:
    """For sorting: train, dev and test first, the others after them in their order.

    >>> sorted(["dev", "test", "extra", "train"], key=usual_place)
    ['train', 'dev', 'test', 'extra']
    """
    order = ("train", *ALIASES[0], "test")
    return order.index(table) if table in order else len(order)


def first_row(source: Source, table: str) -> Row:
    """The table's first row; an empty table is an error."""
    for row in source.rows(table, progress=False):
        return row
    raise DataError(f"{source.name}: table {table!r} is empty; expected at least one row")


def kind_of_table(source: Source, table: str) -> str | None:
    """What a table holds, told by its first whole row; None where no row tells it."""
    row = next(source.rows(table, progress=False, bad=[]), None)
    return None if row is None else kind_of(row.values)


def _is_tsv(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(".tsv")
