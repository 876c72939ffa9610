"""Stage 1: pretrain Boolean-aware attention on cues, operators, scopes and triplets of Boolean sentences.

accelerate launch train/pretrain.py                                                # the embedded sentences
accelerate launch train/pretrain.py train/recipes/pretrain.yaml --recipe paper --data setbert      # as in the paper
accelerate launch train/pretrain.py --encoder google-bert/bert-base-uncased --output_dir runs/pretrain-base

Only BoolAttn and the embedding layer learn. The output is an --encoder for quest.py, and loads with AutoModel.
"""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from boolbert.core.environment import prepare_training

if __name__ == "__main__":
    prepare_training()  # before torch is imported

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from torch import Tensor, nn

from boolbert import BoolBertForPreTraining
from boolbert.boolean import OPERATORS
from boolbert.configuration_boolbert import PAPER
from boolbert.core.arguments import flag
from boolbert.core.errors import run_script
from boolbert.data import Triplet, epoch_batch, read_triplets
from boolbert.data.embedded import sentences_folder
from boolbert.data.tasks import keep_and_hold
from boolbert.reading_boolbert import reading_losses
from boolbert.train.arguments import RunArguments, parse_arguments
from boolbert.train.dual_encoder import DualEncoder
from boolbert.train.grad_cache import reseed
from boolbert.train.labelled_sentences import TripletSentences, measure_reading, prepare_triplets
from boolbert.train.logs import print_summary
from boolbert.train.loop import Trainer, can_record, check_batch
from boolbert.train.optimizer import is_boolean
from boolbert.train.outputs import fingerprint, identity, is_finished, make_accelerator, open_run, save_run
from boolbert.train.shapes import LENGTH_MULTIPLE, rounded
from boolbert.train.start import Start, find_start

EMBEDDED = "sentences"
# The last two need the whole encoder; scopes are read off the embeddings, and corrected in every layer.
LOSSES = ("cue_loss", "gate_loss", "scope_loss", "triplet_loss", "layer_scope_loss")
# Triplets whose distances are compared in an evaluation; they need the whole encoder, the other scores do not.
EVAL_TRIPLETS = 128


@dataclass
class PretrainArguments(RunArguments):
    """The paper's values are the defaults: one epoch, learning rate 1e-5."""

    output_dir: str = flag("runs/pretrain", "folder for the model, its checkpoints and logs")
    epochs: int = flag(1, "passes over the training data")
    learning_rate: float = flag(1e-5, "of AdamW; linear warm-up, then linear decay to 0")
    augment: float = flag(0.5, "share of cues that are replaced by a synonym in a sentence's second variant")
    triplet_share: float = flag(1.0, "share of a batch's triplets that count in the triplet loss, the costly one")
    max_rows: int | None = flag(None, "triplets to use of each operator; all if not given")
    dev_share: float = flag(0.05, "other data: share of the triplets that is held out")
    skip_bad: bool = flag(False, "pass over broken rows, with a report; the published SetBERT data has some")
    query_length: int = flag(64, "tokens of a sentence, longer ones are cut")
    recipe: str | None = flag(None, "paper: attention, cues and losses as in the paper; no labels of scopes")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("baseline", not self.baseline, "left out: a plain BERT has nothing to learn in stage 1")
        self.require_one_of("recipe", ("paper",))
        self.require("augment", 0 <= self.augment <= 1, "a share from 0 to 1")
        self.require("triplet_share", 0 <= self.triplet_share <= 1, "a share from 0 to 1")


class PretrainingLosses(nn.Module):
    """The losses of some sentences, in the order of LOSSES; the last two of those that are in `triplets`.

    What is read off the embeddings costs little. Where all sentences are in triplets, `sentences` is None.
    """

    def __init__(self, model: BoolBertForPreTraining):
        super().__init__()
        self.model = model

    def forward(self, sentences: dict[str, Tensor] | None, triplets: dict[str, Tensor]) -> Tensor:
        outputs = self.model(**triplets)
        labelled, reading = triplets, outputs
        if sentences is not None:
            labelled, reading = sentences, self.model.bert.read(sentences["input_ids"], sentences["attention_mask"])
        names = ("cue_labels", "gate_labels", "scope_labels")
        labels = {name: labelled[name] for name in names if name in labelled}
        if self.model.bert.scope_reader is None:  # then the layers alone find scopes
            labels.pop("scope_labels", None)
        losses = reading_losses(reading, labelled["attention_mask"], **labels)
        losses["triplet_loss"] = outputs.triplet_loss
        if outputs.scope_loss is not None:
            losses["layer_scope_loss"] = outputs.scope_loss
        zero = outputs.triplet_loss.new_zeros(())
        return torch.stack([losses.get(name, zero).float() for name in LOSSES])


