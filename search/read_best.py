"""Which of the best documents are read, and for which conditions: those that can still change the first k.

What the document reader says can only lower a document's score, so a document whose score is too low while it is still
taken to say all that is hoped for need not be read any further. The first k are exactly those that would be found if
all documents were read for all conditions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.retrieval.document_reader import NOTHING, DocumentReader, Passage, Said
from boolbert.retrieval.evidence import Array
from boolbert.retrieval.scoring import Question, second_stage


def read_best(
    reader: DocumentReader,
    question: Question,
    passages: Sequence[Sequence[Passage]],
    scores: Array,
    k: int,
    strength: float,
) -> list[list[Said]]:
    """What each document says of each condition, or of a question as a whole; nothing of what is not read.

    passages: of each document what is read of it for each of `question.read_parts`. scores: of the first stage, the
    best first. k: how many documents have to be the right ones; these are read for all conditions. strength: of NOT.
    """
    hopes, places = _hopes(question, strength), _read_places(question)
    affirmed = np.repeat(hopes[:, None], len(scores), 1)  # (P, N)
    is_unread = np.zeros(affirmed.shape, bool)
    is_unread[places] = True
    found = [[NOTHING] * len(hopes) for _ in scores]
    while True:
        highest = scores + second_stage(question, affirmed, strength)
        order = np.argsort(-highest, kind="stable")
        unread = [document for document in order.tolist() if is_unread[:, document].any()]
        needed = int(is_unread[:, order[:k]].any(0).sum())
        if not needed:
            return found
        is_first = len(places) > 1 and is_unread[places].all()  # what lowers scores most is seen at the best ones
        if k >= len(scores) or is_first:
            first = unread if k >= len(scores) else unread[: reader.at_once]
            asked = [(part, document) for document in first for part in places]
        else:
            lowered = _lowered(question, hopes, affirmed, is_unread, strength)
            count = -(-needed // reader.at_once) * reader.at_once  # as many take the same time
            asked = [
                (max((part for part in places if is_unread[part, document]), key=lambda part: lowered[part]), document)
                for document in unread[:count]
            ]
        said = reader.read([passages[document][places.index(part)] for part, document in asked])
        for (part, document), one in zip(asked, said, strict=True):
            found[document][part], affirmed[part, document], is_unread[part, document] = one, one.affirms, False


def _read_places(question: Question) -> list[int]:
    """The places of what is read among the rows of `second_stage`."""
    if question.answer is not None:
        return [0]
    return [place for place, part in enumerate(question.parts) if part.is_read]


def _hopes(question: Question, strength: float) -> npt.NDArray[Any]:
    """For each row of `second_stage` the probability that lowers a document's score least."""
    if question.answer is not None:
        return np.ones(1)
    excluded = len(question.excluded)
    return np.repeat([1.0, 0.0 if strength >= 0 else 1.0], [len(question.parts) - excluded, excluded])


def _lowered(question: Question, hopes: Array, affirmed: Array, is_unread: Array, strength: float) -> list[float]:
    """By how much each condition has lowered the scores of the documents that were read for it, on average."""
    hoped = np.repeat(hopes[:, None], affirmed.shape[1], 1)
    most, lowered = second_stage(question, hoped, strength), [0.0] * len(hopes)
    for part in range(len(hopes)):
        if not is_unread[part].all():
            alone = hoped.copy()
            alone[part] = affirmed[part]
            lowered[part] = float((most - second_stage(question, alone, strength))[~is_unread[part]].mean())
    return lowered
