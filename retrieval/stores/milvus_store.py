"""Milvus as a store: a file (Milvus Lite, `films.db`), a server or a cluster (`http://host:19530`), the same calls.

A record has a vector, its document and its fields as JSON. Fields of numbers also have a column of their own, which
filters much faster. What the vectors are, and of which encoder, stands in the collection's properties.

What a document says (retrieval/evidence.py) is a column of the same collection, so that both are written at once. To
rank by it, all documents have to be at hand: each machine that searches keeps a copy, a `FileStore` in the user's
cache, and before a search it fetches what has changed.
"""

import base64
import hashlib
import json
import logging
import re
import shutil
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from boolbert.core.environment import log_level
from boolbert.core.errors import BoolBertError, RetrievalError, in_brief, optional
from boolbert.core.files import cache_root
from boolbert.data.own.columns import TEXT
from boolbert.retrieval.encoded_documents import About
from boolbert.retrieval.evidence import RULES, DocumentEvidence, other_rules
from boolbert.retrieval.records import LONGEST_ID, Record, is_id

from .base import WAIT, Array, StoreHit, VectorStore
from .file_store import FileStore
from .where import Filter, as_json, fitted_filter, milvus_expression

PROPERTY, COLUMNS, COUNT = "boolbert.about", "boolbert.columns", "boolbert.documents"
CHANGE = "boolbert.change"  # another text after each change
COLLECTION = "documents"
LONGEST_TEXT = 65_535  # bytes, Milvus's limit; what an encoder reads is far shorter
MOST_COLUMNS = 48  # of 64 that Milvus allows
MOST_FOUND = 16_384  # Milvus's limit, of a search and of a query
_ROWS = 1000  # of one call: what is sent must stay below 64 MB
_EVIDENCE_ROWS = 100  # the same, with the documents' evidence
_COPY_WAIT = 600.0  # seconds, for another process that fetches the same documents
_COPIED_ROWS = 8192  # that are added to the copy at once
_PIECE = 60_000  # letters of a text in an array; Milvus's limit is 65,535
_FIELDS = ["id", "document", "digest", "title", "text", "fields", "vector"]
_LOGGERS = ("pymilvus", "milvus_lite", "grpc._server")  # they print a traceback for an error that is one line here
_NAME = re.compile(r"[A-Za-z_]\w{0,254}", re.ASCII)


