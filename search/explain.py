"""What Bool-BERT makes of a query: its cues, each operator's scope and strength on each word, and what that changes."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from boolbert.boolean import OPERATORS, Cue, find_cues, multi_hot
from boolbert.errors import RetrievalError
from boolbert.retrieval.models import prompt_of

from .searcher import Answer, BoolSearcher

# A word is a run of letters with its apostrophes; every other sign stands alone, so that "non-" can be a cue.
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
IS_CUE = 0.5
# Blue, green and vermilion, which people who are colour-blind can tell apart too.
COLOURS = {"and": (0, 114, 178), "or": (0, 158, 115), "not": (213, 94, 0)}
DEPTH = 100  # how far down the other ranking a document is looked for


class Word(NamedTuple):
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class OperatorReading:
    """How one operator reads a query; the lists have an entry for each word.

    scope: share of heads and layers that reach the word. bias: what they would add there, on average. strength: the
    mean of scope times bias, which attention scores to this word gain (AND, OR) or lose (NOT) while the gate is on.
    """

    operator: str
    on: bool
    gate: float  # the probability that the model's own gate gives
    cue_probabilities: list[float]
    cues: list[bool]
    scope: list[float]
    bias: list[float]
    strength: list[float]


class Change(NamedTuple):
    """A found document and its rank in the other ranking, None where it is not near the top there."""

    title: str
    rank: int
    before: int | None

    @property
    def moved(self) -> str:
        """How far it stands above or below its rank in the other ranking.

        >>> Change("Chad", 1, 4).moved, Change("Chad", 4, 1).moved, Change("Chad", 2, 2).moved
        ('▲3', '▼3', '')
        >>> Change("Chad", 2, None).moved
        'new'
        """
        if self.before is None:
            return "new"
        up = self.before - self.rank
        return f"▲{up}" if up > 0 else f"▼{-up}" if up < 0 else ""


@dataclass(frozen=True)
class Explanation:
    """A query, word by word as far as the model reads; `answer` is what the operators find, `plain` what is found
    without them."""

    query: str
    words: list[Word]
    readings: list[OperatorReading]
    decided_by: str
    trained: bool
    truncated: bool
    lexicon: list[Cue]
    answer: Answer
    plain: Answer
    plain_name: str

    @property
    def changes(self) -> list[Change]:
        ranks = {hit.row: hit.rank for hit in self.plain}
        return [Change(hit.title, hit.rank, ranks.get(hit.row)) for hit in self.answer]

    @property
    def strongest(self) -> float:
        """The largest strength of an operator that is on, by which pictures are scaled."""
        return max((max(reading.strength, default=0.0) for reading in self.readings if reading.on), default=0.0)

    def number(self, value: float) -> str:
        """A strength with as many digits as tell it from the others."""
        return f"{value:.{2 if self.strongest >= 0.1 else 3}f}"

    def cue_operator(self, word: int) -> str | None:
        """The operator that the word of this number is a cue of, the likeliest where there are several."""
        found = [reading for reading in self.readings if reading.cues[word]]
        return max(found, key=lambda reading: reading.cue_probabilities[word]).operator if found else None

    def as_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "operators": list(self.answer.operators),
            "decided_by": self.decided_by,
            "trained": self.trained,
            "truncated": self.truncated,
            "words": [word._asdict() for word in self.words],
            "readings": [asdict(reading) for reading in self.readings],
            "lexicon_cues": [cue._asdict() for cue in self.lexicon],
            "results": [change._asdict() for change in self.changes],
            "plain": {"name": self.plain_name, "results": [hit.title for hit in self.plain][: len(self.answer)]},
        }


def explain(
    searcher: BoolSearcher,
    query: str,
    k: int = 10,
    operators: Sequence[Any] | None = None,
    *,
    baseline: BoolSearcher | None = None,
) -> Explanation:
    """Read a query word by word and search twice: with its operators, and without (or with another model)."""
    if searcher.model.bert is None:
        raise RetrievalError(
            f"{searcher.model.name}: is a plain encoder, so there is nothing to explain; give a Bool-BERT with --model"
        )
    names, decided_by = searcher.decide(query, operators)
    words = words_of(query)
    if not words:
        raise RetrievalError(f"the query {query!r} holds no word")
    output = searcher.read(query, operators=torch.tensor([multi_hot(names)]), output_scopes=True, output_biases=True)
    tokens = token_words(searcher, query, words)
    truncated = len(words) - 1 not in tokens
    words = words[: max(tokens) + 1]  # those that the model has read
    if not words:
        raise RetrievalError(f"the query {query[:60]!r}... begins with a word that is too long for the model")
    lexicon = [cue for cue in find_cues(query) if not cue.weak]
    depth = max(k, DEPTH)
    if baseline is None:
        plain, plain_name = searcher.search(query, depth, operators=[]), "the same model, gates off"
    else:
        plain, plain_name = baseline.search(query, depth), str(baseline.model.name)
    return Explanation(
        query=query,
        words=words,
        readings=_readings(output, tokens, words, names, lexicon, searcher),
        decided_by=decided_by,
        trained=searcher.model.trained,
        truncated=truncated,
        lexicon=lexicon,
        answer=searcher.search(query, k, operators=names),
        plain=plain,
        plain_name=plain_name,
    )


def words_of(text: str) -> list[Word]:
    """
    >>> [word.text for word in words_of("Orlando's non-stop, but not there")]
    ["Orlando's", 'non', '-', 'stop', ',', 'but', 'not', 'there']
    """
    return [Word(match.group(), *match.span()) for match in _WORD.finditer(text)]


def token_words(searcher: BoolSearcher, query: str, words: Sequence[Word]) -> list[int]:
    """For each token the word it is a piece of; -1 for special tokens and those of a prompt."""
    prompt = prompt_of(searcher.model.encoder, "query") or ""
    length = searcher.features(query)["input_ids"].shape[1]
    # A copy: how a tokenizer truncates and pads is kept in it, and another thread may be searching.
    tokenizer = searcher.offset_tokenizer
    spans = tokenizer(prompt + query, return_offsets_mapping=True, verbose=False)["offset_mapping"]
    if len(spans) > length:
        spans = [*spans[: length - 1], (0, 0)]  # the model's copy of the query ends with [SEP] there
    return [word_at(start - len(prompt), end - len(prompt), words) for start, end in spans]


def word_at(start: int, end: int, words: Sequence[Word]) -> int:
    """The word that a span of characters lies in.

    >>> words = words_of("not former")
    >>> word_at(4, 7, words), word_at(7, 10, words), word_at(0, 0, words)
    (1, 1, -1)
    """
    return next((number for number, word in enumerate(words) if start < end and word.start <= start < word.end), -1)


def per_word(
    values: npt.NDArray[np.float64], tokens: Sequence[int], count: int, *, highest: bool = False
) -> npt.NDArray[np.float64]:
    """Values of tokens (E, L) as values of words (E, W): the mean, or the highest, over a word's pieces.

    >>> per_word(np.array([[9.0, 1.0, 3.0, 5.0]]), [-1, 0, 0, 1], 2).tolist()
    [[2.0, 5.0]]
    """
    result = np.zeros((len(values), count))
    for word in set(tokens) - {-1}:
        pieces = values[:, [token for token, of_word in enumerate(tokens) if of_word == word]]
        result[:, word] = pieces.max(axis=1) if highest else pieces.mean(axis=1)
    return result


def _readings(
    output: Any, tokens: list[int], words: list[Word], names: Sequence[str], lexicon: list[Cue], searcher: BoolSearcher
) -> list[OperatorReading]:
    def on_words(values: torch.Tensor, **options: Any) -> npt.NDArray[np.float64]:  # (E, L) -> (E, W)
        return per_word(values.float().cpu().numpy().astype(float), tokens, len(words), **options)

    scopes = torch.stack([layer[0].float() for layer in output.scopes])  # (layers, E, heads, L)
    biases = torch.stack([layer[0].float() for layer in output.biases])
    over = (0, 2)  # layers and heads
    scope, bias, strength = (on_words(part.mean(over)) for part in (scopes, biases, scopes * biases))
    cues = torch.sigmoid(output.cue_logits[0].float())  # (E, L)
    probabilities = on_words(cues, highest=True)
    bert: Any = searcher.model.bert
    gates = torch.sigmoid(output.gate_logits[0].float()) if bert.config.gate == "learned" else cues.amax(-1)
    readings = []
    for row, operator in enumerate(OPERATORS):
        if searcher.model.trained:
            is_cue = (probabilities[row] > IS_CUE).tolist()
        else:
            spans = [cue for cue in lexicon if cue.operator == operator]
            is_cue = [any(cue.start <= word.start < cue.end for cue in spans) for word in words]
        readings.append(
            OperatorReading(
                operator=operator,
                on=operator in names,
                gate=float(gates[row]),
                cue_probabilities=probabilities[row].tolist(),
                cues=is_cue,
                scope=scope[row].tolist(),
                bias=bias[row].tolist(),
                strength=strength[row].tolist(),
            )
        )
    return readings
