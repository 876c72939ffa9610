"""Data sets as tables of rows: a local folder or file, a data set on the Hub, the embedded sentences and countries."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..core.errors import DataError
from ..core.files import user_path
from ..core.progress import shown_progress
from .embedded import countries_folder, sentences_folder
from .rows import Row, json_rows
from .schema import kind_of

# Names that mean the same table.
ALIASES: tuple[tuple[str, ...], ...] = (("dev", "val", "validation"), ("documents", "corpus"))
ATOMS = ("atoms.json", "atoms.json.gz")
DOCUMENTS = ALIASES[1]
_TABLE = re.compile(r"(?P<stem>[^.].*)\.jsonl?(?:\.gz)?")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


class Source(ABC):
    """Named tables of rows. A table in a sub-folder or configuration is named "folder/table"."""

    name: str

    @abstractmethod
    def tables(self) -> list[str]: ...

    @abstractmethod
    def rows(self, table: str, *, progress: bool = True, bad: list[DataError] | None = None) -> Iterator[Row]:
        """The rows of a table, at least one. Where a list `bad` is given, lines that are no rows go there."""

    def atoms_path(self) -> Path | None:
        """The file with the atomic sets, where there is one."""
        return None

    def find(self, *names: str) -> str | None:
        """The first of these tables that there is, by its own name or an alias ("dev" finds "validation")."""
        groups = [next((group for group in ALIASES if name in group), ()) for name in names]
        wanted = [*names, *(alias for group in groups for alias in group)]
        tables = self.tables()
        return next((name for name in wanted if name in tables), None)

    def table(self, *names: str, what: str = "table") -> str:
        """The same; none is an error."""
        found = self.find(*names)
        if found is None:
            tables = ", ".join(self.tables()) or "no table at all"
            raise DataError(f"{self.name}: no {what} {names[0]!r}; found {tables}")
        return found

    def file_of(self, table: str) -> str:
        """How errors call the table."""
        return next(self.rows(table, progress=False)).file

    def kind_of(self, table: str) -> str | None:
        """What a table holds, told by its first whole row; None where no row tells it."""
        row = next(self.rows(table, progress=False, bad=[]), None)
        return None if row is None else kind_of(row.values)


class LocalSource(Source):
    """The .jsonl and .json files (plain or .gz) of a folder and its direct sub-folders, or one such file."""

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
        return list(self._files)

    def rows(self, table: str, *, progress: bool = True, bad: list[DataError] | None = None) -> Iterator[Row]:
        path, *others = self._files[table]
        if others:
            names = " and ".join(path.name for path in self._files[table])
            raise DataError(f"{self.name}: {names} are the same table; keep one of them")
        return json_rows(path, progress=progress, bad=bad)

    def atoms_path(self) -> Path | None:
        return _atoms_in(self.root if self.root.is_dir() else self.root.parent)


class HubSource(Source):
    """What `datasets` loads (parquet, csv, ...), on the Hub or in a folder: its splits, "train" or "config/train"."""

    def __init__(self, name: str):
        self.name = name
        try:
            import datasets
        except ImportError:
            raise DataError(f"{name}: reading it needs the datasets library: pip install 'boolbert[hub]'") from None
        self._datasets = datasets
        self._load: dict[str, dict[str, Any]] = {}
        try:
            configs = datasets.get_dataset_config_names(name)
            for config in configs:
                for split in datasets.get_dataset_split_names(name, config):
                    table = str(split) if len(configs) == 1 else f"{config}/{split}"
                    self._load[table] = {"name": config, "split": str(split)}
        except Exception as error:  # the library raises many kinds; whatever it is, the name could not be opened
            problem = "no such file or folder here, and the Hub gives no data set of that name"
            if Path(name).exists():
                problem = "holds no .jsonl or .json file, nor can `datasets` load it"
            raise DataError(f"{name}: {problem}: {_one_line(error)}") from None
        if not any(table.rpartition("/")[2] in DOCUMENTS for table in self._load):
            self._add_corpus_file()

    def tables(self) -> list[str]:
        return list(self._load)

    def rows(self, table: str, *, progress: bool = True, bad: list[DataError] | None = None) -> Iterator[Row]:
        """Rows as `datasets` streams them; a file it cannot parse is an error that names the table and the row."""
        number = 0
        where = f"{self.name} {table}"
        try:
            stream = self._datasets.load_dataset(self.name, streaming=True, **self._load[table])
            with shown_progress(table, None, "row", shown=progress, brief=True) as advance:
                for number, values in enumerate(stream, start=1):
                    advance(1)
                    yield Row(where, number, values, unit=" row ")
        except Exception as error:
            raise DataError(f"{where} row {number + 1}: cannot be read: {_one_line(error)}") from None
        if number == 0:
            raise DataError(f"{where}: the table is empty; expected at least one row")

    def atoms_path(self) -> Path | None:
        if Path(self.name).is_dir():
            return _atoms_in(Path(self.name))
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError

        for file in ATOMS:
            try:
                return Path(hf_hub_download(self.name, file, repo_type="dataset"))
            except EntryNotFoundError:
                continue
            except Exception as error:
                raise DataError(f"{self.name}: {file} cannot be read: {_one_line(error)}") from None
        return None

    def _add_corpus_file(self) -> None:
        """A file of documents beside train/dev/test is no split in the eyes of `datasets`: ask for it by its name."""
        for table in DOCUMENTS:
            how = {"data_files": {table: f"{table}.*"}, "split": table}
            try:
                self._datasets.load_dataset(self.name, streaming=True, **how)
            except FileNotFoundError:
                continue
            except Exception as error:
                raise DataError(f"{self.name}: {table}.* cannot be read: {_one_line(error)}") from None
            self._load[table] = how
            return


def open_source(source: str | Path | Source | None = None) -> Source:
    """A folder, a file, a Hub data set id ("owner/name"), or the embedded data: "countries" (None) and "sentences"."""
    if isinstance(source, Source):
        return source
    if source is None or source == "countries":
        return LocalSource(countries_folder(), name="countries (embedded)")
    if source == "sentences":
        return LocalSource(sentences_folder("train"), name="sentences (embedded)")
    path = user_path(source)
    if path.exists():
        local = LocalSource(path)
        if local.tables():
            return local
        if path.is_file():
            raise DataError(f"{path}: unknown file type; expected .jsonl or .json, plain or .gz")
    elif not _HUB_ID.fullmatch(str(source)):
        raise DataError(f"{source}: no such file or folder, nor can it be a Hub data set id (owner/name)")
    return HubSource(str(source))


def usual_place(table: str) -> int:
    """For sorting: train, dev and test first, the others after them in their order.

    >>> sorted(["dev", "test", "extra", "train"], key=usual_place)
    ['train', 'dev', 'test', 'extra']
    """
    order = ("train", *ALIASES[0], "test")
    return order.index(table) if table in order else len(order)


def _atoms_in(folder: Path) -> Path | None:
    return next((path for name in ATOMS if (path := folder / name).is_file()), None)


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
