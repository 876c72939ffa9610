"""Milvus as a store: nothing is kept where it is searched, older collections, odd names, and errors of one line."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from store_fixtures import add_small, one_line, said, skip_without, small_about, write_films

from boolbert.cli.main import main
from boolbert.core.errors import RetrievalError
from boolbert.data.own import OwnDocuments
from boolbert.retrieval.stores import Record, index_documents, open_store
from boolbert.retrieval.stores import milvus_store as milvus
from boolbert.search import BoolSearcher

skip_without("milvus")


@pytest.fixture
def store(tmp_path, opened):
    store = opened(str(tmp_path / "films.db"))
    store.create(small_about())
    return store


@contextmanager
def served(folder):
    """The address of a server whose documents are in a folder: Milvus Lite serves the protocol of one."""
    from milvus_lite.server_manager import ServerManager

    manager = ServerManager()
    try:
        yield manager.start_and_get_uri(str(folder))
    finally:
        manager.release_all()


def files(folder):
    return {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*") if path.is_file()}


def test_nothing_is_written_where_it_is_searched(tmp_path, model, opened, monkeypatch):
    """Neither documents nor evidence; a file of Milvus Lite is not changed either."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "BOOLBERT_CACHE", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(home))
    films = OwnDocuments(write_films(tmp_path / "films.jsonl"), id="id", progress=False)
    with served(tmp_path / "server.db") as address:
        for place in (address, str(tmp_path / "films.db")):
            store = opened(place)
            index_documents(films, store, model, progress=False)
            store.close()
            before = files(tmp_path)
            store = opened(place)
            hits = BoolSearcher(model, store).search("films but not about war", 10, where="year > 1960")
            assert len(hits) == 10
            assert any(hit.reasons for hit in hits)
            assert files(tmp_path) == before
            store.close()
    assert files(home) == {}


def test_two_stores_of_one_file(tmp_path, opened, store):
    """What one adds, the other finds; closing one, twice even, leaves the other open."""
    add_small(store, ["a", "b"])
    other = opened(str(tmp_path / "films.db"))
    add_small(other, ["c"])
    assert store.count() == 3
    store.close()
    store.close()
    assert other.held_by(["word"]) == {"word": 3}


def test_two_threads_that_delete_one_document_count_it_once(store, monkeypatch):
    add_small(store, ["a", "b"])
    name = "a"
    both, look = threading.Barrier(2), store._known

    def known(*names):
        found = look(*names)
        with suppress(threading.BrokenBarrierError):  # the second one may have to wait for the first
            both.wait(1)
        return found

    monkeypatch.setattr(store, "_known", known)
    with ThreadPoolExecutor(2) as threads:
        deleted = list(threads.map(store.delete, [[name], [name]]))
    assert sorted(map(len, deleted)) == [0, 1]


def test_words_change_with_the_documents(store, opened):
    add_small(store, [f"d{n}" for n in range(50)], words=("nut", "-egg"))
    reader = opened(store.name)
    assert reader.held_by(["nut", "-egg", "egg"]) == {"nut": 50, "-egg": 50, "egg": 0}
    assert reader.statistics()[:2] == (50, 4)
    store.delete([f"d{n}" for n in range(20)])
    add_small(store, ["d30"], words=("pie", "egg", "milk"))
    reader.refresh()
    assert reader.held_by(["nut", "-egg", "egg"]) == {"nut": 29, "-egg": 29, "egg": 1}
    assert reader.statistics()[:2] == (30, pytest.approx((29 * 4 + 6) / 30))


def test_a_frequent_word_is_estimated_by_a_sample(store, monkeypatch):
    """The sample is from all over the collection; rare words are counted."""
    monkeypatch.setattr(milvus, "LENGTHS", 200)
    ids = [f"d{n}" for n in range(1000)]
    add_small(store, ids[:600], words=("many", "early"))
    add_small(store, ids[600:], words=("many",))
    add_small(store, ids[:10], words=("many", "early", "rare"))
    found = store.held_by(["many", "early", "rare", "none"])
    assert (found["many"], found["rare"], found["none"]) == (1000, 10, 0)
    assert found["early"] == pytest.approx(600, abs=120)
    assert store.statistics().mean_length == pytest.approx(3.2, abs=0.3)
    assert len({one.record.id for one in [*store.sample(30), *store.sample(30)]}) == 30


def test_each_condition_counts_alike_among_words(store):
    """A condition of one word counts as much as one of three; what is excluded finds nothing."""
    from boolbert.retrieval.stores.remote import AskedWord

    for id, words in {"one": ["a1"], "three": ["b1", "b2", "b3"], "all": ["a1", "b1", "b2", "b3"]}.items():
        add_small(store, [id, f"{id} too"], words=tuple(words))
    add_small(store, ["other", "more"], words=("z1",))
    asked = [AskedWord("a1", 0.5, 4), *(AskedWord(word, 0.1, 4) for word in ("b1", "b2", "b3"))]
    found = store.ids_by_words(asked, 10, None)
    assert {id.split()[0] for id in found[:2]} == {"all"}
    assert {id.split()[0] for id in found[2:4]} == {"one"}
    assert len(found) == 6
    assert store.ids_by_words([AskedWord("z1", -0.5, 2)], 10, None) == []
    assert store.ids_by_words([], 10, None) == []


