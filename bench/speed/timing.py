"""What the parts share: the times of works that take turns, CUDA graphs, a table that grows row by row."""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch


def timed(work: Callable[[], Any], options: argparse.Namespace) -> float:
    """Milliseconds."""
    if options.gpu:
        torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    if options.gpu:
        torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - began)


def in_turn(
    works: dict[str, Callable[[], Any]], options: argparse.Namespace, *, rounds: int | None = None, warm: int = 3
) -> dict[str, float]:
    """The median of each work's times, in milliseconds."""
    for work in works.values():
        for _ in range(warm):
            work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds or options.rounds):
        for name, work in works.items():
            times[name].append(timed(work, options))
    return {name: round(statistics.median(values), 4) for name, values in times.items()}


def as_graph(step: Callable[[], Any]) -> Callable[[], Any]:
    """The same work as one launch of a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        output = step()  # its memory is the graph's

    def replay() -> Any:
        graph.replay()
        return output

    return replay


class Table:
    """Prints rows under a header as they come. A column of negative width is aligned to the left."""

    def __init__(self, **widths: int):
        self.widths = widths
        self._print({name: name.replace("_", " ") for name in widths})

    def add(self, **row: Any) -> None:
        self._print({name: f"{value:,.2f}" if isinstance(value, float) else value for name, value in row.items()})

    def _print(self, cells: dict[str, Any]) -> None:
        aligned = [
            f"{cells.get(name, '-'):{'>' if width > 0 else '<'}{abs(width)}}" for name, width in self.widths.items()
        ]
        print("  ".join(aligned), flush=True)
