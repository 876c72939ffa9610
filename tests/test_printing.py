"""What is printed, drawn and written for others: text from data stays text, on any terminal and in any picture."""

import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from fuzz.strategies import HARMFUL
from matplotlib.figure import Figure
from search_fixtures import QUERY

from boolbert.cli import main
from boolbert.cli.show import show_answer, show_explanation
from boolbert.core import progress
from boolbert.core.errors import BoolBertError
from boolbert.core.tables import aligned
from boolbert.core.terminal import print_json, printable
from boolbert.data import Corpus, Document, Gold
from boolbert.data.tasks import Question, Task, quest_task
from boolbert.eval.results import document_id, folder_names, write_qrels
from boolbert.eval.results import write_run as write_trec
from boolbert.search import BoolSearcher, build_index, explain
from boolbert.search.answer import Answer, Hit
from boolbert.search.picture import draw, write_picture
from boolbert.search.query_reader import as_it_is

ESCAPES = "\x1b[31m\x1b]0;owned\x07\u202e\u2066\x9b2J\x00\b\r\n\u2028"


def is_safe(text):
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("text", [*HARMFUL, ESCAPES])
def test_printable_is_one_line_that_a_terminal_shows(text):
    shown = printable(text)
    assert shown.replace("\u200d", "").isprintable()
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown


def test_letters_of_every_alphabet_stay():
    for text in ("Côte d’Ivoire", "中国", "भारत", "ایران می‌شود", "👩‍👩‍👧", "a  b"):
        assert printable(text) == text


@pytest.fixture
def searcher(tmp_path, run_once, load_once):
    model = load_once(run_once())
    docs = tmp_path / "docs.jsonl"
    rows = [{"title": f"{ESCAPES}{row}", "text": f"films {ESCAPES}"} for row in range(4)]
    docs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return BoolSearcher(model, build_index(docs, tmp_path / "index", model, progress=False))


def test_titles_texts_and_queries_cannot_command_a_terminal(searcher, tmp_path, capsys):
    query = f"films {ESCAPES} but not war"
    assert is_safe(show_answer(searcher.search(query, 4), colour=False, width=200))
    assert is_safe(show_explanation(explain(searcher, query, 4, ["not"]), colour=False))
    for arguments in (["search", query], ["search", query, "--json"], ["explain", query], ["explain", query, "--json"]):
        assert main([*arguments, "--index", str(tmp_path / "index")]) == 0
        shown = capsys.readouterr()
        assert is_safe(shown.out)
        assert is_safe(shown.err)
    print_json(searcher.search(query, 4).as_json())
    assert json.loads(capsys.readouterr().out)["query"] == query


def test_tables_cannot_either():
    assert is_safe(aligned([f"a{ESCAPES}", "b"], [[f"{ESCAPES}x", "1"]]))


@pytest.mark.parametrize("name", ["templates", "field", "domain", "table"])
def test_field_names_and_values_of_data_cannot_either(tmp_path, capsys, name):
    row = {"query": "films", "docs": ["a"], "metadata": {"template": "_", "domain": ESCAPES}}
    if name == "field":
        row = {ESCAPES: 1}
    if name == "templates":
        row["metadata"]["template"] = ESCAPES
    (tmp_path / ("train.jsonl" if name != "table" else "tra\x1b[31min.jsonl")).write_text(json.dumps(row) + "\n")
    for flags in ([], ["--json"]):
        assert main(["data", "summary", str(tmp_path), *flags]) in (0, 1, 2)
        shown = capsys.readouterr()
        assert is_safe(shown.out + shown.err)


@pytest.mark.parametrize(
    "titles", [["a", "bc"], ["a"], ["中"], ["x" * 5000, "a"], ["a b c d e f g h i j k l m n o p q r s"]]
)
@pytest.mark.parametrize("width", [10, 40, 100])
def test_titles_of_any_length(titles, width):
    hits = tuple(Hit(rank, 0.5, rank, title, "text " * 50, 0.5) for rank, title in enumerate(titles, start=1))
    lines = show_answer(Answer(as_it_is("q"), hits, None), colour=False, width=width).splitlines()
    assert len(lines) == 3 + len(titles)
    for title, line in zip(titles, lines[3:], strict=True):
        assert title[:2] in line
        assert len(line) <= max(width, 60)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_terminal_of_any_encoding(searcher, tmp_path, monkeypatch, encoding, flags):
    query = "films as well as Côte but not war ▲ −"
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert main(["explain", query, "--index", str(tmp_path / "index"), "--operators", "not", *flags]) == 0
    text = written.getvalue().decode(encoding)
    assert is_safe(text)
    if flags:
        assert json.loads(text)["query"] == query
    else:
        assert re.search(r" − \d\.\d" if encoding == "utf-8" else r" - \d\.\d", text)


