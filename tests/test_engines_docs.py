"""The recipes of docs/engines.md run, and each obeys NOT. Those whose package is missing are skipped, loudly."""

import re
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import boolbert
from boolbert.sentence_boolbert import QueryParts

PAGE = (Path(boolbert.__file__).parent / "docs" / "engines.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
# What tells each block, the packages it needs, and what its last line prints.
RECIPES = {
    "Milvus": ("films.db", ["pymilvus", "milvus_lite"], "['Alien', 'Ran']"),
    "Qdrant": (
        "qdrant_client",
        ["qdrant_client"],
        "['A crew meets a monster in space.', 'A western about an outlaw.']",
    ),
    "LanceDB": ("lancedb", ["lancedb"], "['A crew meets a monster in space.', 'A western about an outlaw.']"),
    "any embedding model": ("import obey", [], "A quiet hotel in the hills."),
    "LangChain": ("langchain_core", ["langchain_core"], "['A crew meets a monster in space.']"),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs_and_obeys(name, tmp_path, monkeypatch, capsys, pretrained_bert):
    """Qdrant's goes on with a query of several vectors, and with what a query excludes."""
    mark, packages, expected = RECIPES[name]
    (block,) = (block for block in BLOCKS if mark in block)
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        pytest.skip(f"NOT TESTED: the recipe for {name}, because {', '.join(missing)} is not installed")
    monkeypatch.chdir(tmp_path)
    opened = partial(SentenceTransformer, pretrained_bert, device="cpu")
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", lambda name: opened())  # nothing is downloaded
    found: dict = {}
    exec(block, found)
    assert capsys.readouterr().out.splitlines()[-1] == expected
    if name == "Milvus":
        found["store"].close()
    if name == "Qdrant":
        excluded_is_kept_apart(found)
        alternatives_are_merged(found)


def test_every_block_is_tested():
    assert len(BLOCKS) == len(RECIPES)


def alternatives_are_merged(found):
    """With a query of several vectors, the recipe ranks as the largest dot product does."""
    vectors = np.random.default_rng(0).normal(size=(3, 384)).astype(np.float32)
    documents = found["encoder"].encode_document(found["texts"])

    class Several:
        def encode_query_parts(self, query):
            return QueryParts(vectors, vectors[0], None, vectors)

    found["encoder"] = Several()
    expected = (documents @ vectors.T).max(axis=1)
    points = found["search"]("a or b", k=3)
    assert [point.id for point in points] == np.argsort(-expected).tolist()


def excluded_is_kept_apart(found):
    """Sorted as a search sorts, and not as the vectors alone."""
    parts = found["encoder"].encode_query_parts("a western that is not about an outlaw")
    scores = parts.scores(found["encoder"].encode_document(found["texts"]))
    assert parts.penalty is not None
    points = found["search"]("a western that is not about an outlaw", k=3)
    assert [point.id for point in points] == (-scores).argsort().tolist()
