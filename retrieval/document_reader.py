"""What a document says of a condition: that it holds, that it does not, or nothing.

The document reader is the default encoder with adapters of its own (retrieval/adapters.py). It sees the condition
beside the sentences of the document that are nearest to it, in the document's order. Each of their tokens says how much
speaks for and against the condition. The reason is the sentence of the strongest token, or one that says it by itself.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.retrieval.adapters import DOCUMENT_READER, Reader, encoder_of, ranges_of

if TYPE_CHECKING:
    from boolbert.retrieval.gpu_reader import GpuReader

SENTENCES = 12  # most sentences of a document that are looked at for a condition
TOKENS = 96  # of a document that are read for a condition
FIRST_TOKENS = 16  # a first sentence of at most as many tokens is always read: it may be the title
LONG_SENTENCE = 300  # characters; of a longer one the clauses nearest to the condition are read, with their neighbours
CONDITION = 24  # tokens of a condition
NEARER = 0.2  # what a sentence's strongest token has less as a reason, for each sentence that is nearer
LIKELY = 0.5  # a probability from which something is said to hold
OUTPUTS = 3  # numbers of a token: it affirms, it denies, nothing is said; the last is read at the first token alone
REMEMBERED = 20_000  # conditions with sentences that were read, and sentences in tokens; then it begins anew
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

    @property
    def span(self) -> "Span":
        return self.start, self.end

    @property
    def is_sure(self) -> bool:
        """Whether it affirms or denies."""
        return max(self.affirms, self.denies) >= LIKELY


NOTHING = Said(0.0, 0.0, 1.0)


class Passage(NamedTuple):
    """A condition, and the sentences of a text that are read for it, the nearest first."""

    condition: str
    text: str
    sentences: list[Span]


class Piece(NamedTuple):
    """A sentence that is read: where it stands, its tokens, and how many sentences are nearer to the condition."""

    span: Span
    ids: list[int]
    nearer: int


class RememberingTokenizer:
    """A tokenizer that remembers the texts it has seen, and begins anew after many."""

    def __init__(self, tokenizer: Any):
        self._tokenizer, self._found = tokenizer, dict[tuple[tuple[str, ...], bool], Any]()

    def encode(self, *texts: str, add_special_tokens: bool = True) -> Any:
        key = texts, add_special_tokens
        if (found := self._found.get(key)) is None:
            if len(self._found) >= REMEMBERED:
                self._found = {}
            found = self._found[key] = self._tokenizer.encode(*texts, add_special_tokens=add_special_tokens)
        return found


class DocumentReader:
    """Reads documents for conditions."""

    def __init__(self, reader: "Reader | GpuReader", temperature: float = 1.0):
        self._reader, self._temperature = reader, temperature
        self._tokenizer = RememberingTokenizer(reader.tokenizer)  # several conditions are asked of a sentence
        self._known: dict[bytes, Summed] = {}  # what was read before, by its tokens

    @property
    def at_once(self) -> int:
        """How many passages are read in the time of one."""
        return self._reader.at_once

    def read(self, passages: Sequence[Passage]) -> list[Said]:
        """What each text says of its condition."""
        if len(self._known) > REMEMBERED:
            self._known = {}
        known = self._known  # another thread may begin anew meanwhile
        pieces = [chosen(self._tokenizer, one) for one in passages]
        inputs = [
            question(self._tokenizer, condition_ids(self._tokenizer, one.condition), own)
            for one, own in zip(passages, pieces, strict=True)
        ]
        keys = [np.array(ids, np.int32).tobytes() for ids, _ in inputs]
        new = {key: row for row, key in enumerate(keys) if key not in known}
        scores = self._reader.all_scores([inputs[row][0] for row in new.values()])
        for (key, row), own in zip(new.items(), scores, strict=True):
            known[key] = summed(own, inputs[row][1])
        return [said(known[key], own, self._temperature) for key, own in zip(keys, pieces, strict=True)]

    def with_plain_sentences(self, passages: Sequence[Passage], found: Sequence[Said]) -> list[Said]:
        """What `read` found, each with a sentence that says it by itself, where there is one. What stands out beside
        others need not: "a kingdom" denies a republic, but the token that shows it may be elsewhere."""
        each = list(found)
        spoken = [row for row, one in enumerate(each) if one.is_sure]
        shares = self._alone([(passages[row], each[row].span, each[row]) for row in spoken])
        doubtful = [row for row, share in zip(spoken, shares, strict=True) if share < LIKELY]
        spans = [[piece.span for piece in chosen(self._tokenizer, passages[row])] for row in doubtful]
        asked = [(passages[row], span, each[row]) for row, own in zip(doubtful, spans, strict=True) for span in own]
        alone = iter(self._alone(asked))
        for row, own in zip(doubtful, spans, strict=True):
            share, best = max(zip(islice(alone, len(own)), own, strict=True), key=lambda pair: pair[0])
            if share >= LIKELY:
                each[row] = each[row]._replace(start=best[0], end=best[1])
        return each

    def reads_whole(self, text: str) -> bool:
        """Whether all of a text is read for any condition, so that its sentences need not be chosen."""
        spans = sentences_of(text)
        if len(spans) > SENTENCES or any(end - start > LONG_SENTENCE for start, end in spans):
            return False
        pieces = (self._tokenizer.encode(text[start:end], add_special_tokens=False) for start, end in spans)
        return sum(len(piece.ids) for piece in pieces) <= TOKENS

    def is_plain(self, passages: Sequence[Passage], found: Sequence[Said]) -> list[bool]:
        """Whether each shown sentence by itself says what its document does."""
        asked = [(passage, one.span, one) for passage, one in zip(passages, found, strict=True)]
        return [share >= LIKELY for share in self._alone(asked)]

    def _alone(self, asked: Sequence[tuple[Passage, Span, Said]]) -> list[float]:
        """How probable it is that a sentence by itself says what its document does."""
        read = self.read([passage._replace(sentences=[span]) for passage, span, _ in asked])
        return [
            one.denies if whole.denies > whole.affirms else one.affirms
            for one, (_, _, whole) in zip(read, asked, strict=True)
        ]


def condition_ids(tokenizer: Any, condition: str) -> list[int]:
    ids: list[int] = tokenizer.encode(condition, add_special_tokens=False).ids[:CONDITION]
    return ids


def chosen(tokenizer: Any, passage: Passage, tokens: int = TOKENS) -> list[Piece]:
    """The sentences that are read, in their order in the text: a short first one, and the nearest ones that fit."""
    found: dict[Span, list[int]] = {}
    left = tokens

    def ids_of(span: Span) -> list[int]:
        ids: list[int] = tokenizer.encode(passage.text[slice(*span)], add_special_tokens=False).ids
        return ids

    first = min(passage.sentences, default=None)
    if first is not None and len(passage.sentences) > 1 and not passage.text[: first[0]].strip():
        ids = ids_of(first)
        if len(ids) <= FIRST_TOKENS:
            found[first], left = ids, left - len(ids)
    for span in passage.sentences:
        if left <= 0:
            break
        if span not in found:
            ids = ids_of(span)
            if len(ids) <= left or len(found) == 0 or left > tokens / 2:
                found[span] = ids[:left]
                left -= len(found[span])
    return [Piece(span, found[span], passage.sentences.index(span)) for span in sorted(found)]


def question(tokenizer: Any, condition: Sequence[int], pieces: Sequence[Piece]) -> tuple[list[int], list[slice]]:
    """The tokens of a condition and of a document's sentences, and where each sentence's stand."""
    pair = tokenizer.encode("a", "b")  # with the special tokens of its encoder: before, between and after
    first, second = (pair.sequence_ids.index(number) for number in (0, 1))
    ids, places = [*pair.ids[:first], *condition, *pair.ids[first + 1 : second]], []
    for piece in pieces:
        places.append(slice(len(ids), len(ids) + len(piece.ids)))
        ids += piece.ids
    return [*ids, *pair.ids[second + 1 :]], places


class Summed(NamedTuple):
    """What a document's tokens say: three sums, for, against and nothing, and each sentence's strongest token for and
    against, (sentences, 2)."""

    logits: Array
    strongest: Array


def summed(scores: Array, places: Sequence[slice]) -> Summed:
    """From the tokens' scores (L, OUTPUTS)."""
    tokens = [scores[place, :2] for place in places]
    spoken = np.logaddexp.reduce(np.concatenate([np.full((1, 2), -1e4, np.float32), *tokens]), axis=0)
    strongest = np.array([own.max(axis=0, initial=-1e4) for own in tokens], np.float32).reshape(-1, 2)
    return Summed(np.append(spoken, scores[0, 2]), strongest)