def test_dollars_are_no_mathematics(searcher, tmp_path):
    found = explain(searcher, "films under $5 but not over $10 $\\frac{1}{2}$ $x^", 2, ["not"])
    figure = draw(found)
    texts = {text.get_text(): text for text in figure.axes[0].texts}
    assert "$" in texts
    assert not any(text.get_parse_math() for text in texts.values())
    write_picture(found, tmp_path / "p.png")


@pytest.mark.parametrize(
    "query", ["films but not about war " + "and so on " * 400, "films not " + "x" * 4900, "not " + "a-" * 2400]
)
def test_pictures_and_pages_of_very_long_queries(searcher, tmp_path, query):
    found = explain(searcher, query, 2, ["not"])
    picture = write_picture(found, tmp_path / "p.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 2_000_000
    assert is_safe(show_explanation(found, colour=False))


def test_a_picture_is_whole_or_not_there(searcher, tmp_path, monkeypatch):
    def fails(self, path, **options):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fails)
    before = set(tmp_path.iterdir())
    with pytest.raises(OSError, match=r"p\.png: cannot be written: the disk is full"):
        write_picture(explain(searcher, QUERY, 2, ["not"]), tmp_path / "p.png")
    assert set(tmp_path.iterdir()) == before


def test_systems_whose_names_differ_in_signs_only_have_folders_of_their_own():
    names = ["run é", "run è", "Run É", "日本", "中国", "a b", "a-b", "a_b", "A B"]
    names += ["vectors", "pictures", "BM25", "..", "/"]
    folders = folder_names(names)
    assert len(set(folders.values())) == len(names)
    assert folders["BM25"] == "12-bm25"
    for folder in folders.values():
        assert folder.strip(".")
        assert set(folder) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-")
        assert folder not in ("vectors", "pictures")


def test_identifiers_in_trec_files(tmp_path):
    """Two documents never share an identifier, and every line has its columns."""
    titles = ["a b", "a\u2028b", "a\tb", "a%20b", "a#1", "a", "a", "a\x85b", "a\x00b", " ", "中 国"]
    with pytest.warns(UserWarning, match="repeats"):
        corpus = Corpus([Document(title, "") for title in titles])
    ids = [document_id(corpus, row) for row in range(len(titles))]
    assert len(set(ids)) == len(titles)
    assert [unquote(name.partition("#")[0]) for name in ids] == titles

    question = Question("q 1\u2028", "text")
    task = Task("name", "dev", corpus, [question], Gold([list(range(len(titles)))], len(titles)))
    rows = np.arange(len(titles))[None]
    write_trec(tmp_path / "run", task, rows.astype(np.float32), rows, "tag x")
    write_qrels(tmp_path / "qrels", task)
    for name, columns in (("run", 6), ("qrels", 4)):
        lines = (tmp_path / name).read_text(encoding="utf-8").splitlines()  # which splits at U+2028 too
        assert [len(line.split()) for line in lines] == [columns] * len(titles)


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one(limit):
    with pytest.raises(BoolBertError, match=f"the limit must be at least 1 query, got {limit}"):
        quest_task(None, "dev", limit, progress=False)


def test_without_a_terminal_progress_is_a_line_after_two_seconds_and_every_ten(monkeypatch, capsys):
    seconds = iter([0.0, 1.0, 2.0, 11.0, 12.0, 13.0, 0.0, 3.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    with progress.shown_progress("encode", 2000, "document", done=1000) as advance:
        for _ in range(5):
            advance(100)
    with progress.shown_progress("index", None, "document") as advance:
        advance(8)
    assert capsys.readouterr().err.splitlines() == [
        "encode: 1,200 of 2,000 documents, 8 s left",
        "encode: 1,400 of 2,000 documents, 18 s left",
        "index: 8 documents",
    ]
    with progress.shown_progress("encode", 2000, "document", shown=False) as advance:
        advance(1)
    assert capsys.readouterr().err == ""


def test_what_cannot_be_counted_is_told_at_once_and_every_ten_seconds(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.02)
    shown = ""
    with progress.shown_step("Opening the model"):
        assert capsys.readouterr().err == "Opening the model\n"
        while shown.count("\n") < 2:
            shown += capsys.readouterr().err
            time.sleep(0.01)
    assert set(shown.splitlines()) == {"Opening the model: 0 s"}
    with progress.shown_step("Opening the model", shown=False):
        assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="NOT TESTED: a full output, because there is no /dev/full")
@pytest.mark.parametrize(
    ("words", "buffered"), [("search --help", True), ("data summary", True), ("data summary", False)]
)
def test_an_output_that_is_full_is_one_line(words, buffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    command = [sys.executable, "-m", "boolbert.cli", *words.split()]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    assert done.stderr == "boolbert: error: standard output cannot be written: No space left on device\n"
    assert done.returncode == 2
