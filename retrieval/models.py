"""Load what is to be evaluated: a run folder, any sentence-transformers model, or any BERT-like encoder."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boolbert.errors import EvaluationError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PRECISIONS = ("float32", "float16", "bfloat16")
_WRITERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
_PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}


def load_encoder(
    name: str | None = None, *, device: str | None = None, precision: str = "float32", quiet: bool = False
) -> "SentenceTransformer":
    """The model of a folder or Hub id; without a name the default encoder, and a line that says which one it is."""
    import torch
    import transformers

    from boolbert.retrieval.encoders import resolve_encoder
    from boolbert.sentence_boolbert import load_dual_encoder

    if precision not in PRECISIONS:
        raise EvaluationError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    transformers.logging.disable_progress_bar()
    encoder = resolve_encoder(name)
    if not quiet:
        print(encoder.note)
    check_is_encoder(Path(encoder.path), name or encoder.path)
    try:
        if (Path(encoder.path) / "modules.json").exists():
            model = load_dual_encoder(encoder.path, device=device)
        else:
            model = _plain(encoder, device)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise EvaluationError(f"{name}: cannot be loaded as an encoder: {' '.join(str(error).split())[:300]}") from None
    return model.to(getattr(torch, precision)).eval()


def check_is_encoder(folder: Path, name: str) -> None:
    """Raise for a folder with a language model of another kind: one that writes text instead of vectors."""
    if (folder / "modules.json").exists():
        return
    path = folder / "config.json"
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    architectures = config.get("architectures") or []
    writes = [
        kind for kind in architectures if kind.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration"))
    ]
    if writes or config.get("is_decoder") or config.get("is_encoder_decoder"):
        what = writes[0] if writes else f"a {config.get('model_type')} decoder"
        raise EvaluationError(f"{name}: is no encoder but {what}; give a BERT-like or sentence-transformers model")


def _plain(encoder: Any, device: str | None) -> "SentenceTransformer":
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    from boolbert.configuration_boolbert import BoolBertConfig
    from boolbert.sentence_boolbert import BoolBertSentenceTransformer, BoolBertTransformer

    config = json.loads((Path(encoder.path) / "config.json").read_text(encoding="utf-8"))
    boolean = config.get("model_type") == BoolBertConfig.model_type
    first = (BoolBertTransformer if boolean else Transformer)(encoder.path)
    modules: list[Any] = [first, Pooling(first.get_embedding_dimension(), pooling_mode=encoder.pooling)]
    if encoder.similarity == "cosine":
        modules.append(Normalize())
    kind = BoolBertSentenceTransformer if boolean else SentenceTransformer
    return kind(modules=modules, device=device, similarity_fn_name=encoder.similarity)


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
    """How many weights answer a query."""
    weights = {id(weight): weight.numel() for part in side_modules(model, "query") for weight in part.parameters()}
    return sum(weights.values())


def bool_bert(model: "SentenceTransformer") -> Any | None:
    """The Bool-BERT inside a model's query side, if there is one."""
    for part in side_modules(model, "query"):
        for module in part.modules():
            if hasattr(module, "cue_predictor") and hasattr(module, "gate"):
                return module
    return None


def is_cosine(model: "SentenceTransformer") -> bool:
    """Whether vectors have to be normalised before they are compared by a dot product."""
    similarity = str(model.similarity_fn_name)
    if similarity not in ("cosine", "dot"):
        raise EvaluationError(f"the model compares vectors by {similarity}; only cosine and dot can be searched")
    return similarity == "cosine"
