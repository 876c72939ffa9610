"""What Bool-BERT makes of a query: what it excludes, what its vector is made of, and how that moves the results."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.boolean import OPERATORS
from boolbert.boolean.query import COLOURS, CUT, Query, listed, quoted
from boolbert.core.checks import check_count
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.evidence import unit_length

from .answer import Answer, Hit, Promise, left_out_line
from .number_filters import NO_NUMBERS, ReadNumbers
from .query_encoder import QueryVectors
from .searcher import BoolSearcher

if TYPE_CHECKING:
    import torch

DEPTH = 100  # how far down the other ranking a document is looked for


@dataclass(frozen=True)
class OperatorAttention:
    """What one operator does to attention; the lists have an entry for each word.

    scope: share of heads and layers that reach the word. bias: what they would add there, on average. strength: the
    mean of scope times bias, which attention scores to this word gain (AND, OR) or lose (NOT) while the gate is on.
    """

    operator: str
    on: bool
    gate: float  # the probability that the model's own gate gives
    cue_probabilities: list[float]
    scope: list[float]
    bias: list[float]
    strength: list[float]


class Change(NamedTuple):
    """A found document, its rank, and its rank in the other ranking; None where it is not near the top there."""

    hit: Hit
    rank: int
    other: int | None

    @property
    def moved(self) -> str:
        """How far it stands above or below its rank in the other ranking.

        >>> hit = Hit(1, 0.5, 0, "Chad", "", 0.5)
        >>> Change(hit, 1, 4).moved, Change(hit, 4, 1).moved, Change(hit, 2, 2).moved, Change(hit, 2, None).moved
        ('▲3', '▼3', '', 'new')
        """
        if self.other is None:
            return "new"
        up = self.other - self.rank
        return f"▲{up}" if up > 0 else f"▼{-up}" if up < 0 else ""


@dataclass(frozen=True)
class Explanation:
    """A query as it was read, what its vector is made of, and the results with its operators and without them.

    not_weight: the l of A - l B, None where nothing is excluded. penalty: the weight w and the threshold t by which
    documents similar to B rank lower (`retrieval/penalty.py`), or None. vectors: how many the query is searched with.
    """

    reading: Query
    trained: bool
    not_weight: float | None
    penalty: tuple[float, float] | None
    vectors: int
    attention: list[OperatorAttention]
    before: list[Change]
    after: list[Change]
    plain_name: str
    promise: Promise | None = None
    left_out: int = 0
    numbers: ReadNumbers = NO_NUMBERS
    counted_all: bool = True

    @property
    def composition(self) -> str:
        """What the query's vector is made of, in words; "" where it is the plain encoder's, or nothing is wanted."""
        if self.not_weight is None or not self.wants_something:
            return ""
        reading = self.reading
        return f"{quoted(reading.wanted_text)} − {self.not_weight:.2f} × {quoted(reading.excluded_text)}"

    @property
    def wants_something(self) -> bool:
        """Whether the query has words that neither are excluded nor say so."""
        return any(not word.excluded and word.cue != "not" for word in self.reading.words)

    @property
    def notes(self) -> list[str]:
        """Notes for the reader."""
        notes = [f"{note[0].upper()}{note[1:]}." for note in (*self.reading.notes, *self.numbers.lines)]
        if not self.trained:
            notes.append("The Boolean parts of this model are untrained: it reads nothing yet, and is plain BERT.")
        if self.reading.truncated:
            notes.append(CUT)
        if not self.reading.operators:
            notes.append("No AND, OR or NOT is read in this query.")
        elif "not" in self.reading.operators and not self.reading.excluded and self.trained:
            notes.append("A NOT is read, but nothing that it excludes.")
        notes += [self._exclusion] if self._exclusion else []
        if self.reading.alternatives:
            how = "each has a vector of its own" if self.vectors > 1 else "the one that a document speaks for counts"
            notes.append(f"OR offers {listed(self.reading.alternatives, 'or')}; {how}.")
        if self.promise is not None:
            notes.append(f"{self.promise.line(listed(self.reading.excluded, 'or'), self.counted_all)}.")
        elif self.left_out:
            line = left_out_line(self.left_out, self.reading.excluded, self.counted_all)
            notes.append(f"{line[0].upper()}{line[1:]}.")
        return notes

    @property
    def _exclusion(self) -> str:
        """What becomes of documents that have what is excluded; "" where nothing does."""
        what = listed(self.reading.excluded, "or")
        if not what or not (self.penalty or self.not_weight or self.reading.kind == "property"):
            return ""
        if all(word.excluded for word in self.reading.words if word.text.isalnum()):
            return "Every word is excluded, so there is nothing to search for."
        if self.reading.kind == "property":
            return f"What is denied is a property of the answer, so documents may speak of {what}."
        has_evidence = any(change.hit.reasons for change in self.after)
        is_known = any(change.hit.violates is not None for change in self.after)
        how = "that seem to have" if has_evidence else "similar to"
        how = "about" if self.reading.kind == "topic" else "that are" if is_known else how
        return f"Documents {how} {what} rank lower."

    def violations(self, changes: Sequence[Change]) -> str:
        """How many of the results have what the query excludes, in words: as the data knows, or else as their
        sentences say; "" where neither does."""
        if not changes or not self.reading.excluded or self.reading.kind == "property":
            return ""
        known = [change.hit.violates for change in changes]
        if None not in known:
            names = " or ".join(span.text for span in self.reading.excluded)
            return f"{sum(map(bool, known))} of {len(known)} are {names}"
        if not any(change.hit.reasons for change in self.after):
            return ""
        some = changes is self.before and any(
            change.other is None for change in changes
        )  # whose sentences are not known
        has = sum(change.hit.is_against for change in changes)
        return f"{'at least ' * some}{has} of {len(changes)} seem to have {listed(self.reading.excluded, 'or')}"

    @property
    def in_both(self) -> int:
        return sum(change.other is not None and change.other <= len(self.after) for change in self.after)

    @property
    def strongest(self) -> float:
        """The largest strength of an operator that is on."""
        return max((max(part.strength, default=0.0) for part in self.attention if part.on), default=0.0)

    def page(self) -> str:
        """An HTML page that stands alone: the query as it was read, both rankings, and attention word by word."""
        from boolbert.core.pages import render

        operators = ", ".join(name.upper() for name in self.reading.operators) or "none"
        lead = f"Operators: {operators}, said by {self.reading.decided_by}."
        tints = {operator: ", ".join(map(str, rgb)) for operator, rgb in COLOURS.items()}
        given = {"explanation": self, "reading": self.reading, "tints": tints}
        return render("explanation.html", title=quoted(self.reading.text), lead=lead, **given)

    def as_json(self) -> dict[str, Any]:
        promise = {} if self.promise is None else {"promise": asdict(self.promise)}
        return {
            **self.reading.as_json(),
            **promise,
            "trained": self.trained,
            "not_weight": self.not_weight,
            "penalty": self.penalty,
            "vectors": self.vectors,
            "words": [word._asdict() for word in self.reading.words],
            "attention": [asdict(part) for part in self.attention],
            "notes": self.notes,
            "results": [_row(change) for change in self.after],
            "plain": {"name": self.plain_name, "results": [_row(change) for change in self.before]},
        }


def _row(change: Change) -> dict[str, Any]:
    hit = change.hit
    kept = {name: getattr(hit, name) for name in ("title", "score", "wanted", "excluded", "violates")}
    return {"rank": change.rank, "other_rank": change.other, **kept}


def explain(
    searcher: BoolSearcher, query: str, k: int = 10, operators: Sequence[Any] | None = None, **asked: Any
) -> Explanation:
    """Read a query and search twice: with its operators, and without. baseline: another searcher that has none; the
    other arguments are those of `BoolSearcher.search`."""
    if not searcher.is_boolean:
        raise RetrievalError(
            f"{searcher.model.name}: is a plain encoder, so there is nothing to explain; give a Bool-BERT with --model"
        )
    return compare(searcher, query, k, operators=operators, **asked)


def compare(
    searcher: BoolSearcher, query: str, k: int = 10, *, baseline: BoolSearcher | None = None, **asked: Any
) -> Explanation:
    """What `explain` says, for a plain encoder too, which has no attention to explain."""
    check_count("k", k)
    depth, where = max(k, DEPTH), asked.get("where")
    answer = searcher.search(query, depth, **asked)
    reading, vectors = answer.reading, answer.vectors
    if not reading.words:
        problem = "begins with a word that is too long for the model" if reading.truncated else "holds no word"
        raise RetrievalError(f"the query {query[:60]!r} {problem}")
    where = answer.numbers.where(where)
    if baseline is None:
        plain, plain_name = searcher.search(query, depth, operators=[], where=where), "plain encoder"
    else:
        plain, plain_name = (
            baseline.search(query, depth, evidence=False, where=where, numbers=False),
            str(baseline.model.name),
        )
    marked = searcher.violating(reading)  # the plain ranking's own reading excludes nothing
    said = {hit.key: hit.reasons for hit in (*answer.unsure, *answer)}  # and its search reads nothing
    plain = replace(
        plain,
        hits=tuple(
            replace(hit, violates=None if marked is None else hit.row in marked, reasons=said.get(hit.key, ()))
            for hit in plain
        ),
    )
    return Explanation(
        reading=reading,
        trained=searcher.model.trained,
        not_weight=_strength(searcher, vectors, asked.get("not_weight")),
        penalty=vectors.penalty,
        vectors=len(vectors.vectors),
        attention=_attention(searcher, reading) if searcher.is_boolean else [],
        before=_compared(plain, answer, k),
        after=_compared(answer, plain, k),
        plain_name=plain_name,
        promise=_promise(answer, k),
        left_out=_left_out(answer, k),
        numbers=answer.numbers,
        counted_all=answer.counted_all,
    )


def _promise(answer: Answer, k: int) -> Promise | None:
    """The promise for the first k hits of an answer."""
    return None if answer.promise is None else replace(answer.promise, left_out=_left_out(answer, k))


def _left_out(answer: Answer, k: int) -> int:
    """How many documents were left out: for a promise those that would be among the first k."""
    if answer.promise is None or len(answer) <= k:
        return answer.left_out
    return sum(hit.score >= answer[k - 1].score for hit in answer.unsure)


def _compared(answer: Answer, other: Answer, k: int) -> list[Change]:
    ranks = {hit.key: hit.rank for hit in other}
    return [Change(hit, hit.rank, ranks.get(hit.key)) for hit in answer.hits[:k]]


def _strength(searcher: BoolSearcher, vectors: QueryVectors, not_weight: float | None) -> float | None:
    """How strongly what is excluded is taken away from the vector of a Bool-BERT."""
    if vectors.excluded is None or not searcher.is_boolean:
        return None
    if not_weight is not None:
        return not_weight
    import torch

    bert: Any = searcher.model.bert
    parts = (torch.from_numpy(unit_length(part))[None].to(bert.device) for part in (vectors.wanted, vectors.excluded))
    with torch.inference_mode():
        return float(bert.composer.searched_weight(*parts))


def _attention(searcher: BoolSearcher, reading: Query) -> list[OperatorAttention]:
    """What a Bool-BERT's layers do with a query as it was read."""
    import torch

    bert: Any = searcher.model.bert
    queries: Any = searcher.queries
    tokens = queries.tokens(reading.text)
    given: dict[str, Any] = {"input_ids": tokens.ids, **queries.told(reading, tokens)._asdict()}
    if not bert.config.reads_scopes:  # its layers find cues and scopes by themselves
        del given["cues"], given["scope"]
    tensors = {name: torch.tensor(np.array([values]), device=bert.device) for name, values in given.items()}
    with torch.inference_mode():
        output = bert(**tensors, output_scopes=True, output_biases=True)
    words = list(reading.words)
    places = queries.token_words(tokens, words)

    def on_words(values: "torch.Tensor", **options: Any) -> npt.NDArray[np.float64]:  # (E, L) -> (E, W)
        return per_word(values.double().cpu().numpy(), places, len(words), **options)

    scopes = torch.stack([layer[0].float() for layer in output.scopes])  # (layers, E, heads, L)
    biases = torch.stack([layer[0].float() for layer in output.biases])
    over = (0, 2)  # layers and heads
    scope, bias, strength = (on_words(part.mean(over)) for part in (scopes, biases, scopes * biases))
    cues = torch.sigmoid(output.cue_logits[0].float())  # (E, L)
    gates = torch.sigmoid(output.gate_logits[0].float()) if bert.config.gate == "learned" else cues.amax(-1)
    probabilities = on_words(cues, highest=True)
    return [
        OperatorAttention(
            operator=operator,
            on=operator in reading.operators,
            gate=float(gates[row]),
            cue_probabilities=probabilities[row].tolist(),
            scope=scope[row].tolist(),
            bias=bias[row].tolist(),
            strength=strength[row].tolist(),
        )
        for row, operator in enumerate(OPERATORS)
    ]


def per_word(
    values: npt.NDArray[np.float64], tokens: Sequence[int], count: int, *, highest: bool = False
) -> npt.NDArray[np.float64]:
    """Values of tokens (E, L) as values of words (E, W): the mean, or the highest, over a word's pieces.

    >>> per_word(np.array([[9.0, 1.0, 3.0, 5.0]]), [-1, 0, 0, 1], 2).tolist()
    [[2.0, 5.0]]
    """
    is_piece = np.arange(count)[:, None] == np.asarray(tokens)  # (W, L)
    pieces = is_piece.sum(1)
    if highest:
        best = np.where(is_piece, values[:, None], -np.inf).max(2, initial=-np.inf)
        return np.where(pieces > 0, best, 0.0)
    return values @ is_piece.T / np.maximum(pieces, 1)
