"""An evaluation's metrics, pictures and some queries with their top results, joined into one HTML page."""

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from boolbert.boolean.operators import SHORT_NAMES
from boolbert.core.files import write_text
from boolbert.core.pages import render
from boolbert.data.tasks import Task
from boolbert.eval.pictures import ordered
from boolbert.eval.results import Result, query_rows
from boolbert.eval.tables import Cell, Summary, cell, cells, columns_of

EXAMPLES = 12
SYSTEMS_SHOWN = 3


def write_report(folder: Path, systems: Sequence[Summary], results: Sequence[Result], task: Task) -> None:
    """Write `report.html` into a folder of results with pictures; nothing in it points outside of the file."""
    first = systems[0]
    kind = next((name for name in ("template", "operator") if name in first["metrics"]), None)
    many = f"{len(systems)} systems" if len(systems) > 1 else first["system"]
    page = render(
        "report.html",
        title=f"{first['data']}, {first['split']}",
        lead=f"{first['queries']:,} queries over {first['documents']:,} documents; {many}.",
        results=cells(systems),
        tested=next((system for system in systems if system.get("reference")), None),
        pictures=list(pictures(folder)),
        kind=kind,
        groups=list(group_tables(systems, kind)) if kind else [],
        examples=list(examples(results, example_systems(systems), task, kind)),
    )
    write_text(folder / "report.html", page)


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
            [Cell(system["system"]), *(cell(system["metrics"][kind][name].get(metric)) for name in groups)]
            for system in systems
        ]
        yield title, header, rows


def example_systems(systems: Sequence[Summary]) -> list[str]:
    """Three systems to show: the reference, the first Bool-BERT, the best."""
    names = [system["system"] for system in systems]
    metric = systems[0].get("tested_on", "r_precision")
    best = max(systems, key=lambda system: system["metrics"]["all"][metric]["mean"] or 0.0)["system"]
    boolean = next((name for name in names if name.startswith("Bool-BERT")), None)
    chosen = [systems[0].get("reference"), boolean, best, *names]
    return list(dict.fromkeys(name for name in chosen if name is not None))[:SYSTEMS_SHOWN]


def examples(
    results: Sequence[Result], systems: Sequence[str], task: Task, kind: str | None
) -> Iterator[dict[str, Any]]:
    """Queries of every group in turn, with what each of the systems ranks first."""
    by_name = {result.name: result for result in results}
    rows = {name: query_rows(by_name[name], task) for name in systems}
    labels = task.groups[kind] if kind else [""] * len(task)
    for index in spread(labels, EXAMPLES):
        row = rows[systems[0]][index]
        yield {
            "query": row["query"],
            "label": SHORT_NAMES.get(labels[index], labels[index]),
            "gold": row["gold"],
            "rankings": [(name, rows[name][index]["top"]) for name in systems],
        }


def spread(labels: Sequence[str], count: int) -> list[int]:
    """The numbers of the first queries of each label in turn, so that every label is seen.

    >>> spread(["a", "a", "a", "b", "c"], 4)
    [0, 1, 3, 4]
    """
    order = list(dict.fromkeys(labels))
    turns = [labels[:number].count(label) for number, label in enumerate(labels)]
    chosen = sorted(range(len(labels)), key=lambda number: (turns[number], order.index(labels[number])))[:count]
    return sorted(chosen, key=lambda number: (order.index(labels[number]), number))
