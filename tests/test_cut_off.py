"""A first `index` that was cut off at any request to a server can be repeated: all documents are there then, and none
twice. Stores of files are killed in `faults/test_store_faults.py`."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
from fake_elasticsearch import fake_server
from faults.sweep import some_of
from store_fixtures import add_small, skip_without, small_about

from boolbert.core.errors import RetrievalError
from boolbert.retrieval.stores import copy_documents, open_store

KINDS = ("elasticsearch", "opensearch", "qdrant", "milvus")
GONE = b"the server is gone"


@contextmanager
def server(kind, folder):
    """A running server: its address, its state, and what it answers once it is gone."""
    if kind == "qdrant":
        skip_without("qdrant")
        from fake_qdrant import fake_qdrant

        with fake_qdrant() as (address, state):
            yield address, state, GONE
    elif kind == "milvus":
        skip_without("milvus")
        from fake_milvus import fake_milvus
        from grpc import StatusCode

        with fake_milvus(folder / "films.db") as (address, state):
            yield address, state, StatusCode.INVALID_ARGUMENT
    else:
        with fake_server(kind) as (address, state):
            yield address, state, GONE


@pytest.fixture
def source(tmp_path):
    made = open_store(tmp_path / "source")
    made.create(small_about(year="number"))
    add_small(made, [f"d{n}" for n in range(30)])
    made.note(replace(made.about(), complete=True))
    return made


def held(store):
    records = sorted((record.id, record.digest, record.text) for record in store.records())
    found = sorted(
        (one.record.id, one.vector.tolist(), dict(one.evidence.words))
        for one in store.fetch([id for id, *_ in records])
    )
    return store.about(), store.count(), records, found, store.held_by(["word"])


@pytest.mark.parametrize("many", [5, pytest.param(None, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("when", ["instead", "after"])
@pytest.mark.parametrize("kind", KINDS)
def test_cut_off_at_any_request(kind, when, many, source, tmp_path, opened):
    """Before the server has carried it out, or after, when its answer is lost."""
    with server(kind, tmp_path) as (address, state, gone):
        whole = opened(address, collection="whole")
        state.calls.clear()  # of what it takes to connect
        copy_documents(source, whole, progress=False)
        requests, expected = len(state.calls), held(whole)
        assert expected[1] == 30
        for place in some_of(requests, many):
            name = f"cut_{place}"
            store = opened(address, collection=name)
            state.calls.clear()
            setattr(state, when, lambda number, place=place: gone if number >= place else None)
            with pytest.raises(RetrievalError):
                copy_documents(source, store, progress=False)
            setattr(state, when, lambda number: None)
            again = opened(address, collection=name)
            copy_documents(source, again, progress=False)
            assert held(again) == expected, f"{when} at request {place} of {requests}"
