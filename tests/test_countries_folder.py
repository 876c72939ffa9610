"""The countries as a folder in QUEST's format, and the command that writes them."""

import pytest

from boolbert.cli import main
from boolbert.data import Quest
from boolbert.data.embedded import countries_folder
from boolbert.retrieval.countries_index import _writable_cache


def test_the_quest_reader_takes_it_with_nothing_missing():
    quest = Quest(countries_folder(), strict=True, progress=False)
    assert quest.splits == ["train", "dev", "test"]
    assert [len(rows) for rows in quest.gold("dev")] == [len(query.docs) for query in quest.queries("dev")]
    assert quest.atoms is not None


def test_command_writes_where_asked(tmp_path, capsys):
    assert main(["data", "countries", "--output", str(tmp_path / "a" / "b")]) == 0
    printed = capsys.readouterr().out
    assert "documents.jsonl: 195 rows" in printed
    assert "train.jsonl: 1,505 rows" in printed
    names = ["atoms.json", "dev.jsonl", "documents.jsonl", "test.jsonl", "train.jsonl"]
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == names
    written, here = Quest(tmp_path / "a" / "b", progress=False), Quest(progress=False)
    assert written.queries("test") == here.queries("test")
    (tmp_path / "file").write_text("")
    assert main(["data", "countries", "--output", str(tmp_path / "file")]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert "file" in error


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.warns(UserWarning, match=r"the cache cannot be written .*using a temporary folder"):
        folder = _writable_cache()
    assert folder.parent == tmp_path
    assert _writable_cache() == folder
