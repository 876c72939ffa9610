"""What documents say, clause by clause: the files of an index's evidence.

One vector blurs what a long text says. Beside each document's vector stand those of its clauses, so that each condition
of a query can ask for the clause that speaks for it (retrieval/scoring.py).

evidence.json  of which documents, by which encoder and by which rules
vectors.npy    a vector for each clause, in int8
scales.npy     by which its numbers are multiplied
clauses.npy    where each clause begins and ends in its text, and whether it denies
starts.npy     where the clauses of each document begin
checks.npy     the check sum of each document's clauses, by which a changed one is noticed when it is read
words/         BM25 over the same documents: `retrieval/words.py`
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.boolean.clauses import split_clauses
from boolbert.core.errors import RetrievalError
from boolbert.core.files import check_sum, read_object, save_array, whole_folder, write_json
from boolbert.core.progress import shown_progress
from boolbert.retrieval.arrays import load_array
from boolbert.retrieval.calibration import spread_rows, unrelated_cosine
from boolbert.retrieval.shards import check_fields
from boolbert.retrieval.words import WordCounts, WordIndex, changed, words_of

FOLDER, MANIFEST = "evidence", "evidence.json"
FIELDS = {"documents": int, "corpus": str, "model": str}
# The version of the rules by which texts are taken apart, and of these files. Raise it with every change of what
# boolean/clauses.py, boolean/denials.py or retrieval/words.py make of a text: what was made by others has to be made
# again, since a query's words and clauses would not be those of the documents.
RULES = 3


AT_ONCE = 8192  # clauses that are encoded at once
# Clauses that are compared at once: their vectors in float32 stay in the processor's cache, and their products are so
# few that numpy does not share them out among threads, for which it would wait longer than it computes.
COMPARED = 128
NO_CLAUSES = np.empty((0, 3), np.int32)
MOST_UNRELATED = 0.95  # documents that all say the same do not tell what unrelated ones are like

Array = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Array]  # texts -> vectors of length 1


class Statement(NamedTuple):
    """The clause `text[start:end]` of a document that is nearest to a part of a query."""

    start: int
    end: int
    denies: bool
    cosine: float


class DocumentEvidence(NamedTuple):
    """What one document says: its words with their counts, and its clauses with their vectors, as the files have them.

    clauses: (C, 3), vectors: (C, D), scales: (C,)
    """

    words: Mapping[str, int]
    clauses: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float16]

    @property
    def size(self) -> int:
        """Its bytes on disk, less the share of the list of all words: a word has its document, count and weight."""
        return self.clauses.nbytes + self.vectors.nbytes + self.scales.nbytes + 8 + 4 + 4 + 7 * len(self.words)


class Evidence:
    """The clauses of an index's documents. Nothing is read before it is asked for."""

    def __init__(self, folder: Path, corpus: str, model: str):
        self.folder = folder
        try:
            self.manifest: dict[str, Any] = read_object(folder / MANIFEST, RetrievalError)
            check_fields(folder / MANIFEST, self.manifest, FIELDS)
            if self.manifest.get("rules") != RULES:
                raise other_rules(folder)
            count = self.manifest["documents"]
            self._starts = load_array(folder / "starts.npy", "int64", (count + 1,))
            clauses = int(self._starts[-1])
            self._vectors = load_array(folder / "vectors.npy", "int8", (clauses, None))
            self._scales = load_array(folder / "scales.npy", "float16", (clauses,))
            self._clauses = load_array(folder / "clauses.npy", "int32", (clauses, 3))
            self._checks = load_array(folder / "checks.npy", "uint32", (count,))
            self.words = WordIndex(folder / "words", count)
            if self.manifest.get("content") != check_sum(self._starts, self._checks, *self.words.small_files):
                raise ValueError("starts.npy, checks.npy or words/ was changed after it was written")
        except RetrievalError:
            raise
        except Exception as error:  # not there, empty, cut short: numpy has an error type for each
            raise RetrievalError(f"{folder}: is damaged ({error}); delete it, and index again") from None
        if (self.manifest["corpus"], self.manifest["model"]) != (corpus, model):
            raise RetrievalError(f"{folder}: belongs to other documents or another model; delete it, and index again")
        self._is_checked = np.zeros(count, np.bool_)

    @classmethod
    def in_memory(cls, documents: Iterable[DocumentEvidence], unrelated: float = 0.0) -> "Evidence":
        """The evidence of a few documents, without files. unrelated: the cosine of texts that share nothing."""
        own, counts = list(documents), WordCounts()
        for document in own:
            counts.add(document.words)
        return cls.of_documents(own, WordIndex.in_memory(counts), unrelated)

    @classmethod
    def of_documents(cls, documents: Sequence[DocumentEvidence], words: WordIndex, unrelated: float) -> "Evidence":
        """The evidence of a few documents, without files. words: BM25 over the same documents."""
        evidence = cls.__new__(cls)
        said = [document for document in documents if len(document.clauses)]
        no_vectors = np.empty((0, said[0].vectors.shape[1] if said else 1), np.int8)
        evidence.folder, evidence.manifest = Path("memory"), {"documents": len(documents)}
        evidence._vectors = np.concatenate([no_vectors, *(document.vectors for document in said)])
        evidence._scales = np.concatenate([np.empty(0, np.float16), *(document.scales for document in said)])
        evidence._clauses = np.concatenate([NO_CLAUSES, *(document.clauses for document in said)])
        evidence._is_checked = np.ones(len(documents), np.bool_)  # no file can have been changed
        evidence._starts = np.cumsum([0, *(len(document.clauses) for document in documents)])
        evidence.words, evidence.unrelated = words, unrelated
        return evidence

    @classmethod
    def build(
        cls, folder: Path, texts: Sequence[str], encode: Encode, *, corpus: str, model: str, progress: bool = True
    ) -> None:
        """Write the evidence of documents into a folder, which is whole or not there."""
        with shown_progress("evidence", len(texts), "document", shown=progress) as advance:
            cls.write(folder, evidence_of(texts, encode, advance), corpus=corpus, model=model)

    @classmethod
    def write(cls, folder: Path, documents: Iterable[DocumentEvidence], *, corpus: str, model: str) -> None:
        counts, starts, clauses, scales, size = WordCounts(), [0], [NO_CLAUSES], [np.empty(0, np.float16)], 1
        checks: list[int] = []
        with whole_folder(folder) as aside, (aside / "vectors.npy").open("wb") as file:
            for document in documents:
                counts.add(document.words)
                starts.append(starts[-1] + len(document.clauses))
                checks.append(_check_of(document.vectors, document.scales, document.clauses))
                if not len(document.clauses):
                    continue
                if len(clauses) == 1:
                    size = document.vectors.shape[1]
                    write_header(file, (0, size))
                clauses.append(document.clauses)
                scales.append(document.scales)
                file.write(document.vectors.tobytes())
            file.seek(0)
            write_header(file, (starts[-1], size))  # as long as the first one: numpy leaves room for any number of rows
            rows, sums = np.array(starts, np.int64), np.array(checks, np.uint32)
            save_array(aside / "scales.npy", np.concatenate(scales))
            save_array(aside / "clauses.npy", np.concatenate(clauses))
            save_array(aside / "checks.npy", sums)
            save_array(aside / "starts.npy", rows)
            (aside / "words").mkdir()
            content = check_sum(rows, sums, *counts.write(aside / "words"))
            numbers = {"documents": len(starts) - 1, "clauses": starts[-1], "content": content, "rules": RULES}
            write_json(aside / MANIFEST, {**numbers, "corpus": corpus, "model": model})

    def documents(self, rows: npt.NDArray[np.int64]) -> Iterator[DocumentEvidence]:
        """What some documents say, as `write` takes it."""
        self._check(rows)
        for row, words in zip(rows, self.words.of_documents(rows), strict=True):
            inside = slice(self._starts[row], self._starts[row + 1])
            yield DocumentEvidence(words, self._clauses[inside], self._vectors[inside], self._scales[inside])

    @property
    def size(self) -> int:
        """Its bytes on disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def best(self, vectors: Array, rows: npt.NDArray[np.int64]) -> tuple[Array, Array]:
        """The best cosines of each vector (P, D) in each of these documents (P, N): among the clauses that affirm, and
        among those that deny; 0 where none is near."""
        return best_of_each(*self.compared(vectors, rows))

    def compared(
        self, vectors: Array, rows: npt.NDArray[np.int64]
    ) -> tuple[Array, npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """The cosines of vectors (P, D) with the clauses of some documents (P, C), one document after the other; which
        clauses deny; and how many each document has."""
        self._check(rows)
        inside, counts = self._inside(rows)
        products = np.empty((len(inside), len(vectors)), np.float32)
        for first in range(0, len(inside), COMPARED):
            these = slice(first, first + COMPARED)
            products[these] = self._vectors[inside[these]].astype(np.float32) @ vectors.T
        cosines = np.ascontiguousarray(products.T) * self._scales[inside].astype(np.float32)
        return cosines, self._clauses[inside, 2].astype(bool), counts

    def _check(self, rows: npt.NDArray[np.int64]) -> None:
        """Raise where what these documents say is not as it was written. Each is looked at when it is first read."""
        for row in rows[~self._is_checked[rows]].tolist():
            inside = slice(self._starts[row], self._starts[row + 1])
            if _check_of(self._vectors[inside], self._scales[inside], self._clauses[inside]) != self._checks[row]:
                raise changed(self.folder)
        self._is_checked[rows] = True

    def _checked(self, row: int) -> slice:
        """Where the clauses of one document are, which are as they were written."""
        if not self._is_checked[row]:
            self._check(np.array([row]))
        return slice(int(self._starts[row]), int(self._starts[row + 1]))

    def nearest(self, vector: Array, row: int, denies: bool) -> Statement | None:
        """A document's clause that is nearest to a part of a query, among those that deny or those that do not."""
        own = self._checked(row)
        inside = own.start + np.flatnonzero(self._clauses[own, 2] == denies)
        if not len(inside):
            return None
        cosines = (self._vectors[inside].astype(np.float32) @ vector) * self._scales[inside]
        nearest = int(cosines.argmax())
        start, end, _ = self._clauses[inside[nearest]].tolist()
        return Statement(start, end, denies, float(cosines[nearest]))

    def cosines(self, vectors: Array, row: int) -> tuple[list[tuple[int, int]], Array]:
        """The clauses of a document, where each begins and ends, and their cosines with vectors: (P, C)."""
        inside = self._checked(row)
        if inside.start == inside.stop:  # vectors of no clauses at all have no size
            return [], np.empty((len(vectors), 0), np.float32)
        found = (vectors @ self._vectors[inside].astype(np.float32).T) * self._scales[inside].astype(np.float32)
        return [(int(start), int(end)) for start, end, _ in self._clauses[inside].tolist()], found

    def from_unrelated(self, cosines: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Cosines on the encoder's own scale: 0 for texts that have nothing in common, 1 for equal ones."""
        unrelated = min(self.unrelated, MOST_UNRELATED)
        return (cosines - unrelated) / (1 - unrelated)

    @cached_property
    def unrelated(self) -> float:
        """The cosine of clauses that have little in common, as those of different documents tell."""
        return unrelated_cosine(self._sample())

    def _sample(self) -> Array:
        """The vectors of clauses of different documents, from all over."""
        return self.middle_clauses(spread_rows(len(self._starts) - 1))

    def middle_clauses(self, rows: npt.NDArray[np.int64]) -> Array:
        """The vector of the middle clause of each of these documents that has any; their lengths mean nothing."""
        has = rows[self._starts[rows] < self._starts[rows + 1]]
        first = self._starts[has] + (self._starts[has + 1] - self._starts[has]) // 2
        return self._vectors[first].astype(np.float32)

    def _inside(self, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The clauses of these documents, one document after the other, and how many each has."""
        first, counts = self._starts[rows], self._starts[rows + 1] - self._starts[rows]
        ends = np.cumsum(counts)
        return np.repeat(first - ends + counts, counts) + np.arange(counts.sum()), counts


def best_of_each(cosines: Array, denies: npt.NDArray[np.bool_], counts: npt.NDArray[np.int64]) -> tuple[Array, Array]:
    """From what `Evidence.compared` gives, the best cosines in each document (P, N): among the clauses that affirm, and
    among those that deny; 0 where none is near.

    >>> best_of_each(np.float32([[0.5, -0.2, 0.9]]), np.array([False, False, True]), np.array([1, 0, 2]))[0].tolist()
    [[0.5, 0.0, 0.0]]
    """
    affirming = np.zeros((len(cosines), len(counts)), np.float32)
    denying = np.zeros_like(affirming)
    has = np.flatnonzero(counts)
    if len(has):
        first = (np.cumsum(counts) - counts)[has]
        for found, is_other in ((affirming, denies), (denying, ~denies)):
            own = np.maximum(np.where(is_other, 0.0, cosines), 0.0)
            found[:, has] = np.maximum.reduceat(own, first, axis=1)
    return affirming, denying


def evidence_of(
    texts: Iterable[str], encode: Encode, advance: Callable[[int], object] = lambda count: None
) -> Iterator[DocumentEvidence]:
    """What each document says. The clauses of many are encoded at once. advance: called with how many are done."""
    read: list[tuple[Counter[str], npt.NDArray[np.int32]]] = []
    clauses: list[str] = []
    for text in texts:
        found = split_clauses(text)
        spans = np.array([(clause.start, clause.end, clause.denies) for clause in found], np.int32)
        read.append((Counter(words_of(text, found, decades=True)), spans.reshape(-1, 3)))
        clauses += [text[clause.start : clause.end] for clause in found]
        if len(clauses) >= AT_ONCE:
            yield from _with_vectors(read, clauses, encode)
            advance(len(read))
            read, clauses = [], []
    yield from _with_vectors(read, clauses, encode)
    advance(len(read))


def _with_vectors(
    read: Sequence[tuple[Counter[str], npt.NDArray[np.int32]]], clauses: Sequence[str], encode: Encode
) -> Iterator[DocumentEvidence]:
    vectors, scales = in_bytes(encode(clauses)) if clauses else (np.empty((0, 1), np.int8), np.empty(0, np.float16))
    end = 0
    for words, spans in read:
        start, end = end, end + len(spans)
        yield DocumentEvidence(words, spans, vectors[start:end], scales[start:end])


def _check_of(vectors: npt.NDArray[np.int8], scales: npt.NDArray[np.float16], clauses: npt.NDArray[np.int32]) -> int:
    """The check sum of a document's clauses; 0 for a document without any."""
    return check_sum(*map(np.ascontiguousarray, (vectors, scales, clauses))) if len(clauses) else 0


def rules_of(folder: Path) -> int:
    """The version of the rules by which evidence was made; 0 where it does not know."""
    with suppress(OSError, RetrievalError):
        rules = read_object(folder / MANIFEST, RetrievalError).get("rules")
        return rules if type(rules) is int else 0
    return 0


def other_rules(name: Any) -> RetrievalError:
    return RetrievalError(
        f"{name}: its evidence was made by the rules of another version of this package; index the documents again, or "
        "search with --no-evidence"
    )


def write_header(file: BinaryIO, shape: tuple[int, int]) -> None:
    """The header of a .npy file of bytes."""
    np.lib.format.write_array_header_1_0(file, {"descr": "|i1", "fortran_order": False, "shape": shape})


def unit_length(vectors: Array) -> Array:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def in_bytes(vectors: Array) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float16]]:
    """Vectors as int8, and for each the number by which it has to be multiplied.

    >>> numbers, scales = in_bytes(np.array([[0.6, -0.8]], np.float32))
    >>> np.abs(numbers * scales[:, None] - [[0.6, -0.8]]).max() < 0.005
    np.True_
    """
    scales = (np.abs(vectors).max(1) / 127).clip(1e-6).astype(np.float16)
    return np.rint(vectors / scales[:, None].astype(np.float32)).clip(-127, 127).astype(np.int8), scales
