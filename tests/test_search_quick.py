"""A search that answers from a stored program gives what the model gives, and is never asked when it is out of date."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from search_fixtures import OPTIONS, QUERIES, write_documents, write_run

import boolbert
from boolbert.cli import main
from boolbert.search import BoolSearcher, Index, build_index, load_model, quick
from boolbert.search.quick import KEPT, PROGRAM, SETTINGS, QuickSearcher, keep, quick_searcher

ROOT = Path(boolbert.__file__).parent


MADE = []


@pytest.fixture
def work(tmp_path_factory, lively, tiny_config, tokenizer):
    """A folder with a model, its index and its program, as they were made: once, because tracing takes a second.

    It has the same name for each test, since a program belongs to a path; the files' times are copied with them.
    """
    work, made = (tmp_path_factory.getbasetemp() / name for name in ("quick", "quick-made"))
    if not MADE:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BOOLBERT_CACHE", str(work / "cache"))
            # One layer, and a reader of two convolutions: what is traced has every part.
            small = {"num_hidden_layers": 1, "boolean_layers": [0], "scope_reader_layers": 2}
            write_run(work / "run", lively, tiny_config, tokenizer, penalty=0.5, branches=2, **small)
            model = load_model(str(work / "run"), device="cpu")
            index = build_index(write_documents(work / "documents.jsonl"), work / "index", model, progress=False)
            searcher = BoolSearcher(model, index)
            keep(searcher)
        shutil.copytree(work, made)
        MADE.append(searcher)
    shutil.rmtree(work)
    return shutil.copytree(made, work)


@pytest.fixture
def stored(work, monkeypatch):
    """A searcher whose program is stored, its model's folder and its index."""
    monkeypatch.setenv("BOOLBERT_CACHE", str(work / "cache"))
    return MADE[0], str(work / "run"), str(work / "index")


def home(work):
    return next((work / "cache/quick").iterdir())


def test_the_same_answers(stored):
    searcher, model, index = stored
    quick = quick_searcher(model, index, None)
    assert isinstance(quick, QuickSearcher)
    assert (quick.model.name, quick.model.note) == (searcher.model.name, searcher.model.note)
    for query in QUERIES:
        for given in OPTIONS:
            found, expected = (one.search(query, k=3, **given) for one in (quick, searcher))
            assert found.reading == expected.reading
            assert [hit.row for hit in found] == [hit.row for hit in expected]
            assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)
    assert any(searcher.read(query).excluded for query in QUERIES)


def test_it_is_out_of_date_when_the_model_changes(stored, work):
    _, model, index = stored
    weights = work / "run/model.safetensors"
    os.utime(weights, ns=(1, 1))
    assert quick_searcher(model, index, None) is None


def test_it_is_out_of_date_when_the_code_changes(stored, tmp_path, monkeypatch):
    _, model, _ = stored
    package = tmp_path / "package"
    shutil.copytree(ROOT / "search", package / "search")
    code = [Path(shutil.copy(file, package)) for file in ROOT.glob("*_boolbert.py")]
    assert {file.stem.removesuffix("_boolbert") for file in code} >= {
        "configuration",
        "kernels",
        "modeling",
        "sentence",
    }
    monkeypatch.setattr(quick, "__file__", str(package / "search/quick.py"))
    seen = {quick._made_with(Path(model))}
    for file in (*code, package / "search/quick.py", package / "search/program.py"):
        with file.open("a") as lines:
            lines.write("# changed\n")
        seen.add(quick._made_with(Path(model)))
    assert len(seen) == 3 + len(code)


def test_only_the_programs_that_were_made_last_are_kept(stored, work):
    searcher, _, _ = stored
    quick_home, root = home(work), work / "cache/quick"
    old = [root / f"old{number}" for number in range(KEPT + 2)]
    for age, folder in enumerate(old):
        folder.mkdir()
        (folder / PROGRAM).write_bytes(b"x")
        os.utime(folder, (age, age))
    keep(searcher)
    assert sorted(folder.name for folder in root.iterdir()) == sorted(
        [quick_home.name, *(folder.name for folder in old[-KEPT + 1 :])]
    )


@pytest.mark.parametrize("name", [PROGRAM, SETTINGS])
def test_a_damaged_file_is_not_used(stored, work, name, capsys):
    _, model, index = stored
    path = home(work) / name
    path.write_bytes(path.read_bytes()[:-20])
    assert quick_searcher(model, index, None) is None
    assert main(["search", "films", "--model", model, "--index", index]) == 0
    assert quick_searcher(model, index, None) is not None  # that call has made it anew


def test_a_pickle_in_its_place_is_not_run(stored, work, tmp_path):
    _, model, index = stored
    mark = tmp_path / "made-by-a-pickle"

    class Act:
        def __reduce__(self):
            return os.mkdir, (str(mark),)

    (home(work) / PROGRAM).write_bytes(pickle.dumps(Act()))
    assert quick_searcher(model, index, None) is None
    assert not mark.exists()


def test_only_a_stored_model_in_a_folder_on_the_cpu(stored):
    _, model, index = stored
    assert quick_searcher(model, index, "cuda") is None
    assert quick_searcher("org/name", index, None) is None
    assert quick_searcher(None, index, "cpu") is not None  # the index knows its model


def test_a_model_by_a_relative_name(stored, work, tmp_path, monkeypatch):
    _, _, index = stored
    monkeypatch.chdir(tmp_path)
    shutil.copytree(work / "run", tmp_path / "other")
    assert quick_searcher("other", index, None) is None
    keep(BoolSearcher(load_model("other", device="cpu"), Index(index)))
    assert quick_searcher("other", index, None) is not None


def test_the_command_gives_the_same_json_without_the_large_libraries(stored, work, capsys):
    _, model, index = stored
    words = ["search", QUERIES[0], "--model", model, "--index", index, "--json"]
    code = "import sys; from boolbert.cli import main; main(sys.argv[1:]); print('transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    *answer, imported = done.stdout.splitlines()
    assert imported == "False"
    os.utime(work / "run/model.safetensors", ns=(1, 1))
    assert main(words) == 0
    expected = json.loads(capsys.readouterr().out)
    found = json.loads("\n".join(answer))
    for hits in (found["hits"], expected["hits"]):
        for hit in hits:
            hit.update({name: round(hit[name], 4) for name in ("score", "wanted", "excluded") if hit[name] is not None})
    assert found == expected
