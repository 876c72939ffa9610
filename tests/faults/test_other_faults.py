"""Pages, pictures, comparisons and publishing under the same faults; and two processes that write the same."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from faults.commands import Commands, Server, snapshot
from faults.sweep import killed_anywhere, torn_anywhere

from boolbert.core.files import read_json


@pytest.fixture
def explaining(commands, documents, model):
    """The command that writes a page and a picture into the folder "out"."""
    commands.good("boolbert", "index", documents, "--output", "index", "--model", model)
    (commands.folder / "out").mkdir()
    query = "films but not about war"
    return ("boolbert", "explain", query, "--index", "index", "--html", "out/e.html", "--png", "out/e.png")


def whole_files(folder):
    """A page that ends as pages do, a picture that is one; or neither."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        content = path.read_bytes()
        if path.name.endswith(".html"):
            assert content.rstrip().endswith(b"</html>")
        elif path.name.endswith(".png"):
            assert content.endswith(b"IEND\xaeB`\x82")
        else:
            assert ".aside-" in path.name  # of the process that was killed; the next one deletes it


@pytest.mark.long
@pytest.mark.parametrize("many", [2, pytest.param(None, marks=pytest.mark.nightly)])
def test_a_page_and_a_picture_killed(commands, explaining, record, many):
    times = killed_anywhere(commands, explaining, "out", many=many, check=whole_files, prepare=whole_files)
    record("boolbert explain --html --png", "SIGKILL before a change of a file", times, "each file whole or not there")


@pytest.mark.long
@pytest.mark.parametrize("fault", ["tear_at", "full_at"])
@pytest.mark.parametrize("sizes", [[5000], pytest.param(range(500, 40_000, 1000), marks=pytest.mark.nightly)])
def test_a_page_and_a_picture_on_a_full_disk(commands, explaining, record, fault, sizes):
    times = torn_anywhere(commands, explaining, "out", sizes, check=whole_files, fault=fault, prepare=whole_files)
    fault = {"tear_at": "killed within a write", "full_at": "a write fails"}[fault]
    record("boolbert explain --html --png", fault, times, "each file whole or not there")


def tables(folder):
    """What a comparison found, without how long it took."""
    systems = read_json(folder / "table.json")
    assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    return [{name: value for name, value in system.items() if name != "latency_ms"} for system in systems]


@pytest.mark.nightly
def test_a_comparison_killed(commands, training, record):
    commands.good(*training)
    data = training[training.index("--data") + 1]
    command = ("eval/compare.py", "--data", data, "--runs", "run", "--untrained", "False", "--output_dir", "compare")
    times = killed_anywhere(commands, command, "compare", many=12, check=lambda folder: None, same=tables)
    record("eval/compare.py", "SIGKILL before a change of a file", times, "repeated: the same table and report")


def test_publishing_leaves_nothing_behind(commands, model, record):
    command = ("hub_upload.py", model, "--repo", "org/name", "--dry-run", "--allow-dirty")
    (model / "modules.json").write_text("[]3")
    assert "modules.json: not valid JSON" in commands.run(*command).error
    assert list(commands.temporary.iterdir()) == []
    assert snapshot(commands.folder) == {}
    record("hub_upload.py", "a malformed run", 1, "one line, nothing left in the temporary folder")


@pytest.mark.nightly
def test_two_processes_that_make_the_same_index(commands, documents, model, record, start):
    """At the same time, in the same folder; a second server, as one answers one call at a time."""
    command = ("boolbert", "index", documents, "--output", "index", "--model", model)
    commands.good(*command)
    whole = snapshot(commands.folder / "index")
    second = Server(start)
    runners = (commands, Commands(commands.folder, second))
    times = 30
    try:
        for _ in range(times):
            for path in whole:
                (commands.folder / "index" / path).unlink()
            with ThreadPoolExecutor() as threads:
                results = list(threads.map(lambda runner: runner.run(*command), runners))
            assert [result.status for result in results] == [0, 0], [result.err for result in results]
            assert snapshot(commands.folder / "index") == whole
    finally:
        second.close()
    record("boolbert index", "two processes, the same folder", times, "the same index, and no error")


def test_closed_output(commands, documents, model, record):
    """`boolbert ... >&-`: there is nowhere to print to, and the work is done all the same."""
    commands.good("boolbert", "index", documents, "--output", "index", "--model", model, closed=True)
    assert json.loads((commands.folder / "index/index.json").read_text())["documents"] == 10
    commands.good("boolbert", "search", "films", "--index", "index", closed=True)
    commands.good("boolbert", "search", "films", "--index", "index", "--json", closed=True)
    record("boolbert index, search", "standard output is closed", 3, "done, nothing printed")
