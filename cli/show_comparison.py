"""A comparison as text for a terminal: systems by template, and one query's answers side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

from boolbert.boolean.operators import SHORT_NAMES
from boolbert.core.tables import aligned, number
from boolbert.core.terminal import fitted, printable
from boolbert.eval.pictures import ordered
from boolbert.eval.report import MARKS

from .colours import has_colour, paint

CODES = {"hit": ["32"], "violation": ["31", "1"], "miss": ["2"]}


def show_templates(systems: Sequence[Mapping[str, Any]], metrics: Sequence[tuple[str, str]]) -> str:
    """A row for each template, a column for each system and metric; `metrics` are (name, title) pairs."""
    groups = systems[0]["metrics"]["template"]
    header = ["Template", "Queries", *(f"{title} {system['system']}" for _, title in metrics for system in systems)]
    rows = []
    for name in ordered(groups):
        averages = [
            system["metrics"]["template"][name].get(metric) or {"mean": None}
            for metric, _ in metrics
            for system in systems
        ]
        count = groups[name]["r_precision"]["queries"]
        rows.append([SHORT_NAMES.get(name, name), str(count), *(number(average["mean"]) for average in averages)])
    return aligned(header, rows)


def show_side_by_side(answers: Mapping[str, Mapping[str, Any]], *, colour: bool | None = None, width: int = 34) -> str:
    """The same query's row of per_query.jsonl from several systems: ranked titles, each with its mark."""
    colour = has_colour() if colour is None else colour
    first = next(iter(answers.values()))
    gold = fitted(", ".join(first["gold"]), 90)
    operators = " ".join(first["operators"] or ()).upper() or "none"
    template = SHORT_NAMES.get(first.get("template", ""), "")
    lines = [
        paint(printable(first["query"]), "1", colour=colour),
        f"    {template}, operators: {operators}; {len(first['gold'])} answers: {gold}",
        "    " + "".join(paint(fitted(name, width - 2).ljust(width), "4", colour=colour) for name in answers).rstrip(),
    ]
    columns = [row["top"] for row in answers.values()]
    for rank, found in enumerate(zip(*columns, strict=True), start=1):
        cells = []
        for item in found:
            text = f"{MARKS[item['mark']]} {fitted(item['title'], width - 4)}"
            cells.append(paint(text, *CODES[item["mark"]], colour=colour) + " " * (width - len(text)))
        lines.append(f"{rank:>2}  {''.join(cells)}".rstrip())
    counts = [
        f"{_count(column, 'hit')} right, {_count(column, 'violation')} broken, {_count(column, 'miss')} other"
        for column in columns
    ]
    lines.append("    " + "".join(text.ljust(width) for text in counts).rstrip())
    return "\n".join(lines)


def _count(column: Sequence[Mapping[str, Any]], mark: str) -> int:
    return sum(item["mark"] == mark for item in column)


def legend() -> str:
    return (
        f"{MARKS['hit']} answers the query   {MARKS['violation']} breaks one of its operators   {MARKS['miss']} neither"
    )
