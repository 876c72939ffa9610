"""What a run says: a progress bar, one line per evaluation, log.jsonl, any tracker that Accelerate knows, a summary."""

import json
import time
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from accelerate.utils import LoggerType
from tqdm import tqdm

from boolbert.errors import TrainingError
from boolbert.tables import aligned, number


def available_tracker(name: str) -> str | None:
    """The tracker to use; None where it is not installed."""
    known = [str(kind.value) for kind in LoggerType if kind != LoggerType.ALL]
    if name != "none" and name not in known:
        raise TrainingError(f"--tracker must be none or one of {', '.join(sorted(known))}, got {name!r}")
    return name if name in map(str, get_available_trackers()) else None


class RunLog:
    """Writes on the main process only; on the others every call does nothing."""

    def __init__(self, accelerator: Accelerator, folder: Path, total: int, start: int = 0):
        self.accelerator = accelerator
        self.main = accelerator.is_main_process
        self.path = folder / "log.jsonl"
        self.started = time.perf_counter()
        self.bar: Any = tqdm(
            total=total, initial=start, unit="step", dynamic_ncols=True, disable=None if self.main else True
        )
        if self.main:
            self._forget_after(start)

    def write(self, step: int, values: dict[str, Any]) -> None:
        """A line of log.jsonl, and the same to the trackers."""
        if self.main:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, **values}) + "\n")
        numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
        self.accelerator.log(numbers, step=step)

    def advance(self, **shown: Any) -> None:
        if shown:
            self.bar.set_postfix(shown, refresh=False)
        self.bar.update()

    def say(self, line: str) -> None:
        if self.main:
            self.bar.write(line)

    def close(self) -> None:
        self.bar.close()

    def _forget_after(self, step: int) -> None:
        """A resumed run writes the lines after its checkpoint again."""
        if not self.path.exists():
            return
        kept = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                if json.loads(line)["step"] <= step and step:
                    kept.append(line + "\n")
            except (ValueError, KeyError):
                continue  # cut short when the process was killed
        self.path.write_text("".join(kept), encoding="utf-8")


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
    dev    .500        .250
    _     1.000           -
    """
    names = list(
        dict.fromkeys(name for _, values in rows for name, value in values.items() if isinstance(value, float))
    )
    lines = [[label, *(number(values.get(name)) for name in names)] for label, values in rows]
    return aligned(["", *names], lines, rule=False)


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
