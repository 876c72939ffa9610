"""Settings of the whole process: for commands and scripts before they import torch, and for a block of code."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEVICES = Path("/dev")
GPUS = ("nvidia[0-9]*", "kfd", "dxg", "nvhost-gpu")  # what /dev has where torch may find one


def keep_freed_memory() -> None:
    """Where torch's memory comes from mimalloc, as on ARM, it is given back to the system 10 ms after it is free, and
    the next batch has to ask for it page by page: a tenth of the time of encoding. With this it stays for 100 s."""
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "100000")


def prepare_training() -> None:
    """What a command that trains sets before it imports torch."""
    keep_freed_memory()
    # On a busy machine OpenMP's waiting threads would take the processor from those that compute.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def one_numpy_thread() -> None:
    """What a command that ranks for many queries sets before it imports numpy, whose threads spin between products."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def may_have_gpu() -> bool:
    """Whether torch may find a GPU here. To ask torch itself takes seconds."""
    return any(found for pattern in GPUS for found in DEVICES.glob(pattern))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute with one thread while the block runs: for queries that are encoded one by one, whose products
    are so small that two threads wait for each other longer than they compute."""
    import torch

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def log_level(level: int, *names: str) -> Iterator[None]:
    """Hide what these libraries log below `level` while the block runs.

    >>> with log_level(logging.ERROR, "transformers"):
    ...     logging.getLogger("transformers").isEnabledFor(logging.WARNING)
    False
    """
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, before in zip(loggers, levels, strict=True):
            logger.setLevel(before)


@contextmanager
def without_telemetry() -> Iterator[None]:
    """Import ONNX Runtime in this block: it then writes no device id into the user's cache, and sends nothing."""
    name = "ORT_DISABLE_TELEMETRY"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
