"""Many queries at once: the answers of one by one, in their order, and one clear line for what is wrong."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from search_fixtures import write_documents

from boolbert.cli.main import main
from boolbert.core.errors import RetrievalError
from boolbert.search import BoolSearcher, build_index
from boolbert.search.many import each_once

QUERIES = ["films but not about war", "books", "films or books", "books", "a film without c", "-war films"]


@pytest.fixture
def model(run_once, load_once):
    return load_once(run_once())


@pytest.fixture
def searcher(tmp_path, model):
    built = build_index(write_documents(tmp_path / "docs.jsonl"), tmp_path / "index", model, progress=False)
    return BoolSearcher(model, built)


@pytest.mark.parametrize("options", [{}, {"evidence": False}, {"read": 0, "not_weight": 0.5}])
def test_many_are_answered_as_one_by_one(searcher, monkeypatch, options):
    expected = [searcher.search(query, 4, **options) for query in QUERIES]
    for at_once in (1, 3):
        monkeypatch.setattr(BoolSearcher, "at_once", at_once)
        found = searcher.search_many(iter(QUERIES), 4, **options)
        assert found == expected
        assert [one.as_json() for one in found] == [one.as_json() for one in expected]
    assert [one.reading.text for one in found] == [one.reading.text for one in expected]
    assert searcher.search_many([]) == []


def test_they_are_answered_at_the_same_time():
    """Each waits for the other: one by one they would wait without end."""
    meeting = threading.Barrier(2, timeout=20)

    def work(text):
        if text != "first":
            meeting.wait()
        return text

    assert list(each_once(work, ["first", "second", "third"], 2)) == ["first", "second", "third"]


def test_equal_queries_are_answered_once_and_an_error_ends_the_rest():
    asked = []

    def work(text):
        asked.append(text)
        if text == "c":
            raise RetrievalError("no c")
        if text.isdecimal():
            time.sleep(0.01)
        return text.upper()

    found = each_once(work, ["a", "b", "a", "c", *map(str, range(200))], 1)
    assert [next(found) for _ in range(3)] == ["A", "B", "A"]
    with pytest.raises(RetrievalError, match="no c"):
        next(found)
    assert asked[:3] == ["a", "b", "c"]
    assert len(asked) < 100
    assert asked.count("a") == 1


@pytest.mark.parametrize(
    ("queries", "line"),
    [
        (["books", " "], "query 2: the query is empty"),
        (["books", "films", 7], "query 3: the query must be a text, got int"),
        (["books", "a OR NOT war"], "query 2: the search does not know OR NOT"),
        ("books", "queries must be"),
    ],
)
def test_an_error_says_which_query_it_is_about(searcher, queries, line):
    with pytest.raises(RetrievalError) as caught:
        searcher.search_many(queries)
    assert str(caught.value).startswith(line)


def asking(searcher, *more):
    return ["search", "--index", str(searcher.index.folder), "--model", searcher.model.name, *more]


def test_a_file_of_queries_gives_a_line_for_each(searcher, tmp_path, capsys):
    path = tmp_path / "queries.jsonl"
    path.write_text("".join(json.dumps({"query": query}) + "\n" for query in QUERIES))
    assert main(asking(searcher, QUERIES[0])) == 0  # from now on the model is cached
    capsys.readouterr()
    assert main(asking(searcher, "--queries", str(path), "--json", "-k", "3")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(QUERIES)
    for query, line in zip(QUERIES, lines, strict=True):
        assert main(asking(searcher, query, "--json", "-k", "3")) == 0
        assert json.loads(line) == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ("{", "broken JSON"),
        ('"books"', "a row must be a JSON object"),
        ('{"text": "books"}', "query"),
        ('{"query": 3}', "field 'query'"),
        ('{"query": "  "}', "the query is empty"),
        ('{"query": "a OR NOT war"}', "the search does not know OR NOT"),
    ],
)
def test_a_bad_line_is_named(searcher, tmp_path, capsys, second, problem):
    path = tmp_path / "queries.jsonl"
    path.write_text(f'{{"query": "films"}}\n{second}\n{{"query": "books"}}\n')
    assert main(asking(searcher, "--queries", str(path), "--json")) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert line.startswith(f"boolbert: error: {path}:2: ")
    assert problem in line


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--queries", "q.jsonl"], "add --json"),
        (["--queries", "q.jsonl", "--json", "books"], "give a query or --queries, not both"),
        (["--queries", "q.jsonl", "--json", "--unsure"], "--unsure is for one query"),
        (["--queries", "q.jsonl", "--json", "-k", "0"], "-k must be at least 1"),
        (["--queries", "no-such-file.jsonl", "--json"], "no-such-file.jsonl"),
    ],
)
def test_what_does_not_go_with_a_file_of_queries(more, line, capsys):
    assert main(["search", *more]) == 2
    assert line in capsys.readouterr().err


def test_without_a_query_it_is_the_usage(capsys):
    with pytest.raises(SystemExit):
        main(["search", "--json"])
    assert "QUERY" in capsys.readouterr().err


def test_threads_of_their_own_may_ask_for_many(searcher):
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: searcher.search_many(QUERIES, 4), range(2)))
    assert found[0] == found[1]
