"""How well `operators_of` reads the operators of real queries, which their template tells.

    boolbert data cues quest/train.jsonl
    boolbert data cues quest/train.jsonl --show not --missed 20 --wrong 20

Rows need `query` and `metadata.template`, as in QUEST; a path ending in .gz is read as gzip.
"""

import argparse
import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from .cues import operators_of
from .operators import OPERATORS, template_operators

Taken = TypeVar("Taken")


class Score(NamedTuple):
    """Counts of an operator: found and meant, found only, meant only."""

    hits: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.hits / max(self.hits + self.wrong, 1)

    @property
    def recall(self) -> float:
        return self.hits / max(self.hits + self.missed, 1)

    @property
    def f1(self) -> float:
        return f1(self.hits, self.wrong, self.missed)


def f1(hits: float, wrong: float, missed: float) -> float:
    """The harmonic mean of precision and recall; 1 where there is nothing to find and nothing is found.

    >>> f1(hits=3, wrong=1, missed=1), f1(0, 1, 0), f1(0, 0, 0)
    (0.75, 0.0, 1.0)
    """
    return float(2 * hits / (2 * hits + wrong + missed)) if hits + wrong + missed else 1.0


def score(found: Iterable[set[str]], meant: Iterable[set[str]], operator: str) -> Score:
    """Compare the operators found in each query with those meant.

    >>> score([{"and"}, {"and"}, set()], [{"and"}, {"or"}, {"and"}], "and")
    Score(hits=1, wrong=1, missed=1)
    """
    pairs = [(operator in one, operator in other) for one, other in zip(found, meant, strict=True)]
    return Score(pairs.count((True, True)), pairs.count((True, False)), pairs.count((False, True)))


def read_queries(path: Path) -> Iterator[tuple[str, set[str]]]:
    """The queries of a file with the operators of their templates."""
    yield from read_rows(
        path,
        lambda row: (row["query"], set(template_operators(row["metadata"]["template"]))),
        "`query` and `metadata.template`",
    )


def read_rows(path: Path, take: Callable[[Any], Taken], needs: str) -> Iterator[Taken]:
    """What is taken of each row of a JSON Lines file, gzipped or not. `needs`: what a row must have, for the error."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield take(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
                raise ValueError(f"{path}, line {number}: {reason}; a row needs {needs}") from error


def table(queries: list[str], meant: list[set[str]], weak: bool) -> str:
    """Precision, recall and F1 of each operator, as a Markdown table."""
    found = [operators_of(query, weak=weak) for query in queries]
    rows = ["| operator | queries | precision | recall | F1 |", "| --- | --- | --- | --- | --- |"]
    for operator in OPERATORS:
        result = score(found, meant, operator)
        count = result.hits + result.missed
        rows.append(f"| {operator} | {count} | {result.precision:.3f} | {result.recall:.3f} | {result.f1:.3f} |")
    return "\n".join(rows)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="boolbert data cues", description="Precision, recall and F1 of operators_of.")
    parser.add_argument("path", type=Path, help="a .jsonl or .jsonl.gz file of queries in QUEST's schema")
    parser.add_argument("--match", default="", metavar="REGEX", help="only the queries that hold this expression")
    parser.add_argument("--weak", action="store_true", help="count weak cues as well")
    parser.add_argument("--show", choices=OPERATORS, help="list errors of this operator")
    parser.add_argument(
        "--missed", type=int, default=10, metavar="N", help="list N queries that mean it, without a cue"
    )
    parser.add_argument("--wrong", type=int, default=0, metavar="N", help="list N queries with a cue that mean none")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse_arguments(arguments)
    try:
        rows = [row for row in read_queries(options.path) if re.search(options.match, row[0], re.IGNORECASE)]
    except (OSError, EOFError, ValueError, re.error) as error:
        raise SystemExit(f"error: {error}") from None
    queries, meant = [query for query, _ in rows], [operators for _, operators in rows]
    print(f"{len(rows)} queries, weak cues {'counted' if options.weak else 'not counted'}\n")
    print(table(queries, meant, options.weak))
    if options.show:
        has_cue = [options.show in operators_of(query, weak=options.weak) for query in queries]
        means = [options.show in operators for operators in meant]
        for name, limit, cue in (("missed", options.missed, False), ("wrong", options.wrong, True)):
            errors = [
                query for query, found, right in zip(queries, has_cue, means, strict=True) if found == cue != right
            ]
            print(f"\n{name} {options.show}: {min(limit, len(errors))} of {len(errors)}")
            print("\n".join(f"  {query}" for query in errors[:limit]))


if __name__ == "__main__":
    main()
