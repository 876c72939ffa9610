"""Open a data set: a local folder or file, a data set on the Hub, or the embedded sentences and countries."""

import re
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import DataError
from ..core.files import user_path
from .embedded import countries_folder, sentences_folder
from .hub import HubSource
from .rows import Row, json_rows
from .tables import Source

_TABLE = re.compile(r"(?P<stem>[^.].*)\.jsonl?(?:\.gz)?")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


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
        return json_rows(self._path(table), progress=progress, bad=bad)

    def atoms_path(self) -> Path | None:
        folder = self.root if self.root.is_dir() else self.root.parent
        return next((path for name in ("atoms.json", "atoms.json.gz") if (path := folder / name).is_file()), None)

    def _path(self, table: str) -> Path:
        paths = self._files[table]
        if len(paths) > 1:
            raise DataError(f"{self.name}: {' and '.join(p.name for p in paths)} are the same table; keep one of them")
        return paths[0]


def open_source(source: str | Path | None = None) -> Source:
    """A folder, a file, a Hub data set id ("owner/name"), or the embedded data: "countries" (None) and "sentences"."""
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
