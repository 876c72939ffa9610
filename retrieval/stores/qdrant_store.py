"""Qdrant as a store: a server (`qdrant:http://host:6333`) or a folder (`qdrant:films`), the same calls.

A document is one point: its vector, its words as a sparse vector by which Qdrant searches them, and as payload its
texts, fields, words with their counts, and clauses. So it is there whole or not there. What is known of each collection
stands in a collection of its own, `boolbert`.
"""

import atexit
import base64
import hashlib
import re
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from boolbert.core.errors import BoolBertError, RetrievalError, in_brief, optional, shorten
from boolbert.data.own.columns import TEXT
from boolbert.retrieval.encoded_documents import About
from boolbert.retrieval.evidence import DocumentEvidence
from boolbert.retrieval.evidence_bytes import clauses_in_bytes, evidence_from_bytes
from boolbert.retrieval.records import Record, is_id
from boolbert.retrieval.store_names import QDRANT, SERVERS
from boolbert.retrieval.words import K1

from .base import WAIT, Array, StoreHit
from .remote import (
    LENGTHS,
    AskedWord,
    FoundDocument,
    OpenFolders,
    RemoteStore,
    Statistics,
    field_key,
    in_batches,
    record_of,
    storable,
    storable_fields,
    with_fields,
)
from .time_limit import LONGEST, within
from .where import Comparison, Filter, fitted_filter

KNOWN = "boolbert"
_ROWS = 200  # of one request
_PAGE = 10_000
_TEXTS = ("id", "document", "digest", "title", "text", "fields")
_OPEN = OpenFolders()