class MilvusStore(VectorStore):
    """A collection of Milvus.

    `index`: Milvus's index type and settings. Without it, a file is searched exactly (FLAT), and a server chooses
    (AUTOINDEX).
    """

    def __init__(
        self,
        uri: str,
        collection: str | None = None,
        *,
        token: str | None = None,
        index: dict[str, Any] | None = None,
        wait: float = WAIT,
    ):
        self.collection = collection or COLLECTION
        if not _NAME.fullmatch(self.collection):
            raise RetrievalError(
                f"--collection {self.collection!r}: Milvus takes letters, digits and _, and no digit first"
            )
        self.is_local = uri.endswith(".db")
        self.name = uri if collection is None else f"{uri} {collection}"
        self._uri = uri
        self._index = index or {"index_type": "FLAT" if self.is_local else "AUTOINDEX"}
        self._about: About | None = None
        self._copied: tuple[str, FileStore] | None = None  # at which change, and the copy
        self._copying = threading.Lock()
        self._columns: dict[str, str] = {}  # of the fields of numbers that were known when the collection was made
        if self.is_local and not Path(uri).absolute().parent.is_dir():
            raise RetrievalError(f"{uri}: its folder does not exist; make it first")
        self._milvus = optional("pymilvus", "pymilvus", "milvus")
        if self.is_local:
            optional("milvus_lite", "milvus-lite", "milvus")
        self._client = self._connect(token, wait)

    def _connect(self, token: str | None, wait: float) -> Any:
        """A file can be open in one process at a time: wait for another one to let go of it."""
        end = time.monotonic() + wait
        while True:
            try:
                with log_level(logging.CRITICAL, *_LOGGERS):
                    return self._milvus.MilvusClient(uri=self._uri, token=token or "", timeout=wait)
            except Exception as error:  # not only Milvus's own: also gRPC's
                reason = f"cannot be reached: {in_brief(error)}"
                if self.is_local and Path(self._uri).is_file():
                    reason = "is no store of Milvus Lite, which is a folder; delete it and index again"
                elif self.is_local and Path(self._uri).is_dir():
                    if time.monotonic() < end:
                        time.sleep(0.2)
                        continue
                    reason = "another process has it open; try again when it has finished"
                raise RetrievalError(f"{self._uri}: {reason}") from None

    def exists(self) -> bool:
        with self._one_line_errors():
            return bool(self._client.has_collection(self.collection))

    def about(self) -> About:
        if self._about is None:
            if not self.exists():
                raise RetrievalError(
                    f"{self._uri}: has no collection {self.collection!r}; make one with: boolbert index DOCS.jsonl "
                    f"--store {self._uri}{'' if self.collection == COLLECTION else f' --collection {self.collection}'}"
                )
            properties = self._properties()
            with self._one_line_errors():
                self._client.load_collection(self.collection)
            try:
                self._columns = dict(json.loads(properties.get(COLUMNS, "{}")))
                self._about = About(**json.loads(properties[PROPERTY]))
            except (KeyError, TypeError, ValueError):
                raise RetrievalError(
                    f"{self.name}: the collection was not made by boolbert; give another name with --collection"
                ) from None
            self._check_whole(properties)
        return self._about

    def _properties(self) -> dict[str, str]:
        with self._one_line_errors():
            return self._client.describe_collection(self.collection).get("properties") or {}

    def _check_whole(self, properties: dict[str, str]) -> None:
        """Raise where a file holds fewer documents than were written: without one of its parts Milvus Lite finds less,
        and says nothing."""
        assert self._about is not None
        written = int(properties.get(COUNT, 0))
        if self.is_local and self._about.complete and (count := self.count()) < written:
            self._about = None
            raise RetrievalError(
                f"{self.name}: is damaged: {count:,} of its {written:,} documents are there; delete it and index again"
            )

    def _create(self, about: About) -> None:
        kind = self._milvus.DataType
        schema = self._milvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", kind.VARCHAR, is_primary=True, max_length=LONGEST_ID)
        schema.add_field("document", kind.VARCHAR, max_length=LONGEST_ID)
        schema.add_field("digest", kind.VARCHAR, max_length=64)
        schema.add_field("title", kind.VARCHAR, max_length=LONGEST_TEXT)
        schema.add_field("text", kind.VARCHAR, max_length=LONGEST_TEXT)
        schema.add_field("fields", kind.JSON)
        numbers = [name for name, kind_of_field in about.fields.items() if kind_of_field != TEXT][:MOST_COLUMNS]
        columns = {name: f"number_{place}" for place, name in enumerate(numbers)}
        for column in columns.values():
            schema.add_field(column, kind.DOUBLE, nullable=True)
        if about.evidence:
            texts = {"element_type": kind.VARCHAR, "max_capacity": 4096, "max_length": LONGEST_TEXT}
            schema.add_field("evidence", kind.ARRAY, **texts)
        schema.add_field("vector", kind.FLOAT_VECTOR, dim=about.size)
        index = self._client.prepare_index_params()
        index.add_index("vector", metric_type="IP", **self._index)
        with self._one_line_errors():
            self._client.create_collection(
                self.collection,
                schema=schema,
                index_params=index,
                consistency_level="Strong",  # a document can be found as soon as it is added
                properties={PROPERTY: json.dumps(asdict(about)), COLUMNS: json.dumps(columns)},
            )

    def note(self, about: About) -> None:
        with self._one_line_errors():
            if about.complete:  # what was added last is searched much faster once it is written out
                self._client.flush(self.collection)
            self._set(**{PROPERTY: json.dumps(asdict(about)), COUNT: str(self.count())})
        self._about = None

    def _set(self, **properties: str) -> None:
        with self._one_line_errors():
            self._client.alter_collection_properties(self.collection, {**properties, CHANGE: uuid.uuid4().hex})

    def _add(
        self, records: Sequence[Record], vectors: Array, evidence: Sequence[DocumentEvidence] | None = None
    ) -> None:
        if not np.isfinite(vectors).all():
            raise RetrievalError(f"{self.name}: a document's vector holds NaN or infinity: the model is broken")
        at_once = _ROWS if evidence is None else _EVIDENCE_ROWS
        for start in range(0, len(records), at_once):
            part = slice(start, start + at_once)
            rows = [
                {
                    **record.beside_text(),
                    "title": _cut(record.title),
                    "text": _cut(record.text),
                    "vector": vector,
                    "fields": {name: as_json(value) for name, value in record.fields.items()},
                    **{column: record.fields.get(name) for name, column in self._columns.items()},
                }
                for record, vector in zip(records[part], vectors[part], strict=True)
            ]
            for row, said in zip(rows, () if evidence is None else evidence[part], strict=False):
                row["evidence"] = _in_texts(said)
            with self._one_line_errors():
                self._client.upsert(self.collection, rows)
        self._set()

    def delete(self, ids: Collection[str]) -> int:
        found = list(self.digests(ids))
        if found:  # before they are gone: who dies in between leaves more than are counted, not less
            self._set(**{COUNT: str(self.count() - len(found))})
        for start in range(0, len(found), _ROWS):
            with self._one_line_errors():  # a filter, since pymilvus does not escape the quotes of `ids`
                self._client.delete(self.collection, filter=f"id in {_listed(found[start : start + _ROWS])}")
        self._set()
        return len(found)

    def digests(self, documents: Collection[str]) -> dict[str, str]:
        self.about()
        names = [name for name in documents if is_id(name)]
        if not names:
            return {}
        if len(names) <= _ROWS:
            wanted = f"document in {_listed(names)} or id in {_listed(names)}"
            with self._one_line_errors():
                rows = self._client.query(self.collection, wanted, ["id", "digest"], limit=MOST_FOUND)
            if len(rows) < MOST_FOUND or len(names) == 1:  # else there may be more, passages of these documents
                return {row["id"]: row["digest"] for row in rows}
        half = len(names) // 2
        return self.digests(names[:half]) | self.digests(names[half:])

    def count(self, where: str | Filter | None = None) -> int:
        wanted = fitted_filter(where, self.about().fields)
        with self._one_line_errors():
            rows = self._client.query(
                self.collection,
                filter="" if wanted is None else milvus_expression(wanted, self._columns),
                output_fields=["count(*)"],
            )
        return int(rows[0]["count(*)"])

    def _nearest(self, vectors: Array, k: int, where: Filter | None) -> list[list[StoreHit]]:
        if k > MOST_FOUND:
            raise RetrievalError(f"Milvus finds at most {MOST_FOUND:,} documents at once, got k={k:,}")
        with self._one_line_errors():
            found = self._client.search(
                self.collection,
                data=list(vectors),
                limit=k,
                filter="" if where is None else milvus_expression(where, self._columns),
                output_fields=_FIELDS,
                search_params={"metric_type": "IP"},
            )
        return [[_store_hit(hit) for hit in hits] for hits in found]

    def local(self) -> FileStore:
        with self._copying:
            change = str(self._properties().get(CHANGE))
            if self._copied is None or self._copied[0] != change:
                self._about = None  # it may have new fields
                about = replace(self.about(), complete=True)
                if about.rules != RULES:
                    raise other_rules(self.name)
                place = Path(self._uri).resolve() if self.is_local else self._uri
                known = json.dumps([str(place), self.collection, about.encoder])
                folder = cache_root() / "stores" / hashlib.sha256(known.encode()).hexdigest()[:16]
                self._copied = (change, self._fetched(_whole_or_new(folder), about))
            return self._copied[1]

    def records(self) -> Iterator[Record]:
        return self.local().records()

    def _fetched(self, copy: FileStore, about: About) -> FileStore:
        """The copy, with what has changed since it was last looked at."""
        with copy.writing(_COPY_WAIT):
            if copy.exists():
                copy.note(about)
            else:
                copy.create(about)
            digests = self._all_digests()
            copy.delete([id for id in copy.snapshot().row_of if id not in digests])
            known = copy.digests(digests)
            missing = [id for id, digest in digests.items() if known.get(id) != digest]
            for start in range(0, len(missing), _COPIED_ROWS):
                rows = list(self._rows(missing[start : start + _COPIED_ROWS]))
                vectors = np.array([row["vector"] for row in rows], np.float32).reshape(len(rows), about.size)
                records = [Record.stored(row, row["title"], row["text"]) for row in rows]
                copy.add(records, vectors, [_from_texts(row["evidence"]) for row in rows])
        return copy

    def _all_digests(self) -> dict[str, str]:
        """The digests of all records, by their ids."""
        found: dict[str, str] = {}
        with self._one_line_errors():
            pages = self._client.query_iterator(
                self.collection, batch_size=MOST_FOUND, filter="", output_fields=["id", "digest"]
            )
            while rows := pages.next():
                found |= {row["id"]: row["digest"] for row in rows}
            pages.close()
        return found

    def _rows(self, ids: Sequence[str]) -> Iterator[Any]:
        """The records of these ids, with their evidence."""
        for start in range(0, len(ids), _EVIDENCE_ROWS):
            listed = _listed(ids[start : start + _EVIDENCE_ROWS])
            with self._one_line_errors():
                fields = [*_FIELDS, "evidence"]
                rows = self._client.query(self.collection, filter=f"id in {listed}", output_fields=fields)
            yield from rows

    def writing(self, wait: float = WAIT) -> AbstractContextManager[None]:
        """A file belongs to the process that has opened it. A server takes writers one after another by itself."""
        return nullcontext()

    def close(self) -> None:
        self._client.close()
        if self.is_local:
            from milvus_lite.server_manager import server_manager_instance

            server_manager_instance.release_server(self._uri)

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        """An error of Milvus, as one line."""
        try:
            with log_level(logging.CRITICAL, *_LOGGERS):
                yield
        except BoolBertError:
            raise
        except self._milvus.MilvusException as error:
            raise RetrievalError(f"{self.name}: Milvus says: {in_brief(error)}") from error