class PretrainingStage:
    """Each batch holds `--batch_size` triplets: a sentence, one that means the same, and one that does not.

    Where time is short, `--triplet_share` says how many of a batch's triplets count in the triplet loss. Where steps
    are recorded, batches are of few lengths.
    """

    metric = "reading"  # the mean of cue F1, scope F1 and gate accuracy
    lower_is_better = False

    def __init__(
        self,
        model: BoolBertForPreTraining,
        train: TripletSentences,
        dev: TripletSentences,
        accelerator: Accelerator,
        args: PretrainArguments,
    ):
        for name, parameter in model.named_parameters():  # only BoolAttn and the embedding layer learn
            parameter.requires_grad_(is_boolean(name) or name.startswith("bert.embeddings."))
        self.model: Any = PretrainingLosses(model).to(accelerator.device)
        self.bert = model
        self.train = train
        self.dev = dev
        self.accelerator = accelerator
        self.args = args
        self.is_recorded = can_record(args, accelerator)
        scope, triplet = model.config.scope_weight, model.config.triplet_weight
        self.weights = torch.tensor([1.0, 1.0, scope, triplet, scope], device=accelerator.device)
        self.steps_per_epoch = -(-len(train) // args.batch_size)
        check_batch(min(len(train), args.batch_size), accelerator.num_processes)

    def load(self, epoch: int, step: int) -> dict[str, Any]:
        args = self.args
        numbers, epochs = epoch_batch(len(self.train), args.batch_size, epoch, step, seed=args.seed)
        pairs = zip(numbers.tolist(), epochs.tolist(), strict=True)
        drawn = np.array([self.train.draw(args.seed, epoch_of, number) for number, epoch_of in pairs])  # (T, 3)
        ranks, rank = self.accelerator.num_processes, self.accelerator.process_index
        in_loss = spread(len(drawn), args.triplet_share)
        own = np.array_split(np.arange(len(drawn)), ranks)[rank]
        # The share of this part in each loss's mean over the whole batch.
        whole = self._counted(drawn, drawn[in_loss])
        count = -(-3 * len(own) // (args.mini_batch_size or 3 * len(own)))
        loaded = []
        for rows in np.array_split(own, min(count, len(own))):
            part, chosen = drawn[rows], drawn[rows[in_loss[rows]]]
            counted = self._counted(part, chosen)
            # A part without a triplet that counts gets one with weight 0, so that all parameters get a gradient.
            triplets = chosen if len(chosen) else part[:1]
            loaded.append(
                {
                    "sentences": None if len(chosen) == len(part) else self._sentences(part.ravel(), self.train),
                    "triplets": self._inputs(triplets, self.train),
                    "shares": torch.tensor(counted) / torch.tensor(whole).clamp_min(1),
                }
            )
        return {"parts": loaded}

    def trial(self) -> Tensor:
        rows = np.array([self.train.draw(self.args.seed, 0, 0)])
        inputs = send_to_device(self._inputs(rows, self.train), self.accelerator.device)
        return self.model(None, inputs).sum()

    def reseed(self, step: int) -> None:
        reseed(self.args.seed, step, self.accelerator.process_index, 0)

    def backward(self, batch: dict[str, Any], step: int) -> dict[str, Tensor]:
        losses = torch.zeros(len(LOSSES), device=self.accelerator.device)
        for number, part in enumerate(batch["parts"]):
            last = number == len(batch["parts"]) - 1
            # The processes exchange gradients once, and average them: the sum is wanted.
            with nullcontext() if last else self.accelerator.no_sync(self.model):
                own = self.model(part["sentences"], part["triplets"]) * part["shares"]
                self.accelerator.backward(self.accelerator.num_processes * (own * self.weights).sum())
            losses += own.detach()
        losses = self.accelerator.reduce(losses, "sum")
        return {"loss": (losses * self.weights).sum(), **dict(zip(LOSSES, losses, strict=True))}

    def evaluate(self) -> dict[str, Any]:
        """F1 of cues, scopes and gates, and how often a sentence is nearer to one of its meaning."""
        found = measure_reading(self.bert.bert, self.dev.sentences)
        scores = {"gate_accuracy": found.pop("gates_right")}
        scores |= {f"{kind}_f1": float(np.mean(list(values.values()))) for kind, values in found.items()}
        parts = [scores[name] for name in ("cue_f1", "gate_accuracy", "scope_f1") if name in scores]
        scores |= {"reading": sum(parts) / len(parts), "triplet_accuracy": self._triplet_accuracy()}
        groups = {name: {f"{kind}_f1": values[name] for kind, values in found.items()} for name in OPERATORS}
        return {**scores, "groups": groups}

    def _triplet_accuracy(self) -> float:
        chosen = np.linspace(0, len(self.dev) - 1, min(EVAL_TRIPLETS, len(self.dev))).astype(int)
        near = 0
        for part in np.array_split(chosen, -(-len(chosen) // 32)):
            rows = np.array([[self.dev.anchors[t], self.dev.positives[t][0], self.dev.negatives[t][0]] for t in part])
            inputs = send_to_device(self._inputs(rows, self.dev), self.accelerator.device)
            vectors = self.bert(**inputs).sentence_embedding
            anchor, positive, negative = vectors.chunk(3)
            near += int(((anchor - positive).norm(dim=1) < (anchor - negative).norm(dim=1)).sum())
        return near / len(chosen)

    def _inputs(self, drawn: np.ndarray, of: TripletSentences) -> dict[str, Tensor]:
        """Anchors, then positives, then negatives; the operators are given, as the gate has a loss of its own."""
        inputs = self._sentences(drawn.T.ravel(), of)
        triplets = torch.arange(3 * len(drawn)).view(3, -1).T
        return {**inputs, "operators": inputs["gate_labels"], "triplets": triplets}

    def _sentences(self, rows: np.ndarray, of: TripletSentences) -> dict[str, Tensor]:
        length = None
        if self.is_recorded:
            longest, limit = int(of.sentences.lengths[rows].max()), self.bert.config.max_position_embeddings
            length = rounded(longest, LENGTH_MULTIPLE, limit)
        found = of.sentences.batch(rows, length)
        if self.args.recipe == "paper":  # nobody tells the layers what an operator reaches
            del found["scope_labels"]
        return found

    def _counted(self, drawn: np.ndarray, in_loss: np.ndarray) -> tuple[int, ...]:
        """What each loss is a mean over: tokens, sentences, tokens, triplets, tokens in triplets that count."""
        lengths = self.train.sentences.lengths
        tokens = int(lengths[drawn].sum())
        return tokens, drawn.size, tokens, len(in_loss), int(lengths[in_loss].sum())


def spread(count: int, share: float) -> np.ndarray:
    """Which of `count` rows are chosen for there to be this share of them, evenly spread.

    >>> spread(6, 0.5).astype(int).tolist(), int(spread(7, 1.0).sum()), int(spread(7, 0.0).sum())
    ([0, 1, 0, 1, 0, 1], 7, 0)
    """
    return np.diff(np.floor(np.arange(count + 1) * share + 1e-9)) > 0


def main(words: Sequence[str] | None = None) -> None:
    words = sys.argv[1:] if words is None else words
    args = parse_arguments(PretrainArguments, __doc__, words, embedded="pretrain_sentences.yaml")
    accelerator = make_accelerator(args)
    start = find_start(args.encoder, allow_random=args.allow_random)
    train, dev, note = read_data(args)
    wanted = identity(args, accelerator, fingerprint(*train, *dev))
    if is_finished(args, wanted, start.path):
        accelerator.print(f"{args.output_dir} is finished, with these flags and this data; --overwrite trains it again")
        return
    accelerator.print(f"{start.encoder.note}\n{note}")
    tokenizer = start.tokenizer()
    stage = PretrainingStage(
        build_model(start, args),
        prepare_triplets(train, tokenizer, max_length=args.query_length, rate=args.augment, seed=args.seed),
        prepare_triplets(dev, tokenizer, max_length=args.query_length),
        accelerator,
        args,
    )
    trainer = Trainer(stage, args, accelerator, wanted)
    open_run("pretrain", args, accelerator, wanted, start.record())
    progress = trainer.fit()
    if accelerator.is_main_process:
        # With the plain BERT that it came from as its document encoder: what stage 2 starts from.
        settings = {"pooling": start.encoder.pooling, "similarity": start.encoder.similarity}
        model = DualEncoder(stage.bert.bert.cpu(), start.document_encoder(), **settings)
        metrics = progress.metrics(stage.metric)
        save_run(args, model, tokenizer, metrics, query_length=args.query_length)
        print_summary(args.output_dir, metrics)
    accelerator.end_training()


def read_data(args: PretrainArguments) -> tuple[list[Triplet], list[Triplet], str]:
    """Training and held-out triplets, and a line about them."""
    data = args.data or EMBEDDED
    train = list(read_triplets(data, skip_bad=args.skip_bad))
    if data == EMBEDDED:
        dev = list(read_triplets(sentences_folder("dev")))
    else:
        kept, held = keep_and_hold(len(train), args.dev_share)
        train, dev = [train[row] for row in kept], [train[row] for row in held]
    if args.max_rows is not None:
        names = dict.fromkeys(triplet.operator for triplet in train)  # in their order, which a set does not keep
        train = [t for name in names for t in [t for t in train if t.operator == name][: args.max_rows]]
    return train, dev, f"Data: {data}, {len(train):,} triplets, {len(dev):,} held out"


def build_model(start: Start, args: PretrainArguments) -> BoolBertForPreTraining:
    # What stage 1 teaches, a reader with adapters would know already.
    settings = dict(PAPER) if args.recipe == "paper" else {"reader_rank": 0}
    bert: Any = start.query_encoder(baseline=False, seed=args.seed, **settings)
    model = BoolBertForPreTraining(bert.config)
    model.bert = bert
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    return model


if __name__ == "__main__":
    run_script(main)
