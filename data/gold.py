"""Gold answers as rows of a corpus: what is positive for which query, and what only looks negative in a batch."""

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..core.errors import DataError, DataWarning, first_few
from .corpus import Corpus

Rows = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class Gold(Sequence[Rows]):
    """For each query the sorted rows of its relevant documents, flat in one array.

    >>> gold = Gold([[4, 1], [], [2]], documents=5)
    >>> len(gold), gold[0].tolist(), gold[1].tolist()
    (3, [1, 4], [])
    >>> gold.relevant([0, 2], [1, 2, 3])
    array([[ True, False, False],
           [False,  True, False]])
    """

    def __init__(self, rows: Sequence[Sequence[int]], documents: int):
        unique = [np.unique(np.asarray(query, dtype=np.int32)) for query in rows]
        self.documents = documents
        self.offsets = np.cumsum([0, *map(len, unique)], dtype=np.int64)
        self.rows: Rows = np.concatenate([np.empty(0, np.int32), *unique])
        if len(self.rows) and not 0 <= self.rows.min() <= self.rows.max() < documents:
            raise ValueError(
                f"gold rows must be between 0 and {documents - 1}, got {self.rows.min()}..{self.rows.max()}"
            )
        # Sorted keys of all (query, row) pairs, so that a whole batch is looked up at once.
        self._keys = np.repeat(np.arange(len(unique)), np.diff(self.offsets)) * documents + self.rows

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, query: int) -> Rows:  # type: ignore[override]  # one query at a time
        query = range(len(self))[query]
        return self.rows[self.offsets[query] : self.offsets[query + 1]]

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        return np.diff(self.offsets)

    def relevant(self, queries: npt.ArrayLike, rows: npt.ArrayLike) -> Mask:
        """Which of the documents answer which of the queries, (queries, rows)."""
        keys = np.asarray(queries, dtype=np.int64)[:, None] * self.documents + np.asarray(rows, dtype=np.int64)[None, :]
        if not len(self._keys):
            return np.zeros(keys.shape, dtype=np.bool_)
        index = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return self._keys[index] == keys

    def false_negatives(self, queries: npt.ArrayLike, rows: npt.ArrayLike, targets: npt.ArrayLike) -> Mask:
        """Where an in-batch document must not count as a negative: it answers the query, yet is not its target column.

        >>> gold = Gold([[0, 1], [1]], documents=3)
        >>> gold.false_negatives(queries=[0, 1], rows=[0, 1, 2], targets=[0, 1])
        array([[False,  True, False],
               [False, False, False]])
        """
        mask = self.relevant(queries, rows)
        mask[np.arange(len(mask)), np.asarray(targets)] = False
        return mask


def link_gold(
    titles: Sequence[Sequence[str]], corpus: Corpus, *, places: Sequence[str], field: str = "docs", strict: bool = False
) -> Gold:
    """Look the titles of each query up in the corpus. Titles it lacks are reported; with `strict` they are an error."""
    rows: list[list[int]] = []
    missing: list[tuple[int, str]] = []
    for query, names in enumerate(titles):
        found = [corpus.rows(name) for name in names]
        missing += [(query, name) for name, where in zip(names, found, strict=True) if not where]
        rows.append([row for where in found for row in where])
    if missing:
        examples = [f"{places[query]}: field {field!r}: {name!r}" for query, name in missing[:3]]
        queries = len({query for query, _ in missing})
        message = (
            f"{len(missing):,} of {sum(map(len, titles)):,} gold titles, in {queries:,} of {len(titles):,} queries, "
            f"are not among the {len(corpus):,} documents of {corpus.name}: {first_few(examples, len(missing))}"
        )
        if strict:
            raise DataError(message)
        warnings.warn(message, DataWarning, stacklevel=3)
    return Gold(rows, len(corpus))
