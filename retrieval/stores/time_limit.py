"""A limit for a whole answer. The timeouts of sockets count between two bytes: a server that sends one every half
second would never be given up."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

LONGEST = 12  # times as long as a server is waited for at first
T = TypeVar("T")


def within(seconds: float, call: Callable[[], T]) -> T:
    """What a call returns; a TimeoutError where that takes longer. The call then goes on in a thread of its own, which
    does not keep the process from ending.

    >>> within(60, lambda: 1 + 1)
    2
    >>> within(0.01, lambda: __import__("time").sleep(1))
    Traceback (most recent call last):
    ...
    TimeoutError: no whole answer within 0.01 seconds
    """
    outcome: SimpleQueue[Any] = SimpleQueue()

    def run() -> None:
        try:
            outcome.put((call(), None))
        except BaseException as error:  # raised where it was waited for
            outcome.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        answer, error = outcome.get(timeout=seconds)
    except Empty:
        raise TimeoutError(f"no whole answer within {seconds:g} seconds") from None
    if error is not None:
        raise error
    return answer