def said(found: Summed, pieces: Sequence[Piece], temperature: float = 1.0) -> Said:
    """What a document says, and the sentence that decides: that of the strongest token, where nearer sentences go
    before."""
    if not pieces:
        return NOTHING
    logits = found.logits / temperature
    shares = np.exp(logits - np.logaddexp.reduce(logits))
    own = found.strongest[:, int(shares[1] > shares[0])] - NEARER * np.array([piece.nearer for piece in pieces])
    affirms, denies, silent = shares.tolist()
    return Said(affirms, denies, silent, *pieces[int(own.argmax())].span)


def sentences_of(text: str) -> list[Span]:
    """
    >>> text = "A quiet hotel. There is no pool; ask at approx. noon for the key."
    >>> [text[slice(*span)] for span in sentences_of(text)]
    ['A quiet hotel.', 'There is no pool;', 'ask at approx. noon for the key.']
    """
    edges = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    spans = ((start, start + len(text[start:end].rstrip())) for start, end in pairwise(edges))
    return [(start, end) for start, end in spans if any(map(str.isalnum, text[start:end]))]


@lru_cache(maxsize=2000)
def _sentences(text: str) -> list[tuple[Span, str]]:
    """The sentences of a text, each with its letters in lower case."""
    return [((start, end), text[start:end].lower()) for start, end in sentences_of(text)]


