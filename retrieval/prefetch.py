"""Batches ahead of time: a thread prepares the next ones while the model computes."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import islice
from typing import Any

import torch

DEPTH = 4


def prefetch(
    load: Callable[[int], Any], steps: Iterable[int], *, pin: bool = False, depth: int = DEPTH
) -> Generator[Any]:
    """`load(step)` of each step, in order. An error in the thread is raised where the batch is awaited.

    >>> list(prefetch(lambda step: step * 10, range(3)))
    [0, 10, 20]
    """

    def pinned(step: int) -> Any:
        from accelerate.utils import recursively_apply

        return recursively_apply(torch.Tensor.pin_memory, load(step))

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as pool:
        yield from map_ahead(pool, pinned if pin else load, steps, depth)


def map_ahead(pool: Executor, work: Callable[[Any], Any], items: Iterable[Any], ahead: int) -> Generator[Any]:
    """`work(item)` of each item, in order; the pool works on the next `ahead` items meanwhile."""
    coming = iter(items)
    waiting = deque(pool.submit(work, item) for item in islice(coming, ahead))
    try:
        while waiting:
            first = waiting.popleft()
            waiting.extend(pool.submit(work, item) for item in islice(coming, 1))
            yield first.result()
    finally:
        for future in waiting:
            future.cancel()
