"""Sentences with labels of their cues, scopes and operators, which stage 1 learns from, and how well they are read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from boolbert.boolean import OPERATORS, multi_hot
from boolbert.configuration_boolbert import READING_PARTS
from boolbert.data import DataError, Triplet
from boolbert.data.labels import augment, cue_labels, read_parts, scope_labels
from boolbert.data.sentences import Sentence
from boolbert.modeling_boolbert import BoolBertModel
from boolbert.reading_boolbert import IGNORED_LABEL
from boolbert.retrieval.tokens import Rows


@dataclass(frozen=True)
class LabelledTokens:
    """Sentences as token ids with labels: for each (L,), (3, L), (3, L) and (3,)."""

    ids: list[np.ndarray]
    cues: list[np.ndarray]
    scopes: list[np.ndarray]
    operators: np.ndarray
    pad: int

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def lengths(self) -> np.ndarray:
        return np.array([len(ids) for ids in self.ids])

    def batch(self, rows: Sequence[int] | np.ndarray, length: int | None = None) -> dict[str, Tensor]:
        """Inputs and labels, padded to this length, or to the longest; labels of padding do not count."""
        longest = length or int(self.lengths[list(rows)].max())
        ids = np.full((len(rows), longest), self.pad)
        labels = np.full((2, len(rows), len(OPERATORS), longest), IGNORED_LABEL)
        for place, row in enumerate(rows):
            own = len(self.ids[row])
            ids[place, :own] = self.ids[row]
            labels[0, place, :, :own], labels[1, place, :, :own] = self.cues[row], self.scopes[row]
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy((labels[0, :, 0] != IGNORED_LABEL).astype(np.int64)),
            "cue_labels": torch.from_numpy(labels[0]),
            "scope_labels": torch.from_numpy(labels[1]),
            "gate_labels": torch.from_numpy(self.operators[list(rows)]),
        }


def label_sentences(tokenizer: Any, sentences: Sequence[Sentence], max_length: int) -> LabelledTokens:
    """Tokenise sentences and carry their labels over to the tokens."""
    encoding = tokenizer(
        [sentence.text for sentence in sentences], truncation=True, max_length=max_length, return_offsets_mapping=True
    )
    spans = list(zip(sentences, encoding["offset_mapping"], strict=True))
    return LabelledTokens(
        [np.array(ids) for ids in encoding["input_ids"]],
        [np.array(cue_labels(sentence.text, offsets, sentence.cues)) for sentence, offsets in spans],
        [np.array(scope_labels(sentence.text, offsets, sentence.scopes)) for sentence, offsets in spans],
        np.array([multi_hot(sentence.operators) for sentence in sentences]),
        tokenizer.pad_token_id,
    )


def parsed_sentence(text: str) -> Sentence:
    """A text with the labels that the cue parser gives it."""
    reading = read_parts(text)
    operators = tuple(dict.fromkeys(cue.operator for cue in reading.cues))
    scopes = {operator: reading.scopes(operator) for operator in operators}
    return Sentence(text, operators, reading.cues, scopes)


@dataclass(frozen=True, eq=False)
class TripletSentences:
    """Triplets as rows of `sentences`: the first half as they were written, the second half with other cues."""

    sentences: LabelledTokens
    anchors: Rows  # (triplets,)
    positives: list[Rows]
    negatives: list[Rows]
    variants: int

    def __len__(self) -> int:
        return len(self.anchors)

    def draw(self, seed: int, epoch: int, triplet: int) -> tuple[int, int, int]:
        """A sentence, one that means the same and one that does not, each in one of its variants."""
        random = np.random.default_rng([seed, epoch, triplet])
        chosen = (self.anchors[triplet], random.choice(self.positives[triplet]), random.choice(self.negatives[triplet]))
        written = len(self.sentences) // self.variants
        anchor, positive, negative = (int(row + written * random.integers(self.variants)) for row in chosen)
        return anchor, positive, negative


def prepare_triplets(
    triplets: Iterable[Triplet], tokenizer: Any, *, max_length: int, rate: float = 0.0, seed: int = 0
) -> TripletSentences:
    """Tokenise and label all sentences once; with a `rate`, also a variant in which that share of cues is replaced."""
    texts: list[str] = []
    named: list[str | None] = []  # the operator that the data set names, of each text
    anchors: list[int] = []
    positives: list[Rows] = []
    negatives: list[Rows] = []
    for triplet in triplets:
        anchors.append(len(texts))
        texts.append(triplet.sentence)
        for group, others in ((positives, triplet.positives), (negatives, triplet.negatives)):
            group.append(np.arange(len(texts), len(texts) + len(others)))
            texts += others
        named += [triplet.operator, *[None] * (len(texts) - len(named) - 1)]
    if not anchors:
        raise DataError("there are no triplets to train on")
    sentences = [parsed(text, name) for text, name in zip(texts, named, strict=True)]
    if rate:
        varied = (augment(text, Random(f"{seed}/{row}"), rate)[0] for row, text in enumerate(texts))
        sentences += [parsed(text, name) for text, name in zip(varied, named, strict=True)]
    labelled = label_sentences(tokenizer, sentences, max_length)
    return TripletSentences(labelled, np.array(anchors), positives, negatives, variants=2 if rate else 1)


def parsed(text: str, named: str | None) -> Sentence:
    """A sentence with the parser's scopes. Its operators are those of its cues, and the one that its data set names."""
    reading = read_parts(text)
    strong = tuple(cue for cue in reading.cues if not cue.weak)
    operators = {cue.operator for cue in strong} | ({named} if named else set())
    return Sentence(text, tuple(operators), strong, {operator: reading.scopes(operator) for operator in OPERATORS})


