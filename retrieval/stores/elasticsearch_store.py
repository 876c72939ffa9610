"""Elasticsearch 8 or OpenSearch 2 as a store: an index for each collection, over plain HTTP.

A document is one document there, so it is written whole or not at all: its vector, its words as a text field by which
BM25 finds them, its texts and fields, and as binary fields its exact vector and its clauses. What is known of the
collection stands in the `_meta` of the index's mapping. All searches of a query travel in one `_msearch`.
"""

import base64
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np

from boolbert.core.errors import RetrievalError
from boolbert.data.own.columns import TEXT
from boolbert.retrieval.encoded_documents import About
from boolbert.retrieval.evidence import DocumentEvidence
from boolbert.retrieval.evidence_bytes import clauses_in_bytes, evidence_from_bytes
from boolbert.retrieval.records import Record, is_id
from boolbert.retrieval.store_names import OPENSEARCH
from boolbert.retrieval.words import K1, B, rarity

from . import elasticsearch_answers as answers
from .base import WAIT, Array, StoreHit
from .http_client import HttpClient
from .remote import (
    AskedWord,
    FoundDocument,
    RemoteStore,
    Statistics,
    field_key,
    in_batches,
    record_of,
    storable,
    storable_fields,
    with_fields,
    word_key,
)
from .where import Comparison, Filter, fitted_filter

META = "boolbert"  # the key of `_meta` by which an index is known as ours
MOST = 10_000  # hits of one search, and neighbours, that either product gives
MOST_WORDS = 1000  # clauses of one query
LONGEST_VALUE = 8000  # characters of a text that `--where` finds; Lucene takes 32,766 bytes
ALL_OF_IT = "allow_partial_search_results"  # false: an error where a shard is missing
_ROWS = 200  # documents that are written in one request
_PAGE = 1000
_STAMPS = 2**20
_TEXTS = ["id", "document", "digest", "title", "text", "fields"]
T = TypeVar("T")
_INDEX_NAME = re.compile(r"(?![-_+.])[^\s\\/*?\"<>|,#:]{1,255}")


