"""A Postgres that does not answer, or answers a byte at a time: one line, after a time that is known."""

import socket
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from store_fixtures import add_small, new_database, one_line, skip_without, small_about

from boolbert.core.errors import RetrievalError
from boolbert.retrieval.stores import open_store

skip_without("postgres")
import psycopg  # noqa: E402

from boolbert.retrieval.stores import postgres_connection  # noqa: E402
from boolbert.retrieval.stores.postgres_store import PostgresStore  # noqa: E402
from boolbert.retrieval.stores.postgres_table import PostgresTable  # noqa: E402

LIMIT = 0.5
LATEST = 20.0  # seconds within which a busy machine ends a wait of a second


@pytest.fixture
def place():
    place = new_database()
    store = open_store(place)
    store.create(small_about())
    add_small(store, ["a", "b"])
    store.close()
    return place


@pytest.fixture(autouse=True)
def _limits(monkeypatch):
    monkeypatch.setitem(postgres_connection.LIMITS, "search", LIMIT)
    monkeypatch.setattr(postgres_connection, "SPARE", LIMIT)


@contextmanager
def serving(answer):
    """The address of a server that deals with each connection in a thread: answer(connection)."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run(connection):
            with connection, suppress(OSError):
                answer(connection)

        def accept():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:  # closed
                    return
                threading.Thread(target=run, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


class Proxy:
    """Before a real server: while `how` is "all", everything goes through it, and then nothing, or a byte at a time."""

    def __init__(self, place):
        folder = Path(parse_qs(urlsplit(place).query)["host"][0])
        self.socket = str(next(folder.glob(".s.PGSQL.*[0-9]")))
        self.how = "all"

    def __call__(self, client):
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.socket)
        threading.Thread(target=self._pass, args=(client, server), daemon=True).start()
        while content := server.recv(1 << 16):
            if self.how == "all":
                client.sendall(content)
                continue
            for start in range(len(content)):
                if self.how == "bytes":
                    client.sendall(content[start : start + 1])
                time.sleep(0.2)

    def _pass(self, source, target):
        with suppress(OSError):
            while content := source.recv(1 << 16):
                target.sendall(content)


@contextmanager
def behind_a_proxy(place):
    proxy = Proxy(place)
    with serving(proxy) as address:
        name = urlsplit(place).path
        yield f"postgresql://postgres:secret@{address}{name}", proxy


@contextmanager
def ends_in_time():
    start = time.monotonic()
    yield
    assert time.monotonic() - start < LATEST


def silent(connection):
    time.sleep(2 * LATEST)


def trickling(connection):
    connection.recv(100)
    connection.sendall(b"N")  # no encryption
    connection.recv(1000)
    for byte in b"R\0\0\0\x08\0\0\0\0" + b"S\0\0\0\xff" + b"a" * 250:
        connection.sendall(bytes([byte]))
        time.sleep(0.2)


@pytest.mark.parametrize("answer", [silent, trickling])
def test_a_server_that_does_not_let_in(answer):
    line = r"postgresql://me@127\.0\.0\.1:\d+/db: cannot be reached: .*timeout"
    with serving(answer) as address, ends_in_time(), pytest.raises(RetrievalError, match=line):
        PostgresStore(f"postgresql://me:secret@{address}/db", wait=1.0)


CALLS = {
    "count": lambda store: store.count("tag = a"),
    "search": lambda store: store.search(np.ones((1, 4)), 5),
    "records": lambda store: list(store.records()),
    "add": lambda store: add_small(store, ["c"]),
    "delete": lambda store: store.delete(["a"]),
}


@pytest.mark.parametrize("how", ["nothing", "bytes"])
@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_stops_answering(place, how, call, monkeypatch, caplog):
    """And when it answers again, so does the store."""
    monkeypatch.setitem(postgres_connection.LIMITS, "batch", LIMIT)
    with behind_a_proxy(place) as (address, proxy):
        store = open_store(address)
        assert store.count() == 2
        proxy.how = how
        with ends_in_time(), pytest.raises(RetrievalError) as error:
            CALLS[call](store)
        assert "Postgres has not answered within" in str(error.value)
        assert "secret" not in str(error.value)
        assert caplog.text == ""  # of what psycopg does with a connection that was shut
        proxy.how = "all"
        assert store.count() == 2
        store.close()


def test_a_users_table_whose_server_stops_answering(place, monkeypatch):
    monkeypatch.setitem(postgres_connection.LIMITS, "table", LIMIT)
    monkeypatch.setattr("boolbert.retrieval.stores.postgres_table._PAGE", 1)
    with psycopg.connect(place) as connection:
        connection.execute("CREATE TABLE mine AS SELECT n AS id, 'a text' AS text FROM generate_series(1, 9) AS n")
    with behind_a_proxy(place) as (address, proxy):
        table = PostgresTable(address, "mine", {"id": "id"})
        rows = table.rows()
        next(rows)
        proxy.how = "bytes"
        with ends_in_time(), pytest.raises(RetrievalError, match=r"public\.mine: Postgres has not answered within"):
            list(rows)
        with ends_in_time(), pytest.raises(RetrievalError, match=r"cannot be reached|has not answered within"):
            PostgresTable(f"{address}?connect_timeout=1", "mine", {"id": "id"})


@contextmanager
def locked(place, seconds=None):
    """While this holds, or for so long, nobody else gets at the documents."""
    with psycopg.connect(place) as connection:
        connection.execute("LOCK TABLE documents IN ACCESS EXCLUSIVE MODE")
        timer = threading.Timer(seconds or LATEST, connection.rollback)
        timer.start()
        yield
        timer.cancel()
        timer.join()


def test_a_search_that_takes_too_long_is_one_line(place, capsys):
    with locked(place), ends_in_time():
        shown = one_line(capsys, "index", "--store", place, "--remove", "a", "--calibrate")
    assert (
        "Postgres has not answered within 0.5 seconds; ALTER ROLE ... SET statement_timeout = '1h' allows more" in shown
    )
    store = open_store(place)
    assert store.count() == 2
    store.close()


def test_a_writer_waits_longer_for_others(place):
    store = open_store(place)
    store.about()
    with locked(place, 3 * LIMIT):
        add_small(store, ["c"])
    assert store.count() == 3
    store.close()


def test_a_limit_of_the_users_own_is_kept(place):
    """Shorter or longer."""
    for limit, lock in (("100ms", None), ("20s", 4 * LIMIT)):
        store = open_store(f"{place}&options=-c%20statement_timeout%3D{limit}")
        store.about()
        with locked(place, lock):
            if lock is None:
                with pytest.raises(RetrievalError, match=r"has not answered within 0\.1 seconds"):
                    store.count("tag = a")
            else:
                assert store.count("tag = a") == 2
        store.close()
