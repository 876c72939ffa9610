"""No command and no test changes with the working directory, with what ran before, or with an old cache."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from clone_fixtures import copied
from search_fixtures import write_documents, write_run

import boolbert
from boolbert.cli import main
from boolbert.retrieval.index import Index
from boolbert.search import BoolSearcher, load_model
from boolbert.search.cached_model import CACHED_MODELS, cached_model

PACKAGE = Path(boolbert.__file__).parent
# It asks the default model over the embedded countries, and failed beside the runs of `boolbert demo`.
TEST = "test_a_clause_stands_against_a_document_where_it_clearly_has_what_is_excluded"


def test_a_run_is_used_only_where_it_is_named(tmp_path, lively, tiny_config, tokenizer, capsys):
    write_run(tmp_path / "runs" / "demo", lively, tiny_config, tokenizer)
    assert load_model().name is None
    assert cached_model(None).name is None
    assert BoolSearcher(progress=False).model.name is None
    documents = str(write_documents(tmp_path / "documents.jsonl"))
    assert main(["index", documents, "--output", "index", "--no-evidence"]) == 0
    assert "runs" not in capsys.readouterr().err
    assert Index("index").model is None
    assert main(["search", "films", "--model", "runs/demo"]) == 0
    assert "Model: runs/demo" in capsys.readouterr().err


@pytest.mark.long
def test_the_tests_pass_after_the_demo_and_beside_an_old_cache(tmp_path):
    """In the README's order, in one clone; and nothing of the user's is changed by a test."""
    clone, home = copied(tmp_path / "clone", "a clone"), tmp_path / "home"
    home.mkdir()
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "boolbert").symlink_to(clone)
    own = ("BOOLBERT_CACHE", "BOOLBERT_TESTS", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in own}
    environment |= {"HOME": str(home), "PYTHONPATH": str(tmp_path / "path")}

    def run(*words):
        command = [sys.executable, "-m", *words]
        done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "--model runs/demo-quick/bool-bert" in run("boolbert.cli", "demo", "--quick")
    cache = home / ".cache" / "boolbert"
    assert cache.is_dir()
    for is_old in (False, True):
        if is_old:
            for number in range(CACHED_MODELS):
                (cache / "exported" / f"{number}").mkdir(parents=True, mode=0o700)
            for file in (file for file in cache.rglob("*") if file.is_file()):
                file.write_bytes(b"of an older version")
        before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
        assert "1 passed" in run("pytest", "-p", "no:cacheprovider", f"tests/test_search_evidence.py::{TEST}")
        assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before
