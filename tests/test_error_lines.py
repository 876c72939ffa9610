"""What a user is told of a mistake: one line of readable length, wherever the mistake was made."""

import sys
from importlib import import_module

import numpy as np
import pytest

from boolbert import obey, read, says
from boolbert.cli.main import main
from boolbert.core.errors import LONGEST_LINE, BoolBertError
from boolbert.core.files import write_text
from boolbert.data.own import OwnDocuments
from boolbert.retrieval.stores.where import parse_filter
from boolbert.search import build_index, explain

HALF = "a hotel \ud800 with a pool"
LONG, TYPED = "pools " * 700, "pools " * 160  # the longest that is read as search-box syntax has 1,000 letters


def embedded(texts):
    return np.ones((len(texts), 4), np.float32)


TAKE_TEXT = {
    "read": lambda _: read(HALF),
    "says: a text": lambda _: says(["a pool", HALF], "a pool"),
    "says: the condition": lambda _: says(["a pool"], HALF),
    "obey: the sample": lambda _: obey(embedded, [HALF, "b"]),
    "rerank: the query": lambda _: obey(embedded).rerank(HALF, ["a"]),
    "rerank: a text": lambda _: obey(embedded).rerank("hotels without a pool", ["a", HALF]),
    "encode_document": lambda _: obey(embedded).encode_document([HALF]),
    "encode_query": lambda _: obey(embedded).encode_query(HALF),
    "keep_clauses": lambda _: obey(embedded).keep_clauses([HALF]),
    "a filter": lambda _: parse_filter(f"genre = '{HALF}'"),
    "a model's encode_query": lambda engine: encoder_of(engine).encode_query(["a", HALF]),
    "a model's encode_query with operators": lambda engine: encoder_of(engine).encode_query(HALF, operators=["not"]),
    "a model's encode_document": lambda engine: encoder_of(engine).encode_document([HALF]),
    "a model's encode": lambda engine: encoder_of(engine).encode(HALF, prompt_name="query"),
    "a model's encode_query_parts": lambda engine: encoder_of(engine).encode_query_parts([HALF]),
    "search": lambda engine: engine.open()[0].search(HALF),
    "a search's filter": lambda engine: engine.open()[0].search("films", where=f"{HALF} = 3"),
    "explain": lambda engine: explain(engine.open()[0], HALF),
    "the page": lambda engine: engine.search(HALF),
    "a document": lambda engine: index_of(engine, {"title": "a", "text": HALF}),
    "a title": lambda engine: index_of(engine, {"title": HALF, "text": "b"}),
    "an id": lambda engine: index_of(engine, {"id": HALF, "text": "b"}),
    "a field": lambda engine: index_of(engine, {"text": "b", "genre": HALF}),
    "a field of several": lambda engine: index_of(engine, {"text": "b", "genre": ["c", HALF]}),
    "a field's name": lambda engine: index_of(engine, {"text": "b", HALF: "c"}),
}


def encoder_of(engine):
    return engine.open()[0].model.encoder


def index_of(engine, row):
    searcher = engine.open()[0]
    rows = [{**row, "number": number} for number in range(3)]
    return build_index(OwnDocuments(rows, progress=False), searcher.index.folder.parent / "new", searcher.model)


@pytest.mark.parametrize("name", TAKE_TEXT)
def test_half_a_surrogate_pair_is_refused_wherever_text_comes_in(name, engine):
    """They come from bytes that are no UTF-8, and from JSON's escape of one half; no tokenizer takes them."""
    with pytest.raises(ValueError, match="holds half a surrogate pair at character") as caught:
        TAKE_TEXT[name](engine)
    assert "\n" not in str(caught.value)
    assert "\ud800" not in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        ["search", f'films -"{TYPED}'],
        ["search", f"films site:{TYPED.replace(' ', '')}"],
        ["search", f"(films OR {TYPED}"],
        ["search", f"films \udce9 {LONG}"],
        ["search", "- " * 2000],
        ["search", "films", LONG],
        ["search", "films", "--operators", LONG],
        ["search", "films", "--where", LONG],
        ["search", "films", "--where", f"year = '{LONG}"],
        ["search", "films", "--where", f"{LONG.replace(' ', '')} = 3"],
        ["search", "films", "--index", LONG],
        ["search", "films", "--model", LONG],
        ["search", "films", "--store", LONG],
        ["search", "films", "-k", LONG],
        ["search", "films", "--not", LONG],
        ["search", "films", f"--{LONG}"],
        ["index", LONG, "--output", "x"],
        ["index", "x", "--output", LONG],
        ["explain", "films", "--html", LONG],
        ["serve", "--trusted-proxy", LONG],
        [LONG],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_an_error_line_repeats_little_of_what_was_typed(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):  # as argparse ends
        raise SystemExit(main(words))
    told = capsys.readouterr().err.strip().splitlines()
    assert "error: " in told[-1]
    assert len(told[-1]) < LONGEST_LINE + 50


