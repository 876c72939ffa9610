"""QUEST's format: a folder with documents, query splits and, where known, the atomic sets behind the queries."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from ..core.errors import DataError, shorten
from .corpus import Corpus
from .gold import Gold, Rows, link_gold
from .lines import read_text
from .rows import parse_json
from .schema import Document, Query
from .sources import DOCUMENTS, Source, open_source, usual_place


class Quest:
    """A QUEST-format data set from a folder, a Hub data set id, or (None) the embedded countries.

    With `strict`, gold titles that the documents lack and titles that stand for two documents are errors.
    """

    def __init__(self, source: str | Path | Source | None = None, *, strict: bool = False, progress: bool = True):
        self.source = open_source(source)
        self.strict = strict
        self.progress = progress

    @cached_property
    def splits(self) -> list[str]:
        """Every table that holds queries, train, dev and test first."""
        tables = [table for table in self.source.tables() if "/" not in table and table not in DOCUMENTS]
        return sorted(filter(self._holds_queries, tables), key=usual_place)

    def documents(self) -> Iterator[Document]:
        """The documents, one at a time."""
        return map(Document.from_row, self.source.rows(self.source.table("documents"), progress=self.progress))

    def has_split(self, split: str) -> bool:
        return self.source.find(split) is not None

    def queries(self, split: str) -> list[Query]:
        table = self.source.table(split, what="split")
        return list(map(Query.from_row, self.source.rows(table, progress=self.progress)))

    @cached_property
    def corpus(self) -> Corpus:
        """All documents in memory."""
        name = self.source.file_of(self.source.table("documents"))
        return Corpus(self.documents(), name=name, strict=self.strict)

    @cached_property
    def atoms(self) -> dict[str, Rows] | None:
        """The atomic sets as sorted rows of the corpus; None where the data set does not tell them."""
        path = self.source.atoms_path()
        return None if path is None else read_atoms(path, len(self.corpus))

    def gold(self, queries: str | Sequence[Query]) -> Gold:
        """The gold documents of these queries, or of the split of this name, as rows of the corpus."""
        queries = self.queries(queries) if isinstance(queries, str) else queries
        places = [query.where for query in queries]
        return link_gold([query.docs for query in queries], self.corpus, places=places, strict=self.strict)

    def _holds_queries(self, table: str) -> bool:
        try:
            return self.source.kind_of(table) == "queries"
        except DataError:
            return True  # whoever reads it is told what is wrong with it


def read_atoms(path: Path, documents: int) -> dict[str, Rows]:
    """`{"atom name": [row numbers of the documents, from 0]}`, each as a sorted array."""
    sets = parse_json(read_text(path), path)
    if not isinstance(sets, dict):
        raise DataError(f"{path}:1: must be an object of atom names with their rows, got {type(sets).__name__}")
    return {name: _checked_rows(rows, documents, f"{path}: field {name!r}") for name, rows in sets.items()}


def _checked_rows(rows: object, documents: int, where: str) -> Rows:
    if not isinstance(rows, list):
        raise DataError(f"{where} must be a list of row numbers, got {shorten(rows)}")
    for row in rows:
        if type(row) is not int:
            raise DataError(f"{where} must be a list of row numbers, got {shorten(row)} in it")
        if not 0 <= row < documents:
            raise DataError(f"{where} names row {row}, but the {documents:,} documents are rows 0 to {documents - 1}")
    return np.unique(np.asarray(rows, dtype=np.int32))
