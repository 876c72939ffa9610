"""Files that are damaged, far too large, or no files: one line, or the right answer, and never less than was stored."""

import gzip
import json
import os
import shutil
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from faults.commands import Commands, Server
from store_fixtures import skip_without, write_films

from boolbert.core.errors import BoolBertError, DataError
from boolbert.data import lines
from boolbert.data.own import OwnDocuments, formats
from boolbert.retrieval.stores import About, Record, open_store

DAMAGE = {
    "empty": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "garbage": lambda file: file.write_bytes(np.random.default_rng(0).bytes(file.stat().st_size)),
    "gone": lambda file: file.unlink(),
}


def filled(place, count=50):
    store = open_store(str(place))
    vectors = np.random.default_rng(1).normal(size=(count, 4)).astype(np.float32)
    store.create(About("e" * 16, 4))
    store.add([Record(f"r{row}", f"title {row}", "text") for row in range(count)], vectors)
    store.note(About("e" * 16, 4))
    return store


def found(store):
    return [(hit.record.id, round(hit.score, 4)) for hit in store.search(np.ones((1, 4)), 100)[0]]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["faiss.index", "faiss.json"])
def test_a_damaged_faiss_index_is_made_anew(tmp_path, record, name, damage):
    skip_without("faiss")
    before = found(filled(tmp_path / "films.faiss"))
    DAMAGE[damage](tmp_path / "films.faiss" / name)
    assert found(open_store(str(tmp_path / "films.faiss"))) == before
    record("a store of FAISS", f"{name}: {damage}", 1, "made anew: the same answer")


def test_the_faiss_index_of_other_documents_is_not_used(tmp_path):
    skip_without("faiss")
    before = found(filled(tmp_path / "films.faiss"))
    found(filled(tmp_path / "more.faiss", 70))
    shutil.copy(tmp_path / "more.faiss" / "faiss.index", tmp_path / "films.faiss" / "faiss.index")
    assert found(open_store(str(tmp_path / "films.faiss"))) == before


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_milvus_store_is_told_or_answers_as_before(tmp_path, record, damage):
    """Without its newest manifest Milvus Lite goes back to an older state, with fewer documents, and says nothing."""
    skip_without("milvus")
    store = filled(tmp_path / "films.db")
    before = found(store)
    store.close()
    files = [file.relative_to(tmp_path) for file in (tmp_path / "films.db").rglob("*") if file.is_file()]
    told = 0
    for number, file in enumerate(file for file in files if (tmp_path / file).stat().st_size):
        copy = tmp_path / str(number)
        shutil.copytree(tmp_path / "films.db", copy / "films.db")
        DAMAGE[damage](copy / file)
        try:
            store = open_store(str(copy / "films.db"))
            try:
                assert found(store) == before, file
            finally:
                store.close()
        except BoolBertError:
            told += 1
    assert 1 <= told <= number + 1
    record("a store of Milvus Lite", f"each of its files: {damage}", number + 1, "one line, or the same answer")


def test_a_milvus_store_whose_documents_were_deleted_is_whole(tmp_path):
    skip_without("milvus")
    store = filled(tmp_path / "films.db")
    assert len(store.delete([f"r{row}" for row in range(45)])) == 45
    store.close()
    store = open_store(str(tmp_path / "films.db"))
    assert len(found(store)) == 5
    store.close()


def test_a_file_that_is_no_milvus_store_is_told_at_once(tmp_path):
    skip_without("milvus")
    (tmp_path / "films.db").write_bytes(b"SQLite format 3\0")
    with pytest.raises(BoolBertError, match=r"films\.db: is no store of Milvus Lite"):
        open_store(str(tmp_path / "films.db"))


