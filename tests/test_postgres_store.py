"""Postgres as a store: whole documents or none, odd names, tables of others, and errors of one line."""

import os
import time
from dataclasses import replace

import numpy as np
import pytest
from store_fixtures import (
    add_small,
    new_database,
    one_line,
    postgres_server,
    said,
    skip_without,
    small_about,
    write_films,
    write_until_killed,
)

from boolbert.cli.main import main
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.stores import Record, open_store

skip_without("postgres")
import psycopg  # noqa: E402

ABOUT = small_about()
HOSTILE = ('a"; DROP TABLE films; --', "x'y", "%s", "{table}", "select", "ünï ⚡", "two words", "a.b")


@pytest.fixture
def place():
    return new_database()


@pytest.fixture
def store(place):
    store = open_store(place)
    store.create(ABOUT)
    yield store
    store.close()


def test_killed_between_and_in_writes_each_document_is_whole(place, store):
    """A writer is killed at five moments. What is left are whole batches, and the counts are those of the rows."""
    for moment in range(5):
        write_until_killed(place, 0.05 * moment)
        with psycopg.connect(place) as connection:
            connection.execute("LOCK TABLE documents")  # waits until the server has seen that the writer is gone
            count, odd = connection.execute(
                "SELECT count(*), count(*) FILTER (WHERE words IS NULL OR clauses IS NULL) FROM documents"
            ).fetchone()
            held = dict(connection.execute("SELECT word, held FROM documents_words").fetchall())
        assert count % 40 == odd == 0
        assert store.count() == count == held["word"]
        assert store.statistics().mean_length == 4
        assert {held[f"only{number}"] for number in range(count // 40)} == {40}
        assert len(store.search(np.ones((1, 4)), 10_000)[0]) == count


@pytest.mark.parametrize("name", HOSTILE)
def test_a_collection_of_any_name(place, name):
    other = open_store(place, "films")
    other.create(ABOUT)
    store = open_store(place, name)
    store.create(ABOUT)
    add_small(store, ["a", "b"])
    store.note(replace(store.about(), complete=True))
    assert {hit.record.id for hit in store.search(np.ones((1, 4)), 5, where="tag = a")[0]} == {"a", "b"}
    assert len(store.delete(["a"])) == 1
    assert (store.count(), other.count(), other.exists()) == (1, 0, True)
    store.close()
    other.close()


def test_bytes_that_postgres_has_no_place_for(store):
    store.create(replace(ABOUT, fields={"a\0b": "text"}))
    record = Record("odd", "ti\0tle", "te\0xt \ud800 end", {"a\0b": ("c\0d",)})
    long = "w" * 5000
    store.add([record], np.ones((1, 4), np.float32), [said(long)])
    (found,) = store.fetch(["odd"])
    assert len(found.record.text) == len(record.text)
    assert store.digests(["odd"]) == {"odd": record.digest}
    assert store.held_by([long]) == {long: 1}
    assert len(store.delete(["odd"])) == 1
    assert store.held_by([long]) == {}


def test_the_index_of_neighbours_finds_what_passes_a_narrow_filter(store):
    random = np.random.default_rng(0)
    records = [Record(f"d{n}", "t", "t", {"tag": ("rare",) if n % 500 == 7 else ("many",)}) for n in range(3000)]
    vectors = random.normal(size=(3000, 4)).astype(np.float32)
    store.add(records, vectors, [said("word")] * 3000)
    store.note(replace(store.about(), complete=True))
    assert len(store.search(vectors[:1], 20, where="tag = rare")[0]) == 6
    found = store.search(vectors[:20], 10)
    slow = np.argsort(-(vectors[:20] @ vectors.T), axis=1)[:, :10]
    shares = [
        len({hit.record.id for hit in hits} & {f"d{n}" for n in rows}) for hits, rows in zip(found, slow, strict=True)
    ]
    assert np.mean(shares) >= 9


def test_errors_are_one_line_without_the_password(place, capsys, tmp_path):
    nowhere = "postgresql://me:secret@127.0.0.1:9/db"
    assert "postgresql://me@127.0.0.1:9/db: cannot be reached: " in one_line(
        capsys, "search", "films", "--store", nowhere
    )
    broken = "postgresql://me:secret%zz@host/db"
    assert "expected postgresql://user@host/database" in one_line(capsys, "search", "films", "--store", broken)
    missing = place.replace("films_", "no_such_")
    assert 'database "no_such' in one_line(capsys, "search", "films", "--store", missing)
    shown = one_line(capsys, "search", "films", "--store", place, "--collection", "films")
    assert "has no collection 'films'; make one with: boolbert index DOCS.jsonl --store" in shown
    long = one_line(capsys, "search", "films", "--store", place, "--collection", "x" * 51)
    assert "a name has 1 to 50 bytes" in long


def test_a_wrong_password(place, capsys):
    with psycopg.connect(place, autocommit=True) as connection:
        (data,) = connection.execute("SHOW data_directory").fetchone()
        (port,) = connection.execute("SHOW port").fetchone()
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'right'")
        path = os.path.join(data, "pg_hba.conf")
        with open(path, encoding="utf-8") as file:
            before = file.read()
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"local all guest scram-sha-256\n{before}")
            connection.execute("SELECT pg_reload_conf()")
            time.sleep(0.3)
            name = place.rpartition("/films_")[2].partition("?")[0]
            wrong = f"postgresql://guest:secret@/films_{name}?host={data}&port={port}"
            shown = one_line(capsys, "search", "films", "--store", wrong)
            assert 'password authentication failed for user "guest"' in shown
            right = open_store(wrong.replace("secret", "right"))
            with pytest.raises(RetrievalError, match=r"has no pgvector, .* CREATE EXTENSION vector") as error:
                right.create(ABOUT)  # who may not make it
            assert "right" not in str(error.value).replace("copyright", "")
            right.close()
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(before)
            connection.execute("SELECT pg_reload_conf()")


def test_tables_that_are_not_ours_are_left_alone(place):
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("CREATE TABLE mine (id int, vector int)")
        connection.execute("CREATE TABLE films_words (id int)")
        for name in ("mine", "films"):
            store = open_store(place, name)
            with pytest.raises(RetrievalError, match="was not made by boolbert; give another name with --collection"):
                store.create(ABOUT)
            assert not store.exists()
            store.close()
        mine = open_store(place, "mine")
        with pytest.raises(RetrievalError, match="'mine' was not made by boolbert"):
            mine.count()
        mine.close()
        assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)


