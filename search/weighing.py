"""Rank an index's documents by what they say: candidates, their scores, and the clauses that decide."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.retrieval.evidence import NEAR, Array, Asked, ConditionVectors, Evidence, score_by_words
from boolbert.retrieval.exclusion_line import ExclusionLine, excludes, features_of
from boolbert.retrieval.words import DENIED, words_of

from .document_search import WeighedDocuments
from .query_encoder import QueryVectors

ALL = 4096  # documents of an index that is looked through as a whole
# Of more: what the whole query finds by its vector and its parts by their words, or twice what is asked for,
DEPTH = 300
PART_DEPTH = 100  # and what each of several parts finds by its vector
CLEAR = 0.5  # a clause is shown against a document above this cosine, or where it has a word of what is excluded
MOST_WANTED, MOST_EXCLUDED = 40, 20  # conditions of a query; each is compared with every clause

Rows = npt.NDArray[np.int64]


class Limit(NamedTuple):
    """Documents that have what is excluded with a higher probability than this are left out.

    violations: the share of the others that then should have it.
    """

    line: ExclusionLine
    probability: float
    violations: float


class Weighed(NamedTuple):
    """The scores and rows of the best documents; behind the first `kept` stand some that a limit has left out.

    left_out: how many it has. evidence: for what is excluded, the cosine of the best clause; None where there is no
    limit, or nothing is excluded.
    """

    scores: list[float]
    rows: list[int]
    kept: int
    left_out: int = 0
    evidence: float | None = None


@dataclass(frozen=True)
class Reason:
    """A clause of a found document, `text[start:end]`, and what it says about a part of the query.

    says: "for" a part that is wanted; "against", where it is excluded; "denied", where the clause denies what is
    excluded.
    """

    part: str
    says: str
    clause: str
    start: int
    end: int
    cosine: float

    @property
    def speaks_for(self) -> bool:
        """Whether it speaks for the document."""
        return self.says != "against"

    @property
    def label(self) -> str:
        """What it says: "snack bars", "nuts", "not nuts"."""
        return f"not {self.part}" if self.says == "denied" else self.part


def weigh(
    documents: WeighedDocuments,
    question: ConditionVectors,
    parts: QueryVectors,
    k: int,
    *,
    strength: float = 1.0,
    limit: Limit | None = None,
) -> Weighed:
    """The k best documents, without those that a limit leaves out. strength: of NOT."""
    words = documents.evidence.word_scores(question)
    rows = _candidates(documents, question, parts, words, k)
    if not len(rows):
        return Weighed([], [], 0)
    vectors = documents.vectors.rows(rows).astype(np.float32)
    whole = parts.scores(vectors)
    scores = documents.evidence.score(question, rows, whole, vectors, strength=strength, words=words)
    order = np.lexsort((rows, -scores))
    scores, rows = scores[order], rows[order]
    if limit is None or not excludes(question):
        return Weighed(scores[:k].tolist(), rows[:k].tolist(), min(k, len(rows)))
    features = features_of(documents.evidence, question.excluded, rows)
    is_out = limit.line.probabilities(features) > limit.probability
    kept = np.flatnonzero(~is_out)[:k]
    out = np.flatnonzero(is_out[: kept[-1]] if len(kept) == k else is_out)
    shown = np.concatenate([kept, out[:k]])
    best_clause = float(features[:, 0].max())
    return Weighed(scores[shown].tolist(), rows[shown].tolist(), len(kept), len(out), best_clause)


def _candidates(
    documents: WeighedDocuments, question: ConditionVectors, parts: QueryVectors, words: Array, k: int
) -> Rows:
    """The documents that are worth a look, in the order of their rows: all, or what the query or a part of it finds."""
    allowed, best = documents.allowed, documents.best
    count = len(documents.vectors) if allowed is None else int(allowed.sum())
    if count <= ALL:
        return np.arange(count) if allowed is None else np.flatnonzero(allowed)
    by_words = score_by_words(question, words)
    if allowed is not None:
        by_words = np.where(allowed, by_words, -np.inf)
    depth = min(max(DEPTH, 2 * k), count)
    found = [np.argpartition(-by_words, depth - 1)[:depth], best(parts, depth)]
    wanted = [asked for group in question.wanted for asked in group]
    for asked in wanted if len(wanted) > 1 else ():
        found.append(best(QueryVectors(asked.vector[None], asked.vector, None), min(PART_DEPTH, count)))
    return np.unique(np.concatenate([np.asarray(rows, np.int64) for rows in found]))


def reasons(
    evidence: Evidence, question: ConditionVectors, row: int, text: str, *, left_out: bool = False
) -> tuple[Reason, ...]:
    """For each part of a query the clause of a document that speaks for it, and for what is excluded against it.

    A clause that is a little like something excluded costs a document little, and is a reason only for leaving it out.
    """
    found = []
    for group in question.wanted:
        stated = [reason for asked in group if (reason := _reason(evidence, asked, row, text, "for")) is not None]
        found += [max(stated, key=lambda reason: reason.cosine)] if stated else []
    for asked in question.excluded:
        against, denied = (_reason(evidence, asked, row, text, says) for says in ("against", "denied"))
        near = [reason for reason in (against, denied) if reason is not None and reason.cosine > NEAR]
        nearest = max(near, key=lambda reason: reason.cosine, default=None)
        if nearest is not None and (left_out or nearest is denied or _is_clear(nearest, asked)):
            found.append(nearest)
    return tuple(found)


def _is_clear(reason: Reason, asked: Asked) -> bool:
    words = {word.removeprefix(DENIED) for word in asked.words}
    return reason.cosine > CLEAR or not words.isdisjoint(words_of(reason.clause))


def _reason(evidence: Evidence, asked: Asked, row: int, text: str, says: str) -> Reason | None:
    nearest = evidence.nearest(asked, row, denies=asked.denies != (says == "denied"))
    if nearest is None:
        return None
    return Reason(asked.part.text, says, text[nearest.start : nearest.end], nearest.start, nearest.end, nearest.cosine)
