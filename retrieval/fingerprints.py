"""Content hashes, by which encoded vectors know their corpus and their model."""

import hashlib
import json
from typing import TYPE_CHECKING

from boolbert.data import Corpus
from boolbert.retrieval.models import is_cosine, prompt_of, side_modules

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

LENGTH = 16  # hexadecimal digits


def corpus_fingerprint(corpus: Corpus) -> str:
    """A hash of all titles and texts in their order."""
    digest = hashlib.blake2b()
    for document in corpus:
        for text in (document.title, document.text):
            content = text.encode()
            digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()[:LENGTH]


def model_fingerprint(model: "SentenceTransformer", task: str) -> str:
    """A hash of all that shapes the vectors of one side ("query" or "document"): weights, tokenizer, settings."""
    import torch

    digest = hashlib.blake2b(json.dumps([task, prompt_of(model, task), is_cosine(model)]).encode())
    for module in side_modules(model, task):
        settings = module.get_config_dict() if hasattr(module, "get_config_dict") else {}
        settings = {**settings, "length": getattr(module, "max_seq_length", None)}
        digest.update(json.dumps([type(module).__name__, settings], sort_keys=True, default=str).encode())
        tokenizer = getattr(module, "tokenizer", None)
        if tokenizer is not None:
            digest.update(json.dumps(sorted(tokenizer.get_vocab().items())).encode())
        for name, tensor in sorted(module.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:LENGTH]