def freeze_reading(model: BoolBertModel) -> None:
    """Keep cues, scopes and gates as they are, and the embeddings that they are read off."""
    for name, parameter in model.named_parameters():
        if name.startswith((*READING_PARTS, "embeddings.")):
            parameter.requires_grad_(False)


@torch.no_grad()
def measure_reading(model: BoolBertModel, data: LabelledTokens, batch_size: int = 256) -> dict[str, Any]:
    """F1 of cues, scopes and gates for each operator, over tokens and over sentences; how often all gates are right.

    Scopes count where the model would act on them: its own gate has to be on. A model without a scope reader has none.
    """
    outputs = {"cue": "cue_logits", "scope": "scope", "gate": "operators"}
    if not model.config.reads_scopes:
        del outputs["scope"]
    counts = {kind: np.zeros((3, len(OPERATORS))) for kind in outputs}
    all_right = 0
    was_training = model.training
    model.eval()
    for start in range(0, len(data), batch_size):
        batch = data.batch(range(start, min(start + batch_size, len(data))))
        reading: Any = model.read(batch["input_ids"].to(model.device), batch["attention_mask"].to(model.device))
        for kind, table in counts.items():
            labels = batch[f"{kind}_labels"].numpy()
            predicted, meant = (getattr(reading, outputs[kind]) > 0).cpu().numpy(), labels == 1
            wrong = predicted & ~meant & (labels != IGNORED_LABEL)
            axes = (0,) if kind == "gate" else (0, 2)
            table += [found.sum(axes) for found in (predicted & meant, wrong, ~predicted & meant)]
            if kind == "gate":
                all_right += int((predicted == meant).all(axis=1).sum())
    model.train(was_training)
    scores: dict[str, Any] = {
        kind: {name: f1(*column) for name, column in zip(OPERATORS, table.T, strict=True)}
        for kind, table in counts.items()
    }
    return {**scores, "gates_right": all_right / len(data)}


def f1(hits: float, wrong: float, missed: float) -> float:
    """The harmonic mean of precision and recall; 1 where there is nothing to find and nothing is found.

    >>> f1(hits=3, wrong=1, missed=1), f1(0, 1, 0), f1(0, 0, 0)
    (0.75, 0.0, 1.0)
    """
    return float(2 * hits / (2 * hits + wrong + missed)) if hits + wrong + missed else 1.0
