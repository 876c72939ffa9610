"""Gold answers as rows of a corpus, what only looks negative in a batch, and what breaks a query's operators."""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..boolean.operators import VIOLATIONS, Pattern
from ..core.errors import DataError, DataWarning, first_few
from .corpus import Corpus
from .schema import Query

Rows = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class Gold(Sequence[Rows]):
    """For each query the sorted rows of its relevant documents, flat in one array.

    >>> gold = Gold([[4, 1], [], [2]], documents=5)
    >>> len(gold), gold[0].tolist(), gold[1].tolist()
    (3, [1, 4], [])
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
        keys = np.repeat(np.arange(len(unique)), np.diff(self.offsets)) * documents + self.rows
        self._keys = np.append(keys, np.iinfo(np.int64).max)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, query: int) -> Rows:  # type: ignore[override]  # one query at a time
        query = range(len(self))[query]
        return self.rows[self.offsets[query] : self.offsets[query + 1]]

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        return np.diff(self.offsets)

    def false_negatives(self, queries: npt.ArrayLike, rows: npt.ArrayLike, targets: npt.ArrayLike) -> Mask:
        """Where an in-batch document must not count as a negative: it answers the query, yet is not its target column.

        >>> gold = Gold([[0, 1], [1]], documents=3)
        >>> gold.false_negatives(queries=[0, 1], rows=[0, 1, 2], targets=[0, 1])
        array([[False,  True, False],
               [False, False, False]])
        """
        keys = np.asarray(queries, dtype=np.int64)[:, None] * self.documents + np.asarray(rows, dtype=np.int64)[None, :]
        mask = self._keys[np.searchsorted(self._keys, keys)] == keys
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


class HardNegatives:
    """For each query its pools of hard negatives, a pool for each way to be wrong; never a gold document.

    >>> gold = Gold([[0]], documents=4)
    >>> query = Query("A, not B", docs=("zero",), template="_ that are not _", atoms=("A", "B"))
    >>> pools = HardNegatives.from_atoms([query], {"A": np.array([0, 1, 2]), "B": np.array([2, 3])}, gold)
    >>> pools[0]
    (array([2], dtype=int32),)
    """

    def __init__(self, pools: Sequence[Sequence[Rows]]):
        self._pools = [tuple(pool for pool in query if len(pool)) for query in pools]

    def __len__(self) -> int:
        return len(self._pools)

    def __getitem__(self, query: int) -> tuple[Rows, ...]:
        return self._pools[query]

    def rows(self, query: int) -> Rows:
        """All hard negatives of a query, sorted."""
        return np.unique(np.concatenate([np.empty(0, np.int32), *self._pools[query]]))

    @classmethod
    def from_atoms(cls, queries: Sequence[Query], atoms: Mapping[str, Rows], gold: Gold) -> "HardNegatives":
        """The documents that break each query's operators, by set operations over its atomic sets."""
        pools: list[list[Rows]] = []
        for index, query in enumerate(queries):
            tiers = VIOLATIONS.get(query.template or "", ()) if query.atoms else ()
            members = [_members(name, atoms, gold.documents, query) for name in query.atoms if tiers]
            allowed = np.ones(gold.documents, dtype=np.bool_)
            allowed[gold[index]] = False
            pools.append(next((tier for tier in (_fitting(t, members, allowed) for t in tiers) if tier), []))
        return cls(pools)

    @classmethod
    def from_listed(cls, negatives: Gold, gold: Gold) -> "HardNegatives":
        """The negatives that a data set lists itself (BoolQuestions)."""
        return cls([[np.setdiff1d(negatives[query], gold[query])] for query in range(len(gold))])


def _members(name: str, atoms: Mapping[str, Rows], documents: int, query: Query) -> np.ndarray:
    if name not in atoms:
        raise DataError(f"{query.where}: field 'metadata.atoms' names {name!r}, which the atomic sets lack")
    member = np.zeros(documents, dtype=np.bool_)
    member[atoms[name]] = True
    return member


def _fitting(patterns: Sequence[Pattern], members: Sequence[np.ndarray], allowed: np.ndarray) -> list[Rows]:
    pools = []
    for pattern in patterns:
        fits = allowed.copy()
        for wanted, member in zip(pattern, members, strict=True):
            if wanted is not None:
                fits &= member if wanted else ~member
        rows = np.flatnonzero(fits).astype(np.int32)
        if len(rows):
            pools.append(rows)
    return pools
