"""The documents of an index or a vector store that are best for a query's vectors."""

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from boolbert.core.errors import RetrievalError
from boolbert.data.own.columns import written
from boolbert.retrieval.calibration import UNRELATED
from boolbert.retrieval.exclusion_line import OUTDATED, ExclusionLine
from boolbert.retrieval.index import STORE, Index
from boolbert.retrieval.shards import Vectors

from .query_encoder import QueryVectors
from .rank import DEPTH, PART_DEPTH, RankedDocuments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boolbert.retrieval.records import Record
    from boolbert.retrieval.scoring import Question
    from boolbert.retrieval.stores import FileStore, StoreHit, VectorStore
    from boolbert.retrieval.stores.file_store import Snapshot
    from boolbert.retrieval.stores.remote import RemoteStore

DEEPEST = 16_384  # documents of a store that are looked through; Milvus gives no more
LEAST_DEPTH = 64  # documents that a store is asked for at first where something is excluded
BLOCK = 8192  # documents that numpy compares at once
Found = TypeVar("Found")


class Candidate(NamedTuple):
    """A document as the index or store has found it."""

    score: float
    row: int | None
    id: str | None
    title: str
    text: str
    vector: npt.NDArray[np.float32]
    fields: "Mapping[str, Any]"  # what it has in its columns, as it has it
    reasons: tuple[Any, ...] = ()  # `rank.Reason`s, where the index has evidence


class DocumentSearch:
    """An index or a store, and how it is asked.

    device: where torch ranks the documents of an index; None: numpy does, which takes longer for many queries and is
    imported in a tenth of torch's time.
    """

    def __init__(self, index: "Index | VectorStore", device: Any):
        self._index, self.device = index, device
        self.follows = True  # whether it sees that the folder of an index has become a store

    @property
    def index(self) -> "Index | VectorStore":
        """The index, or the store that its folder has become since: by `boolbert index --add` or `--remove`."""
        if self.follows and isinstance(self._index, Index) and (self._index.folder / STORE).exists():
            self._index = self._store
        return self._index

    def was_calibrated(self, line: ExclusionLine) -> bool:
        """Whether a line was calibrated on the documents that are there now."""
        index = self.index
        if isinstance(index, Index):  # its documents never change; those of a store do
            return line.documents == len(index)
        if _as_remote(index) is not None:  # each change is written down there
            return line.documents == len(index) and line.content != OUTDATED
        return index.local().read(lambda now: now.content == line.content)

    def find(self, parts: QueryVectors, k: int, where: str | None = None) -> list[Candidate]:
        """The k best documents that pass the filter."""
        index = self.index
        if isinstance(index, Index) and where is None:
            return _candidates(index, *self.rank(index, parts, k))
        found = best_in_store(self._store, parts, k, where)
        kinds = self._store.about().fields
        return [_candidate(score, hit.record, hit.vector, kinds) for score, hit in found]

    def rank(self, index: Index, parts: QueryVectors, k: int) -> tuple[list[float], list[int]]:
        """The scores and rows of the k best documents."""
        if self.device is None:
            return _ranked_by_numpy(index, parts, k)
        import torch

        from boolbert.retrieval.neighbours import top_k

        device = torch.device(self.device)
        scores, rows = top_k(parts.asked[None], index.vectors.on(device), k, device=device)
        return scores[0].tolist(), rows[0].tolist()

    @property
    def vectors(self) -> tuple[Any, npt.NDArray[np.int64]]:
        """The documents' vectors, and the rows that count; some of them where they are in a database."""
        if isinstance(self.index, Index):
            return self.index.vectors, np.arange(len(self.index))
        if not self.index.about().evidence:
            return None, np.empty(0, np.int64)
        if (remote := _as_remote(self.index)) is not None:
            sample = np.array([found.vector for found in remote.sample(UNRELATED)], np.float32)
            return Vectors([sample.reshape(len(sample), remote.about().size)], remote.about().size), np.arange(
                len(sample)
            )
        now = self.index.local().snapshot()
        return now, np.flatnonzero(now.live)

    def ranked(
        self,
        where: str | None,
        rank: "Callable[[RankedDocuments], Found]",
        question: "Question",
        parts: QueryVectors,
        k: int,
    ) -> "Found":
        """What `rank` makes of the documents that pass the filter, where there is evidence.

        question, parts, k: what `rank` asks, by which a database finds its candidates.
        """
        index = self.index
        if not isinstance(index, Index) or where is not None:
            store = self._store
            if (remote := _as_remote(store)) is not None:
                return rank(_ranked_in_database(remote, question, parts, k, where)._replace(device=self.device))
            folder = store.local()
            return folder.read(lambda now: rank(_ranked_in_store(folder, now, where)._replace(device=self.device)))
        assert index.evidence is not None

        def best(parts: QueryVectors, k: int) -> "Sequence[int]":
            return self.rank(index, parts, k)[1]

        found = partial(_candidates, index)
        return rank(RankedDocuments(index.evidence, index.vectors, None, best, found, index.wholes, device=self.device))

    @cached_property
    def _store(self) -> "VectorStore":
        """The store; an index as one, which knows the documents' fields."""
        if not isinstance(self._index, Index):
            return self._index
        from boolbert.retrieval.stores import FileStore

        return FileStore(self._index.folder)


def _candidates(index: Index, scores: list[float], rows: list[int]) -> list[Candidate]:
    return [
        Candidate(score, row, None, document.title, document.text, _vector(index.vectors, row), fields)
        for score, row, document, fields in zip(scores, rows, index.at(rows), index.fields_at(rows), strict=True)
    ]


