"""The command that measures the lexicon."""

import gzip
import json

import pytest

from boolbert.boolean.measure import Score, main, score


def row(query, template):
    return json.dumps({"query": query, "metadata": {"template": template}}) + "\n"


ROWS = (
    row("cats and dogs", "_ that are also _")
    + row("cats about dogs", "_ that are also _")
    + row("war and peace movements", "_")
    + row("cats and mice, but not dogs", "_ that are not _")
)


def test_score():
    found = [{"and"}, {"and", "not"}, set()]
    meant = [{"and"}, {"not"}, {"and"}]
    assert score(found, meant, "and") == Score(hits=1, wrong=1, missed=1)
    assert score(found, meant, "not").f1 == 1
    assert score(found, meant, "or") == (0, 0, 0)
    assert Score(0, 0, 0).precision == 0
    assert Score(3, 1, 2).precision == 0.75
    assert Score(3, 1, 2).recall == 0.6


@pytest.mark.parametrize("name", ["queries.jsonl", "queries.jsonl.gz"])
def test_command(name, tmp_path, capsys):
    path = tmp_path / name
    with gzip.open(path, "wt") if name.endswith("gz") else path.open("w") as file:
        file.write(ROWS)
    main([str(path), "--show", "and", "--missed", "5", "--wrong", "5"])
    lines = capsys.readouterr().out.splitlines()
    assert "4 queries, weak cues not counted" in lines
    assert "| and | 2 | 0.500 | 0.500 | 0.500 |" in lines
    assert "| not | 1 | 1.000 | 1.000 | 1.000 |" in lines
    assert lines[-4:] == ["  cats about dogs", "", "wrong and: 1 of 1", "  cats and mice, but not dogs"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"query": "a"}\n', "line 1: no field 'metadata'"),
        (ROWS + row("a", "_ xor _"), "line 5: unknown template '_ xor _'"),
        ("nonsense\n", "line 1: Expecting value"),
        ("[1]\n", "line 1"),
    ],
)
def test_bad_rows_are_named(text, message, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(SystemExit, match=r"^error: .*bad\.jsonl, ") as error:
        main([str(path)])
    assert message in str(error.value)


def test_match_narrows_the_queries(tmp_path, capsys):
    path = tmp_path / "queries.jsonl"
    path.write_text(ROWS)
    main([str(path), "--match", "CATS.*dogs"])
    assert "3 queries" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="error: "):
        main([str(path), "--match", "("])


def test_missing_file():
    with pytest.raises(SystemExit, match=r"error: .*nowhere"):
        main(["nowhere.jsonl"])
