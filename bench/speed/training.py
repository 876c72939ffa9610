"""Training steps against those of sentence-transformers' trainer."""

import argparse
import random
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from accelerate.utils import send_to_device
from sentence_transformers import SentenceTransformer, util
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from boolbert.data.lines import write_rows
from boolbert.data.tasks import quest_splits
from boolbert.retrieval.metrics import quest_metrics
from boolbert.train.loop import Trainer
from boolbert.train.outputs import make_accelerator
from boolbert.train.retrieval import RetrievalArguments, RetrievalStage
from boolbert.train.retrieval_run import build_model
from boolbert.train.start import find_start
from speed.made_up import cache_in, made_texts, sentences, write_encoder
from speed.timing import Table, in_turn

THEIRS = "sentence-transformers, BERT"


def measure(options: argparse.Namespace) -> None:
    """A step of stage 2 against what sentence-transformers' trainer does, on documents that do not repeat.

    Theirs, by hand, since their trainer needs `datasets`: texts tokenized in the loop, MultipleNegativesRankingLoss,
    AdamW, clipped gradients. Batch 32 and 5 negatives for each query: 192 documents.
    """
    batch, negatives, length, steps = (32, 5, 256, 10) if options.gpu else (8, 2, 64, 2)
    flags = {"batch_size": batch, "num_negatives": negatives, "document_length": length}
    table = Table(size=-8, trainer=-30, steps_per_second=18, ratio=8)
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        data = quest_splits(str(write_data(Path(scratch, "data"), batch * 64, batch * 64 * (1 + negatives))))
        for size in ["minilm", "base"] if options.gpu else ["minilm"]:
            encoder, folder = write_encoder(Path(scratch, size), size), Path(scratch, f"run {size}")
            runs: dict[str, Any] = {
                THEIRS: Theirs(encoder, data, steps, options, **flags),
                "Bool-BERT": Ours(encoder, data, folder / "b", steps, options, **flags),
                "BERT": Ours(encoder, data, folder / "p", steps, options, baseline=True, **flags),
            }
            times = in_turn(runs, options, rounds=3, warm=1)
            for name, time in times.items():
                table.add(size=size, trainer=name, steps_per_second=1000 * steps / time, ratio=times[THEIRS] / time)
            for run in runs.values():
                run.close()


class Ours:
    """Some steps of this project's loop."""

    def __init__(
        self, encoder: Path, data: Any, folder: Path, steps: int, options: argparse.Namespace, **flags: Any
    ) -> None:
        precision = "bf16" if options.gpu else "no"
        common = {"mixed_precision": precision, "tracker": "none", "epochs": 1000, "threads": options.threads}
        args = RetrievalArguments(output_dir=str(folder), **common, **flags)
        accelerator = make_accelerator(args)
        start = find_start(str(encoder))
        stage = RetrievalStage(build_model(start, args), data, start.tokenizer(), accelerator, args, quest_metrics)
        self.trainer = Trainer(stage, args, accelerator)
        self.trainer.log = mock.Mock()  # which says nothing
        self.batches: Any = self.trainer.batches()
        self.steps = steps

    def __call__(self) -> None:
        self.trainer.model.train()
        for _ in range(self.steps):
            self.trainer._step(self.batches)

    def close(self) -> None:
        self.batches.close()
        self.trainer.compute.close()


def write_data(folder: Path, queries: int, documents: int) -> Path:
    """QUEST-format data, each document an answer at most once."""
    folder.mkdir()
    texts = enumerate(made_texts(documents, seed=1))
    write_rows(folder / "documents.jsonl", [{"title": f"d{row}", "text": text} for row, text in texts])
    known = sentences()
    rows = [
        {
            "query": f"{known[row % len(known)][:60]} that are not {known[(7 * row + 1) % len(known)][:40]}",
            "docs": [f"d{row}"],
            "metadata": {"template": "_ that are not _"},
        }
        for row in range(queries)
    ]
    for name, part in (("train", rows), ("dev", rows[:8])):
        write_rows(folder / f"{name}.jsonl", part)
    return folder


class Theirs:
    """sentence-transformers' loss and tokenizing, a step at a time, as its trainer does them."""

    def __init__(self, encoder: Path, data: Any, steps: int, options: argparse.Namespace, **flags: int) -> None:
        first = Transformer(str(encoder))
        first.max_seq_length = flags["document_length"]
        pooling = Pooling(first.get_embedding_dimension(), pooling_mode="mean")
        self.model = SentenceTransformer(modules=[first, pooling], device=options.device)
        self.loss = MultipleNegativesRankingLoss(self.model, scale=20.0, similarity_fct=util.cos_sim)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-5)
        self.data, self.steps, self.options, self.rng = data, steps, options, random.Random(0)
        self.batch, self.negatives = flags["batch_size"], flags["num_negatives"]

    def __call__(self) -> None:
        for _ in range(self.steps):
            self.step()

    def close(self) -> None: ...

    def step(self) -> None:
        corpus, train = self.data.train.corpus, self.data.train
        queries = [self.rng.randrange(len(train.texts)) for _ in range(self.batch)]
        columns = [[train.texts[query] for query in queries], [corpus.text(query) for query in queries]]
        columns += [
            [corpus.text(self.rng.randrange(len(corpus))) for _ in range(self.batch)] for _ in range(self.negatives)
        ]
        features = [send_to_device(self.model.preprocess(column), self.options.device) for column in columns]
        with torch.autocast(self.options.device.split(":")[0], torch.bfloat16, enabled=self.options.gpu):
            loss = self.loss(features, torch.zeros(self.batch))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
