"""Join an evaluation's metrics, pictures and some queries with their top results into one HTML page.

python eval/report.py runs/compare        # a folder written by eval/compare.py, eval/quest.py or eval/boolquestions.py
"""

import base64
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from boolbert.boolean.operators import SHORT_NAMES
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import EvaluationError, run_script
from boolbert.core.files import read_json, write_text
from boolbert.core.pages import render
from boolbert.core.runs import METRICS
from boolbert.eval.pictures import ordered
from boolbert.eval.results import folder_names
from boolbert.eval.tables import cells, columns_of, with_margin

EXAMPLES = 12
SYSTEMS_SHOWN = 3
FIELDS = {"system": str, "data": str, "split": str, "queries": int, "documents": int, "metrics": dict}

Summary = Mapping[str, Any]  # a metrics.json
QueryRow = Mapping[str, Any]  # a line of per_query.jsonl


def write_report(folder: Path, examples: int = EXAMPLES) -> Path:
    """Write `report.html` into a folder of results; nothing in it points outside of the file."""
    systems, queries = read_results(folder)
    first = systems[0]
    kind = next((name for name in ("template", "operator") if name in first["metrics"]), None)
    many = f"{len(systems)} systems" if len(systems) > 1 else first["system"]
    header, rows = cells(systems, margins=True, best="**")
    page = render(
        "report.html",
        title=f"{first['data']}, {first['split']}",
        lead=f"{first['queries']:,} queries over {first['documents']:,} documents; {many}.",
        results=(
            header,
            [[Cell(name), *map(Cell.read, numbers)] for name, *numbers in rows],
        ),  # a name may hold " ±" too
        tested=next((system for system in systems if system.get("reference")), None),
        pictures=list(pictures(folder)),
        kind=kind,
        groups=list(group_tables(systems, kind)) if kind else [],
        examples=list(chosen_examples(queries, example_systems(systems), examples, kind)),
    )
    path = folder / "report.html"
    write_text(path, page)
    return path


def read_results(folder: Path) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """The systems' metrics, and each system's rows of per_query.jsonl."""
    table, single = folder / "table.json", folder / METRICS
    if table.exists():
        systems = read_json(table, EvaluationError)
    elif single.exists():
        systems = [read_json(single, EvaluationError)]
    else:
        raise EvaluationError(f"{folder}: no evaluation there (neither table.json nor {METRICS})")
    path = table if table.exists() else single
    if not isinstance(systems, list) or not systems or not all(isinstance(system, dict) for system in systems):
        raise EvaluationError(f"{path}: was not written by an evaluation")
    for system in systems:
        if missing := [name for name in FIELDS if not isinstance(system.get(name), FIELDS[name])]:
            raise EvaluationError(f"{path}: was not written by an evaluation: {missing[0]!r} is missing or wrong")
    folders = folder_names([system["system"] for system in systems])
    queries = {}
    for name, subfolder in folders.items():
        queries[name] = read_rows((folder / subfolder if table.exists() else folder) / "per_query.jsonl")
    return systems, queries


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a per_query.jsonl."""
    rows = []
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise EvaluationError(f"{path}:{number}: not valid JSON: {error}") from None
    return rows


class Cell(NamedTuple):
    """A cell of a table: a text, half the width of its interval, and whether it is the best of its column."""

    text: str
    margin: str = ""
    best: bool = False

    @classmethod
    def read(cls, text: str) -> "Cell":
        """
        >>> Cell.read("**.500 ±.060**"), Cell.read("BM25")
        (Cell(text='.500', margin='.060', best=True), Cell(text='BM25', margin='', best=False))
        """
        value, _, margin = text.strip("*").partition(" ±")
        return cls(value, margin, text.startswith("**"))


def pictures(folder: Path) -> Iterator[tuple[str, str]]:
    """The folder's SVG pictures: a name, and the picture as an address that an <img> shows. No script in it can run."""
    for path in sorted((folder / "pictures").glob("*.svg")):
        yield path.stem.replace("_", " "), f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"


def group_tables(systems: Sequence[Summary], kind: str) -> Iterator[tuple[str, list[str], list[list[Cell]]]]:
    """For each metric of the main table its title, and a table of systems by groups."""
    groups = ordered(systems[0]["metrics"][kind])
    for metric, title in columns_of(systems).items():
        if not any(metric in values for values in systems[0]["metrics"][kind].values()):
            continue
        header = ["System", *(SHORT_NAMES.get(name, name) for name in groups)]
        rows = [
            [
                Cell(system["system"]),
                *(Cell.read(with_margin(system["metrics"][kind][name].get(metric))) for name in groups),
            ]
            for system in systems
        ]
        yield title, header, rows


def example_systems(systems: Sequence[Summary]) -> list[str]:
    """Three systems to show: the reference, the first Bool-BERT, the best, the one with the fewest violations."""
    names = [system["system"] for system in systems]
    metric = systems[0].get("tested_on", "r_precision")
    best = max(systems, key=lambda system: system["metrics"]["all"][metric]["mean"] or 0.0)["system"]
    boolean = next((name for name in names if name.startswith("Bool-BERT")), None)
    broken = [(system["metrics"]["all"].get("violations") or {}).get("mean") for system in systems]
    kept = min(zip(broken, names, strict=True), key=lambda pair: 1.0 if pair[0] is None else pair[0])[1]
    chosen = [systems[0].get("reference"), boolean, best, kept, *names]
    return list(dict.fromkeys(name for name in chosen if name is not None))[:SYSTEMS_SHOWN]


def chosen_examples(
    queries: Mapping[str, Sequence[QueryRow]], systems: Sequence[str], count: int, kind: str | None
) -> Iterator[dict[str, Any]]:
    """Queries of every group in turn, with what each of the systems ranks first."""
    rows = queries[systems[0]]
    for index in spread([row.get(kind, "") if kind else "" for row in rows], count):
        row = rows[index]
        label = row.get(kind, "") if kind else ""
        yield {
            "query": row["query"],
            "label": SHORT_NAMES.get(label, label),
            "gold": row["gold"],
            "rankings": [(name, queries[name][index]["top"]) for name in systems],
        }


def spread(labels: Sequence[str], count: int) -> list[int]:
    """The numbers of the first queries of each label in turn, so that every label is seen.

    >>> spread(["a", "a", "a", "b", "c"], 4)
    [0, 1, 3, 4]
    """
    numbers: dict[str, list[int]] = {}
    for number, label in enumerate(labels):
        numbers.setdefault(label, []).append(number)
    turns = range(max(map(len, numbers.values()), default=0))
    order = [of_label[turn] for turn in turns for of_label in numbers.values() if turn < len(of_label)]
    return sorted(order[:count], key=lambda number: (list(numbers).index(labels[number]), number))


@dataclass
class Arguments:
    folder: str = field(metadata={"help": "folder of results"})
    examples: int = flag(EXAMPLES, "how many queries to show")


def main(words: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if words is None else words)
    if words and not words[0].startswith("-"):
        words.insert(0, "--folder")
    args = parse_arguments(Arguments, __doc__, words)
    print(write_report(Path(args.folder), args.examples))


if __name__ == "__main__":
    run_script(main)
