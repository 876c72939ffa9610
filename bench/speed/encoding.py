"""Encoding a corpus against sentence-transformers' own loop."""

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from boolbert.data import Corpus, Document
from boolbert.retrieval.encode import encode_corpus
from boolbert.retrieval.int8_encoder import CannotUseInt8, Int8Encoder
from boolbert.retrieval.models import load_encoder
from boolbert.retrieval.tokens import WORTH_CACHING
from speed.made_up import cache_in, made_texts, write_encoder
from speed.timing import Table, timed

OURS, CACHED, THEIRS = "encode_corpus", "encode_corpus, cached tokens", "SentenceTransformer.encode"
INT8 = "encode_corpus in int8"
ROUNDS = 3


def measure(options: argparse.Namespace) -> None:
    """Documents a second: sentence-transformers' own loop against this project's, from text and from cached tokens.

    The first pass counts by itself: a GPU meets every shape of a batch for the first time. Theirs takes a quarter.
    """
    texts = made_texts(options.documents)
    corpus = Corpus([Document(f"d{row}", text) for row, text in enumerate(texts)])
    quarter = texts[: len(texts) // 4] if options.gpu else texts
    table = Table(precision=-10, what=-30, first_pass=12, later=12, ratio=8)
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        name = str(write_encoder(Path(scratch, "encoder")))
        for precision in ["bfloat16", "float32"] if options.gpu else ["float32"]:
            model = load_encoder(name, device=options.device, precision=precision, quiet=True)
            model.max_seq_length = 256
            model.encode_document(texts[:8], batch_size=8)

            def ours(model: Any = model) -> None:
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    encode_corpus(model, corpus, Path(folder, "vectors"), progress=False)

            def theirs(model: Any = model) -> None:
                model.encode_document(quarter, batch_size=32)

            works: dict[str, tuple[Callable[[], None], int]] = {OURS: (ours, len(texts))}
            if len(texts) >= WORTH_CACHING:  # after a pass of ours its tokens are cached
                works[CACHED] = works[OURS]
            works[THEIRS] = theirs, len(quarter)
            with suppress(CannotUseInt8):
                int8 = Int8Encoder.of(model)
                works[INT8] = partial(ours, int8), len(texts)
            rates: dict[str, list[float]] = {what: [] for what in works}
            for _ in range(ROUNDS):
                for what, (work, count) in works.items():
                    if what == OURS:
                        shutil.rmtree(Path(os.environ["BOOLBERT_CACHE"], "tokens"), ignore_errors=True)
                    rates[what].append(1000 * count / timed(work, options))
            later = {what: statistics.median(values[1:]) for what, values in rates.items()}
            for what, rate in later.items():
                figures = {"first_pass": rates[what][0], "later": rate, "ratio": rate / later[THEIRS]}
                table.add(precision=precision, what=what, **figures)
