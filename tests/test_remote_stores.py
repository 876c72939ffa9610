"""Documents in a user's database: the answers of a folder that holds all of them, from the candidates that it finds."""

import gzip
import itertools
import json

import numpy as np
import pytest
from store_fixtures import DATABASES, place_of, skip_without

from boolbert.data import embedded
from boolbert.data.own import OwnDocuments, Passages
from boolbert.retrieval.stores import FileStore, copy_documents, index_documents, open_store
from boolbert.search import BoolSearcher, build_index, load_model
from boolbert.search.calibrating import made_exclusions

pytestmark = pytest.mark.long  # it encodes hundreds of documents
FILTERS = ("kind = country", "kind != country and letters > 300", "letters <= 250 or kind in (country, nothing)")


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def model():
    return load_model(device="cpu")


@pytest.fixture(scope="module")
def queries():
    """Twenty: what documents deny, of both splits, and countries."""
    found = [lines(embedded.denials_folder(split) / f"{split}.jsonl.gz") for split in ("dev", "test")]
    found.append(lines(embedded.countries_folder() / "dev.jsonl.gz"))
    return [
        row["query"]
        for part, count in zip(found, (7, 7, 6), strict=True)
        for row in part[:: len(part) // count][:count]
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    """835 documents: more than a query has candidates."""
    parts = {split: lines(embedded.denials_folder(split) / "documents.jsonl.gz") for split in ("dev", "test")}
    parts["country"] = lines(embedded.countries_folder() / "documents.jsonl")
    rows = [
        {"id": f"{kind} {n}", "title": row["title"], "text": row["text"], "kind": kind, "letters": len(row["text"])}
        for kind, part in parts.items()
        for n, row in enumerate(part)
    ]
    place = tmp_path_factory.mktemp("all") / "folder"
    build_index(OwnDocuments(rows, id="id", progress=False), place, model, progress=False)
    return FileStore(place)


@pytest.fixture(scope="module")
def copies(tmp_path_factory, folder):
    """A function: the store of a kind, with the folder's documents; made once."""
    stores = {}

    def of_kind(kind):
        skip_without(kind)
        if kind not in stores:
            stores[kind] = open_store(place_of(kind, tmp_path_factory.mktemp(kind)))
            copy_documents(folder, stores[kind], progress=False)
        return stores[kind]

    yield of_kind
    for store in stores.values():
        store.close()


def agreement(store, folder, model, queries, where=None):
    """For each query the share of the folder's first ten that are among the store's, for the same reasons."""
    searchers = [BoolSearcher(model, one) for one in (folder, store)]
    shares, reasons = [], []
    for query in queries:
        expected, found = (
            {
                hit.id: [(why.part, why.says, why.clause) for why in hit.reasons]
                for hit in one.search(query, 10, where=where)
            }
            for one in searchers
        )
        assert len(found) == len(expected)
        both = set(found) & set(expected)
        assert [found[id] for id in both] == [expected[id] for id in both]
        reasons += [why for own in found.values() for why in own]
        shares.append(len(both) / len(expected))
    assert {why[1] for why in reasons} & {"for", "against", "denied"}
    return float(np.mean(shares))


@pytest.mark.parametrize("kind", DATABASES)
def test_the_first_ten_of_twenty_queries(kind, copies, folder, model, queries):
    assert len(queries) == 20
    share = agreement(copies(kind), folder, model, queries)
    print(f"{kind}: {share:.3f} of the first ten")
    assert share >= 0.9


@pytest.mark.parametrize(("kind", "where"), list(itertools.product(DATABASES, FILTERS)))
def test_filters_alike(kind, where, copies, folder, model, queries):
    store = copies(kind)
    assert store.count(where) == folder.count(where) > 0
    assert agreement(store, folder, model, queries[::4], where) >= 0.9


@pytest.mark.parametrize("kind", DATABASES)
def test_only_candidates_travel(kind, copies, model, queries, monkeypatch):
    store, fetched = copies(kind), []
    searcher = BoolSearcher(model, store)
    searcher.search(queries[0])
    with monkeypatch.context() as patch:
        fetch = type(store).fetch
        patch.setattr(type(store), "fetch", lambda self, ids: fetched.append(len(ids)) or fetch(self, ids))
        searcher.search("landlocked countries")
    assert 300 <= sum(fetched) < store.count()


@pytest.mark.parametrize("kind", DATABASES)
def test_word_weights_are_those_of_all_documents(kind, copies, folder):
    """Through additions and removals, which change how many documents hold a word."""
    store, evidence = copies(kind), folder.snapshot().evidence
    words = ["dessert", "country", "-gluten", "gluten", "nobody"]
    assert store.held_by(words) == {
        word: len(evidence.words.weights(word)[0]) for word in words if kind != "postgres" or word != "nobody"
    }
    statistics = store.statistics()
    lengths = np.concatenate([segment.evidence.words.lengths for segment in folder.snapshot().segments])
    assert statistics.documents == 835
    assert statistics.mean_length == pytest.approx(lengths.mean())
    assert store.unrelated() == pytest.approx(evidence.unrelated, abs=0.02)


@pytest.mark.parametrize("kind", DATABASES)
def test_a_removed_document_is_never_found(kind, tmp_path, model):
    skip_without(kind)
    store = open_store(place_of(kind, tmp_path))
    texts = [f"A hotel with a {thing} and a view of the {place}." for thing in ("pool", "bar") for place in "ABCDEF"]
    rows = [{"id": f"h{n}", "text": text} for n, text in enumerate(texts)]
    index_documents(OwnDocuments(rows, id="id", progress=False), store, model, progress=False)
    searcher = BoolSearcher(model, store)
    queries = ("hotels with a pool", "hotels without a bar", "hotels with a pool or a bar")
    gone = {searcher.search(query)[0].id for query in queries}
    assert len(store.delete(gone)) == len(gone)
    for query, evidence in itertools.product(queries, (True, False)):
        found = {hit.id for hit in searcher.search(query, 50, evidence=evidence)}
        assert found == {row["id"] for row in rows} - gone
    assert len(list(store.records())) == len(rows) - len(gone)
    assert store.held_by(["hotel"]) == {"hotel": len(rows) - len(gone)}
    store.close()


@pytest.mark.parametrize("kind", DATABASES)
def test_what_another_passage_says_counts(kind, tmp_path, model):
    """An exclusion is asked of the whole document, of which one passage is a candidate."""
    skip_without(kind)
    rows = [
        {"id": "with", "text": "A town with a long beach of white sand. " * 20 + "The metro has three lines. " * 20},
        {"id": "without", "text": "A town with a long beach of white sand. " * 20 + "Buses go to the hills. " * 20},
    ]
    documents = OwnDocuments(rows, id="id", progress=False, passages=Passages())
    store, expected = open_store(place_of(kind, tmp_path)), open_store(tmp_path / "folder")
    for one in (store, expected):
        index_documents(documents, one, model, progress=False)
    assert store.count() > 2
    query = "towns with a beach but without a metro"
    found, same = (
        [(hit.id, round(hit.score, 2)) for hit in BoolSearcher(model, one).search(query)] for one in (store, expected)
    )
    assert sorted(found) == sorted(same)
    store.close()


@pytest.mark.parametrize("kind", DATABASES)
def test_a_plain_encoder_and_calibration_read_the_database(kind, copies, folder, model):
    store = copies(kind)
    vectors, rows = BoolSearcher(model, store).documents.vectors
    assert len(rows) == 200
    assert vectors.rows(rows).shape == (200, folder.about().size)
    own, same = (made_exclusions(BoolSearcher(model, one)) for one in (store, folder))
    assert {one.query for one in own} & {one.query for one in same}