def test_a_table_that_was_changed_by_hand(place, store):
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("ALTER TABLE documents ALTER COLUMN vector TYPE vector(3)")
    with pytest.raises(RetrievalError, match="holds vectors of 3 numbers, not of 4 as when it was made"):
        open_store(place).about()
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("DROP TABLE documents")
    with pytest.raises(RetrievalError, match="its table is gone"):
        open_store(place).about()


# What another program may have made of the row of a document, and what is said of it.
DAMAGED = {
    "words = NULL": "its words are None",
    "words = '[1]'": "its words are [1]",
    'words = \'{"word": "x"}\'': "its words are {'word': 'x'}",
    "words = '{\"word\": -2}'": "its words are {'word': -2}",
    "clauses = NULL": "its clauses cannot be read",
    "clauses = ''": "its clauses cannot be read",
    "clauses = 'junk'": "its clauses cannot be read",
    "clauses = '[1, 4]\nxx'": "its clauses cannot be read",
    "clauses = '[-1, 4]\n'": "its clauses cannot be read",
    "clauses = '{}\n'": "its clauses cannot be read",
    "clauses = substring(clauses FROM 1 FOR 12)": "its clauses cannot be read",
    "clauses = clauses || '\\x00'::bytea": "its clauses cannot be read",
    "text = ''": "its clauses cannot be read",  # of which they are places
    "fields = '[]'": "its fields are []",
    "fields = '\"x\"'": "its fields are 'x'",
    "fields = '{\"tag\": null}'": "its field 'tag' is None",
    "fields = '{\"tag\": {}}'": "its field 'tag' is {}",
    "fields = '{\"tag\": [1]}'": "its field 'tag' is [1]",
    "fields = '{\"tag\": true}'": "its field 'tag' is True",
    "title = NULL": "its title is None",
    "text = NULL": "its text is None",
    "document = NULL": "its document is None",
    "digest = NULL": "its digest is None",
    "vector = NULL": "its vector is None",
}


