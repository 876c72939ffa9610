"""Qdrant as a store: whole documents or none, odd names, and errors of one line."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import numpy as np
import pytest
from store_fixtures import skip_without

from boolbert.cli.main import main
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.evidence import RULES, DocumentEvidence
from boolbert.retrieval.stores import About, Record, open_store

skip_without("qdrant")

ABOUT = About("0123456789abcdef", 4, "some/model", {"tag": "text"}, "made", evidence=True, rules=RULES)
HOSTILE = ("a.b", "a[]", 'a"b', "x'y", "x61", "{}", "ünï ⚡", "two words", "nested.fields[].key")


def evidence(*words):
    spans, vectors = np.array([[0, 4, 0]], np.int32), np.ones((1, 4), np.int8)
    return DocumentEvidence(dict.fromkeys(words, 2), spans, vectors, np.ones(1, np.float16))


def added(store, ids, words=("word",)):
    records = [Record(id, f"Title {id}", "text", {"tag": ("a",)}) for id in ids]
    store.add(records, np.ones((len(ids), 4), np.float32), [evidence(*words) for _ in ids])


@pytest.fixture
def store():
    store = open_store("qdrant::memory:")
    store.create(ABOUT)
    yield store
    store.close()


WRITER = """
import sys
sys.path.insert(0, {tests!r})
from test_qdrant_store import *
store = open_store({place!r})
number = 0
while True:
    added(store, [f"{{number}}-{{n}}" for n in range(20)])
    number += 1
    print(number, flush=True)
"""


def test_killed_between_and_in_writes_each_document_is_whole(tmp_path):
    place = f"qdrant:{tmp_path / 'films'}"
    store = open_store(place)
    store.create(ABOUT)
    store.close()
    code = WRITER.format(tests=os.path.dirname(__file__), place=place)
    for moment in range(3):
        writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        try:
            assert writer.stdout.readline() == "1\n"
            time.sleep(0.05 * moment)
        finally:
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
        store = open_store(place)
        records = list(store.records())
        found = store.fetch([record.id for record in records])
        assert len(found) == store.count() >= 20
        assert all(one.evidence.words == {"word": 2} and len(one.vector) == 4 for one in found)
        assert store.held_by(["word"]) == {"word": len(found)}
        store.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_fields_values_and_texts_of_any_kind(store, text):
    store.create(replace(ABOUT, fields={text: "text", f"{text} 2": "number"}))
    fields = {text: (text, "b"), f"{text} 2": 7.5}
    store.add([Record(text, text, text, fields)], np.ones((1, 4), np.float32), [evidence(text)])
    quoted = json.dumps(text, ensure_ascii=False)
    number = json.dumps(f"{text} 2", ensure_ascii=False)
    assert store.count(f"{quoted} = {quoted} and {number} > 7") == 1
    assert store.count(f"{quoted} != {quoted} or {number} != 7.5") == 0
    (found,) = store.fetch([text])
    assert (found.record.text, found.record.fields, found.evidence.words) == (text, fields, {text: 2})


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


def one_line(capsys, *words):
    assert main(list(words)) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "secret" not in shown
    return shown


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
    Thread(target=server.serve_forever, daemon=True).start()
    shown = one_line(capsys, *search, f"qdrant:http://127.0.0.1:{server.server_port}")
    assert "the server refuses the key; QDRANT_API_KEY holds it" in shown
    server.shutdown()
    server.server_close()


def test_a_folder_belongs_to_one_process(tmp_path):
    place = f"qdrant:{tmp_path / 'films'}"
    code = f"""
from boolbert.retrieval.stores import open_store
store = open_store({place!r})
print("open", flush=True)
input()
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "open\n"
    with pytest.raises(RetrievalError, match="another process has it open; try again when it has finished"):
        open_store(place)
    other.communicate("\n")
    open_store(place).close()
