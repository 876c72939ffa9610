"""Many queries at once: each is answered as it would be alone, and all cores are busy."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def each_once(work: Callable[[str], Result], texts: Sequence[str], at_once: int) -> Iterator[Result]:
    """What `work` makes of each text, in their order; of equal texts once. at_once: how many threads work.

    The first text is alone: with it files are opened and caches filled. What `work` raises for a text is raised where
    its result would be, and ends the rest.

    >>> list(each_once(str.upper, ["a", "b", "a"], 2))
    ['A', 'B', 'A']
    """
    unique = list(dict.fromkeys(texts))
    found: dict[str, Result] = {}
    pool = ThreadPoolExecutor(at_once)
    try:
        if unique:
            found[unique[0]] = work(unique[0])
        coming = {text: pool.submit(work, text) for text in unique[1:]}
        for text in texts:
            if text not in found:
                found[text] = coming[text].result()
            yield found[text]
    finally:
        pool.shutdown(cancel_futures=True)
