"""The comparison as a table: Markdown and terminal for people, CSV and JSON for programs."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from boolbert.core.tables import aligned, number
from boolbert.retrieval.metrics import COLUMNS, lower_is_better

Summary = Mapping[str, Any]  # a metrics.json


def columns_of(systems: Sequence[Summary]) -> dict[str, str]:
    """The metrics that stand in a table and that at least one system has a value for, with their titles."""
    return {
        metric: title
        for metric, title in COLUMNS.items()
        if any(_value(system, metric) is not None for system in systems)
    }


class Cell(NamedTuple):
    """A cell of a table: a text, half the width of its 95% interval, and whether it is the best of its column."""

    text: str
    margin: str = ""
    best: bool = False

    def markdown(self) -> str:
        text = f"{self.text} ±{self.margin}" if self.margin else self.text
        return f"**{text}**" if self.best else text


def cell(average: Mapping[str, Any] | None, best: bool = False) -> Cell:
    """
    >>> cell({"mean": 0.5, "low": 0.45, "high": 0.57, "queries": 9}).markdown()
    '.500 ±.060'
    """
    if average is None or average["mean"] is None:
        return Cell("-")
    return Cell(number(average["mean"]), number((average["high"] - average["low"]) / 2), best)


def cells(systems: Sequence[Summary]) -> tuple[list[str], list[list[Cell]]]:
    """The header and the rows of the main table."""
    columns = columns_of(systems)
    tested = any(system.get("reference") for system in systems)
    header = ["System", *columns.values(), "ms/query", "Parameters", *(["p"] if tested else [])]
    best, rows = {}, []
    for metric in columns:
        values = [value for system in systems if (value := _value(system, metric)) is not None]
        best[metric] = min(values) if lower_is_better(metric) else max(values)
    for system in systems:
        averages = system["metrics"]["all"]
        row = [Cell(system["system"] + (f" ({system['seeds']} seeds)" if system["seeds"] > 1 else ""))]
        row += [cell(averages.get(metric), _value(system, metric) == best[metric]) for metric in columns]
        millions = f"{system['parameters'] / 1e6:.1f}M" if system["parameters"] else "-"
        row += [Cell(f"{system['latency_ms']:.1f}"), Cell(millions)]
        rows.append(row + ([Cell(_p_value(system.get("p_value")))] if tested else []))
    return header, rows


def markdown(systems: Sequence[Summary]) -> str:
    """The table for a results page, each average with half the width of its 95% interval."""
    header, rows = cells(systems)
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *([each.markdown() for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def terminal(systems: Sequence[Summary]) -> str:
    """The table for a terminal: aligned, means only."""
    header, rows = cells(systems)
    return aligned(header, [[each.text for each in row] for row in rows])


def breakdown(system: Summary, kind: str) -> str:
    """One system's metrics for a terminal: all queries, then each group."""
    columns = columns_of([system])
    header = [kind, "queries", *columns.values()]
    rows = []
    for name, metrics in {"all": system["metrics"]["all"], **system["metrics"].get(kind, {})}.items():
        counts = [average["queries"] for average in metrics.values()]
        values = [number((metrics.get(metric) or {}).get("mean")) for metric in columns]
        rows.append([name, f"{max(counts, default=0):,}", *values])
    return aligned(header, rows)


def comma_separated(systems: Sequence[Summary]) -> str:
    """Every metric of every group, a line each: system, group kind, group, metric, mean, low, high, queries."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["system", "group", "value", "metric", "mean", "low", "high", "queries"])
    for system in systems:
        for kind, groups in system["metrics"].items():
            for name, metrics in groups.items() if kind != "all" else [("", groups)]:
                for metric, average in metrics.items():
                    writer.writerow([system["system"], kind, name, metric, *average.values()])
        for cost in ("latency_ms", "parameters"):
            writer.writerow([system["system"], "cost", "", cost, system[cost], "", "", ""])
    return text.getvalue()


def _p_value(value: float | None) -> str:
    return "-" if value is None else "<.001" if value < 0.001 else number(value)


def _value(system: Summary, metric: str) -> float | None:
    average = system["metrics"]["all"].get(metric)
    return None if average is None else average["mean"]
