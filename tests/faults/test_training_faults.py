"""`train/quest.py`, killed and starved: a finished run is whole, an unfinished one goes on, and ends with the same."""

import json

import pytest
from faults.commands import snapshot
from faults.sweep import clear, killed_anywhere, torn_anywhere

from boolbert.core.errors import BoolBertError
from boolbert.core.runs import Run


def result(folder):
    """What must be the same: the model's files and the metrics; not times, and not how often it was begun."""
    files = {name: content for name, content in snapshot(folder).items() if not name.startswith("checkpoints/")}
    metrics = json.loads(files.pop("metrics.json"))
    for name in ("args.json", "log.jsonl"):
        files.pop(name)
    numbers = {name: value for name, value in metrics.items() if name in ("dev", "dev_without_labels", "best_epoch")}
    assert numbers
    return files, numbers


def finished_or_not(folder):
    """No half of a run counts as finished."""
    if folder.exists() and Run(folder).finished:
        result(folder)


@pytest.mark.parametrize("many", [2, pytest.param(None, marks=pytest.mark.nightly)])
def test_killed(commands, training, record, many):
    options = {"check": finished_or_not, "repeat": ("--resume",), "same": result}
    times = killed_anywhere(commands, training, "run", many=many, **options)
    record("train/quest.py", "SIGKILL before a change of a file", times, "with --resume: the same weights, to the bit")


@pytest.mark.parametrize(("fault", "name"), [("tear_at", "killed within a write"), ("full_at", "a write fails")])
@pytest.mark.parametrize("sizes", [[9_000], pytest.param(range(200, 60_000, 1500), marks=pytest.mark.nightly)])
def test_torn_writes_and_full_disks(commands, training, record, fault, name, sizes):
    options = {"check": finished_or_not, "repeat": ("--resume",), "same": result, "fault": fault}
    times = torn_anywhere(commands, training, "run", sizes, **options)
    assert times
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
    mistakes = [
        ("--encoder", "./typo"),
        ("--data", "./typo"),
        ("--epochs", "0"),
        ("--batch_size", "-5"),
        ("--learning_rate", "x"),
        ("--no_such_flag", "1"),
        ("--seed", "3"),
        ("--mixed_precision", "fp16"),
    ]
    for name, value in mistakes:
        flags = list(training)
        if name in flags:
            flags[flags.index(name) + 1] = value
        else:
            flags += [name, value]
        done = commands.run(*flags)
        assert done.status > 0, (name, done.out)
        assert "Traceback" not in done.err
        assert snapshot(commands.folder / "run") == before, name
    assert "is finished" in commands.good(*training).out
    assert snapshot(commands.folder / "run") == before
    record("train/quest.py", "a mistake in a flag, into a finished run", len(mistakes), "refused; no file has changed")


def test_no_permission(commands, training, record):
    (commands.folder / "run").mkdir(mode=0o555)
    assert "cannot be written" in commands.run(*training, as_user=True).error
    (commands.folder / "run").chmod(0o755)
    clear(commands, "run")
    record("train/quest.py", "no permission", 1, "one line")


@pytest.mark.parametrize("name", ["model.safetensors", "modules.json", "tokenizer.json", "config.json", "metrics.json"])
@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
@pytest.mark.nightly
def test_a_finished_run_that_is_cut_short(commands, training, record, name, keep):
    commands.good(*training)
    path = commands.folder / "run" / name
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    done = commands.run("boolbert", "search", "films", "--model", "run")
    assert done.status == 0 or done.error
    try:
        Run(commands.folder / "run").finished  # noqa: B018
    except BoolBertError as error:
        assert name in str(error)  # noqa: PT017
    record(
        "boolbert search", f"{name} of a run cut to {keep:.0%}", 1, "one line" if done.status else "the right answer"
    )
