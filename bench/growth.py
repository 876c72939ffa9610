"""How time and memory grow with the number of documents: folder, FAISS HNSW and Milvus Lite, with evidence and without.

python bench/growth.py --documents 1000 10000 100000
python bench/growth.py --documents 1000000 --stores folder

Texts and vectors are made up: encoding, which takes the same time for each document, is left out. Each line is measured
in processes of its own. Memory: what a process has more after its searches than before it opened the store.
"""

import argparse
import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from stores import SIZE, World

from boolbert.retrieval.evidence import evidence_of
from boolbert.retrieval.fingerprints import document_encoder_of
from boolbert.retrieval.models import SearchModel, load_encoder, with_fresh_attention
from boolbert.retrieval.stores import About, Record, open_store
from boolbert.search import BoolSearcher
from speed.made_up import cache_in, made_texts, write_encoder
from speed.search import random_vectors
from speed.timing import Table

# Names that open_store knows: a folder, a FAISS index, a file of Milvus Lite.
STORES = {"folder": "folder", "FAISS HNSW": "hnsw.faiss", "Milvus Lite": "lite.db"}
AT_ONCE = 8192


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--queries", type=int, default=100)
    options = parser.parse_args()
    table = Table(documents=10, store=-12, evidence=-9, index_s=9, p50_ms=9, p99_ms=9, memory_MB=10, disk_MB=9)
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        encoder = write_encoder(Path(scratch, "encoder"))
        for count in options.documents:
            for name in options.stores:
                for evidence in (False, True):
                    path = Path(scratch, f"{count}-{evidence}-{STORES[name]}")
                    row: dict[str, Any] = {}
                    for work, *more in ((write, count), (search, options.queries)):
                        with ProcessPoolExecutor(1, mp_context=spawn) as fresh:
                            row |= fresh.submit(work, path, encoder, evidence, *more).result()
                    table.add(documents=count, store=name, evidence="yes" if evidence else "no", **row)


def made_model(encoder: Path) -> SearchModel:
    source = load_encoder(str(encoder), device="cpu", quiet=True)
    return SearchModel(None, with_fresh_attention(source, query_length=None, gate="cue"), "")


def write(path: Path, encoder: Path, evidence: bool, count: int) -> dict[str, Any]:
    """Write documents into a store, and say how long it takes and how large it is."""
    rng, vectors, texts = np.random.default_rng(0), World().documents(count), made_texts(count)
    about = About(document_encoder_of(made_model(encoder)), SIZE, evidence=evidence)
    began = time.perf_counter()
    store = open_store(path, faiss="HNSW32,Flat" if path.suffix == ".faiss" else None)
    store.create(about)
    for first in range(0, count, AT_ONCE):
        inside = slice(first, first + AT_ONCE)
        records = [Record(f"d{first + row}", "t", text) for row, text in enumerate(texts[inside])]
        said = list(evidence_of(texts[inside], lambda clauses: random_vectors(rng, len(clauses)))) if evidence else None
        store.add(records, vectors[inside], said)
    store.note(replace(store.about(), complete=True))
    store.search(vectors[:1])  # FAISS builds its graph now
    store.close()
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    seconds = round(time.perf_counter() - began, 1)
    return {"index_s": seconds, "disk_MB": round(sum(file.stat().st_size for file in files) / 1e6, 1)}


def search(path: Path, encoder: Path, evidence: bool, queries: int) -> dict[str, Any]:
    """Ask warm queries with NOT, and say how long they take and how much memory."""
    model = made_model(encoder)
    words = [text.split() for text in made_texts(64, seed=2)]
    asked = [" ".join([*text[3:9], "but not", *text[9:11]]) for text in words]
    BoolSearcher(model, progress=False).search(asked[0])
    before = resident_bytes()
    searcher = BoolSearcher(model, open_store(path), onnx=True)
    times = []
    for number in range(5 + queries):
        began = time.perf_counter()
        searcher.search(asked[number % len(asked)], k=10)
        times.append(1000 * (time.perf_counter() - began))
    p50, p99 = (round(float(value), 1) for value in np.percentile(times[5:], [50, 99]))
    return {"p50_ms": p50, "p99_ms": p99, "memory_MB": round((resident_bytes() - before) / 1e6, 1)}


def resident_bytes() -> int:
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


if __name__ == "__main__":
    main()
