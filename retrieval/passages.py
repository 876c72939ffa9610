"""Documents that were cut into passages: what a query excludes is asked of the document, not of each passage alone.

"A town with a beach but without a metro": a passage about the beach says nothing of the metro that another passage of
the same town speaks of. So each passage loses what the passage of its document loses that has most of what is excluded.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

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
    family = np.flatnonzero(np.isin(wholes, wholes[rows]))  # the rows, and the other passages of their documents
    vectors, none = vectors_of(family).astype(np.float32), np.zeros(len(family), np.float32)
    wanted = replace(question, excluded=())
    count = len(wanted.parts)
    without = first_stage(evidence, wanted, family, none, vectors, strength=strength, words=words[:count])
    lost = without - first_stage(evidence, question, family, none, vectors, strength=strength, words=words)
    most = np.full(int(wholes.max()) + 1, -np.inf)
    np.maximum.at(most, wholes[family], lost)
    own = np.full(len(wholes), 0.0)
    own[family] = lost
    return scores + own[rows] - most[wholes[rows]]
