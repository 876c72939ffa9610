"""A source of data gives tables of rows by name; this says what a source is, and how a table in it is found."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.errors import DataError
from .rows import Row
from .schema import kind_of

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

    def atoms_path(self) -> Path | None:
        """The file with the atomic sets, where there is one."""
        return None


def find_table(source: Source, names: Sequence[str], what: str) -> str:
    """The first of these tables that the source has, by its own name or an alias ("dev" finds "validation").

    >>> class Quest:
    ...     name = "here"
    ...     tables = staticmethod(lambda: ["documents", "train", "val"])
    >>> find_table(Quest(), ["dev"], "split")
    'val'
    """
    found = _lookup(source, names)
    if found is None:
        tables = ", ".join(source.tables()) or "no table at all"
        raise DataError(f"{source.name}: no {what} {names[0]!r}; found {tables}")
    return found


def has_table(source: Source, names: Sequence[str]) -> bool:
    """Whether `find_table` would find one."""
    return _lookup(source, names) is not None


def _lookup(source: Source, names: Sequence[str]) -> str | None:
    groups = [next((group for group in ALIASES if name in group), ()) for name in names]
    wanted = [*names, *(alias for group in groups for alias in group)]
    tables = source.tables()
    return next((name for name in wanted if name in tables), None)


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
