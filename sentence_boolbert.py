# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Bool-BERT in sentence-transformers: queries through Bool-BERT, documents through a plain BERT.

    model = SentenceTransformer(folder_or_repository, trust_remote_code=True)
    queries = model.encode_query(["films that are not westerns"], operators=[["not"]])  # operators may be left out
    documents = model.encode_document(["A western of 1952.", "A comedy of 1952."])

A query's vector is composed by the model: what is wanted, minus what is excluded. `branches=True` gives one for each
alternative of OR as well. `AutoModel` loads the query encoder from the root of the same folder.
"""

import json
import math
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Router, Transformer
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertModel, PreTrainedModel, PreTrainedTokenizerBase

from .composing_boolbert import NOT, PROPERTY
from .configuration_boolbert import OPERATORS, POOLINGS, BoolBertConfig
from .modeling_boolbert import BoolBertModel

# Where the document encoder lies; the query encoder lies at the root, which Router calls ".".
DOCUMENT_FOLDER = "document_encoder"
POOLING_FOLDER = "1_Pooling"
REQUIREMENTS = {"sentence-transformers": ">=6.0", "transformers": ">=5.14", "torch": ">=2.9"}
# From this version on Router loads a model that serves both routes once, and tells it which route it serves.
REQUIREMENTS_SHARED = {**REQUIREMENTS, "sentence-transformers": ">=6.2"}
# What the model may be told of queries; the rest it reads.
TOLD = ("operators", "cues", "scope")
# In `operators` and `not_scope` of a query: the model decides.
UNKNOWN = -1
# What the model composes besides the tokens' states; each passes through the modules after the pooling.
COMPOSED = ("sentence_embedding", "query_vectors", "wanted_embedding", "excluded_embedding", "search_vectors")
# What it says of them, and how it has read the sentences.
SAID = ("query_mask", "penalty", "cue_logits", "operators", "scope", "kind")


class QueryParts(NamedTuple):
    """A query as vectors: its own and one for each alternative (K, D), what it wants, and what it excludes, if any.

    search_vectors: those to ask an index or a vector database with; without a penalty they are the same. penalty: how
    much of a document's cosine with `excluded`, above which threshold, is taken from its score. cosine: whether vectors
    are compared whatever their lengths.
    """

    vectors: npt.NDArray[np.float32]
    wanted: npt.NDArray[np.float32]
    excluded: npt.NDArray[np.float32] | None
    search_vectors: npt.NDArray[np.float32]
    penalty: tuple[float, float] | None = None
    cosine: bool = False

    def scores(self, documents: Any) -> npt.NDArray[np.float32]:
        """The scores of documents' vectors, (N, D), as search has them: (N,).

        With a penalty, documents that are near to what is excluded lose, and others do not; no one vector can do that.
        """
        documents, size = np.asarray(documents, dtype=np.float32), self.vectors.shape[-1]
        if documents.size and documents.shape[-1] != size:
            found = documents.shape[-1]
            raise ValueError(f"the documents' vectors have {found} numbers, the query's {size}; one model gives both")
        documents, vectors = documents.reshape(-1, size), self.search_vectors
        if self.cosine:
            documents, vectors = _unit(documents), _unit(vectors)
        scores = (documents @ vectors.T).max(1)
        if self.excluded is None or self.penalty is None:
            return scores
        weight, above = self.penalty
        return scores - weight * np.maximum(documents @ _unit(self.excluded) - above, 0)


class BoolBertTransformer(Transformer):
    """sentence-transformers' Transformer, whose inputs may be {"text": ..., "operators": [...]} instead of a string.

    Operators travel inside the inputs, because `encode` sorts, splits and distributes these, and nothing else. Queries
    leave it with the vector that the model has composed. A model that serves documents too encodes them as plain BERT.
    """

    serves_documents = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        AutoConfig.register(BoolBertConfig.model_type, BoolBertConfig, exist_ok=True)
        AutoModel.register(BoolBertConfig, BoolBertModel, exist_ok=True)
        # Sentences packed into one row without padding would share their cues.
        super().__init__(*args, **{**kwargs, "unpad_inputs": False})

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: Any, **kwargs: Any) -> "BoolBertTransformer":
        return super().load(model_name_or_path, "" if subfolder == "." else subfolder, *args, **kwargs)

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, *args: Any, **kwargs: Any) -> dict[str, Any]:
        items = [item if isinstance(item, dict) else {"text": item} for item in inputs]
        rows = [operator_row(item.get("operators")) for item in items]
        features = super().preprocess([item["text"] for item in items], prompt, *args, **kwargs)
        if any(row is not None for row in rows):
            features["operators"] = torch.tensor([row or [UNKNOWN] * len(OPERATORS) for row in rows])
        weights = [item.get("not_weight", math.nan) for item in items]
        if not all(map(math.isnan, weights)):
            features["not_weight"] = torch.tensor(weights)
        scopes = [item.get("not_scope") for item in items]
        if any(scope is not None for scope in scopes):
            features["not_scope"] = torch.full(features["input_ids"].shape, UNKNOWN)
            for row, scope in zip(features["not_scope"], scopes, strict=True):
                if scope is not None:
                    row.zero_()[: len(scope)] = torch.tensor(scope)[: len(row)]
        return features

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        is_query = features.get("task") == "query" or not self.serves_documents
        names = ("input_ids", "attention_mask", "token_type_ids", "position_ids", "inputs_embeds")
        inputs = {name: features[name] for name in names if name in features}
        told: dict[str, Any] = {name: features[name] for name in TOLD if is_query and name in features}
        said: dict[str, Any] = {}
        if is_query and self._is_partly_told(features):
            told, said = self._told(inputs, features)
        output = self.model(**inputs, **told, boolean=is_query, return_dict=True)
        features[self.module_output_name] = output.last_hidden_state
        if is_query:
            mask, weight = features["attention_mask"], features.get("not_weight")
            bert: Any = self.model
            found = {**output, **bert.search(output, mask, weight), **said}
            features |= {name: found[name] for name in (*COMPOSED, *SAID) if name in found}
        return features

    def _is_partly_told(self, features: dict[str, Any]) -> bool:
        """Whether callers say how some queries, or some of a query, is read, and leave the rest to the model."""
        operators = features.get("operators")
        return "not_scope" in features or (operators is not None and bool((operators == UNKNOWN).any()))

    def _told(self, inputs: dict[str, Any], features: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """How such queries are to be taken, and what to say of it: the model reads them first, then all is known."""
        bert: Any = self.model
        reading = bert.read(**inputs)
        operators, scope, kind = features.get("operators", reading.operators), reading.scope_logits, reading.kind
        operators = torch.where(operators == UNKNOWN, reading.operators, operators)
        if scope is None and "not_scope" in features:
            raise ValueError("not_scope needs a model that reads scopes: this one has no reader")
        if scope is None or (bert.reader is None and "not_scope" not in features):
            return {"operators": operators}, {}  # its layers correct what is read, unless they are told
        scope, on = (scope > 0).long(), operators.clone()
        if kind is not None:  # nothing is taken away where a property is negated
            on[:, NOT] = torch.where(kind == PROPERTY, 0, on[:, NOT])
        if "not_scope" in features:
            not_scope = features["not_scope"]
            is_said, excluded = not_scope[:, 0] != UNKNOWN, (not_scope > 0) & (features["attention_mask"] != 0)
            scope[:, NOT] = torch.where(is_said.unsqueeze(1), excluded.long(), scope[:, NOT])
            excludes = excluded.any(1).long()
            on[:, NOT] = torch.where(is_said, excludes, on[:, NOT])
            operators = operators.clone()
            operators[:, NOT] = torch.where(is_said, excludes, operators[:, NOT])
        cues = (reading.cue_logits > 0).long()
        said = {"operators": operators, "kind": kind, "cue_logits": reading.cue_logits}
        return {"operators": on, "cues": cues, "scope": scope}, {k: v for k, v in said.items() if v is not None}

    def on_model_ready(self, model: nn.Module) -> None:
        # A model loaded as a plain SentenceTransformer gets the `operators` argument and the way of saving too.
        if type(model) is SentenceTransformer:
            model.__class__ = BoolBertSentenceTransformer
        first = next(model.children(), None)
        routes: dict[str, Any] = dict(first.sub_modules.items()) if isinstance(first, Router) else {}
        self.serves_documents = any(module is self for module in routes.get("document", ()))


class BoolBertPooling(Pooling):
    """sentence-transformers' Pooling for documents; a query comes with a vector, which stays as it is."""

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return features if "sentence_embedding" in features else super().forward(features, **kwargs)