class QdrantStore(RemoteStore):
    """A collection of Qdrant."""

    def __init__(self, name: str, collection: str | None = None, *, token: str | None = None, wait: float = WAIT):
        super().__init__(name, collection)
        if self.collection == KNOWN or not re.fullmatch(r"[^\x00-\x1f<>:\"/\\|?*]{1,255}", self.collection):
            raise RetrievalError(
                f'--collection {self.collection!r}: Qdrant takes no control characters and none of <>:"/\\|?*, and '
                f"{KNOWN!r} is taken"
            )
        qdrant = optional("qdrant_client", "qdrant-client", "qdrant")
        self._models, self._errors = qdrant.models, qdrant.http.exceptions
        address = name.removeprefix(QDRANT)
        self.is_local = not address.startswith(SERVERS)
        self._busy = threading.RLock()  # a folder answers one thread at a time
        self._folder = str(Path(address).absolute()) if self.is_local and address != ":memory:" else None
        if self._folder is not None:
            self._client = _OPEN.open(self._folder, self, partial(_opened_folder, qdrant, self._folder, self._place))
        elif self.is_local:
            self._client = qdrant.QdrantClient(":memory:", force_disable_check_same_thread=True)
        else:
            self._client = _connected(qdrant, address, token, wait, self._place)
            self._client.http.client.add_middleware(self._within_limit)
        self._wait = wait
        self._answer = threading.local()  # `content`: how the server's last answer begins

    def exists(self) -> bool:
        with self._calling():
            return self._line() is not None

    def _line(self) -> Any:
        """What is known of the collection; None where there is none."""
        line = self._line_alone()
        return line if line is not None and self._client.collection_exists(self.collection) else None

    def _line_alone(self) -> Any:
        """The same where there may be no collection: a first call was cut off before it was made."""
        if not self._client.collection_exists(KNOWN):
            return None
        found = self._client.retrieve(KNOWN, ids=[_point(self.collection)], with_payload=True)
        return (found[0].payload or {}) if found else None

    def _read_about(self) -> About:
        with self._calling():
            line, is_there = self._line(), self._client.collection_exists(self.collection)
        if line is None:
            raise self._not_ours() if is_there else self._missing()
        about = self._about_in(line)
        with self._calling():
            vectors = self._client.get_collection(self.collection).config.params.vectors
        size = vectors["vector"].size if isinstance(vectors, dict) and "vector" in vectors else None
        self._check_size(size, about)
        self._is_at(str(line.get("change")))
        return about

    def _about_in(self, line: Mapping[str, Any]) -> About:
        kept = f"{self.name}: what {KNOWN!r} knows of it"
        return About.stored(line.get("about"), kept, "index into a new collection")

    def _create(self, about: About) -> None:
        """Its line comes first: a collection without one is another's."""
        models = self._models
        with self._calling():
            if self._line_alone() is None and self._client.collection_exists(self.collection):
                raise self._not_ours()
        self._make(KNOWN, {})
        told = with_fields(about, {})
        self._write_line(told)
        dense = {"vector": models.VectorParams(size=about.size, distance=models.Distance.DOT)}
        self._make(self.collection, dense, {"words": models.SparseVectorParams()})
        self._index_payloads(told)

    def _make(self, name: str, dense: Any, sparse: Any = None) -> None:
        """Make a collection. Another process may make it at the same moment."""
        with self._calling():
            if self._client.collection_exists(name):
                return
        try:
            with self._calling():
                self._client.create_collection(name, vectors_config=dense, sparse_vectors_config=sparse)
        except RetrievalError:
            with self._calling():
                if not self._client.collection_exists(name):
                    raise

    def note(self, about: About) -> None:
        with self._calling():
            line = self._line()
        told = with_fields(about, {} if line is None else self._about_in(line).fields)
        self._index_payloads(told)
        self._write_line(told)

    def _write_line(self, about: About) -> None:
        payload = {"name": self.collection, "about": asdict(about), "change": uuid.uuid4().hex}
        point = self._models.PointStruct(id=_point(self.collection), vector={}, payload=payload)
        with self._calling():
            done = self._client.upsert(KNOWN, [point])
        self._check_done(done)
        self._about = None

    def _index_payloads(self, about: About) -> None:
        """Let a server find these parts of the payload fast; a folder has no such index."""
        if self.is_local:
            return
        schema = self._models.PayloadSchemaType
        kinds = dict.fromkeys(("id", "document", "words"), schema.KEYWORD)
        for name, kind in about.fields.items():
            kinds[f"fields.{field_key(name)}"] = schema.KEYWORD if kind == TEXT else schema.FLOAT
        for key, kind in kinds.items():
            with self._calling():
                done = self._client.create_payload_index(self.collection, key, field_schema=kind)
            self._check_done(done)

    def _check_done(self, done: Any) -> None:
        """Raise where a server has only taken down what it is to change: what is read next would be the old."""
        if done.status != self._models.UpdateStatus.COMPLETED:
            raise RetrievalError(f"{self.name}: Qdrant has not finished in time ({done.status}); try again")

    def _changed(self) -> None:
        with self._calling():
            done = self._client.set_payload(KNOWN, {"change": uuid.uuid4().hex}, points=[_point(self.collection)])
        self._check_done(done)
        self._about = None

    def _add(
        self, records: Sequence[Record], vectors: Array, evidence: Sequence[DocumentEvidence] | None = None
    ) -> None:
        self.check_finite(vectors)
        said: Sequence[Any] = [None] * len(records) if evidence is None else evidence
        for start in range(0, len(records), _ROWS):
            part = slice(start, start + _ROWS)
            points = [self._as_point(*each) for each in zip(records[part], vectors[part], said[part], strict=True)]
            with self._calling():
                done = self._client.upsert(self.collection, points, wait=True)
            self._check_done(done)
        self._changed()

    def _as_point(self, record: Record, vector: Array, evidence: DocumentEvidence | None) -> Any:
        payload: dict[str, Any] = {
            **record.beside_text(),
            "title": storable(record.title),
            "text": storable(record.text),
            "fields": {field_key(name): value for name, value in storable_fields(record).items()},
        }
        vectors: dict[str, Any] = {"vector": vector.tolist()}
        if evidence is not None:
            payload["words"], payload["counts"] = list(evidence.words), list(evidence.words.values())
            payload["length"] = sum(evidence.words.values())
            payload["clauses"] = base64.b64encode(clauses_in_bytes(evidence)).decode()
            vectors["words"] = self._sparse({word: n / (n + K1) for word, n in evidence.words.items()})
        return self._models.PointStruct(id=_point(record.id), vector=vectors, payload=payload)

    def _sparse(self, weights: Mapping[str, float]) -> Any:
        """Words as a sparse vector; each has a number of 32 bits, in which two of a million may be equal."""
        total: dict[int, float] = {}
        for word, weight in weights.items():
            number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
            total[number] = total.get(number, 0.0) + weight
        return self._models.SparseVector(indices=list(total), values=list(total.values()))

    def _delete(self, ids: Sequence[str]) -> None:
        for part in in_batches(ids, _PAGE):
            selected = self._models.PointIdsList(points=[_point(id) for id in part])
            with self._calling():
                done = self._client.delete(self.collection, points_selector=selected, wait=True)
            self._check_done(done)
        self._changed()

    def _known(self, documents: Collection[str], name: str) -> dict[str, str]:
        self.about()
        names = [id for id in documents if is_id(id)]
        found: dict[str, str] = {}
        for part in in_batches(names, _ROWS):
            either = self._models.Filter(should=[self._is_one("id", part), self._is_one("document", part)])
            found |= {point.payload["id"]: point.payload[name] for point in self._pages(either, ["id", name])}
        return found

    def _is_one(self, key: str, values: Sequence[Any]) -> Any:
        return self._models.FieldCondition(key=key, match=self._models.MatchAny(any=list(values)))

    def _pages(self, passing: Any = None, payload: Any = True, *, vectors: Any = False, most: int | None = None) -> Any:
        """The points that pass, in the order of their numbers, which are as good as random."""
        offset, count = None, 0
        while True:
            limit = min(_PAGE, most - count if most is not None else _PAGE)
            with self._calling():
                points, offset = self._client.scroll(
                    self.collection, passing, limit=limit, offset=offset, with_payload=payload, with_vectors=vectors
                )
            yield from points
            count += len(points)
            if offset is None or count == most:
                return

    def count(self, where: str | Filter | None = None) -> int:
        return self._count(self._filter(fitted_filter(where, self.about().fields)))

    def _count(self, passing: Any) -> int:
        with self._calling():
            return int(self._client.count(self.collection, count_filter=passing, exact=True).count)

    def records(self) -> Iterator[Record]:
        self.about()
        return (record_of(point.payload) for point in self._pages(payload=list(_TEXTS)))

    def _filter(self, wanted: Filter | None) -> Any:
        """The filter as Qdrant takes it."""
        if wanted is None:
            return None
        models = self._models
        if not isinstance(wanted, Comparison):
            parts = [self._filter(part) for part in wanted.parts]
            return models.Filter(must=parts) if wanted.word == "and" else models.Filter(should=parts)
        key = f"fields.{field_key(wanted.field)}"
        if isinstance(wanted.values[0], str):
            fits = [self._is_one(key, wanted.values)]
        elif wanted.sign in ("=", "!="):
            ranges = [models.Range(gte=value, lte=value) for value in wanted.values]
            fits = [models.FieldCondition(key=key, range=one) for one in ranges]
        else:
            name = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}[wanted.sign]
            fits = [models.FieldCondition(key=key, range=models.Range(**{name: wanted.values[0]}))]
        if wanted.sign != "!=":
            return models.Filter(should=fits)
        is_empty = models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
        return models.Filter(must_not=[is_empty, *fits])

    def _search(self, vectors: Array, k: int, where: Filter | None, payload: Any, with_vectors: Any) -> list[Any]:
        models = self._models
        requests = [
            models.QueryRequest(
                query=vector.tolist(),
                using="vector",
                limit=k,
                filter=self._filter(where),
                params=None if self.is_local else models.SearchParams(hnsw_ef=max(128, k)),
                with_payload=payload,
                with_vector=with_vectors,
            )
            for vector in vectors
        ]
        with self._calling():
            answers = self._client.query_batch_points(self.collection, requests)
        if len(answers) != len(requests):
            raise RetrievalError(f"{self.name}: Qdrant answers for {len(answers)} of {len(requests)} searches")
        return [answer.points for answer in answers]

    def _nearest(self, vectors: Array, k: int, where: Filter | None) -> list[list[StoreHit]]:
        return [
            [StoreHit(float(hit.score), record_of(hit.payload), _vector(hit)) for hit in hits]
            for hits in self._search(vectors, k, where, list(_TEXTS), ["vector"])
        ]

    def nearest_ids(self, vectors: Array, k: int, where: Filter | None) -> list[list[str]]:
        return [[hit.payload["id"] for hit in hits] for hits in self._search(vectors, k, where, ["id"], False)]

    def ids_by_words(self, words: Sequence[AskedWord], k: int, where: Filter | None) -> list[str]:
        if not any(asked.weight > 0 for asked in words):
            return []
        with self._calling():
            found = self._client.query_points(
                self.collection,
                query=self._sparse({asked.word: asked.weight for asked in words}),
                using="words",
                limit=k,
                query_filter=self._filter(where),
                with_payload=["id"],
            )
        return [hit.payload["id"] for hit in found.points if hit.score > 0]

    def statistics(self) -> Statistics:
        self.about()
        known = self._of_change
        if "documents" not in known:
            lengths = [point.payload.get("length", 0) for point in self._pages(payload=["length"], most=LENGTHS)]
            known["length"] = sum(lengths) / max(len(lengths), 1)
            known["documents"] = self._count(None)
        return Statistics(known["documents"], known["length"], self._change)

    def held_by(self, words: Iterable[str]) -> Mapping[str, int]:
        self.about()
        known, words = self._of_change, list(words)
        for word in words:
            if ("word", word) not in known:
                known["word", word] = self._count(self._models.Filter(must=[self._is_one("words", [word])]))
        return {word: known["word", word] for word in words}

    def fetch(self, ids: Sequence[str]) -> list[FoundDocument]:
        found: list[FoundDocument] = []
        for part in in_batches(ids, _ROWS):
            points = [_point(id) for id in part]
            with self._calling():
                found += map(
                    _found, self._client.retrieve(self.collection, points, with_payload=True, with_vectors=["vector"])
                )
        return sorted(found, key=lambda one: one.record.id)

    def passages(self, documents: Sequence[str]) -> list[str]:
        of_these = self._models.Filter(must=[self._is_one("document", documents)])
        return sorted(point.payload["id"] for point in self._pages(of_these, ["id"]))

    def sample(self, count: int) -> list[FoundDocument]:
        self.about()
        return [_found(point) for point in self._pages(vectors=["vector"], most=count)]

    def close(self) -> None:
        if self._folder is None:
            self._client.close()
        else:
            _OPEN.close(self._folder, self, lambda client: client.close())

    def _within_limit(self, request: Any, send: Callable[[Any], Any]) -> Any:
        """A server's answer, which has to be whole before the time is up."""
        answer = within(LONGEST * self._wait, lambda: send(request))
        self._answer.content = answer.content[:60]
        return answer

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """Around a call of Qdrant: an error is one line."""
        with self._busy if self.is_local else nullcontext():
            self._answer.content = None
            try:
                yield
            except BoolBertError:
                raise
            except self._errors.UnexpectedResponse as error:
                if error.status_code in (401, 403):
                    raise RetrievalError(
                        f"{self._place}: the server refuses the key; QDRANT_API_KEY holds it"
                    ) from None
                said = re.sub(r"\s+", " ", (error.content or b"").decode(errors="replace"))[:300]
                raise RetrievalError(f"{self.name}: Qdrant says: {error.reason_phrase} {said}") from None
            except Exception as error:
                if self.is_local and isinstance(error, RuntimeError | ValueError):
                    raise RetrievalError(f"{self.name}: Qdrant says: {in_brief(error)}") from None
                if self._answer.content is not None:  # whatever its client makes of an answer that it cannot read
                    raise RetrievalError(
                        f"{self._place}: answers {shorten(self._answer.content)}, which is none of Qdrant's "
                        f"({in_brief(error)[:100]})"
                    ) from None
                if isinstance(error, self._errors.ResponseHandlingException | TimeoutError):
                    raise RetrievalError(f"{self._place}: cannot be reached: {in_brief(error)}") from None
                raise


