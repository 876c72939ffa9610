"""Documents into stores and back out: the same ten results everywhere, resumed, refused, and one writer at a time."""

import contextlib
import itertools
import json
import multiprocessing
import re
import socket

import numpy as np
import pytest
from process_helpers import finish, free_port, index_as_rank, write_records
from store_fixtures import marked, skip_without, write_films

from boolbert.cli.main import main
from boolbert.core import progress
from boolbert.core.errors import RetrievalError
from boolbert.data import Corpus, Document
from boolbert.data.own import OwnDocuments, Passages
from boolbert.retrieval.store_names import is_database
from boolbert.retrieval.stores import Record, index_documents, open_store, writing
from boolbert.search import BoolSearcher, Index, build_index

QUERIES = [
    ("films about war", []),
    ("films but not about war", ["not"]),
    ("films or books in c", ["or"]),
    ("films or books but not about war", ["or", "not"]),
]
FILTERS = (None, "year > 1970", "genres = western and not genres = 'war film' or year in (1951, 1955)")


@pytest.fixture
def films(tmp_path):
    return OwnDocuments(write_films(tmp_path / "films.jsonl"), progress=False)


def test_a_log_says_how_far_it_has_come(tmp_path, opened, model, films, monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    capsys.readouterr()
    index_documents(films, opened(tmp_path / "films"), model)
    told = capsys.readouterr().err
    assert "\r" not in told
    count = len(list(films))
    first, *others = told.splitlines()
    assert re.match(rf"encode: \d+ of {count} documents, ", first)
    assert others == [f"evidence: {count} of {count} documents, 0 s left", f"index: {count} documents"]


def content(store):
    """All of a store: ids, texts, fields and vectors."""
    found = store.search(np.ones((1, store.about().size)), 1000)[0]
    return sorted((hit.record.id, hit.record, hit.vector.tobytes()) for hit in found)


def test_the_same_ten_results_as_from_an_index(tmp_path, place, opened, model, films):
    """With NOT, with OR (several vectors), with both, and with filters."""
    store = opened(place)
    index_documents(films, store, model, batch=25, progress=False, evidence=False)
    built = build_index(films, tmp_path / "index", model, progress=False, evidence=False)
    direct, stored = BoolSearcher(model, built), BoolSearcher(model, store)
    for (query, operators), where in itertools.product(QUERIES, FILTERS):
        expected, found = (one.search(query, 10, operators, where=where) for one in (direct, stored))
        assert [hit.title for hit in found] == [hit.title for hit in expected]
        for number in ("score", "wanted", "excluded"):
            if getattr(expected[0], number) is not None:
                values = [[getattr(hit, number) for hit in answer] for answer in (found, expected)]
                np.testing.assert_allclose(*values, atol=1e-5)
    several = set()
    for query, operators in QUERIES:
        parts = stored._scaled_parts(stored._read(query, operators, None)[1])
        several |= {len(parts.vectors) > 1}
        assert len(parts.vectors) == 1 or "or" in operators
        assert (parts.excluded is not None) == (parts.rows is not None) == ("not" in operators)
    assert several == {True, False}


def test_what_is_unchanged_is_not_encoded_again(tmp_path, place, opened, model, films):
    store = opened(place)
    assert index_documents(films, store, model, batch=20, progress=False).encoded == 60
    before = content(store)
    assert index_documents(films, store, model, batch=20, progress=False).encoded == 0
    assert content(store) == before
    lines = (tmp_path / "films.jsonl").read_text().splitlines()
    changed = {**json.loads(lines[7]), "text": "books about c", "year": 2024}
    more = {**json.loads(lines[8]), "id": "tt99", "title": "Film 99"}
    (tmp_path / "more.jsonl").write_text("\n".join(map(json.dumps, [changed, more, json.loads(lines[9])])))
    new = OwnDocuments(tmp_path / "more.jsonl", progress=False)
    written = index_documents(new, store, model, progress=False)
    assert (written.documents, written.encoded, store.count()) == (3, 2, 61)
    assert store.count("year = 2024") == 1
    assert store.about().complete


def test_passages_that_a_document_no_longer_has_are_deleted(tmp_path, place, opened, model):
    """By id. Two documents of one title and without ids do not delete each other."""
    path = tmp_path / "long.jsonl"
    store = opened(place)

    def index(rows):
        path.write_text("\n".join(map(json.dumps, rows)))
        documents = OwnDocuments(path, passages=Passages(words=20, overlap=5), progress=False)
        return index_documents(documents, store, model, batch=1, progress=False)

    long = {"id": "long", "title": "Long", "text": "films about war " * 30}
    index([long, {"id": "short", "title": "Short", "text": "books"}])
    count = store.count()
    assert count > 4
    assert len(store.digests(["long"])) == count - 1
    written = index([{**long, "text": "films about war " * 10}])
    assert written.deleted > 0
    assert store.count() == len(store.digests(["long"])) + 1 < count
    store.delete(["long", "short"])
    rows = [{"title": "Twin", "text": "films about war " * n} for n in (10, 20)]
    index(rows)
    both = store.count()
    assert index(rows).deleted == 0
    assert store.count() == both


def test_a_document_that_grows_into_passages_and_back(place, opened, model):
    store = opened(place)
    for count, records in ((2, 2), (20, 5), (2, 2)):
        rows = [{"id": "a", "text": "films about war " * count}, {"id": "b", "text": "books"}]
        documents = OwnDocuments(rows, id="id", passages=Passages(words=20, overlap=5), progress=False)
        index_documents(documents, store, model, progress=False)
        assert store.count() == len(store.digests(["a", "b"])) == records


def test_a_run_that_was_cut_off_goes_on_and_ends_equal(place, opened, model, films, monkeypatch, tmp_path):
    whole = opened(str(tmp_path / "whole"))
    index_documents(films, whole, model, batch=20, progress=False)
    store = opened(place)
    encode, calls = writing._vectors, []

    def dies(*arguments, **options):
        calls.append(len(arguments[2]))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return encode(*arguments, **options)

    monkeypatch.setattr(writing, "_vectors", dies)
    with pytest.raises(KeyboardInterrupt):
        index_documents(films, store, model, batch=20, progress=False)
    assert store.count() == 40
    assert not store.about().complete
    monkeypatch.setattr(writing, "_vectors", encode)
    assert index_documents(films, store, model, batch=20, progress=False).encoded == 20
    assert content(store) == content(whole)
    assert store.about().complete


@pytest.fixture
def start_writer(start):
    """A function that starts a process which writes records; returns it and what it tells, once it has the lock."""

    def begin(place, count, name):
        told, telling = multiprocessing.Pipe(duplex=False)
        writer = start(write_records, place, count, name, telling)
        telling.close()
        assert told.recv() == "writing"
        return writer, told

    return begin


def all_told(connection):
    """What is left to be read, to the end of the process that wrote it."""
    with contextlib.suppress(EOFError):
        while True:
            yield connection.recv()


@pytest.mark.parametrize("place", marked(["folder", "milvus"]), indirect=True)  # FAISS has the folder's lock
def test_one_writer_at_a_time_and_one_that_was_killed(place, opened, start_writer):
    """The second is told. After a kill, at any moment, the store is whole, and the lock went with its owner."""
    writer, told = start_writer(place, 10_000, "a")
    try:
        with pytest.raises(RetrievalError, match=r"another process (is writing into it|has it open); try again"):
            impatient(place)
        written = [told.recv() for _ in range(25)]
    finally:
        writer.kill()
    done = [*written, *all_told(told)][-1]
    store = opened(place)
    assert store.count() in (done + 1, done + 2)
    with store.writing():
        store.add([Record("b", "t", "x")], np.ones((1, 4)))
    assert set(store.digests(["a0", f"a{done}", "b"])) == {"a0", f"a{done}", "b"}


@pytest.mark.parametrize("place", marked(["folder", "milvus"]), indirect=True)
def test_the_second_writer_waits(place, opened, start_writer):
    """Until the first has finished, which it does in time here."""
    writer, _ = start_writer(place, 20, "a")
    store = opened(place)
    with store.writing(wait=60):
        store.add([Record("b", "t", "x")], np.ones((1, 4)))
    assert store.count() == 21
    assert finish(writer) == [0]


def impatient(place):
    if place.endswith(".db"):
        from boolbert.retrieval.stores.milvus_store import MilvusStore

        MilvusStore(place, wait=0.5)
    else:
        with open_store(place).writing(wait=0.5):
            pass


def test_a_reader_sees_what_a_writer_adds(tmp_path, opened, start_writer):
    """A folder can be read while another process writes."""
    writer, _ = start_writer(str(tmp_path / "films"), 60, "a")
    reader = opened(str(tmp_path / "films"))
    counts = [reader.count()]
    while writer.is_alive():
        counts.append(len(reader.search(np.ones((1, 4)), 100)[0]))
    assert counts == sorted(counts)
    assert reader.count() == 60
    assert len(reader.snapshot().segments) < 10  # small ones were joined


def test_an_index_takes_more_documents_as_a_store(tmp_path, model, films):
    """Of the folder that `boolbert index --output` writes."""
    build_index(films, tmp_path / "index", model, progress=False, evidence=False)
    store = open_store(tmp_path / "index")
    assert store.count() == 60
    assert index_documents(films, store, model, progress=False).encoded == 0
    assert len(store.delete(["tt3", "tt4"])) == 2
    assert index_documents(films, store, model, progress=False).encoded == 2
    assert len(store.delete(["tt5"])) == 1
    searcher = BoolSearcher(model, tmp_path / "index")  # by its name: the newest state, not the old index
    assert len(searcher.search("films", 100)) == 59
    with pytest.raises(RetrievalError, match="is a store; add documents with"):
        build_index(films, tmp_path / "index", model, progress=False, evidence=False)
    assert len(Index(tmp_path / "index")) == 60  # its files are untouched


def test_the_command_line(tmp_path, place, model, films, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = ["--store", place, *(["--collection", "films"] if is_database(place) else [])]
    assert main(["index", "films.jsonl", *flags, "--model", "model", "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert (described["documents"], described["encoded"], described["complete"]) == (60, 60, True)
    assert main(["search", "films but not about war", *flags, "-k", "3", "--json", "--where", "year < 1960"]) == 0
    hits = json.loads(capsys.readouterr().out)["hits"]
    assert len(hits) == 3
    assert all(int(hit["id"][2:]) < 10 for hit in hits)
    assert main(["index", *flags, "--delete", hits[0]["id"], "nobody"]) == 0
    said = capsys.readouterr()
    assert "1 records deleted" in said.out
    assert "note: no document there has 1 of the 2 ids: nobody" in said.err
    assert main(["search", "films but not about war", *flags, "-k", "2", "--where", "year < 1960", "--json"]) == 0
    assert [hit["id"] for hit in json.loads(capsys.readouterr().out)["hits"]] == [hit["id"] for hit in hits[1:]]
    for words, message in {
        ("search", "films", *flags, "--where", "year >"): "a value is missing",
        ("index", "films.jsonl"): "give --output DIR for an index, or --store NAME",
        ("index", "films.jsonl", "--output", "a", *flags): "give --output DIR for an index, or --store NAME",
        ("index", *flags): "give the documents to index, or --remove with ids",
        ("search", "films", *flags, "--index", "index"): "give --index or --store, not both",
        ("search", "films", "--collection", "films"): "--collection needs --store",
        ("search", "films", "--store", "films", "--collection", "a"): "--collection is for a database",
        ("search", "films", "--store", "nowhere"): "no store there; make one with: boolbert index",
    }.items():
        assert main(list(words)) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(("name", "value"), [("columns", 8), ("columns", None), ("fields", ["year"]), ("size", "4")])
def test_documents_for_a_store_that_is_damaged_are_one_line(tmp_path, model, films, name, value, capsys):
    flags = ["--store", str(tmp_path / "films"), "--model", str(tmp_path / "model")]
    assert main(["index", films.name, *flags]) == 0
    path = tmp_path / "films" / "store.json"
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "about": {**kept["about"], name: value}}))
    capsys.readouterr()
    assert main(["index", films.name, *flags, "--add"]) == 2
    said = capsys.readouterr().err
    assert f"store.json: is damaged (field '{name}' is wrong: {value!r}); delete the folder and index again" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("flag", ["output", "store"])
@pytest.mark.parametrize("evidence", [[], ["--no-evidence"]])
def test_json_has_the_columns_of_each_document(tmp_path, model, capsys, flag, evidence):
    rows = [
        {
            "id": "a",
            "title": "A",
            "text": "films about war",
            "year": 1990,
            "price": 3.5,
            "day": "1990-12-31",
            "tags": ["x", "y"],
        },
        {"id": "b", "title": "B", "text": "books", "year": 2001, "price": 4, "day": "2001-02-03T10:00", "tags": ["x"]},
    ]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    place = str(tmp_path / "made")
    made, asked = ("--output", "--index") if flag == "output" else ("--store", "--store")
    assert main(["index", str(tmp_path / "docs.jsonl"), made, place, "--model", str(tmp_path / "model")]) == 0
    for where in ([], ["--where", "year > 1980"]):
        capsys.readouterr()
        assert main(["search", "films", asked, place, "--json", *evidence, *where]) == 0
        found = {hit["title"]: hit["fields"] for hit in json.loads(capsys.readouterr().out)["hits"]}
        assert found == {
            "A": {"year": 1990, "price": 3.5, "day": "1990-12-31", "tags": ["x", "y"]},
            "B": {"year": 2001, "price": 4, "day": "2001-02-03", "tags": ["x"]},
        }


def test_a_folder_of_other_files_is_left_alone(tmp_path, model, films):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear diary")
    with pytest.raises(RetrievalError, match="holds files that are no store"):
        index_documents(films, open_store(tmp_path / "mine"), model, progress=False)


def ids(rankings):
    return [[hit.record.id for hit in hits] for hits in rankings]


def test_an_approximate_index_of_faiss_is_remembered(tmp_path, model, films):
    skip_without("faiss")
    store, exact = open_store(tmp_path / "films.faiss", faiss="HNSW8,Flat"), open_store(tmp_path / "exact")
    for one in (store, exact):
        index_documents(films, one, model, progress=False)
    # Before any search, which may be another process's.
    assert json.loads((tmp_path / "films.faiss" / "faiss.json").read_text())["factory"] == "HNSW8,Flat"
    queries = np.random.default_rng(0).normal(size=(5, store.about().size))
    for where in (None, "year > 1980"):
        found, best = (ids(one.search(queries, 5, where)) for one in (store, exact))
        assert np.mean([len({*a} & {*b}) for a, b in zip(found, best, strict=True)]) >= 4
    again, file = open_store(tmp_path / "films.faiss"), tmp_path / "films.faiss" / "faiss.index"
    written = file.stat().st_mtime_ns
    assert ids(again.search(queries, 5, "year > 1980")) == found
    assert file.stat().st_mtime_ns == written  # it is not made anew
    with pytest.raises(RetrievalError, match="'Nonsense': no index of FAISS"):
        open_store(tmp_path / "films.faiss", faiss="Nonsense").search(queries, 5)
    other = open_store(tmp_path / "other.faiss", faiss="Nonsense")
    with pytest.raises(RetrievalError, match="'Nonsense': no index of FAISS"):
        index_documents(films, other, model, progress=False)
    assert not other.exists()  # nothing was encoded
    with pytest.raises(RetrievalError, match=r"'IVF4096,Flat': cannot learn from [0-9]+ documents"):
        index_documents(films, open_store(tmp_path / "few.faiss", faiss="IVF4096,Flat"), model, progress=False)


def test_an_ivf_index_of_faiss_looks_into_more_than_one_cell(tmp_path, model, films):
    skip_without("faiss")
    store, exact = open_store(tmp_path / "films.faiss", faiss="IVF6,Flat"), open_store(tmp_path / "exact")
    for one in (store, exact):
        index_documents(films, one, model, progress=False)
    queries = np.random.default_rng(0).normal(size=(5, store.about().size))
    assert ids(store.search(queries, 20)) == ids(exact.search(queries, 20))


@pytest.mark.filterwarnings("ignore::boolbert.core.errors.DataWarning")
def test_documents_of_one_long_title_have_ids_of_their_own(tmp_path, model):
    """In an index of titles and texts alone."""
    build_index(
        Corpus(Document("a" * 600, f"war {row}") for row in range(2)), tmp_path / "index", model, progress=False
    )
    ids = [hit.record.id for hit in open_store(tmp_path / "index").search(np.ones((1, 16)), 2)[0]]
    assert len({*ids}) == 2


def test_two_processes_index_as_one(tmp_path, model, films, start):
    """Each encodes its own shards; one writes the rest and tells. Then the index is a store like any other."""
    build_index(films, tmp_path / "one", model, progress=False)
    port = free_port()
    words = ["index", "films.jsonl", "--output", "two", "--model", "model", "--device", "cpu"]
    assert finish(*(start(index_as_rank, rank, port, tmp_path, words) for rank in (0, 1))) == [0, 0]
    assert len(list((tmp_path / "two" / "vectors").glob("*.npy"))) == 4
    np.testing.assert_allclose(Index(tmp_path / "two").vectors[:], Index(tmp_path / "one").vectors[:], atol=1e-6)
    for name in ("documents.jsonl", "records.jsonl"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    assert "60 documents" in (tmp_path / "out-0.txt").read_text()
    assert (tmp_path / "out-1.txt").read_text() == ""
    assert open_store(tmp_path / "two").count("year > 1970") == 39


def test_a_server_by_its_address(tmp_path, model, films, opened, capsys, monkeypatch):
    """Milvus Lite serves the protocol of a Milvus server; two collections live side by side."""
    skip_without("milvus")
    from milvus_lite.server_manager import ServerManager

    manager = ServerManager()
    address = manager.start_and_get_uri(str(tmp_path / "server.db"))
    monkeypatch.chdir(tmp_path)
    try:
        flags = ["--store", address, "--collection", "films"]
        assert main(["index", "films.jsonl", *flags, "--model", "model"]) == 0
        assert f"boolbert search QUERY --store {address} --collection films" in capsys.readouterr().out
        assert main(["search", "films but not about war", *flags, "-k", "4", "--where", "year > 1990", "--json"]) == 0
        found = [hit["id"] for hit in json.loads(capsys.readouterr().out)["hits"]]
        exact = opened(str(tmp_path / "exact"))
        index_documents(films, exact, model, progress=False)
        direct = BoolSearcher(model, exact).search("films but not about war", 4, where="year > 1990")
        assert found == [hit.id for hit in direct]
        assert main(["explain", "films but not about war", *flags, "-k", "3"]) == 0
        assert "results are in both lists" in capsys.readouterr().out
        assert main(["search", "films", "--store", address]) == 2
        assert "has no collection 'documents'; make one with: boolbert index" in capsys.readouterr().err
        assert main(["search", "films", "--store", address, "--collection", "my films"]) == 2
        assert "Milvus takes letters, digits and _" in capsys.readouterr().err
    finally:
        manager.release_all()


def test_a_server_that_is_not_there_is_one_line(capsys):
    skip_without("milvus")
    from boolbert.retrieval.stores.milvus_store import MilvusStore

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(RetrievalError, match=r"http://127\.0\.0\.1:\d+: cannot be reached"):
            MilvusStore(f"http://127.0.0.1:{free.getsockname()[1]}", wait=1)
    assert capsys.readouterr().err == ""


def test_documents_that_are_added_are_read_as_the_first_ones_were(tmp_path, capsys, run_once):
    """Their ids and sets; an index that was made by --output, and a store."""
    rows = [
        (f"c{row}", f"Course {row}", f"An evening course, number {row}.", ("York", "Leeds")[row % 2])
        for row in range(20)
    ]
    first = "".join(f"{code},{title},{text!r},{city}\n" for code, title, text, city in rows).replace("'", '"')
    (tmp_path / "first.csv").write_text(f"code,title,text,city\n{first}")
    (tmp_path / "more.csv").write_text("code,title,text,city\nc3,Course 3,An old one.,York\nc77,Course 77,Bees.,York\n")
    for flag, name in (("--output", "index"), ("--store", "store")):
        place = [flag, str(tmp_path / name), "--model", str(run_once())]
        assert main(["index", str(tmp_path / "first.csv"), "--id", "code", "--atoms", "city", *place]) == 0
        assert main(["index", str(tmp_path / "more.csv"), "--add", *place]) == 0
        store = open_store(tmp_path / name)
        records = {record.id: record.text for record in store.records()}
        assert len(records) == 21
        assert records["c3"] == "Course 3 (city: York). An old one."
        (tmp_path / "other.csv").write_text("name,text,city\nBees,About bees.,York\n")
        assert main(["index", str(tmp_path / "other.csv"), "--add", *place]) == 2
        assert "there is no field 'code' for --id" in capsys.readouterr().err


def test_an_address_of_no_known_store_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs.csv").write_text("title,text\nBees,About bees.\n")
    assert main(["index", "docs.csv", "--store", "sqlite:///me:secret@host/films"]) == 2
    assert "no such kind of store; addresses begin with postgresql://" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["docs.csv"]
