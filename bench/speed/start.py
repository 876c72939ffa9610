"""The command line from the shell to the answer."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from speed.timing import Table

QUERY = "landlocked countries in Africa that are not former British colonies"


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """`boolbert search` from the shell to the answer, the first call and later ones; and help, which imports little."""
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "BOOLBERT_CACHE": scratch, "XDG_CACHE_HOME": scratch}
        search = ["search", QUERY, "--device", "cpu"]
        plan = {"--help": (["--help"], 3), "first search": (search, 1), "search": (search, 5)}
        table = Table(command=-14, seconds=9, CPU_seconds=12)
        for name, (words, times) in plan.items():
            taken = [seconds_of(words, environment, scratch) for _ in range(times)]
            wall, cpu = (round(statistics.median(values), 3) for values in zip(*taken, strict=True))
            rows.append(table.add(command=name, seconds=wall, CPU_seconds=cpu))
    return rows


def seconds_of(words: list[str], environment: dict[str, str], folder: str) -> tuple[float, float]:
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "boolbert.cli", *words], env=environment, cwd=folder, capture_output=True, text=True
    )
    seconds, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, cpu
