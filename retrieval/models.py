"""Load an encoder by name, and look at a loaded one: the one place where models are opened.

load_encoder   a folder, a Hub id or the default encoder, as a SentenceTransformer
load_model     the same for search: without a name the default encoder, upgraded; and its note

`encoders.py` decides which files a name stands for.
"""

import copy
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boolbert.core.environment import log_level
from boolbert.core.errors import RetrievalError, first_line, in_brief
from boolbert.core.files import named_if_full, read_json
from boolbert.core.runs import MODULES, is_bool_bert

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from boolbert.modeling_boolbert import BoolBertModel
    from boolbert.retrieval.encoders import Encoder

PRECISIONS = ("float32", "float16", "bfloat16")
# Where the operators of a query come from: the caller, a classifier, or the cue words that are found.
OPERATOR_SOURCES = ("given", "learned", "cue")
UNTRAINED = (
    "NOTE: the Boolean parts of this model are UNTRAINED, so results are plain BERT's. Train it: `boolbert upgrade` "
    "or `boolbert demo`, or give --model."
)
_WRITERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
_PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}


@dataclass(frozen=True)
class SearchModel:
    """A dual encoder, the name that loads it again, and whether its Boolean parts have learned anything."""

    name: str | None  # None: the default encoder
    encoder: "SentenceTransformer"
    note: str
    trained: bool = True
    path: str | None = None  # its folder on this machine, where that is known

    @property
    def bert(self) -> Any | None:
        """The Bool-BERT of the query side; None for a plain encoder."""
        return bool_bert(self.encoder)


@contextmanager
def no_warnings() -> Iterator[None]:
    """Load or save a model without reports on its files, or on weights that are new: that they are new is intended."""
    from transformers.utils import logging as transformers_logging

    had_bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        with log_level(logging.ERROR, "sentence_transformers", "transformers", "httpx"):
            yield
    finally:
        if had_bars:
            transformers_logging.enable_progress_bar()


@no_warnings()
def load_encoder(
    name: str | None = None, *, device: str | None = None, precision: str = "float32", quiet: bool = False
) -> "SentenceTransformer":
    """The model of a folder or Hub id; without a name the default encoder, and a line that says which one it is."""
    import torch

    from boolbert.retrieval.encoders import check_fit, resolve_encoder
    from boolbert.sentence_boolbert import load_dual_encoder

    if precision not in PRECISIONS:
        raise RetrievalError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    check_device(device)
    encoder = resolve_encoder(name)
    if not quiet:
        print(encoder.note)
    folder = Path(encoder.path)
    check_is_encoder(folder, name or encoder.path)
    check_fit(folder)
    try:
        has_modules = (folder / MODULES).exists()
        model = load_dual_encoder(encoder.path, device=device) if has_modules else _plain(encoder, device)
    except Exception as error:  # whatever is wrong with its files: each of the libraries has its own errors
        raise RetrievalError(f"{name or encoder.path}: cannot be loaded as an encoder: {in_brief(error)}") from error
    check_tokenizers(model, name or encoder.path)
    model = model.to(getattr(torch, precision)).eval()
    check_encodes(model, name or encoder.path)
    return model


def load_model(name: str | Path | None = None, *, device: str | None = None) -> SearchModel:
    """The model of a folder or Hub id; without a name the default encoder, upgraded."""
    if name is None:
        return default_model(device)
    chosen = str(name)
    encoder = load_encoder(chosen, device=device, quiet=True)
    note = note_on(chosen, is_boolean=bool_bert(encoder) is not None)
    return SearchModel(chosen, encoder, note, path=chosen if Path(chosen).is_dir() else None)


def note_on(name: str, *, is_boolean: bool) -> str:
    """The line on a model that was named."""
    plain = "a plain encoder: its queries are taken apart into texts, so that they obey NOT and OR"
    return f"Model: {name}, {'Bool-BERT' if is_boolean else plain}"


