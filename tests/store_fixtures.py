"""The stores that are tested, and a tiny collection of films with fields."""

import json
from importlib.util import find_spec

import pytest

KINDS = {"folder": "films", "faiss": "films.faiss", "milvus": "films.db"}
PACKAGES = {"faiss": ["faiss"], "milvus": ["pymilvus", "milvus_lite"]}
WORDS = ["films", "books", "set", "in", "about", "war", "a", "b", "c"]


def skip_without(kind):
    missing = [name for name in PACKAGES.get(kind, []) if find_spec(name) is None]
    if missing:
        pytest.skip(f"NOT TESTED: the {kind} store, because {', '.join(missing)} is not installed")


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
