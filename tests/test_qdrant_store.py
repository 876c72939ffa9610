"""Qdrant as a store: odd names, collections of others, and errors of one line."""

import multiprocessing
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from process_helpers import finish, hold_open
from store_fixtures import one_line, skip_without, small_about

from boolbert.core.errors import RetrievalError
from boolbert.retrieval.stores import open_store

skip_without("qdrant")

ABOUT = small_about()


def test_a_collection_of_others_is_left_alone(tmp_path):
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(tmp_path / "films"))
    client.create_collection("mine", vectors_config=models.VectorParams(size=4, distance=models.Distance.DOT))
    client.close()
    store = open_store(f"qdrant:{tmp_path / 'films'}", "mine")
    for call in (store.count, lambda: store.create(ABOUT)):
        with pytest.raises(
            RetrievalError, match="'mine' was not made by boolbert; give another name with --collection"
        ):
            call()
    store.close()


@pytest.mark.parametrize("name", ["boolbert", "a/b", "a:b", "x" * 256, "a\nb"])
def test_names_that_qdrant_does_not_take(name):
    with pytest.raises(RetrievalError, match=r"--collection .*: Qdrant takes no control characters"):
        open_store("qdrant::memory:", name)


def test_errors_are_one_line(tmp_path, capsys, monkeypatch):
    search = ("search", "films", "--store")
    assert "qdrant:http://127.0.0.1:9: cannot be reached: " in one_line(capsys, *search, "qdrant:http://127.0.0.1:9")
    shown = one_line(capsys, *search, f"qdrant:{tmp_path / 'films'}")
    assert "has no collection 'documents'; make one with: boolbert index DOCS.jsonl --store qdrant:" in shown
    assert "its folder does not exist" in one_line(capsys, *search, f"qdrant:{tmp_path / 'no' / 'films'}")

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(401, "secret")

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Refusing)
    Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    shown = one_line(capsys, *search, f"qdrant:http://127.0.0.1:{server.server_port}")
    assert "the server refuses the key; QDRANT_API_KEY holds it" in shown
    server.shutdown()
    server.server_close()


def test_a_folder_belongs_to_one_process(tmp_path, start):
    place, (here, there) = f"qdrant:{tmp_path / 'films'}", multiprocessing.Pipe()
    other = start(hold_open, place, there)
    assert here.poll(60)
    assert here.recv() == "open"
    with pytest.raises(RetrievalError, match="another process has it open; try again when it has finished"):
        open_store(place)
    here.send("close")
    assert finish(other) == [0]
    open_store(place).close()
