"""A document collection in memory: all texts in one buffer, found by row or by title."""

import warnings
from array import array
from collections.abc import Iterable, Iterator

from ..core.errors import DataError, DataWarning, first_few
from .schema import Document


class Corpus:
    """Documents by row number, and rows by title.

    The texts lie UTF-8 encoded in one buffer, so that they take their size on disk and forked processes share them.

    >>> corpus = Corpus([Document("Alien", "A film."), Document("Dune", "A novel.")])
    >>> len(corpus), corpus[1].text, corpus.rows("Alien"), corpus.titles
    (2, 'A novel.', [0], ['Alien', 'Dune'])

    Two documents of one title are both kept and reported; with `strict` they are an error.
    """

    def __init__(self, documents: Iterable[Document] = (), *, name: str = "corpus", strict: bool = False):
        self.name = name
        self.titles: list[str] = []
        self._buffer = bytearray()
        self._ends = array("q", [0])
        self._row: dict[str, int] = {}
        self.duplicates: dict[str, list[int]] = {}  # title -> its rows, where there is more than one
        for row, document in enumerate(documents):
            self.titles.append(document.title)
            self._buffer += document.text.encode()
            self._ends.append(len(self._buffer))
            first = self._row.setdefault(document.title, row)
            if first != row:
                self.duplicates.setdefault(document.title, [first]).append(row)
        if self.duplicates:
            self._report(strict)

    def __len__(self) -> int:
        return len(self.titles)

    def __getitem__(self, row: int) -> Document:
        return Document(self.titles[row], self.text(row))

    def __iter__(self) -> Iterator[Document]:
        return (self[row] for row in range(len(self)))

    def text(self, row: int) -> str:
        row = range(len(self))[row]  # negative rows count from the end; beyond it, IndexError
        return self._buffer[self._ends[row] : self._ends[row + 1]].decode()

    def texts(self, rows: Iterable[int] | None = None) -> list[str]:
        """The texts of these rows, or of all.

        >>> Corpus([Document("Alien", "A film."), Document("Dune", "A novel.")]).texts([1, 0])
        ['A novel.', 'A film.']
        """
        return list(map(self.text, range(len(self)) if rows is None else rows))

    def rows(self, title: str) -> list[int]:
        """Every row of a title; none where it is unknown."""
        if title in self.duplicates:
            return self.duplicates[title]
        return [self._row[title]] if title in self._row else []

    def _report(self, strict: bool) -> None:
        places = [
            f"{self.name}:{rows[1] + 1}: field 'title' repeats {title!r} of line {rows[0] + 1}"
            for title, rows in list(self.duplicates.items())[:3]
        ]
        message = first_few(places, len(self.duplicates))
        if strict:
            raise DataError(f"{message}; titles must be unique")
        warnings.warn(f"{message}; all these documents are kept", DataWarning, stacklevel=3)
