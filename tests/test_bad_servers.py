"""A server that is not what it should be: one line, whatever it answers to whichever request."""

import importlib
import itertools
import socket
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from fake_elasticsearch import fake_server
from fake_qdrant import fake_qdrant
from store_fixtures import add_small, one_line, skip_without, small_about

from boolbert.core.errors import RetrievalError
from boolbert.retrieval.stores import open_store
from boolbert.retrieval.stores.remote import AskedWord

SERVERS = {"elasticsearch": lambda: fake_server("elasticsearch"), "qdrant": fake_qdrant}
BAD = {
    "nothing": b"",
    "an empty object": b"{}",
    "an empty list": b"[]",
    "a number": b"1",
    "true": b"true",
    "null": b"null",
    "a text": b'"ok"',
    "half": b'{"result": {"',
    "a page": b"<html><body>Welcome to nginx!</body></html>",
    "no number": b'{"result": NaN, "count": NaN}',
    "brackets": b"[" * 200_000 + b"]" * 200_000,
    "objects": b'{"result":' * 20_000 + b"1" + b"}" * 20_000,
    "UTF-16": '{"result": 1}'.encode("utf-16"),
    "bytes": bytes(range(128, 256)),
    "without a result": b'{"status": "ok", "time": 0.1}',
    "a result of null": b'{"result": null, "status": "ok", "time": 0.1}',
    "a result of true": b'{"result": true, "status": "ok", "time": 0.1}',
    "a result of a list": b'{"result": [1], "status": "ok", "time": 0.1}',
    "a result of an object": b'{"result": {"points": [null]}, "status": "ok", "time": 0.1}',
    "another index": b'{"films": {}}',
    "hits of null": b'{"hits": null, "responses": null, "docs": null, "items": null, "_shards": null}',
    "an error of a number": b'{"error": 5}',
    "an error of odd causes": b'{"error": {"root_cause": 5, "caused_by": [1], "reason": {}, "type": null}}',
}
IDS = [f"d{n}" for n in range(3)]
ONE = np.ones((1, 4), np.float32)
CALLS = {
    "exists": lambda store: store.exists(),
    "about": lambda store: store.about(),
    "count": lambda store: store.count(),
    "records": lambda store: list(store.records()),
    "digests": lambda store: store.digests(IDS),
    "search": lambda store: store.search(ONE, 3),
    "nearest": lambda store: [list(ids) for ids in store.nearest_ids(ONE, 3, None)],
    "by words": lambda store: list(store.ids_by_words([AskedWord("word", 1.0, 3)], 3, None)),
    "held": lambda store: store.held_by(["word"]),
    "statistics": lambda store: store.statistics(),
    "fetch": lambda store: store.fetch(IDS),
    "passages": lambda store: store.passages(IDS),
    "sample": lambda store: store.sample(3),
    "create": lambda store: store.create(small_about(more="number")),
    "note": lambda store: store.note(small_about()),
    "add": lambda store: add_small(store, IDS, text="other"),
    "delete": lambda store: store.delete(IDS),
}


class Server(NamedTuple):
    address: str
    state: object
    store: object
    requests: dict  # how many each call sends

    def call(self, name, bad=None, at=()):
        """Make a call, to some of whose requests this is answered."""
        self.store.refresh()
        self.state.calls.clear()
        self.state.instead = lambda number: bad if number in at else None
        try:
            return CALLS[name](self.store)
        finally:
            self.state.instead = lambda number: None

    def fill(self):
        add_small(self.store, IDS)
        assert self.store.count() == len(IDS)


@pytest.fixture(scope="module", params=SERVERS)
def server(request):
    with SERVERS[request.param]() as (address, state):
        store = open_store(address)
        store.create(small_about())
        made = Server(address, state, store, {})
        made.fill()
        for name in CALLS:
            made.fill()
            made.call(name)
            made.requests[name] = len(state.calls)
        made.fill()
        yield made
        store.close()