def test_long_documents_and_odd_letters(store):
    """Texts are cut at Milvus's limit, evidence is whole; a word of 5,000 letters is one word."""
    words = [f"word{n}" for n in range(12_000)]
    long = "w" * 5000
    record = Record("odd", "ti\0tle", "te\0xt \ud800 end" + "é" * 70_000, {"tag": ("c\0d", "\ud800")})
    store.add([record], np.ones((1, 4), np.float32), [said(long, "ünï", "_", *words)])
    (found,) = store.fetch(["odd"])
    assert len(found.evidence.words) == 12_003
    assert len(found.record.text.encode()) <= milvus.LONGEST_TEXT
    assert store.digests(["odd"]) == {"odd": record.digest}
    assert store.held_by([long, "ünï", "_", "word5"]) == {long: 1, "ünï": 1, "_": 1, "word5": 1}
    assert store.statistics().mean_length == 24_006
    store.add([Record("empty", "", "")], np.ones((1, 4), np.float32), [said()])
    assert store.count() == 2


def test_what_an_older_version_has_stored_is_told(tmp_path, store, capsys):
    """Its evidence was a column that every machine copied."""
    from pymilvus import DataType, MilvusClient

    schema = MilvusClient.create_schema()
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=512)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=4)
    schema.add_field("evidence", DataType.JSON)
    client = MilvusClient(str(tmp_path / "films.db"))
    index = client.prepare_index_params()
    index.add_index("vector", metric_type="IP", index_type="FLAT")
    properties = {milvus.PROPERTY: json.dumps(asdict(small_about()))}
    client.create_collection("old", schema=schema, index_params=index, properties=properties)
    flags = ["--store", str(tmp_path / "films.db"), "--collection", "old"]
    films = str(write_films(tmp_path / "films.jsonl", 3))
    for command in (["search", "films"], ["index", films], ["index", "--remove", "a"]):
        assert main([*command, *flags]) == 2
        shown = capsys.readouterr().err.splitlines()[-1]
        assert "was stored by an older version of boolbert; index its documents again, into a new file or" in shown


def test_a_collection_of_others_is_left_alone(tmp_path, store):
    from pymilvus import MilvusClient

    client = MilvusClient(str(tmp_path / "films.db"))
    client.create_collection("mine", dimension=4)
    mine = open_store(str(tmp_path / "films.db"), "mine")
    for call in (mine.count, lambda: mine.create(small_about())):
        with pytest.raises(RetrievalError, match="'mine' was not made by boolbert; give another name with --collect"):
            call()
    mine.close()


def test_errors_are_one_line_without_the_token(tmp_path, store, capsys):
    for address in ("http://127.0.0.1:9", "http://me:secret@127.0.0.1:9", "https://me:secret@127.0.0.1:9/db"):
        with pytest.raises(RetrievalError, match=r"127\.0\.0\.1:9.*: cannot be reached: ") as error:
            milvus.MilvusStore(address, token="me:secret", wait=1)
        assert "secret" not in str(error.value)
        assert "\n" not in str(error.value)
    assert capsys.readouterr().err == ""
    search = ("search", "films", "--store")
    shown = one_line(capsys, *search, str(tmp_path / "films.db"), "--collection", "none")
    assert "has no collection 'none'; make one with: boolbert index DOCS.jsonl --store" in shown
    for name in ("my films", "1", "x" * 256, ""):
        assert main([*search, str(tmp_path / "films.db"), "--collection", name]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert "its folder does not exist" in one_line(capsys, "index", "a.csv", "--store", str(tmp_path / "no" / "a.db"))


def test_indexed_again_into_the_same_collection(tmp_path, run_once, capsys):
    """With documents added, removed, and added again; nothing is encoded twice."""
    place, films = str(tmp_path / "films.db"), str(write_films(tmp_path / "films.jsonl", 20))
    flags = ["--store", place, "--collection", "films"]

    def said_by(*words):
        capsys.readouterr()
        assert main([*words, *flags]) == 0
        return capsys.readouterr().out

    model = ("--model", str(run_once()))
    assert "20 documents (20 encoded now) with evidence" in said_by("index", films, *model)
    assert "20 documents (0 encoded now) with evidence" in said_by("index", films, *model)
    assert "1 records deleted" in said_by("index", "--remove", "tt3")
    query = ("search", "films or books about war", "-k", "99", "--json", "--where", "year < 1960")
    found = [hit["id"] for hit in json.loads(said_by(*query))["hits"]]
    assert sorted(found) == [f"tt{n}" for n in range(10) if n != 3]
    assert "20 documents (1 encoded now)" in said_by("index", films, *model)
    assert len(json.loads(said_by(*query))["hits"]) == 10
