"""The store without a server: a folder, searched exactly. Each batch that is added is an index (retrieval/index.py).

store.json   what is stored, which indexes belong to it, and which of their rows were deleted; replaced as a whole, so
             that a reader sees all of a change or nothing of it
00001/ ...   the indexes. Small ones are joined as more are added
.lock        held by the process that writes

A folder of `boolbert index --output` is such a store as well; what is added to it later stands in folders below it.
"""

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from filelock import FileLock, Timeout

from boolbert.core.errors import BoolBertError, RetrievalError
from boolbert.core.files import check_sum, is_aside, make_folder, read_object, write_json
from boolbert.data import Document
from boolbert.data.own.columns import TEXT
from boolbert.retrieval.encoded_documents import About
from boolbert.retrieval.evidence import FOLDER as EVIDENCE
from boolbert.retrieval.evidence import DocumentEvidence, Evidence
from boolbert.retrieval.index import MANIFEST as INDEX_MANIFEST
from boolbert.retrieval.index import RECORDS, Index, found_name, lasting_name, numbered, write_index
from boolbert.retrieval.index import STORE as MANIFEST
from boolbert.retrieval.neighbours import QUERY_BLOCK, best_of, dot_products
from boolbert.retrieval.records import Record, id_of
from boolbert.retrieval.shards import SHARD_SIZE, Vectors
from boolbert.retrieval.store_names import check_folder_name

from .base import WAIT, Array, StoreHit, VectorStore
from .joined_evidence import JoinedEvidence
from .where import Filter, Mask, NumberColumn, TextColumn, fitted_filter, matching

LOCK = ".lock"
REMEDY = "delete the folder and index again"
_TRIES = 50  # to read what a writer replaces meanwhile
T = TypeVar("T")
Part = tuple[Sequence[Record], Array, Sequence[DocumentEvidence] | None]


