"""Checkpoints that are whole or not there; the last few are kept, and the best weights."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from boolbert.core.errors import TrainingError, first_line, reason
from boolbert.core.files import read_json, whole_folder, write_json

STATE = "state.json"
WEIGHTS = "model.safetensors"
STATE_FIELDS: dict[str, Any] = {"step": int, "seconds": float, "best": dict | None, "history": list, "identity": dict}
# What the system, torch and safetensors raise where a file cannot be written, a full disk for one.
WRITE_ERRORS = (OSError, RuntimeError, SafetensorError)


class Checkpoints:
    """The checkpoints of a run, in its folder `checkpoints`: checkpoint-STEP/ and best-STEP/."""

    def __init__(self, run: Path, keep_last: int = 2):
        self.folder = run / "checkpoints"
        self.keep_last = keep_last

    def steps(self, kind: str = "checkpoint") -> list[int]:
        """The steps that there are whole checkpoints of, in order."""
        names = (path.name.rpartition("-") for path in self.folder.glob(f"{kind}-*"))
        return sorted(int(step) for _, _, step in names if step.isdigit())

    def path(self, step: int, kind: str = "checkpoint") -> Path:
        return self.folder / f"{kind}-{step}"

    def save(self, accelerator: Accelerator, state: dict[str, Any]) -> None:
        """Write the model, the optimizer and `state`; then delete old checkpoints."""
        if accelerator.is_main_process:
            with self._written(self.path(state["step"])) as aside:
                accelerator.save_state(str(aside))
                write_json(aside / STATE, state)
            self._prune()
        accelerator.wait_for_everyone()

    def save_best(self, accelerator: Accelerator, model: nn.Module, step: int) -> None:
        """Write the weights alone."""
        if accelerator.is_main_process:
            with self._written(self.path(step, "best")) as aside:
                save_file(accelerator.unwrap_model(model).state_dict(), aside / WEIGHTS)
        accelerator.wait_for_everyone()

    def load(self, accelerator: Accelerator, step: int) -> None:
        """Put a checkpoint back into the model and the optimizer."""
        path = self.path(step)
        try:
            accelerator.load_state(str(path))
        except Exception as error:  # whatever is wrong with its files
            raise self._damaged(path, first_line(error)) from error

    def state(self, step: int) -> dict[str, Any]:
        """Where the run stood at a checkpoint. Its best weights must be there as well."""
        path = self.path(step)
        try:
            state = read_json(path / STATE)
        except (ValueError, OSError) as error:
            raise self._damaged(path, first_line(error)) from None
        for name, kind in STATE_FIELDS.items():
            if not isinstance(state, dict) or not isinstance(state.get(name), kind):
                raise self._damaged(path, f"{STATE} lacks {name!r}")
        if state["best"] is not None:
            weights = self.path(state["best"].get("step"), "best") / WEIGHTS
            try:
                with safe_open(weights, framework="pt") as file:
                    file.keys()
            except Exception as error:
                raise TrainingError(
                    f"{weights}: the best weights cannot be read ({first_line(error)}); start over with --overwrite"
                ) from None
        return state

    def load_best(self, model: nn.Module, step: int) -> None:
        model.load_state_dict(load_file(self.path(step, "best") / WEIGHTS))

    def last(self) -> str:
        """The last good checkpoint, in words."""
        steps = self.steps()
        return f"the last good checkpoint is {self.path(steps[-1])}" if steps else "there is no checkpoint yet"

    @contextmanager
    def _written(self, path: Path) -> Iterator[Path]:
        try:
            if path.exists():
                shutil.rmtree(path)
            with whole_folder(path) as aside:
                yield aside
                for file in aside.iterdir():
                    with file.open("rb") as written:
                        os.fsync(written)
        except WRITE_ERRORS as error:
            raise TrainingError(
                f"{path}: cannot be written ({reason(error)}); {self.last()}, go on from it with --resume"
            ) from error

    def _prune(self) -> None:
        """Delete old checkpoints, and the best weights that no remaining checkpoint names."""
        for step in self.steps()[: -self.keep_last]:
            shutil.rmtree(self.path(step))
        named = {(read_json(self.path(step) / STATE).get("best") or {}).get("step") for step in self.steps()}
        for step in self.steps("best"):
            if step not in named:
                shutil.rmtree(self.path(step, "best"))

    def _damaged(self, path: Path, reason: str) -> TrainingError:
        earlier = len(self.steps()) > 1
        advice = f"remove {path} to go on from an earlier checkpoint" if earlier else "start over with --overwrite"
        return TrainingError(f"{path}: the checkpoint is damaged ({reason}); {advice}")
