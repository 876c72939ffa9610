"""The recipes of docs/engines.md run, and each obeys NOT; those whose package is missing are skipped, loudly. So does
the example of docs/search.md."""

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from fake_elasticsearch import fake_server
from store_fixtures import new_database, skip_without

import boolbert
from boolbert.cli.main import main


def blocks(page):
    text = (Path(boolbert.__file__).parent / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def commands(title):
    """The commands of a section of engines.md."""
    text = (Path(boolbert.__file__).parent / "docs" / "engines.md").read_text(encoding="utf-8")
    section = text.split(f"### {title}\n")[1].split("\n#")[0]
    return [line.partition("  #")[0].strip() for line in section.splitlines() if line.startswith("    boolbert ")]


BLOCKS = blocks("engines.md")
CSV = """id,text,year
tt0044706,A western about a marshal.,1952
tt0105695,A western about an outlaw.,1992
tt0080684,A horror film about a monster in space.,1995
"""
FILMS = "['A horror film about a monster in space.', 'A western about an old outlaw.']"
TWO = "['A monster in space.', 'A western about an outlaw.']"
# What tells each block, the packages it needs, and what its last line prints.
RECIPES = {
    "a store": ("films.db", ["pymilvus", "milvus_lite"], FILMS),
    "any embedding model": ("all-mpnet", [], "A quiet hotel in the hills."),
    "LangChain": ("with_clauses", ["langchain_core"], "A quiet hotel. There is no pool."),
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
    names = r"sentence-transformers/all-(mpnet-base|MiniLM-L6)-v2"
    exec(re.sub(names, pretrained_bert, block), found)  # nothing is downloaded
    shown = capsys.readouterr().out.splitlines()[-1]
    if expected is None:  # the request itself: tests/test_databases.py computes what it says
        assert "excluded" in shown
    else:
        assert shown == expected
    for name in {"store", "client"} & found.keys():
        getattr(found[name], "close", lambda: None)()


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


@pytest.fixture
def run_commands(tmp_path, monkeypatch, capsys, run_once):
    """A function that runs the commands of a section, with other addresses; for each search the texts that it finds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.csv").write_text(CSV)

    def run(title, places):
        found = []
        for line in commands(title):
            words = [places.get(word, word) for word in shlex.split(line)[1:]]
            is_new = words[0] == "index" and "--remove" not in words
            assert main([*words, *(["--model", str(run_once())] if is_new else []), "--json"]) == 0, line
            said = json.loads(capsys.readouterr().out)
            found += [sorted(hit["text"] for hit in said["hits"])] if words[0] == "search" else []
        return found

    return run


LATE = ["A horror film about a monster in space.", "A western about an outlaw."]


def test_the_commands_for_postgres(run_commands):
    skip_without("postgres")
    import psycopg

    place = new_database()
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("CREATE TABLE movies (movie_id int PRIMARY KEY, name text, plot text, year int)")
        connection.execute(
            "INSERT INTO movies VALUES (1, 'Alone', 'A marshal.', 1952), (2, 'Space', 'A monster.', 1995)"
        )
    found = run_commands("I have Postgres", {"postgresql://me@host/db": place})
    assert found == [LATE, ["Space. A monster."]]


def test_the_commands_for_elasticsearch_and_opensearch(run_commands):
    with fake_server("elasticsearch") as (one, _), fake_server("opensearch") as (other, _):
        places = {"elasticsearch+https://host:9200": one, "opensearch+https://me@host:9200": other}
        found = run_commands("I have Elasticsearch or OpenSearch", places)
    assert found == [LATE, sorted([*LATE, "A western about a marshal."])]