def passage(condition: str, text: str, clauses: Sequence[Span], near: Array) -> Passage:
    """The sentences of a text that are nearest to a condition, the nearest first, and the text's first one. near: the
    cosine of each clause."""
    words = [word[:5] for word in dict.fromkeys(_WORD.findall(condition.lower())) if word not in _SMALL]
    starts, cosines = [start for start, _ in clauses], np.asarray(near).tolist()
    scored: list[tuple[float, Span]] = []
    for (start, end), lower in _sentences(text):
        first, last = bisect_left(starts, start), bisect_left(starts, end)
        if end - start > LONG_SENTENCE and first < last:
            scored += _stretches(words, text, (start, end), clauses[first:last], cosines[first:last])
            continue
        best = max(cosines[first:last], default=0.0)
        scored.append((best + SHARED * _share(words, lower), (start, end)))
    nearest_first = sorted(range(len(scored)), key=lambda row: -scored[row][0])
    rows = nearest_first[:SENTENCES]
    if scored and 0 not in rows:
        rows.append(0)
    return Passage(condition, text, [scored[row][1] for row in rows])


def _stretches(
    words: Sequence[str], text: str, sentence: Span, clauses: Sequence[Span], cosines: Sequence[float]
) -> list[tuple[float, Span]]:
    """What is read of a long sentence: the clause nearest to a condition with its neighbours, and then those that have
    words of the condition which the ones before lack."""
    pieces = [text[slice(*own)].lower() for own in clauses]
    near = [cosine + SHARED * _share(words, piece) for cosine, piece in zip(cosines, pieces, strict=True)]
    found, missing = list[tuple[float, Span]](), set(words)
    for number in sorted(range(len(near)), key=lambda number: -near[number]):
        if found and not any(word in pieces[number] for word in missing):
            continue
        before, behind = clauses[max(0, number - 1)], clauses[min(len(clauses) - 1, number + 1)]
        span = max(sentence[0], before[0]), min(sentence[1], behind[1])
        found.append((near[number], span))
        missing -= {word for word in missing if word in text[slice(*span)].lower()}
    return found


def _share(words: Sequence[str], text: str) -> float:
    """The share of words that a text has; of each its first five letters. text: in lower case."""
    return sum(word in text for word in words) / max(1, len(words))


def document_reader(device: Any = None) -> DocumentReader | None:
    """The reader that comes with the package; None where its encoder is not to be had. device: where the search model
    is; if that is a GPU, documents are read there, too."""
    return _opened(str(device) if str(device).startswith("cuda") else None)


@cache
def _opened(gpu: str | None) -> DocumentReader | None:
    folder = encoder_of(DOCUMENT_READER)
    if folder is None:
        return None
    temperature = temperature_of(DOCUMENT_READER)
    if gpu is None:
        return DocumentReader(Reader(folder, DOCUMENT_READER, ranges_of(DOCUMENT_READER)), temperature)
    from boolbert.retrieval.gpu_reader import GpuReader

    return DocumentReader(GpuReader(folder, DOCUMENT_READER, gpu), temperature)


def temperature_of(adapters: Path) -> float:
    """By which the logits of a reader with these adapters are divided."""
    from safetensors import safe_open

    with safe_open(adapters, framework="np") as file:
        return float(file.metadata()["temperature"])