def default_model(device: str | None = None) -> SearchModel:
    """The default encoder, upgraded, with the reader that comes with the package.

    It fits one encoder; with any other nothing is learned.
    """
    from boolbert.configuration_boolbert import UPGRADED
    from boolbert.retrieval.encoders import resolve_encoder

    default = resolve_encoder()
    source = load_encoder(default.path, device=device, quiet=True)
    encoder = with_fresh_attention(source, share=True, query_length=None, **UPGRADED)
    if not take_shipped(bool_bert(encoder)):
        return SearchModel(None, encoder, f"{default.note}\n{UNTRAINED}", trained=False, path=default.path)
    return SearchModel(None, encoder, upgraded_note(default), path=default.path)


def upgraded_note(default: "Encoder") -> str:
    """The line on the default encoder with the weights that come with the package."""
    return f"{default.note}, upgraded to obey NOT"


def default_bert() -> "BoolBertModel":
    """The Bool-BERT of `default_model` without sentence-transformers, which takes as long to import as to use."""
    import torch

    from boolbert.configuration_boolbert import UPGRADED
    from boolbert.modeling_boolbert import BoolBertModel
    from boolbert.retrieval.encoders import resolve_encoder

    default = resolve_encoder()
    with no_warnings(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # as `with_fresh_attention`
        bert = BoolBertModel.from_pretrained(default.path, pooling=default.pooling, **UPGRADED).eval()
    take_shipped(bert)
    return bert


def take_shipped(bert: Any) -> bool:
    """Give a Bool-BERT the reader that comes with the package; False where it belongs to another encoder."""
    from safetensors import safe_open

    from boolbert.retrieval.encoders import QUERY_READER, embeddings_mark

    own = bert.reader.state_dict()
    with safe_open(QUERY_READER, framework="pt") as stored:
        if stored.metadata()["encoder"] != embeddings_mark(bert.get_input_embeddings().weight.detach().cpu().numpy()):
            return False
        weights = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118, safetensors has no other
    if {name: value.shape for name, value in weights.items()} != {name: value.shape for name, value in own.items()}:
        return False
    bert.reader.load_state_dict(weights)
    return True


def with_fresh_attention(model: "SentenceTransformer", seed: int = 0, **options: Any) -> "SentenceTransformer":
    """The same document side, and a query side with new Boolean-aware attention, drawn from the seed.

    `options` are those of `BoolBertSentenceTransformer.from_sentence_transformer`.
    """
    import torch

    from boolbert.sentence_boolbert import BoolBertSentenceTransformer

    with no_warnings(), torch.random.fork_rng(), named_if_full(tempfile.gettempdir()):
        torch.manual_seed(seed)
        fresh = BoolBertSentenceTransformer.from_sentence_transformer(model, device=str(model.device), **options)
    return fresh.to(model.dtype).eval()


def with_gate(model: "SentenceTransformer", gate: str | None) -> "SentenceTransformer":
    """A model whose Bool-BERT decides by this gate where no operators are given. The model that is passed stays as it
    is: where its own gate is another one, the result is a second model on the same weights."""
    bert = bool_bert(model)
    if gate not in (None, *OPERATOR_SOURCES):
        raise RetrievalError(f"the gate must be one of {', '.join(OPERATOR_SOURCES)}, got {gate!r}")
    if bert is None or gate in (None, "given", bert.config.gate):
        return model
    twin = twin_of(model)
    bool_bert(twin).config.gate = gate  # type: ignore[union-attr]
    return twin


def twin_of(model: "SentenceTransformer") -> "SentenceTransformer":
    """A second model on the same weights, whose settings can be changed without changing those of the first."""
    tensors = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})  # deepcopy keeps what it finds here


def check_is_encoder(folder: Path, name: str) -> None:
    """Raise for a folder with a language model of another kind: one that writes text instead of vectors."""
    path = folder / "config.json"
    if (folder / MODULES).exists() or not path.exists():
        return
    config: dict[str, Any] = read_json(path, RetrievalError)
    writers = [kind for kind in config.get("architectures") or [] if kind.endswith(_WRITERS)]
    if writers or config.get("is_decoder") or config.get("is_encoder_decoder"):
        kind = writers[0] if writers else f"a {config.get('model_type')} decoder"
        raise RetrievalError(f"{name}: is no encoder but {kind}; give a BERT-like or sentence-transformers model")


