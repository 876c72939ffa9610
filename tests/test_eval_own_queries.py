"""`boolbert eval`: an index measured on queries of one's own."""

import json

import pytest
from search_fixtures import write_documents

from boolbert.cli import main
from boolbert.core.errors import DataError
from boolbert.data.own import OwnDocuments, Passages
from boolbert.eval.own_queries import compare, read_queries
from boolbert.retrieval.index import Index, build_index
from boolbert.retrieval.models import load_model
from boolbert.search import BoolSearcher


@pytest.fixture
def index(tmp_path, run_once, load_once):
    model = load_once(run_once())
    return build_index(write_documents(tmp_path / "docs.jsonl"), tmp_path / "index", model, progress=False)


def write_csv(path, *rows):
    path.write_text("query,relevant\n" + "".join(f"{query},{relevant}\n" for query, relevant in rows), encoding="utf-8")
    return path


def test_ranks_are_those_of_the_search(tmp_path, index):
    asked = [("films or books but not about war", "Doc 0 é; doc 7 É"), ("books or war but not films", "Doc 9 é")]
    task = read_queries(write_csv(tmp_path / "mine.csv", *asked), index)
    assert [rows.tolist() for rows in task.gold] == [[0, 7], [9]]
    searcher = BoolSearcher(index.model, index)
    outcomes = compare(searcher.model, index, task)
    assert [outcome.system for outcome in outcomes] == ["with evidence", "as the model is", "operators off"]
    ways = ({}, {"evidence": False}, {"operators": []})
    for outcome, how in zip(outcomes, ways, strict=True):
        for (query, _), gold, ranks in zip(asked, task.gold, outcome.ranks, strict=True):
            found = {hit.row: hit.rank for hit in searcher.search(query, 10, **how)}
            assert ranks == sorted(found[row] for row in gold.tolist())


def test_lists_and_other_names_of_fields(tmp_path, index):
    rows = [{"question": "films", "docs": ["Doc 0 é", "Doc 1 é"]}, {"text": "books", "titles": "Doc 2 é|Doc 3 é"}]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert [rows.tolist() for rows in read_queries(path, index).gold] == [[0, 1], [2, 3]]


def test_a_title_stands_for_its_passages_and_an_id_for_its_document(tmp_path, index):
    rows = [{"sku": f"P{row}", "name": name, "text": "films about war"} for row, name in enumerate(["Boot", "Boot"])]
    rows.append({"sku": "P2", "name": "Tent", "text": "books about war " * 100})
    path = tmp_path / "shop.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    shop = OwnDocuments(path, id="sku", passages=Passages(), progress=False)
    model = load_model(index.model, device="cpu")
    built = build_index(shop, tmp_path / "shop", model, progress=False)
    asked = write_csv(tmp_path / "mine.csv", ("films", "boot"), ("films", "P1"), ("a", "Tent"), ("a", "p2"))
    assert [rows.tolist() for rows in read_queries(asked, built).gold] == [[0, 1], [1], [2, 3], [2, 3]]


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([("films", "Doc 11 é")], r"mine.csv:2: the index has no document 'Doc 11 é'; did you mean 'doc \d é'\?"),
        ([("films", "")], "mine.csv:2: field 'relevant' is empty"),
        ([("films", ";")], "mine.csv:2: field 'relevant' names no document"),
        ([], "no queries in it|no documents|empty|no rows"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, index, rows, line):
    with pytest.raises(DataError, match=line):
        read_queries(write_csv(tmp_path / "mine.csv", *rows), index)


def test_the_command(tmp_path, index, capsys):
    path = write_csv(tmp_path / "mine.csv", ("films but not about war", "Doc 0 é"), ("books", "Doc 2 é"))
    words = ["eval", str(path), "--index", str(Index(index.folder).folder)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    for name in ("2 queries", "as the model is", "operators off", "films but not about war"):
        assert name in printed
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"with evidence", "as the model is", "operators off"}
    assert len(found["as the model is"]["ranks"]) == 2


def test_the_documents_that_are_there_are_measured(tmp_path, index, run_once, capsys):
    """Those that were added count, those that were removed do not."""
    (tmp_path / "more.jsonl").write_text(json.dumps({"title": "New", "text": "films in c"}))
    folder = str(index.folder)
    assert main(["index", str(tmp_path / "more.jsonl"), "--add", "--output", folder, "--model", str(run_once())]) == 0
    assert main(["index", "--remove", "Doc 1 é", "--output", folder]) == 0
    capsys.readouterr()
    path = write_csv(tmp_path / "mine.csv", ("films but not about war", "New"))
    assert main(["eval", str(path), "--index", folder, "--json"]) == 0
    ((rank,),) = json.loads(capsys.readouterr().out)["as the model is"]["ranks"]
    hits = BoolSearcher(index=folder).search("films but not about war", 10, evidence=False)
    assert [hit.rank for hit in hits if hit.title == "New"] == [rank]
    write_csv(path, ("films", "Doc 1 é"))
    assert main(["eval", str(path), "--index", folder]) == 2
    assert "the index has no document 'Doc 1 é'" in capsys.readouterr().err