class ElasticsearchStore(RemoteStore):
    """An index of Elasticsearch or OpenSearch.

    token: an API key of Elasticsearch, or the password of the address's user of OpenSearch.
    """

    _holder = "index"

    def __init__(self, name: str, collection: str | None = None, *, token: str | None = None, wait: float = WAIT):
        self.is_opensearch = name.startswith(OPENSEARCH)
        self._product = "OpenSearch" if self.is_opensearch else "Elasticsearch"
        super().__init__(name, collection)
        own = self.collection
        if not (_INDEX_NAME.fullmatch(own) and is_id(own) and own == own.lower() and len(own.encode()) <= 255):
            raise RetrievalError(
                f"--collection {own!r}: {self._product} takes lower-case names of up to 255 bytes, without "
                'spaces and \\/*?"<>|,#: and with no - _ + . at the beginning'
            )
        self._path = f"/{quote(own, safe='')}"
        self._client = HttpClient(name, self._place, self._product, token, wait)
        self._statistics: Statistics | None = None
        self._has_written = False  # what was written is found after a refresh
        self._searches = _Searches()

    def exists(self) -> bool:
        mapping = self._mapping()
        return answers.inside(mapping, "_meta", META) is not None

    def _mapping(self) -> Any:
        """The mapping of the index; None where there is none."""
        return self._client.call("GET", f"{self._path}/_mapping", read=answers.mapping, missing=None)

    def _read_about(self) -> About:
        mapping = self._mapping()
        if mapping is None:
            raise self._missing()
        about = self._about_in(mapping)
        size = answers.inside(mapping, "properties", "vector", "dimension" if self.is_opensearch else "dims")
        self._check_size(size, about)
        return about

    def _about_in(self, mapping: Any) -> About:
        kept = answers.inside(mapping, "_meta", META)
        if kept is None:
            raise self._not_ours()
        with suppress(TypeError, ValueError, RecursionError):  # `stored` says what is wrong
            kept = json.loads(kept)
        return About.stored(kept, f"{self.name}: what its mapping knows of it", "index into a new collection")

    def refresh(self) -> None:
        super().refresh()
        self._statistics = None
        self._searches.waiting = []

    def _create(self, about: About) -> None:
        if self._mapping() is not None:
            raise self._not_ours()
        settings: dict[str, Any] = {"similarity": {"boolbert": {"type": "BM25", "k1": K1, "b": B}}}
        if self.is_opensearch:
            settings["knn"] = True
        known = with_fields(about, {})
        mapping = {
            "dynamic": False,
            "_source": {"excludes": ["vector"]},  # `exact` has it
            "_meta": {META: json.dumps(asdict(known))},
            "properties": {
                "vector": self._vector_type(about.size),
                "words": {
                    "type": "text",
                    "analyzer": "keyword",  # each value of the list is one word
                    "similarity": "boolbert",
                    "index_options": "freqs",
                },
                "id": {"type": "keyword"},
                "document": {"type": "keyword"},
                "digest": {"type": "keyword", "index": False, "doc_values": False},
                "title": {"type": "text"},
                "text": {"type": "text"},
                "length": {"type": "integer"},
                "stamp": {"type": "integer"},
                "exact": {"type": "binary"},
                "clauses": {"type": "binary"},
                "fields": {"properties": _field_types(known)},
            },
        }
        body = {"settings": {"index": settings}, "mappings": mapping}
        taken = "resource_already_exists_exception"
        made = self._client.call("PUT", self._path, body, read=answers.acknowledged, taken=taken)
        self.refresh()
        if made is None:  # by another writer, meanwhile
            self.create(about)

    def _vector_type(self, size: int) -> dict[str, Any]:
        if not self.is_opensearch:
            options = {"type": "hnsw", "m": 16, "ef_construction": 100}
            inner = {"index": True, "similarity": "max_inner_product", "index_options": options}
            return {"type": "dense_vector", "dims": size, **inner}
        method = {"name": "hnsw", "engine": "faiss", "space_type": "innerproduct"}
        return {"type": "knn_vector", "dimension": size, "method": method}

    def note(self, about: About) -> None:
        mapping = self._mapping()
        if mapping is None:
            raise self._missing()
        told = with_fields(about, self._about_in(mapping).fields)  # another writer may have added some
        body = {"_meta": {META: json.dumps(asdict(told))}, "properties": {"fields": {"properties": _field_types(told)}}}
        self._client.call("PUT", f"{self._path}/_mapping", body, read=answers.acknowledged)
        self._show_written()
        self.refresh()

    def _add(
        self, records: Sequence[Record], vectors: Array, evidence: Sequence[DocumentEvidence] | None = None
    ) -> None:
        self.check_finite(vectors)
        said: Sequence[Any] = [None] * len(records) if evidence is None else evidence
        for start in range(0, len(records), _ROWS):
            part = slice(start, start + _ROWS)
            lines: list[Any] = []
            for record, vector, own in zip(records[part], vectors[part], said[part], strict=True):
                lines += [{"index": {"_id": record.id}}, _as_document(record, vector, own)]
            self._bulk(lines)

    def _bulk(self, lines: Sequence[Any]) -> None:
        self._has_written, self._statistics = True, None
        ids = [action["_id"] for line in lines for name, action in line.items() if name in ("index", "delete")]
        self._each(self._client.call("POST", f"{self._path}/_bulk", lines, read=partial(answers.written, ids=ids)))

    def _each(self, found: list[Any]) -> list[Any]:
        """The answers to several requests that were sent together; the first error of one is raised."""
        for one in found:
            if "error" in one:
                raise self._client.said(one["error"])
        return found

    def _show_written(self) -> None:
        """Let searches find what this process has written."""
        if self._has_written:
            self._client.call("POST", f"{self._path}/_refresh", read=answers.refreshed)
            self._has_written = False

    def _delete(self, ids: Sequence[str]) -> None:
        for part in in_batches(ids, _PAGE):
            self._bulk([{"delete": {"_id": id}} for id in part])
        self._show_written()

    def _known(self, documents: Collection[str], name: str) -> dict[str, str]:
        self.about()
        names = [id for id in documents if is_id(id)]
        found: dict[str, str] = {}
        for part in in_batches(names, _PAGE):
            either = {"should": [{"terms": {"id": part}}, {"terms": {"document": part}}], "minimum_should_match": 1}
            found |= {known["id"]: known[name] for known in self._pages({"bool": either}, ["id", name])}
        return found

    def _pages(self, query: Mapping[str, Any], wanted: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The documents of a query, in the order of their ids."""
        body: dict[str, Any] = {"size": _PAGE, "query": query, "sort": [{"id": "asc"}], "_source": list(wanted)}
        while hits := self._search(body, partial(answers.hits, body=body)):
            yield from (hit["_source"] for hit in hits)
            if len(hits) < _PAGE:
                return
            body["search_after"] = hits[-1]["sort"]

    def _search(self, body: Mapping[str, Any], read: Callable[[Any], T]) -> T:
        """What `read` makes of the answer to a search."""
        self._show_written()
        found: T = self._client.call("POST", f"{self._path}/_search?{ALL_OF_IT}=false", body, read=read)
        return found

    def search_together(self, bodies: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        """The hits of several searches, in one request."""
        if not bodies:
            return []
        self._show_written()
        lines = [line for body in bodies for line in ({ALL_OF_IT: False}, body)]
        read = partial(answers.responses, bodies=bodies)
        return self._each(self._client.call("POST", f"{self._path}/_msearch", lines, read=read))

    def count(self, where: str | Filter | None = None) -> int:
        wanted = fitted_filter(where, self.about().fields)
        self._show_written()
        body = {"query": {"match_all": {}} if wanted is None else query_of(wanted)}
        return int(self._client.call("POST", f"{self._path}/_count", body, read=answers.count))

    def ids(self) -> Iterator[str]:
        self.about()
        return (known["id"] for known in self._pages({"match_all": {}}, ["id"]))

    def records(self) -> Iterator[Record]:
        self.about()
        return map(record_of, self._pages({"match_all": {}}, _TEXTS))

    def _by_vector(self, vector: Array, k: int, where: Filter | None, wanted: Sequence[str] | bool) -> dict[str, Any]:
        """The body of a search for the nearest documents."""
        count = min(k, MOST)
        passing = {} if where is None else {"filter": query_of(where)}
        if self.is_opensearch:
            return {
                "size": count,
                "query": {"knn": {"vector": {"vector": vector.tolist(), "k": count, **passing}}},
                "_source": wanted,
            }
        looked_at = min(max(2 * count, 100), MOST)
        knn = {"field": "vector", "query_vector": vector.tolist(), "k": count, "num_candidates": looked_at, **passing}
        return {"size": count, "knn": knn, "_source": wanted}

    def _nearest(self, vectors: Array, k: int, where: Filter | None) -> list[list[StoreHit]]:
        bodies = [self._by_vector(vector, k, where, [*_TEXTS, "exact"]) for vector in vectors]
        found = []
        for vector, hits in zip(vectors, self.search_together(bodies), strict=True):
            known = [(record_of(hit["_source"]), _vector(hit["_source"])) for hit in hits]
            scored = [StoreHit(float(own @ vector), record, own) for record, own in known]
            found.append(sorted(scored, key=lambda hit: -hit.score))
        return found

    def nearest_ids(self, vectors: Array, k: int, where: Filter | None) -> list[Any]:
        return [_Ids(self, self._searches, self._by_vector(vector, k, where, False)) for vector in vectors]

    def ids_by_words(self, words: Sequence[AskedWord], k: int, where: Filter | None) -> Any:
        asked = sorted((one for one in words if one.weight > 0), key=lambda one: -one.weight)[:MOST_WORDS]
        if not asked:
            return []
        documents = self.statistics().documents
        # The server multiplies by how rare a word is, which its weight has in it already.
        boosts = {one.word: one.weight / float(rarity(min(one.held_by, documents), documents)) for one in asked}
        should = [{"match": {"words": {"query": word_key(word), "boost": boost}}} for word, boost in boosts.items()]
        query: dict[str, Any] = {"should": should, "minimum_should_match": 1}
        if where is not None:
            query["filter"] = [query_of(where)]
        return _Ids(self, self._searches, {"size": min(k, MOST), "query": {"bool": query}, "_source": False})

    def statistics(self) -> Statistics:
        if self._statistics is None:
            aggregations = {"length": {"avg": {"field": "length"}}, "stamps": {"sum": {"field": "stamp"}}}
            body = {"size": 0, "track_total_hits": True, "aggs": aggregations}
            documents, own = self._search(body, answers.totals)
            # Each document has a stamp, another one each time it is written: their sum tells of every change.
            change = f"{documents} {answers.measure(own, 'stamps'):.0f}"
            self._statistics = Statistics(documents, answers.measure(own, "length"), change)
        return self._statistics

    def held_by(self, words: Iterable[str]) -> Mapping[str, int]:
        names = list(dict.fromkeys(words))
        if not names:
            return {}
        filters = {str(number): {"term": {"words": word_key(word)}} for number, word in enumerate(names)}
        body = {"size": 0, "aggs": {"held": {"filters": {"filters": filters}}}}
        found = self._search(body, partial(answers.buckets, name="held", keys=list(filters)))
        return dict(zip(names, found, strict=True))

    def fetch(self, ids: Sequence[str]) -> list[FoundDocument]:
        found: list[FoundDocument] = []
        path = f"{self._path}/_mget?_source_includes={','.join([*_TEXTS, 'exact', 'words', 'clauses'])}"
        for part in in_batches(ids, _PAGE):
            there = self._client.call("POST", path, {"ids": list(part)}, read=partial(answers.fetched, ids=part))
            found += [_found(one["_source"]) for one in self._each(there)]
        return sorted(found, key=lambda one: one.record.id)

    def passages(self, documents: Sequence[str]) -> list[str]:
        found = (self._pages({"terms": {"document": part}}, ["id"]) for part in in_batches(documents, _PAGE))
        return sorted(known["id"] for page in found for known in page)

    def sample(self, count: int) -> list[FoundDocument]:
        self.about()
        order = [{"stamp": "asc"}, {"id": "asc"}]
        wanted = [*_TEXTS, "exact", "words", "clauses"]
        body = {"size": min(count, MOST), "query": {"match_all": {}}, "sort": order, "_source": wanted}
        return [_found(hit["_source"]) for hit in self._search(body, partial(answers.hits, body=body))]

    def close(self) -> None:
        self._client.close()


class _Searches(threading.local):
    """Searches of a thread that wait until the first of their answers is needed, and travel together then."""

    def __init__(self) -> None:
        self.waiting: list[_Ids] = []


class _Ids(Sequence[str]):
    """The ids that a search finds. It is sent, with all others that wait, when the first id is looked at."""

    def __init__(self, store: ElasticsearchStore, searches: _Searches, body: Mapping[str, Any]):
        self._store, self._searches, self._body = store, searches, body
        self._found: list[str] = []
        searches.waiting.append(self)

    def _all(self) -> list[str]:
        if self in self._searches.waiting:
            waiting, self._searches.waiting = self._searches.waiting, []
            found = self._store.search_together([ids._body for ids in waiting])
            for ids, hits in zip(waiting, found, strict=True):
                ids._found = [hit["_id"] for hit in hits]
        return self._found

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, place: Any) -> Any:
        return self._all()[place]


def query_of(wanted: Filter) -> dict[str, Any]:
    """The filter as a query of either product.

    >>> query_of(fitted_filter("year >= 1990 or tag = a", {"year": "number", "tag": "text"}))["bool"]["should"]
    [{'range': {'fields.year': {'gte': 1990.0}}}, {'terms': {'fields.tag': ['a']}}]
    """
    if not isinstance(wanted, Comparison):
        parts = [query_of(part) for part in wanted.parts]
        return {"bool": {"filter": parts} if wanted.word == "and" else {"should": parts, "minimum_should_match": 1}}
    key = f"fields.{field_key(wanted.field)}"
    if wanted.sign in ("=", "!="):
        fits = {"terms": {key: list(wanted.values)}}
        return fits if wanted.sign == "=" else {"bool": {"filter": [{"exists": {"field": key}}], "must_not": [fits]}}
    name = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}[wanted.sign]
    return {"range": {key: {name: wanted.values[0]}}}


def _field_types(about: About) -> dict[str, Any]:
    text = {"type": "keyword", "ignore_above": LONGEST_VALUE}
    return {field_key(name): text if kind == TEXT else {"type": "double"} for name, kind in about.fields.items()}


def _as_document(record: Record, vector: Array, evidence: DocumentEvidence | None) -> dict[str, Any]:
    document = {
        **record.beside_text(),
        "title": storable(record.title),
        "text": storable(record.text),
        "fields": {field_key(name): value for name, value in storable_fields(record).items()},
        "vector": vector.tolist(),
        "exact": base64.b64encode(vector.astype("<f4").tobytes()).decode(),
        "stamp": random.randrange(_STAMPS),  # nosec B311
    }
    if evidence is not None:
        document["words"] = [word_key(word) for word, count in evidence.words.items() for _ in range(count)]
        document["length"] = len(document["words"])
        document["clauses"] = base64.b64encode(clauses_in_bytes(evidence)).decode()
    return document


def _vector(known: Mapping[str, Any]) -> Array:
    return np.frombuffer(base64.b64decode(known["exact"]), "<f4").astype(np.float32)


def _found(known: Mapping[str, Any]) -> FoundDocument:
    said = evidence_from_bytes(base64.b64decode(known["clauses"]), Counter(known.get("words", ())))
    return FoundDocument(record_of(known), _vector(known), said)