def _store_hit(hit: Any) -> StoreHit:
    row = hit["entity"]
    return StoreHit(
        float(hit["distance"]),
        Record.stored({**row, "id": hit["id"]}, row["title"], row["text"]),
        np.asarray(row["vector"], np.float32),
    )


def _whole_or_new(folder: Path) -> FileStore:
    """The copy in a folder; one that is damaged is deleted, since all of it is in Milvus."""
    copy = FileStore(folder)
    try:
        if copy.exists():
            _ = copy.snapshot().evidence, copy.snapshot().row_of
    except RetrievalError:
        shutil.rmtree(folder, ignore_errors=True)
        return FileStore(folder)
    return copy


def _in_texts(evidence: DocumentEvidence) -> list[str]:
    """What a document says, as an array of texts: one line of JSON, then the bytes of its arrays."""
    line = json.dumps({"words": dict(evidence.words), "shape": evidence.vectors.shape}).encode()
    arrays = (evidence.clauses.tobytes(), evidence.scales.tobytes(), evidence.vectors.tobytes())
    text = base64.b64encode(b"".join([line, b"\n", *arrays])).decode()
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]


def _from_texts(texts: Sequence[str]) -> DocumentEvidence:
    """
    >>> made = DocumentEvidence({"nut": 2}, np.ones((2, 3), np.int32), np.ones((2, 4), np.int8), np.ones(2, np.float16))
    >>> [np.array_equal(*pair) for pair in zip(made, _from_texts(_in_texts(made)))]
    [True, True, True, True]
    """
    line, _, content = base64.b64decode("".join(texts)).partition(b"\n")
    known = json.loads(line)
    count, size = known["shape"]
    clauses = np.frombuffer(content, np.int32, 3 * count).reshape(-1, 3)
    scales = np.frombuffer(content, np.float16, count, clauses.nbytes)
    vectors = np.frombuffer(content, np.int8, count * size, clauses.nbytes + scales.nbytes)
    return DocumentEvidence(known["words"], clauses, vectors.reshape(count, size), scales)


def _listed(names: Sequence[str]) -> str:
    """Texts as a filter of Milvus takes them, with their quotes escaped."""
    return json.dumps(list(names), ensure_ascii=False)


def _cut(text: str) -> str:
    """
    >>> len(_cut("é" * 40_000))
    32767
    """
    content = text.encode()
    return text if len(content) <= LONGEST_TEXT else content[:LONGEST_TEXT].decode(errors="ignore")
