"""The flags that all stages share, and how they are read: defaults, a recipe, a file, the command line."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from transformers import HfArgumentParser

from boolbert.core.arguments import flag
from boolbert.core.errors import TrainingError
from boolbert.core.files import read_json
from boolbert.train.optimizer import SCHEDULES

RECIPES = Path(__file__).parent / "recipes"
PRECISIONS = ("no", "bf16", "fp16")
# Flags that change neither the data nor the mathematics of a run: a resumed run may have others. The precision is
# compared as it really is, whether a flag or the launcher asked for it.
FREE = {
    *("output_dir", "resume", "overwrite", "allow_random", "keep_last", "save_every", "log_every", "tracker"),
    *("threads", "mini_batch_size", "gradient_checkpointing", "compile", "graphs", "mixed_precision"),
}


@dataclass
class RunArguments:
    """The flags of every stage."""

    data: str | None = flag(None, "data folder or Hub data set id; the embedded data if not given")
    encoder: str | None = flag(None, "model folder or Hub id to start from; all-MiniLM-L6-v2 if not given")
    output_dir: str = flag("runs/run", "folder for the model, its checkpoints and logs")
    epochs: int = flag(40, "passes over the training data")
    max_steps: int | None = flag(None, "stop after this many steps, whatever the epochs")
    batch_size: int = flag(32, "rows of one optimizer step, over all processes together")
    mini_batch_size: int | None = flag(
        None, "texts that are computed at once; a batch of more needs less memory then, and has the same gradients"
    )
    learning_rate: float = flag(5e-5, "of AdamW, after the warm-up")
    boolean_learning_rate: float | None = flag(None, "for BoolAttn's own parameters; as learning_rate if not given")
    schedule: str = flag("linear", f"how the learning rate falls after the warm-up: {', '.join(SCHEDULES)}")
    weight_decay: float = flag(0.01, "of AdamW; biases, norms and other vectors have none")
    warmup: float = flag(0.05, "share of all steps in which the learning rate rises")
    max_grad_norm: float = flag(1.0, "gradients are clipped to this norm; 0 for never")
    seed: int = flag(0, "of everything random: the same seed gives the same run")
    baseline: bool = flag(False, "train a plain BERT, everything else the same")
    allow_random: bool = flag(False, "start even where weights of the encoder are missing, from random ones")
    gradient_checkpointing: bool = flag(False, "compute activations twice instead of keeping them")
    mixed_precision: str | None = flag(None, "no, bf16 or fp16; as `accelerate launch` says if not given")
    compile: bool = flag(False, "torch.compile the encoders' layers")
    graphs: bool = flag(True, "on one GPU: record a training step once, and start it as one CUDA graph from then on")
    threads: int | None = flag(None, "CPU threads of each process; all cores shared out if not given")
    eval_every: int = flag(1, "epochs between evaluations")
    eval_steps: int | None = flag(None, "steps between evaluations, instead of epochs")
    eval_first: bool = flag(False, "evaluate before the first step as well")
    patience: int | None = flag(None, "stop after this many evaluations in a row that are not better")
    save_every: int | None = flag(None, "steps between checkpoints; once an epoch if not given")
    keep_last: int = flag(2, "how many checkpoints to keep")
    resume: bool = flag(False, "go on from the last checkpoint in output_dir")
    overwrite: bool = flag(False, "start over where output_dir holds a run")
    log_every: int = flag(10, "steps between log lines")
    tracker: str = flag(
        "tensorboard", "an Accelerate tracker (tensorboard, wandb, ...), or none; log.jsonl is always written"
    )

    def __post_init__(self) -> None:
        self.require_least(1, "epochs", "batch_size", "keep_last", "log_every", "eval_every", "max_steps")
        self.require_least(1, "mini_batch_size", "save_every", "threads", "eval_steps", "patience")
        self.require_least(0, "weight_decay", "max_grad_norm", "seed")
        self.require_above_0("learning_rate", "boolean_learning_rate")
        self.require_one_of("schedule", SCHEDULES)
        self.require_one_of("mixed_precision", PRECISIONS)
        self.require("warmup", 0 <= self.warmup <= 1, "a share from 0 to 1")
        self.require("overwrite", not (self.overwrite and self.resume), "left out: --resume goes on, it starts over")

    def require(self, name: str, holds: bool, expected: str) -> None:
        """A flag that is not given, None, holds everywhere."""
        if not holds and getattr(self, name) is not None:
            raise TrainingError(f"--{name} must be {expected}, got {getattr(self, name)!r}")

    def require_least(self, least: int, *names: str) -> None:
        for name in names:
            self.require(name, (getattr(self, name) or 0) >= least, f"at least {least}")

    def require_above_0(self, *names: str) -> None:
        for name in names:
            self.require(name, (getattr(self, name) or 0) > 0, "above 0")

    def require_one_of(self, name: str, choices: Sequence[str]) -> None:
        self.require(name, getattr(self, name) in choices, f"one of {', '.join(choices)}")


Arguments = TypeVar("Arguments", bound=RunArguments)


def parse_arguments(
    kind: type[Arguments], description: str | None, arguments: Sequence[str], embedded: str | None = None
) -> Arguments:
    """Flags, after an optional JSON or YAML file of them: `quest.py recipe.yaml --seed 42`. A flag wins over the file,
    the file over `embedded`, the recipe that holds where there is no --data."""
    options: dict[str, Any] = {"dataclass_types": kind, "description": description, "allow_abbrev": False}
    parser = HfArgumentParser(**options)
    words = list(arguments)
    from_file: dict[str, Any] = {}
    if words and words[0].endswith((".json", ".yaml", ".yml")):
        from_file = read_flags(Path(words.pop(0)), kind)
    parser.set_defaults(**from_file)
    known, unknown = parser.parse_known_args(words)
    if unknown:
        raise TrainingError(f"unknown argument {unknown[0]!r}; --help lists them all")
    if embedded is not None and known.data is None:
        parser.set_defaults(**{**read_flags(RECIPES / embedded, kind), **from_file})
        known = parser.parse_args(words)
    return kind(**vars(known))


def read_flags(path: Path, kind: type[RunArguments]) -> dict[str, Any]:
    """The flags of a JSON or YAML file, checked against the ones that there are."""
    import yaml

    try:
        values = read_json(path, TrainingError) if path.suffix == ".json" else yaml.safe_load(path.read_bytes()) or {}
    except (yaml.YAMLError, RecursionError) as error:
        raise TrainingError(f"{path}: broken YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise TrainingError(f"{path}: must hold flags and their values, got {type(values).__name__}")
    names = {item.name for item in fields(kind)}
    for name, value in values.items():
        if name not in names:
            raise TrainingError(f"{path}: unknown flag {name!r}; there are {', '.join(sorted(names))}")
        if isinstance(value, list | dict):
            raise TrainingError(f"{path}: field {name!r} must be one value, got {value!r}")
        # YAML reads 1e-5 as a text, and any other text for a number is a mistake that argparse names.
        values[name] = str(value) if isinstance(value, float) else value
    return values
