"""Stages 2 and 3: a dual encoder learns to put a query next to the documents that answer it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from boolbert.data import Batch, HardNegatives, TrainingSampler
from boolbert.train.dual_encoder import DOCUMENT, QUERY, DualEncoder
from boolbert.train.gather import gather_rows
from boolbert.train.grad_cache import Side, embedding_backward
from boolbert.train.losses import contrastive_loss
from boolbert.train.randomness import reseed
from boolbert.train.ranking_metrics import default_metric, ranking_metrics
from boolbert.train.retrieval_data import RetrievalData, Split
from boolbert.train.tokens import Tokens, tokenize
from boolbert.train.vectors import encode

# What another part costs, in tokens: its small kernels, and adding up the gradients of the word embeddings.
PART_COST_CPU, PART_COST_GPU = 256, 8192
_CORPUS_NEGATIVES = 3  # a stream of random numbers besides the sampler's own


@dataclass
class RetrievalSettings:
    """How the dual encoder is trained; the scripts fill it from their flags."""

    batch_size: int = 32
    negatives: int = 5
    hard_negatives: int = 0
    gate: str = "label"
    temperature: float = 1.0
    query_length: int = 64
    document_length: int = 256
    freeze_documents: bool = False
    corpus_negatives: int = 4096
    parts: int = 1
    seed: int = 0
    metric: str | None = None


class RetrievalStage:
    """In-batch negatives over all processes, `negatives` more for each query, and a fresh positive in each epoch.

    With `freeze_documents` the document vectors are computed once, and a query is compared with `corpus_negatives`
    documents of the corpus besides those of the batch, or with all of them.
    """

    def __init__(
        self,
        model: DualEncoder,
        data: RetrievalData,
        tokenizer: Any,
        accelerator: Accelerator,
        settings: RetrievalSettings,
        hard: HardNegatives | None = None,
    ):
        self.model = model.to(accelerator.device)
        self.data = data
        self.accelerator = accelerator
        self.settings = settings
        self.metric = settings.metric or default_metric(len(data.corpus))
        few = settings.hard_negatives if hard is not None else 0
        self.sampler = TrainingSampler(
            data.train.gold,
            batch_size=settings.batch_size,
            random_negatives=settings.negatives - few,
            hard=hard,
            hard_negatives=few,
            seed=settings.seed,
            drop_last=accelerator.num_processes > 1,
        )
        self.steps_per_epoch = self.sampler.steps_per_epoch
        texts = (data.corpus.text(row) for row in range(len(data.corpus)))
        self.documents = tokenize(tokenizer, texts, settings.document_length, len(data.corpus))
        self.queries = {
            name: tokenize(tokenizer, split.texts, settings.query_length, len(split))
            for name, split in (("train", data.train), ("dev", data.dev))
        }
        labelled = settings.gate == "label" and hasattr(model.query, "gate")
        self.operators = {
            name: gate_labels(split) if labelled else None for name, split in (("train", data.train), ("dev", data.dev))
        }
        self.frozen: Tensor | None = None
        if settings.freeze_documents:
            model.document.requires_grad_(False)
            self.frozen = encode(model, DOCUMENT, self.documents, accelerator)

    def load(self, epoch: int, step: int) -> dict[str, Any]:
        ranks, rank = self.accelerator.num_processes, self.accelerator.process_index
        batch = self.sampler.batch(epoch, step)
        own = batch.shard(rank, ranks)
        shards = [batch.shard(other, ranks) for other in range(ranks)]
        parts, index = self._parts(own.queries, self.queries["train"])
        loaded: dict[str, Any] = {
            "queries": [self._query_inputs(rows) for rows in parts],
            "query_index": index,
            "sizes": [len(shard) for shard in shards],
        }
        if self.frozen is not None:
            columns, targets = self._frozen_columns(batch)
            loaded["columns"] = torch.from_numpy(columns)
        else:
            gathered = [batch.gathered(other, ranks) for other in range(ranks)]
            columns, targets = gathered[0][0], np.concatenate([target for _, target in gathered])
            parts, loaded["document_index"] = self._parts(own.documents(), self.documents)
            loaded["documents"] = [self.documents.batch(rows) for rows in parts]
            loaded["document_sizes"] = [len(shard.documents()) for shard in shards]
        loaded["targets"] = torch.from_numpy(targets)
        loaded["excluded"] = torch.from_numpy(self.data.train.gold.false_negatives(batch.queries, columns, targets))
        return loaded

    def backward(self, batch: dict[str, Any], step: int) -> dict[str, Tensor]:
        rank, seed = self.accelerator.process_index, self.settings.seed

        def loss_of(queries: Tensor, documents: Tensor | None = None) -> Tensor:
            queries = gather_rows(self.accelerator, queries, batch["sizes"])
            if documents is None:
                assert self.frozen is not None
                documents = self.frozen[batch["columns"]]
            else:
                documents = gather_rows(self.accelerator, documents, batch["document_sizes"])
            return contrastive_loss(queries, documents, batch["targets"], batch["excluded"], self.settings.temperature)

        sides = [Side(lambda inputs: self.model(QUERY, inputs), batch["queries"], batch["query_index"])]
        if self.frozen is None:
            sides.append(Side(lambda inputs: self.model(DOCUMENT, inputs), batch["documents"], batch["document_index"]))
        loss = embedding_backward(
            sides,
            loss_of,
            reseed=lambda side, part: reseed(seed, step, rank, side, part),
            backward=self.accelerator.backward,
            keep=self.settings.parts == 1,
        )
        return {"loss": loss}

    def evaluate(self, *, labels: bool = True) -> dict[str, Any]:
        """The dev metrics; without `labels` the model has to find the operators by itself."""
        operators = self.operators["dev"] if labels else None
        queries = encode(self.model, QUERY, self.queries["dev"], self.accelerator, operators)
        documents = self.frozen
        if documents is None:
            documents = encode(self.model, DOCUMENT, self.documents, self.accelerator)
        return ranking_metrics(queries, documents, self.data.dev)

    def _query_inputs(self, rows: np.ndarray) -> dict[str, Tensor]:
        inputs = self.queries["train"].batch(rows)
        operators = self.operators["train"]
        if operators is not None:
            inputs["operators"] = operators[torch.from_numpy(rows)]
        return inputs

    def _parts(self, rows: np.ndarray, tokens: Tokens) -> tuple[list[np.ndarray], Tensor]:
        """The rows in parts of like length, which need little padding, and where each row is then found.

        A row that comes twice is embedded once.
        """
        unique, inverse = np.unique(rows, return_inverse=True)
        order = np.argsort(tokens.lengths[unique], kind="stable")
        count = self.settings.parts
        if count == 1:
            overhead = PART_COST_GPU if self.accelerator.device.type == "cuda" else PART_COST_CPU
            count = best_parts(tokens.lengths[unique[order]], overhead)
        return np.array_split(unique[order], min(count, len(unique))), torch.from_numpy(np.argsort(order)[inverse])

    def _frozen_columns(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """The documents to compare with, and the column of each query's positive."""
        count, wanted = len(self.data.corpus), self.settings.corpus_negatives
        if count <= wanted:
            return np.arange(count), batch.positives.astype(np.int64)
        random = np.random.default_rng([self.settings.seed, _CORPUS_NEGATIVES, batch.epoch, batch.step])
        columns = np.concatenate([batch.documents(), random.choice(count, wanted, replace=False)])
        return columns.astype(np.int64), np.arange(len(batch))


def best_parts(lengths: np.ndarray, overhead: int, most: int = 8) -> int:
    """In how many parts rows of these sorted lengths are embedded at the least cost, padding and overhead together.

    >>> best_parts(np.array([10] * 90 + [200] * 10), overhead=100), best_parts(np.array([64] * 100), overhead=100)
    (8, 1)
    """
    costs = {}
    for count in range(1, min(most, len(lengths)) + 1):
        parts = np.array_split(lengths, count)
        costs[count] = sum(len(part) * int(part[-1]) for part in parts) + count * overhead
    return min(costs, key=lambda count: costs[count])


def gate_labels(split: Split) -> Tensor:
    """The operators of all queries, (queries, 3)."""
    for row, operators in enumerate(split.operators):
        if operators is None:
            raise ValueError(
                f"--gate label needs 'metadata.template' of every query, and {split.texts[row]!r} has none; "
                "try --gate learned or --gate cue"
            )
    return torch.tensor(split.operators)
