"""The recipes of docs/engines.md run, and each obeys NOT; those whose package is missing are skipped, loudly. So does
the example of docs/search.md."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import boolbert


def blocks(page):
    text = (Path(boolbert.__file__).parent / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


BLOCKS = blocks("engines.md")
FILMS = "['A horror film about a monster in space.', 'A western about an old outlaw.']"
TWO = "['A monster in space.', 'A western about an outlaw.']"
# What tells each block, the packages it needs, and what its last line prints.
RECIPES = {
    "a store": ("films.db", ["pymilvus", "milvus_lite"], FILMS),
    "any embedding model": ("import obey", [], "A quiet hotel in the hills."),
    "Qdrant": ("qdrant_client", ["qdrant_client"], TWO),
    "Elasticsearch": ("elasticsearch_query", [], None),
    "pgvector": ("pgvector_sql", [], None),
    "Milvus": ("own.db", ["pymilvus", "milvus_lite"], TWO),
    "LanceDB": ("import lancedb", ["lancedb"], TWO),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs_and_obeys(name, tmp_path, monkeypatch, capsys, pretrained_bert):
    mark, packages, expected = RECIPES[name]
    (block,) = (block for block in BLOCKS if mark in block)
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        pytest.skip(f"NOT TESTED: the recipe for {name}, because {', '.join(missing)} is not installed")
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    exec(block.replace("sentence-transformers/all-mpnet-base-v2", pretrained_bert), found)  # nothing is downloaded
    shown = capsys.readouterr().out.splitlines()[-1]
    if expected is None:  # the request itself: tests/test_databases.py computes what it says
        assert "excluded" in shown
    else:
        assert shown == expected
    for name in {"store", "client"} & found.keys():
        found[name].close()


def test_every_block_is_short_and_tested():
    assert len(BLOCKS) == len(RECIPES)
    assert all(len([line for line in block.splitlines() if line]) <= 15 for block in BLOCKS)


def test_the_example_of_search_md_runs(tmp_path, monkeypatch, capsys):
    """With the default model, over the embedded countries."""
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path / "cache"))
    (code,) = blocks("search.md")
    found: dict = {}
    exec(code, found)
    assert len(found["answer"]) == 5
    assert capsys.readouterr().out.startswith("('not',) [")
    assert len(list((tmp_path / "cache" / "indexes").iterdir())) == 1  # kept for the next call
