"""The flags that all stages share, and how they are read: defaults, a recipe, a file, the command line."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from transformers import HfArgumentParser

from boolbert.errors import TrainingError

RECIPES = Path(__file__).parent / "recipes"
# Flags that do not change what a run computes: a resumed run may have others.
FREE = {"output_dir", "resume", "overwrite", "keep_last", "save_every", "log_every", "tracker", "threads"}


def flag(default: Any, text: str, **options: Any) -> Any:
    """A dataclass field that is a flag with a help text."""
    return field(default=default, metadata={"help": text, **options})


@dataclass
class RunArguments:
    """What every stage can be told."""

    data: str | None = flag(None, "data folder or Hub data set id; the embedded data if not given")
    encoder: str | None = flag(None, "model folder or Hub id to start from; all-MiniLM-L6-v2 if not given")
    output_dir: str = flag("runs/run", "folder for the model, its checkpoints and logs")
    epochs: int = flag(40, "passes over the training data")
    batch_size: int = flag(32, "rows of one optimizer step, over all processes together")
    learning_rate: float = flag(5e-5, "of AdamW; linear warm-up, then linear decay to 0")
    boolean_learning_rate: float | None = flag(None, "for BoolAttn's own parameters; as learning_rate if not given")
    weight_decay: float = flag(0.01, "of AdamW; biases, norms and other vectors have none")
    warmup: float = flag(0.05, "share of all steps in which the learning rate rises")
    max_grad_norm: float = flag(1.0, "gradients are clipped to this norm; 0 for never")
    seed: int = flag(0, "of everything random: the same seed gives the same run")
    baseline: bool = flag(False, "train a plain BERT, everything else the same")
    gradient_accumulation_steps: int = flag(1, "parts in which a batch is computed; loss and gradients stay the same")
    gradient_checkpointing: bool = flag(False, "compute activations twice instead of keeping them")
    mixed_precision: str | None = flag(None, "no, bf16 or fp16; as `accelerate launch` says if not given")
    compile: bool = flag(False, "torch.compile the encoders")
    threads: int | None = flag(None, "CPU threads of each process; all cores shared out if not given")
    save_every: int | None = flag(None, "steps between checkpoints; once an epoch if not given")
    keep_last: int = flag(2, "how many checkpoints to keep")
    resume: bool = flag(False, "go on from the last checkpoint in output_dir")
    overwrite: bool = flag(False, "start over where output_dir holds an unfinished run")
    log_every: int = flag(10, "steps between log lines")
    tracker: str = flag(
        "tensorboard", "an Accelerate tracker (tensorboard, wandb, ...), or none; log.jsonl is always written"
    )

    def __post_init__(self) -> None:
        at_least_one = ("epochs", "batch_size", "gradient_accumulation_steps", "keep_last", "log_every")
        for name in (*at_least_one, *(name for name in ("save_every", "threads") if getattr(self, name) is not None)):
            self.require(name, getattr(self, name) >= 1, "at least 1")
        for name in ("weight_decay", "max_grad_norm", "seed"):
            self.require(name, getattr(self, name) >= 0, "at least 0")
        self.require("learning_rate", self.learning_rate > 0, "above 0")
        if self.boolean_learning_rate is not None:
            self.require("boolean_learning_rate", self.boolean_learning_rate > 0, "above 0")
        self.require("warmup", 0 <= self.warmup <= 1, "a share from 0 to 1")
        self.require("mixed_precision", self.mixed_precision in (None, "no", "bf16", "fp16"), "no, bf16 or fp16")

    def require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise TrainingError(f"--{name} must be {expected}, got {getattr(self, name)!r}")

    def identity(self) -> dict[str, Any]:
        """The values that a resumed run must share with the one it goes on with."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in FREE}


Arguments = TypeVar("Arguments", bound=RunArguments)


def parse_arguments(
    kind: type[Arguments], description: str | None, arguments: Sequence[str], embedded: str | None = None
) -> Arguments:
    """Flags, after an optional JSON or YAML file of them: `quest.py recipe.yaml --seed 42`.

    `embedded` is the recipe that holds where no --data is given. A flag wins over the file, the file over the recipe.
    """
    options: dict[str, Any] = {"dataclass_types": kind, "description": description, "allow_abbrev": False}
    parser = HfArgumentParser(**options)
    words = list(arguments)
    given: dict[str, Any] = {}
    if words and words[0].endswith((".json", ".yaml", ".yml")):
        given = read_flags(Path(words.pop(0)), kind)
    parser.set_defaults(**given)
    known, unknown = parser.parse_known_args(words)
    if unknown:
        raise TrainingError(f"unknown argument {unknown[0]!r}; --help lists them all")
    if embedded is not None and known.data is None:
        parser.set_defaults(**{**read_flags(RECIPES / embedded, kind), **given})
        known = parser.parse_args(words)
    return kind(**vars(known))


def read_flags(path: Path, kind: type[RunArguments]) -> dict[str, Any]:
    """The flags of a JSON or YAML file, checked against the ones that there are."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read: {error.strerror}") from None
    if path.suffix == ".json":
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise TrainingError(f"{path}:{error.lineno}: broken JSON: {error.msg}") from None
    else:
        import yaml

        try:
            values = yaml.safe_load(text) or {}
        except yaml.YAMLError as error:
            raise TrainingError(f"{path}: broken YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise TrainingError(f"{path}: must hold flags and their values, got {type(values).__name__}")
    names = {item.name: item for item in fields(kind)}
    for name, value in values.items():
        if name not in names:
            raise TrainingError(f"{path}: unknown flag {name!r}; there are {', '.join(sorted(names))}")
        if isinstance(value, list | dict):
            raise TrainingError(f"{path}: field {name!r} must be one value, got {value!r}")
        # YAML reads 1e-5 as a text, and any other text for a number is a mistake that argparse names.
        values[name] = str(value) if isinstance(value, float) else value
    return values
