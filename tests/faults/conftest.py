"""One server of processes for all tests here, a small disk, and the table of what was tried."""

import os
import shutil
import subprocess

import pytest
from faults.commands import Commands, Server
from search_fixtures import write_documents
from training_helpers import write_encoder, write_quest

ROWS = []


@pytest.fixture(scope="session")
def server(start):
    server = Server(start)
    yield server
    server.close()


@pytest.fixture
def commands(tmp_path, server):
    (tmp_path / "here").mkdir()
    return Commands(tmp_path / "here", server)


@pytest.fixture
def model(commands, run_once):
    """A finished run of a tiny model, beside the folder that the commands work in."""
    return shutil.copytree(run_once(), commands.folder.with_name("model"))


@pytest.fixture
def documents(commands):
    return write_documents(commands.folder.with_name("documents.jsonl"))


@pytest.fixture
def training(commands):
    """The command of a tiny training run into the folder "run"."""
    beside = commands.folder.parent
    write_encoder(beside / "encoder")
    write_quest(beside / "quest", queries=10)
    return (
        *("train/quest.py", "--data", beside / "quest", "--encoder", beside / "encoder", "--output_dir", "run"),
        *("--epochs", "2", "--batch_size", "5", "--num_negatives", "2", "--tracker", "none", "--threads", "1"),
        *("--query_length", "32", "--document_length", "32"),
    )


@pytest.fixture
def small_disk(commands):
    """A function that makes the folder "disk" a disk of so many KiB, or changes its size. Only root can."""
    disk = commands.folder / "disk"
    disk.mkdir()

    def size(kibibytes):
        again = ["-o", f"remount,size={kibibytes}k"] if disk.is_mount() else ["-o", f"size={kibibytes}k"]
        done = subprocess.run(["mount", "-t", "tmpfs", *again, "tmpfs", str(disk)], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no disk of one's own can be mounted here: {done.stderr.strip()}")
        return disk

    yield size
    if disk.is_mount():
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture
def record():
    """A function that adds a row to the table printed at the end: command, fault, how often, what happened.

    $FAULTS_TABLE names a file that gets each row at once: a night may end early.
    """

    def add(*row):
        ROWS.append(row)
        if path := os.environ.get("FAULTS_TABLE"):
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"| {' | '.join(map(str, row))} |\n")

    return add


def pytest_terminal_summary(terminalreporter):
    if ROWS:
        terminalreporter.section("faults")
        for row in (("command", "fault", "times", "what happened"), ("---",) * 4, *ROWS):
            terminalreporter.write_line(f"| {' | '.join(map(str, row))} |")
