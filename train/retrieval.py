"""Stages 2 and 3: a dual encoder learns to put a query next to the documents that answer it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from torch import Tensor

from boolbert.boolean import OPERATORS, multi_hot
from boolbert.configuration_boolbert import EXCLUSIONS, PAPER, POOLINGS
from boolbert.core.arguments import flag
from boolbert.core.errors import TrainingError
from boolbert.data import Batch, TrainingSampler
from boolbert.data.tasks import HELD_OUT, Splits
from boolbert.modeling_boolbert import BoolBertModel
from boolbert.reading_boolbert import reading_losses
from boolbert.retrieval.metrics import Metrics, group_means, lower_is_better, main_metric, means, search_depth
from boolbert.retrieval.models import OPERATOR_SOURCES
from boolbert.retrieval.neighbours import top_k
from boolbert.retrieval.tokens import TextReader, encode_tokens, gather_rows
from boolbert.train.arguments import RunArguments
from boolbert.train.dual_encoder import DOCUMENT, QUERY, TEMPERATURES, DualEncoder, contrastive_loss, searched_with
from boolbert.train.grad_cache import Side, embedding_backward, reseed
from boolbert.train.labelled_sentences import LabelledTokens, freeze_reading, label_sentences, parsed_sentence
from boolbert.train.loop import can_record, check_batch
from boolbert.train.shapes import PART_COST_CPU, PART_COST_GPU, FixedShapes, Parts, best_count, split_rows

# Batches by which the shapes of all are chosen.
LOOKED_AT = 64
_CORPUS_NEGATIVES = 3  # number of a stream of random numbers that the sampler does not use


@dataclass
class RetrievalArguments(RunArguments):
    """The flags of stages 2 and 3, next to those of every run. The paper's hyperparameters are the defaults."""

    output_dir: str = flag("runs/quest", "folder for the model, its checkpoints and logs")
    gate: str = flag("given", "where a query's operators come from: given (the data), learned or cue (the model)")
    negatives: str = flag("random", "random, or violating: those that break an operator, or that the data lists")
    num_negatives: int = flag(5, "negatives of each query, next to those of the batch")
    hard_negatives: int = flag(2, "with --negatives violating: how many of them are not random")
    freeze_documents: bool = flag(False, "train the query side only, against document vectors computed once")
    corpus_negatives: int = flag(4096, "with freeze_documents: documents that every query is compared with")
    pooling: str | None = flag(None, "cls or mean; as the encoder was trained if not given")
    similarity: str | None = flag(None, "dot or cosine; as the encoder was trained if not given")
    temperature: float | None = flag(None, "divides the scores; 1 for dot, 0.05 for cosine if not given")
    query_length: int = flag(64, "tokens of a query, longer ones are cut")
    document_length: int = flag(256, "tokens of a document, longer ones are cut")
    recipe: str | None = flag(None, "paper: attention as in the paper, and a query vector that is only pooled")
    exclusion: str | None = flag(None, "none, scalar or head; as the encoder has it if not given")
    exclusion_weight: float | None = flag(None, "the strength of exclusion at the start; the encoder's if not given")
    penalty: float | None = flag(
        None, "weight at the start of the penalty on documents similar to what is excluded; 0: none"
    )
    learn_exclusion: bool = flag(True, "whether the strength of exclusion and the penalty learn too")
    branches: int | None = flag(None, "vectors for this many alternatives of OR; as the encoder has it if not given")
    attention: str | None = flag(None, "operators that change attention, such as not or and,or,not; or none")
    original_weight: float = flag(
        0.0, "share of the weights before training in the saved model: keeps what it could do"
    )
    freeze_reading: bool = flag(True, "cues, scopes and the query side's embeddings stay as stage 1 has taught them")
    reading_weight: float = flag(0.0, "without freeze_reading: weight of the loss that keeps cues and scopes")
    dev_split: str = flag("dev", "the split that chooses the best epoch")
    dev_share: float = flag(HELD_OUT, "share of the training queries that is held out where there is no such split")
    metric: str | None = flag(
        None, "chooses the best evaluation; recall@100, or r_precision for fewer than 1,000 documents, if not given"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_one_of("gate", OPERATOR_SOURCES)
        self.require_one_of("negatives", ("random", "violating"))
        self.require_one_of("pooling", POOLINGS)
        self.require_one_of("similarity", tuple(TEMPERATURES))
        self.require_one_of("recipe", ("paper",))
        self.require_one_of("exclusion", EXCLUSIONS)
        self.require_above_0("temperature", "exclusion_weight")
        self.require_least(0, "num_negatives", "penalty", "branches", "reading_weight")
        self.require_least(1, "corpus_negatives")
        self.require_least(3, "query_length", "document_length")  # [CLS], a token and [SEP]
        self.require("original_weight", 0 <= self.original_weight < 1, "a share from 0 to below 1")
        self.require("attention", set(self.attention_operators or []) <= set(OPERATORS), "names of operators, or none")
        self.require("hard_negatives", 0 <= self.hard_negatives <= self.num_negatives, "0 to num_negatives")

    @property
    def attention_operators(self) -> list[str] | None:
        if self.attention is None:
            return None
        return [] if self.attention == "none" else [name.strip() for name in self.attention.split(",")]

    def model_settings(self) -> dict[str, Any]:
        """What these flags change in a Bool-BERT's configuration."""
        settings: dict[str, Any] = dict(PAPER) if self.recipe == "paper" else {}
        flags = {name: getattr(self, name) for name in ("exclusion", "exclusion_weight", "penalty", "branches")}
        flags["attention_operators"] = self.attention_operators
        return settings | {name: value for name, value in flags.items() if value is not None}


class RetrievalStage:
    """In-batch negatives over all processes, `num_negatives` more for each query, a fresh positive in each epoch.

    With `freeze_documents` the document vectors are computed once, and a query is compared with `corpus_negatives`
    documents of the corpus next to those of the batch, or with all of them.
    """

    def __init__(
        self,
        model: DualEncoder,
        data: Splits,
        tokenizer: Any,
        accelerator: Accelerator,
        args: RetrievalArguments,
        metrics: Metrics,
    ):
        self.model: Any = model.to(accelerator.device)
        self.data = data
        self.corpus = data.train.corpus
        self.accelerator = accelerator
        self.args = args
        self.metrics = metrics
        self.metric = self._checked_metric(args.metric)
        self.lower_is_better = lower_is_better(self.metric)
        self.temperature = args.temperature or TEMPERATURES[model.similarity]
        self.documents = TextReader(tokenizer, args.document_length)(self.corpus.texts())
        tasks = {"train": data.train, "dev": data.dev}
        read = TextReader(tokenizer, args.query_length)
        self.queries = {name: read(task.texts) for name, task in tasks.items()}
        self.operators: dict[str, Tensor | None] = dict.fromkeys(tasks)
        if args.gate == "given" and hasattr(model.query, "gate"):
            for name, task in tasks.items():  # (queries, 3); all are known: `with_known_gate`
                self.operators[name] = torch.tensor([multi_hot(one.operators or ()) for one in task.questions])
        self.sampler = self._sampler()
        self.steps_per_epoch = self.sampler.steps_per_epoch
        self.is_recorded = can_record(args, accelerator)
        self.shapes = self._fixed_shapes(model.query.config.max_position_embeddings) if self.is_recorded else {}
        check_batch(min(args.batch_size, len(self.sampler.queries)), accelerator.num_processes)
        self.reading = self._reading(model.query, tokenizer)
        self.frozen: Tensor | None = None
        if args.freeze_documents:
            model.document.requires_grad_(False)
            self.frozen = encode_tokens(model, DOCUMENT, self.documents, accelerator).to(accelerator.device)

    def _sampler(self) -> TrainingSampler:
        args, train = self.args, self.data.train
        hard = train.violators if args.negatives == "violating" else None
        if args.negatives == "violating" and hard is None:
            raise TrainingError(
                "--negatives violating needs the atomic sets of the queries (atoms.json and metadata.atoms), "
                "or listed negatives; this data has none. Try --negatives random"
            )
        count = 0 if hard is None else args.hard_negatives
        sizes = {"batch_size": args.batch_size, "random_negatives": args.num_negatives - count, "seed": args.seed}
        return TrainingSampler(train.gold, hard=hard, hard_negatives=count, **sizes)

    def _reading(self, query: Any, tokenizer: Any) -> LabelledTokens | None:
        """Freeze what the flags want frozen of a Bool-BERT; the labels from which cues and scopes learn, if they do."""
        args = self.args
        if not isinstance(query, BoolBertModel):
            return None
        if not args.learn_exclusion:
            query.composer.requires_grad_(False)
        if args.freeze_reading:
            freeze_reading(query)
            return None
        if not args.reading_weight:
            return None
        if self.accelerator.num_processes > 1:
            raise TrainingError("--reading_weight works in one process; with several take --freeze_reading True")
        return label_sentences(tokenizer, list(map(parsed_sentence, self.data.train.texts)), args.query_length)

    def load(self, epoch: int, step: int) -> dict[str, Any]:
        ranks = self.accelerator.num_processes
        batch = self.sampler.batch(epoch, step)
        shards = [batch.shard(rank, ranks) for rank in range(ranks)]
        own = shards[self.accelerator.process_index]
        queries = self._parts(QUERY, own.queries)
        loaded: dict[str, Any] = {
            "queries": [self._query_inputs(*part) for part in zip(queries.rows, queries.lengths, strict=True)],
            "query_index": queries.places,
            "sizes": [len(shard) for shard in shards],
        }
        if self.reading is not None:
            loaded["reading"] = self.reading.batch(shards[0].queries, max(queries.lengths))
        if self.frozen is not None:
            columns, targets = self._frozen_columns(batch)
            loaded["columns"] = torch.from_numpy(columns)
        else:
            gathered = [batch.gathered(rank, ranks) for rank in range(ranks)]
            columns, targets = gathered[0][0], np.concatenate([target for _, target in gathered])
            documents = self._parts(DOCUMENT, own.documents())
            parts = zip(documents.rows, documents.lengths, strict=True)
            loaded["documents"] = [self.documents.batch(*part) for part in parts]
            loaded["document_index"] = documents.places
            loaded["document_sizes"] = [len(shard.documents()) for shard in shards]
        loaded["targets"] = torch.from_numpy(targets)
        loaded["excluded"] = torch.from_numpy(self.data.train.gold.false_negatives(batch.queries, columns, targets))
        return loaded

    def trial(self) -> Tensor:
        device = self.accelerator.device
        result = self.model(QUERY, send_to_device(self._query_inputs(np.array([0])), device)).sum()
        if self.frozen is None:
            result = result + self.model(DOCUMENT, send_to_device(self.documents.batch([0]), device)).sum()
        return result

    def reseed(self, step: int, side: int = 0, part: int = 0) -> None:
        reseed(self.args.seed, step, self.accelerator.process_index, side, part)

    def backward(self, batch: dict[str, Any], step: int) -> dict[str, Tensor]:

        def loss_of(queries: Tensor, documents: Tensor | None = None) -> Tensor:
            queries = gather_rows(self.accelerator, queries, batch["sizes"])
            if documents is None:
                assert self.frozen is not None
                documents = self.frozen[batch["columns"]]
            else:
                documents = gather_rows(self.accelerator, documents, batch["document_sizes"])
            return contrastive_loss(queries, documents, batch["targets"], batch["excluded"], self.temperature)

        sides = [Side(lambda inputs: self.model(QUERY, inputs), batch["queries"], batch["query_index"])]
        if self.frozen is None:
            sides.append(Side(lambda inputs: self.model(DOCUMENT, inputs), batch["documents"], batch["document_index"]))

        def reseed_part(side: int, part: int) -> None:
            if not self.is_recorded:  # a recording draws all of a step's noise from the seed that was set before it
                self.reseed(step, side, part)

        loss = embedding_backward(
            sides,
            loss_of,
            model=self.model,
            accelerator=self.accelerator,
            reseed=reseed_part,
            keep_graph=self.args.mini_batch_size is None,
        )
        losses = {"loss": loss}
        if self.reading is not None:
            inputs = {name: batch["reading"][name] for name in ("input_ids", "attention_mask")}
            labels = {name: value for name, value in batch["reading"].items() if name not in inputs}
            query = self.accelerator.unwrap_model(self.model).query
            terms = reading_losses(query.read(**inputs), inputs["attention_mask"], **labels)
            losses["reading_loss"] = torch.stack(list(terms.values())).sum()
            self.accelerator.backward(self.args.reading_weight * losses["reading_loss"])
            losses["reading_loss"] = losses["reading_loss"].detach()
        return losses

    def evaluate(self, *, labels: bool = True) -> dict[str, Any]:
        """The dev metrics, and those of each group; without `labels` the model has to find the operators by itself."""
        operators = self.operators["dev"] if labels else None
        queries = encode_tokens(self.model, QUERY, self.queries["dev"], self.accelerator, operators)
        documents = self.frozen
        if documents is None:
            documents = encode_tokens(self.model, DOCUMENT, self.documents, self.accelerator)
        task = self.data.dev
        _, rows = top_k(searched_with(queries, documents), documents, search_depth(task), device=documents.device)
        per_query = self.metrics(task, rows)
        groups = next(iter(task.groups.values()), [])
        return {**means(per_query), "groups": group_means(per_query, groups)}

    def _query_inputs(self, rows: np.ndarray, length: int | None = None) -> dict[str, Tensor]:
        inputs = self.queries["train"].batch(rows, length)
        operators = self.operators["train"]
        if operators is not None:
            inputs["operators"] = operators[torch.from_numpy(rows)]
        return inputs

    def _checked_metric(self, name: str | None) -> str:
        """The metric that chooses the best evaluation. It must be one that the dev queries have."""
        task = self.data.dev
        known = means(self.metrics(task, np.full((len(task), 1), -1)))
        name = name or main_metric(len(self.corpus))
        if name not in known:
            raise TrainingError(f"--metric must be one of {', '.join(known)} for this data, got {name!r}")
        return name

    def _parts(self, side: str, rows: np.ndarray) -> Parts:
        """These rows in parts."""
        tokens = self.queries["train"] if side == QUERY else self.documents
        if side in self.shapes:
            return self.shapes[side].split(rows, tokens)
        unique = np.unique(rows)
        if self.args.mini_batch_size is not None:
            count = -(-len(unique) // self.args.mini_batch_size)
        else:
            overhead = PART_COST_GPU if self.accelerator.device.type == "cuda" else PART_COST_CPU
            count = best_count(np.sort(tokens.lengths[unique]), overhead)
        return split_rows(rows, tokens, count)

    def _fixed_shapes(self, positions: int) -> dict[str, FixedShapes]:
        """The shapes in which the batches of a recorded run are computed, found on some of them."""
        steps = self.steps_per_epoch
        batches = [self.sampler.batch(step // steps, step % steps) for step in range(LOOKED_AT)]
        queries, documents = [batch.queries for batch in batches], [batch.documents() for batch in batches]
        lengths = [min(length, positions) for length in (self.args.query_length, self.args.document_length)]
        shapes = {QUERY: FixedShapes.choose(queries, self.queries["train"], lengths[0])}
        if not self.args.freeze_documents:
            shapes[DOCUMENT] = FixedShapes.choose(documents, self.documents, lengths[1])
        return shapes

    def _frozen_columns(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """The documents to compare with, and the column of each query's positive."""
        count, wanted = len(self.corpus), self.args.corpus_negatives
        if count <= wanted:
            return np.arange(count), batch.positives.astype(np.int64)
        random = np.random.default_rng([self.args.seed, _CORPUS_NEGATIVES, batch.epoch, batch.step])
        columns = np.concatenate([batch.documents(), random.choice(count, wanted, replace=False)])
        return columns.astype(np.int64), np.arange(len(batch))


def with_known_gate(args: RetrievalArguments, data: Splits, say: Callable[[str], None]) -> RetrievalArguments:
    """The flags; where the data lacks the operators of some queries, the model finds them by its cues."""
    unknown = sum(question.operators is None for task in data[:2] for question in task.questions)
    if args.gate != "given" or args.baseline or not unknown:
        return args
    say(f"note: {unknown:,} queries have no metadata.template; the model finds the operators itself (--gate cue)")
    return replace(args, gate="cue")
