"""Settings that libraries read when they are loaded: for commands and scripts, before they import torch."""

import os


def keep_freed_memory() -> None:
    """Where torch's memory comes from mimalloc, as on ARM, it is given back to the system 10 ms after it is free, and
    the next batch has to ask for it page by page: a tenth of the time of encoding. With this it stays for 100 s."""
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "100000")


def let_waiting_threads_sleep() -> None:
    """On a busy machine OpenMP's would take the processor from those that compute."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
