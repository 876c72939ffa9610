"""Rank documents for a query: candidates, and two stages of scores.

Search, evaluation, calibration and reranking all come here. Where the documents are (a folder, a store, a list of
texts) is told by `RankedDocuments`.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.core.checks import check_count
from boolbert.retrieval.document_reader import LIKELY, DocumentReader, Passage, Said, document_reader, passage
from boolbert.retrieval.evidence import Array, Evidence
from boolbert.retrieval.exclusion_line import ExclusionLine, excludes, features_of
from boolbert.retrieval.literal import is_unspaced, literal, stands_in
from boolbert.retrieval.passages import exclude_by_document, family_of
from boolbert.retrieval.scoring import Asked, Question, first_stage, score_by_words, second_stage, word_scores

from .query_encoder import QueryVectors
from .read_best import read_best

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ALL = 4096  # documents of an index that is looked through as a whole
DEPTH = 300  # of a larger one: the best by the query's vector, and as many by its conditions' words; or 2 k
PART_DEPTH = 100  # and the best by the vector of each condition, where there are several
READ = 20  # documents that the document reader looks at


class RankedDocuments(NamedTuple):
    """The documents that are ranked.

    vectors: of all rows, with `rows(numbers)` for some of them. allowed: the rows that pass a filter; None: all.
    best: vectors, k -> the rows of the k best of these. candidates: scores, rows -> the documents, which have a text.
    wholes: for each row the number of its document, where documents were cut into passages. is_all: whether these are
    all documents that pass, not some that a database has found. device: where the search model is, and documents are
    read if that is a GPU.
    """

    evidence: Evidence
    vectors: Any
    allowed: npt.NDArray[np.bool_] | None
    best: Callable[[QueryVectors, int], Sequence[int]]
    candidates: Callable[[list[float], list[int]], list[Any]]
    wholes: Rows | None = None
    is_all: bool = True
    device: Any = None

    def texts(self, rows: Sequence[int]) -> list[str]:
        return [found.text for found in self.candidates([0.0] * len(rows), list(rows))]


class Limit(NamedTuple):
    """Documents that have what is excluded with a higher probability than this are left out.

    violations: the share of the others that then should have it.
    """

    line: ExclusionLine
    probability: float
    violations: float


class Ranking(NamedTuple):
    """The scores and rows of the best documents; behind the first `kept` stand some that were left out, by a limit or
    because they have what search-box syntax excludes.

    said: what those that were read say of each condition. left_out: how many documents were left out: all that have
    what search-box syntax excludes, and those that a limit left out from among the results. counted_all: False where a
    database may hold more of them. evidence: for what is excluded, the plain cosine of the best clause; None where
    there is no limit, or nothing is excluded.
    """

    scores: list[float]
    rows: list[int]
    kept: int
    said: dict[int, list[Said]]
    left_out: int = 0
    evidence: float | None = None
    counted_all: bool = True


def rank(
    documents: RankedDocuments,
    question: Question,
    parts: QueryVectors,
    k: int,
    *,
    strength: float = 1.0,
    limit: Limit | None = None,
    read: int = READ,
) -> Ranking:
    """The k best documents, without those that a limit or search-box syntax leaves out.

    strength: of NOT. read: how many documents the document reader looks at, 0 for none.
    """
    check_count("read", read, least=0)
    words = word_scores(documents.evidence, question)
    rows = _candidates(documents, question, parts, words, k)
    if not len(rows):
        return Ranking([], [], 0, {})
    vectors = documents.vectors.rows(rows).astype(np.float32)
    whole = parts.scores(vectors)
    scores = first_stage(documents.evidence, question, rows, whole, vectors, strength=strength, words=words)
    if documents.wholes is not None:
        of_rows, wholes = documents.vectors.rows, documents.wholes
        scores = exclude_by_document(
            documents.evidence, question, rows, scores, wholes, of_rows, strength=strength, words=words
        )
    order = np.lexsort((rows, -scores))
    scores, rows = scores[order], rows[order]
    said: dict[int, list[Said]] = {}
    if read and question.is_read and (reader := document_reader(documents.device)) is not None:
        # What is left out depends on all that were read; otherwise the first k alone are looked at.
        count = len(rows) if limit is not None or question.typed else k
        said = what_they_say(reader, documents, question, rows[:read].tolist(), scores[:read], count, strength)
        scores, rows = reread(question, scores, rows, said, strength)
    is_typed, best_clause = np.zeros(len(rows), bool), None
    if question.typed:
        is_typed = has_typed(documents, question, rows, said, rows)
    is_out = is_typed
    if limit is not None and excludes(question):
        features = features_of(documents.evidence, question.excluded, rows, documents.wholes)
        is_out = is_out | (limit.line.probabilities(features) > limit.probability)
        is_out = is_out | _same_document(rows, affirming(question, said), documents.wholes)
        best_clause = float(features[:, 0].max())
    kept = np.flatnonzero(~is_out)[:k]
    end = int(kept[-1]) if len(kept) == k else len(rows)
    out = _one_of_each(rows, np.flatnonzero(is_typed | (is_out & (np.arange(len(rows)) < end))), documents.wholes)
    left_out = len(out)
    counted_all = documents.is_all or not question.typed
    if question.typed and len(rows) < len(every := _every_row(documents)):  # those that no condition has found, too
        having = every[has_typed(documents, question, every, said, rows)]
        left_out = len(_one_of_each(having, np.arange(len(having)), documents.wholes))
        left_out += int((~is_typed[out]).sum())
        counted_all = counted_all and all(literal(asked.part.text) is None for asked in question.excluded)
    shown = np.concatenate([kept, out[:k]])
    return Ranking(scores[shown].tolist(), rows[shown].tolist(), len(kept), said, left_out, best_clause, counted_all)


def _every_row(documents: RankedDocuments) -> Rows:
    """The rows of all documents that pass the filter."""
    return np.arange(len(documents.vectors)) if documents.allowed is None else np.flatnonzero(documents.allowed)


def _one_of_each(rows: Rows, places: Rows, wholes: Rows | None) -> Rows:
    """Places in `rows`, of the passages of a document the first one."""
    if wholes is None:
        return places
    return places[np.sort(np.unique(wholes[rows[places]], return_index=True)[1])]


def has_typed(
    documents: RankedDocuments, question: Question, rows: Rows, said: dict[int, list[Said]], read: Rows
) -> Mask:
    """Which documents hold all words of something that is excluded by search-box syntax. A denied word is indexed as
    another word, so it does not count; nor does a document that the reader finds to deny it.

    read: the rows whose texts are looked through for what no index has.
    """
    found, first = np.zeros(len(rows), bool), len(question.parts) - len(question.excluded)
    for number, asked in enumerate(question.excluded, first):
        denied = [row for row, parts in said.items() if parts[number].denies >= LIKELY]
        found |= _same_document(rows, np.setdiff1d(_holding(documents, asked, read), denied), documents.wholes)
    return found


def _holding(documents: RankedDocuments, asked: Asked, read: Rows) -> Rows:
    """The rows that hold a condition: all of its words, or the phrase as it was typed (retrieval/literal.py)."""
    words = [word for word in dict.fromkeys(asked.words) if not is_unspaced(word)]
    holding: list[Any] = [documents.evidence.words.weights(word)[0] for word in words]
    phrase = literal(asked.part.text)
    if phrase is None:
        return reduce(np.intersect1d, holding) if holding else np.empty(0, np.int64)
    own = read if documents.wholes is None else family_of(documents.wholes, read)
    rows: Rows = own if not holding else np.intersect1d(own, reduce(np.intersect1d, holding))
    texts = zip(rows.tolist(), documents.texts(rows.tolist()), strict=True)
    return np.array([row for row, text in texts if stands_in(phrase, text)], np.int64)


def affirming(question: Question, said: dict[int, list[Said]]) -> Rows:
    """The documents that, as the reader finds, say that they have something of what is excluded."""
    if question.answer is not None:
        return np.empty(0, np.int64)
    first = len(question.parts) - len(question.excluded)
    has = [row for row, parts in said.items() if any(part.affirms >= LIKELY for part in parts[first:])]
    return np.array(has, np.int64)


def _same_document(rows: Rows, others: Rows, wholes: Rows | None) -> Mask:
    """Which rows are among the others, or are passages of the same document as one of them."""
    return np.isin(rows, others) if wholes is None else np.isin(wholes[rows], wholes[others])


def reread(
    question: Question, scores: Array, rows: Rows, said: dict[int, list[Said]], strength: float
) -> tuple[Array, Rows]:
    """The documents in the order of both stages: first those that were read, then the others in their old order, with
    scores that are lowered so that they stay below."""
    if not said:
        return scores, rows
    count = len(said)
    affirmed = np.array([[one.affirms for one in said[row]] for row in rows[:count].tolist()]).T
    both = scores[:count] + second_stage(question, affirmed, strength)
    order = np.argsort(-both, kind="stable")
    above = float(scores[count:].max(initial=-np.inf) - both.min())
    rest = scores[count:] - max(0.0, above)  # what was not read stands below what was
    return np.concatenate([both[order], rest]), np.concatenate([rows[:count][order], rows[count:]])


def what_they_say(
    reader: DocumentReader,
    documents: RankedDocuments,
    question: Question,
    rows: Sequence[int],
    scores: Array,
    k: int,
    strength: float = 1.0,
) -> dict[int, list[Said]]:
    """What documents say of each condition of a query, or of a question as a whole; nothing of those that are not read.

    scores, k, strength: as in `read_best`.
    """
    texts = documents.texts(rows)
    passages = [
        passages_of(documents.evidence, question.read_parts, row, text) for row, text in zip(rows, texts, strict=True)
    ]
    return dict(zip(rows, read_best(reader, question, passages, scores, k, strength), strict=True))


def passages_of(evidence: Evidence, parts: Sequence[Asked], row: int, text: str) -> list[Passage]:
    """What is read of a document for each part."""
    clauses, cosines = evidence.cosines(np.stack([part.vector for part in parts]), row)
    return [passage(part.part.text, text, clauses, own) for part, own in zip(parts, cosines, strict=True)]


def _candidates(documents: RankedDocuments, question: Question, parts: QueryVectors, words: Array, k: int) -> Rows:
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
