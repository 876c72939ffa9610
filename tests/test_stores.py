"""Every vector store does the same: a folder, FAISS and Milvus Lite, against a slow search in plain numpy."""

import itertools
import os
import shutil
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from store_fixtures import KINDS, marked, place_of, skip_without

from boolbert.core.errors import RetrievalError
from boolbert.retrieval.stores import About, Record, open_store

FIELDS = {"year": "number", "genre": "text", "release day": "date", 'odd "name" é': "text"}
ABOUT = About("0123456789abcdef", 8, "some/model", FIELDS, "films.csv")
REPLACE = os.replace
GENRES = ["western", "drama", "science fiction", 'a "quoted" \\ one', "été", "it's"]


@pytest.fixture(scope="module")
def films():
    """60 records and their vectors. Some have no year, some several genres, some none."""
    random = np.random.default_rng(0)
    records = []
    for row in range(60):
        fields = {"year": float(1970 + row)} if row % 7 else {}
        if row % 5:
            fields["genre"] = tuple(GENRES[(row + step) % len(GENRES)] for step in range(1 + row % 2))
        if row % 3:
            fields["release day"] = float(19700101 + 10_000 * row)
        fields['odd "name" é'] = ("x",) if row % 2 else ("y",)
        records.append(Record(f"tt{row}", f"Film {row} é", f"The {row}th film.\nSecond line", fields))
    return records, random.normal(size=(60, 8)).astype(np.float32)


@pytest.fixture
def store(place, opened, films):
    return filled(opened(place), films)


def filled(store, films):
    store.create(ABOUT)
    records, vectors = films
    for start in range(0, 60, 25):  # three batches
        store.add(records[start : start + 25], vectors[start : start + 25])
    return store


@pytest.fixture(scope="module")
def unchanged_stores(tmp_path_factory, films):
    """A function that gives a store of a kind, made once: for tests that leave it as it is."""
    folder, stores = tmp_path_factory.mktemp("unchanged"), {}

    def of_kind(kind):
        if kind not in stores:
            stores[kind] = filled(open_store(place_of(kind, folder)), films)
        return stores[kind]

    yield of_kind
    for store in stores.values():
        store.close()


@pytest.fixture(params=marked(KINDS))
def unchanged(request, unchanged_stores):
    skip_without(request.param)
    return unchanged_stores(request.param)


def slow(films, queries, k, passes=lambda record: True):
    """Ids and scores by brute force; a query may have several vectors."""
    records, vectors = films
    rankings = []
    for query in queries:
        scores = (vectors @ np.atleast_2d(query).T).max(axis=1)
        rows = [row for row in np.argsort(-scores) if passes(records[row])][:k]
        rankings.append([(records[row].id, float(scores[row])) for row in rows])
    return rankings


def check(found, expected):
    assert [[hit.record.id for hit in hits] for hits in found] == [[id for id, _ in hits] for hits in expected]
    for hits, others in zip(found, expected, strict=True):
        np.testing.assert_allclose([hit.score for hit in hits], [score for _, score in others], atol=1e-5)


def test_finds_what_a_slow_search_finds(unchanged, films):
    queries = np.random.default_rng(1).normal(size=(5, 8)).astype(np.float32)
    found = unchanged.search(queries, 10)
    check(found, slow(films, queries, 10))
    records, vectors = films
    hit = found[0][0]
    row = int(hit.record.id[2:])
    assert hit.record == records[row]
    np.testing.assert_allclose(hit.vector, vectors[row], rtol=1e-6)
    assert unchanged.count() == 60
    queries = np.random.default_rng(2).normal(size=(3, 4, 8)).astype(np.float32)  # each with four alternatives
    check(unchanged.search(queries, 12), slow(films, queries, 12))


FILTERS = {
    "year > 1990": lambda f: f.get("year", 0) > 1990,
    "year <= 1990": lambda f: f.get("year", 3000) <= 1990,
    "not year > 1990": lambda f: f.get("year", 3000) <= 1990,  # who has no year passes neither
    "year = 1991 or year = 1992.0": lambda f: f.get("year") in (1991, 1992),
    "year in (1991, 1993, 2)": lambda f: f.get("year") in (1991, 1993),
    "year not in (1991, 1993)": lambda f: f.get("year") not in (None, 1991, 1993),
    "year != 1991": lambda f: f.get("year") not in (None, 1991),
    "genre = western": lambda f: "western" in f.get("genre", ()),
    "genre != western": lambda f: "genre" in f and "western" not in f["genre"],
    "not genre in (western, drama)": lambda f: "genre" in f and not {"western", "drama"} & {*f["genre"]},
    "genre = 'science fiction' and genre = 'a \"quoted\" \\\\ one'": lambda f: (
        {"science fiction", 'a "quoted" \\ one'} <= {*f.get("genre", ())}
    ),
    "genre = 'a \"quoted\" \\\\ one'": lambda f: 'a "quoted" \\ one' in f.get("genre", ()),
    'genre = "it\'s" or genre = été': lambda f: bool({"it's", "été"} & {*f.get("genre", ())}),
    "'release day' >= 1999-01-01": lambda f: f.get("release day", 0) >= 19990101,
    "not (year < 1980 or genre = drama) and 'release day' < 2020-06-01": lambda f: (
        f.get("year", 0) >= 1980 and "genre" in f and "drama" not in f["genre"] and f.get("release day", 9e9) < 20200601
    ),
    "'odd \"name\" é' = x": lambda f: f['odd "name" é'] == ("x",),
    "genre = nothing": lambda f: False,
}


