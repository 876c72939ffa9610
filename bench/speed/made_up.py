"""What is measured on: sizes of models, batches of ids, texts of the countries' words, encoders with random weights."""

import json
import os
import random
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from transformers import BertConfig, BertModel, BertTokenizer

from boolbert.data.tasks import quest_task
from boolbert.retrieval.models import SearchModel, load_encoder, with_fresh_attention

SIZES: dict[str, dict[str, int]] = {
    "base": {},
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
}


def make_batch(shape: str, device: str) -> dict[str, Tensor]:
    """Rows from half to all of the length, padded, as queries come."""
    batch, length = (int(number) for number in shape.split("x"))
    lengths = torch.linspace(length if batch == 1 else length // 2, length, batch).long()
    mask = (torch.arange(length) < lengths[:, None]).long()
    ids = torch.randint(1000, 30000, (batch, length))
    return {"input_ids": ids.to(device), "attention_mask": mask.to(device)}


def sentences() -> list[str]:
    """The sentences of the countries' descriptions."""
    from boolbert.data import Quest

    return [part for document in Quest(progress=False).documents() for part in document.text.split(". ") if part]


def made_texts(count: int, seed: int = 0) -> list[str]:
    """Texts from 1 to 12 sentences, most of them short, no two alike: 20 to 300 tokens."""
    rng = random.Random(seed)
    known = sentences()
    sizes = (min(12, 1 + int(rng.expovariate(1 / 3.5))) for _ in range(count))
    return [f"Document {row}. " + ". ".join(rng.choices(known, k=size)) for row, size in enumerate(sizes)]


def write_encoder(folder: Path, size: str = "minilm") -> Path:
    """A BERT of this size with random weights, for mean pooling and cosine, and a tokenizer of the countries' words."""
    from boolbert.retrieval.encoders import _vocabulary

    vocab = {token: row for row, token in enumerate(_vocabulary())}
    BertModel(BertConfig(**{**SIZES[size], "vocab_size": len(vocab)})).save_pretrained(folder)
    BertTokenizer(vocab=vocab, model_max_length=256).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "pooling": "mean"}))
    return folder


def cache_in(folder: Path) -> AbstractContextManager[Any]:
    return mock.patch.dict(os.environ, BOOLBERT_CACHE=str(folder))


def made_model(folder: Path, device: str = "cpu") -> SearchModel:
    """A MiniLM Bool-BERT with random weights."""
    source = load_encoder(str(folder), device=device, quiet=True)
    return SearchModel(None, with_fresh_attention(source, query_length=None, gate="cue"), "", trained=False)


def not_queries() -> list[str]:
    """Queries of the embedded countries that exclude something, whose words the made texts have; no two alike."""
    asked = [question for split in ("dev", "test", "train") for question in quest_task(None, split).questions]
    return list(dict.fromkeys(question.text for question in asked if "not" in (question.operators or ())))
