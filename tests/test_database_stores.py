"""What every database does as a store: whole documents or none, several writers, and fields and texts of any kind."""

import json
import threading

import numpy as np
import pytest
from store_fixtures import DATABASES, add_small, marked, place_of, said, skip_without, small_about, write_until_killed

from boolbert.data.own import OwnDocuments
from boolbert.retrieval.stores import Record, index_documents, open_store
from boolbert.search import BoolSearcher

HOSTILE = (
    *('a"; DROP TABLE films; --', "x'y", "%s", "{table}", "{}", "select", "ünï ⚡", "two words", "a.b", "a[]", 'a"b'),
    *("x61", "nested.fields[].key", "back\\slash", "not in [", "Fields"),
)


@pytest.fixture(params=marked(DATABASES))
def kind(request):
    skip_without(request.param)
    return request.param


@pytest.fixture
def place(kind, tmp_path):
    return place_of(kind, tmp_path)


@pytest.fixture
def store(place):
    store = open_store(place)
    store.create(small_about())
    yield store
    store.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", marked(["qdrant", "milvus"]), indirect=True
)  # Postgres has a test that looks into its tables
def test_killed_between_and_in_writes_each_document_is_whole(place, store):
    store.close()
    for moment in range(3):
        write_until_killed(place, 0.05 * moment)
        store = open_store(place)
        ids = [record.id for record in store.records()]
        found = store.fetch(ids)
        assert len(found) == len(set(ids)) == store.count() >= 40
        for one in found:
            assert one.evidence.words == {"word": 2, f"only{one.record.id.partition('-')[0]}": 2}
            assert len(one.vector) == 4
        assert store.held_by(["word"]) == {"word": len(found)}
        assert len(store.search(np.ones((1, 4)), 10_000)[0]) == len(found)
        store.close()


@pytest.mark.parametrize("evidence", [True, False])
def test_a_database_whose_documents_were_all_removed_has_no_results(place, evidence, load_once, run_once):
    """As a folder has none, and no error."""
    store, model = open_store(place), load_once(run_once())
    documents = OwnDocuments([{"id": "a", "text": "films"}, {"id": "b", "text": "books"}], id="id", progress=False)
    index_documents(documents, store, model, progress=False, evidence=evidence)
    searcher = BoolSearcher(model, store)
    queries = ("films", "films but not about war", "films -war", "films about war or books")
    assert all(len(searcher.search(query)) for query in queries)
    assert len(store.delete(["a", "b"])) == 2
    for one in (searcher, BoolSearcher(model, store)):
        assert [list(one.search(query)) for query in queries] == [[], [], [], []]
    store.close()


@pytest.mark.parametrize("kind", marked(["postgres", "milvus"]), indirect=True)
def test_several_writers_at_once(place):
    """They also make the collection at once, and write the same documents."""
    problems = []

    def write(number):
        try:
            store = open_store(place)
            store.create(small_about(**{f"field {number}": "number"}))
            for _ in range(3):
                add_small(store, [f"d{n}" for n in range(30)], text=f"text {number}", words=(f"w{number}", "word"))
            store.close()
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    store = open_store(place)
    assert store.count() == 30
    assert len(store.about().fields) == 7
    words = store.held_by(["word", *(f"w{number}" for number in range(6))])
    assert words["word"] == 30
    assert sum(words.values()) == 60  # each document is one writer's
    store.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_fields_values_and_texts_of_any_kind(store, text):
    store.create(small_about(**{text: "text", f"{text} 2": "number"}))
    fields = {text: (text, "b"), f"{text} 2": 7.5}
    evidence = said(text)._replace(clauses=np.array([[0, len(text), 0]], np.int32))
    store.add([Record(text, text, text, fields)], np.ones((1, 4), np.float32), [evidence])
    quoted = json.dumps(text, ensure_ascii=False)
    number = json.dumps(f"{text} 2", ensure_ascii=False)
    assert store.count(f"{quoted} = {quoted} and {number} > 7") == 1
    assert store.count(f"{quoted} != {quoted} or {number} != 7.5") == 0
    (found,) = store.fetch([text])
    assert (found.record.text, found.record.fields, found.evidence.words) == (text, fields, {text: 2})
    assert store.held_by([text]) == {text: 1}
    assert len(store.delete([text])) == 1
    assert store.count() == 0
