"""`train/quest.py`, killed and starved: a finished run is whole, an unfinished one goes on, and ends with the same."""

import json

import pytest
from faults.commands import snapshot
from faults.sweep import clear, killed_anywhere, torn_anywhere
from training_helpers import write_quest

from boolbert.core.runs import Run


def result(folder):
    """What must be the same: the model's files and the metrics; not times, and not how often it was begun."""
    files = {name: content for name, content in snapshot(folder).items() if not name.startswith("checkpoints/")}
    assert not list((folder / "checkpoints").glob(".*")), "a checkpoint is left half written"
    metrics = json.loads(files.pop("metrics.json"))
    log = [json.loads(line) for line in files.pop("log.jsonl").splitlines()]  # has every line once
    files.pop("args.json")
    times = ("seconds", "rows_per_second")
    lines = [{name: value for name, value in line.items() if name not in times} for line in log]
    return files, lines, {name: metrics[name] for name in ("dev", "dev_without_labels", "history", "best_epoch")}


def finished_or_not(folder):
    """No half of a run counts as finished."""
    if folder.exists() and Run(folder).finished:
        result(folder)


@pytest.mark.parametrize("many", [5, pytest.param(None, marks=pytest.mark.nightly)])
def test_killed(commands, training, record, many):
    options = {"check": finished_or_not, "repeat": ("--resume",), "same": result}
    times = killed_anywhere(commands, training, "run", many=many, **options)
    record("train/quest.py", "SIGKILL before a change of a file", times, "with --resume: the same weights, to the bit")


@pytest.mark.parametrize(("fault", "name"), [("tear_at", "killed within a write"), ("full_at", "a write fails")])
@pytest.mark.parametrize("sizes", [[9_000], pytest.param(range(200, 60_000, 1500), marks=pytest.mark.nightly)])
def test_torn_writes_and_full_disks(commands, training, record, fault, name, sizes):
    options = {"check": finished_or_not, "repeat": ("--resume",), "same": result, "fault": fault}
    times = torn_anywhere(commands, training, "run", sizes, **options)
    record("train/quest.py", name, times, "one line; with --resume: the same weights, to the bit")


@pytest.mark.parametrize("kibibytes", [100, *(pytest.param(size, marks=pytest.mark.nightly) for size in (8, 40, 300))])
def test_a_disk_that_is_full(commands, training, small_disk, record, kibibytes):
    commands.good(*training)
    whole = result(commands.folder / "run")
    disk = small_disk(kibibytes)
    command = tuple(disk / "run" if word == "run" else word for word in training)
    assert "the disk is full" in commands.run(*command).error
    finished_or_not(disk / "run")
    small_disk(10_000)
    commands.good(*command, "--resume")
    assert result(disk / "run") == whole
    record("train/quest.py", f"a disk of {kibibytes} KiB", 1, "one line; with more room and --resume: the same weights")


def test_a_finished_run_survives_every_mistake(commands, training, record):
    """A typo in any flag leaves all its files as they are."""
    commands.good(*training)
    before = snapshot(commands.folder / "run")
    write_quest(commands.folder / "no_atoms", queries=10)
    (commands.folder / "no_atoms" / "atoms.json").unlink()
    mistakes = [
        *("--encoder ./typo", "--data ./typo", "--epochs 0", "--batch_size -5", "--learning_rate x", "--no_such 1"),
        *("--seed 3", "--mixed_precision fp16", "--dev_split train", "--metric ndcg@11 --overwrite True"),
        "--negatives violating --data no_atoms --overwrite True",
    ]
    for mistake in mistakes:  # of two equal flags the last one counts
        done = commands.run(*training, *mistake.split())
        assert done.status > 0, (mistake, done.out)
        assert "Traceback" not in done.err
        assert snapshot(commands.folder / "run") == before, mistake
    assert "is finished" in commands.good(*training).out
    assert snapshot(commands.folder / "run") == before
    record("train/quest.py", "a mistake in a flag, into a finished run", len(mistakes), "refused; no file has changed")


def test_no_permission(commands, training, record):
    (commands.folder / "run").mkdir(mode=0o555)
    assert "cannot be written" in commands.run(*training, as_user=True).error
    (commands.folder / "run").chmod(0o755)
    clear(commands, "run")
    record("train/quest.py", "no permission", 1, "one line")