def test_a_note_repeats_little_of_it_either(capsys):
    assert main(["explain", f'films OR "{TYPED}"', "-k", "1"]) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note ")]
    assert any("OR offers “films” or “pools pools" in line for line in notes)
    assert max(map(len, notes)) <= LONGEST_LINE


def test_the_middle_of_a_long_line_is_left_out():
    told = str(BoolBertError(f"the query {LONG!r} has no words to look for"))
    assert len(told) <= LONGEST_LINE
    assert told.startswith("the query 'pools pools")
    assert told.endswith("pools ' has no words to look for")


FOLDERS = {
    "index": ["index", "documents.csv", "--output"],
    "index --store": ["index", "documents.csv", "--store"],
    "demo": ["demo", "--quick", "--output"],
    "data countries": ["data", "countries", "--output"],
    "data denials": ["data", "denials", "--output"],
    "data queries": ["data", "queries", "documents.csv", "--output"],
    "upgrade": ["upgrade", "--output_dir"],
}
FILES = {
    "explain --html": ["explain", "films", "--html"],
    "explain --png": ["explain", "films", "--png"],
    "export": ["export", "run", "--output"],
}
SCRIPT_FOLDERS = {
    "eval.compare": ["--runs", "nowhere"],
    "eval.quest": ["--model", "nowhere"],
    "eval.boolquestions": ["--model", "nowhere"],
}
SCRIPT_FILES = {"eval.evidence": ["--pools", "nowhere"], "eval.exclusion": ["--data", "nowhere"]}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documents.csv").write_text("title,text\nA,a hotel\nB,another hotel\n")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "own.txt").write_text("mine")
    return tmp_path


def told_by(words, capsys):
    """The line that a command or a script ends with."""
    if (name := words[0]) in (scripts := {**SCRIPT_FOLDERS, **SCRIPT_FILES}):
        with pytest.raises(BoolBertError) as caught:
            import_module(f"boolbert.{name}").main([*scripts[name], *words[1:]])
        return str(caught.value)
    assert main(words) == 2
    return capsys.readouterr().err.strip().splitlines()[-1].removeprefix("boolbert: error: ")


@pytest.mark.parametrize("name", [*FOLDERS, *SCRIPT_FOLDERS])
@pytest.mark.parametrize("output", ["file", "file/inside", "file/deep/inside"])
def test_a_file_where_a_folder_is_to_be_written_is_one_clear_line(name, output, place, capsys):
    words = [*FOLDERS[name], output] if name in FOLDERS else [name, "--output_dir", output]
    told = told_by(words, capsys)
    assert told.endswith(f"{output}: a folder is to be written there, and file is a file; give another name")
    assert (place / "file").read_text() == "mine"


@pytest.mark.parametrize("name", [*FILES, *SCRIPT_FILES])
@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("folder", "folder: a file is to be written there, and it is a folder; give a file's name"),
        ("missing/x.png", "missing/x.png: its folder does not exist; make it first"),
        ("file/x.png", "file/x.png: its folder does not exist; make it first"),
    ],
)
def test_a_folder_where_a_file_is_to_be_written_is_one_clear_line(name, output, line, place, capsys):
    words = [*FILES[name], output] if name in FILES else [name, "--output", output]
    assert told_by(words, capsys).endswith(line)
    assert (place / "folder" / "own.txt").read_text() == "mine"


@pytest.mark.skipif(sys.platform == "win32", reason="has no named pipes")
def test_a_device_is_not_replaced_by_a_file(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BoolBertError, match="pipe: is not a regular file"):
        write_text(tmp_path / "pipe", "x")
