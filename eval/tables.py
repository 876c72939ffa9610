"""The comparison as a table: Markdown and terminal for people, CSV and JSON for programs."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

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


def with_margin(average: Mapping[str, Any] | None) -> str:
    """
    >>> with_margin({"mean": 0.5, "low": 0.45, "high": 0.57, "queries": 9})
    '.500 ±.060'
    """
    if average is None or average["mean"] is None:
        return "-"
    return f"{number(average['mean'])} ±{number((average['high'] - average['low']) / 2)}"


def cells(systems: Sequence[Summary], *, margins: bool, best: str = "") -> tuple[list[str], list[list[str]]]:
    """Header and rows as text; the best value of a column gets `best` on both sides."""
    columns = columns_of(systems)
    tested = next((system["reference"] for system in systems if system.get("reference")), None)
    header = ["System", *columns.values(), "ms/query", "Parameters", *(["p"] if tested else [])]
    best_values = {metric: _best(systems, metric) for metric in columns}
    rows = []
    for system in systems:
        row = [_name(system)]
        for metric in columns:
            average = system["metrics"]["all"].get(metric)
            text = with_margin(average) if margins else number(_value(system, metric))
            mark = best if _value(system, metric) is not None and _value(system, metric) == best_values[metric] else ""
            row.append(f"{mark}{text}{mark}")
        row += [f"{system['latency_ms']:.1f}", millions(system["parameters"])]
        rows.append(row + ([_p_value(system.get("p_value"))] if tested else []))
    return header, rows


def markdown(systems: Sequence[Summary]) -> str:
    """The table for a results page, each average with half the width of its 95% interval."""
    header, rows = cells(systems, margins=True, best="**")
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def terminal(systems: Sequence[Summary]) -> str:
    """The table for a terminal: aligned, means only."""
    return aligned(*cells(systems, margins=False))


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


def millions(count: int) -> str:
    """
    >>> millions(22_713_216), millions(0)
    ('22.7M', '-')
    """
    return f"{count / 1e6:.1f}M" if count else "-"


def _p_value(value: float | None) -> str:
    return "-" if value is None else "<.001" if value < 0.001 else number(value)


def _name(system: Summary) -> str:
    return system["system"] + (f" ({system['seeds']} seeds)" if system["seeds"] > 1 else "")


def _value(system: Summary, metric: str) -> float | None:
    average = system["metrics"]["all"].get(metric)
    return None if average is None else average["mean"]


def _best(systems: Sequence[Summary], metric: str) -> float | None:
    values = [value for system in systems if (value := _value(system, metric)) is not None]
    return (min if lower_is_better(metric) else max)(values) if values else None
