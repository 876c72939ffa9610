"""Search with evidence: what documents say decides, and a result says why."""

import json

import pytest

from boolbert.cli.main import main
from boolbert.retrieval.document_reader import document_reader
from boolbert.retrieval.index import build_index
from boolbert.search import BoolSearcher, explain, rank
from boolbert.search.picture import write_picture

DOCUMENTS = [
    {"title": "films", "text": "It tells about war. There are books.", "year": 1990},
    {"title": "a", "text": "It has no films and no war.", "year": 1991},
    {"title": "books", "text": "It tells about a and b.", "year": 1992},
    {"title": "b", "text": "Made of c. There is war.", "year": 1993},
    {"title": "c", "text": "Films in c, but no books.", "year": 1994},
]
QUERY = "films but not about war"


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in DOCUMENTS))
    return path


@pytest.fixture
def model(run_once, load_once):
    return load_once(run_once())


@pytest.fixture
def searcher(tmp_path, documents, model):
    return BoolSearcher(model, build_index(documents, tmp_path / "index", model, progress=False))


def test_a_result_says_why(searcher):
    answer = searcher.search(QUERY, operators=["not"])
    for hit in answer:
        for reason in hit.reasons:
            assert hit.text[reason.start : reason.end] == reason.clause
            assert reason.part in QUERY
    written = [[reason["clause"] for reason in hit["reasons"]] for hit in answer.as_json()["hits"]]
    assert written == [[reason.clause for reason in hit.reasons] for hit in answer]
    assert any(written)


def test_documents_are_read_where_the_search_model_is(searcher, monkeypatch):
    asked = []
    for place in ("rank", "reasons"):
        name = f"boolbert.search.{place}.document_reader"
        monkeypatch.setattr(name, lambda device: asked.append(device) or document_reader())
    searcher.documents.device = "cuda:7"
    searcher.search(QUERY)
    assert asked == ["cuda:7", "cuda:7"]


def test_a_clause_stands_against_a_document_where_it_clearly_has_what_is_excluded():
    """ "An island republic" is no reason against an island that is no monarchy; "a French colonial past" is one."""
    former = "landlocked countries in Africa that are not former British colonies"
    searcher = BoolSearcher(progress=False)
    for query in ("island countries that are not monarchies", former):
        hits = searcher.search(query, 100, read=100)
        against = [hit for hit in hits if any(reason.says == "against" for reason in hit.reasons)]
        assert len(against) >= 10
        assert sum(bool(hit.violates) for hit in against) >= 0.9 * len(against)
        assert not any(hit.violates for hit in hits[:5])


def test_the_page_and_the_picture_show_the_clause_that_decides(searcher, tmp_path):
    explanation = explain(searcher, QUERY, operators=["not"])
    page = explanation.page()
    picture = write_picture(explanation, tmp_path / "picture.svg").read_text()
    decided = [change.hit.deciding for change in explanation.after if change.hit.deciding]
    assert len(decided) >= 2
    for reason in decided:
        assert f"{reason.label}: <q>{reason.clause}</q>" in page
        assert f"<!-- {reason.clause} -->" in picture


def test_words_that_are_denied_do_not_find_a_document(searcher):
    order = [hit.title for hit in searcher.search("war", 5)]
    assert order.index("a") > max(order.index("films"), order.index("b"))


def test_a_document_that_only_its_words_find_is_found_in_a_large_index(searcher, monkeypatch):
    everything = searcher.search("books", 1, read=0)[0].title
    for name, value in (("ALL", 0), ("DEPTH", 1), ("PART_DEPTH", 2)):
        monkeypatch.setattr(rank, name, value)
    assert searcher.search("books", 1, read=0)[0].title == everything == "books"


def test_filters_go_with_it(searcher, monkeypatch):
    for at_once in (rank.ALL, 0):
        monkeypatch.setattr(rank, "ALL", at_once)
        late = searcher.search(QUERY, where="year > 1992", read=0)
        assert {hit.title for hit in late} == {"b", "c"}
        assert all(hit.reasons for hit in late)


def test_without_operators_or_evidence_vectors_alone_rank(searcher, tmp_path, documents, model):
    bare = BoolSearcher(model, build_index(documents, tmp_path / "bare", model, progress=False, evidence=False))
    assert searcher.has_evidence
    assert not bare.has_evidence
    for options in ({"operators": []}, {"operators": ["not"], "evidence": False}):
        found, expected = (one.search(QUERY, **options) for one in (searcher, bare))
        assert [(hit.row, hit.score) for hit in found] == [(hit.row, hit.score) for hit in expected]
        assert not any(hit.reasons for hit in found)


def test_the_command_line_says_what_there_is(tmp_path, documents, model, capsys, monkeypatch):
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path / "cache"))
    index, name = str(tmp_path / "index"), ["--model", model.name]
    assert main(["index", str(documents), "--output", index, "--no-evidence", *name]) == 0
    assert "evidence" not in capsys.readouterr().out
    assert main(["search", QUERY, "--index", index]) == 0
    assert "note: ranked by the documents' vectors alone" in capsys.readouterr().err
    assert main(["index", str(documents), "--output", index, *name]) == 0
    assert "5 documents with evidence (" in capsys.readouterr().out
    assert main(["search", QUERY, "--index", index, "--operators", "not"]) == 0
    shown = capsys.readouterr()
    assert "\n   + " in shown.out
    assert "note" not in shown.err
