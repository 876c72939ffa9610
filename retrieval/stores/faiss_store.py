"""The store for one big machine: the same folder as without a server, searched through FAISS.

faiss.index   an index of all rows, deleted ones too: a search leaves them out, as it does those that fail a filter
faiss.json    which kind of index, and of which segments; the vectors of later ones are added to it
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.core.errors import BoolBertError, RetrievalError
from boolbert.core.files import read_object, write_json
from boolbert.retrieval.encoded_documents import About
from boolbert.retrieval.faiss_index import FaissIndex, empty_index

from .base import Array
from .file_store import FileStore, Snapshot
from .where import Mask

INDEX, SETTINGS = "faiss.index", "faiss.json"
EXACT = "Flat"
PROBED = "nprobe=32"  # cells of an IVF index that are searched; FAISS's own number is 1


class FaissStore(FileStore):
    """A folder of indexes, and a FAISS index over all of them.

    `factory`: FAISS's description ("HNSW32,Flat", "IVF4096,PQ48"), which is remembered; "Flat" is exact.
    """

    def __init__(self, folder: str | Path, factory: str | None = None):
        super().__init__(folder)
        self._factory = factory
        self._loaded: tuple[list[str], FaissIndex] | None = None

    def _create(self, about: About) -> None:
        self._check(about)
        super()._create(about)

    def note(self, about: About) -> None:
        """Where all documents are in, the index is made, so that its kind is known to every later process."""
        self._check(about)
        super().note(about)
        now = self.snapshot()
        if about.complete and self._factory and len(now):
            self._faiss(now)

    def _check(self, about: About) -> None:
        """Raise for a kind of index that FAISS does not know, before anything is encoded."""
        if self._factory:
            empty_index(self._factory, about.size)

    def best_rows(self, now: Snapshot, vectors: Array, k: int, allowed: Mask) -> tuple[Array, npt.NDArray[np.int64]]:
        return self._faiss(now).search(vectors, k, None if allowed.all() else allowed)

    def _faiss(self, now: Snapshot) -> FaissIndex:
        """The index of these segments: the one in memory or on disk, extended; else a new one."""
        names = [segment.name for segment in now.segments]
        if self._loaded is not None and self._loaded[0] == names:
            return self._loaded[1]
        stored: dict[str, Any] = {}
        with suppress(OSError, BoolBertError):
            stored = read_object(self.folder / SETTINGS)
        factory = self._factory or stored.get("factory", EXACT)
        begun = stored.get("segments", [])
        index = None
        if stored.get("factory") == factory and begun == names[: len(begun)] and (self.folder / INDEX).exists():
            with suppress(RetrievalError):  # it is damaged: the vectors are there, so it can be made anew
                index = FaissIndex(now, factory, file=self.folder / INDEX)
        is_new = index is None
        index = index or FaissIndex(now, factory)
        if "IVF" in factory:
            index.set_search(PROBED)
        if is_new or begun != names:
            with self.writing():  # first what tells that the old index is no longer good
                (self.folder / SETTINGS).unlink(missing_ok=True)
                index.save(self.folder / INDEX)
                write_json(self.folder / SETTINGS, {"factory": factory, "segments": names})
        self._loaded = (names, index)
        return index