@pytest.mark.parametrize("text", FILTERS)
def test_filters(unchanged, films, text):
    queries = np.random.default_rng(3).normal(size=(2, 3, 8)).astype(np.float32)
    expected = slow(films, queries, 10, lambda record: FILTERS[text](record.fields))
    check(unchanged.search(queries, 10, where=text), expected)
    assert unchanged.count(text) == sum(bool(FILTERS[text](record.fields)) for record in films[0])


def test_an_id_that_is_there_is_replaced(store, films):
    records, vectors = films
    new = [replace(records[3], text="Changed", digest=""), Record("more", "More", "New", {"year": 2050.0})]
    store.add(new, vectors[[4, 5]])
    assert store.count() == 61
    changed = store.search(vectors[[4]], 61)[0]
    assert [hit.record.text for hit in changed if hit.record.id == "tt3"] == ["Changed"]
    assert store.digests(["tt3", "more", "nothing"]) == {"tt3": new[0].digest, "more": new[1].digest}
    store.add([new[1], replace(new[1], title="Twice", digest="")], vectors[:2])  # in one call: the last one counts
    assert store.count() == 61
    assert [hit.record.title for hit in store.search(vectors[[1]], 61)[0] if hit.record.id == "more"] == ["Twice"]


@pytest.mark.parametrize("id", ["a\tb", "a\x00b", "a\x9fb", "\ud800", "", "x" * 600])
def test_an_id_that_no_store_could_find_again_is_not_there(unchanged, id):
    """It cannot come in, and asking for it is no error."""
    with pytest.raises(RetrievalError, match="a document's id must have 1 to 512 bytes, no control characters"):
        Record(id, "title", "text")
    assert unchanged.digests([id, "tt3"]).keys() == {"tt3"}
    assert unchanged.delete([id]) == {}
    assert unchanged.count() == 60


@pytest.mark.parametrize("id", ["été", "a 'b' \"c\" \\", "%_*", "\u200d", "😀", "a\u2028b", "or id != ''"])
def test_an_odd_id_is_found_replaced_and_deleted(store, films, id):
    record = Record(id, "title", "text")
    for text in ("text", "other"):
        store.add([replace(record, text=text, digest="")], films[1][:1])
        assert store.count() == 61
    assert store.digests([id]).keys() == {id}
    assert len(store.delete([id])) == 1
    assert store.count() == 60


def test_deleting(store, films):
    assert store.delete(["tt0", "tt59", "tt30", "no such"]) == {"tt0": "tt0", "tt59": "tt59", "tt30": "tt30"}
    assert store.count() == 57
    kept = [row for row in range(60) if row not in (0, 30, 59)]
    rest = [films[0][row] for row in kept], films[1][kept]
    check(store.search(films[1][:4], 57), slow(rest, films[1][:4], 57))
    assert store.delete(["tt0"]) == {}
    assert len(store.delete([record.id for record in films[0]])) == 57
    assert store.search(films[1][:2], 5) == [[], []]
    store.add(films[0][:2], films[1][:2])
    assert {hit.record.id for hit in store.search(films[1][:1], 5)[0]} == {"tt0", "tt1"}
    assert store.count() == 2


def test_a_document_is_deleted_with_all_its_passages(store, films):
    passages = [Record(f"long ({part} of 3)", "Long", f"part {part}", document="long") for part in (1, 2, 3)]
    store.add(passages, films[1][:3])
    assert set(store.digests(["long"])) == {record.id for record in passages}
    assert store.delete(["long"]) == dict.fromkeys((record.id for record in passages), "long")
    assert store.count() == 60


def test_what_is_stored_is_there_when_it_is_opened_again(store, place, opened, films):
    before = store.search(films[1][:3], 10)
    store.delete([before[0][0].record.id])
    store.close()
    again = opened(place)
    assert again.about() == replace(ABOUT, complete=False)
    assert again.count() == 59
    assert [hit.record.id for hit in again.search(films[1][:1], 9)[0]] == [hit.record.id for hit in before[0][1:]]
    assert again.describe()["documents"] == 59


