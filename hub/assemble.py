"""Copy what belongs to a published model out of a run's folder, and nothing else."""

import re
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

from ..core.errors import HubError, shorten
from ..core.files import read_json, read_object
from ..core.runs import Run

ROOT = Path(__file__).resolve().parent.parent
# What `save_dual_encoder` writes; checkpoints, logs and optimiser states of the run stay behind.
ENCODER = ("config.json", "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json")
OPTIONAL = ("special_tokens_map.json", "added_tokens.json", "vocab.txt")
WEIGHTS = ("model*.safetensors", "model.safetensors.index.json")
PICKLED = ("pytorch_model*.bin", "*.ckpt", "*.pkl", "*.pickle")
SETTINGS = ("modules.json", "router_config.json", "config_sentence_transformers.json")
CODE = tuple(f"{name}_boolbert.py" for name in ("configuration", "reading", "composing", "modeling", "sentence"))
# A module's class is imported by whoever loads the model, so only these may be named.
MODULE_TYPE = re.compile(r"sentence_transformers(\.\w+)+|sentence_boolbert\.BoolBert(Transformer|Pooling)")
# The name of a folder inside the run: no "..", no leading "/", no backslash.
FOLDER_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)*")


def assemble(run: Path, folder: Path) -> list[Path]:
    """Fill `folder` with a run's model: weights, tokenizers, settings, the package's code and its licence."""
    if not run.is_dir():
        raise HubError(f"{run}: no such folder; give the output_dir of a finished run")
    for name in SETTINGS:
        if not (run / name).exists():
            raise HubError(f"{run}: {name} is missing; give a folder written by training or by save_dual_encoder")
    if Run(run).script and not Run(run).finished:
        raise HubError(f"{run}: is not finished; its files may be those of an earlier run. Go on with --resume")
    for encoder in encoder_folders(run):
        _copy_encoder(run, encoder, folder)
    for module in module_folders(run):
        _copy_module(run, module, folder)
    for name in SETTINGS:
        _copy(run, name, folder)
    if Run(run).is_bool_bert:
        for name in CODE:
            shutil.copyfile(ROOT / name, folder / name)
    shutil.copyfile(licence(), folder / "LICENSE")
    return published_files(folder)


def encoder_folders(run: Path) -> list[str]:
    """The folders of the encoders, as router_config.json names them; "." is the run's own."""
    file = run / "router_config.json"
    types = read_object(file, HubError).get("types")
    if not isinstance(types, dict) or not types:
        raise HubError(f"{file}: field 'types' must be an object of folders with their classes, got {shorten(types)}")
    for name, kind in types.items():
        _check_type(file, kind)
        if name != ".":
            _check_folder(file, name)
    return list(types)


def module_folders(run: Path) -> list[str]:
    """The folders of the modules behind the encoders, such as the pooling's, as modules.json names them."""
    file = run / "modules.json"
    modules = read_json(file, HubError)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise HubError(f"{file}: must be a list of objects with the fields path and type, got {shorten(modules)}")
    folders = []
    for module in modules:
        _check_type(file, module.get("type"))
        if module.get("path") != "":  # the Router has no folder of its own
            folders.append(_check_folder(file, module.get("path")))
    return [folder for folder in folders if (run / folder).is_dir()]


def licence() -> Path:
    """The licence's file: of the checkout, or of the installed package."""
    if (ROOT / "LICENSE").exists():
        return ROOT / "LICENSE"
    for file in metadata.files("boolbert") or []:
        if file.name == "LICENSE":
            return Path(str(file.locate()))
    raise HubError(f"{ROOT / 'LICENSE'}: not found; publish from a checkout of the project")


def published_files(folder: Path) -> list[Path]:
    """Every file of a folder in a fixed order, links to files and to folders among them."""
    return sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())


def _check_type(file: Path, kind: Any) -> None:
    if not isinstance(kind, str) or not MODULE_TYPE.fullmatch(kind):
        raise HubError(f"{file}: a module's type must be a class of sentence_transformers, got {shorten(kind)}")


def _check_folder(file: Path, name: Any) -> str:
    if not isinstance(name, str) or not FOLDER_NAME.fullmatch(name):
        raise HubError(f"{file}: a module's folder must lie in the run, such as 1_Pooling, got {shorten(name)}")
    return name


def _copy_encoder(run: Path, name: str, folder: Path) -> None:
    source = run / name
    pickled = [file.name for pattern in PICKLED for file in source.glob(pattern)]
    if pickled:
        raise HubError(f"{source / pickled[0]}: pickled weights are not published; save the model as safetensors")
    weights = [file.name for pattern in WEIGHTS for file in source.glob(pattern)]
    if not weights:
        raise HubError(f"{source}: model.safetensors is missing")
    missing = [file for file in ENCODER if not (source / file).exists()]
    if missing:
        raise HubError(f"{source}: {missing[0]} is missing")
    optional = [file for file in OPTIONAL if (source / file).exists()]
    for file in (*weights, *ENCODER, *optional):
        _copy(run, f"{name}/{file}", folder)


def _copy_module(run: Path, name: str, folder: Path) -> None:
    for file in sorted((run / name).iterdir()):
        if file.suffix not in (".json", ".safetensors"):
            raise HubError(f"{file}: only .json and .safetensors are published from a module's folder")
        _copy(run, f"{name}/{file.name}", folder)


def _copy(run: Path, name: str, folder: Path) -> None:
    """Copy one file of the run. A link is refused: it could bring in any file of the machine."""
    source = run / name
    for path in (source, *source.parents):
        if path == run:
            break
        if path.is_symlink():
            raise HubError(f"{path}: is a link; publish the file itself")
    if not source.is_file():
        raise HubError(f"{source}: is not a file")
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
