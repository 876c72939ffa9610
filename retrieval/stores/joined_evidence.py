"""What the documents of a store say: the evidence of its segments as if it were one folder's, less what was deleted.

BM25's weights depend on all documents. They are computed when a query asks for a word, so that scores are those of an
index that was freshly made from the documents that are left.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from boolbert.retrieval.calibration import spread_rows
from boolbert.retrieval.evidence import Array, DocumentEvidence, Evidence, Statement, best_of_each
from boolbert.retrieval.shards import rows_by_part
from boolbert.retrieval.words import Integers, WordIndex, word_weights

from .where import Mask

Rows = npt.NDArray[np.int64]
NONE: Rows = np.empty(0, np.int64)


class JoinedWords(WordIndex):
    """BM25 over the documents of several folders."""

    def __init__(self, parts: Sequence[WordIndex], starts: Rows, live: Mask):
        self._parts, self._places, self._live, self._documents = parts, starts, live, len(live)
        lengths = np.concatenate([np.empty(0, np.int32), *(part.lengths for part in parts)])
        self._live_count = int(live.sum())
        self._is_whole = self._live_count == len(live)
        self._relative = lengths / max(float(lengths[live].sum() / max(self._live_count, 1)), 1e-9)

    @property
    def documents(self) -> int:
        return self._live_count

    def weights(self, word: str) -> tuple[Integers, npt.NDArray[np.float16]]:
        if self._is_whole and len(self._parts) == 1:
            return self._parts[0].weights(word)
        held = [part.holding(word) for part in self._parts]
        rows = np.concatenate([NONE, *(start + rows for start, (rows, _) in zip(self._places, held, strict=False))])
        counts = np.concatenate([NONE, *(counts for _, counts in held)])
        if not self._is_whole:
            is_live = self._live[rows]
            rows, counts = rows[is_live], counts[is_live]
        return rows, word_weights(counts, self._relative[rows], len(rows), self._live_count)


class JoinedEvidence(Evidence):
    """The evidence of a store's segments; rows count through all of them. live: the rows that were not deleted."""

    def __init__(self, parts: Sequence[Evidence], live: Mask):
        self._parts, self._live = parts, live
        self._places = np.cumsum([0, *(part.manifest["documents"] for part in parts)])
        self._edges = self._places.tolist()
        self.words = JoinedWords([part.words for part in parts], self._places, live)

    @property
    def size(self) -> int:
        return sum(part.size for part in self._parts)

    def best(self, vectors: Array, rows: Rows) -> tuple[Array, Array]:
        order = np.argsort(rows, kind="stable")
        parts = rows_by_part(self._places, rows[order])
        found = [self._parts[number].compared(vectors, inside) for number, inside, _ in parts]
        affirming = np.zeros((len(vectors), len(rows)), np.float32)
        denying = np.zeros_like(affirming)
        if found:
            cosines, denies, counts = zip(*found, strict=True)
            together = np.concatenate(cosines, axis=1), np.concatenate(denies), np.concatenate(counts)
            affirming[:, order], denying[:, order] = best_of_each(*together)
        return affirming, denying

    def nearest(self, vector: Array, row: int, denies: bool) -> Statement | None:
        part, inside = self._at(row)
        return part.nearest(vector, inside, denies)

    def cosines(self, vectors: Array, row: int) -> tuple[list[tuple[int, int]], Array]:
        part, inside = self._at(row)
        return part.cosines(vectors, inside)

    def _at(self, row: int) -> tuple[Evidence, int]:
        """The segment that holds a document, and the document's row there."""
        number = bisect_right(self._edges, row) - 1
        return self._parts[number], row - self._edges[number]

    def _sample(self) -> Array:
        live = np.flatnonzero(self._live)
        rows = live[spread_rows(len(live))]
        found = [self._parts[number].middle_clauses(inside) for number, inside, _ in rows_by_part(self._places, rows)]
        return np.concatenate([vectors for vectors in found if len(vectors)] or [np.empty((0, 1), np.float32)])

    def documents(self, rows: Rows) -> Iterator[DocumentEvidence]:
        """What some documents say; their rows have to be in order."""
        for number, inside, _ in rows_by_part(self._places, rows):
            yield from self._parts[number].documents(inside)