def test_the_vectors_of_another_encoder_are_refused(store):
    with pytest.raises(RetrievalError, match="another document encoder, that of some/model, not of other/one"):
        store.create(replace(ABOUT, encoder="f" * 16, model="other/one"))
    with pytest.raises(RetrievalError, match="field 'year' holds numbers there, and texts here"):
        store.create(replace(ABOUT, fields={"year": "text"}))
    store.create(replace(ABOUT, fields={"country": "text"}))  # a new column is welcome
    assert store.about().fields == {**FIELDS, "country": "text"}
    assert store.search(np.ones((1, 8)), 3, where="country = France") == [[]]


def test_a_column_that_comes_later_filters_as_well(store, films):
    store.create(replace(ABOUT, fields={"minutes": "number", "country": "text"}))
    new = [Record(f"new {n}", "New", "New", {"minutes": float(n), "country": ("France",)}) for n in (90, 120)]
    store.add(new, films[1][:2])
    for where, count in {"minutes > 100": 1, "minutes != 90": 1, "country = France": 2, "year != 1": 51}.items():
        assert store.count(where) == count


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda store: store.search(np.ones((1, 7)), 3), r"must be of shape \(number, 8\)"),
        (lambda store: store.search(np.full((1, 8), np.nan), 3), "NaN or infinity"),
        (lambda store: store.search(np.ones((1, 8)), 0), "k must be a whole number of at least 1, got 0"),
        (lambda store: store.search(np.ones((1, 8)), 3, where="yaer > 1990"), "did you mean 'year'"),
        (lambda store: store.search(np.ones((1, 8)), 3, where="year > old"), "'year' holds numbers, got 'old'"),
        (lambda store: store.count("genre < drama"), "'genre' holds texts"),
        (lambda store: store.count("'release day' > 1990"), "holds dates such as 1990-12-31"),
        (lambda store: store.add([Record("a", "a", "a")], np.ones((2, 8), np.float32)), "1 documents and 2 vectors"),
        (lambda store: store.add([Record("a", "a", "a")], np.full((1, 8), np.inf, np.float32)), "NaN or infinity"),
    ],
)
def test_what_cannot_be_is_told(unchanged, call, message):
    with pytest.raises(RetrievalError, match=message):
        call(unchanged)
    assert unchanged.count() == 60


@pytest.mark.parametrize(
    ("name", "value"), [("columns", "id"), ("columns", {"id": 3}), ("fields", {"year": "film"}), ("table", None)]
)
def test_what_a_store_keeps_of_itself_is_checked_when_it_is_read(place, opened, name, value):
    made = opened(place)
    made.create(replace(ABOUT, **{name: value}))
    made.close()
    with pytest.raises(RetrievalError, match=rf"is damaged \(field '{name}' is wrong: .*\); (delete|index)"):
        opened(place).count()


def test_a_store_that_is_not_there(place, opened):
    store = opened(place)
    assert not store.exists()
    with pytest.raises(RetrievalError, match=r"boolbert index DOCS\.jsonl --store"):
        store.search(np.ones((1, 8)), 3)


@pytest.mark.parametrize("change", ["add", "delete"])
def test_a_folder_is_the_old_or_the_new_one_wherever_a_writer_dies(tmp_path, monkeypatch, films, change):
    """Before every change of a file, while documents are added, replaced and deleted, and small segments joined."""
    records, vectors = films
    first = open_store(tmp_path / "first")
    first.create(ABOUT)
    for row in range(3):
        first.add(records[row : row + 1], vectors[row : row + 1])

    def write(folder):
        if change == "delete":
            open_store(folder).delete(["tt0", "tt1", "tt2"])
        else:
            open_store(folder).add([replace(records[1], text="New", digest=""), records[9]], vectors[[1, 9]])
        return content(folder)

    def content(folder):
        found = open_store(folder).search(np.ones((1, 8)), 100)[0]
        return sorted((hit.record.id, hit.record.text, hit.vector.tobytes()) for hit in found)

    before, after = content(tmp_path / "first"), write(shutil.copytree(tmp_path / "first", tmp_path / "whole"))
    assert after != before
    for place in itertools.count(1):
        folder, calls = shutil.copytree(tmp_path / "first", tmp_path / str(place)), itertools.count(1)

        def dies(*paths, calls=calls, place=place):
            if next(calls) == place:
                raise KeyboardInterrupt
            return REPLACE(*paths)

        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr("boolbert.core.files.os.replace", dies)
            assert write(folder) == after
            break
        assert content(folder) == before
        assert write(folder) == after  # repeated
    assert place >= (2 if change == "delete" else 6)
