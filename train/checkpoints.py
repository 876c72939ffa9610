"""Checkpoints that are whole or not there: written aside, then renamed; the last few are kept, and the best weights."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file
from torch import nn

from boolbert.errors import TrainingError

STATE = "state.json"
WEIGHTS = "model.safetensors"


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
        """Write the model, the optimizer and `state`; then forget the checkpoints that are too old."""
        aside = self._aside(step, "checkpoint")
        try:
            if accelerator.is_main_process:
                _make_empty(aside)
            accelerator.wait_for_everyone()
            accelerator.save_state(str(aside))
            accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                (aside / STATE).write_text(json.dumps({"step": step, **state}, indent=1), encoding="utf-8")
                _finish(aside, self.path(step))
                self._prune(state)
        except Exception as error:  # torch, safetensors and the system each raise their own kind for a full disk
            raise self._failed(step, aside, error) from error
        accelerator.wait_for_everyone()

    def save_best(self, model: nn.Module, step: int) -> None:
        """Write the weights alone; called on the main process."""
        aside = self._aside(step, "best")
        try:
            _make_empty(aside)
            weights = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
            save_file(weights, aside / WEIGHTS)
            _finish(aside, self.path(step, "best"))
        except Exception as error:
            raise self._failed(step, aside, error) from error

    def load(self, accelerator: Accelerator, step: int) -> dict[str, Any]:
        """Put a checkpoint back into the model and the optimizer, and return its state."""
        path = self.path(step)
        try:
            accelerator.load_state(str(path))
            return json.loads((path / STATE).read_text(encoding="utf-8"))
        except Exception as error:
            raise TrainingError(
                f"{path}: cannot be loaded ({_first_line(error)}); remove it to go on from an earlier one"
            ) from error

    def state(self, step: int) -> dict[str, Any]:
        return json.loads((self.path(step) / STATE).read_text(encoding="utf-8"))

    def load_best(self, model: nn.Module, step: int) -> None:
        device = next(model.parameters()).device
        model.load_state_dict(load_file(self.path(step, "best") / WEIGHTS, device=str(device)))

    def last(self) -> str:
        """The last good checkpoint, in words."""
        steps = self.steps()
        return f"the last good checkpoint is {self.path(steps[-1])}" if steps else "there is no checkpoint yet"

    def _aside(self, step: int, kind: str) -> Path:
        return self.folder / f".{kind}-{step}.part"

    def _prune(self, state: dict[str, Any]) -> None:
        for step in self.steps()[: -self.keep_last]:
            shutil.rmtree(self.path(step))
        best = (state.get("best") or {}).get("step")
        for step in self.steps("best"):
            if step != best:
                shutil.rmtree(self.path(step, "best"))

    def _failed(self, step: int, aside: Path, error: Exception) -> TrainingError:
        shutil.rmtree(aside, ignore_errors=True)
        return TrainingError(
            f"{self.path(step)}: cannot be written ({_first_line(error)}); {self.last()}, go on from it with --resume"
        )


def _make_empty(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _finish(aside: Path, target: Path) -> None:
    """Bring every file to the disk, then give the folder its name."""
    for path in [*aside.rglob("*"), aside]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    if target.exists():
        shutil.rmtree(target)
    os.rename(aside, target)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "out of memory" in str(error).lower()
