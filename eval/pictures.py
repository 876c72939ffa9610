"""Pictures of a comparison, as PNG and SVG. Systems differ by hatch too: grey print is enough."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from boolbert.boolean.operators import SHORT_NAMES
from boolbert.core.errors import optional
from boolbert.core.files import make_folder, whole_file
from boolbert.eval.tables import Summary
from boolbert.retrieval.metrics import COLUMNS, lower_is_better

STYLE = Path(__file__).with_name("pictures.mplstyle")
# Light, so that the bars' intervals are seen on them.
COLOURS = ("#6f8fc4", "#f2b632", "#a9dcf5", "#d9713c", "#c9c9c9", "#3fb489", "#f4ea6a", "#dd9bc0", "#8d8d8d", "#c3e59a")
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "ooo", "+++", "***", "|||")


def draw_all(systems: Sequence[Summary], folder: Path, metric: str) -> None:
    """The pictures that these systems have numbers for."""
    matplotlib = optional("matplotlib", "matplotlib", "eval")
    matplotlib.use("Agg")
    kind = next((name for name in ("template", "operator") if name in systems[0]["metrics"]), None)
    if kind is None:
        return
    make_folder(folder)
    with matplotlib.rc_context(fname=STYLE):
        bars(systems, kind, metric, folder / f"{metric.replace('@', '_at_')}_by_{kind}")
        if _has(systems, kind, "violations"):
            bars(systems, kind, "violations", folder / "violations")


def bars(systems: Sequence[Summary], kind: str, metric: str, path: Path) -> None:
    """Grouped bars with 95% intervals: a group for each template (or operator), a bar for each system."""
    from matplotlib import pyplot

    groups = [name for name in ordered(systems[0]["metrics"][kind]) if _has(systems, kind, metric, name)]
    width = 0.84 / len(systems)
    figure, axes = pyplot.subplots(figsize=(max(9, 0.16 * len(systems) * len(groups) + 3), 4.8))
    for number, system in enumerate(systems):
        averages = [system["metrics"][kind].get(group, {}).get(metric) or {} for group in groups]
        low, mean, high = (np.array([each.get(name) or 0.0 for each in averages]) for name in ("low", "mean", "high"))
        axes.bar(
            [group + (number - (len(systems) - 1) / 2) * width for group in range(len(groups))],
            mean,
            width,
            yerr=np.stack([mean - low, high - mean]).clip(min=0),
            color=COLOURS[number % len(COLOURS)],
            hatch=HATCHES[number % len(HATCHES)],
            error_kw={"elinewidth": 0.8, "ecolor": "black"},
            label=system["system"],
        )
    axes.set_xticks(range(len(groups)), [SHORT_NAMES.get(group, group) for group in groups])
    title = COLUMNS.get(metric, metric)
    axes.set_ylabel(title)
    axes.set_title(f"{title} by {kind}" + (" (less is better)" if lower_is_better(metric) else ""))
    axes.margins(x=0.01)
    axes.set_ylim(bottom=0)
    shown = axes.get_legend_handles_labels()
    figure.legend(*shown, loc="outside lower center", ncols=min(3, len(shown[1])))
    for form, metadata in {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}.items():
        with whole_file(path.with_suffix(f".{form}")) as aside:
            figure.savefig(aside, format=form, metadata=metadata)
    pyplot.close(figure)


def ordered(groups: Mapping[str, Any]) -> list[str]:
    """The names of groups in the order in which they are shown: templates and operators in theirs, others as they come.

    >>> ordered({"_ that are not _": ..., "unknown": ..., "_": ...})
    ['_', '_ that are not _', 'unknown']
    """
    order = [*SHORT_NAMES, "and", "or", "not"]
    return sorted(groups, key=lambda name: order.index(name) if name in order else len(order))


def _has(systems: Sequence[Summary], kind: str, metric: str, group: str | None = None) -> bool:
    return any(
        (average.get(metric) or {}).get("mean") is not None
        for system in systems
        for name, average in system["metrics"].get(kind, {}).items()
        if group in (None, name)
    )