def check_device(device: str | None) -> None:
    """Raise where there is no such device; None is the best one there is."""
    import torch

    if device is None:
        return
    try:
        torch.ones(1, device=device).item()
    except Exception as error:  # an unknown name, a torch without CUDA, no GPU, no driver: an error type for each
        raise RetrievalError(f"device {device!r} cannot be used here: {first_line(error)[:200]}; try cpu") from None


def check_tokenizers(model: "SentenceTransformer", name: str) -> None:
    """Raise where a tokenizer knows no words, so that all texts would be alike, or more of them than its model."""
    for module in model.modules():
        tokenizer, bert = getattr(module, "tokenizer", None), getattr(module, "model", None)
        if tokenizer is None or bert is None:
            continue
        words = tokenizer.get_vocab()
        if set(words) <= set(tokenizer.all_special_tokens):
            raise RetrievalError(f"{name}: its tokenizer knows no words; is tokenizer.json the right one?")
        embeddings = bert.get_input_embeddings().num_embeddings
        if max(words.values()) >= embeddings:
            raise RetrievalError(
                f"{name}: its tokenizer has {max(words.values()) + 1:,} tokens, its model {embeddings:,}: they do not "
                "belong together"
            )


def check_encodes(model: "SentenceTransformer", name: str) -> None:
    """Raise where the parts of a model do not fit together, which shows when a text goes through them."""
    for encode in (model.encode_query, model.encode_document):
        try:
            encode(["a"], show_progress_bar=False)
        except Exception as error:
            raise RetrievalError(f"{name}: loads, but cannot encode a text: {in_brief(error)}") from error


def bool_bert(model: "SentenceTransformer") -> Any | None:
    """The Bool-BERT inside a model's query side, if there is one."""
    from transformers import PreTrainedModel

    from boolbert.configuration_boolbert import BoolBertConfig

    parts = (module for part in side_modules(model, "query") for module in part.modules())
    berts = (part for part in parts if isinstance(part, PreTrainedModel))
    return next((bert for bert in berts if bert.config.model_type == BoolBertConfig.model_type), None)


def prompt_of(model: "SentenceTransformer", task: str) -> str | None:
    """The prompt that `encode_query` and `encode_document` put before a text."""
    prompts = getattr(model, "prompts", None) or {}
    name = next((name for name in _PROMPTS[task] if name in prompts), model.default_prompt_name)
    return prompts.get(name) or None


def side_modules(model: "SentenceTransformer", task: str) -> list[Any]:
    """The modules that a query or a document passes through."""
    first, *rest = model.children()
    routes = getattr(first, "sub_modules", None)
    return [*(routes[task] if routes is not None else [first]), *rest]


def query_parameters(model: "SentenceTransformer") -> int:
    """The number of weights of the query side."""
    weights = {id(weight): weight.numel() for part in side_modules(model, "query") for weight in part.parameters()}
    return sum(weights.values())


def is_cosine(model: "SentenceTransformer") -> bool:
    """Whether vectors have to be normalised before they are compared by a dot product."""
    similarity = str(model.similarity_fn_name)
    if similarity not in ("cosine", "dot"):
        raise RetrievalError(f"the model compares vectors by {similarity}; only cosine and dot can be searched")
    return similarity == "cosine"


def _plain(encoder: "Encoder", device: str | None) -> "SentenceTransformer":
    """An encoder without sentence-transformers' files, pooled as `encoders.py` found out."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    from boolbert.sentence_boolbert import BoolBertPooling, BoolBertSentenceTransformer, BoolBertTransformer

    boolean = is_bool_bert(encoder.path)
    first = (BoolBertTransformer if boolean else Transformer)(encoder.path)
    pooling = (BoolBertPooling if boolean else Pooling)(first.get_embedding_dimension(), pooling_mode=encoder.pooling)
    modules: list[Any] = [first, pooling]
    if encoder.similarity == "cosine":
        modules.append(Normalize())
    kind = BoolBertSentenceTransformer if boolean else SentenceTransformer
    return kind(modules=modules, device=device, similarity_fn_name=encoder.similarity)
