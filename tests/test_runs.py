"""A run's folder, asked in one place; and files that are whole or not there."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from boolbert.core.errors import BoolBertError, HubError, one_line
from boolbert.core.files import read_json, whole_file, whole_files, whole_folder, write_json, write_text
from boolbert.core.runs import Run, finished_runs, is_bool_bert


def make_run(folder, *, metrics=True, **arguments):
    folder.mkdir(parents=True)
    (folder / "args.json").write_text(json.dumps({"script": "quest", "arguments": arguments, "start": {"kind": "hub"}}))
    if metrics:
        (folder / "metrics.json").write_text(json.dumps({"dev": {"mrr@10": 0.5}, "arguments": arguments}))
    return Run(folder)


def test_what_a_run_tells(tmp_path):
    run = make_run(tmp_path / "run", data="quest", seed=1)
    assert run.finished
    assert (run.script, run.data, run.start, run.metrics["dev"]) == ("quest", "quest", {"kind": "hub"}, {"mrr@10": 0.5})
    assert not run.has_retriever
    assert not run.is_bool_bert
    (run.folder / "config.json").write_text('{"model_type": "boolbert"}')
    assert is_bool_bert(run.folder)
    (run.folder / "config.json").write_text('{"model_type": "bert"}')
    assert not is_bool_bert(run.folder)


def test_a_run_is_finished_when_its_own_metrics_are_there(tmp_path):
    make_run(tmp_path / "a", data=None)
    make_run(tmp_path / "deep" / "b", data=None, metrics=False)
    assert [run.folder.name for run in finished_runs(tmp_path)] == ["a"]
    # Started again in the same folder with other flags: the old weights and metrics are still there.
    record = {"script": "quest", "arguments": {"data": "quest"}}
    (tmp_path / "a" / "args.json").write_text(json.dumps(record))
    assert finished_runs(tmp_path) == []
    # Going on is no change of flags.
    record = {"script": "quest", "arguments": {"data": None, "resume": True}}
    (tmp_path / "a" / "args.json").write_text(json.dumps(record))
    assert len(finished_runs(tmp_path)) == 1


def test_folders_that_are_no_runs(tmp_path):
    assert finished_runs(tmp_path / "nowhere") == []
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "metrics.json").write_text("{}")
    damaged = make_run(tmp_path / "damaged", data=None)
    (damaged.folder / "args.json").write_text('{"script": ')
    assert finished_runs(tmp_path) == []
    with pytest.raises(BoolBertError, match=r"damaged/args.json: not valid JSON"):
        _ = Run(damaged.folder).script
    assert Run(tmp_path / "nowhere").script is None


@pytest.mark.parametrize(
    "content", ["[]", "3", "{}", '{"script": ["quest"]}', '{"arguments": [], "start": 3}', "[" * 99_999]
)
def test_an_args_file_of_another_program(tmp_path, content):
    run = make_run(tmp_path / "mine", data=None)
    foreign = make_run(tmp_path / "foreign", data=None)
    (foreign.folder / "metrics.json").write_text('{"arguments": 7}')
    (foreign.folder / "args.json").write_text(content)
    assert [found.folder for found in finished_runs(tmp_path)] == [run.folder]
    if content.startswith("{"):
        assert (foreign.arguments, foreign.data, foreign.start) == ({}, None, {})


def test_what_a_killed_process_left_is_deleted_by_the_next_writer(tmp_path):
    """Another process, and another file of the same process, are left alone."""
    script = """import os, sys; from boolbert.core.files import *
