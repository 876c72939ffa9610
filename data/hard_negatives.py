"""Hard negatives: documents that break a query's operator, from its atomic sets, or those a data set brings along."""

from collections.abc import Mapping, Sequence

import numpy as np

from ..boolean.operators import VIOLATIONS, Pattern
from ..core.errors import DataError
from .gold import Gold, Rows
from .schema import Query


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
