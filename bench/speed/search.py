"""One warm query against indexes of several sizes."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from boolbert.data import Document
from boolbert.retrieval.evidence import FOLDER as EVIDENCE
from boolbert.retrieval.evidence import Evidence
from boolbert.retrieval.index import Index, write_index
from boolbert.retrieval.models import SearchModel, load_encoder, with_fresh_attention
from boolbert.search import BoolSearcher
from boolbert.search.query_encoder import QueryVectors
from speed.made_up import cache_in, made_texts, write_encoder
from speed.timing import Table, timed

MOST_TEXTS = 100_000  # documents of an index that is measured with evidence, too


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Milliseconds of one warm query, p50 and p99: the ranking alone, and a whole search with a MiniLM Bool-BERT, by
    vectors and with evidence. All vectors are random."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        source = load_encoder(str(write_encoder(Path(scratch, "encoder"))), device=options.device, quiet=True)
        bert = with_fresh_attention(source, query_length=None, gate="cue")
        model = SearchModel(None, bert, "")
        searcher = BoolSearcher(model, progress=False)
        by_onnx = None if options.gpu else BoolSearcher(model, searcher.index, onnx=True)
        words = [text.split() for text in made_texts(64, seed=2)]
        queries = [" ".join([*text[3:9], "but not", *text[9:11]]) for text in words]
        table = Table(documents=10, what=-16, p50_ms=9, p99_ms=9)
        for size in options.sizes:
            vectors = random_vectors(rng, size)
            folder = Path(scratch, f"index-{size}")
            made = {"document_encoder": "made up", "model": None, "source": "made up"}
            texts = made_texts(size) if size <= MOST_TEXTS else ["x"] * size
            write_index(folder, [Document("t", text) for text in texts], [], vectors, made)
            searcher.index = Index(folder)
            if size <= MOST_TEXTS:
                corpus = searcher.index.manifest["corpus"]
                encode = lambda clauses: random_vectors(rng, len(clauses))  # noqa: E731
                Evidence.build(folder / EVIDENCE, texts, encode, corpus=corpus, model="made up")
            vector = vectors[:1].copy()
            works: dict[str, Callable[[], Any]] = {
                "ranking": lambda v=vector: rank(searcher, v),
                "search": lambda: searcher.search(rng.choice(queries), k=10, evidence=False),
            }
            if size <= MOST_TEXTS:
                works["evidence"] = lambda: searcher.search(rng.choice(queries), k=10)
            if by_onnx is not None:
                by_onnx.index = searcher.index
                works["by ONNX"] = lambda: by_onnx.search(rng.choice(queries), k=10, evidence=False)
                works["evidence by ONNX"] = lambda: by_onnx.search(rng.choice(queries), k=10)
            del vectors
            for what, work in works.items():
                for _ in range(5):
                    work()
                times = [timed(work, options) for _ in range(100 if size < 1_000_000 or options.gpu else 20)]
                p50, p99 = (round(float(value), 3) for value in np.percentile(times, [50, 99]))
                rows.append(table.add(documents=size, what=what, p50_ms=p50, p99_ms=p99))
    return rows


def random_vectors(rng: np.random.Generator, count: int) -> Any:
    vectors = rng.standard_normal((count, 384), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def rank(searcher: Any, vector: Any) -> Any:
    return searcher._documents.rank(searcher.index, QueryVectors(vector, vector[0], None), 10)
