"""The last thing a run prints: what it reached, where, and in which time."""

from typing import Any


def print_summary(folder: str, metrics: dict[str, Any]) -> None:
    best = f"best epoch {metrics['best_epoch']} by {metrics['metric']}"
    print(f"\n{metrics['steps']} steps in {metrics['seconds']:.0f} s, {best}; saved in {folder}\n")
    rows: list[tuple[str, dict[str, Any]]] = [("dev", metrics["dev"])]
    if "dev_without_labels" in metrics:
        rows.append(("dev, text alone", metrics["dev_without_labels"]))
    rows += [(f"  {name}", values) for name, values in (metrics["dev"] or {}).get("groups", {}).items()]
    print(table(rows))


def table(rows: list[tuple[str, dict[str, Any]]]) -> str:
    """Rows of metrics under one head; what a row lacks is a dash.

    >>> print(table([("dev", {"mrr@10": 0.5, "violations": 0.25}), ("_", {"mrr@10": 1.0})]))
           mrr@10  violations
    dev     0.500       0.250
    _       1.000           -
    """
    names = list(
        dict.fromkeys(name for _, values in rows for name, value in values.items() if isinstance(value, float))
    )
    width = max(len(label) for label, _ in rows) + 4
    widths = [max(len(name), 6) for name in names]
    lines = [" " * width + "  ".join(name.rjust(size) for name, size in zip(names, widths, strict=True))]
    for label, values in rows:
        cells = [f"{values[name]:.3f}" if name in values else "-" for name in names]
        lines.append(label.ljust(width) + "  ".join(cell.rjust(size) for cell, size in zip(cells, widths, strict=True)))
    return "\n".join(lines)


def print_pretraining(folder: str, metrics: dict[str, Any]) -> None:
    dev = metrics["dev"]
    print(f"\n{metrics['steps']} steps in {metrics['seconds']:.0f} s; saved in {folder}\n")
    rows = []
    for operator, kinds in dev["kinds"].items():
        cells = {name: values["f1"] for name, values in kinds.items() if values["tokens"]}
        rows.append(
            (operator, {"cue F1": dev[f"cue_f1_{operator}"], **cells, "gate": dev[f"gate_accuracy_{operator}"]})
        )
    rows.append(("all", {"cue F1": dev["cue_f1"], "gate": dev["gate_accuracy"]}))
    print(table(rows))
    print(f"triplets in the right order: {dev['triplet_accuracy']:.3f}")
