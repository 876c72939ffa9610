"""A run's folder: checked before anything is written, then opened, with the run's flags and versions in it."""

import dataclasses
import hashlib
import os
import platform
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs

import boolbert
from boolbert import BoolBertConfig
from boolbert.core.errors import TrainingError, first_line, reason
from boolbert.core.files import (
    FILES,
    check_folder,
    delete_leftovers,
    read_json,
    user_path,
    whole_files,
    write_json,
    write_text,
)
from boolbert.core.pages import render
from boolbert.core.runs import ARGUMENTS, CONFIG, METRICS, Run
from boolbert.core.tables import number
from boolbert.retrieval.models import no_warnings
from boolbert.sentence_boolbert import save_dual_encoder
from boolbert.train.arguments import FREE, PRECISIONS, RunArguments
from boolbert.train.checkpoints import WRITE_ERRORS, Checkpoints
from boolbert.train.dual_encoder import DualEncoder
from boolbert.train.logs import available_tracker
from boolbert.train.optimizer import BEFORE_RECORDED

PACKAGES = ("torch", "transformers", "sentence-transformers", "accelerate", "tokenizers", "numpy")


@contextmanager
def own_settings() -> Iterator[None]:
    """Take back afterwards what a run sets for the whole process: ignored warnings, torch's threads and its seed."""
    threads = torch.get_num_threads()
    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)


