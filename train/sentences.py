"""The data of stage 1: triplets of Boolean sentences, tokenised and labelled once."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from boolbert.boolean import OPERATORS, CueSpan, augment, find_cues, read_parts
from boolbert.data import DataError, Triplet
from boolbert.data.sentences import Sentence
from boolbert.retrieval.tokens import Rows
from boolbert.train.reading import LabelledTokens, label_sentences


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
    sentences = [parsed(text, find_cues(text), name) for text, name in zip(texts, named, strict=True)]
    if rate:
        varied = (augment(text, Random(f"{seed}/{row}"), rate) for row, text in enumerate(texts))
        sentences += [parsed(text, cues, name) for (text, cues), name in zip(varied, named, strict=True)]
    labelled = label_sentences(tokenizer, sentences, max_length)
    return TripletSentences(labelled, np.array(anchors), positives, negatives, variants=2 if rate else 1)


def parsed(text: str, cues: Iterable[CueSpan], named: str | None) -> Sentence:
    """A sentence with the parser's scopes. Its operators are those of its cues, and the one that its data set names."""
    strong = tuple(cue for cue in cues if not cue.weak)
    operators = {cue.operator for cue in strong} | ({named} if named else set())
    reading = read_parts(text)
    return Sentence(text, tuple(operators), strong, {operator: reading.scopes(operator) for operator in OPERATORS})
