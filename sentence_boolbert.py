# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Bool-BERT in sentence-transformers: queries through Bool-BERT, documents through a plain BERT.

    model = SentenceTransformer(folder_or_repository, trust_remote_code=True)
    queries = model.encode_query(["films that are not westerns"], operators=[["not"]])  # operators may be left out
    documents = model.encode_document(["A western of 1952.", "A comedy of 1952."])

One folder has two doors: `AutoModel` loads the query encoder from its root, `SentenceTransformer` loads both.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Router, Transformer
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertModel, PreTrainedModel, PreTrainedTokenizerBase

from .configuration_boolbert import OPERATORS, BoolBertConfig
from .modeling_boolbert import BoolBertModel

# Where the document encoder lies; the query encoder lies at the root, which Router calls ".".
DOCUMENT_FOLDER = "document_encoder"
REQUIREMENTS = {"sentence-transformers": ">=6.0", "transformers": ">=5.14", "torch": ">=2.9"}
# From this version on Router loads a model that serves both routes once, and tells it which route it serves.
REQUIREMENTS_SHARED = {**REQUIREMENTS, "sentence-transformers": ">=6.2"}
# Stands in a batch for "the model's own gate decides".
UNKNOWN = -1


class BoolBertTransformer(Transformer):
    """sentence-transformers' Transformer, whose inputs may be {"text": ..., "operators": [...]} instead of a string.

    Operators travel inside the inputs, because `encode` sorts, splits and distributes these, and nothing else.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        AutoConfig.register(BoolBertConfig.model_type, BoolBertConfig, exist_ok=True)
        AutoModel.register(BoolBertConfig, BoolBertModel, exist_ok=True)
        # Sentences packed into one row without padding would share their cues.
        super().__init__(*args, **{**kwargs, "unpad_inputs": False})

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: Any, **kwargs: Any) -> "BoolBertTransformer":
        return super().load(model_name_or_path, "" if subfolder == "." else subfolder, *args, **kwargs)

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, *args: Any, **kwargs: Any) -> dict[str, Any]:
        texts = [given["text"] if isinstance(given, dict) else given for given in inputs]
        rows = [operator_row(given.get("operators")) if isinstance(given, dict) else None for given in inputs]
        features = super().preprocess(texts, prompt, *args, **kwargs)
        if any(row is not None for row in rows):
            features["operators"] = torch.tensor([row or [UNKNOWN] * len(OPERATORS) for row in rows])
        return features

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        operators = features.get("operators")
        if operators is not None and (operators == UNKNOWN).any():
            inputs = {
                name: features[name] for name in ("input_ids", "attention_mask", "token_type_ids") if name in features
            }
            with torch.no_grad():
                predicted = self.model(**inputs).operators
            features["operators"] = torch.where(operators == UNKNOWN, predicted, operators)
        return super().forward(features, **kwargs)

    def on_model_ready(self, model: nn.Module) -> None:
        # A model loaded as a plain SentenceTransformer gets the `operators` argument and the way of saving too.
        if type(model) is SentenceTransformer:
            model.__class__ = BoolBertSentenceTransformer


class BoolBertSentenceTransformer(SentenceTransformer):
    """A SentenceTransformer with a "query" and a "document" route, saved so that both doors open."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # A repository names the class by its file; where this code is at hand no `trust_remote_code` is needed.
        self._module_classes = {**self._module_classes, QUERY_MODULE: BoolBertTransformer}
        super().__init__(*args, **kwargs)

    @classmethod
    def from_encoders(
        cls,
        query: str | PreTrainedModel,
        document: str | PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        pooling: Literal["cls", "mean"] = "cls",
        similarity: Literal["dot", "cosine"] = "dot",
        query_length: int = 64,
        document_length: int = 256,
        **kwargs: Any,
    ) -> "BoolBertSentenceTransformer":
        """A dual encoder of any two BERTs of one size; a query encoder given by name becomes a Bool-BERT."""
        named = next((encoder for encoder in (document, query) if isinstance(encoder, str)), None)
        if tokenizer is None:
            if named is None:
                raise ValueError("tokenizer must be given where both encoders are models, not names")
            tokenizer = AutoTokenizer.from_pretrained(named)
        query_model = BoolBertModel.from_pretrained(query) if isinstance(query, str) else query
        document_model = AutoModel.from_pretrained(document) if isinstance(document, str) else document
        with tempfile.TemporaryDirectory() as folder:
            save_dual_encoder(
                folder,
                query_model,
                document_model,
                tokenizer,
                pooling=pooling,
                similarity=similarity,
                query_length=query_length,
                document_length=document_length,
            )
            return cls(folder, local_files_only=True, **kwargs)

    @classmethod
    def from_sentence_transformer(
        cls, source: str | SentenceTransformer, *, query_length: int = 64, device: str | None = None, **settings: Any
    ) -> "BoolBertSentenceTransformer":
        """The same document side, and a query side that starts as the same BERT with Boolean-aware attention.

        `settings` are those of `BoolBertConfig`, such as `gate="cue"`. The rest of `source` (pooling, dense layers,
        prompts, similarity) serves both sides.
        """
        if isinstance(source, str):
            source = SentenceTransformer(source, device=device)
        first, *rest = source.children()
        bert = getattr(first, "model", None)
        if not isinstance(first, Transformer) or not isinstance(bert, BertModel):
            raise ValueError(
                f"from_sentence_transformer needs a model that begins with a BERT, got {type(first).__name__} "
                f"with {type(bert).__name__}"
            )
        with tempfile.TemporaryDirectory() as folder:
            bert.save_pretrained(folder)
            BoolBertModel.from_pretrained(folder, **settings).save_pretrained(folder)
            first.tokenizer.save_pretrained(folder)
            query = BoolBertTransformer(folder, processor_kwargs={"model_max_length": query_length})
        return cls(
            modules=[Router.for_query_document([query.to(bert.device)], [first]), *rest],
            device=device or str(source.device),
            prompts=source.prompts,
            default_prompt_name=source.default_prompt_name,
            similarity_fn_name=source.similarity_fn_name,
        )

    def encode_query(self, inputs: Any, *args: Any, operators: Sequence[Any] | None = None, **kwargs: Any) -> Any:
        """As in sentence-transformers, and `operators` says which operators each query holds, if the caller knows.

        One entry a query: names such as ["and", "not"], three 0/1 for and, or, not, or None for "the model decides".
        """
        if operators is not None:
            if not any(isinstance(module, BoolBertTransformer) for module in self.modules()):
                raise ValueError("operators cannot be given: the query encoder of this model is not a Bool-BERT")
            inputs = with_operators(inputs, operators)
        return super().encode_query(inputs, *args, **kwargs)

    def save(self, path: str, *args: Any, **kwargs: Any) -> None:
        super().save(path, *args, **kwargs)
        if isinstance(self[0], Router):
            _open_both_doors(Path(path))