def make_accelerator(args: RunArguments) -> Accelerator:
    """The Accelerator, as the launcher and the flags say. What cannot be obeyed is refused."""
    on_cpu = os.environ.get("ACCELERATE_USE_CPU", "").lower() == "true"
    if on_cpu and "MASTER_ADDR" in os.environ and "WORLD_SIZE" not in os.environ:
        raise TrainingError(
            "`accelerate launch --cpu` starts one process, whatever --num_processes says; "
            "type ACCELERATE_USE_CPU=true torchrun --nproc_per_node 2 train/...py instead"
        )
    for engine in ("FSDP", "DEEPSPEED", "MEGATRON_LM", "PARALLELISM_CONFIG"):
        if os.environ.get(f"ACCELERATE_USE_{engine}", "").lower() == "true":
            raise TrainingError(
                f"the launcher asks for {engine}: only DistributedDataParallel is supported, see several_gpus.yaml"
            )
    tracker = available_tracker(args.tracker)
    try:
        accelerator = Accelerator(
            mixed_precision=args.mixed_precision,
            log_with=tracker,
            project_dir=args.output_dir,
            # The models' buffers are constants.
            kwargs_handlers=[DistributedDataParallelKwargs(broadcast_buffers=False)],
        )
    except (ValueError, ImportError) as error:
        raise TrainingError(f"Accelerate refuses the launcher's settings: {first_line(error)}") from error
    if accelerator.gradient_accumulation_steps != 1:
        raise TrainingError(
            f"the launcher asks for gradient accumulation over {accelerator.gradient_accumulation_steps} steps: leave "
            "that out. --batch_size is the whole batch of a step, and --mini_batch_size computes it in less memory"
        )
    precision = accelerator.mixed_precision
    if precision not in PRECISIONS:
        raise TrainingError(f"mixed precision must be one of {', '.join(PRECISIONS)}, got {precision}")
    if precision == "fp16" and accelerator.device.type == "cpu":
        raise TrainingError("fp16 needs a GPU; on a CPU try --mixed_precision bf16 or no")
    # The first is about a setting whose new name Accelerate does not know yet, the second about the steps before one is
    # recorded.
    warnings.filterwarnings("ignore", message="`broadcast_buffers` is deprecated")
    warnings.filterwarnings("ignore", message=BEFORE_RECORDED)
    if accelerator.device.type == "cpu":
        # `accelerate launch` sets a single thread by default.
        torch.set_num_threads(args.threads or max(1, (os.cpu_count() or 1) // accelerator.num_processes))
    if tracker is None and args.tracker != "none":
        accelerator.print(f"Tracker {args.tracker} is not installed; the log is {args.output_dir}/log.jsonl")
    return accelerator


def identity(args: RunArguments, accelerator: Accelerator, data: str) -> dict[str, Any]:
    """What a resumed run must share with the one it goes on with: flags, data, precision, processes."""
    return {
        **{name: value for name, value in dataclasses.asdict(args).items() if name not in FREE},
        "data_fingerprint": data,
        "precision": accelerator.mixed_precision,
        "processes": accelerator.num_processes,
    }


def is_finished(args: RunArguments, wanted: dict[str, Any], start: Path) -> bool:
    """Whether this very run is finished already. Nothing is touched; where the run cannot go ahead, it is refused."""
    folder = Path(args.output_dir)
    nearest = next(path for path in (check_folder(folder), *folder.absolute().parents) if path.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise TrainingError(f"--output_dir {folder}: cannot be written: no permission in {nearest}")
    if folder.resolve() == start.resolve():
        raise TrainingError(f"--output_dir {folder} is the encoder that the run starts from; give another folder")
    if args.overwrite:
        return False
    run, checkpoints = Run(folder), Checkpoints(folder)
    steps = checkpoints.steps()
    problem = ""
    if run.finished:
        stored = read_json(folder / ARGUMENTS) if (folder / ARGUMENTS).is_file() else {}
        # The same model comes out of another precision or number of processes, within rounding.
        other = _difference(stored.get("identity") or run.arguments, wanted, but=("precision", "processes"))
        if other is None:
            return True
        problem = f"holds a finished run with {other}; give another folder, or --overwrite"
    elif not steps and not run.script and (folder / CONFIG).exists():
        problem = "holds a model that no run wrote; give another folder, or --overwrite"
    elif steps and not args.resume:
        problem = f"holds an unfinished run (checkpoint at step {steps[-1]}): --resume, --overwrite, or another folder"
    elif steps and (other := _difference(checkpoints.state(steps[-1])["identity"], wanted)):
        problem = f"has {other}; give the same flags and data to --resume, or another folder"
    if problem:
        raise TrainingError(f"--output_dir {folder} {problem}")
    return False


def open_run(script: str, args: RunArguments, accelerator: Accelerator, wanted: dict[str, Any], start: Any) -> None:
    """Make the folder ready: a new run deletes what an older one left, and writes its flags and versions."""
    folder = Path(args.output_dir)
    if accelerator.is_main_process:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            checkpoints = Checkpoints(folder, args.keep_last)
            steps = checkpoints.steps()
            if args.resume:
                print(f"Going on from {checkpoints.path(steps[-1])}" if steps else "No checkpoint: a new run starts")
            else:
                (folder / METRICS).unlink(missing_ok=True)
                if checkpoints.folder.exists():
                    shutil.rmtree(checkpoints.folder)
                (folder / "log.jsonl").unlink(missing_ok=True)
            checkpoints.folder.mkdir(exist_ok=True)
            for half_written in checkpoints.folder.glob(".*"):  # by a process that was killed
                shutil.rmtree(half_written, ignore_errors=True)
            delete_leftovers(folder / FILES)
            write_json(folder / ARGUMENTS, record(script, args, accelerator, wanted, start))
        except OSError as error:
            raise TrainingError(f"--output_dir {folder}: cannot be written: {error.strerror or error}") from None
        flags = {k: v for k, v in dataclasses.asdict(args).items() if isinstance(v, int | float | str)}
        names: dict[str, Any] = {"wandb": {"name": folder.name}, "trackio": {"name": folder.name}}
        accelerator.init_trackers("boolbert", config=flags, init_kwargs=names)
    accelerator.wait_for_everyone()


def save_run(args: RunArguments, model: DualEncoder, tokenizer: Any, metrics: dict[str, Any], **lengths: int) -> None:
    """Both encoders, for AutoModel and SentenceTransformer; then metrics.json, which says that the run is finished."""
    folder = Path(args.output_dir)
    if isinstance(model.query.config, BoolBertConfig):
        model.query.config.pooling = model.pooling
    settings: dict[str, Any] = {"pooling": model.pooling, "similarity": model.similarity, **lengths}
    try:
        with whole_files(folder) as aside, no_warnings():
            save_dual_encoder(aside, model.query, model.document, tokenizer, **settings)
        reached = {name: number(value) for name, value in metrics["dev"].items() if isinstance(value, float)}
        readme = render("run.md", metric=metrics["metric"], steps=metrics["best_step"], reached=reached)
        write_text(folder / "README.md", readme + "\n")
        write_json(folder / METRICS, {**metrics, "seed": args.seed, "arguments": dataclasses.asdict(args)})
    except WRITE_ERRORS as error:
        raise TrainingError(
            f"{folder}: the model cannot be saved ({reason(error)}); its checkpoints are whole: "
            "mend that, and repeat the command with --resume"
        ) from error


def fingerprint(*values: Any) -> str:
    """A hash of plain values, in their order.

    >>> fingerprint("a", 1) == fingerprint("a", 1) != fingerprint("a", 2)
    True
    """
    digest = hashlib.blake2b(digest_size=8)
    for value in values:
        digest.update(repr(value).encode() + b"\0")
    return digest.hexdigest()


def record(script: str, args: RunArguments, accelerator: Accelerator, wanted: dict[str, Any], start: Any) -> Any:
    """The run's record: its flags, what it starts from, the machine, the versions and the commit."""
    device = accelerator.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return {
        "script": script,
        "arguments": dataclasses.asdict(args),
        "identity": wanted,
        "data_source": data_source(args.data),
        "start": start,
        "machine": {"device": name, "processes": accelerator.num_processes, "precision": accelerator.mixed_precision},
        "versions": versions(),
        "git_commit": git_commit(),
    }


def data_source(data: str | None) -> str:
    """Where data that was read came from: a name that is no file or folder here is the Hub's.

    >>> data_source(None), data_source("sentences"), data_source("."), data_source("org/quest")
    ('embedded', 'embedded', 'local', 'hub')
    """
    if data is None or data in ("countries", "sentences"):
        return "embedded"
    return "local" if user_path(data).exists() else "hub"


def _difference(before: dict[str, Any], now: dict[str, Any], but: tuple[str, ...] = ()) -> str | None:
    """The first thing that differs, in words.

    >>> _difference({"seed": 0}, {"seed": 42})
    'seed=0, not 42'
    """
    for name, value in now.items():
        if name in before and name not in but and before[name] != value:
            return "other training data" if name == "data_fingerprint" else f"{name}={before[name]!r}, not {value!r}"
    return None


def versions() -> dict[str, str]:
    """The versions of what the run depends on."""
    own = {"boolbert": boolbert.__version__, "python": platform.python_version()}
    return own | {package: metadata.version(package) for package in PACKAGES}


def git_commit() -> str | None:
    """The commit of this checkout, marked where files were changed since; None outside of one."""
    root = Path(boolbert.__path__[0]).resolve()
    if not (root / ".git").exists():
        return None
    command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+changes"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
