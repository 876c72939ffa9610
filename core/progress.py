# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""How far long work has come: a bar in a terminal; elsewhere, such as in a log, a line every ten seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from .terminal import printable

FIRST_LINE, LINE_EVERY = 2.0, 10.0  # seconds until the first line, and between lines


@contextmanager
def shown_progress(
    title: str, total: int | None, unit: str, *, done: int = 0, shown: bool = True, brief: bool = False
) -> Iterator[Callable[[int], object]]:
    """A function to call with the number of units that are new. total: None where it is not known before. done: units
    of an earlier call. brief: what seldom takes long; its bar comes after two seconds, and goes at the end."""
    if not shown:
        yield lambda count: None
        return
    if sys.stderr.isatty():
        from tqdm import tqdm

        look = {"delay": FIRST_LINE, "leave": False} if brief else {}
        with tqdm(total=total, initial=done, desc=title, unit=unit, unit_scale=True, **look) as bar:
            yield bar.update
        return
    began, new = time.monotonic(), 0
    due = began + FIRST_LINE

    def advance(count: int) -> None:
        nonlocal new, due
        new += count
        now = time.monotonic()
        if now >= due and new:
            due = now + LINE_EVERY
            of = "" if total is None else f" of {total:,}"
            left = "" if total is None else f", {(now - began) * (total - done - new) / new:.0f} s left"
            _print(f"{title}: {done + new:,}{of} {unit}s{left}")

    yield advance


@contextmanager
def shown_step(title: str, *, shown: bool = True) -> Iterator[None]:
    """Say at once what is done that takes some seconds and cannot be counted, and every ten seconds that it goes on."""
    if not shown:
        yield
        return
    _print(title)
    began, ended = time.monotonic(), Event()

    def go_on() -> None:
        while not ended.wait(LINE_EVERY):
            _print(f"{title}: {time.monotonic() - began:.0f} s")

    thread = Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _print(line: str) -> None:
    with suppress(OSError, ValueError):  # a standard error that is full or closed does not end the work
        print(printable(line), file=sys.stderr, flush=True)
