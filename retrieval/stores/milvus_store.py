"""Milvus as a store: a file (Milvus Lite, `films.db`), a server or a cluster (`http://host:19530`), the same calls.

A document is one row of a collection: its vector, its texts and its fields as JSON. Fields of numbers also have a
column of their own, which filters much faster. What the vectors are, and of which encoder, stands in the collection's
properties. A collection with evidence has these columns too:

words      the words of a document, each as often as it stands there, as one text
bm25       made of them by Milvus's function BM25, by which it finds documents by words
evidence   the words with their counts, and the clauses: fetched for candidates alone
length     how many words a document has
place      a number by chance, by which the same few documents from all over a collection are found
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
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from boolbert.core.environment import log_level
from boolbert.core.errors import BoolBertError, RetrievalError, in_brief, optional
from boolbert.data.own.columns import TEXT
from boolbert.retrieval.encoded_documents import About
from boolbert.retrieval.evidence import DocumentEvidence
from boolbert.retrieval.evidence_bytes import clauses_in_bytes, evidence_from_bytes
from boolbert.retrieval.records import LONGEST_ID, Record, is_id
from boolbert.retrieval.store_names import SERVERS
from boolbert.retrieval.words import K1, B, rarity

from .base import WAIT, Array, StoreHit
from .remote import (
    LENGTHS,
    AskedWord,
    FoundDocument,
    OpenFolders,
    RemoteStore,
    Statistics,
    in_batches,
    storable,
    storable_fields,
    with_fields,
)
from .time_limit import LONGEST, within
from .where import Filter, fitted_filter, milvus_expression

PROPERTY, COLUMNS, COUNT = "boolbert.about", "boolbert.columns", "boolbert.documents"
CHANGE = "boolbert.change"  # another text after each change
LONGEST_TEXT = 65_535  # bytes, Milvus's limit; what an encoder reads is far shorter
MOST_COLUMNS = 48  # of 64 that Milvus allows
MOST_FOUND = 16_384  # Milvus's limit, of a search and of a query
MOST_REPEATED = 8  # times that a word of more weight stands in a query
SAMPLED = 20  # documents of a sample that hold a word: these, and more, tell how many of all do
MOST_COUNTED, MOST_COUNTED_LOCAL = MOST_FOUND, 500  # of a rarer word; Milvus Lite reads the whole of each document
_PLACES = 1 << 31
_ROWS = 1000  # of one call: what is sent must stay below 64 MB
_EVIDENCE_ROWS = 100  # the same, with the documents' evidence
_FETCHED_ROWS = 500
_PIECE = 60_000  # letters of a text in an array; Milvus's limit is 65,535
_TEXTS = ["id", "document", "digest", "title", "text", "fields"]
_LOGGERS = ("pymilvus", "milvus_lite", "grpc._server")  # they print a traceback for an error that is one line here
_NAME = re.compile(r"[A-Za-z_]\w{0,254}", re.ASCII)
_PLAIN = re.compile(r"(?!x[0-9a-f]{16}\Z)[a-z0-9]{1,40}")
_OPEN = OpenFolders()
_CHANGING = threading.RLock()  # Milvus Lite takes one change at a time


class MilvusStore(RemoteStore):
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
        super().__init__(uri, collection)
        if not _NAME.fullmatch(self.collection):
            raise RetrievalError(
                f"--collection {self.collection!r}: Milvus takes letters, digits and _, and no digit first"
            )
        self.is_local = not uri.startswith(SERVERS)
        self._wait = wait
        self._uri, self._folder = uri, str(Path(uri).absolute())  # the folder of a file
        self._index = index or {"index_type": "FLAT" if self.is_local else "AUTOINDEX"}
        self._most_counted = MOST_COUNTED_LOCAL if self.is_local else MOST_COUNTED
        self._columns: dict[str, str] = {}  # of the fields of numbers that were known when the collection was made
        if self.is_local and not Path(self._folder).parent.is_dir():
            raise RetrievalError(f"{uri}: its folder does not exist; make it first")
        self._milvus = optional("pymilvus", "pymilvus", "milvus")
        if self.is_local:
            optional("milvus_lite", "milvus-lite", "milvus")
            self._client = _OPEN.open(self._folder, self, lambda: self._connect(None, wait))
        else:
            self._client = self._connect(token, wait)

    def _connect(self, token: str | None, wait: float) -> Any:
        """A file can be open in one process at a time: wait for another one to let go of it."""
        end = time.monotonic() + wait
        while True:
            try:
                with log_level(logging.CRITICAL, *_LOGGERS):
                    return self._in_time(
                        lambda: self._milvus.MilvusClient(uri=self._uri, token=token or "", timeout=wait)
                    )
            except Exception as error:  # not only Milvus's own: also gRPC's
                reason = f"cannot be reached: {in_brief(error)}"
                if self.is_local and Path(self._uri).is_file():
                    reason = "is no store of Milvus Lite, which is a folder; delete it and index again"
                elif self.is_local and Path(self._uri).is_dir():
                    if time.monotonic() < end:
                        time.sleep(0.2)
                        continue
                    reason = "another process has it open; try again when it has finished"
                raise RetrievalError(f"{self._place}: {reason}") from None

    def _call(self, name: str, *given: Any, times: float = 1, **named: Any) -> Any:
        """What a call of Milvus's client gives, within a limit where it is a server that answers: `times` as long as
        other calls have."""
        limit = None if self.is_local else times * LONGEST * self._wait
        with self._one_line_errors():
            call = partial(getattr(self._client, name), self.collection, *given, **named)
            # For an index the client keeps to a limit of whole seconds only.
            return self._in_time(partial(call, timeout=limit and (int(limit) or limit)), times)

    def _in_time(self, call: Callable[[], Any], times: float = 1) -> Any:
        """What a call gives, within a limit for all of its requests together: the client's own is of each of them, and
        some have none."""
        return call() if self.is_local else within((times * LONGEST + 1) * self._wait, call)

    def exists(self) -> bool:
        return bool(self._call("has_collection"))

    def _read_about(self) -> About:
        if not self.exists():
            raise self._missing()
        known = self._call("describe_collection")
        self._call("load_collection", times=10)
        properties = known.get("properties") or {}
        try:
            self._columns = dict(json.loads(properties.get(COLUMNS, "{}")))
            kept = json.loads(properties[PROPERTY])
        except (KeyError, TypeError, ValueError):
            raise self._not_ours() from None
        about = About.stored(kept, f"{self.name}: its property {PROPERTY}", "index into a new collection")
        if about.evidence and "words" not in {field["name"] for field in known["fields"]}:
            raise RetrievalError(
                f"{self.name}: was stored by an older version of boolbert; index its documents again, into a new file "
                "or --collection"
            )
        change = str(properties.get(CHANGE))
        if self.is_local and about.complete and change != self._change:
            self._check_whole(int(properties.get(COUNT, 0)))
        self._is_at(change)
        return about

    def _check_whole(self, written: int) -> None:
        """Raise where a file holds fewer documents than were written: without one of its parts Milvus Lite finds less,
        and says nothing."""
        if (count := self._count()) < written:
            raise RetrievalError(
                f"{self.name}: is damaged: {count:,} of its {written:,} documents are there; delete it and index again"
            )

    def _create(self, about: About) -> None:
        about = with_fields(about, {})
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
        schema.add_field("vector", kind.FLOAT_VECTOR, dim=about.size)
        if about.evidence:
            self._add_evidence(schema)
        properties = {PROPERTY: json.dumps(asdict(about)), COLUMNS: json.dumps(columns)}
        try:
            with self._changing():
                self._remove_half_made()
                self._call(
                    "create_collection",
                    times=10,
                    schema=schema,
                    index_params=self._indexes(("vector", "bm25") if about.evidence else ("vector",)),
                    consistency_level="Strong",  # a document can be found as soon as it is added
                    properties=properties,
                )
        except RetrievalError:
            if not self.exists():
                raise
            self.create(about)  # another process has made it meanwhile

    def create(self, about: About) -> None:
        """A collection of ours whose first writer was killed may lack an index, without which no server loads it."""
        known = self._call("describe_collection") if self.exists() else {}
        if PROPERTY in (known.get("properties") or {}):
            columns = [field["name"] for field in known["fields"] if field["name"] in ("vector", "bm25")]
            if missing := [name for name in columns if not self._call("list_indexes", field_name=name)]:
                with self._changing():
                    self._call("create_index", self._indexes(missing), times=10)
        super().create(about)

    def _indexes(self, columns: Collection[str]) -> Any:
        index = self._client.prepare_index_params()
        if "vector" in columns:
            index.add_index("vector", metric_type="IP", **self._index)
        if "bm25" in columns:
            settings = {"bm25_k1": K1, "bm25_b": B}
            index.add_index("bm25", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=settings)
        return index

    def _remove_half_made(self) -> None:
        """Milvus Lite, killed while it made a collection, leaves its folder without a schema, and stumbles over it."""
        folder = Path(self._folder, "collections", self.collection)
        if self.is_local and folder.is_dir() and all(path.name == "schema.json.tmp" for path in folder.iterdir()):
            shutil.rmtree(folder)

    def _add_evidence(self, schema: Any) -> None:
        kind, function = self._milvus.DataType, self._milvus.Function
        texts = {"element_type": kind.VARCHAR, "max_capacity": 4096, "max_length": LONGEST_TEXT}
        schema.add_field("evidence", kind.ARRAY, **texts)
        schema.add_field("length", kind.INT64)
        schema.add_field("place", kind.INT64)
        schema.add_field("words", kind.VARCHAR, max_length=LONGEST_TEXT, enable_analyzer=True)
        schema.add_field("bm25", kind.SPARSE_FLOAT_VECTOR)
        bm25 = self._milvus.FunctionType.BM25
        schema.add_function(function("bm25_of_words", bm25, input_field_names=["words"], output_field_names=["bm25"]))

    def note(self, about: About) -> None:
        with self._changing():
            if about.complete:  # what was added last is searched much faster once it is written out
                self._call("flush", times=10)
            told = with_fields(about, self._read_about().fields)
            self._set(**{PROPERTY: json.dumps(asdict(told)), COUNT: str(self._count())})

    def _set(self, **properties: str) -> None:
        with self._changing():
            self._call("alter_collection_properties", {**properties, CHANGE: uuid.uuid4().hex})
        self._about = None

    def _add(
        self, records: Sequence[Record], vectors: Array, evidence: Sequence[DocumentEvidence] | None = None
    ) -> None:
        self.check_finite(vectors)
        said: Sequence[Any] = [None] * len(records) if evidence is None else evidence
        at_once = _ROWS if evidence is None else _EVIDENCE_ROWS
        for start in range(0, len(records), at_once):
            part = slice(start, start + at_once)
            rows = [self._row(*each) for each in zip(records[part], vectors[part], said[part], strict=True)]
            with self._changing():
                done = self._call("upsert", rows)
            if done.get("upsert_count") != len(rows):
                raise RetrievalError(
                    f"{self.name}: Milvus has written {done.get('upsert_count')} of {len(rows)} documents; index again"
                )
        self._set()

    def _row(self, record: Record, vector: Array, evidence: DocumentEvidence | None) -> dict[str, Any]:
        fields = storable_fields(record)
        row = {
            **record.beside_text(),
            "title": _cut(storable(record.title)),
            "text": _cut(storable(record.text)),
            "vector": vector,
            "fields": fields,
            **{column: fields.get(name) for name, column in self._columns.items()},
        }
        if evidence is not None:
            row["evidence"], row["words"] = _in_pieces(evidence), _as_text(evidence.words)
            row["length"] = sum(evidence.words.values())
            row["place"] = int(hashlib.blake2b(record.id.encode(), digest_size=8).hexdigest(), 16) % _PLACES
        return row

    def _delete(self, ids: Sequence[str]) -> None:
        with self._changing():
            # Before they are gone: who dies in between leaves more than are counted, not less.
            self._set(**{COUNT: str(self._count() - len(ids))})
            for part in in_batches(ids, _ROWS):  # by a filter, since pymilvus does not escape the quotes of `ids`
                self._call("delete", filter=f"id in {_listed(part)}")
            self._set()

    def _known(self, documents: Collection[str], name: str) -> dict[str, str]:
        self.about()
        names = [id for id in documents if is_id(id)]
        if not names:
            return {}
        if len(names) <= _ROWS:
            rows = self._query(f"document in {_listed(names)} or id in {_listed(names)}", ["id", name])
            if len(rows) < MOST_FOUND or len(names) == 1:  # else there may be more, passages of these documents
                return {row["id"]: row[name] for row in rows}
        half = len(names) // 2
        return self._known(names[:half], name) | self._known(names[half:], name)

    def _query(self, passing: str, fields: Sequence[str]) -> list[Any]:
        return list(self._call("query", passing, list(fields), limit=MOST_FOUND))

    def count(self, where: str | Filter | None = None) -> int:
        return self._count(fitted_filter(where, self.about().fields))

    def _count(self, where: Filter | None = None) -> int:
        rows = self._call("query", filter=self._passing(where), output_fields=["count(*)"])
        if len(rows) != 1 or not isinstance(rows[0].get("count(*)"), int):
            raise RetrievalError(f"{self.name}: Milvus does not tell how many documents there are")
        return int(rows[0]["count(*)"])

    def _passing(self, where: Filter | None) -> str:
        return "" if where is None else milvus_expression(where, self._columns)

    def records(self) -> Iterator[Record]:
        self.about()
        pages = self._call("query_iterator", batch_size=_ROWS, output_fields=_TEXTS)
        while True:
            with self._one_line_errors():
                rows = self._in_time(pages.next)
            if not rows:
                break
            yield from map(_record, rows)
        pages.close()

    def _search(
        self, asked: Iterable[Any], k: int, where: Filter | None, column: str, fields: Sequence[str] = ()
    ) -> list[Any]:
        data = list(asked)
        found = list(
            self._call(
                "search",
                data=data,
                limit=k,
                filter=self._passing(where),
                output_fields=list(fields),
                anns_field=column,
                search_params={"metric_type": "BM25" if column == "bm25" else "IP"},
            )
        )
        if len(found) != len(data):
            raise RetrievalError(f"{self.name}: Milvus answers for {len(found)} of {len(data)} searches")
        return found

    def _nearest(self, vectors: Array, k: int, where: Filter | None) -> list[list[StoreHit]]:
        if k > MOST_FOUND:
            raise RetrievalError(f"Milvus finds at most {MOST_FOUND:,} documents at once, got k={k:,}")
        found = self._search(vectors, k, where, "vector", [*_TEXTS, "vector"])
        return [
            [
                StoreHit(float(hit["distance"]), _record({**hit["entity"], "id": hit["id"]}), _vector(hit["entity"]))
                for hit in hits
            ]
            for hits in found
        ]

    def nearest_ids(self, vectors: Array, k: int, where: Filter | None) -> list[list[str]]:
        return [[hit["id"] for hit in hits] for hits in self._search(vectors, min(k, MOST_FOUND), where, "vector")]

    def ids_by_words(self, words: Sequence[AskedWord], k: int, where: Filter | None) -> list[str]:
        return self.ids_by_each([words], k, where)[0]

    def ids_by_each(self, conditions: Sequence[Sequence[AskedWord]], k: int, where: Filter | None) -> list[list[str]]:
        """In one search: to Milvus Lite, each costs as much as looking at all documents."""
        documents = self.statistics().documents
        texts = [_asked_text(words, documents) for words in conditions]
        asked = [text for text in texts if text]
        found = iter(self._search(asked, min(k, MOST_FOUND), where, "bm25") if asked else [])
        return [[hit["id"] for hit in next(found)] if text else [] for text in texts]

    def statistics(self) -> Statistics:
        known = self._counted()
        return Statistics(known["documents"], known["length"], self._change)

    def _counted(self) -> dict[Any, Any]:
        """How many documents there are, and what a sample tells of their words."""
        self.about()
        known = self._of_change
        if "documents" not in known:
            rows = self._sampled(LENGTHS, ["length", "words"])
            known |= {
                "sampled": max(len(rows), 1),
                "length": sum(row["length"] for row in rows) / max(len(rows), 1),
                "tokens": Counter(token for row in rows for token in set(row["words"].split())),
                "documents": self._count(),
            }
        return known

    def held_by(self, words: Iterable[str]) -> Mapping[str, int]:
        """Counted, or estimated by a sample where many documents hold a word."""
        known, words = self._counted(), list(words)
        documents, sampled, most = known["documents"], known["sampled"], self._most_counted
        in_sample = {word: known["tokens"][_token(word)] for word in words if ("word", word) not in known}
        held = {word: round(count / sampled * documents) for word, count in in_sample.items()}
        if rare := [word for word, count in in_sample.items() if count < SAMPLED and sampled < documents]:
            for word, hits in zip(rare, self._search(map(_token, rare), most, None, "bm25"), strict=True):
                held[word] = len(hits) if len(hits) < most else max(most, held[word])
        known |= {("word", word): count for word, count in held.items()}
        return {word: known["word", word] for word in words}

    def _sampled(self, count: int, fields: Sequence[str]) -> list[Any]:
        """These fields of some documents, always of the same ones while the collection does not change."""
        bound = min(round(1.2 * count / max(self._count(), 1) * _PLACES), _PLACES)
        while True:
            rows = self._query(f"place < {bound}", ["id", "place", *fields])
            if len(rows) >= count or bound == _PLACES:
                return sorted(rows, key=lambda row: (row["place"], row["id"]))[:count]
            bound = min(2 * bound, _PLACES)

    def fetch(self, ids: Sequence[str]) -> list[FoundDocument]:
        found: list[FoundDocument] = []
        for part in in_batches(ids, _FETCHED_ROWS):
            rows = self._query(f"id in {_listed(part)}", [*_TEXTS, "vector", "evidence"])
            found += [FoundDocument(_record(row), _vector(row), _from_pieces(row["evidence"])) for row in rows]
        return sorted(found, key=lambda one: one.record.id)

    def passages(self, documents: Sequence[str]) -> list[str]:
        return sorted(self.digests(documents))

    def sample(self, count: int) -> list[FoundDocument]:
        self.about()
        return self.fetch([row["id"] for row in self._sampled(count, [])])

    def close(self) -> None:
        if self.is_local:
            _OPEN.close(self._folder, self, self._close_file)
        else:
            self._client.close()

    def _close_file(self, client: Any) -> None:
        from milvus_lite.server_manager import server_manager_instance

        client.close()
        server_manager_instance.release_server(self._uri)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with _CHANGING if self.is_local else nullcontext(), self._one_line_errors():
            yield

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
        except TimeoutError as error:
            raise RetrievalError(f"{self.name}: Milvus is too slow: {error}") from None
        except Exception as error:  # of gRPC, or whatever its client makes of an answer that it cannot read
            raise RetrievalError(f"{self.name}: Milvus's client says: {_in_brief(error)}") from error


def _in_brief(error: Any) -> str:
    if hasattr(error, "details"):  # of gRPC, whose own text has many lines
        return f"{error.code().name} {error.details()}"[:300]
    return f"{type(error).__name__} {in_brief(error)}"


def _record(row: Mapping[str, Any]) -> Record:
    return Record.stored(row, row["title"], row["text"])


def _vector(row: Mapping[str, Any]) -> Array:
    return np.asarray(row["vector"], np.float32)


def _in_pieces(evidence: DocumentEvidence) -> list[str]:
    """What a document says, as an array of texts: its words and their counts in a line of JSON, then its clauses."""
    line = json.dumps(dict(evidence.words)).encode()
    text = base64.b64encode(line + b"\n" + clauses_in_bytes(evidence)).decode()
    return list(in_batches(text, _PIECE))


def _from_pieces(pieces: Sequence[str]) -> DocumentEvidence:
    """
    >>> made = DocumentEvidence({"nut": 2}, np.ones((2, 3), np.int32), np.ones((2, 4), np.int8), np.ones(2, np.float16))
    >>> [np.array_equal(*pair) for pair in zip(made, _from_pieces(_in_pieces(made)))]
    [True, True, True, True]
    """
    line, _, clauses = base64.b64decode("".join(pieces)).partition(b"\n")
    return evidence_from_bytes(clauses, json.loads(line))


def _as_text(words: Mapping[str, int]) -> str:
    """Words with their counts as a text for BM25. Where it is too long, repetitions are left out first.

    >>> _as_text({"nut": 2, "pie": 1})
    'nut pie nut'
    """
    tokens = {_token(word): count for word, count in words.items()}
    found: list[str] = []
    room = LONGEST_TEXT
    for turn in range(max(tokens.values(), default=0)):
        for token, count in tokens.items():
            if count > turn:
                room -= len(token) + 1
                if room < 0:
                    return " ".join(found)
                found.append(token)
    return " ".join(found)


def _asked_text(words: Sequence[AskedWord], documents: int) -> str:
    """The text that is searched for. Milvus weighs a word by how rare it is; what the weights say beyond that is how
    often it stands there. Excluded words, whose weights are below 0, it cannot take.

    >>> _asked_text([AskedWord("nut", 0.6, 5), AskedWord("pie", 0.3, 5), AskedWord("egg", -1.0, 5)], 1000)
    'nut pie nut'
    """
    wanted = [asked for asked in words if asked.weight > 0]
    shares = [asked.weight / float(rarity(min(asked.held_by, documents), documents)) for asked in wanted]
    times = (min(round(share / min(shares)), MOST_REPEATED) for share in shares)
    return _as_text({asked.word: count for asked, count in zip(wanted, times, strict=True)})


def _token(word: str) -> str:
    """A word as one word to every analyzer of texts.

    >>> _token("nut"), _token("-nut")
    ('nut', 'xbe198f4fbb9d49dc')
    """
    return word if _PLAIN.fullmatch(word) else "x" + hashlib.blake2b(word.encode(), digest_size=8).hexdigest()


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
