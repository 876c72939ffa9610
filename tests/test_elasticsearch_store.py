"""Elasticsearch and OpenSearch as stores, against a local server that checks every request: `fake_elasticsearch.py`."""

import json
import shutil
import ssl
import subprocess
import threading
from dataclasses import replace

import numpy as np
import pytest
from fake_elasticsearch import fake_server
from store_fixtures import one_line, write_films
from test_stores import (  # noqa: F401 - the same tests as of every other store
    FILTERS,
    filled,
    films,
    store,
    test_a_column_that_comes_later_filters_as_well,
    test_a_document_is_deleted_with_all_its_passages,
    test_a_store_that_is_not_there,
    test_an_id_that_is_there_is_replaced,
    test_an_id_that_no_store_could_find_again_is_not_there,
    test_an_odd_id_is_found_replaced_and_deleted,
    test_deleting,
    test_filters,
    test_finds_what_a_slow_search_finds,
    test_the_vectors_of_another_encoder_are_refused,
    test_what_a_store_keeps_of_itself_is_checked_when_it_is_read,
    test_what_cannot_be_is_told,
    test_what_is_stored_is_there_when_it_is_opened_again,
)
from test_stores_evidence import (  # noqa: F401
    fresh,
    test_after_changes_too,
    test_the_same_ten_and_the_same_reasons_as_from_an_index,
)
from test_stores_index import test_a_document_that_grows_into_passages_and_back  # noqa: F401

from boolbert.cli.main import main
from boolbert.core.errors import RetrievalError
from boolbert.data.own import OwnDocuments
from boolbert.retrieval.evidence import RULES, DocumentEvidence
from boolbert.retrieval.stores import About, Record, index_documents, open_store
from boolbert.search import BoolSearcher

PRODUCTS = ("elasticsearch", "opensearch")
ABOUT = About("0123456789abcdef", 4, "some/model", {"tag": "text"}, "made", evidence=True, rules=RULES)
HOSTILE = ("a.b", "a[]", 'a"b', "x'y", "x61", "{}", "ünï ⚡", "two words", ".a", "a\0b", "_id")


@pytest.fixture(params=PRODUCTS)
def server(request):
    with fake_server(request.param) as (address, state):
        yield address, state


@pytest.fixture
def place(server):
    return server[0]


@pytest.fixture(scope="module", params=PRODUCTS)
def unchanged(request, films):  # noqa: F811
    with fake_server(request.param) as (address, _):
        made = filled(open_store(address), films)
        yield made
        made.close()


def evidence(*words):
    spans, vectors = np.array([[0, 4, 0]], np.int32), np.ones((1, 4), np.int8)
    return DocumentEvidence(dict.fromkeys(words, 2), spans, vectors, np.ones(1, np.float16))


def added(store, ids, words=("word",), size=4):  # noqa: F811
    records = [Record(id, f"Title {id}", "text", {"tag": ("a",)}) for id in ids]
    store.add(records, np.ones((len(ids), size), np.float32), [evidence(*words) for _ in ids])


@pytest.fixture
def small(place, opened):
    made = opened(place)
    made.create(ABOUT)
    return made


@pytest.mark.parametrize("text", HOSTILE)
def test_fields_values_and_texts_of_any_kind(small, text):
    small.create(replace(ABOUT, fields={text: "text", f"{text} 2": "number"}))
    fields = {text: (text, "b"), f"{text} 2": 7.5}
    id = text.replace("\0", "")
    small.add([Record(id, text, text, fields)], np.ones((1, 4), np.float32), [evidence(id)])
    (found,) = small.fetch([id])
    assert found.evidence.words == {id: 2}
    kept = {name.replace("\0", "\ufffd"): value for name, value in fields.items()}
    assert found.record.fields.keys() == kept.keys() == small.about().fields.keys() - {"tag"}
    if "\0" not in text:
        quoted, number = (json.dumps(name, ensure_ascii=False) for name in (text, f"{text} 2"))
        assert small.count(f"{quoted} = {quoted} and {number} > 7") == 1
        assert small.count(f"{quoted} != {quoted} or {number} != 7.5") == 0
        assert (found.record.text, found.record.fields) == (text, fields)


def test_all_searches_of_a_query_are_one_request(server, opened, model, tmp_path):
    """A search is five requests: the mapping, lengths, how many hold a word, candidates, texts."""
    address, state = server
    films = OwnDocuments(write_films(tmp_path / "films.jsonl"), progress=False)  # noqa: F811
    made = opened(address, collection="films")
    index_documents(films, made, model, progress=False)
    searcher = BoolSearcher(model, made)
    searcher.search("films about war and books")  # and asks for the sample that calibrates cosines
    state.calls.clear()
    state.bodies.clear()
    found = searcher.search("films set in c or books but not about war", where="year > 1950")
    assert len(found) == 10
    paths = [path.removeprefix("/films/") for _, path in state.calls]
    assert sorted(paths) == ["_mapping", "_mget", "_msearch", "_search", "_search"]
    lines = [json.loads(line) for line in state.bodies[paths.index("_msearch")].splitlines()]
    kinds = ["neighbours" if "knn" in line or "knn" in line.get("query", {}) else "words" for line in lines[1::2]]
    assert kinds.count("neighbours") >= 2
    assert kinds.count("words") >= 2
    assert all("fields.year" in json.dumps(line) for line in lines[1::2])
    assert not any(line["_source"] for line in lines[1::2])  # ids alone: what two searches find travels once


