"""The document reader on a CPU: the time of a token, with ranges that are known in advance and without."""

import argparse
import statistics
import time

import numpy as np

from boolbert.retrieval.adapters import DOCUMENT_READER, Reader, encoder_of, ranges_of
from speed.timing import Table

LENGTHS = (16, 32, 64, 96, 128)
TOKENS = 400  # that are read at a time
HIDDEN, INSIDE, LAYERS = 384, 1536, 6  # of the default encoder


def measure(options: argparse.Namespace) -> None:
    """CPU microseconds of a token by the length of its text, by one thread. Gproducts: 10^9 products of the model's
    matrices and of attention in a CPU second."""
    folder = encoder_of(DOCUMENT_READER)
    if folder is None:
        print("the default encoder is not on this machine")
        return
    readers = {"a scale for each token": Reader(folder, DOCUMENT_READER)}
    if (ranges := ranges_of(DOCUMENT_READER)) is not None:
        readers["ranges"] = Reader(folder, DOCUMENT_READER, ranges)
    table = Table(tokens=8, rounded_by=-23, us_per_token=13, Gproducts=10)
    for length in LENGTHS:
        ids = np.random.default_rng(length).integers(1000, 20_000, length).tolist()
        times: dict[str, list[float]] = {name: [] for name in readers}
        for _ in range(2 * options.rounds):
            for name, reader in readers.items():
                began = time.process_time()
                for _ in range(-(-TOKENS // length)):
                    reader.scores(ids)
                times[name].append((time.process_time() - began) / (-(-TOKENS // length) * length))
        products = LAYERS * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * INSIDE + 2 * HIDDEN * length)
        for name, own in times.items():
            seconds = statistics.median(own)
            shown = {"us_per_token": round(1e6 * seconds), "Gproducts": round(products / seconds / 1e9)}
            table.add(tokens=length, rounded_by=name, **shown)
