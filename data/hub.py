"""Tables of a data set on the Hub, or of any folder that the `datasets` library can load (parquet, csv, ...)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..core.errors import DataError
from .rows import Row
from .tables import Source

# A file of documents beside train/dev/test is no split in the eyes of `datasets`; it is asked for by its file name.
_CORPUS_FILES = {"documents": "documents.*", "corpus": "corpus.*"}


class HubSource(Source):
    """The splits of a data set: "train", or "config/train" where there are several configurations."""

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
            raise DataError(_not_found(name, error)) from None
        if not any(table.rpartition("/")[2] in _CORPUS_FILES for table in self._load):
            self._add_corpus_file()

    def tables(self) -> list[str]:
        return list(self._load)

    def rows(self, table: str, *, progress: bool = True, bad: list[DataError] | None = None) -> Iterator[Row]:
        """Rows as `datasets` streams them; a file it cannot parse is an error that names the table and the row."""
        number = 0
        where = f"{self.name} {table}"
        try:
            stream = self._datasets.load_dataset(self.name, streaming=True, **self._load[table])
            bar = tqdm(stream, desc=table, unit="rows", delay=2, leave=False, disable=None if progress else True)
            for number, values in enumerate(bar, start=1):
                yield Row(where, number, values, unit=" row ")
        except Exception as error:
            raise DataError(f"{where} row {number + 1}: cannot be read: {_one_line(error)}") from None
        if number == 0:
            raise DataError(f"{where}: the table is empty; expected at least one row")

    def atoms_path(self) -> Path | None:
        folder = Path(self.name)
        for file in ("atoms.json", "atoms.json.gz"):
            if folder.is_dir():
                if (folder / file).is_file():
                    return folder / file
                continue
            from huggingface_hub import hf_hub_download
            from huggingface_hub.errors import EntryNotFoundError

            try:
                return Path(hf_hub_download(self.name, file, repo_type="dataset"))
            except EntryNotFoundError:
                continue
            except Exception as error:
                raise DataError(f"{self.name}: {file} cannot be read: {_one_line(error)}") from None
        return None

    def _add_corpus_file(self) -> None:
        for table, pattern in _CORPUS_FILES.items():
            how = {"data_files": {table: pattern}, "split": table}
            try:
                self._datasets.load_dataset(self.name, streaming=True, **how)
            except FileNotFoundError:
                continue
            except Exception as error:
                raise DataError(f"{self.name}: {pattern} cannot be read: {_one_line(error)}") from None
            self._load[table] = how
            return


def _not_found(name: str, error: Exception) -> str:
    if Path(name).exists():
        return f"{name}: holds no .jsonl or .json file, nor can `datasets` load it: {_one_line(error)}"
    return f"{name}: no such file or folder here, and the Hub gives no data set of that name: {_one_line(error)}"


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