class BoolBertSentenceTransformer(SentenceTransformer):
    """A SentenceTransformer with a "query" and a "document" route, saved so that both doors open."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # A repository names the class by its file; where this code is at hand no `trust_remote_code` is needed.
        classes = {QUERY_MODULE: BoolBertTransformer, POOLING_MODULE: BoolBertPooling}
        self._module_classes = {**self._module_classes, **classes}
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
        settings: dict[str, Any] = {"pooling": pooling, "similarity": similarity}
        settings |= {"query_length": query_length, "document_length": document_length}
        with tempfile.TemporaryDirectory() as folder:
            save_dual_encoder(folder, query_model, document_model, tokenizer, **settings)
            return cls(folder, local_files_only=True, **kwargs)

    @classmethod
    def from_sentence_transformer(
        cls,
        source: str | SentenceTransformer,
        *,
        query_length: int | None = 64,
        share: bool = False,
        device: str | None = None,
        **settings: Any,
    ) -> "BoolBertSentenceTransformer":
        """The same document side, and a query side that starts as the same BERT with Boolean-aware attention.

        `settings` are those of `BoolBertConfig`, such as `gate="cue"`. The rest of `source` (pooling, dense layers,
        prompts, similarity) serves both sides. With `share` one Bool-BERT serves both, documents as the plain BERT that
        it is without its operators, so that the weights are stored once; it is for models that are not trained on.
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
        pooling = next((module for module in rest if isinstance(module, Pooling)), None)
        if pooling is None or pooling is not rest[0] or pooling.pooling_mode not in POOLINGS:
            found = "none" if pooling is None else repr(pooling.pooling_mode)
            raise ValueError(
                f"from_sentence_transformer needs a model that pools by {' or '.join(POOLINGS)}, got {found}"
            )
        composing = BoolBertPooling(bert.config.hidden_size, pooling_mode=pooling.pooling_mode)
        with tempfile.TemporaryDirectory() as folder:
            bert.save_pretrained(folder)
            model = BoolBertModel.from_pretrained(folder, **{"pooling": pooling.pooling_mode, **settings})
            model.save_pretrained(folder)
            first.tokenizer.save_pretrained(folder)
            length = min(query_length or first.max_seq_length, first.max_seq_length)
            query = BoolBertTransformer(folder, processor_kwargs={"model_max_length": length}).to(bert.device)
        return cls(
            modules=[Router.for_query_document([query], [query if share else first]), composing, *rest[1:]],
            device=device or str(source.device),
            prompts=source.prompts,
            default_prompt_name=source.default_prompt_name,
            similarity_fn_name=source.similarity_fn_name,
        )

    def encode(self, inputs: Any, prompt_name: str | None = None, *args: Any, **kwargs: Any) -> Any:
        """As in sentence-transformers. `task` or `prompt_name`, "query" or "document", says which side encodes.

        Without either it is the document side. Queries would lose their operators there, so a warning says so, once.
        """
        check_texts([inputs] if isinstance(inputs, (str, dict)) else inputs)
        if kwargs.get("task") is None and isinstance(self[0], Router):
            side = prompt_name or self.default_prompt_name
            if side in ("query", "document"):
                kwargs["task"] = side
            elif not getattr(self, "_has_warned", False):
                self._has_warned = True
                warnings.warn(
                    "encode() takes all texts for documents; queries go through encode_query(), or "
                    'encode(..., prompt_name="query")',
                    stacklevel=2,
                )
        return super().encode(inputs, prompt_name, *args, **kwargs)

    def encode_query(
        self, inputs: Any, *args: Any, operators: Sequence[Any] | None = None, branches: bool = False, **kwargs: Any
    ) -> Any:
        """As in sentence-transformers, and `operators` says which operators each query holds, if the caller knows.

        One entry per query: names such as ["and", "not"], three 0/1 for and, or, not, or None for "the model decides".
        With `branches` each query is an array of vectors, its own and one for each alternative of OR: a document's
        score is the largest of its dot products with them.
        """
        if branches:
            parts = self.encode_query_parts(inputs, operators=operators, **kwargs)
            return parts.vectors if isinstance(parts, QueryParts) else [query.vectors for query in parts]
        if operators is not None:
            self._require_bool_bert("operators cannot be given")
            inputs = with_operators(inputs, operators)
        return super().encode_query(inputs, *args, **kwargs)

    def encode_query_parts(
        self,
        inputs: Any,
        *,
        operators: Sequence[Any] | None = None,
        not_weight: float | None = None,
        not_scope: Sequence[int] | None = None,
        batch_size: int = 32,
        **kwargs: Any,
    ) -> Any:
        """Each query as its `QueryParts`; `not_weight` stands in for the learned strength of exclusion.

        `not_scope`, for one query, says of each of its tokens whether NOT excludes it, 0 or 1, instead of the model.
        """
        self._require_bool_bert("a query cannot be taken apart")
        if operators is not None:
            inputs = with_operators(inputs, operators)
        is_single = isinstance(inputs, (str, dict))
        options = {"prompt_name": "query" if "query" in self.prompts else None, "task": "query", **kwargs}
        queries = [inputs] if is_single else list(inputs)
        scope = None if not_scope is None else list(not_scope)
        given = {"not_weight": not_weight, "not_scope": scope}
        given = {name: value for name, value in given.items() if value is not None}
        if given:
            queries = [{**(query if isinstance(query, dict) else {"text": query}), **given} for query in queries]
        rows = self.encode(queries, output_value=None, batch_size=batch_size, show_progress_bar=False, **options)
        parts = [query_parts(row, str(self.similarity_fn_name) == "cosine") for row in rows]
        return parts[0] if is_single else parts

    def forward(self, input: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        features = super().forward(input, **kwargs)
        # The other vectors of a query pass through what comes after the pooling, as its own has done.
        for name in COMPOSED[1:]:
            if name in features:
                vectors = features[name]
                passed = {"sentence_embedding": vectors.reshape(-1, vectors.shape[-1])}
                for module in list(self.children())[2:]:
                    passed = module(passed)
                features[name] = passed["sentence_embedding"].reshape(*vectors.shape[:-1], -1)
        return features

    def _require_bool_bert(self, problem: str) -> None:
        if not any(isinstance(module, BoolBertTransformer) for module in self.modules()):
            raise ValueError(f"{problem}: the query encoder of this model is not a Bool-BERT")

    def save(self, path: str, *args: Any, **kwargs: Any) -> None:
        super().save(path, *args, **kwargs)
        if isinstance(self[0], Router):
            _open_both_doors(Path(path))


def query_parts(row: dict[str, Any], cosine: bool) -> QueryParts:
    """One query's row of what the model gives. Only cosines have a threshold."""
    found = {name: row[name].float().cpu().numpy() for name in (*COMPOSED, "penalty") if name in row}
    exists = row["query_mask"].cpu().numpy()
    vectors = found["query_vectors"][exists]
    excluded = found["excluded_embedding"] if found["excluded_embedding"].any() else None
    if not cosine or "penalty" not in found:
        return QueryParts(vectors, found["wanted_embedding"], excluded, vectors, cosine=cosine)
    weight, above = map(float, found["penalty"])
    searched = found["search_vectors"][exists]
    return QueryParts(vectors, found["wanted_embedding"], excluded, searched, (weight, above), cosine)


def _unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Vectors of length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def check_texts(inputs: Iterable[Any]) -> None:
    """Raise for a text with half a surrogate pair, which comes from bytes that are no UTF-8: no tokenizer takes it."""
    for number, item in enumerate(inputs, 1):
        text = item.get("text") if isinstance(item, dict) else item
        try:
            if isinstance(text, str) and not text.isascii():
                text.encode()
        except UnicodeEncodeError as found:
            problem = f"holds half a surrogate pair at character {found.start}; save or type it as UTF-8"
            raise ValueError(f"text {number} {problem}") from None


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
    if pooling not in POOLINGS:
        raise ValueError(f"pooling must be {' or '.join(POOLINGS)}, got {pooling!r}")
    if similarity not in ("dot", "cosine"):
        raise ValueError(f"similarity must be dot or cosine, got {similarity!r}")
    path = Path(path)
    shared = query_model is document_model
    is_boolean = query_model.config.model_type == BoolBertConfig.model_type
    if is_boolean and query_model.config.pooling != pooling:
        raise ValueError(
            f"pooling must be the Bool-BERT's own, config.pooling = {query_model.config.pooling!r}, got {pooling!r}"
        )
    query_type = QUERY_MODULE if is_boolean else _type(Transformer)
    lengths = {"query_length": query_length, "document_length": document_length} if shared else {}
    _save_encoder(path, query_model, tokenizer, document_length if shared else query_length, **lengths)
    if not shared:
        _save_encoder(path / DOCUMENT_FOLDER, document_model, tokenizer, document_length)

    modules: list[tuple[str, type]] = [("", Router), (POOLING_FOLDER, Pooling)]
    (path / POOLING_FOLDER).mkdir(exist_ok=True)
    Pooling(size, pooling_mode=pooling).save(str(path / POOLING_FOLDER))
    if similarity == "cosine":
        modules.append(("2_Normalize", Normalize))
        (path / "2_Normalize").mkdir(exist_ok=True)
        Normalize().save(str(path / "2_Normalize"))
    types = {Pooling: POOLING_MODULE} if is_boolean else {}
    listed = [
        {"idx": i, "name": str(i), "path": folder, "type": types.get(kind, _type(kind))}
        for i, (folder, kind) in enumerate(modules)
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
    listed = json.loads((path / "modules.json").read_text(encoding="utf-8"))
    for module in listed:
        if module["type"].endswith(POOLING_MODULE):
            saved, folder = path / module["path"], path / POOLING_FOLDER
            for code in saved.glob("*.py"):  # it lies at the root already
                code.unlink()
            if saved != folder:
                shutil.rmtree(folder, ignore_errors=True)
                saved.rename(folder)
            module |= {"path": POOLING_FOLDER, "type": POOLING_MODULE}
    _write_json(path / "modules.json", listed)
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
    """The code that loading needs; the model's own files were written with its weights."""
    if query_type == QUERY_MODULE:
        target = path / f"{QUERY_MODULE.partition('.')[0]}.py"
        if not target.exists() or not target.samefile(__file__):
            shutil.copyfile(__file__, target)


def _type(module_class: type) -> str:
    return f"{module_class.__module__}.{module_class.__name__}"


def _write_json(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


# How a repository names these modules: the file next to the weights, and the class.
QUERY_MODULE = f"sentence_boolbert.{BoolBertTransformer.__name__}"
POOLING_MODULE = f"sentence_boolbert.{BoolBertPooling.__name__}"
