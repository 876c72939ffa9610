"""The data of stage 1: Boolean sentences as tokens, tokens with cue and scope labels, sentences with operators."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from boolbert.boolean import OPERATORS, CueSpan, augment, cue_labels, find_cues, multi_hot, scope_labels
from boolbert.data import DataError, Triplet
from boolbert.retrieval.tokens import TEXTS_AT_ONCE, Rows, Tokens, pad_rows

# What a token is to an operator. Only the last two are cues.
KINDS = ("none", "one word", "several words")


@dataclass(frozen=True, eq=False)
class Sentences:
    """Tokens, their kind for each operator, whether it reaches them, and each sentence's operators."""

    tokens: Tokens
    kinds: npt.NDArray[np.uint8]  # (tokens, 3), as KINDS
    scopes: npt.NDArray[np.uint8]  # (tokens, 3), 0/1
    operators: npt.NDArray[np.int64]  # (sentences, 3), 0/1

    def batch(self, rows: Rows, length: int | None = None) -> dict[str, Tensor]:
        """Inputs and labels of the pretraining model; `cue_labels` and `scope_labels` are (B, 3, L)."""
        return {
            **self.tokens.batch(rows, length),
            "cue_labels": torch.from_numpy((self.batch_kinds(rows, length) > 0).astype(np.int64)),
            "scope_labels": torch.from_numpy(self.batch_scopes(rows, length)),
            "gate_labels": torch.from_numpy(self.operators[rows]),
        }

    def batch_kinds(self, rows: Rows, length: int | None = None) -> Rows:
        """What each token is to each operator, (B, 3, L); 0 on padding."""
        return self._padded(self.kinds, rows, length)

    def batch_scopes(self, rows: Rows, length: int | None = None) -> Rows:
        """Whether an operator reaches a token, (B, 3, L); 0 on padding."""
        return self._padded(self.scopes, rows, length)

    def _padded(self, values: npt.NDArray[np.uint8], rows: Rows, length: int | None) -> Rows:
        columns = [pad_rows(values[:, e], self.tokens.offsets, rows, 0, length)[0] for e in range(len(OPERATORS))]
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class TripletSentences:
    """Triplets as rows of `sentences`: the first half as they were written, the second half with other cues."""

    sentences: Sentences
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
        written = len(self.sentences.tokens) // self.variants
        anchor, positive, negative = (int(row + written * random.integers(self.variants)) for row in chosen)
        return anchor, positive, negative

    def written(self) -> Rows:
        """The rows of all sentences as they were written."""
        return np.arange(len(self.sentences.tokens) // self.variants)


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
        for group, sentences in ((positives, triplet.positives), (negatives, triplet.negatives)):
            group.append(np.arange(len(texts), len(texts) + len(sentences)))
            texts += sentences
        named += [triplet.operator, *[None] * (len(texts) - len(named) - 1)]
    if not anchors:
        raise DataError("there are no triplets to train on")
    cues = [find_cues(text) for text in texts]
    if rate:
        varied = [augment(text, Random(f"{seed}/{row}"), rate) for row, text in enumerate(texts)]
        texts, named = texts + [text for text, _ in varied], named + named
        cues += [found for _, found in varied]
    labelled = label_sentences(tokenizer, texts, cues, named, max_length)
    return TripletSentences(labelled, np.array(anchors), positives, negatives, variants=2 if rate else 1)


def label_sentences(
    tokenizer: Any, texts: Sequence[str], cues: Sequence[list[CueSpan]], named: Sequence[str | None], max_length: int
) -> Sentences:
    """Token ids, cue kinds and scopes. A sentence's operators are those of its cues, and the one its data set names."""
    ids: list[npt.NDArray[Any]] = [np.empty(0, np.int32)]
    kinds: list[npt.NDArray[Any]] = [np.empty((0, len(OPERATORS)), np.uint8)]
    scopes: list[npt.NDArray[Any]] = [np.empty((0, len(OPERATORS)), np.uint8)]
    lengths = [0]
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        batch = list(texts[start : start + TEXTS_AT_ONCE])
        encoding = tokenizer(batch, truncation=True, max_length=max_length, return_offsets_mapping=True)
        for row, (tokens, offsets) in enumerate(zip(encoding["input_ids"], encoding["offset_mapping"], strict=True)):
            lengths.append(len(tokens))
            ids.append(np.array(tokens, dtype=np.int32))
            kinds.append(token_kinds(batch[row], offsets, cues[start + row]))
            scopes.append(np.array(scope_labels(batch[row], offsets), dtype=np.uint8).reshape(3, -1).T)
    operators = [
        multi_hot({cue.operator for cue in found if not cue.weak} | ({name} if name else set()))
        for found, name in zip(cues, named, strict=True)
    ]
    tokens = Tokens(np.concatenate(ids), np.cumsum(lengths, dtype=np.int64), tokenizer.pad_token_id)
    return Sentences(tokens, np.concatenate(kinds), np.concatenate(scopes), np.array(operators, dtype=np.int64))


def token_kinds(text: str, offsets: Iterable[Sequence[int]], cues: Sequence[CueSpan]) -> npt.NDArray[np.uint8]:
    """What each token is to each operator: (tokens, 3), as `KINDS`.

    >>> token_kinds("a not b", [(0, 1), (2, 5), (6, 7)], find_cues("a not b")).tolist()
    [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    """
    strong = [cue for cue in cues if not cue.weak]
    groups = [
        [cue for cue in strong if len(cue.text.split()) == 1],
        [cue for cue in strong if len(cue.text.split()) > 1],
    ]
    spans = [tuple(span) for span in offsets]
    one, several = (np.array(cue_labels(text, spans, group), dtype=np.uint8).reshape(3, -1).T for group in groups)
    return np.maximum(one, 2 * several)
