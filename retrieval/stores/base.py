"""What every vector store can do, whatever stands behind it: a folder, FAISS, or a database.

Exclusion is in the query's vector, and alternatives are a batch of searches merged by the largest score: so any engine
that finds nearest neighbours serves Bool-BERT.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.core.checks import check_count
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.encoded_documents import About, EncodedDocuments
from boolbert.retrieval.evidence import DocumentEvidence, other_rules
from boolbert.retrieval.records import Record

from .where import Filter, fitted_filter

if TYPE_CHECKING:
    from .file_store import FileStore

WAIT = 10.0  # seconds that a writer waits for another one
Array = npt.NDArray[np.float32]


class StoreHit(NamedTuple):
    """A document that a search has found, its score and its vector."""

    score: float
    record: Record
    vector: Array


class VectorStore(EncodedDocuments):
    """Documents, their vectors and fields."""

    several_writers = False  # whether other processes may add documents at the same time

    @abstractmethod
    def exists(self) -> bool: ...

    @abstractmethod
    def _create(self, about: About) -> None: ...

    @abstractmethod
    def note(self, about: About) -> None:
        """Write down what has changed: new fields, or that it is complete."""

    @abstractmethod
    def _add(
        self, records: Sequence[Record], vectors: Array, evidence: Sequence[DocumentEvidence] | None = None
    ) -> None:
        """Add documents, no two of one id."""

    @abstractmethod
    def delete(self, ids: Collection[str]) -> dict[str, str]:
        """Delete documents by id, those with passages as a whole; for each record that was there its document's id."""

    @abstractmethod
    def digests(self, documents: Collection[str]) -> dict[str, str]:
        """The digests of the records of these documents, by the records' ids."""

    @abstractmethod
    def count(self, where: str | Filter | None = None) -> int: ...

    @abstractmethod
    def _nearest(self, vectors: Array, k: int, where: Filter | None) -> list[list[StoreHit]]:
        """For each vector the k documents of the highest dot product that pass the filter, best first."""

    @abstractmethod
    def writing(self, wait: float = WAIT) -> AbstractContextManager[None]:
        """While this holds, no other process writes into the store. Where one does, wait, then tell."""

    @abstractmethod
    def local(self) -> "FileStore":
        """The store itself, where its documents are on this machine; a RetrievalError where they are in a database."""

    @abstractmethod
    def records(self) -> Iterator[Record]:
        """All documents."""

    def ids(self) -> Iterator[str]:
        """The ids of all documents."""
        return (record.id for record in self.records())

    def close(self) -> None:
        """Let go of files and connections."""

    def create(self, about: About) -> None:
        """Make the store, or get ready to add to it. One of another encoder is refused."""
        if not self.exists():
            self._create(replace(about, complete=False))
            return
        old = self.about()
        self.check_encoder(about.encoder, about.model)
        for name, kind in about.fields.items():
            if old.fields.get(name, kind) != kind:
                raise RetrievalError(
                    f"{self.name}: field {name!r} holds {old.fields[name]}s there, and {kind}s here; rename the column"
                )
        if old.evidence and not about.evidence:
            raise RetrievalError(
                f"{self.name}: has evidence, and the new documents have none; leave --no-evidence out, or index them "
                "into a new store"
            )
        if old.evidence and old.rules != about.rules:
            raise other_rules(self.name)
        self.note(replace(old, fields={**old.fields, **about.fields}, complete=False))

    def add(
        self, records: Sequence[Record], vectors: Array, evidence: Sequence[DocumentEvidence] | None = None
    ) -> None:
        """Add documents. One whose id is there already takes its place. evidence: what each says, where a store has it.

        Killed at any moment, each document is there with its vector and its evidence, or not there.
        """
        about = self.about()
        if len(records) != len(vectors):
            raise RetrievalError(f"there are {len(records):,} documents and {len(vectors):,} vectors")
        if vectors.ndim != 2 or vectors.shape[1] != about.size:
            raise RetrievalError(f"{self.name}: vectors must be of size {about.size}, got {vectors.shape}")
        if about.evidence != (evidence is not None) or (evidence is not None and len(evidence) != len(records)):
            needs = "the evidence of each document" if about.evidence else "no evidence, since it was made without"
            raise RetrievalError(f"{self.name}: needs {needs}")
        rows = sorted({record.id: row for row, record in enumerate(records)}.values())  # of an id the last one counts
        if rows:
            own = None if evidence is None else [evidence[row] for row in rows]
            self._add([records[row] for row in rows], vectors[rows].astype(np.float32, copy=False), own)

    def __len__(self) -> int:
        return self.count()

    def search(self, vectors: npt.ArrayLike, k: int = 10, where: str | Filter | None = None) -> list[list[StoreHit]]:
        """The k best documents of each query: (Q, D), or (Q, K, D) for queries with alternatives, all in one call."""
        asked = np.asarray(vectors, dtype=np.float32)
        about = self.about()
        check_count("k", k)
        if asked.ndim not in (2, 3) or asked.shape[-1] != about.size:
            raise RetrievalError(
                f"{self.name}: query vectors must be of shape (number, {about.size}), got {asked.shape}; "
                "were they made by the model of this store?"
            )
        if not np.isfinite(asked).all():
            raise RetrievalError("a query vector holds NaN or infinity: the model is broken")
        found = self._nearest(asked.reshape(-1, about.size), k, fitted_filter(where, about.fields))
        if asked.ndim == 2:
            return found
        each = asked.shape[1]
        return [merged(found[start : start + each], k) for start in range(0, len(found), each)]

    def describe(self) -> dict[str, object]:
        about = self.about()
        return {"store": self.name, "documents": self.count(), **vars(about)}


def merged(rankings: Sequence[Sequence[StoreHit]], k: int) -> list[StoreHit]:
    """The rankings of a query's alternatives as one: a document's score is the largest that it has in any of them.

    `neighbours.merge_vectors` is the same for rows of an array.
    """
    best: dict[str, StoreHit] = {}
    for found in (found for ranking in rankings for found in ranking):
        if found.record.id not in best or best[found.record.id].score < found.score:
            best[found.record.id] = found
    return sorted(best.values(), key=lambda found: -found.score)[:k]
