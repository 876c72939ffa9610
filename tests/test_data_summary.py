"""The summary command on every format, its JSON, its exit code, and the memory that reading takes."""

import gzip
import json
import textwrap
import tracemalloc
from pathlib import Path

import boolbert
from boolbert.data import Quest
from boolbert.data.lines import write_rows
from boolbert.data.summary import main, summarise

ROOT = Path(boolbert.__file__).parent
QUERIES = [
    {"query": "A film or a book", "docs": ["Alien", "Dune"], "metadata": {"template": "_ or _", "domain": "films"}},
    {"query": "no film at all", "docs": ["Gone"], "metadata": {"template": "_ that are also _ but not _"}},
    {"query": "x", "docs": []},
]
DOCUMENTS = [{"title": title, "text": "word " * n} for title, n in [("Alien", 3), ("Dune", 9), ("Alien", 0)]]


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    write_rows(path, rows)


def test_quest_folder(tmp_path, capsys):
    write(tmp_path / "documents.jsonl", DOCUMENTS)
    write(tmp_path / "train.jsonl", QUERIES)
    write(tmp_path / "extra.jsonl", QUERIES[:1])
    write(tmp_path / "other.jsonl", [{"a": 1}])
    (tmp_path / "atoms.json.gz").write_bytes(gzip.compress(b'{"film": [0, 2]}'))
    summary = summarise(tmp_path)
    assert summary["format"] == "QUEST"
    assert summary["collections"]["documents"] == {
        "rows": 3,
        "duplicate titles": 1,
        "empty texts": 1,
        "words": {"median": 3, "95%": 9, "max": 9},
    }
    train = summary["splits"]["train"]
    assert list(summary["splits"]) == ["train", "extra"]
    assert (train["rows"], train["gold titles"], train["gold titles missing"]) == (3, 3, 1)
    assert (train["queries with all gold"], train["queries with no gold"]) == (1, 2)
    assert train["operators"] == {"and": 1, "or": 1, "not": 1, "unknown": 1}
    assert train["precision of cues, %"] == {"or": 100.0, "not": 100.0}
    assert train["recall of cues, %"] == {"and": 0.0, "or": 100.0, "not": 100.0}
    assert train["templates"] == {"_ or _": 1, "_ that are also _ but not _": 1, "unknown": 1}
    assert train["domains"] == {"unknown": 2, "films": 1}
    assert summary["atoms"] == {"sets": 1, "documents per set": {"median": 2, "95%": 2, "max": 2}}
    assert summary["other tables"] == ["other"]
    assert main([str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert f"{tmp_path}: QUEST format" in text
    assert "gold titles missing" in text
    widths = {len(line) for line in text.split("\n\n")[2].splitlines() if line[-1].isdigit() or line[-1] == "-"}
    assert len(widths) == 1  # the columns are aligned to the right
    assert main([str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [summary]


def test_broken_rows_are_listed_and_the_rest_is_counted(tmp_path, capsys):
    write(tmp_path / "documents.jsonl", DOCUMENTS[:2])
    rows = ["no JSON", json.dumps(QUERIES[0]), '{"query": 3}', json.dumps(QUERIES[1])]
    (tmp_path / "train.jsonl").write_text("\n".join(rows))
    whole = gzip.compress(json.dumps(QUERIES[0]).encode() * 50)
    (tmp_path / "dev.jsonl.gz").write_bytes(whole[:-12])
    (tmp_path / "test.jsonl").write_text("")
    (tmp_path / "more.jsonl").write_text("nothing\nof JSON\n")
    assert main([str(tmp_path)]) == 1
    text = capsys.readouterr().out
    assert "5 problems" in text
    for place in (
        "train.jsonl:1: broken JSON",
        "train.jsonl:3: field",
        "dev.jsonl.gz:1: the gzip",
        "test.jsonl: the",
        "more.jsonl:1: broken JSON",
    ):
        assert f"{tmp_path}/{place}" in text
    assert summarise(tmp_path)["splits"]["train"]["rows"] == 2


def test_boolquestions_folder(tmp_path):
    row = {"qid": 1, "question": "a or b", "question_type": "or", "negative_ctxs": []}
    for subset, gold in (("MSMARCO", "p"), ("NaturalQuestions", "n")):
        write(tmp_path / subset / "corpus.jsonl", [{"docid": gold, "doc": "text"}])
        write(tmp_path / subset / "eval.json", [{**row, "positive_ctxs": [{"passage_id": "p"}]}])
    summary = summarise(tmp_path)
    assert summary["format"] == "BoolQuestions"
    missing = {name: split["gold titles missing"] for name, split in summary["splits"].items()}
    assert missing == {"MSMARCO/eval": 0, "NaturalQuestions/eval": 1}
    assert summary["splits"]["MSMARCO/eval"]["operators"] == {"or": 1}


def test_setbert_folder(tmp_path):
    write(tmp_path / "not.jsonl", [{"G": "a but not b", "P": ["a", "a c"], "N": ["a and b"]}])
    split = summarise(tmp_path)["splits"]["not"]
    assert (split["rows"], split["operators"]) == (1, {"not": 1})


def test_the_summary_of_the_embedded_data_in_the_docs_is_current(capsys):
    main([])
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    shown, now = page.rpartition("Without a source, the embedded data:")[2], capsys.readouterr().out
    assert textwrap.dedent(shown).strip() == now.strip(), "put the output of the command at the end of docs/data.md"


def test_documents_are_read_in_less_than_twice_their_size(tmp_path):
    write(tmp_path / "quest" / "documents.jsonl", [{"title": f"d{n}", "text": f"{n} été " * 300} for n in range(3000)])
    size = (tmp_path / "quest" / "documents.jsonl").stat().st_size
    tracemalloc.start()
    Quest(tmp_path / "quest", progress=False).corpus  # noqa: B018
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.5 < peak / size < 2
