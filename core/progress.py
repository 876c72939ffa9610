# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""How far long work has come: a bar in a terminal; elsewhere, such as in a log, a line every 30 seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINE_EVERY = 30.0  # seconds


@contextmanager
def shown_progress(
    title: str, total: int, unit: str, *, done: int = 0, shown: bool = True
) -> Iterator[Callable[[int], object]]:
    """A function to call with the number of units that are new. done: those of an earlier call."""
    from tqdm import tqdm

    if not shown or sys.stderr.isatty():
        with tqdm(total=total, initial=done, desc=title, unit=unit, unit_scale=True, disable=not shown) as bar:
            yield bar.update
        return
    began = last = time.monotonic()
    new = 0

    def advance(count: int) -> None:
        nonlocal new, last
        new += count
        now = time.monotonic()
        if now - last >= LINE_EVERY:
            last = now
            left = (now - began) * (total - done - new) / new
            print(f"{title}: {done + new:,} of {total:,} {unit}s, {left:.0f} s left", file=sys.stderr, flush=True)

    yield advance
