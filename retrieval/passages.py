"""Documents that were cut into passages: what a query excludes is asked of the document, not of each passage alone.

"A town with a beach but without a metro": a passage about the beach says nothing of the metro that another passage of
the same town speaks of. So in the first stage each passage loses as much as that passage of its document which loses
most, and where a document is left out, all of its passages are.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.retrieval.evidence import Array, Evidence
from boolbert.retrieval.scoring import Question, first_stage

Rows = npt.NDArray[np.int64]


def whole_documents(names: Sequence[str]) -> Rows | None:
    """For each row the number of its document, by the documents' names; None where each has one row.

    >>> whole_documents(["a", "b", "a"]).tolist(), whole_documents(["a", "b"])
    ([0, 1, 0], None)
    """
    numbers: dict[str, int] = {}
    rows = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
    return rows if len(numbers) < len(rows) else None


def family_of(wholes: Rows, rows: Rows) -> Rows:
    """These rows, and the other passages of their documents.

    >>> family_of(np.array([0, 1, 0, 2]), np.array([2, 3])).tolist()
    [0, 2, 3]
    """
    return np.flatnonzero(np.isin(wholes, wholes[rows]))


def largest_of_documents(values: npt.NDArray[Any], rows: Rows, wholes: Rows) -> npt.NDArray[Any]:
    """For each document the largest of the values (..., N) that its passages among these rows have.

    >>> largest_of_documents(np.array([3.0, 1.0, 2.0]), np.array([0, 1, 3]), np.array([0, 1, 1, 1])).tolist()
    [3.0, 2.0]
    """
    most = np.full((int(wholes.max()) + 1, *values.shape[:-1]), -np.inf, values.dtype)
    np.maximum.at(most, wholes[rows], np.moveaxis(values, -1, 0))
    return np.moveaxis(most, 0, -1)


def exclude_by_document(
    evidence: Evidence,
    question: Question,
    rows: Rows,
    scores: npt.NDArray[np.floating],
    wholes: Rows,
    vectors_of: Callable[[Rows], Array],
    *,
    strength: float,
    words: Array,
) -> npt.NDArray[np.floating]:
    """The scores of some rows, as `first_stage` gives them, with what each document loses in place of what each
    of its passages does. wholes: `whole_documents` of all rows. strength, words: as in `first_stage`."""
    if not question.excluded:
        return scores
    family = family_of(wholes, rows)
    vectors, none = vectors_of(family).astype(np.float32), np.zeros(len(family), np.float32)
    wanted = replace(question, excluded=())
    count = len(wanted.parts)
    without = first_stage(evidence, wanted, family, none, vectors, strength=strength, words=words[:count])
    lost = without - first_stage(evidence, question, family, none, vectors, strength=strength, words=words)
    most = largest_of_documents(lost, family, wholes)
    own = np.full(len(wholes), 0.0)
    own[family] = lost
    return scores + own[rows] - most[wholes[rows]]
