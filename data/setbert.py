"""SetBERT's sentences: a Boolean sentence G, sentences P that fit it and N that do not, a file per operator."""

import warnings
from collections.abc import Iterator
from pathlib import Path

from ..boolean import OPERATORS
from ..core.errors import DataError, DataWarning, first_few
from .rows import parse_rows
from .schema import Triplet
from .sources import Source, open_source


def read_triplets(source: str | Path = "sentences", *, skip_bad: bool = False) -> Iterator[Triplet]:
    """Triplets of a file, a folder or a Hub data set, the operators' tables first; else the project's own.

    A triplet's operator is its `operator` field, or the name of its file (and.jsonl, or.jsonl, not.jsonl). `skip_bad`
    passes over broken rows and reports how many there were and where.
    """
    bad: list[DataError] | None = [] if skip_bad else None
    opened = open_source(source)
    tables = [table for table in opened.tables() if opened.kind_of(table) == "triplets"]
    if not tables:
        raise DataError(f"{opened.name}: no table of triplets (fields G, P and N); found {', '.join(opened.tables())}")
    order = {operator: index for index, operator in enumerate(OPERATORS)}
    for name in sorted(tables, key=lambda table: order.get(_stem(table), len(order))):
        yield from read_table(opened, name, bad)
    if bad:
        message = first_few([str(error) for error in bad])
        warnings.warn(f"{len(bad):,} broken rows were skipped: {message}", DataWarning, stacklevel=2)


def read_table(source: Source, table: str, bad: list[DataError] | None) -> Iterator[Triplet]:
    """The triplets of one table; where a list `bad` is given, the errors go there and the reading goes on."""
    operator = _stem(table) if _stem(table) in OPERATORS else None
    return parse_rows(source.rows(table, bad=bad), lambda row: Triplet.from_row(row, operator), bad)


def _stem(table: str) -> str:
    return table.rpartition("/")[2].lower()
