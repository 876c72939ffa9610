"""Checkpoints that are whole or not there: written aside, then renamed; the last few are kept, and the best weights."""

import os
import shutil
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from boolbert.core.errors import TrainingError, first_line, reason
from boolbert.core.files import named_if_full, read_json, set_modes, write_json

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

    def clear(self) -> None:
        """Remove everything: a new run starts."""
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def remove_torn(self) -> None:
        """Remove what a killed process left half written."""
        for path in self.folder.glob(".*.part"):
            shutil.rmtree(path, ignore_errors=True)

    def save(self, accelerator: Accelerator, step: int, state: dict[str, Any]) -> None:
        """Write the model, the optimizer and `state`; then delete old checkpoints."""
        aside = self._aside(step, "checkpoint")
        try:
            if accelerator.is_main_process:
                _make_empty(aside)
            accelerator.wait_for_everyone()
            with named_if_full(aside):
                accelerator.save_state(str(aside))
            accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                write_json(aside / STATE, {"step": step, **state})
                _finish(aside, self.path(step))
                self._prune()
        except WRITE_ERRORS as error:
            raise self._failed(step, aside, error) from error
        accelerator.wait_for_everyone()

    def save_best(self, accelerator: Accelerator, model: nn.Module, step: int) -> None:
        """Write the weights alone, on the main process."""
        if not accelerator.is_main_process:
            return
        aside = self._aside(step, "best")
        try:
            _make_empty(aside)
            with named_if_full(aside):
                save_file(accelerator.unwrap_model(model).state_dict(), aside / WEIGHTS)
            _finish(aside, self.path(step, "best"))
        except WRITE_ERRORS as error:
            raise self._failed(step, aside, error) from error

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
        except (ValueError, OSError, RecursionError) as error:
            raise self._damaged(path, first_line(error)) from None
        for name, kind in STATE_FIELDS.items():
            if not isinstance(state, dict) or not isinstance(state.get(name), kind):
                raise self._damaged(path, f"{STATE} lacks {name!r}")
        if state["best"] is not None:
            self.check_best(state["best"].get("step"))
        return state

    def check_best(self, step: Any) -> None:
        """Raise where the best weights are not there, or are cut short."""
        path = self.path(step, "best") / WEIGHTS
        try:
            with safe_open(path, framework="pt") as file:
                file.keys()
        except Exception as error:
            raise TrainingError(
                f"{path}: the best weights cannot be read ({first_line(error)}); start over with --overwrite"
            ) from None

    def load_best(self, model: nn.Module, step: int) -> None:
        """Put the best weights into the model; each process reads them."""
        self.check_best(step)
        model.load_state_dict(load_file(self.path(step, "best") / WEIGHTS))

    def last(self) -> str:
        """The last good checkpoint, in words."""
        steps = self.steps()
        return f"the last good checkpoint is {self.path(steps[-1])}" if steps else "there is no checkpoint yet"

    def _aside(self, step: int, kind: str) -> Path:
        return self.folder / f".{kind}-{step}.part"

    def _prune(self) -> None:
        """Delete old checkpoints, and the best weights that no remaining checkpoint names."""
        steps = self.steps()
        for step in steps[: -self.keep_last]:
            shutil.rmtree(self.path(step))
        named = {(read_json(self.path(step) / STATE).get("best") or {}).get("step") for step in self.steps()}
        for step in self.steps("best"):
            if step not in named:
                shutil.rmtree(self.path(step, "best"))

    def _failed(self, step: int, aside: Path, error: Exception) -> TrainingError:
        shutil.rmtree(aside, ignore_errors=True)
        return TrainingError(
            f"{self.path(step)}: cannot be written ({reason(error)}); {self.last()}, go on from it with --resume"
        )

    def _damaged(self, path: Path, reason: str) -> TrainingError:
        earlier = len(self.steps()) > 1
        advice = f"remove {path} to go on from an earlier checkpoint" if earlier else "start over with --overwrite"
        return TrainingError(f"{path}: the checkpoint is damaged ({reason}); {advice}")


def _make_empty(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _finish(aside: Path, target: Path) -> None:
    """Bring every file to the disk, then give the folder its name."""
    set_modes(aside)
    for path in [*aside.rglob("*"), aside]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    if target.exists():
        shutil.rmtree(target)
    os.rename(aside, target)


def out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "out of memory" in str(error).lower()
