"""Encoding a corpus against sentence-transformers' own loop."""

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from boolbert.data import Corpus, Document
from boolbert.retrieval.encode import default_batch_size, encode_corpus
from boolbert.retrieval.models import load_encoder
from boolbert.retrieval.tokens import WORTH_CACHING
from speed.made_up import cache_in, made_texts, write_encoder
from speed.timing import busy_share, timed

OURS, CACHED, THEIRS = "encode_corpus", "encode_corpus, cached tokens", "SentenceTransformer.encode"


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Documents a second: sentence-transformers' own loop against this project's, from text and from cached tokens.

    The first pass counts by itself: a GPU meets every shape of a batch for the first time. Theirs takes a quarter.
    """
    texts = made_texts(options.documents)
    corpus = Corpus([Document(f"d{row}", text) for row, text in enumerate(texts)])
    quarter = texts[: len(texts) // 4] if options.gpu else texts
    result: dict[str, Any] = {"documents": len(texts), "characters": sum(map(len, texts))}
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        name = str(write_encoder(Path(scratch, "encoder")))
        number = 0

        def ours(model: Any) -> Any:
            nonlocal number
            number += 1
            return encode_corpus(model, corpus, Path(scratch, f"v{number}"), progress=False)

        columns = f"{'documents/s':>12}{'ratio':>8}{'first pass':>12}{'ratio':>8}{'GPU busy':>10}"
        print(f"{'precision':<12}{'what':<34}{columns}")
        for precision in ["bfloat16", "float32"] if options.gpu else ["float32"]:
            model = load_encoder(name, device=options.device, precision=precision, quiet=True)
            model.max_seq_length = 256
            size = default_batch_size(model)
            model.encode_document(texts[:8], batch_size=8)
            works: dict[str, tuple[Callable[[], Any], int]] = {
                OURS: (lambda m=model: ours(m), len(texts)),
                THEIRS: (lambda m=model: m.encode_document(quarter, batch_size=32), len(quarter)),
                "the same, our batch size": (
                    lambda m=model, s=size: m.encode_document(quarter, batch_size=s),
                    len(quarter),
                ),
            }
            rates: dict[str, list[float]] = {what: [] for what in works}
            for _ in range(3):
                for what, (work, count) in works.items():
                    clear_tokens() if what == OURS else None
                    rates[what].append(1000 * count / timed(work, options))
                    if what == OURS and len(texts) >= WORTH_CACHING:  # its tokens are cached now
                        again = 1000 * count / timed(work, options)
                        rates.setdefault(CACHED, []).append(again)
            difference = float(np.abs(ours(model)[0:256] - model.encode_document(texts[:256]).astype(np.float32)).max())
            rows = {}
            for what, values in rates.items():
                first, rate = values[0], statistics.median(values[1:])
                is_second = what == CACHED  # the shapes are known by then
                if what == OURS:
                    clear_tokens()
                busy = busy_share(works[what][0], options) if what == OURS else None
                rows[what] = {
                    "documents_per_second": round(rate, 1),
                    "ratio": round(rate / statistics.median(rates[THEIRS][1:]), 3),
                    "first_pass": None if is_second else round(first, 1),
                    "first_ratio": None if is_second else round(first / rates[THEIRS][0], 3),
                    "gpu_busy": busy,
                }
                passed = ("-", "-") if is_second else (f"{first:,.0f}", f"{rows[what]['first_ratio']:.2f}")
                shown = "-" if busy is None else f"{busy:.0%}"
                print(
                    f"{precision:<12}{what:<34}{rate:>12,.0f}{rows[what]['ratio']:>8.2f}{passed[0]:>12}{passed[1]:>8}"
                    f"{shown:>10}",
                    flush=True,
                )
            result[precision] = {"rates": rows, "largest_difference": difference}
            del model
            if options.gpu:
                torch.cuda.empty_cache()
    return result


def clear_tokens() -> None:
    shutil.rmtree(Path(os.environ["BOOLBERT_CACHE"], "tokens"), ignore_errors=True)
