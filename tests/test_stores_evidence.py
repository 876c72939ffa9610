"""Evidence in stores: a folder, FAISS and Milvus Lite answer as an index that was freshly made, and say why."""

import itertools
import json
import shutil

import numpy as np
import pytest

from boolbert.cli.main import main
from boolbert.core.errors import RetrievalError
from boolbert.data.own import OwnDocuments
from boolbert.retrieval.stores import copy_documents, index_documents, open_store
from boolbert.search import BoolSearcher, build_index, rank

QUERIES = ("films about war", "films but not about war", "films or books in c", "books with a but without war or b")
FILTERS = (None, "year > 1975")
NOUNS, ENDS = ("films", "books", "war", "set", "a", "b", "c"), ("It tells about", "There is no", "Made in", "Not for")


def rows(numbers, extra=""):
    """Documents that say and deny something; no two have the same text."""
    for row in numbers:
        first, second, third = (NOUNS[row // 7**place % 7] for place in range(3))
        text = f"{first} {second} in {third}. {ENDS[row % 4]} {NOUNS[row % 5]}. There are {row} {second}{extra}."
        yield {"id": f"d{row}", "title": f"Film {row}", "text": text, "year": 1950 + row}


def documents(*parts):
    return OwnDocuments([row for part in parts for row in part], id="id", progress=False)


def write(path, documents):
    path.write_text("".join(json.dumps(row) + "\n" for row in documents))
    return str(path)


def answers(searcher, monkeypatch):
    """Titles, scores and reasons, of collections that are looked through as a whole, and of large ones."""
    found = []
    for is_large in (False, True):
        with monkeypatch.context() as patch:
            if is_large:  # deep enough that documents with equal words, whose order is the store's own, decide nothing
                for name, value in (("ALL", 0), ("DEPTH", 48), ("PART_DEPTH", 6)):
                    patch.setattr(rank, name, value)
            for query, where in itertools.product(QUERIES, FILTERS):
                hits = searcher.search(query, 10, where=where)
                found.append([(hit.title, hit.score, [vars(reason) for reason in hit.reasons]) for hit in hits])
    assert any(hit[2] for hits in found for hit in hits)
    return found


def assert_same(found, expected):
    assert [[hit[0] for hit in hits] for hits in found] == [[hit[0] for hit in hits] for hits in expected]
    for hit, other in zip(itertools.chain(*found), itertools.chain(*expected), strict=True):
        assert hit[1] == pytest.approx(other[1], abs=2e-3)  # clauses are in int8
        for reason, same in zip(hit[2], other[2], strict=True):
            assert {**reason, "confidence": pytest.approx(reason["confidence"], abs=2e-3)} == same


@pytest.fixture
def fresh(tmp_path, model, monkeypatch):
    """A function: what an index of these documents answers."""

    def answer(documents):
        folder = tmp_path / "fresh"
        shutil.rmtree(folder, ignore_errors=True)
        return answers(BoolSearcher(model, build_index(documents, folder, model, progress=False)), monkeypatch)

    return answer


def test_the_same_ten_and_the_same_reasons_as_from_an_index(place, opened, model, fresh, monkeypatch):
    store = opened(place)
    written = index_documents(documents(rows(range(50))), store, model, batch=20, progress=False)
    assert written.clauses > 100
    assert store.about().evidence
    expected = fresh(documents(rows(range(50))))
    assert_same(answers(BoolSearcher(model, store), monkeypatch), expected)
    store.close()
    assert_same(answers(BoolSearcher(model, opened(place)), monkeypatch), expected)


@pytest.mark.long
def test_after_changes_too(place, opened, model, fresh, monkeypatch):
    """Updated, deleted and added, by a store that a searcher has open: BM25's statistics change with the documents."""
    store = opened(place)
    index_documents(documents(rows(range(50))), store, model, batch=20, progress=False)
    searcher = BoolSearcher(model, store)
    searcher.search("films")
    changed = list(rows(range(0, 50, 7), " and no books"))
    index_documents(documents(changed, rows(range(50, 58))), store, model, batch=5, progress=False)
    gone = [f"d{row}" for row in range(1, 50, 4)]
    assert len(store.delete(gone)) == len(gone)
    left = {row["id"]: row for row in (*rows(range(58)), *changed) if row["id"] not in gone}
    assert_same(answers(searcher, monkeypatch), fresh(documents(left.values())))
    index_documents(documents(rows(range(1, 50, 4))), store, model, progress=False)
    left |= {row["id"]: row for row in rows(range(1, 50, 4))}
    assert_same(answers(searcher, monkeypatch), fresh(documents(left.values())))


def test_an_index_that_documents_are_added_to_keeps_its_evidence(tmp_path, model, fresh, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["index", write(tmp_path / "a.jsonl", rows(range(40))), "--output", "index", "--model", "model"]) == 0
    capsys.readouterr()
    more = write(tmp_path / "b.jsonl", rows(range(40, 50)))
    assert main(["index", more, "--add", "--output", "index"]) == 0  # with the index's own model
    assert "50 documents (10 encoded now) with evidence (" in capsys.readouterr().out
    assert main(["index", "--remove", "d3", "d45", "--output", "index"]) == 0
    assert "2 records deleted" in capsys.readouterr().out
    assert main(["index", more, "--add", "--output", "nowhere"]) == 2
    assert "nowhere holds no index yet" in capsys.readouterr().err
    kept = [row for row in range(50) if row not in (3, 45)]
    assert_same(answers(BoolSearcher(model, "index"), monkeypatch), fresh(documents(rows(kept))))


def test_an_index_is_copied_with_its_evidence(tmp_path, place, opened, model, fresh, monkeypatch, capsys):
    """Nothing is encoded; what was deleted stays away; a second copy changes nothing."""
    build_index(documents(rows(range(50))), tmp_path / "index", model, progress=False)
    source = open_store(tmp_path / "index")
    source.delete(["d3", "d40"])
    with monkeypatch.context() as patch:
        patch.setattr("boolbert.search.load_model", None)
        for _ in range(2):
            assert main(["index", str(tmp_path / "index"), "--store", place, "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["copied"] == 48
    store = opened(place)
    assert copy_documents(source, store, batch=7, progress=False).documents == 48
    assert store.about() == source.about()
    kept = [row for row in range(50) if row not in (3, 40)]
    assert_same(answers(BoolSearcher(model, store), monkeypatch), fresh(documents(rows(kept))))
    with pytest.raises(RetrievalError, match="has evidence, and the new documents have none; leave --no-evidence out"):
        copy_documents(source, store, progress=False, evidence=False)


@pytest.mark.parametrize("place", ["folder"], indirect=True)
def test_the_command_line_says_what_a_store_has(tmp_path, place, model, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    docs, query = write(tmp_path / "a.jsonl", rows(range(20))), "films but not about war"
    more = write(tmp_path / "b.jsonl", rows(range(20, 25)))
    assert main(["index", docs, "--store", place, "--model", "model", "--no-evidence"]) == 0
    shown = capsys.readouterr()
    assert "evidence" not in shown.out
    assert "without evidence" not in shown.err
    assert main(["index", more, "--store", place]) == 0
    shown = capsys.readouterr()
    assert "was made without evidence; index all its documents into a new store to have it" in shown.err
    assert "25 documents (5 encoded now), ready" in shown.out
    assert main(["search", query, "--store", place]) == 0
    shown = capsys.readouterr()
    assert "index them again into a new folder or store" in shown.err
    assert "+ " not in shown.out
    new = str(tmp_path / f"new-{place.rpartition('/')[2]}")
    assert main(["index", docs, "--store", new, "--model", "model"]) == 0
    assert "20 documents (20 encoded now) with evidence (" in capsys.readouterr().out
    assert main(["search", query, "--store", new, "--operators", "not"]) == 0
    shown = capsys.readouterr()
    assert "   + " in shown.out
    assert "note" not in shown.err
    assert main(["search", query, "--store", new, "--no-evidence", "--json"]) == 0
    assert not any(hit["reasons"] for hit in json.loads(capsys.readouterr().out)["hits"])
    assert main(["index", more, "--store", new, "--no-evidence"]) == 2
    assert "has evidence, and the new documents have none" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["evidence.json", "vectors.npy", "words/counts.npy", "words/lengths.npy", ""])
def test_damaged_evidence_is_one_line_that_names_the_remedy(tmp_path, model, name):
    index_documents(documents(rows(range(20))), open_store(tmp_path / "films"), model, progress=False)
    damaged = tmp_path / "films" / "00001" / "evidence" / name
    shutil.rmtree(damaged) if damaged.is_dir() else damaged.write_bytes(b"")
    searcher = BoolSearcher(model, open_store(tmp_path / "films"))
    with pytest.raises(
        RetrievalError, match=r"delete the store and index again, or search with --no-evidence"
    ) as error:
        searcher.search("films")
    assert "\n" not in str(error.value)
    assert len(searcher.search("films", evidence=False)) == 10
    with pytest.raises(RetrievalError, match="delete the store and index again"):  # and nothing is lost by adding
        index_documents(documents(rows(range(20, 40))), open_store(tmp_path / "films"), model, progress=False)


def test_words_of_a_store_are_scored_as_by_an_index(tmp_path, model):
    """To the last bit, although each of its segments knows a part of the documents."""
    store = open_store(tmp_path / "store")
    for part in (range(33), range(33, 45)):
        index_documents(documents(rows(part)), store, model, progress=False)
    store.delete([f"d{row}" for row in range(0, 45, 3)])
    now = store.snapshot()
    built = build_index(documents(rows(row for row in range(45) if row % 3)), tmp_path / "index", model, progress=False)
    assert len(now.segments) > 1
    for words in (["film"], ["war", "book"], ["-war", "there"], ["nobody"]):
        found = now.evidence.words.scores(words)
        assert not found[~now.live].any()
        np.testing.assert_array_equal(found[now.live], built.evidence.words.scores(words))