def operator_row(operators: Iterable[Any] | None) -> list[int] | None:
    """Operators by name, or already as 0/1, as one 0/1 each for and, or, not.

    >>> operator_row(["not", "and"]), operator_row([0, 1, 0]), operator_row([]), operator_row(None)
    ([1, 0, 1], [0, 1, 0], [0, 0, 0], None)
    """
    if operators is None:
        return None
    given: list[Any] = list(operators) if not isinstance(operators, str) else [None]
    if all(isinstance(name, str) for name in given):
        if unknown := [name for name in given if name not in OPERATORS]:
            raise ValueError(f"operators must be among {', '.join(OPERATORS)}, got {unknown[0]!r}")
        return [int(name in given) for name in OPERATORS]
    if len(given) == len(OPERATORS) and all(value in (0, 1) for value in given):
        return [int(value) for value in given]
    raise ValueError(
        f"the operators of a query must be a list of names out of {', '.join(OPERATORS)}, or {len(OPERATORS)} values "
        f"of 0/1, got {operators!r}"
    )


def with_operators(inputs: Any, operators: Sequence[Any]) -> Any:
    """Queries, each with its operators: the inputs of a `BoolBertTransformer`.

    >>> with_operators("a but not b", ["not"])
    {'text': 'a but not b', 'operators': [0, 0, 1]}
    >>> with_operators(["a or b", "a"], [["or"], None])
    [{'text': 'a or b', 'operators': [0, 1, 0]}, {'text': 'a', 'operators': None}]
    """
    if isinstance(inputs, str):
        return {"text": inputs, "operators": operator_row(operators)}
    texts = list(inputs)
    if len(operators) != len(texts):
        raise ValueError(f"operators must have one entry a query, got {len(operators)} for {len(texts)} queries")
    rows = []
    for index, (text, given) in enumerate(zip(texts, operators, strict=True)):
        try:
            rows.append({"text": text, "operators": operator_row(given)})
        except ValueError as error:
            raise ValueError(f"query {index}: {error}") from None
    return rows