def _candidate(
    score: float, record: "Record", vector: npt.NDArray[np.float32], kinds: "Mapping[str, str]"
) -> Candidate:
    """A document of a store. kinds: of its fields."""
    return Candidate(score, None, record.id, record.title, record.text, vector, written(record.fields, kinds))


def _candidates_in_store(now: "Snapshot", scores: list[float], rows: list[int]) -> list[Candidate]:
    return [
        _candidate(score, record, _vector(now, row), now.about.fields)
        for score, row, record in zip(scores, rows, map(now.full_record, rows), strict=True)
    ]


def _as_remote(store: "VectorStore") -> "RemoteStore | None":
    """A store whose documents stay in a database; None for one that is searched on this machine."""
    from boolbert.retrieval.stores.remote import RemoteStore

    return store if isinstance(store, RemoteStore) else None


def _ranked_in_database(
    store: "RemoteStore", question: "Question", parts: QueryVectors, k: int, where: str | None
) -> RankedDocuments:
    """The candidates that a database finds, on this machine."""
    from boolbert.retrieval.stores.remote import candidates_of

    found = candidates_of(store, question, parts.fetched_by, max(DEPTH, 2 * k), max(PART_DEPTH, k), where)

    def best(parts: QueryVectors, k: int) -> "Sequence[int]":
        return np.argsort(-parts.scores(found.vectors[:]), kind="stable")[:k].tolist()

    def candidates(scores: list[float], rows: list[int]) -> list[Candidate]:
        kinds = store.about().fields
        return [
            _candidate(score, found.records[row], _vector(found.vectors, row), kinds)
            for score, row in zip(scores, rows, strict=True)
        ]

    # Only what is typed is counted, and a database counts its documents for each call.
    is_all = question.typed and where is None and len(found.records) == store.statistics().documents
    return RankedDocuments(found.evidence, found.vectors, None, best, candidates, found.wholes, is_all)


def _ranked_in_store(store: "FileStore", now: "Snapshot", where: str | None) -> RankedDocuments:
    """The documents of a folder that pass the filter. Its own search finds the best of them by vectors."""
    from boolbert.retrieval.stores.where import fitted_filter

    allowed = now.allowed(fitted_filter(where, now.about.fields))

    def best(parts: QueryVectors, k: int) -> list[int]:
        return _best_rows(store, now, parts, k, allowed)

    return RankedDocuments(now.evidence, now, allowed, best, partial(_candidates_in_store, now), now.wholes)


def best_in_store(
    store: "VectorStore", parts: QueryVectors, k: int, where: str | None
) -> "list[tuple[float, StoreHit]]":
    """The k best documents of a store, each with its score; the best first.

    The store sorts documents without the penalty for what is excluded. So it is asked for more and more of them, until
    no other document can be among the k best, but for no more than DEEPEST.
    """
    from boolbert.retrieval.penalty import ask_deeper

    def look(_: "Sequence[int]", depth: int) -> "list[tuple[list[StoreHit], list[float], float | None]]":
        found = store.search(parts.fetched_by[None], depth, where)[0]
        if parts.rows is None or not found:
            scores = [hit.score for hit in found]
        else:
            scores = parts.scores(np.array([hit.vector for hit in found], np.float32)).tolist()
        return [(found, scores, None if len(found) < depth else found[-1].score)]

    return ask_deeper(look, 1, k, _first_depth(parts, k), DEEPEST)[0]


def _best_rows(
    store: "FileStore", now: "Snapshot", parts: QueryVectors, k: int, allowed: npt.NDArray[np.bool_]
) -> list[int]:
    """The rows of the k best documents of a store on this machine; no document is read."""
    from boolbert.retrieval.penalty import ask_deeper

    def look(_: "Sequence[int]", depth: int) -> list[tuple[list[int], list[float], float | None]]:
        products, found = store.best_rows(now, parts.fetched_by, depth, allowed)  # (K, depth) each
        is_there = (found >= 0) & np.isfinite(products)
        rows = np.unique(found[is_there])
        bound = float(products[:, -1].max()) if is_there.all() and found.shape[1] == depth else None
        if not len(rows):
            return [([], [], bound)]
        scores = parts.scores(now.rows(rows))
        order = np.argsort(-scores, kind="stable")[:k]
        return [(rows[order].tolist(), scores[order].tolist(), bound)]

    return [row for _, row in ask_deeper(look, 1, k, _first_depth(parts, k), DEEPEST)[0]]


def _first_depth(parts: QueryVectors, k: int) -> int:
    """How many documents a store is asked for at first, which knows nothing of what is excluded."""
    return k if parts.excluded is None else max(k, min(max(4 * k, LEAST_DEPTH), DEEPEST))


def _ranked_by_numpy(index: Index, parts: QueryVectors, k: int) -> tuple[list[float], list[int]]:
    scores = np.empty(len(index), np.float32)
    for start in range(0, len(index), BLOCK):
        block = index.vectors[start : start + BLOCK].astype(np.float32, copy=False)
        scores[start : start + BLOCK] = parts.scores(block)
    if np.isnan(scores).any():
        raise RetrievalError(f"{index.folder}: its vectors hold NaN; index again")
    candidates = np.arange(len(scores))
    if k < len(scores):  # to sort all of them would take half of the time
        candidates = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    best = candidates[np.argsort(-scores[candidates], kind="stable")[:k]]  # ties by the lower row
    return scores[best].tolist(), best.tolist()


def _vector(vectors: Any, row: int) -> npt.NDArray[np.float32]:
    return vectors[row : row + 1][0].astype(np.float32)
