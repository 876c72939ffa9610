"""How documents are scored: every constant of ranking, and the formula they stand in.

What a query wants is groups of conditions; what it excludes is conditions too. `first_stage` scores any number of
documents by vectors, clauses and words. `second_stage` adds what the document reader says of the best of them.
docs/search.md has both as ten lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.boolean.clauses import split_clauses
from boolbert.boolean.query import Condition, Query
from boolbert.retrieval.evidence import Array, Encode, Evidence, unit_length
from boolbert.retrieval.ranking import Scores
from boolbert.retrieval.words import DENIED, words_of


class Weights(NamedTuple):
    """The constants of the score. Cosines count from those of unrelated texts, 0, to those of equal ones, 1.

    The first block was chosen by hand on the dev queries of the countries, BoolMovies, the documents that deny,
    ExcluIR, BoolQuestions-NOT and ComLQ, among some 150 settings. Of 226 more for QUESTION, those best on two of the
    last three sets were worse on the third than these, each time. The last three of COLLECTION were learned by `python
    train/ranking.py`, with whole collections left out. A question is read as a whole: does the document answer it? Its
    weight, of 27 with a floor that were looked at, costs ExcluIR, BoolQuestions-NOT and a part of ComLQ nothing.
    """

    whole: float  # the whole query's score against the document's vector
    clause: float  # a condition's best clause
    words: float  # its BM25, beside its best clause
    mean: float  # AND: the share of the mean of the conditions; the rest is the smallest
    penalty: float  # NOT: what the best clause for something excluded has above `near`
    words_penalty: float  # and its BM25
    denial: float  # what the best clause that denies it has above `near` speaks for the document
    about: float  # what the document's own vector has above `near` of it: a text about it answers another question
    near: float  # cosine above which a text speaks for or against something excluded
    read_wanted: float  # the reader: log of the probability that each wanted condition holds, on average; or an answer
    read_excluded: float  # log of the probability that an excluded one does not
    floor: float  # a probability counts as no less than this


# A question is answered by one passage, which its whole vector finds; other queries ask for members of a collection.
# Where a question negates a property, that passage may mention it: only texts that are about it as a whole lose.
COLLECTION = Weights(0.5, 1.0, 0.8, 0.8, 0.7, 0.6, 1.5, 0.0, 0.3, 0.8, 4.0, 0.02)
QUESTION = Weights(3.0, 1.75, 0.8, 0.8, 0.8, 0.35, 1.0, 0.6, 0.3, 0.4, 0.0, 0.1)
PLAIN = Weights(1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0, 0.1)  # what is not read: its vector alone
ABOUT_PROPERTY = 1.5  # `about` where a question negates a property
READ_WORDS = 7  # most words of a condition that is read: the reader has learned what things are, not statements
# The kind of documents, "campsites" of "campsites without dogs": what the reader says of it counts this share of what
# it says of other conditions, and as no less likely than this. Most documents of a collection do not say their kind.
KIND, KIND_FLOOR = 0.5, 0.2
AFFIRMED = 0.7  # what an affirming clause counts for a condition that asks for a denial: "do not allow pets"


# Words that ask: a text that answers need not have them.
ASKING = frozenset(
    [
        *("who", "whom", "whose", "what", "which", "when", "where", "why", "how", "any", "there"),
        *("do", "does", "did", "can", "could", "is", "are", "was", "were"),
    ]
)


class Asked(NamedTuple):
    """A condition, ready to be compared: its vector, its words, and whether it asks for a denial itself."""

    part: Condition
    vector: Array
    words: tuple[str, ...]
    denies: bool

    @classmethod
    def of(cls, part: Condition, vector: Array) -> "Asked":
        clauses = split_clauses(part.text)
        found = words_of(part.text, clauses)
        words = tuple(word for word in found if word not in ASKING) or tuple(found)
        return cls(part, vector, words, part.denies or any(clause.denies for clause in clauses))

    @property
    def is_read(self) -> bool:
        """Whether the document reader is asked for it."""
        return len(set(self.words)) <= READ_WORDS

    @property
    def denied_words(self) -> tuple[str, ...]:
        return tuple(DENIED + word for word in self.words)


@dataclass(frozen=True)
class Question:
    """The conditions of a query with their vectors; built by `Question.of`.

    answer: a question as a whole, for which documents are read instead of for its conditions.
    """

    wanted: tuple[tuple[Asked, ...], ...]
    excluded: tuple[Asked, ...]
    weights: Weights = COLLECTION
    typed: bool = False  # `Query.typed`
    answer: Asked | None = None

    @classmethod
    def of(cls, query: Query, encode: Encode) -> "Question":
        groups, parts = asked_groups(query), asked_parts(query)
        texts = list(dict.fromkeys(part.text for part in parts))
        vectors = dict(zip(texts, encode(texts), strict=True))
        asked = iter([Asked.of(part, vectors[part.text]) for part in parts])
        wanted = tuple(tuple(next(asked) for _ in group) for group in groups)
        weights = PLAIN if query.plain else QUESTION if is_answered(query) else COLLECTION
        if query.kind == "property":
            about = ABOUT_PROPERTY if query.asks else 0.0
            weights = weights._replace(penalty=0.0, words_penalty=0.0, denial=0.0, about=about, read_excluded=0.0)
        if not wanted:  # all the rest is
            weights = weights._replace(whole=0.0)
        excluded = tuple(next(asked) for _ in query.excluded)
        return cls(wanted, excluded, weights, query.typed, next(asked, None))

    def combined(self, leaves: Array) -> Array:
        """The scores of what is wanted from those of its conditions (P, N): the best of each group, then mean and
        smallest."""
        if not self.wanted:
            return np.zeros(leaves.shape[1], leaves.dtype)
        each = iter(leaves)
        groups = np.stack([reduce(np.maximum, [next(each) for _ in group]) for group in self.wanted])
        mean: Array = self.weights.mean * groups.mean(0) + (1 - self.weights.mean) * groups.min(0)
        return mean

    @property
    def names_kind(self) -> bool:
        """Whether the first of several conditions is one word, such as "campsites": it names the kind of documents."""
        first = self.wanted[0] if self.wanted else ()
        return len(self.parts) > len(first) == 1 and len(first[0].part.text.split()) == 1

    @property
    def is_read(self) -> bool:
        """Whether what documents say of it changes their scores."""
        counts = self.weights.read_wanted or (self.weights.read_excluded and self.excluded)
        return bool(counts) and (self.answer is not None or any(part.is_read for part in self.parts))

    @property
    def read_parts(self) -> tuple[Asked, ...]:
        """What documents are read for: a question as a whole, or all conditions that are not too long."""
        return tuple(part for part in self.parts if part.is_read) if self.answer is None else (self.answer,)

    @property
    def parts(self) -> tuple[Asked, ...]:
        return (*(part for group in self.wanted for part in group), *self.excluded)


def asked_groups(query: Query) -> tuple[tuple[Condition, ...], ...]:
    """What a query wants of documents. A question is answered by one passage, so what it wants stays whole."""
    return ((Condition(query.wanted, 0, len(query.text)),),) if is_answered(query) else query.groups


def is_answered(query: Query) -> bool:
    """Whether one passage answers a query, as it does where a topic is left out of a text: "Norway, not its fjords"."""
    return query.asks or query.kind == "topic"


def asked_parts(query: Query) -> list[Condition]:
    """What is asked of documents: the conditions of a query, and a question as a whole."""
    parts = [*(part for group in asked_groups(query) for part in group), *query.excluded]
    return [*parts, Condition(query.text, 0, len(query.text))] if is_answered(query) else parts


def first_stage(
    evidence: Evidence,
    question: Question,
    rows: npt.NDArray[np.int64],
    whole: Scores,
    vectors: Array,
    *,
    strength: float = 1.0,
    words: Array | None = None,
) -> Scores:
    """The scores of some documents; `whole`: those of the whole query against their vectors (N, D). strength: of NOT.
    words: `word_scores`, where they are known.

    A condition's leaf is its best clause and its BM25. OR takes the largest of its leaves, AND the mean and the
    smallest; each exclusion subtracts what its best affirming clause, the document's vector and its words have.
    """
    parts, weights, count = question.parts, question.weights, len(question.parts) - len(question.excluded)
    words = (word_scores(evidence, question) if words is None else words)[:, rows]
    affirming, denying = (evidence.from_unrelated(found) for found in evidence.best(_vectors(parts), rows))
    # A condition that asks for a denial is spoken for by clauses that deny.
    spoken = zip(parts[:count], affirming, denying, strict=False)
    each = [np.maximum(AFFIRMED * yes, no) if part.denies else yes for part, yes, no in spoken]
    clauses = np.stack(each) if each else words[:0]
    score = weights.whole * whole + question.combined(weights.clause * clauses + weights.words * words[:count])
    about = np.zeros_like(words)
    if weights.about and question.excluded:
        about = evidence.from_unrelated(_vectors(parts) @ unit_length(vectors).T)
    for part, row in zip(question.excluded, range(count, len(parts)), strict=True):
        has, lacks = (denying[row], affirming[row]) if part.denies else (affirming[row], denying[row])
        violation = weights.penalty * np.maximum(0, has - weights.near) + weights.words_penalty * words[row]
        violation += weights.about * np.maximum(0, about[row] - weights.near)
        denial = np.where(lacks > has, np.maximum(0, lacks - weights.near), 0)
        score -= strength * (violation - weights.denial * denial)
    return score


def word_scores(evidence: Evidence, question: Question) -> Array:
    """BM25 of each condition in all documents: (P, N)."""
    return np.stack([evidence.words.scores(part.words) for part in question.parts])


def score_by_words(question: Question, words: Array) -> Scores:
    """What words alone say of documents: the same formula without vectors, which is computed at once."""
    count = len(words) - len(question.excluded)
    score: Scores = question.combined(question.weights.words * words[:count])
    for word in words[count:]:
        score = score - question.weights.words_penalty * word
    return score


def second_stage(question: Question, affirmed: Array, strength: float = 1.0) -> Scores:
    """What the document reader adds to the scores of documents: from the probabilities (P, N) that each condition
    holds, or (1, N) that a question is answered. A group of alternatives holds where one of them does; what is not read
    changes nothing."""
    weights, each = question.weights, iter(affirmed)
    if question.answer is not None:
        answered: Scores = weights.read_wanted * np.log(np.maximum(next(each), weights.floor))
        return answered
    score: Scores = np.zeros(affirmed.shape[1], np.float32)
    for number, group in enumerate(question.wanted):
        holds = 1 - np.prod([1 - next(each) for _ in group], axis=0)
        is_kind = number == 0 and question.names_kind
        share, floor = (KIND, KIND_FLOOR) if is_kind else (1.0, weights.floor)
        if all(part.is_read for part in group):
            score += share * weights.read_wanted / len(question.wanted) * np.log(np.maximum(holds, floor))
    for part, holds in zip(question.excluded, each, strict=True):
        if part.is_read:
            score += strength * weights.read_excluded * np.log(np.maximum(1 - holds, weights.floor))
    return score


def _vectors(parts: Sequence[Asked]) -> Array:
    return np.stack([part.vector for part in parts])
