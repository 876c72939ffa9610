"""Content hashes, by which encoded vectors know their corpus and their model."""

import hashlib
import json
import re
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from boolbert.data import Corpus, Document
from boolbert.retrieval.models import is_cosine, prompt_of, side_modules

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

LENGTH = 16  # hexadecimal digits
_known: "WeakKeyDictionary[Corpus, str]" = WeakKeyDictionary()
# Settings that leave a finished model's vectors as they are: notes, training, and what comes beside the vectors.
_SHAPES_NOTHING = re.compile(
    r"_.*|.*dropout.*|initializer_.*|output_.*|return_dict|transformers_version|architectures|auto_map|(torch_)?dtype"
    r"|id2label|label2id|problem_type|use_cache|gradient_checkpointing|chunk_size_feed_forward|tie_word_embeddings"
)


def corpus_fingerprint(corpus: Iterable[Document]) -> str:
    """A hash of all titles and texts in their order. That of a `Corpus`, which never changes, is kept."""
    contents = ((one.title.encode(), one.text.encode()) for one in corpus)
    if not isinstance(corpus, Corpus):
        return _hash(contents)
    if corpus not in _known:
        _known[corpus] = _hash(contents)
    return _known[corpus]


def _hash(contents: Iterable[tuple[bytes, bytes]]) -> str:
    digest = hashlib.blake2b()
    for content in chain.from_iterable(contents):
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()[:LENGTH]


def model_fingerprint(model: "SentenceTransformer", task: str) -> str:
    """A hash of all that shapes the vectors of one side ("query" or "document"): weights, configuration, tokenizer."""
    import torch

    from boolbert.configuration_boolbert import is_boolean

    # A Bool-BERT encodes documents as the plain BERT inside it, so an index of that BERT is its own.
    is_plain = task == "document"
    digest = hashlib.blake2b(json.dumps([task, prompt_of(model, task), is_cosine(model)]).encode())
    for module in side_modules(model, task):
        settings = module.get_config_dict() if hasattr(module, "get_config_dict") else {}
        settings = {**settings, "length": getattr(module, "max_seq_length", None)}
        settings.pop("unpad_inputs", None)  # how a batch is computed, not what comes out
        kind = type(module).__name__.removeprefix("BoolBert") if is_plain else type(module).__name__
        parts = [kind, settings, _configuration(module, is_plain), _tokenizer(module)]
        digest.update(json.dumps(parts, sort_keys=True, default=str).encode())
        for name, tensor in sorted(module.state_dict().items()):
            if is_plain and is_boolean(name):
                continue
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:LENGTH]


def document_encoder_of(model: Any) -> str:
    """The hash by which an index knows its model; a model that is not opened (search/cached_model.py) has it stored."""
    stored: str | None = getattr(model, "document_encoder", None)
    return stored or model_fingerprint(model.encoder, "document")


def _configuration(module: Any, is_plain: bool) -> dict[str, Any]:
    """The settings of a module's transformers model that its weights do not tell, such as its heads and activation."""
    from transformers import BertConfig

    from boolbert.configuration_boolbert import BoolBertConfig

    config = getattr(getattr(module, "model", None), "config", None)
    if config is None:
        return {}
    is_bert_inside = is_plain and config.model_type == BoolBertConfig.model_type
    kind = BertConfig if is_bert_inside else type(config)
    known = kind().to_dict()  # a file may hold fields of other versions, which nothing reads
    values = {**config.to_dict(), "model_type": kind.model_type}.items()
    return {name: value for name, value in values if name in known and not _SHAPES_NOTHING.fullmatch(name)}


def _tokenizer(module: Any) -> Any:
    """All of a tokenizer but how it pads and truncates, which each call sets."""
    tokenizer = getattr(module, "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        content = json.loads(backend.to_str())
        return {name: value for name, value in content.items() if name not in ("truncation", "padding")}
    return sorted(tokenizer.get_vocab().items()) if tokenizer is not None else None
