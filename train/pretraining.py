"""Stage 1: Boolean-aware attention learns cues, operators, scopes and triplets of sentences, in a frozen BERT."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from torch import Tensor, nn

from boolbert import BoolBertForPreTraining
from boolbert.boolean import OPERATORS
from boolbert.boolean.measure import f1
from boolbert.data import epoch_batch
from boolbert.modeling_boolbert import reading_losses
from boolbert.train.grad_cache import reseed
from boolbert.train.loop import check_batch
from boolbert.train.optimizer import is_boolean
from boolbert.train.sentences import KINDS, TripletSentences
from boolbert.train.shapes import LENGTH_MULTIPLE, rounded

# The last two need the whole encoder; scopes are read off the embeddings, and corrected in every layer.
LOSSES = ("cue_loss", "gate_loss", "scope_loss", "triplet_loss", "layer_scope_loss")
EVAL_BATCH = 128
# Triplets whose distances are compared in an evaluation; they need the whole encoder, the other scores do not.
EVAL_TRIPLETS = 128


def freeze_bert(model: BoolBertForPreTraining) -> None:
    """Only BoolAttn and the embedding layer learn."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(is_boolean(name) or name.startswith("bert.embeddings."))


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
        labels = {name: labelled[name] for name in ("cue_labels", "gate_labels", "scope_labels")}
        if self.model.bert.scope_reader is None:  # as in the paper: the layers alone find scopes
            del labels["scope_labels"]
        losses = reading_losses(reading, labelled["attention_mask"], **labels)
        losses |= {"triplet_loss": outputs.triplet_loss, "layer_scope_loss": outputs.scope_loss}
        zero = outputs.triplet_loss.new_zeros(())
        return torch.stack([losses.get(name, zero).float() for name in LOSSES])