@pytest.mark.parametrize("name", ["films", "films.faiss", "films.db"])
def test_two_writers_at_once(commands, model, start, record, name):
    """Both have their documents in the store at the end: the second waits, or says that it has to be repeated."""
    skip_without("milvus" if name.endswith(".db") else "faiss")
    first, second = (write_films(commands.folder / f"{part}.jsonl", 40) for part in ("first", "second"))
    second.write_text(second.read_text().replace('"tt', '"uu'))
    server = Server(start)
    others = [commands, Commands(commands.folder, server)]
    calls = [("boolbert", "index", file, "--store", name, "--model", model) for file in (first, second)]
    try:
        with ThreadPoolExecutor(2) as threads:
            done = list(threads.map(lambda one, call: one.run(*call), others, calls))
    finally:
        server.close()
    for result, call in zip(done, calls, strict=True):
        if result.status:
            assert "another process" in result.error
            commands.good(*call)
    store = open_store(str(commands.folder / name))
    assert store.count() == 80
    store.close()
    record("boolbert index --store", f"two writers at once, {name}", 1, "both have written all of theirs")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("{0}\n{0}\n", "has 100,000 fields; at most 10,000 are read"),
        ("{0},column7\n", "holds 'column7' twice where a column's name should stand"),
    ],
)
def test_a_hundred_thousand_columns(tmp_path, content, line):
    header = ",".join(f"column{number}" for number in range(100_000))
    (tmp_path / "wide.csv").write_text(content.format(header))
    with pytest.raises(DataError, match=line):
        OwnDocuments(tmp_path / "wide.csv")


@pytest.fixture
def low_limit(monkeypatch):
    """The real limit is that of 128 MiB."""
    for module in (lines, formats):
        monkeypatch.setattr(module, "LONGEST_LINE", 2000)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.txt", "a.csv.gz", "a.jsonl.gz"])
def test_a_cell_that_is_too_large(tmp_path, low_limit, name):
    text = "word " * 500
    rows = {"csv": f'title,text\na,"{text}"\n', "tsv": f"title\ttext\na\t{text}\n", "txt": f"{text}\n"}
    content = rows.get(name.split(".")[1]) or json.dumps({"title": "a", "text": text}) + "\n"
    (tmp_path / name).write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    with pytest.raises(DataError, match=r"a line of more than 2,000 bytes; expected one row per line"):
        OwnDocuments(tmp_path / name)


def test_a_cell_of_many_lines_that_is_too_large(tmp_path, low_limit):
    (tmp_path / "a.csv").write_text('title,text\na,"' + "word\n" * 500 + '"\n')
    with pytest.raises(DataError, match=r"a\.csv:2: broken CSV: field larger than field limit"):
        OwnDocuments(tmp_path / "a.csv")


@pytest.fixture(scope="module")
def bomb():
    return gzip.compress(b"a" * 40_000_000, 1)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz", "a.txt.gz", "a.json.gz"])
def test_a_gzip_bomb_fills_no_memory(tmp_path, monkeypatch, bomb, name):
    """40 MB of one letter in 200 kB."""
    monkeypatch.setattr(lines, "LONGEST_LINE", 1 << 20)
    (tmp_path / name).write_bytes(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"a line of more than 1,048,576 bytes"):
            OwnDocuments(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_an_array_that_is_too_large_for_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LARGEST_TEXT", 1000)
    rows = ",\n".join(json.dumps({"text": "word " * 10}) for _ in range(100))
    (tmp_path / "a.json").write_text(f"[\n{rows}\n]\n")
    with pytest.raises(DataError, match=r"an array of more than 1,000 letters; write a row per line"):
        OwnDocuments(tmp_path / "a.json")


def test_a_pipe_among_files_is_passed_over_and_by_itself_is_told(tmp_path):
    """Opened, it would wait for a writer for ever."""
    for name in ("a.txt", "b.md"):
        (tmp_path / name).write_text("some words about tents")
    for name in ("c.txt", "d.jsonl", "documents.jsonl"):
        os.mkfifo(tmp_path / name)
    assert len(list(OwnDocuments(tmp_path, progress=False))) == 2
    with pytest.raises(DataError, match=r"d\.jsonl: is neither a file nor a folder but a pipe or a device"):
        OwnDocuments(tmp_path / "d.jsonl")
