"""What the documents of a store say: the evidence of its segments as if it were one folder's, less what was deleted.

BM25's weights depend on all documents. They are computed when a query asks for a word, so that scores are those of an
index that was freshly made from the documents that are left.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from boolbert.retrieval.calibration import spread_rows
from boolbert.retrieval.evidence import Array, DocumentEvidence, Evidence, Statement
from boolbert.retrieval.shards import rows_by_part
from boolbert.retrieval.words import WordIndex, word_weights

from .where import Mask

Rows = npt.NDArray[np.int64]
NONE: Rows = np.empty(0, np.int64)


class JoinedWords(WordIndex):
    """BM25 over the documents of several folders."""

    def __init__(self, parts: Sequence[WordIndex], starts: Rows, live: Mask):
        self._parts, self._places, self._live, self._documents = parts, starts, live, len(live)
        lengths = np.concatenate([np.empty(0, np.int32), *(part.lengths for part in parts)])
        self._live_count = int(live.sum())
        self._relative = lengths / max(float(lengths[live].sum() / max(self._live_count, 1)), 1e-9)

    @property
    def documents(self) -> int:
        return self._live_count

    def weights(self, word: str) -> tuple[Rows, npt.NDArray[np.float16]]:
        held = [part.holding(word) for part in self._parts]
        rows = np.concatenate([NONE, *(start + rows for start, (rows, _) in zip(self._places, held, strict=False))])
        counts = np.concatenate([NONE, *(counts for _, counts in held)])
        is_live = self._live[rows]
        rows, counts = rows[is_live], counts[is_live]
        return rows, word_weights(counts, self._relative[rows], len(rows), self._live_count)


class JoinedEvidence(Evidence):
    """The evidence of a store's segments; rows count through all of them. live: the rows that were not deleted."""

    def __init__(self, parts: Sequence[Evidence], live: Mask):
        self._parts, self._live = parts, live
        self._places = np.cumsum([0, *(part.manifest["documents"] for part in parts)])
        self.words = JoinedWords([part.words for part in parts], self._places, live)

    @property
    def size(self) -> int:
        return sum(part.size for part in self._parts)

    def best(self, vectors: Array, rows: Rows) -> tuple[Array, Array]:
        affirming = np.zeros((len(vectors), len(rows)), np.float32)
        denying = np.zeros_like(affirming)
        for number, inside, places in rows_by_part(self._places, rows):
            affirming[:, places], denying[:, places] = self._parts[number].best(vectors, inside)
        return affirming, denying

    def nearest(self, vector: Array, row: int, denies: bool) -> Statement | None:
        ((number, (inside,), _),) = rows_by_part(self._places, np.array([row]))
        return self._parts[number].nearest(vector, int(inside), denies)

    def cosines(self, vectors: Array, row: int) -> tuple[list[tuple[int, int]], Array]:
        ((number, (inside,), _),) = rows_by_part(self._places, np.array([row]))
        return self._parts[number].cosines(vectors, int(inside))

    def _sample(self) -> Array:
        live = np.flatnonzero(self._live)
        rows = live[spread_rows(len(live))]
        found = [self._parts[number].middle_clauses(inside) for number, inside, _ in rows_by_part(self._places, rows)]
        return np.concatenate([vectors for vectors in found if len(vectors)] or [np.empty((0, 1), np.float32)])

    def documents(self, rows: Rows) -> Iterator[DocumentEvidence]:
        """What some documents say; their rows have to be in order."""
        for number, inside, _ in rows_by_part(self._places, rows):
            yield from self._parts[number].documents(inside)
