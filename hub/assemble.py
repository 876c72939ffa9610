"""Copy what belongs to a published model out of a run's folder, and nothing else."""

import json
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

from ..errors import HubError

ROOT = Path(__file__).resolve().parent.parent
# What `save_dual_encoder` writes; checkpoints, logs and optimiser states of the run stay behind.
ENCODER = ("config.json", "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json")
OPTIONAL = ("special_tokens_map.json", "added_tokens.json", "vocab.txt")
WEIGHTS = ("model*.safetensors", "model.safetensors.index.json")
PICKLED = ("pytorch_model*.bin", "*.ckpt", "*.pkl", "*.pickle")
SETTINGS = ("modules.json", "router_config.json", "config_sentence_transformers.json")
CODE = ("configuration_boolbert.py", "modeling_boolbert.py", "sentence_boolbert.py")


def assemble(run: Path, folder: Path) -> list[Path]:
    """Fill `folder` with a run's model: weights, tokenizers, settings, the package's code and its licence."""
    if not run.is_dir():
        raise HubError(f"{run}: no such folder; give the output_dir of a finished run")
    for name in SETTINGS:
        if not (run / name).exists():
            raise HubError(f"{run}: {name} is missing; give a folder written by training or by save_dual_encoder")
    router = read_json(run / "router_config.json")
    for encoder in router["types"]:
        _copy_encoder(run / encoder, folder / encoder)
    for module in read_json(run / "modules.json"):
        if module["path"] and (run / module["path"]).is_dir():
            _copy_module(run / module["path"], folder / module["path"])
    for name in SETTINGS:
        shutil.copyfile(run / name, folder / name)
    if is_boolean(run):
        for name in CODE:
            shutil.copyfile(ROOT / name, folder / name)
    shutil.copyfile(licence(), folder / "LICENSE")
    return published_files(folder)


def licence() -> Path:
    """The licence's file: of the checkout, or of the installed package."""
    if (ROOT / "LICENSE").exists():
        return ROOT / "LICENSE"
    for file in metadata.files("boolbert") or []:
        if file.name == "LICENSE":
            return Path(str(file.locate()))
    raise HubError(f"{ROOT / 'LICENSE'}: not found; publish from a checkout of the project")


def is_boolean(run: Path) -> bool:
    """Whether the query encoder is a Bool-BERT, or the plain baseline."""
    return read_json(run / "config.json").get("model_type") == "boolbert"


def published_files(folder: Path) -> list[Path]:
    """Every file of a folder, in a fixed order."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise HubError(f"{file}: not found") from None
    except ValueError as error:
        raise HubError(f"{file}: not valid JSON: {error}") from None


def _copy_encoder(source: Path, target: Path) -> None:
    pickled = [file.name for pattern in PICKLED for file in source.glob(pattern)]
    if pickled:
        raise HubError(f"{source / pickled[0]}: pickled weights are not published; save the model as safetensors")
    weights = [file for pattern in WEIGHTS for file in source.glob(pattern)]
    if not weights:
        raise HubError(f"{source}: model.safetensors is missing")
    missing = [name for name in ENCODER if not (source / name).exists()]
    if missing:
        raise HubError(f"{source}: {missing[0]} is missing")
    target.mkdir(parents=True, exist_ok=True)
    optional = [source / name for name in OPTIONAL if (source / name).exists()]
    for file in (*weights, *(source / name for name in ENCODER), *optional):
        shutil.copyfile(file, target / file.name)


def _copy_module(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(source.iterdir()):
        if file.suffix in (".json", ".safetensors"):
            shutil.copyfile(file, target / file.name)
        else:
            raise HubError(f"{file}: only .json and .safetensors are published from a module's folder")