@pytest.mark.parametrize("everywhere", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("call", CALLS)
def test_a_bad_answer_is_one_line(server, call, everywhere):
    """Each of them to each request that a call sends; to one of its requests, in turn, where there is little time."""
    many = server.requests[call]
    places = [(name, turn % many + 1) for turn, name in enumerate(BAD)]
    for name, place in itertools.product(BAD, range(1, many + 1)) if everywhere else places:
        try:
            server.call(call, BAD[name], [place])
            shown = "nothing was raised"
        except RetrievalError as error:
            shown = str(error)
        assert shown.startswith(server.address), f"{name} to request {place}: {shown}"
        assert "\n" not in shown
        assert len(shown) < 500
        if call == "delete":
            server.fill()
    server.call(call)


# --- Milvus, whose client reads answers of gRPC -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def milvus(tmp_path_factory):
    skip_without("milvus")
    from fake_milvus import fake_milvus

    from boolbert.retrieval.stores.milvus_store import MilvusStore

    with fake_milvus(tmp_path_factory.mktemp("milvus") / "films.db") as (address, state):
        store = MilvusStore(address)
        store.create(small_about())
        yield Server(address, state, store, {})
        store.close()


MILVUS_CALLS = [name for name in CALLS if name != "create"]  # what it asks is asked by the others, too


@pytest.mark.parametrize("call", MILVUS_CALLS)
def test_what_milvus_answers_is_one_line(milvus, call):
    """Its client asks again and again where an answer makes no sense, and gives up in time."""
    import grpc

    milvus.fill()
    milvus.call(call)
    many = len(milvus.state.calls)
    milvus.store._wait = 0.01
    try:
        for turn, bad in enumerate((b"\xff" * 20, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNAVAILABLE)):
            with pytest.raises(RetrievalError) as error:
                milvus.call(call, bad, range(turn % many + 1, 1000))
            shown = str(error.value)
            assert shown.startswith(f"{milvus.address}: Milvus")
            assert "\n" not in shown
            assert len(shown) < 500
    finally:
        milvus.store._wait = 10


def another_field():
    from pymilvus.grpc_gen import milvus_pb2, schema_pb2

    field = schema_pb2.FieldData(type=schema_pb2.DataType.Int64, field_name="other")
    field.scalars.long_data.data.append(3)
    return milvus_pb2.QueryResults(fields_data=[field]).SerializeToString()


@pytest.mark.parametrize(
    ("call", "method", "answer", "told"),
    [
        ("search", "Search", bytes, "answers for 0 of 1 searches"),
        ("by words", "Search", bytes, "answers for 0 of 1 searches"),
        ("add", "Upsert", bytes, "has written 0 of 3 documents"),
        ("count", "Query", bytes, "No fields returned"),
        ("count", "Query", another_field, "does not tell how many documents"),
    ],
)
def test_milvus_answers_nothing(milvus, call, method, answer, told):
    """No bytes are an answer without an error."""
    milvus.fill()
    for _ in range(2):  # from the second time on it remembers what it has counted
        milvus.call(call)
    place = milvus.state.calls.index(method) + 1
    with pytest.raises(RetrievalError, match=told):
        milvus.call(call, answer(), [place])


@contextmanager
def answering(state, method, answer):
    """Calls of this method get this answer, or None: they wait for one until this ends."""
    ended = threading.Event()

    def instead(number):
        if state.calls[-1] != method:
            return None
        if answer is None:
            ended.wait()
        return answer

    state.instead = instead
    try:
        yield
    finally:
        state.instead = lambda number: None
        ended.set()


def never_ready():
    from pymilvus.grpc_gen import common_pb2, milvus_pb2

    index = milvus_pb2.IndexDescription(field_name="vector", state=common_pb2.IndexState.InProgress)
    return milvus_pb2.DescribeIndexResponse(index_descriptions=[index]).SerializeToString()


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("AllocTimestamp", None),
        ("DescribeIndex", never_ready),
        ("Query", None),
        *(
            pytest.param(method, answer, marks=pytest.mark.long)
            for method, answer in [
                ("DescribeCollection", None),
                ("CreateCollection", None),
                ("CreateIndex", None),
                ("DescribeIndex", None),
                ("LoadCollection", None),
                ("GetLoadingProgress", None),
                ("GetLoadingProgress", lambda: b""),
                ("Upsert", None),
                ("Flush", None),
                ("GetFlushState", lambda: b""),
                ("AlterCollection", None),
            ]
        ),
    ],
)
def test_milvus_that_never_ends_is_given_up(method, answer, tmp_path):
    """It answers nothing to this, or says again and again that it has not finished yet."""
    skip_without("milvus")
    from fake_milvus import fake_milvus

    from boolbert.retrieval.stores.milvus_store import MilvusStore

    with fake_milvus(tmp_path / "films.db") as (address, state):
        store = MilvusStore(address)
        store._wait = 0.02  # the limit of a call is 0.24 seconds, of a long one 2.4

        def index():
            store.create(small_about())
            add_small(store, IDS)
            store.note(replace(store.about(), complete=True))

        begun = time.monotonic()
        with answering(state, method, answer and answer()), pytest.raises(RetrievalError) as error:
            index()
        assert time.monotonic() - begun < 15
        assert method in state.calls
        assert str(error.value).startswith(f"{address}: Milvus")
        assert "\n" not in str(error.value)


# --- addresses and time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["ho st", "[::1", "h\tst", "é é", "a" * 300, "host:port", "host:99999"])
@pytest.mark.parametrize("start", ["elasticsearch+http", "opensearch+https", "qdrant:http", "qdrant:https"])
def test_a_host_that_cannot_be_one_is_one_line(start, host, capsys):
    shown = one_line(capsys, "search", "films", "--store", f"{start}://me:secret@{host}")
    assert "cannot be" in shown  # read as an address, or reached


@contextmanager
def trickling(content):
    """The port of a server that sends one byte after the other, without an end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with suppress(OSError):
                while True:
                    threading.Thread(target=send, args=[listening.accept()[0]], daemon=True).start()

        def send(connection):
            with suppress(OSError), connection:
                connection.recv(65536)
                for byte in itertools.chain(content, itertools.repeat(32)):
                    connection.sendall(bytes([byte]))
                    time.sleep(0.05)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"


@pytest.mark.parametrize("content", [b"HTTP/1.1 200 O", HEAD[:40], HEAD], ids=["status", "headers", "body"])
@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_that_trickles_is_given_up(kind, content, monkeypatch):
    """Half a second may pass between two bytes, but not a day until the last one."""
    start = {"elasticsearch": "elasticsearch+http", "qdrant": "qdrant:http"}[kind]
    for store in ("elasticsearch_store.ElasticsearchStore", "qdrant_store.QdrantStore"):
        name, _, made = store.partition(".")
        module = importlib.import_module(f"boolbert.retrieval.stores.{name}")
        monkeypatch.setattr(module, made, partial(getattr(module, made), wait=0.1))
    with trickling(content) as port:
        begun = time.monotonic()
        with pytest.raises(RetrievalError, match=r"cannot be reached: .*no whole answer within 1\.2 seconds"):
            open_store(f"{start}://127.0.0.1:{port}").exists()
        assert time.monotonic() - begun < 10
