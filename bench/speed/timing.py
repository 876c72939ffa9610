"""What the benches share: times of works that take turns, memory, how busy a GPU is, CUDA graphs, the JSON file."""

import argparse
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.profiler import ProfilerActivity, profile

ROOT = Path(__file__).resolve().parent.parent.parent


def find_package() -> None:
    """Make this checkout importable as `boolbert`, here and in the processes that are started."""
    spec = importlib.util.find_spec("boolbert")
    if spec and spec.origin and Path(spec.origin).resolve().parent == ROOT:
        return
    folder = Path(tempfile.mkdtemp())
    (folder / "boolbert").symlink_to(ROOT)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


def machine(options: argparse.Namespace) -> dict[str, Any]:
    name = torch.cuda.get_device_name() if options.gpu else f"CPU, {torch.get_num_threads()} threads"
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    return {"device": name, "dtype": str(options.dtype).removeprefix("torch."), "cores": os.cpu_count(), **versions}


def synchronize(options: argparse.Namespace) -> None:
    if options.gpu:
        torch.cuda.synchronize()


def timed(work: Callable[[], Any], options: argparse.Namespace) -> float:
    """Milliseconds."""
    synchronize(options)
    began = time.perf_counter()
    work()
    synchronize(options)
    return 1000 * (time.perf_counter() - began)


def in_turn(
    works: dict[str, Callable[[], Any]], options: argparse.Namespace, *, rounds: int | None = None, warm: int = 3
) -> dict[str, Any]:
    """The median and the middle half of each, in milliseconds."""
    for work in works.values():
        for _ in range(warm):
            work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds or options.rounds):
        for name, work in works.items():
            times[name].append(timed(work, options))
    return {name: spread(values) for name, values in times.items()}


def spread(values: list[float]) -> dict[str, float]:
    """
    >>> spread([1.0, 2.0, 3.0])
    {'median': 2.0, 'low': 1.0, 'high': 3.0}
    """
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return {name: round(v, 4) for name, v in (("median", statistics.median(values)), ("low", low), ("high", high))}


def peak_mebibytes(work: Callable[[], Any], options: argparse.Namespace) -> float | None:
    if not options.gpu:
        return None
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return round((torch.cuda.max_memory_allocated() - before) / 2**20, 1)


def busy_share(work: Callable[[], Any], options: argparse.Namespace) -> float | None:
    """The share of the time in which the GPU ran a kernel, by torch's profiler; None without a GPU."""
    if not options.gpu:
        return None
    synchronize(options)
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        began = time.perf_counter()
        work()
        synchronize(options)
        seconds = time.perf_counter() - began
    kinds = (event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA)
    spans = sorted((event.time_range.start, event.time_range.end) for event in kinds)
    busy, end = 0.0, 0.0
    for first, last in spans:
        busy += max(0.0, last - max(first, end))
        end = max(end, last)
    return round(busy / 1e6 / seconds, 3)


def as_graph(step: Callable[[], Any]) -> Callable[[], Any]:
    """The same work as one launch.

    It is recorded on the stream that it was warmed up on: on another, compiled code may be compiled anew, which is not
    possible while a graph is recorded.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.compiler.set_stance("fail_on_recompile"), torch.cuda.graph(graph, stream=stream):
        kept = step()  # its memory is the graph's

    def replay() -> Any:
        graph.replay()
        return kept

    return replay


def save(options: argparse.Namespace) -> None:
    if options.json:
        Path(options.json).write_text(json.dumps(options.figures, indent=1) + "\n", encoding="utf-8")