class Segment:
    """An index of the store, with the ids and fields of its documents."""

    def __init__(self, folder: Path, name: str):
        self.name = name
        self.index = Index(folder / name)

    def __len__(self) -> int:
        return len(self.index)

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Id, document, digest and fields of each row. An index without them has its titles for ids."""
        path = self.index.folder / RECORDS
        if not path.exists() and "records" not in self.index.manifest:
            documents = list(self.index.documents())
            names = numbered(document.title for document in documents)
            pairs = zip(names, documents, strict=True)
            return [Record(id_of(name), one.title, one.text).beside_text() for name, one in pairs]
        try:
            content = path.read_bytes()
            self.index.check_records(content)
            records = [json.loads(line) for line in content.splitlines()]
            if len(records) != len(self):
                raise ValueError(f"{len(records):,} records of {len(self):,} documents")
        except (OSError, ValueError) as error:
            raise RetrievalError(f"{path}: is damaged ({error}); index again") from None
        return records

    def record(self, row: int) -> Record:
        content = self.index[row]
        return Record.stored(self.records[row], content.title, content.text)

    @property
    def evidence(self) -> Evidence:
        """What its documents say; a RetrievalError where that is missing or damaged."""
        try:
            evidence, problem = self.index.evidence, f"{self.index.folder / EVIDENCE}: is missing"
        except RetrievalError as error:
            evidence, problem = None, str(error).partition(";")[0]
        if evidence is None:
            raise RetrievalError(f"{problem}; delete the store and index again, or search with --no-evidence")
        return evidence

    def part(self, deleted: Sequence[int], has_evidence: bool) -> Part:
        """Its documents less those that were deleted, their vectors, and what they say."""
        rows = np.setdiff1d(np.arange(len(self)), deleted)
        evidence = list(self.evidence.documents(rows)) if has_evidence else None
        return [self.record(int(row)) for row in rows], self.index.vectors.rows(rows).astype(np.float32), evidence


class Snapshot(Vectors):
    """The store as it was at one moment: the vectors of its segments, whose rows count through all of them."""

    def __init__(self, about: About, segments: Sequence[Segment], deleted: dict[str, list[int]], next: int = 1):
        super().__init__([part for segment in segments for part in segment.index.vectors.parts], about.size)
        self.about = about
        self.next = next  # the number of the segment that is added next; none is ever used twice
        self.segments = list(segments)
        self.deleted = deleted
        self.starts = np.cumsum([0, *map(len, self.segments)])
        self._columns: dict[str, NumberColumn | TextColumn] = {}

    @cached_property
    def evidence(self) -> JoinedEvidence:
        """What its documents say."""
        return JoinedEvidence([segment.evidence for segment in self.segments], self.live)

    @cached_property
    def live(self) -> Mask:
        """The rows that were not deleted."""
        mask = np.ones(len(self), np.bool_)
        for start, segment in zip(self.starts, self.segments, strict=False):
            mask[start + np.array(self.deleted.get(segment.name, []), dtype=np.int64)] = False
        return mask

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Id, document, digest and fields of each row."""
        return [record for segment in self.segments for record in segment.records]

    @cached_property
    def wholes(self) -> npt.NDArray[np.int64] | None:
        """For each row the number of its document, where documents were cut into passages: retrieval/passages.py."""
        parts = [segment.index.wholes for segment in self.segments]
        if all(part is None for part in parts):
            return None
        pairs = zip(self.starts, self.segments, parts, strict=False)  # a document's passages are in one segment
        return np.concatenate([start + (np.arange(len(one)) if part is None else part) for start, one, part in pairs])

    @cached_property
    def content(self) -> int:
        """A check sum of the documents, whatever their order and their segments."""
        live = (self.records[row] for row in np.flatnonzero(self.live).tolist())
        return check_sum("\n".join(sorted(f"{record['id']} {record['digest']}" for record in live)).encode())

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each id."""
        return {self.records[row]["id"]: row for row in np.flatnonzero(self.live).tolist()}

    @cached_property
    def passages(self) -> dict[str, list[str]]:
        """The ids of the passages of each document that has several."""
        found: dict[str, list[str]] = {}
        for id, row in self.row_of.items():
            if (document := self.records[row]["document"]) != id:
                found.setdefault(document, []).append(id)
        return found

    def ids_of(self, documents: Collection[str]) -> Iterator[str]:
        """The ids of the records of these documents, and of those that are named themselves."""
        for name in documents:
            yield from self.passages.get(name, [])
            if name in self.row_of:
                yield name

    def at(self, row: int) -> tuple[Segment, int]:
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.segments[number], row - int(self.starts[number])

    def full_record(self, row: int) -> Record:
        segment, inside = self.at(row)
        return segment.record(inside)

    def allowed(self, where: Filter | None) -> Mask:
        return self.live if where is None else self.live & matching(where, self.column)

    def column(self, name: str) -> NumberColumn | TextColumn:
        if name not in self._columns:
            values = [record["fields"].get(name) for record in self.records]
            is_text = self.about.fields[name] == TEXT
            self._columns[name] = TextColumn([value or () for value in values]) if is_text else np.array(values, float)
        return self._columns[name]


class FileStore(VectorStore):
    """A folder of indexes. Searches are exact; any number of processes may read while one writes."""

    def __init__(self, folder: str | Path):
        check_folder_name(folder)
        self.folder = Path(folder)
        self.name = str(folder)
        self._snapshot: tuple[Any, Snapshot] | None = None
        self._lock = FileLock(self.folder / LOCK)

    def exists(self) -> bool:
        return (self.folder / MANIFEST).exists() or (self.folder / INDEX_MANIFEST).exists()

    def about(self) -> About:
        return self.read(lambda now: now.about)

    def _create(self, about: About) -> None:
        if self.folder.exists() and any(path.name != LOCK and not is_aside(path) for path in self.folder.iterdir()):
            raise RetrievalError(f"{self.folder}: holds files that are no store; give a folder of its own")
        make_folder(self.folder)
        self._write(about, [], {}, 1)

    def note(self, about: About) -> None:
        with self.writing():
            now = self.snapshot()
            self._write(about, now.segments, now.deleted, now.next)

    def count(self, where: str | Filter | None = None) -> int:
        return self.read(lambda now: int(now.allowed(fitted_filter(where, now.about.fields)).sum()))

    def digests(self, documents: Collection[str]) -> dict[str, str]:
        return self.read(lambda now: {id: now.records[now.row_of[id]]["digest"] for id in now.ids_of(documents)})

    def _add(
        self, records: Sequence[Record], vectors: Array, evidence: Sequence[DocumentEvidence] | None = None
    ) -> None:
        with self.writing():
            now = self.snapshot()
            gone = _with(now, [now.row_of[record.id] for record in records if record.id in now.row_of])
            kept, joined = _small_tail(now.segments, gone, len(records))
            parts = [
                *(segment.part(gone.get(segment.name, []), evidence is not None) for segment in joined),
                (records, vectors, evidence),
            ]
            name = f"{now.next:05d}"
            shutil.rmtree(self.folder / name, ignore_errors=True)  # of a writer that was killed
            all_records = [record for part, _, _ in parts for record in part]
            write_index(
                self.folder / name,
                [Document(record.title, record.text) for record in all_records],
                (record.beside_text() for record in all_records),
                np.concatenate([part for _, part, _ in parts]),
                {"document_encoder": now.about.encoder, "model": now.about.model, "source": now.about.source},
                None if evidence is None else (document for _, _, part in parts for document in part or ()),
            )
            self._write(now.about, [*kept, Segment(self.folder, name)], gone, now.next + 1)

    def delete(self, ids: Collection[str]) -> dict[str, str]:
        with self.writing():
            now = self.snapshot()
            rows = {id: now.row_of[id] for id in now.ids_of(ids)}
            if rows:
                self._write(now.about, now.segments, _with(now, rows.values()), now.next)
            return {id: now.records[row]["document"] for id, row in rows.items()}

    def _nearest(self, vectors: Array, k: int, where: Filter | None) -> list[list[StoreHit]]:
        return self.read(lambda now: self._search(now, vectors, k, where))

    def local(self) -> "FileStore":
        return self

    def records(self) -> Iterator[Record]:
        now = self.snapshot()
        return (now.full_record(int(row)) for row in np.flatnonzero(now.live))

    def _search(self, now: Snapshot, vectors: Array, k: int, where: Filter | None) -> list[list[StoreHit]]:
        if not len(now):
            return [[] for _ in vectors]
        allowed = now.allowed(where)
        found: list[list[StoreHit]] = []
        for start in range(0, len(vectors), QUERY_BLOCK):
            scores, rows = self.best_rows(now, vectors[start : start + QUERY_BLOCK], k, allowed)
            found += [_hits(now, *ranking) for ranking in zip(scores, rows, strict=True)]
        return found

    def best_rows(self, now: Snapshot, vectors: Array, k: int, allowed: Mask) -> tuple[Array, npt.NDArray[np.int64]]:
        """Scores and rows of the best documents; -inf or row -1 where there are no more."""
        score = dot_products(torch.from_numpy(np.ascontiguousarray(vectors)), now)
        if allowed.all():
            return best_of(score, len(now), k)
        banned = torch.from_numpy(~allowed)

        def allowed_only(start: int, end: int) -> torch.Tensor:
            return score(start, end).masked_fill(banned[start:end], -torch.inf)

        return best_of(allowed_only, len(now), k)

    def read(self, read: Callable[[Snapshot], T]) -> T:
        """What a function reads; once more where a writer has joined segments meanwhile, so that files are gone."""
        for attempt in range(_TRIES):
            stamp = self._stamp()
            try:
                return read(self.snapshot())
            except (RetrievalError, OSError):
                if attempt == _TRIES - 1 or self._stamp() == stamp:
                    raise
        raise AssertionError

    def snapshot(self) -> Snapshot:
        """The store as it is now; opened again only where a writer has changed it."""
        stamp, old = self._stamp(), self._snapshot
        if old is not None and old[0] == stamp:
            return old[1]
        opened = self._open({} if old is None else {segment.name: segment for segment in old[1].segments})
        self._snapshot = (stamp, opened)
        return opened

    def _stamp(self) -> tuple[int, ...]:
        for name in (MANIFEST, INDEX_MANIFEST):
            with suppress(OSError):
                status = (self.folder / name).stat()
                return status.st_mtime_ns, status.st_size, status.st_ino
        raise RetrievalError(
            f"{self.folder}: no store there; make one with: boolbert index DOCS.jsonl --store {self.folder}"
        )

    def _open(self, known: dict[str, Segment]) -> Snapshot:
        path = self.folder / MANIFEST
        if not path.exists():
            segment = Segment(self.folder, ".")  # opened again, since what it knows of itself has changed
            return Snapshot(segment.index.about(), [segment], {})
        try:
            content = read_object(path, RetrievalError)
            about = About.stored(content["about"], f"{path}:", REMEDY)
            about = replace(about, model=found_name(about.model, self.folder))
            names, deleted, next = list(content["segments"]), dict(content["deleted"]), int(content["next"])
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, BoolBertError):
                raise
            raise RetrievalError(f"{path}: is damaged ({error!r}); {REMEDY}") from None
        return Snapshot(about, [known.get(name) or Segment(self.folder, name) for name in names], deleted, next)

    def _write(self, about: About, segments: Sequence[Segment], deleted: dict[str, list[int]], next: int) -> None:
        """Make this the store, without segments of which nothing is left, and delete what no longer belongs to it."""
        names = [segment.name for segment in segments if len(deleted.get(segment.name, [])) < len(segment)]
        gone = {name: deleted[name] for name in names if deleted.get(name)}
        told = {**asdict(about), "model": lasting_name(about.model, self.folder)}
        content = {"about": told, "segments": names, "deleted": gone, "next": next}
        write_json(self.folder / MANIFEST, content)
        for folder in self.folder.iterdir():
            if folder.name.isdecimal() and folder.is_dir() and folder.name not in names:
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def writing(self, wait: float = WAIT) -> Iterator[None]:
        make_folder(self.folder)  # another process may be making it at this moment
        try:
            held = self._lock.acquire(timeout=wait)  # a process that has it may take it again
        except Timeout:
            raise RetrievalError(
                f"{self.name}: another process is writing into it; try again when it has finished"
            ) from None
        with held:
            yield


def _hits(now: Snapshot, scores: Array, rows: npt.NDArray[np.int64]) -> list[StoreHit]:
    is_there = (rows >= 0) & np.isfinite(scores)
    found = zip(scores[is_there].tolist(), rows[is_there].tolist(), now.rows(rows[is_there]), strict=True)
    return [StoreHit(score, now.full_record(row), vector) for score, row, vector in found]


def _with(now: Snapshot, rows: Collection[int]) -> dict[str, list[int]]:
    """The deleted rows of each segment, with these ones (of the whole store)."""
    deleted = {name: set(old) for name, old in now.deleted.items()}
    for row in rows:
        segment, inside = now.at(row)
        deleted.setdefault(segment.name, set()).add(inside)
    return {name: sorted(found) for name, found in deleted.items()}


def _small_tail(
    segments: Sequence[Segment], deleted: dict[str, list[int]], size: int
) -> tuple[list[Segment], list[Segment]]:
    """The segments to keep, and those at the end that are joined with `size` new documents.

    Each is joined when what follows is half as large, so a store has few segments however small the batches are.
    """
    kept, joined = list(segments), list[Segment]()
    while kept and kept[-1].name != ".":
        live = len(kept[-1]) - len(deleted.get(kept[-1].name, []))
        if live > 2 * size or live + size > SHARD_SIZE:
            break
        joined.insert(0, kept.pop())
        size += live
    return kept, joined