def save_dual_encoder(
    path: str | Path,
    query_model: PreTrainedModel,
    document_model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    pooling: Literal["cls", "mean"],
    similarity: Literal["dot", "cosine"],
    query_length: int = 64,
    document_length: int = 256,
) -> None:
    """Write one folder that `AutoModel` opens as the query encoder and `SentenceTransformer` as both encoders.

    The query encoder is a `BoolBertModel` or a plain BERT. One model given for both sides is stored once.
    """
    size, document_size = query_model.config.hidden_size, document_model.config.hidden_size
    if size != document_size:
        raise ValueError(f"both encoders must have the same hidden_size, got {size} and {document_size}")
    if pooling not in ("cls", "mean"):
        raise ValueError(f"pooling must be cls or mean, got {pooling!r}")
    if similarity not in ("dot", "cosine"):
        raise ValueError(f"similarity must be dot or cosine, got {similarity!r}")
    path = Path(path)
    shared = query_model is document_model
    query_type = QUERY_MODULE if query_model.config.model_type == BoolBertConfig.model_type else _type(Transformer)
    lengths = {"query_length": query_length, "document_length": document_length} if shared else {}
    _save_encoder(path, query_model, tokenizer, document_length if shared else query_length, **lengths)
    if not shared:
        _save_encoder(path / DOCUMENT_FOLDER, document_model, tokenizer, document_length)

    modules: list[tuple[str, type]] = [("", Router), ("1_Pooling", Pooling)]
    (path / "1_Pooling").mkdir(exist_ok=True)
    Pooling(size, pooling_mode=pooling).save(str(path / "1_Pooling"))
    if similarity == "cosine":
        modules.append(("2_Normalize", Normalize))
        (path / "2_Normalize").mkdir(exist_ok=True)
        Normalize().save(str(path / "2_Normalize"))
    listed = [
        {"idx": i, "name": str(i), "path": folder, "type": _type(kind)} for i, (folder, kind) in enumerate(modules)
    ]
    _write_json(path / "modules.json", listed)

    document = "." if shared else DOCUMENT_FOLDER
    router = {
        "types": {".": query_type, document: query_type if shared else _type(Transformer)},
        "structure": {"query": ["."], "document": [document]},
        "parameters": {"default_route": "document", "allow_empty_key": True, "route_mappings": {}},
    }
    _write_json(path / "router_config.json", router)
    requirements = REQUIREMENTS_SHARED if shared else REQUIREMENTS
    settings = {"model_type": "SentenceTransformer", "similarity_fn_name": similarity, "requirements": requirements}
    _write_json(path / "config_sentence_transformers.json", settings)
    _copy_code(path, query_type)


def load_dual_encoder(path: str | Path, **kwargs: Any) -> SentenceTransformer:
    """Both encoders of a folder written by `save_dual_encoder`, in this package's own classes."""
    return BoolBertSentenceTransformer(str(path), **kwargs)


def _save_encoder(
    folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, length: int, **lengths: int
) -> None:
    model.save_pretrained(folder)
    limit = tokenizer.model_max_length
    try:
        tokenizer.model_max_length = min(length, model.config.max_position_embeddings)
        tokenizer.save_pretrained(folder)
    finally:
        tokenizer.model_max_length = limit
    text = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
    settings = {"transformer_task": "feature-extraction", "modality_config": text}
    _write_json(folder / "sentence_bert_config.json", {**settings, "module_output_name": "token_embeddings", **lengths})


def _open_both_doors(path: Path) -> None:
    """Turn the layout that Router saves, a folder for each module, into this one: the query encoder at the root."""
    router = json.loads((path / "router_config.json").read_text(encoding="utf-8"))
    query, document = router["structure"]["query"][0], router["structure"]["document"][0]
    names = {query: "."} if query == document else {query: ".", document: DOCUMENT_FOLDER}
    if document in names and document != query:
        shutil.rmtree(path / DOCUMENT_FOLDER, ignore_errors=True)
        (path / document).rename(path / DOCUMENT_FOLDER)
    for file in (path / query).iterdir():
        file.replace(path / file.name)
    (path / query).rmdir()

    types = {names.get(name, name): kind for name, kind in router["types"].items()}
    if types["."].endswith(QUERY_MODULE):
        types["."] = QUERY_MODULE
    structure = {route: [names.get(name, name) for name in listed] for route, listed in router["structure"].items()}
    _write_json(path / "router_config.json", {**router, "types": types, "structure": structure})
    requirements = REQUIREMENTS_SHARED if query == document else REQUIREMENTS
    settings = json.loads((path / "config_sentence_transformers.json").read_text(encoding="utf-8"))
    _write_json(path / "config_sentence_transformers.json", {**settings, "requirements": requirements})
    _copy_code(path, types["."])
    card = path / "README.md"
    if card.exists() and types["."] == QUERY_MODULE:
        text = re.sub(
            r'(= SentenceTransformer\("[^"]+")\)', r"\1, trust_remote_code=True)", card.read_text(encoding="utf-8")
        )
        card.write_text(text, encoding="utf-8")


def _copy_code(path: Path, query_type: str) -> None:
    """The code that loading needs; the model's own two files were written with its weights."""
    if query_type == QUERY_MODULE:
        target = path / f"{QUERY_MODULE.partition('.')[0]}.py"
        if not target.exists() or not target.samefile(__file__):
            shutil.copyfile(__file__, target)


def _type(module_class: type) -> str:
    return f"{module_class.__module__}.{module_class.__name__}"


def _write_json(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


# How a repository names the query module: the file next to the weights, and its class.
QUERY_MODULE = f"sentence_boolbert.{BoolBertTransformer.__name__}"
