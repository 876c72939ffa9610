"""A part of what Elasticsearch or OpenSearch holds is never taken for the whole.

A server answers 200 where a shard is missing, fails or takes too long, and says so within its answer.
"""

import json

import numpy as np
import pytest
from fake_elasticsearch import fake_server
from store_fixtures import add_small, small_about

from boolbert.cli.main import main
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.stores import elasticsearch_store
from boolbert.retrieval.stores.remote import AskedWord

PRODUCTS = ("elasticsearch", "opensearch")
IDS = [f"d{n:02}" for n in range(12)]
ONE = np.ones((1, 4), np.float32)
# Every call that asks for documents, or how many there are.
CALLS = {
    "count": lambda store: store.count(),
    "count with a filter": lambda store: store.count("tag = a"),
    "ids": lambda store: list(store.ids()),
    "records": lambda store: list(store.records()),
    "digests": lambda store: store.digests(IDS),
    "delete": lambda store: store.delete(IDS),
    "add": lambda store: add_small(store, IDS, text="other"),
    "search": lambda store: store.search(ONE, 20),
    "nearest": lambda store: [list(ids) for ids in store.nearest_ids(ONE, 20, None)],
    "by words": lambda store: list(store.ids_by_words([AskedWord("word", 1.0, 12)], 20, None)),
    "held": lambda store: store.held_by(["word"]),
    "statistics": lambda store: store.statistics(),
    "fetch": lambda store: store.fetch(IDS),
    "passages": lambda store: store.passages(IDS),
    "sample": lambda store: store.sample(20),
    "unrelated": lambda store: store.unrelated(),
}


@pytest.fixture(params=PRODUCTS)
def server(request, opened):
    """A server with twelve documents."""
    with fake_server(request.param) as (address, state):
        store = opened(address)
        store.create(small_about())
        add_small(store, IDS)
        assert store.count() == 12
        yield address, state


@pytest.fixture
def store(server, opened):
    return opened(server[0])


@pytest.mark.parametrize("call", CALLS)
def test_a_missing_shard_is_told(server, store, call):
    """By whatever asks for documents: with a part of them `--remove` would leave some, and a count would be too low."""
    _, state = server
    CALLS[call](store)
    add_small(store, IDS)
    store.refresh()
    state.indexes["documents"].down = {"d07"}
    with pytest.raises(RetrievalError, match=r"^elastic|^opensearch") as error:
        CALLS[call](store)
    assert "\n" not in str(error.value)
    assert "d07" in state.indexes["documents"].written


def of_shards(**numbers):
    return lambda answer: answer["_shards"].update(numbers)


# What may stand in an answer that is but a part, what is told then, and the calls that such an answer may come to.
SEARCHES = ("ids", "statistics", "held", "search", "by words")
PARTS = {
    "a shard has failed": (of_shards(successful=1, failed=1), "1 of 2 shards", (*SEARCHES, "count")),
    "a shard was not asked": (of_shards(successful=1), "1 of 2 shards", (*SEARCHES, "count")),
    "no shard": (of_shards(total=0, successful=0), "0 of 0 shards", (*SEARCHES, "count")),
    "too late": (lambda answer: answer.update(timed_out=True), "it has timed out", SEARCHES),
    "ended early": (lambda answer: answer.update(terminated_early=True), "it ended early", SEARCHES),
    "a cluster": (lambda answer: answer.update(_clusters={"skipped": 1}), "1 cluster", SEARCHES),
    "fewer hits": (
        lambda answer: answer["hits"].update(hits=answer["hits"]["hits"][1:]),
        "11 of 12 hits",
        ("ids", "search", "by words"),
    ),
    "a lower bound": (lambda answer: answer["hits"]["total"].update(relation="gte"), "at least 12", ("statistics",)),
}


@pytest.mark.parametrize(("part", "call"), [(part, call) for part, (*_, calls) in PARTS.items() for call in calls])
def test_a_part_is_not_taken_for_the_whole(server, store, part, call):
    """Also where the server gives it although it was told not to."""
    _, state = server
    change, told, _ = PARTS[part]

    def changed(action, answer):
        for one in answer.get("responses", [answer] if action in ("_search", "_count") else []):
            change(one)
        return answer

    CALLS[call](store)
    store.refresh()
    state.change = changed
    with pytest.raises(RetrievalError, match=r": (Elasticsearch|OpenSearch) has looked at a part only \(") as error:
        CALLS[call](store)
    assert told in str(error.value)


def test_what_was_not_made_searchable_is_told(server, store):
    """A shard that did not refresh would hide what was written."""
    _, state = server
    state.change = lambda action, answer: (
        (answer["_shards"].update(failed=1) or answer) if action == "_refresh" else answer
    )
    with pytest.raises(RetrievalError, match="has looked at a part only"):
        store.delete(["d01"])


@pytest.mark.parametrize("change", ["fewer", "more", "another id", "a failure"])
@pytest.mark.parametrize("action", ["_bulk", "_mget", "_msearch"])
def test_each_document_has_its_answer(server, store, change, action):
    """What was written, fetched or searched together comes back one by one, in its order."""
    _, state = server
    name = {"_bulk": "items", "_mget": "docs", "_msearch": "responses"}[action]

    def changed(asked, answer):
        if asked == action:
            many = answer[name]
            first = many[0].get("index", many[0])
            if change == "fewer":
                many.pop()
            elif change == "more":
                many.append(many[0])
            elif change == "a failure":
                first.update(status=503, error={"type": "unavailable_shards_exception", "reason": "primary is gone"})
            elif action == "_msearch":
                first["hits"]["hits"] = {}
            else:
                first["_id"] = "another"
        return answer

    state.change = changed
    call = {"_bulk": "add", "_mget": "fetch", "_msearch": "search"}[action]
    told = "says: primary is gone" if change == "a failure" else "answers"
    with pytest.raises(RetrievalError, match=told):
        CALLS[call](store)


def test_a_page_that_comes_again_and_again_ends(server, store, monkeypatch):
    _, state = server
    monkeypatch.setattr(elasticsearch_store, "_PAGE", 5)
    first = []

    def changed(action, answer):
        if action == "_search":
            first.append(json.loads(json.dumps(answer)))
            return first[0]
        return answer

    state.change = changed
    with pytest.raises(RetrievalError, match="answers"):
        list(store.ids())
    assert len(first) == 2


def test_remove_deletes_all_or_says_so(server, capsys):
    address, state = server
    state.indexes["documents"].down = {"d07"}
    assert main(["index", "--store", address, "--remove", *IDS]) == 2
    assert "Search rejected due to missing shards" in capsys.readouterr().err
    state.indexes["documents"].down = set()
    assert main(["index", "--store", address, "--remove", *IDS]) == 0
    assert "12 records deleted" in capsys.readouterr().out