with {}(sys.argv[1]) as aside: print(aside); os.kill(os.getpid(), 9)"""
    left = []
    (tmp_path / "run").mkdir()
    writers = (("whole_file", "a.json"), ("whole_file", "b.json"), ("whole_folder", "folder"), ("whole_files", "run"))
    for writer, name in writers:
        command = [sys.executable, "-uc", script.format(writer), str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == -9
        left.append(Path(done.stdout.strip()))
        assert left[-1].exists()
    with whole_file(tmp_path / "a.json") as mine:
        assert [path.exists() for path in left] == [False, True, True, True]
        write_json(tmp_path / "a.json", 1)  # another thread, the same file
        assert mine.exists()
    with whole_folder(tmp_path / "folder") as mine:
        (mine / "x").write_text("1")
    with whole_files(tmp_path / "run") as mine:
        assert os.listdir(tmp_path / "run") == [mine.name]
    assert sorted(os.listdir(tmp_path)) == sorted([left[1].name, "a.json", "folder", "run"])
    assert os.listdir(tmp_path / "folder") == ["x"]
    with whole_folder(tmp_path / "folder") as mine:  # made by somebody else meanwhile
        (mine / "x").write_text("2")
    assert (tmp_path / "folder/x").read_text() == "1"


def test_a_file_is_whole_or_not_there(tmp_path):
    path = tmp_path / f"{'é' * 120}.json"  # as long as a name may be
    write_json(path, {"é": 1})
    assert path.read_text(encoding="utf-8") == '{\n  "é": 1\n}\n'
    assert stat.S_IMODE(path.stat().st_mode) & stat.S_IRUSR
    with pytest.raises(ZeroDivisionError), whole_file(path) as aside:
        aside.write_text("half" * (1 // 0))
    assert read_json(path) == {"é": 1}
    write_text(path, "{")
    with pytest.raises(HubError, match=r"é.json: not valid JSON"):
        read_json(path, HubError)
    with pytest.raises(FileNotFoundError, match=r"b\.json: not found"):
        read_json(tmp_path / "b.json")
    assert os.listdir(tmp_path) == [path.name]


def test_files_are_written_into_a_folder_that_holds_others(tmp_path):
    (tmp_path / "mine").write_text("mine")
    for content in "12":
        with whole_files(tmp_path) as aside:
            (aside / "sub").mkdir()
            for name in ("a", "sub/b"):
                (aside / name).write_text(content)
            assert not (tmp_path / "a").exists() or (tmp_path / "a").read_text() < content
        assert (tmp_path / "a").read_text() == (tmp_path / "sub/b").read_text() == content
    with pytest.raises(ZeroDivisionError), whole_files(tmp_path) as aside:
        (aside / "a").write_text("half" * (1 // 0))
    assert sorted(os.listdir(tmp_path)) == ["a", "mine", "sub"]


def test_new_files_have_the_usual_permissions(tmp_path):
    """Weights too, which safetensors writes for their owner alone."""
    (tmp_path / "usual").mkdir()
    (tmp_path / "usual/file").write_text("")
    write_text(tmp_path / "file", "")
    with whole_folder(tmp_path / "folder") as aside:
        save_file({}, aside / "a.safetensors")
    with whole_files(tmp_path / "folder") as aside:
        (aside / "sub").mkdir()
        save_file({}, aside / "sub" / "b.safetensors")
    modes = {
        path.stat().st_mode for path in (tmp_path, *tmp_path.rglob("*")) if path.name not in ("usual", tmp_path.name)
    }
    assert modes == {(tmp_path / "usual").stat().st_mode, (tmp_path / "usual/file").stat().st_mode}


@pytest.mark.parametrize(
    ("error", "free", "is_full"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 10**9, True),  # a quota, or no more entries
        (OSError("131072 requested and 4096 written"), 0, True),  # numpy's
        (RuntimeError("file write failed"), 0, True),  # torch's
        (RuntimeError("I/O error: No space left on device (os error 28)"), 10**9, True),  # safetensors', tidied up
        (OSError("131072 requested and 4096 written"), 10**9, False),
        (OSError(errno.EACCES, "Permission denied"), 0, False),
        (HubError("a mistake"), 0, False),
    ],
)
@pytest.mark.parametrize("writer", [whole_file, whole_folder, whole_files])
def test_a_full_disk_is_told_with_the_files_name(tmp_path, monkeypatch, writer, error, free, is_full):
    monkeypatch.setattr("boolbert.core.files._free", lambda path: free)
    target = tmp_path if writer is whole_files else tmp_path / "new"
    with pytest.raises(OSError if is_full else type(error)) as caught, writer(target):
        raise error
    if is_full:
        assert one_line(caught.value) == f"{target}: cannot be written: the disk is full"
    else:
        assert caught.value is error
    assert os.listdir(tmp_path) == []


def test_an_array_that_does_not_fit_is_an_error(tmp_path):
    """In a process of its own, whose files may be of 4,000 bytes. numpy by itself says nothing of the last 128."""
    code = (
        "import resource, signal, sys; import numpy as np; from boolbert.core.files import save_array\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        "save_array(sys.argv[1], np.zeros(int(sys.argv[2]), np.float32))"
    )
    for count, fits in ((900, True), (1000, False), (3000, False)):
        command = [sys.executable, "-c", code, str(tmp_path / f"{count}.npy"), str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == fits, done.stderr
        assert fits or "File too large" in done.stderr
    assert np.load(tmp_path / "900.npy").tolist() == [0.0] * 900
