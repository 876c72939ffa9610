"""How search scales: time, size and recall of FAISS's approximate indexes against the exact search. The vectors are
made up. The stores as they are used: bench/growth.py.

python bench/stores.py --vectors 10000 100000 1000000
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from boolbert.retrieval.faiss_index import FaissIndex
from boolbert.retrieval.neighbours import top_k

K = 10
SIZE = 384
KINDS = ("plain", "NOT", "OR")
TOPICS, LATENT = 2000, 48
NOT_WEIGHT = 0.35  # how strongly NOT excludes


class World:
    """Vectors with topics, as texts have them: a document is a mixture of two topics and something of its own."""

    def __init__(self, seed: int = 0):
        self.random = np.random.default_rng(seed)
        self.topics = self.random.normal(size=(TOPICS, LATENT))
        self.lift = self.random.normal(size=(LATENT, SIZE)) / np.sqrt(LATENT)

    def documents(self, count: int) -> np.ndarray:
        blocks = []
        for start in range(0, count, 50_000):
            rows = min(50_000, count - start)
            one, two = self.random.integers(TOPICS, size=(2, rows))
            latent = self.topics[one] + 0.6 * self.topics[two] + 0.7 * self.random.normal(size=(rows, LATENT))
            noise = 0.15 * self.random.normal(size=(rows, SIZE))
            blocks.append(unit(latent @ self.lift + noise).astype(np.float32))
        return np.concatenate(blocks)

    def queries(self, kind: str, count: int) -> np.ndarray:
        """(Q, 1, D), or (Q, 3, D) for OR: the query's own vector and two alternatives."""
        wanted, other = (self._topics(count) for _ in range(2))
        if kind == "plain":
            return wanted[:, None]
        if kind == "NOT":  # A - l (B - (A.B) A)
            beside = other - (wanted * other).sum(1, keepdims=True) * wanted
            return unit(wanted - NOT_WEIGHT * beside)[:, None].astype(np.float32)
        return np.stack([unit(wanted + other), wanted, other], axis=1).astype(np.float32)

    def _topics(self, count: int) -> np.ndarray:
        one, two = self.random.integers(TOPICS, size=(2, count))
        latent = self.topics[one] + 0.6 * self.topics[two] + 0.4 * self.random.normal(size=(count, LATENT))
        return unit(latent @ self.lift).astype(np.float32)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def curve(options: argparse.Namespace) -> None:
    """Time of a search, size, time of building, and the share of the exact ten that is found."""
    print(f"{os.cpu_count()} cores, torch has {torch.get_num_threads()} threads")
    print("| vectors | index | built in s | MB | ms per search: plain / NOT / OR | recall@10: plain / NOT / OR |")
    print("| --- | --- | --- | --- | --- | --- |")
    for count in options.vectors:
        world = World()
        documents = world.documents(count)
        queries = {kind: world.queries(kind, options.queries) for kind in KINDS}
        exact = {}
        times = []
        for kind in KINDS:
            seconds, exact[kind] = timed(
                queries[kind], lambda asked, documents=documents: top_k(asked, documents, K)[1]
            )
            times.append(seconds)
        print(row_of(count, "exact (torch)", 0.0, documents.nbytes, times, [1.0] * 3), flush=True)
        cells = int(2 ** np.round(np.log2(np.sqrt(count))))
        for factory, settings in (
            ("Flat", ""),
            ("HNSW32,Flat", "efSearch=64"),
            (f"IVF{cells},Flat", "nprobe=32"),
            (f"IVF{cells},SQ8", "nprobe=32"),
        ):
            if "HNSW" in factory and count > options.most_hnsw:
                continue
            start = time.perf_counter()
            index = FaissIndex(documents, factory)
            built = time.perf_counter() - start
            if settings:
                index.set_search(settings)
            times, recalls = [], []
            for kind in KINDS:
                seconds, rows = timed(queries[kind], lambda asked, index=index: index.search(asked, K)[1])
                times.append(seconds)
                shared = [len(np.intersect1d(*pair)) for pair in zip(rows, exact[kind], strict=True)]
                recalls.append(float(np.mean(shared)) / K)
            with tempfile.TemporaryDirectory() as folder:
                index.save(Path(folder) / "index")
                size = (Path(folder) / "index").stat().st_size
            name = f"{factory} {settings}".strip()
            print(row_of(count, name, built, size, times, recalls), flush=True)


def timed(queries: np.ndarray, search: Callable[[np.ndarray], Any]) -> tuple[float, np.ndarray]:
    """The median time of a search of one query at a time, and what was found."""
    search(queries[:1])
    times, found = [], []
    for number in range(len(queries)):
        start = time.perf_counter()
        result = search(queries[number : number + 1])
        times.append(time.perf_counter() - start)
        found.append(result[0])
    return float(np.median(times)), np.stack(found)


def row_of(count: int, name: str, built: float, size: int, times: Sequence[float], recalls: Sequence[float]) -> str:
    shown = " / ".join(f"{1000 * seconds:.1f}" for seconds in times)
    shares = " / ".join(f"{share:.3f}" for share in recalls)
    return f"| {count:,} | {name} | {built:.0f} | {size / 1e6:,.0f} | {shown} | {shares} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, nargs="+", default=[10_000])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--most_hnsw", type=int, default=1_000_000, help="HNSW takes long to build")
    options = parser.parse_args()
    curve(options)


if __name__ == "__main__":
    main()
