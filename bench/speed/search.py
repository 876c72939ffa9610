"""One warm query against indexes of several sizes."""

import argparse
import tempfile
from collections.abc import Callable
from copy import copy
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from boolbert.data import Document
from boolbert.retrieval.evidence import evidence_of
from boolbert.retrieval.index import Index, write_index
from boolbert.retrieval.records import Record
from boolbert.retrieval.stores import FileStore, copy_documents, open_store
from boolbert.search import BoolSearcher
from boolbert.search.document_search import DocumentSearch
from boolbert.search.query_encoder import QueryVectors
from boolbert.search.rank import READ
from speed.made_up import cache_in, made_model, made_texts, not_queries, write_encoder
from speed.timing import Table, timed

MOST_TEXTS = 100_000  # documents of an index that is measured with evidence, too


def measure(options: argparse.Namespace) -> None:
    """Milliseconds of one warm query, p50 and p99: the ranking alone, and a whole search with a MiniLM Bool-BERT, by
    vectors and with evidence, all in turns; with evidence, documents are read, or none. All vectors are random."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        model = made_model(write_encoder(Path(scratch, "encoder")), options.device)
        searchers = {"": BoolSearcher(model, progress=False)}
        if not options.gpu:
            searchers[", ONNX"] = BoolSearcher(model, searchers[""].index, onnx=True)
        table = Table(documents=10, what=-28, p50_ms=9, p99_ms=9)
        for size in options.sizes:
            folder, has_texts = Path(scratch, f"index-{size}"), size <= MOST_TEXTS
            vector = write_made_up(folder, rng, size, has_texts)
            index = Index(folder)
            works: dict[str, Callable[[], Any]] = {"ranking": lambda v=vector: rank(searchers[""], v)}
            ask = partial(search, not_queries(), rng)
            for name, searcher in searchers.items():
                searcher.documents = DocumentSearch(index, searcher.documents.device)
                works[f"search{name}"] = partial(ask, searcher, False)
                if has_texts:
                    works[f"evidence, none read{name}"] = partial(ask, searcher, True, 0)
                    works[f"evidence{name}"] = partial(ask, searcher, True)
            if has_texts and find_spec("faiss") is not None:
                in_store = copy(searcher)
                store = open_store(f"{folder}.faiss", faiss="HNSW32,Flat")
                copy_documents(FileStore(folder), store, progress=False)
                in_store.documents = DocumentSearch(store, searcher.documents.device)
                works[f"HNSW{name}"] = partial(ask, in_store, False)
                works[f"HNSW, none read{name}"] = partial(ask, in_store, True, 0)
                works[f"HNSW, evidence{name}"] = partial(ask, in_store, True)
            times: dict[str, list[float]] = {what: [] for what in works}
            for _ in range(5 + (100 if size < 1_000_000 or options.gpu else 20)):
                for what, work in works.items():
                    times[what].append(timed(work, options))
            for what, found in times.items():
                p50, p99 = map(float, np.percentile(found[5:], [50, 99]))
                table.add(documents=size, what=what, p50_ms=p50, p99_ms=p99)


def search(
    queries: list[str], rng: np.random.Generator, searcher: BoolSearcher, evidence: bool, read: int = READ
) -> Any:
    return searcher.search(rng.choice(queries), k=10, evidence=evidence, read=read)


def write_made_up(folder: Path, rng: np.random.Generator, size: int, has_texts: bool) -> Any:
    """Write an index of made-up documents, with evidence if they have texts; the vector of the first."""
    vectors = random_vectors(rng, size)
    made = {"document_encoder": "made up", "model": None, "source": "made up"}
    documents = [Document(str(row), text) for row, text in enumerate(made_texts(size) if has_texts else ["x"] * size)]
    records = (Record(one.title, one.title, one.text).beside_text() for one in documents)
    encode = lambda clauses: random_vectors(rng, len(clauses))  # noqa: E731
    evidence = evidence_of((one.text for one in documents), encode) if has_texts else None
    write_index(folder, documents, records, vectors, made, evidence)
    return vectors[:1].copy()


def random_vectors(rng: np.random.Generator, count: int) -> Any:
    vectors = rng.standard_normal((count, 384), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def rank(searcher: Any, vector: Any) -> Any:
    return searcher.documents.rank(searcher.index, QueryVectors(vector, vector[0], None), 10)
