"""Why a document is found: the sentences that its scores rest on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from boolbert.retrieval.document_reader import LIKELY, Said, document_reader
from boolbert.retrieval.evidence import Evidence
from boolbert.retrieval.scoring import Asked, Question
from boolbert.retrieval.words import DENIED, words_of

from .rank import RankedDocuments, Ranking, passages_of

SURE = 0.6  # from which a sentence is shown against a document: below it, one in four denies what is excluded
CLEAR = 0.44  # without a reader, a clause is shown against a document above this, or where it has an excluded word


@dataclass(frozen=True)
class Reason:
    """A stretch of a found document, `text[start:end]`, and what it says about a condition of the query.

    says: "for" one that is wanted; "against", where it is excluded; "denied", where it denies what is excluded.
    confidence: the reader's probability; of a document that was not read, the cosine of the clause on the encoder's
    own scale.
    """

    part: str
    says: str
    clause: str
    start: int
    end: int
    confidence: float

    @property
    def speaks_for(self) -> bool:
        """Whether it speaks for the document."""
        return self.says != "against"

    @property
    def label(self) -> str:
        """What it says: "snack bars", "nuts", "not nuts"."""
        return f"not {self.part}" if self.says == "denied" else self.part


def reasons(
    documents: RankedDocuments, question: Question, ranking: Ranking, texts: Sequence[str]
) -> list[tuple[Reason, ...]]:
    """What each ranked document says of a query's conditions; nothing where no clause counts. texts: of the
    documents."""
    if not question.weights.clause:
        return [()] * len(texts)
    said = _with_plain_sentences(documents, question, ranking, texts)
    return [
        _reasons(documents.evidence, question, row, text, said.get(row), left_out=place >= ranking.kept)
        for place, (row, text) in enumerate(zip(ranking.rows, texts, strict=True))
    ]


def _with_plain_sentences(
    documents: RankedDocuments, question: Question, ranking: Ranking, texts: Sequence[str]
) -> dict[int, list[Said]]:
    """What documents say; of what is excluded, in a sentence that says it by itself, where there is one."""
    said = {row: list(own) for row, own in ranking.said.items()}
    if not said or question.answer is not None or (reader := document_reader(documents.device)) is None:
        return said
    first = len(question.parts) - len(question.excluded)
    places = [
        (row, number, passages_of(documents.evidence, [question.parts[number]], row, text)[0])
        for row, text in zip(ranking.rows, texts, strict=True)
        for number, one in enumerate(said.get(row, ())[first:], first)
        if one.is_sure
    ]
    found = reader.with_plain_sentences(
        [passage for *_, passage in places], [said[row][number] for row, number, _ in places]
    )
    for (row, number, _), one in zip(places, found, strict=True):
        said[row][number] = one
    return said


def _reasons(
    evidence: Evidence,
    question: Question,
    row: int,
    text: str,
    said: Sequence[Said] | None,
    *,
    left_out: bool,
) -> tuple[Reason, ...]:
    """The reader's sentences, or of a document that was not read the nearest clauses."""
    found: list[Reason | None] = []
    wanted = question.wanted
    if question.answer is not None and said is not None:
        found.append(_affirming_sentence([(question.answer, said[0])], text))
        wanted, said = () if found[0] else wanted, None
    each: Iterator[Said | None] = iter(said) if said is not None else repeat(None)
    for group in wanted:
        own = [(asked, next(each)) for asked in group]
        read = [(asked, one) for asked, one in own if one is not None and asked.is_read]
        if len(read) == len(group):
            found.append(_affirming_sentence(read, text))
        else:
            stated = [reason for asked in group if (reason := _clause(evidence, asked, row, text, "for")) is not None]
            found.append(max(stated, key=lambda reason: reason.confidence, default=None))
    for asked, one in zip(question.excluded, each, strict=False):
        if one is not None and asked.is_read:
            found.append(_excluded_sentence(asked, text, one, left_out))
        else:
            found.append(_excluded_clause(evidence, question, asked, row, text, left_out))
    return tuple(reason for reason in found if reason is not None)


def _affirming_sentence(group: Sequence[tuple[Asked, Said]], text: str) -> Reason | None:
    """The sentence that affirms one of a group best."""
    asked, best = max(group, key=lambda pair: pair[1].affirms)
    return _reason(asked, "for", text, best, best.affirms) if best.affirms >= LIKELY else None


def _excluded_sentence(asked: Asked, text: str, said: Said, left_out: bool) -> Reason | None:
    """The sentence that affirms or denies something excluded."""
    if said.affirms >= (LIKELY if left_out else SURE):
        return _reason(asked, "against", text, said, said.affirms)
    return _reason(asked, "denied", text, said, said.denies) if said.denies >= LIKELY else None


def _excluded_clause(
    evidence: Evidence, question: Question, asked: Asked, row: int, text: str, left_out: bool
) -> Reason | None:
    """The clause nearest to something excluded, where it is near enough to be shown."""
    against, denied = (_clause(evidence, asked, row, text, says) for says in ("against", "denied"))
    near = [one for one in (against, denied) if one is not None and one.confidence > question.weights.near]
    nearest = max(near, key=lambda reason: reason.confidence, default=None)
    if nearest is not None and (left_out or nearest is denied or _is_clear(nearest, asked)):
        return nearest
    return None


def _reason(asked: Asked, says: str, text: str, said: Said, confidence: float) -> Reason:
    return Reason(asked.part.text, says, text[said.start : said.end], said.start, said.end, round(confidence, 4))


def _is_clear(reason: Reason, asked: Asked) -> bool:
    words = {word.removeprefix(DENIED) for word in asked.words}
    return reason.confidence > CLEAR or not words.isdisjoint(words_of(reason.clause))


def _clause(evidence: Evidence, asked: Asked, row: int, text: str, says: str) -> Reason | None:
    nearest = evidence.nearest(asked.vector, row, denies=asked.denies != (says == "denied"))
    if nearest is None:
        return None
    confidence = float(evidence.from_unrelated(np.array(nearest.cosine)))
    return Reason(asked.part.text, says, text[nearest.start : nearest.end], nearest.start, nearest.end, confidence)
