"""How long people wait: the commands of the first hour, each in a fresh process with an empty cache, and their goals.

make waits                                       # or: python bench/waits.py
python bench/waits.py --only "first search" index

The documents are 150 made-up recipes, hotels, gadgets and flats. CPU seconds are those of all cores together: on a
machine that does other things too, they say more than the clock.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from speed.timing import Table

DOCUMENTS = 150
QUERY = "landlocked countries in Africa that are not former British colonies"
EXPLAIN = ["explain", "monarchies or island countries", "--html", "explain.html", "--png", "explain.png"]


class Wait(NamedTuple):
    """A command, the seconds that it may take, and why it takes more."""

    words: list[str]
    goal: float
    reason: str = ""


# The order is that of a new user: what an earlier command leaves in the cache is there for the later ones.
WAITS = {
    "first search": Wait(["search", QUERY], 8),
    "later search": Wait(["search", QUERY], 3),
    "explain, both files": Wait(EXPLAIN, 8, "torch and transformers take 7 CPU s of 10"),
    "index": Wait(["index", "documents.jsonl", "--output", "indexed"], 6, "documents and clauses take 7 CPU s of 10"),
    "data queries": Wait(["data", "queries", "documents.jsonl"], 6),
    "upgrade": Wait(["upgrade", "--output_dir", "upgraded"], 120),
    "demo": Wait(["demo", "--output", "demo"], 240, "two trainings side by side take most of it"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=WAITS, default=list(WAITS), help="these commands alone")
    options = parser.parse_args()
    missed, table = False, Table(what=-20, now=8, CPU_seconds=12, goal=6, verdict=-1)
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "BOOLBERT_CACHE": f"{scratch}/cache", "XDG_CACHE_HOME": f"{scratch}/cache"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled files are part of an installation
        write_documents(Path(scratch, "documents.jsonl"))
        seconds_of(["--help"], environment, scratch)
        for name in options.only:
            wait = WAITS[name]
            now, cpu = (round(value, 1) for value in seconds_of(wait.words, environment, scratch))
            table.add(what=name, now=now, CPU_seconds=cpu, goal=wait.goal, verdict=verdict(wait, now, cpu))
            missed |= now > wait.goal
    sys.exit(missed)


def seconds_of(words: list[str], environment: dict[str, str], folder: str) -> tuple[float, float]:
    """The clock's and the CPU's seconds of a command, from the shell to its end."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "boolbert.cli", *words], env=environment, cwd=folder, capture_output=True, text=True
    )
    seconds, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, cpu


def verdict(wait: Wait, now: float, cpu: float) -> str:
    """Whether the goal is met, and else why not.

    >>> verdict(Wait([], 8, "imports"), 6.0, 9.0), verdict(Wait([], 8, "imports"), 9.0, 9.0)
    ('met', 'imports')
    >>> verdict(Wait([], 8, "imports"), 40.0, 7.0)
    'the machine is busy: 7.0 CPU seconds would do'
    """
    if now <= wait.goal:
        return "met"
    return f"the machine is busy: {cpu} CPU seconds would do" if cpu <= wait.goal else wait.reason or "not met"


def write_documents(path: Path) -> None:
    from boolbert.data import Quest
    from boolbert.data.embedded import denials_folder
    from boolbert.data.lines import write_rows

    documents = list(Quest(denials_folder("dev"), progress=False).documents())[:DOCUMENTS]
    write_rows(path, [{"title": document.title, "text": document.text} for document in documents])


if __name__ == "__main__":
    main()
