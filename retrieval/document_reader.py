"""What a document says of a condition: that it holds, that it does not, or nothing.

The document reader is the default encoder with adapters of its own (retrieval/adapters.py). It sees the condition
beside one sentence of the document at a time, those that are nearest to the condition. Each of a sentence's tokens says
how much speaks for and against the condition; the strongest decide, and the sentence that they stand in is the reason.
"""

import re
from collections.abc import Collection, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.retrieval.adapters import DOCUMENT_READER, Reader, open_reader

SENTENCES = 3  # of a document that are read for a condition
DECIDED = 0.9  # a probability from which the nearest sentence decides, and the others are not read
SENTENCE_TOKENS = 48  # tokens of a sentence that are read
LONG_SENTENCE = 300  # characters; of a longer one the clause nearest to the condition is read, with its neighbours
CONDITION = 24  # tokens of a condition
OUTPUTS = 3  # numbers of a token: it affirms, it denies, nothing is said; the last is read at the first token alone
REMEMBERED = 50_000  # conditions with sentences that were read; then it begins anew
SHARED = 0.2  # how much nearer a sentence is that has all words of a condition, in cosines

Array = npt.NDArray[np.float32]
Span = tuple[int, int]

_END = re.compile(r"[.!?]+[\"')\]”’]*\s+(?=[^a-z\s])|\n+|;\s+|\s[•·|]\s")
_WORD = re.compile(r"\w\w+")
_SMALL = frozenset(["an", "the", "of", "in", "on", "at", "with", "for", "and", "or", "to", "by", "is", "are"])


class Said(NamedTuple):
    """What a document says of a condition: three probabilities, and where the sentence stands that decided."""

    affirms: float
    denies: float
    silent: float
    start: int = 0
    end: int = 0


NOTHING = Said(0.0, 0.0, 1.0)


class Passage(NamedTuple):
    """A condition, and the sentences of a text that are read for it, the nearest first."""

    condition: str
    text: str
    sentences: list[Span]


class DocumentReader:
    """Reads documents for conditions."""

    def __init__(self, reader: Reader, temperature: float = 1.0):
        self._reader, self._temperature = reader, temperature
        self._known: dict[tuple[str, str], Array] = {}  # conditions and sentences that were read before

    def read(self, passages: Sequence[Passage], decided: float = DECIDED) -> list[Said]:
        """What each text says. Where its first sentence says it with this probability, the others are not read."""
        if len(self._known) > REMEMBERED:
            self._known.clear()
        found = self._read([one._replace(sentences=one.sentences[:1]) for one in passages])
        open_ = [row for row, own in enumerate(found) if max(own.affirms, own.denies) < decided]
        for row, own in zip(open_, self._read([passages[row] for row in open_]), strict=True):
            found[row] = own
        return found

    def _read(self, passages: Sequence[Passage]) -> list[Said]:
        wanted = [(one.condition, one.text[slice(*span)]) for one in passages for span in one.sentences]
        new = [pair for pair in dict.fromkeys(wanted) if pair not in self._known]
        inputs = [question(self._reader.tokenizer, *pair) for pair in new]
        scores = self._reader.all_scores([ids for ids, _ in inputs])
        for pair, (_, inside), own in zip(new, inputs, scores, strict=True):
            self._known[pair] = summed(own, inside)
        each = iter([self._known[pair] for pair in wanted])
        return [said([next(each) for _ in one.sentences], one.sentences, self._temperature) for one in passages]


def question(tokenizer: Any, condition: str, sentence: str) -> tuple[list[int], slice]:
    """The tokens of a condition and a sentence, and where the sentence's stand."""
    start, stop = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    asked = tokenizer.encode(condition, add_special_tokens=False).ids[:CONDITION]
    own = tokenizer.encode(sentence, add_special_tokens=False).ids[:SENTENCE_TOKENS]
    return [start, *asked, stop, *own, stop], slice(len(asked) + 2, len(asked) + 2 + len(own))


def summed(scores: Array, inside: slice) -> Array:
    """What a sentence says: for, against, nothing; from its tokens' scores (L, OUTPUTS)."""
    tokens = scores[inside, :2]
    if not len(tokens):
        return np.array([-1e4, -1e4, scores[0, 2]], np.float32)
    return np.append(np.logaddexp.reduce(tokens, axis=0), scores[0, 2])


def said(found: Sequence[Array], sentences: Sequence[Span], temperature: float = 1.0) -> Said:
    """What the sentences of a document say together."""
    if not found:
        return NOTHING
    each = np.stack(found)  # (sentences, 3)
    logits = np.append(np.logaddexp.reduce(each[:, :2], axis=0), each[:, 2].mean()) / temperature
    shares = np.exp(logits - np.logaddexp.reduce(logits))
    strongest = int(each[:, int(shares[1] > shares[0])].argmax())
    affirms, denies, silent = shares.tolist()
    return Said(affirms, denies, silent, *sentences[strongest])


def sentences_of(text: str) -> list[Span]:
    """
    >>> text = "A quiet hotel. There is no pool; ask at approx. noon for the key."
    >>> [text[slice(*span)] for span in sentences_of(text)]
    ['A quiet hotel.', 'There is no pool;', 'ask at approx. noon for the key.']
    """
    edges = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    spans = ((start, start + len(text[start:end].rstrip())) for start, end in pairwise(edges))
    return [(start, end) for start, end in spans if any(map(str.isalnum, text[start:end]))]


def passage(condition: str, text: str, clauses: Sequence[Span], near: Array) -> Passage:
    """The sentences of a text that are nearest to a condition, the nearest first. near: the cosine of each clause."""
    words = {word for word in _WORD.findall(condition.lower()) if word not in _SMALL}
    starts, cosines = np.array([start for start, _ in clauses] or [0]), np.asarray(near)
    scored: list[tuple[float, Span]] = []
    for start, end in sentences_of(text):
        inside = (starts >= start) & (starts < end)
        best = float(cosines[inside].max()) if len(clauses) and inside.any() else 0.0
        has = _share(words, text[start:end])
        span = (start, end)
        if end - start > LONG_SENTENCE and len(clauses) and inside.any():
            own = np.flatnonzero(inside)
            shares = np.array([_share(words, text[slice(*clauses[number])]) for number in own.tolist()])
            nearest = int(own[(cosines[own] + SHARED * shares).argmax()])
            span = max(start, clauses[max(0, nearest - 1)][0]), min(end, clauses[min(len(clauses), nearest + 2) - 1][1])
        scored.append((best + SHARED * has, span))
    chosen = sorted(range(len(scored)), key=lambda row: -scored[row][0])[:SENTENCES]
    return Passage(condition, text, [scored[row][1] for row in chosen])


def _share(words: Collection[str], text: str) -> float:
    """The share of a condition's words that a text has, endings aside."""
    text = text.lower()
    return sum(word[:5] in text for word in words) / max(1, len(words))


@cache
def document_reader() -> DocumentReader | None:
    """The reader that comes with the package; None where its encoder is not to be had."""
    from safetensors import safe_open

    reader = open_reader(DOCUMENT_READER)
    if reader is None:
        return None
    with safe_open(DOCUMENT_READER, framework="np") as file:
        return DocumentReader(reader, float(file.metadata()["temperature"]))