def _connected(qdrant: Any, address: str, token: str | None, wait: float, place: str) -> Any:
    """The client of a server."""
    try:
        return qdrant.QdrantClient(url=address, api_key=token, timeout=max(1, round(wait)), check_compatibility=False)
    except Exception:  # of the library that reads addresses; it may quote a password
        raise RetrievalError(
            f"{place}: cannot be read as the address of a server; expected {QDRANT}http://host:6333"
        ) from None


def _opened_folder(qdrant: Any, folder: str, name: str) -> Any:
    if not Path(folder).parent.is_dir():
        raise RetrievalError(f"{name}: its folder does not exist; make it first")
    known = Path(folder, "meta.json")
    if known.is_file() and not known.stat().st_size:  # it was killed while it made the folder, and cannot read it
        known.unlink()
    try:
        client = qdrant.QdrantClient(path=folder, force_disable_check_same_thread=True)
    except RuntimeError:
        raise RetrievalError(f"{name}: another process has it open; try again when it has finished") from None
    except (OSError, ValueError, KeyError) as error:
        raise RetrievalError(f"{name}: cannot be opened: {in_brief(error)}") from None
    atexit.register(client.close)  # before Python takes away what it needs for that
    return client


def _point(id: str) -> str:
    """The number of a document's point: Qdrant takes no texts for that."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, id))


def _vector(point: Any) -> Array:
    return np.asarray(point.vector["vector"], np.float32)


def _found(point: Any) -> FoundDocument:
    payload = point.payload
    words = dict(zip(payload.get("words", ()), payload.get("counts", ()), strict=True))
    said = evidence_from_bytes(base64.b64decode(payload["clauses"]), words)
    return FoundDocument(record_of(payload), _vector(point), said)
