"""What a run says: a progress bar, one line per evaluation, log.jsonl, any tracker that Accelerate knows, a summary."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from accelerate.utils import LoggerType
from tqdm import tqdm

from boolbert.core.errors import TrainingError
from boolbert.core.files import named_if_full, write_text
from boolbert.core.tables import aligned, number


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
        self.total = total
        self.bar: Any = tqdm(
            total=total, initial=start, unit="step", dynamic_ncols=True, disable=None if self.main else True
        )
        if self.main:
            self._forget_after(start)

    def write(self, step: int, values: dict[str, Any]) -> None:
        """A line of log.jsonl, and its numbers to the tracker, those of groups as "dev/group/metric"."""
        if self.main:
            with named_if_full(self.path), self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, **values}) + "\n")
        self.accelerator.log(dict(_numbers(values)), step=step)

    def losses(self, step: int, values: dict[str, float]) -> None:
        """The mean losses of the last steps: into the log, and onto the screen."""
        self.write(step, values)
        shown = f"loss {values['loss']:.4f}, rate {values['learning_rate']:.1e}"
        if not self.main:
            return
        if self.bar.disable:  # no terminal: a line instead of the bar
            print(f"step {step} of {self.total}: {shown}, {values['rows_per_second']:.0f} rows/s", flush=True)
        else:
            self.bar.set_postfix_str(shown, refresh=False)

    def say(self, line: str) -> None:
        if self.main:
            self.bar.write(line)

    def _forget_after(self, step: int) -> None:
        """A resumed run writes the lines after its checkpoint again."""
        if not self.path.exists():
            return
        kept = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError, KeyError, TypeError):  # cut short when the process was killed
                if json.loads(line)["step"] <= step and step:
                    kept.append(line + "\n")
        write_text(self.path, "".join(kept))


def _numbers(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """All numbers in nested dictionaries, by their path.

    >>> dict(_numbers({"dev/mrr": 0.5, "dev/groups": {"_ or _": {"mrr": 1.0}}}))
    {'dev/mrr': 0.5, 'dev/groups/_ or _/mrr': 1.0}
    """
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):
            yield prefix + name, value


def print_summary(folder: str, metrics: dict[str, Any]) -> None:
    """What a run reached, all queries and each group of them; what a row lacks is a dash."""
    best = f"best epoch {metrics['best_epoch']} by {metrics['metric']}"
    print(f"\n{metrics['steps']} steps in {metrics['seconds']:.0f} s, {best}; saved in {folder}\n")
    rows: list[tuple[str, dict[str, Any]]] = [("dev", metrics["dev"])]
    if "dev_without_labels" in metrics:
        rows.append(("dev, text alone", metrics["dev_without_labels"]))
    rows += [(f"  {name}", values) for name, values in metrics["dev"]["groups"].items()]
    names = list(
        dict.fromkeys(name for _, values in rows for name, value in values.items() if isinstance(value, float))
    )
    lines = [[label, *(number(values.get(name)) for name in names)] for label, values in rows]
    print(aligned(["", *names], lines, rule=False))
