"""A run's folder: opened once, and at the end filled with the model, its metrics, and how it came about."""

import dataclasses
import json
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

import boolbert
from boolbert.errors import TrainingError
from boolbert.train.arguments import RunArguments
from boolbert.train.checkpoints import Checkpoints
from boolbert.train.logs import available_tracker

PACKAGES = ("torch", "transformers", "sentence-transformers", "accelerate", "tokenizers", "numpy")
ARGUMENTS, METRICS = "args.json", "metrics.json"


def open_run(args: RunArguments) -> Accelerator:
    """Make the folder and the Accelerator. An unfinished run is never overwritten by accident."""
    tracker = available_tracker(args.tracker)
    accelerator = Accelerator(mixed_precision=args.mixed_precision, log_with=tracker, project_dir=args.output_dir)
    if accelerator.device.type == "cpu":
        # `accelerate launch` asks for a single thread where nobody says otherwise.
        torch.set_num_threads(args.threads or max(1, (os.cpu_count() or 1) // accelerator.num_processes))
    if accelerator.is_main_process:
        _open_folder(args)
        if tracker is None and args.tracker != "none":
            print(f"Tracker {args.tracker} is not installed; the log is {args.output_dir}/log.jsonl")
    accelerator.wait_for_everyone()
    flags = {name: value for name, value in dataclasses.asdict(args).items() if isinstance(value, int | float | str)}
    if accelerator.is_main_process:
        accelerator.init_trackers("tracker", config=flags)
    return accelerator


def _open_folder(args: RunArguments) -> None:
    folder = Path(args.output_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial = folder / f".write-{os.getpid()}"
        trial.write_text("", encoding="utf-8")
        trial.unlink()
    except OSError as error:
        raise TrainingError(f"--output_dir {folder}: cannot be written: {error.strerror or error}") from None
    checkpoints = Checkpoints(folder)
    steps = checkpoints.steps()
    if args.resume:
        print(
            f"Going on from {checkpoints.path(steps[-1])}" if steps else f"No checkpoint in {folder}: a new run starts"
        )
        return
    if steps and not (folder / METRICS).exists() and not args.overwrite:
        raise TrainingError(
            f"--output_dir {folder} holds an unfinished run (checkpoint at step {steps[-1]}): go on with --resume, "
            "start over with --overwrite, or give another folder"
        )
    checkpoints.clear()
    for name in (METRICS, "log.jsonl"):
        (folder / name).unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write aside and rename, so that a reader never sees half of it."""
    aside = path.with_name(f".{path.name}.part")
    aside.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(aside, path)


def write_record(folder: Path, script: str, args: RunArguments, start: dict[str, Any]) -> None:
    """How the run came about: its flags, what it started from, the versions and the commit."""
    record = {
        "script": script,
        "arguments": dataclasses.asdict(args),
        "start": start,
        "versions": versions(),
        "git_commit": git_commit(),
    }
    write_json(folder / ARGUMENTS, record)


def versions() -> dict[str, str]:
    """The versions of what the run depends on."""
    found = {"boolbert": boolbert.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_commit() -> str | None:
    """The commit of this checkout, marked where files were changed since; None outside of one."""
    root = Path(boolbert.__path__[0]).resolve()
    if not (root / ".git").exists():
        return None
    try:
        options: dict[str, Any] = {"cwd": root, "capture_output": True, "text": True, "check": True, "timeout": 10}
        commit = subprocess.run(["git", "rev-parse", "HEAD"], **options).stdout.strip()
        changed = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], **options).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+changes" if changed else "")
