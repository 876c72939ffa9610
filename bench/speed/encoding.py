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


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Documents a second: sentence-transformers' own loop against this project's, from text and from cached tokens."""
    texts = made_texts(options.documents)
    corpus = Corpus([Document(f"d{row}", text) for row, text in enumerate(texts)])
    precisions = ["float32", "bfloat16"] if options.gpu else ["float32"]
    result: dict[str, Any] = {"documents": len(texts), "characters": sum(map(len, texts))}
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        name = str(write_encoder(Path(scratch, "encoder")))
        number = 0

        def ours(model: Any) -> Any:
            nonlocal number
            number += 1
            return encode_corpus(model, corpus, Path(scratch, f"v{number}"), progress=False)

        print(f"{'precision':<12}{'what':<34}{'documents/s':>12}{'ratio':>8}{'GPU busy':>10}")
        for precision in precisions:
            model = load_encoder(name, device=options.device, precision=precision, quiet=True)
            model.max_seq_length = 256
            size = default_batch_size(model)
            short = texts[: 4 * size]
            model.encode_document(short, batch_size=size)
            works: dict[str, Callable[[], Any]] = {
                "SentenceTransformer.encode": lambda m=model: m.encode_document(texts, batch_size=32),
                "the same, our batch size": lambda m=model, s=size: m.encode_document(texts, batch_size=s),
                "encode_corpus": lambda m=model: ours(m),
            }
            times: dict[str, list[float]] = {what: [] for what in works}
            for round_ in range(3 if options.gpu else 2):
                for what, work in works.items():
                    clear_tokens() if what == "encode_corpus" else None
                    times[what].append(timed(work, options) / 1000)
                    if what == "encode_corpus" and len(texts) >= WORTH_CACHING:  # its tokens are cached now
                        again = timed(work, options) / 1000
                        times.setdefault("encode_corpus, cached tokens", []).append(again)
                if options.gpu and precision == "float32" and round_ == 0:
                    break  # the reference point only
            difference = float(np.abs(ours(model)[0:256] - model.encode_document(texts[:256]).astype(np.float32)).max())
            base = statistics.median(times["SentenceTransformer.encode"])
            rows = {}
            for what, seconds in times.items():
                median = statistics.median(seconds)
                busy = busy_share(works[what], options) if what == "encode_corpus" else None
                rows[what] = {
                    "documents_per_second": round(len(texts) / median, 1),
                    "ratio": round(base / median, 3),
                    "gpu_busy": busy,
                }
                shown = "-" if busy is None else f"{busy:.0%}"
                print(
                    f"{precision:<12}{what:<34}{len(texts) / median:>12,.0f}{base / median:>8.2f}{shown:>10}",
                    flush=True,
                )
            result[precision] = {"rates": rows, "largest_difference": difference}
            del model
            if options.gpu:
                torch.cuda.empty_cache()
    return result


def clear_tokens() -> None:
    shutil.rmtree(Path(os.environ["BOOLBERT_CACHE"], "tokens"), ignore_errors=True)
