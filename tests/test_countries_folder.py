"""The data folder: in QUEST's format, made once, whole or not at all, the same everywhere."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from boolbert.data.countries import (
    countries_folder,
    country_atoms,
    country_documents,
    country_queries,
    folder,
)
from boolbert.data.quest import Quest


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run(*arguments: str, **environment: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "boolbert.cli", "data", "countries", *arguments]
    env = {**os.environ, **environment}
    return subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path))


def test_files_hold_the_rows():
    made = countries_folder()
    assert sorted(path.name for path in made.iterdir()) == sorted(folder.FILES)
    assert lines(made / "documents.jsonl") == country_documents()
    for split in ("train", "dev", "test"):
        assert lines(made / f"{split}.jsonl") == country_queries(split)
    assert json.loads((made / "atoms.json").read_text()) == country_atoms()
    titles = {row["title"] for row in country_documents()}
    assert all(titles.issuperset(row["docs"]) for row in lines(made / "test.jsonl"))


def test_the_quest_reader_takes_it_with_nothing_missing():
    quest = Quest(countries_folder(), strict=True, progress=False)
    assert quest.splits == ["train", "dev", "test"]
    assert [len(rows) for rows in quest.gold("dev")] == [len(row["docs"]) for row in country_queries("dev")]
    assert quest.atoms is not None
    assert {key: rows.tolist() for key, rows in quest.atoms.items()} == country_atoms()


def test_it_is_made_once(tmp_path, monkeypatch):
    made = countries_folder()
    monkeypatch.setattr(folder, "write_countries", lambda _: pytest.fail("written again"))
    assert countries_folder() == made
    assert [path.name for path in tmp_path.iterdir()] == [made.name]


def test_an_incomplete_folder_is_made_again():
    made = countries_folder()
    (made / "dev.jsonl").write_text("")
    assert countries_folder() == made
    assert len(lines(made / "dev.jsonl")) == 210


def test_where_the_cache_is(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path / "chosen"))
    assert countries_folder().parent == tmp_path / "chosen"
    monkeypatch.delenv("BOOLBERT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert countries_folder().parent == tmp_path / "xdg" / "boolbert"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert countries_folder().parent == tmp_path / "home" / ".cache" / "boolbert"


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.warns(UserWarning, match=r"the cache cannot be written .*using a temporary folder"):
        made = countries_folder()
    assert len(lines(made / "documents.jsonl")) == 195
    assert countries_folder() == made


def test_two_processes_at_once_make_the_same_folder(tmp_path):
    """Different hash seeds, one cache: both succeed, one folder is left, and it equals the one made here."""
    start = time.perf_counter()
    processes = [run(BOOLBERT_CACHE=str(tmp_path / "cache"), PYTHONHASHSEED=seed) for seed in ("1", "2")]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert time.perf_counter() - start < 30
    (made,) = (tmp_path / "cache").iterdir()
    here = countries_folder()
    assert made.name == here.name
    for name in folder.FILES:
        assert (made / name).read_bytes() == (here / name).read_bytes()


def test_command_writes_where_asked(tmp_path):
    process = run("--output", str(tmp_path / "a" / "b"), PYTHONHASHSEED="3")
    output, _ = process.communicate(timeout=60)
    assert "195 documents, 1,505 train, 210 dev, 301 test queries" in output
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == sorted(folder.FILES)
    (tmp_path / "file").write_text("")
    process = run("--output", str(tmp_path / "file"))
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2
    assert len(error.splitlines()) == 1
    assert "file" in error


def test_fast_enough():
    """Everything from nothing in a fresh process, imports included."""
    script = "from boolbert.data.countries import country_queries, country_documents, country_atoms\n"
    script += "import time; t = time.process_time(); country_queries('train'), country_documents(), country_atoms()\n"
    script += "print(time.process_time() - t)"
    seconds = float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
    assert seconds < 5
