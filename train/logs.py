"""What a run says: a progress bar, one line an evaluation, log.jsonl, and any tracker that Accelerate knows."""

import json
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import LOGGER_TYPE_TO_CLASS
from tqdm import tqdm


def available_tracker(name: str) -> str | None:
    """The tracker to use; None, with a line on why, where it is not installed."""
    if name == "none":
        return None
    if name not in LOGGER_TYPE_TO_CLASS:
        raise ValueError(f"--tracker must be none or one of {', '.join(sorted(LOGGER_TYPE_TO_CLASS))}, got {name!r}")
    package = {"tensorboard": ("tensorboard", "tensorboardX"), "comet_ml": ("comet_ml",)}.get(name, (name,))
    return name if any(find_spec(module) for module in package) else None


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
