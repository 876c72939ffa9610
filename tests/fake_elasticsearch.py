"""A small server that takes the requests of Elasticsearch 8 and OpenSearch 2 that this package sends, and no others.

Each body is checked against the shape that the documentation gives: a key that is not in it is refused as the servers
refuse it, with status 400 and an `error` of `type` and `reason`. Answers have the shape of the documentation's
examples. Where documents are ranked it computes what the servers do, in a slow and obvious way. It is no proof that a
real server does the same.

`Index.down` names documents of a shard that cannot be reached; `FakeServer.instead` and `FakeServer.change` give other
answers than a server would.
"""

import json
import math
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

DENSE = {"type", "dims", "index", "similarity", "index_options"}
KNN_VECTOR = {"type", "dimension", "method"}
BOOL = {"must", "filter", "should", "must_not", "minimum_should_match", "boost"}
SEARCH = {"size", "query", "knn", "_source", "sort", "search_after", "aggs", "track_total_hits"}
TYPES = {"text", "keyword", "integer", "double", "binary"}
OPTIONS = {
    "text": {"type", "analyzer", "similarity", "index_options"},
    "keyword": {"type", "index", "doc_values", "ignore_above"},
}


class Refused(Exception):
    def __init__(self, reason, type="parsing_exception", status=400):
        super().__init__(reason)
        self.type, self.status = type, status


def only(found, allowed, where):
    for key in found:
        if key not in allowed:
            raise Refused(f"unknown key [{key}] for [{where}]")
    return found


def one_key(body, where):
    if not isinstance(body, dict) or len(body) != 1:
        raise Refused(f"[{where}] malformed query, expected one key")
    return next(iter(body.items()))


class FakeServer:
    """The state of a server. `calls` are the requests that came: method and path.

    instead: gives the bytes that are answered to the n-th call since `calls` was emptied, or None. after: the same,
    once the call was carried out. change: makes another answer of a good one, given the action.
    """

    def __init__(self, product, authorization=None):
        self.product, self.authorization = product, authorization
        self.indexes, self.calls, self.bodies = {}, [], []
        self.instead = self.after = lambda number: None
        self.change = lambda action, answer: answer
        self.lock = threading.Lock()

    def answer(self, method, path, body, headers):
        """Status and body of the answer."""
        if self.authorization is not None and headers.get("Authorization") != self.authorization:
            return 401, {"error": {"type": "security_exception", "reason": "secret missing"}, "status": 401}
        with self.lock:
            self.calls.append((method, urlsplit(path).path))
            self.bodies.append(body)
            if (content := self.instead(len(self.calls))) is not None:
                return 200, content
            try:
                answer = self._answer(method, urlsplit(path), body, headers.get("Content-Type", ""))
                changed = self.change(urlsplit(path).path.rpartition("/")[2], answer)
                return 200, changed if (lost := self.after(len(self.calls))) is None else lost
            except Refused as error:
                cause = {"type": error.type, "reason": str(error)}
                return error.status, {"error": {"root_cause": [cause], **cause}, "status": error.status}

    def _answer(self, method, url, content, kind):
        name, _, action = unquote(url.path).lstrip("/").partition("/")
        ndjson = action in ("_bulk", "_msearch")
        if content:
            expected = "application/x-ndjson" if ndjson else "application/json"
            if kind != expected:
                raise Refused(f"Content-Type header [{kind}] is not supported", "media_type_header_exception", 406)
        if ndjson and not content.endswith(b"\n"):
            raise Refused("The bulk request must be terminated by a newline [\\n]", "illegal_argument_exception")
        body = [json.loads(line) for line in content.splitlines()] if ndjson else json.loads(content or b"null")
        if (method, action) == ("PUT", ""):
            return self._create(name, body)
        if name not in self.indexes:
            raise Refused(f"no such index [{name}]", "index_not_found_exception", 404)
        index = self.indexes[name]
        if (method, action) == ("GET", "_mapping"):
            return {name: {"mappings": index.mapping}}
        if (method, action) == ("PUT", "_mapping"):
            only(body, {"_meta", "properties"}, "mapping")
            index.map(body)
            return {"acknowledged": True}
        if method != "POST":
            raise Refused(f"Incorrect HTTP method for uri [{url.path}]", status=405)
        if action == "_refresh":
            index.refresh()
            return {"_shards": {"total": 4, "successful": 2, "failed": 0}}  # no server has the copies
        if action == "_bulk":
            return index.bulk(body)
        if action == "_mget":
            only(body, {"ids"}, "mget")
            (wanted,) = parse_qs(url.query)["_source_includes"]
            return {"docs": [index.get(id, wanted.split(",")) for id in body["ids"]]}
        asked = {name: values[-1] for name, values in parse_qs(url.query).items()}
        if action == "_count":
            only(body, {"query"}, "count")
            only(asked, set(), "count")  # it gives a part where a shard is missing, whatever it is asked for
            count = len(set(index.scores(body["query"])) - index.down)
            return {"count": count, "_shards": index.shards()}
        if action == "_search":
            only(asked, {"allow_partial_search_results"}, "search")
            return index.search(body, asked.get("allow_partial_search_results") != "false")
        if action == "_msearch":
            answers = []
            for header, one in zip(body[::2], body[1::2], strict=True):
                only(header, {"index", "allow_partial_search_results"}, "msearch header")
                try:
                    answers.append(
                        {**index.search(one, header.get("allow_partial_search_results", True)), "status": 200}
                    )
                except Refused as error:
                    answers.append({"error": {"type": error.type, "reason": str(error)}, "status": error.status})
            return {"took": 1, "responses": answers}
        raise Refused(f"no handler found for uri [{url.path}]")

    def _create(self, name, body):
        if name in self.indexes:
            raise Refused(f"index [{name}/x] already exists", "resource_already_exists_exception")
        if name != name.lower() or re.search(r'[\s\\/*?"<>|,#:]', name):
            raise Refused(f"Invalid index name [{name}]", "invalid_index_name_exception")
        only(body, {"settings", "mappings"}, "create index")
        settings = only(body["settings"]["index"], {"similarity", "knn"}, "settings")
        if self.product == "elasticsearch" and "knn" in settings:
            raise Refused("unknown setting [index.knn]", "illegal_argument_exception")
        only(body["mappings"], {"dynamic", "_source", "_meta", "properties"}, "mappings")
        index = Index(self.product, settings)
        index.map(body["mappings"])
        index.mapping |= {key: value for key, value in body["mappings"].items() if key != "properties"}
        self.indexes[name] = index
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}