@pytest.mark.parametrize("change", DAMAGED)
def test_a_row_that_another_program_has_damaged(place, store, change):
    """One line that names it, and it can be removed and written again; the others are as they were."""
    add_small(store, ["a", "b"])
    with psycopg.connect(place) as connection:
        for column in ("title", "text", "document", "digest", "vector", "fields"):
            connection.execute(f"ALTER TABLE documents ALTER COLUMN {column} DROP NOT NULL")
        connection.execute(f"UPDATE documents SET {change} WHERE id = 'b'")
    line = f"documents: the document 'b' is damaged ({DAMAGED[change]}); remove it with --remove b, and index it again"
    with pytest.raises(RetrievalError) as error:
        store.fetch(["a", "b"])
    assert str(error.value).endswith(line.removeprefix("documents"))
    for read in (lambda: list(store.records()), lambda: store.search(np.ones((1, 4)), 5)):
        if not change.startswith(("words", "clauses", "text = ''", "vector")):  # which these do not read
            with pytest.raises(RetrievalError, match="the document 'b' is damaged"):
                read()
    assert [found.record.id for found in store.fetch(["a"])] == ["a"]
    assert store.delete(["b"]) == {"b": "b"}
    add_small(store, ["b"])
    assert [found.record.id for found in store.fetch(["a", "b"])] == ["a", "b"]
    assert [hit.record.id for hit in store.search(np.ones((1, 4)), 5)[0]] == ["a", "b"]
    assert store.count() == 2
    if "NULL" not in change and "[1]" not in change:  # else it is not known which words were in it
        assert store.held_by(["word"]) == {"word": 2}


def test_the_command_line_never_prints_the_password(place, run_once, load_once, tmp_path, capsys):
    model = run_once()
    films = str(write_films(tmp_path / "films.jsonl", 20))
    secret = place.replace("postgres:@", "postgres:secret@")
    assert "secret" in secret
    flags = ["--store", secret, "--collection", "films"]
    assert main(["index", films, *flags, "--model", str(model)]) == 0
    shown = capsys.readouterr()
    assert "20 documents (20 encoded now) with evidence" in shown.out
    assert main(["search", "films but not about war", *flags, "--where", "year < 1960"]) == 0
    assert main(["index", "--remove", "tt3", *flags]) == 0
    assert main(["search", "films but not about war", *flags, "--json"]) == 0
    assert main(["index", films, *flags, "--add", "--json", "--model", str(model)]) == 0
    assert main(["index", *flags, "--calibrate"]) == 2  # of 19 films
    columns = ["--table", "documents", "--id", "id", "--collection", "copies"]
    assert main(["index", films, "--store", secret, "--model", str(model)]) == 0
    assert main(["index", "--store", secret, *columns, "--model", str(model)]) == 0
    shown = shown.out + shown.err + "".join(capsys.readouterr())
    assert "1 records deleted" in shown
    with psycopg.connect(place) as connection:
        known = connection.execute("SELECT name, about::text FROM boolbert_collections").fetchall()
    assert [name for name, _ in known] == ["films", "documents", "copies"]
    assert "secret" not in shown + str(known)


def test_a_server_that_comes_back(place, store):
    """A connection that was cut is opened again."""
    add_small(store, ["a"])
    with psycopg.connect(postgres_server(), autocommit=True) as connection:
        name = place.partition("?")[0].rpartition("/")[2]
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
    with pytest.raises(RetrievalError, match="Postgres says: "):
        store.count()
    assert store.count() == 1
