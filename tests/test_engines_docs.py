"""The recipes of docs/engines.md run, and each obeys NOT. Those whose package is missing are skipped, loudly."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import boolbert

PAGE = (Path(boolbert.__file__).parent / "docs" / "engines.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
TWO = "['A monster in space.', 'A western about an outlaw.']"
# What tells each block, the packages it needs, and what its last line prints.
RECIPES = {
    "a store": (
        "films.db",
        ["pymilvus", "milvus_lite"],
        "['A horror film about a monster in space.', 'A western about an old outlaw.']",
    ),
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
