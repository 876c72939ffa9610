"""One warm query against indexes of several sizes."""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

from boolbert.retrieval.index import Index
from boolbert.retrieval.models import SearchModel, load_encoder, with_fresh_attention
from boolbert.retrieval.shards import SHARD_SIZE
from boolbert.search import BoolSearcher
from boolbert.search.query_encoder import QueryVectors
from speed.made_up import cache_in, made_texts, write_encoder
from speed.timing import timed


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of one warm query, p50 and p99: the ranking alone, and a whole search with a MiniLM Bool-BERT."""
    rng = np.random.default_rng(0)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        source = load_encoder(str(write_encoder(Path(scratch, "encoder"))), device=options.device, quiet=True)
        bert = with_fresh_attention(with_pooling(source), query_length=None, gate="cue")
        model = SearchModel(None, bert, "")
        searcher = BoolSearcher(model, progress=False)
        by_onnx = None if options.gpu else BoolSearcher(model, searcher.index, onnx=True)
        words = made_texts(64, seed=2)
        queries = [" ".join(text.split()[3:11]) for text in words]
        print(f"{'documents':>10}  {'what':<10}{'p50 ms':>9}{'p99 ms':>9}")
        for size in options.sizes:
            vectors = rng.standard_normal((size, 384), dtype=np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            index = fake_index(Path(scratch, f"index-{size}"), vectors)
            searcher.index = index
            if by_onnx is not None:
                by_onnx.index = index
            vector = vectors[:1].copy()
            works: dict[str, Callable[[], Any]] = {
                "ranking": lambda v=vector: rank(searcher, v),
                "search": lambda: searcher.search(rng.choice(queries), k=10),
            }
            if by_onnx is not None:
                works["by ONNX"] = lambda: by_onnx.search(rng.choice(queries), k=10)
            del vectors
            for what, work in works.items():
                for _ in range(5):
                    work()
                times = sorted(timed(work, options) for _ in range(100 if size < 1_000_000 or options.gpu else 20))
                p50, p99 = times[len(times) // 2], times[min(len(times) - 1, int(0.99 * len(times)))]
                result.setdefault(str(size), {})[what] = {"p50": round(p50, 3), "p99": round(p99, 3)}
                print(f"{size:>10,}  {what:<10}{p50:>9.2f}{p99:>9.2f}", flush=True)
    return result


def rank(searcher: Any, vector: Any) -> Any:
    return searcher._documents.rank(searcher.index, QueryVectors(vector, vector[0], None), 10)


def with_pooling(model: Any) -> Any:
    """A BERT that pools by the mean, whatever its folder says: random weights have no opinion."""
    first = next(iter(model.children()))
    pooling = Pooling(first.get_embedding_dimension(), pooling_mode="mean")
    return SentenceTransformer(
        modules=[first, pooling, Normalize()], device=str(model.device), similarity_fn_name="cosine"
    )


def fake_index(folder: Path, vectors: Any) -> Any:
    """An index on disk with these vectors and empty documents."""
    (folder / "vectors").mkdir(parents=True)
    common = {"documents": len(vectors), "corpus": "made up"}
    shards = {**common, "size": vectors.shape[1], "shard_size": SHARD_SIZE, "batch_size": 1, "storage": "float32"}
    (folder / "vectors/manifest.json").write_text(json.dumps({**shards, "model": "made up"}))
    for number, start in enumerate(range(0, len(vectors), SHARD_SIZE)):
        np.save(folder / f"vectors/vectors-{number:05d}.npy", vectors[start : start + SHARD_SIZE])
    line = json.dumps({"title": "t", "text": "x"}) + "\n"
    (folder / "documents.jsonl").write_text(line * len(vectors))
    np.save(folder / "lines.npy", np.arange(len(vectors), dtype=np.int64) * len(line))
    size = (folder / "documents.jsonl").stat().st_size
    (folder / "index.json").write_text(json.dumps({**common, "document_encoder": "made up", "bytes": size}))
    return Index(folder)