class PretrainingStage:
    """Each batch holds `batch_size` triplets: a sentence, one that means the same, and one that does not.

    Where time is short, `triplet_share` says how many of a batch's triplets count in the triplet loss. Where steps are
    recorded, batches are of few lengths.
    """

    metric = "reading"  # the mean of cue F1, scope F1 and gate accuracy
    lower_is_better = False

    def __init__(
        self,
        model: BoolBertForPreTraining,
        train: TripletSentences,
        dev: TripletSentences,
        accelerator: Accelerator,
        *,
        batch_size: int = 32,
        mini_batch_size: int | None = None,
        triplet_share: float = 1.0,
        seed: int = 0,
        is_recorded: bool = False,
    ):
        freeze_bert(model)
        self.model: Any = PretrainingLosses(model).to(accelerator.device)
        self.bert = model
        self.train = train
        self.dev = dev
        self.accelerator = accelerator
        self.batch_size = batch_size
        self.mini_batch_size = mini_batch_size
        self.triplet_share = triplet_share
        self.seed = seed
        self.is_recorded = is_recorded
        scope, triplet = model.config.scope_weight, model.config.triplet_weight
        self.weights = torch.tensor([1.0, 1.0, scope, triplet, scope], device=accelerator.device)
        self.steps_per_epoch = -(-len(train) // batch_size)
        check_batch(min(len(train), batch_size), accelerator.num_processes)

    def load(self, epoch: int, step: int) -> dict[str, Any]:
        numbers, epochs = epoch_batch(len(self.train), self.batch_size, epoch, step, seed=self.seed)
        pairs = zip(numbers.tolist(), epochs.tolist(), strict=True)
        drawn = np.array([self.train.draw(self.seed, epoch_of, number) for number, epoch_of in pairs])  # (T, 3)
        ranks, rank = self.accelerator.num_processes, self.accelerator.process_index
        in_loss = spread(len(drawn), self.triplet_share)
        own = np.array_split(np.arange(len(drawn)), ranks)[rank]
        # The share of this part in each loss's mean over the whole batch.
        whole = self._counted(drawn, drawn[in_loss])
        count = -(-3 * len(own) // (self.mini_batch_size or 3 * len(own)))
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
        rows = np.array([self.train.draw(self.seed, 0, 0)])
        inputs = send_to_device(self._inputs(rows, self.train), self.accelerator.device)
        return self.model(None, inputs).sum()

    def reseed(self, step: int) -> None:
        reseed(self.seed, step, self.accelerator.process_index, 0)

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
        """F1 of cues and scopes, accuracy of the gate, and how often a sentence is nearer to one of its meaning."""
        sentences, device = self.dev.sentences, self.accelerator.device
        found, kinds, gates, in_scope, scopes = [], [], [], [], []
        rows = self.dev.written()
        for start in range(0, len(rows), EVAL_BATCH):
            batch = rows[start : start + EVAL_BATCH]
            inputs = send_to_device(sentences.tokens.batch(batch), device)
            reading: Any = self.bert.bert.read(**inputs)
            real = inputs["attention_mask"].bool().cpu().numpy()
            found.append((reading.cue_logits > 0).cpu().numpy().transpose(0, 2, 1)[real])
            kinds.append(sentences.batch_kinds(batch).transpose(0, 2, 1)[real])
            gates.append((reading.gate_logits > 0).cpu().numpy())
            if reading.scope is not None:
                in_scope.append((reading.scope > 0).cpu().numpy().transpose(0, 2, 1)[real])
                scopes.append(sentences.batch_scopes(batch).transpose(0, 2, 1)[real] > 0)
        scores = cue_scores(np.concatenate(found), np.concatenate(kinds))
        scores |= gate_scores(np.concatenate(gates), sentences.operators[rows])
        if scopes:
            scores |= scope_scores(np.concatenate(in_scope), np.concatenate(scopes))
        parts = [scores[name] for name in ("cue_f1", "gate_accuracy", "scope_f1") if name in scores]
        return {"reading": sum(parts) / len(parts), **scores, "triplet_accuracy": self._triplet_accuracy()}

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
        if not self.is_recorded:
            return of.sentences.batch(rows)
        longest, limit = int(of.sentences.tokens.lengths[rows].max()), self.bert.config.max_position_embeddings
        return of.sentences.batch(rows, rounded(longest, LENGTH_MULTIPLE, limit))

    def _counted(self, drawn: np.ndarray, in_loss: np.ndarray) -> tuple[int, ...]:
        """What each loss is a mean over: tokens, sentences, tokens, triplets, tokens in triplets that count."""
        lengths = self.train.sentences.tokens.lengths
        tokens = int(lengths[drawn].sum())
        return tokens, drawn.size, tokens, len(in_loss), int(lengths[in_loss].sum())


def spread(count: int, share: float) -> np.ndarray:
    """Which of `count` rows are chosen for there to be this share of them, evenly spread.

    >>> spread(6, 0.5).astype(int).tolist(), int(spread(7, 1.0).sum()), int(spread(7, 0.0).sum())
    ([0, 1, 0, 1, 0, 1], 7, 0)
    """
    return np.diff(np.floor(np.arange(count + 1) * share + 1e-9)) > 0


def cue_scores(predicted: npt.NDArray[np.bool_], kinds: npt.NDArray[Any]) -> dict[str, Any]:
    """F1 over tokens, from predictions and true kinds, both (tokens, 3).

    The F1 of one kind of cue leaves out tokens of the other kind. A token that is predicted but is no cue at all
    counts as a mistake for both kinds.

    >>> predicted = np.array([[True, False, False], [True, False, False], [False, False, True]])
    >>> scores = cue_scores(predicted, np.array([[1, 0, 0], [0, 0, 0], [0, 0, 2]]))
    >>> round(scores["cue_f1_and"], 3), scores["cue_f1_not"], scores["kinds"]["not"]["several words"]["tokens"]
    (0.667, 1.0, 1)
    """
    scores: dict[str, Any] = {}
    by_kind: dict[str, Any] = {}
    for index, operator in enumerate(OPERATORS):
        found, kind = predicted[:, index], kinds[:, index]
        wrong = int((found & (kind == 0)).sum())
        scores[f"cue_f1_{operator}"] = f1(int((found & (kind > 0)).sum()), wrong, int((~found & (kind > 0)).sum()))
        by_kind[operator] = {
            name: {
                "tokens": int((kind == code).sum()),
                "f1": f1(int((found & (kind == code)).sum()), wrong, int((~found & (kind == code)).sum())),
                "recall": float(found[kind == code].mean()) if (kind == code).any() else None,
            }
            for code, name in enumerate(KINDS)
            if code
        }
    return {"cue_f1": float(np.mean(list(scores.values()))), **scores, "kinds": by_kind}


def gate_scores(predicted: npt.NDArray[Any], operators: npt.NDArray[Any]) -> dict[str, float]:
    """Accuracy of the predicted operators, (sentences, 3): of all three together, and of each.

    >>> gate_scores(np.array([[1, 0, 0], [0, 0, 1]]), np.array([[1, 0, 0], [0, 1, 1]]))["gate_accuracy"]
    0.5
    """
    right = predicted == operators
    each = {f"gate_accuracy_{operator}": float(right[:, index].mean()) for index, operator in enumerate(OPERATORS)}
    return {"gate_accuracy": float(right.all(axis=1).mean()), **each}


def scope_scores(predicted: npt.NDArray[np.bool_], scopes: npt.NDArray[np.bool_]) -> dict[str, float]:
    """F1 over tokens of what each operator reaches, both (tokens, 3), and their mean.

    >>> scope_scores(np.array([[1, 0, 1], [1, 0, 0]]) > 0, np.array([[1, 0, 1], [0, 0, 1]]) > 0)["scope_f1_and"]
    0.6666666666666666
    """
    hits, wrong, missed = (predicted & scopes).sum(0), (predicted & ~scopes).sum(0), (~predicted & scopes).sum(0)
    each = {f"scope_f1_{name}": f1(int(hits[e]), int(wrong[e]), int(missed[e])) for e, name in enumerate(OPERATORS)}
    return {"scope_f1": float(np.mean(list(each.values()))), **each}