class Index:
    def __init__(self, product, settings):
        self.product, self.settings = product, settings
        self.mapping = {"properties": {}}
        self.written, self.shown = {}, {}  # documents, and those that searches find
        self.down = set()  # the documents of a shard that cannot be reached

    def map(self, body):
        if "_meta" in body:
            self.mapping["_meta"] = body["_meta"]
        for name, type in body.get("properties", {}).items():
            old = self.mapping["properties"].get(name)
            if "properties" in type:
                own = (old or {"properties": {}})["properties"]
                for inner, kind in type["properties"].items():
                    self._check_type(inner, kind)
                    if own.setdefault(inner, kind) != kind:
                        raise Refused(f"mapper [{inner}] cannot be changed", "illegal_argument_exception")
                self.mapping["properties"][name] = {"properties": own}
                continue
            self._check_type(name, type)
            self.mapping["properties"][name] = type

    def _check_type(self, name, type):
        kind = type["type"]
        if not name or name.strip(".") != name or "." in name:
            raise Refused(f"field name [{name}] cannot hold a dot or be empty", "illegal_argument_exception")
        if kind == "dense_vector" and self.product == "elasticsearch":
            only(type, DENSE, "dense_vector")
            if type["similarity"] not in ("l2_norm", "dot_product", "cosine", "max_inner_product"):
                raise Refused(f"unknown similarity [{type['similarity']}]")
            only(type["index_options"], {"type", "m", "ef_construction"}, "index_options")
        elif kind == "knn_vector" and self.product == "opensearch":
            only(type, KNN_VECTOR, "knn_vector")
            only(type["method"], {"name", "engine", "space_type", "parameters"}, "method")
            if not self.settings.get("knn"):
                raise Refused("index.knn is not true")
            if (type["method"]["engine"], type["method"]["space_type"]) != ("faiss", "innerproduct"):
                raise Refused("another engine than faiss with innerproduct")
        elif kind not in TYPES:
            raise Refused(f"No handler for type [{kind}] declared on field [{name}]", "mapper_parsing_exception")
        else:
            only(type, OPTIONS.get(kind, {"type"}), kind)
            if type.get("similarity", "BM25") not in ("BM25", *self.settings["similarity"]):
                raise Refused(f"Unknown Similarity type [{type['similarity']}] for field [{name}]")

    @property
    def size(self):
        vector = self.mapping["properties"]["vector"]
        return vector.get("dims", vector.get("dimension"))

    def bulk(self, lines):
        items, lines = [], iter(lines)
        for line in lines:
            action, target = one_key(line, "bulk")
            only(target, {"_id", "_index"}, action)
            id = target["_id"]
            if len(id.encode()) > 512:
                raise Refused("id is too long, must be no longer than 512 bytes", "illegal_argument_exception")
            if id in self.down:
                if action == "index":
                    next(lines)
                reason = {"type": "unavailable_shards_exception", "reason": "[x][1] primary shard is not active"}
                result = {"status": 503, "error": reason}
            elif action == "delete":
                is_there = self.written.pop(id, None) is not None
                result = {"result": "deleted" if is_there else "not_found", "status": 200 if is_there else 404}
            else:
                assert action == "index"
                result = self._write(id, next(lines))
            items.append({action: {"_index": "x", "_id": id, **result}})
        return {"took": 1, "errors": any("error" in one for item in items for one in item.values()), "items": items}

    def _write(self, id, document):
        problem = None
        if len(document["vector"]) != self.size:
            problem = f"The [vector] field has {len(document['vector'])} dimensions, not {self.size}"
        if any(len(word.encode()) > 32766 for word in document.get("words", ())):
            problem = "Document contains at least one immense term in field=words"
        unknown = document.keys() - self.mapping["properties"].keys()
        if problem or unknown:
            reason = {"type": "document_parsing_exception", "reason": problem or f"unknown fields {unknown}"}
            return {"status": 400, "error": {**reason, "caused_by": {"reason": "it cannot be indexed"}}}
        self.written[id] = json.loads(json.dumps(document, allow_nan=False))
        return {"result": "created", "status": 201}

    def refresh(self):
        self.shown = dict(self.written)

    def shards(self):
        """How many of the two shards were asked."""
        reason = {"type": "no_shard_available_action_exception", "reason": "No shard available for [search]"}
        failures = [{"shard": 1, "index": "x", "node": None, "reason": reason}]
        whole = {"total": 2, "successful": 2, "skipped": 0, "failed": 0}
        return whole if not self.down else {**whole, "successful": 1, "failed": 1, "failures": failures}

    def get(self, id, wanted):
        if id in self.down:
            reason = f"No shard available for [get [x][{id}]: routing [null]]"
            return {
                "_index": "x",
                "_id": id,
                "error": {"type": "no_shard_available_action_exception", "reason": reason},
            }
        if id not in self.written:
            return {"_index": "x", "_id": id, "found": False}
        return {
            "_index": "x",
            "_id": id,
            "_version": 1,
            "found": True,
            "_source": self._source(self.written[id], wanted),
        }

    def _source(self, document, wanted):
        hidden = self.mapping["_source"]["excludes"]
        return {key: value for key, value in document.items() if key in wanted and key not in hidden}

    def search(self, body, allow_partial):
        only(body, SEARCH, "search")
        if self.down and not allow_partial:
            hint = "Consider using `allow_partial_search_results` setting to bypass this error."
            raise Refused(
                f"Search rejected due to missing shards [[x][1]]. {hint}", "search_phase_execution_exception", 503
            )
        if body.get("size", 10) > 10_000:
            raise Refused("Result window is too large", "illegal_argument_exception")
        scores = self._neighbours(body["knn"]) if "knn" in body else self.scores(body.get("query", {"match_all": {}}))
        scores = {id: score for id, score in scores.items() if id not in self.down}
        aggregations = {name: self._aggregated(one, scores) for name, one in body.get("aggs", {}).items()}
        if "sort" in body:
            fields = [one_key(one, "sort")[0] for one in body["sort"]]
            if any(self.mapping["properties"][field]["type"] not in ("keyword", "integer") for field in fields):
                raise Refused("Fielddata is disabled", "illegal_argument_exception")
            keys = {id: [self.shown[id][field] for field in fields] for id in scores}
            ids = sorted(scores, key=keys.get)
            if "search_after" in body:
                ids = [id for id in ids if keys[id] > body["search_after"]]
        else:
            keys, ids = {}, sorted(scores, key=lambda id: -scores[id])
        hits = []
        for id in ids[: body.get("size", 10)]:
            hit = {"_index": "x", "_id": id, "_score": None if keys else scores[id]}
            if body.get("_source", True):
                hit["_source"] = self._source(self.shown[id], body["_source"])
            hits.append({**hit, "sort": keys[id]} if keys else hit)
        total = {"value": len(scores), "relation": "eq"}
        found = {"total": total, "max_score": None, "hits": hits}
        answer = {"took": 1, "timed_out": False, "_shards": self.shards(), "hits": found}
        return {**answer, "aggregations": aggregations} if aggregations else answer

    def _aggregated(self, body, scores):
        kind, own = one_key(body, "aggs")
        if kind == "filters":
            only(own, {"filters"}, "filters")
            counts = {name: len(set(self.scores(query)) - self.down) for name, query in own["filters"].items()}
            return {"buckets": {name: {"doc_count": count} for name, count in counts.items()}}
        only(own, {"field"}, kind)
        values = [self.shown[id][own["field"]] for id in scores if own["field"] in self.shown[id]]
        if kind == "sum":
            return {"value": float(sum(values))}
        assert kind == "avg"
        return {"value": sum(values) / len(values) if values else None}

    def _neighbours(self, body):
        """Of the option `knn` of a search in Elasticsearch."""
        if self.product != "elasticsearch":
            raise Refused("Unknown key for a START_OBJECT in [knn].")
        only(body, {"field", "query_vector", "k", "num_candidates", "filter"}, "knn")
        if not 1 <= body["k"] <= body["num_candidates"] <= 10_000:
            raise Refused("[num_candidates] cannot be less than [k] or more than 10000", "illegal_argument_exception")
        return self._nearest(body["query_vector"], body["k"], body.get("filter"))

    def _nearest(self, vector, k, passing):
        if len(vector) != self.size:
            raise Refused(f"the query vector has a different dimension [{len(vector)}] than [{self.size}]")
        ids = self.shown if passing is None else self.scores(passing)
        products = {id: float(np.float32(self.shown[id]["vector"]) @ np.float32(vector)) for id in ids}
        scores = {id: own + 1 if own >= 0 else 1 / (1 - own) for id, own in products.items()}
        return {id: scores[id] for id in sorted(scores, key=lambda id: -scores[id])[:k]}

    def scores(self, query):
        """The documents of a query, with their scores."""
        kind, own = one_key(query, "query")
        if kind == "match_all":
            only(own, set(), kind)
            return dict.fromkeys(self.shown, 1.0)
        if kind == "bool":
            return self._bool(only(own, BOOL, kind))
        if kind == "exists":
            only(own, {"field"}, kind)
            return {id: 1.0 for id in self.shown if self._values(id, own["field"])}
        field, asked = one_key(own, kind)
        if kind == "knn" and self.product == "opensearch":
            only(asked, {"vector", "k", "filter"}, kind)
            if not 1 <= asked["k"] <= 10_000:
                raise Refused("[knn] requires k to be in the range (0, 10000]")
            return self._nearest(asked["vector"], asked["k"], asked.get("filter"))
        if kind in ("term", "terms"):
            values = asked if kind == "terms" else [asked]
            if not isinstance(values, list):
                raise Refused("[terms] query requires an array")
            return {id: 1.0 for id in self.shown if set(values) & set(self._values(id, field))}
        if kind == "range":
            only(asked, {"gt", "gte", "lt", "lte"}, kind)
            compare = {"gt": "__gt__", "gte": "__ge__", "lt": "__lt__", "lte": "__le__"}
            return {
                id: 1.0
                for id in self.shown
                if any(
                    all(getattr(float(one), compare[sign])(value) for sign, value in asked.items())
                    for one in self._values(id, field)
                )
            }
        if kind == "match":
            only(asked, {"query", "boost"}, kind)
            if asked.get("boost", 1.0) < 0:
                raise Refused("negative [boost] are not allowed")
            return self._bm25(field, asked["query"], asked.get("boost", 1.0))
        raise Refused(f"unknown query [{kind}]")

    def _values(self, id, field):
        value = self.shown[id]
        for name in field.split("."):
            value = value.get(name, {}) if isinstance(value, dict) else {}
        return value if isinstance(value, list) else [] if value == {} else [value]

    def _bool(self, body):
        listed = {
            name: [self.scores(one) for one in body.get(name, [])]
            for name in BOOL
            if name.startswith(("m", "f", "s")) and name != "minimum_should_match"
        }
        needed = body.get("minimum_should_match", 0 if listed["must"] or listed["filter"] else 1)
        found = {}
        for id in self.shown:
            hits = [one[id] for one in listed["should"] if id in one]
            has_all = all(id in one for one in [*listed["must"], *listed["filter"]])
            if (
                has_all
                and not any(id in one for one in listed["must_not"])
                and (not listed["should"] or len(hits) >= needed)
            ):
                found[id] = sum(hits) + sum(one[id] for one in listed["must"])
        return found

    def _bm25(self, field, word, boost):
        own = self.mapping["properties"][field]
        assert own["analyzer"] == "keyword"
        settings = self.settings["similarity"][own["similarity"]]
        counts = {id: self._values(id, field).count(word) for id in self.shown}
        held = {id: count for id, count in counts.items() if count}
        lengths = {id: len(self._values(id, field)) for id in self.shown}
        mean = sum(lengths.values()) / max(len(lengths), 1)
        idf = math.log(1 + (len(counts) - len(held) + 0.5) / (len(held) + 0.5))
        k1, b = settings["k1"], settings["b"]
        return {id: boost * idf * count / (count + k1 * (1 - b + b * lengths[id] / mean)) for id, count in held.items()}


@contextmanager
def fake_server(product, authorization=None, context=None):
    """A running server: its address, and its state. context: of TLS, for one that is asked by HTTPS."""
    state = FakeServer(product, authorization)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each answer waits 40 ms

        def _reply(self):
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = state.answer(self.command, self.path, content, self.headers)
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = _reply

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    try:
        yield f"{product}+{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}", state
    finally:
        server.shutdown()
        server.server_close()