def test_threads_do_not_mix_their_searches(server, opened, small):
    added(small, [f"d{n}" for n in range(20)])
    problems = []

    def search(number):
        for _ in range(10):
            groups = small.nearest_ids(np.ones((2, 4), np.float32), number, None)
            if [len(group) for group in groups] != [number, number]:
                problems.append(number)

    threads = [threading.Thread(target=search, args=(number,)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_what_a_new_index_says_of_itself(server, small):
    """The mapping of each product: a vector, texts, words by BM25, and binary fields."""
    _, state = server
    mapping = state.indexes["documents"].mapping["properties"]
    kind = {"elasticsearch": ("dense_vector", "dims"), "opensearch": ("knn_vector", "dimension")}[state.product]
    assert (mapping["vector"]["type"], mapping["vector"][kind[1]]) == (kind[0], 4)
    types = {name: mapping[name]["type"] for name in ("text", "words", "clauses", "exact", "id")}
    assert types == {"text": "text", "words": "text", "clauses": "binary", "exact": "binary", "id": "keyword"}
    assert mapping["fields"]["properties"]["tag"]["type"] == "keyword"
    added(small, ["a"])
    state.indexes["documents"].refresh()
    (written,) = state.indexes["documents"].shown.values()
    assert (written["words"], written["length"]) == (["word", "word"], 2)


def test_long_words_and_statistics(small):
    long = "w" * 50_000
    added(small, ["a", "b"], ("word", long))
    added(small, ["c"], ("word",))
    assert small.held_by(["word", long, "no"]) == {"word": 3, long: 2, "no": 0}
    before = small.statistics()
    assert (before.documents, before.mean_length) == (3, pytest.approx(10 / 3))
    added(small, ["c"], ("other",))  # as many documents, as many words
    assert small.statistics().change != before.change
    assert small.statistics().mean_length == before.mean_length
    assert small.ids_by_words(words_of(small, "other", "word"), 10, None)[0] == "c"
    assert [found.record.id for found in small.sample(2)] == [found.record.id for found in small.sample(2)]


def words_of(store, *words):  # noqa: F811
    from boolbert.retrieval.stores.remote import AskedWord

    held = store.held_by(words)
    return [AskedWord(word, 1.0, held[word]) for word in words]


def test_more_records_than_a_page(small, monkeypatch):
    monkeypatch.setattr("boolbert.retrieval.stores.elasticsearch_store._PAGE", 7)
    names = [f"d{n:02}" for n in range(30)]
    added(small, names)
    assert [record.id for record in small.records()] == list(small.ids()) == names
    assert len(small.delete(names[:15])) == 15
    assert small.count() == 15


def test_removing_asks_once_which_documents_are_there(server, small, capsys):
    address, state = server
    added(small, [f"d{n}" for n in range(20)])
    assert small.count() == 20
    state.calls.clear()
    gone, missing = [f"d{n}" for n in range(15)], [f"e{n}" for n in range(15)]
    assert main(["index", "--store", address, "--remove", *gone, *missing]) == 0
    assert [path.split("/")[-1] for _, path in state.calls].count("_search") == 1
    said = capsys.readouterr()
    assert "15 records deleted" in said.out
    assert "note: no document there has 15 of the 30 ids: e0, e1, e2, e3, e4, ..." in said.err


def test_two_who_make_the_collection_at_once(place, opened, monkeypatch):
    first, second = opened(place), opened(place)
    monkeypatch.setattr(second, "exists", iter([False, True, True]).__next__)
    monkeypatch.setattr(second, "_mapping", iter([None]).__next__)
    first.create(ABOUT)

    def real_again(*arguments):
        monkeypatch.undo()
        second.create(replace(ABOUT, fields={"more": "number"}))

    monkeypatch.setattr(second, "create", real_again)
    second._create(ABOUT)
    assert opened(place).about().fields == {"tag": "text", "more": "number"}


@pytest.mark.parametrize("product", PRODUCTS)
def test_errors_are_one_line_without_the_password(product, capsys, monkeypatch):
    search = ("search", "films", "--store")
    nowhere = f"{product}+http://me:secret@127.0.0.1:9"
    shown = one_line(capsys, *search, nowhere)
    assert f"{product}+http://me@127.0.0.1:9: cannot be reached: " in shown
    for wrong in ("://host", "+ftp://host", "+https://", "+https://me:se/secret@host:9200", "+http://host:99999"):
        assert f"expected {product}+https://user@host:9200" in one_line(capsys, *search, f"{product}{wrong}")
    with fake_server(product, "Basic bWU6cmlnaHQ=") as (address, _):  # me:right
        given = address.replace("http://", "http://me:secret@")
        assert "the server refuses the user, the password or the key" in one_line(capsys, *search, given)
        assert "the server refuses" in one_line(capsys, *search, address)
        missing = one_line(capsys, *search, address.replace("http://", "http://me:right@"), "--collection", "films")
        assert "has no collection 'films'; make one with: boolbert index DOCS.jsonl --store" in missing
        if product == "opensearch":
            monkeypatch.setenv("OPENSEARCH_PASSWORD", "right")
            assert "has no collection" in one_line(capsys, *search, address.replace("http://", "http://me@"))
    if product == "elasticsearch":
        with fake_server(product, "ApiKey right") as (address, _):
            monkeypatch.setenv("ELASTICSEARCH_API_KEY", "secret")
            assert "ELASTICSEARCH_API_KEY holds the key" in one_line(capsys, *search, address)
            monkeypatch.setenv("ELASTICSEARCH_API_KEY", "right")
            assert "has no collection" in one_line(capsys, *search, address)


@pytest.mark.parametrize("name", ["Films", "a b", "a/b", "a*", "a,b", "_a", "-a", ".a", "É", "x" * 256, "a\nb"])
def test_names_that_neither_takes(place, name):
    with pytest.raises(RetrievalError, match=r"--collection .*: (Elasticsearch|OpenSearch) takes lower-case names"):
        open_store(place, name)


@pytest.mark.parametrize("name", ["films", "ünï", "films+1", "50%", "films-2026.01"])
def test_names_that_both_take(place, opened, name):
    made = opened(place, collection=name)
    made.create(ABOUT)
    added(made, ["a"])
    assert made.count() == 1


def test_an_index_that_is_not_ours_is_left_alone(server, opened):
    address, state = server
    other = opened(address, collection="mine")
    other.create(ABOUT)
    del state.indexes["mine"].mapping["_meta"]
    before = json.dumps(state.indexes["mine"].mapping)
    made = opened(address, collection="mine")
    for call in (made.count, lambda: made.create(ABOUT), lambda: made.delete(["a"])):
        with pytest.raises(RetrievalError, match="the index 'mine' was not made by boolbert; give another name with"):
            call()
    assert json.dumps(state.indexes["mine"].mapping) == before


def test_vectors_of_another_size(server, opened, small):
    _, state = server
    with pytest.raises(RetrievalError, match="vectors must be of size 4"):
        added(small, ["a"], size=5)
    vector = state.indexes["documents"].mapping["properties"]["vector"]
    vector["dims" if state.product == "elasticsearch" else "dimension"] = 3
    with pytest.raises(RetrievalError, match="holds vectors of 3 numbers, not of 4 as when it was made"):
        opened(server[0]).about()
    with pytest.raises(RetrievalError, match=r"says: The .vector. field has 4 dimensions, not 3: it can"):
        added(small, ["a"])
    with pytest.raises(RetrievalError, match="says: the query vector has a different dimension"):
        small.search(np.ones((1, 4)), 3)


def test_a_server_that_closes_its_connections(server, small):
    """As one does after a while without requests: it is asked again."""
    added(small, ["a"])
    small._client._connections.open.sock.close()
    small._client._connections.open.sock = None
    assert small.count() == 1


@pytest.mark.skipif(shutil.which("openssl") is None, reason="NOT TESTED: HTTPS, because openssl is not installed")
def test_a_certificate_is_checked(tmp_path, monkeypatch):
    """A server's own authority is named as every program with OpenSSL takes it."""
    paths = [str(tmp_path / name) for name in ("key.pem", "cert.pem")]
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*words.split(), "-keyout", paths[0], "-out", paths[1]], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(paths[1], paths[0])
    with fake_server("elasticsearch", context=context) as (address, _):
        made = open_store(address)
        with pytest.raises(RetrievalError, match=r"cannot be reached: .* SSL_CERT_FILE names the file of your"):
            made.exists()
        monkeypatch.setenv("SSL_CERT_FILE", paths[1])
        made.create(ABOUT)
        assert made.exists()
        made.close()


def test_the_command_line(server, run_once, tmp_path, capsys):
    address, _ = server
    model, films = str(run_once()), str(write_films(tmp_path / "films.jsonl", 20))  # noqa: F811
    flags = ["--store", address, "--collection", "films"]
    assert main(["index", films, *flags, "--model", model]) == 0
    assert "20 documents (20 encoded now) with evidence" in capsys.readouterr().out
    assert main(["index", films, *flags, "--add"]) == 0
    assert "20 documents (0 encoded now)" in capsys.readouterr().out
    assert main(["search", "films but not about war", *flags, "--where", "year < 1955", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["hits"]) == 5
    assert main(["index", "--remove", "tt3", *flags]) == 0
    assert "1 records deleted" in capsys.readouterr().out
    assert main(["search", "films but not about war", *flags, "--where", "year < 1955", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["hits"]) == 4
