"""Batches ahead of time: a thread prepares the next ones while the model computes."""

import queue
import threading
from collections.abc import Callable, Generator, Iterable
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
    if pin:
        from accelerate.utils import recursively_apply
    ready: queue.Queue[tuple[bool, Any]] = queue.Queue(depth)
    stop = threading.Event()

    def put(item: tuple[bool, Any]) -> None:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return
            except queue.Full:
                pass

    def work() -> None:
        try:
            for step in steps:
                if stop.is_set():
                    return
                batch = load(step)
                put((True, recursively_apply(torch.Tensor.pin_memory, batch) if pin else batch))
            put((False, None))
        except BaseException as error:
            put((False, error))

    thread = threading.Thread(target=work, name="batches", daemon=True)
    thread.start()
    try:
        while True:
            there, item = ready.get()
            if not there:
                if item is not None:
                    raise item
                return
            yield item
    finally:
        stop.set()
        thread.join()
