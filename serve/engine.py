"""What the page and its API do with a request: check it, search, and say in one line what is wrong."""

import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from boolbert.core.checks import check_count
from boolbert.core.errors import BoolBertError, check_text
from boolbert.core.terminal import fitted, printable
from boolbert.retrieval.exclusion_line import PROMISES
from boolbert.retrieval.index import Index
from boolbert.search import BoolSearcher, Explanation
from boolbert.search.explanation import compare

LONGEST_SERVED_QUERY = 500  # letters of a query that the page takes
MOST = 50  # results
STRONGEST = 2.0
RATE = 120  # searches a minute of one address
_MINUTE = 60.0
_ADDRESSES = 10_000  # that are remembered
BUG = "Something went wrong on the server; its log says what."
UNREADABLE = "The model or the index cannot be read at the moment; the server's log says why."
# An absolute path, /folder or C:\\folder, or one below a home.
_PATH = re.compile(r"(?<![\w.])(?:~?/[^\s/]|[A-Za-z]:\\|\\\\)")
_COUNTRIES = re.compile(r"countries-.+")  # the embedded countries' folder in the cache
_log = logging.getLogger(__name__)


Searchers = tuple[BoolSearcher, BoolSearcher | None]  # Bool-BERT's, and a baseline's if it is another model's


@dataclass(frozen=True)
class Collection:
    """What is searched: its name, the number of its documents, the title of one, and the shares of violations that it
    is calibrated for. takes_words: whether words can be excluded by hand."""

    name: str
    documents: int
    title: str
    promises: tuple[float, ...]
    takes_words: bool


class Engine:
    """A model and an index that are opened on the first search. What is missing is looked for again at the next."""

    def __init__(self, open_searchers: Callable[[], Searchers], *, rate: int = RATE):
        check_count("rate", rate)
        self.open_searchers = open_searchers
        self.limiter = RateLimiter(rate)
        self._lock = threading.Lock()
        self._opened: Searchers | None = None

    def open(self) -> Searchers:
        with self._lock:
            if self._opened is None:
                self._opened = self.open_searchers()
                # The page explains each query, which a cached model cannot: opened here, and not by the first query.
                _ = self._opened[0].model.bert
            return self._opened

    def collection(self) -> Collection | None:
        """What is searched; None where it cannot be opened."""
        try:
            searcher, _ = self.open()
            index = searcher.index
            title = index[0].title if isinstance(index, Index) and len(index) else ""
            promises = searcher.line.promises[::-1] if index.about().line else ()
            return Collection(_name(index), len(index), title, tuple(promises), searcher.is_boolean)
        except (BoolBertError, OSError):
            return None

    def search(
        self,
        query: Any,
        k: Any = 10,
        strength: Any = None,
        excluded: Any = None,
        violations: Any = None,
        *,
        address: str = "",
    ) -> Explanation:
        """The answer to a request, whose values may be anything. A BoolBertError says what is wrong with it."""
        self.limiter.check(address)
        text = checked_query(query)
        if type(k) is not int or not 1 <= k <= MOST:
            raise BoolBertError(f"k must be a whole number from 1 to {MOST}, got {_short(k)}")
        if strength is not None and (type(strength) not in (int, float) or not 0 <= strength <= STRONGEST):
            raise BoolBertError(f"strength must be a number from 0 to {STRONGEST:g}, got {_short(strength)}")
        is_list = isinstance(excluded, list) and len(excluded) <= LONGEST_SERVED_QUERY
        if excluded is not None and not (is_list and all(type(word) is int for word in excluded)):
            raise BoolBertError(f"excluded must be a list of the numbers of words, from 0, got {_short(excluded)}")
        if violations is not None and violations not in PROMISES:
            shares = ", ".join(map(str, PROMISES))
            raise BoolBertError(f"violations must be one of {shares}, got {_short(violations)}")

        def answer() -> Explanation:
            searcher, baseline = self.open()
            asked = {"not_weight": strength, "excluded": excluded, "violations": violations}
            found = compare(searcher, text, k, baseline=baseline, **asked)
            return replace(found, plain_name=os.path.basename(found.plain_name))  # without the folders of this machine

        try:
            return answer()
        except OSError:  # the index was moved or built again: opening it says what is missing
            self._opened = None
            return answer()


def _name(index: Any) -> str:
    """What an index or a store is called, without the folders and the addresses of this machine."""
    name = re.split(r"[/\\]", index.name.rstrip("/\\"))[-1]
    return _COUNTRIES.sub("countries", name)


def error_line(error: Exception) -> str:
    """The line that the page shows for an error. A bug, and what names a path of this machine, is for the log.

    >>> error_line(BoolBertError("k must be a whole number")), error_line(BoolBertError("my_index: no index there"))
    ('k must be a whole number', 'my_index: no index there')
    """
    if isinstance(error, BoolBertError | OSError):
        if not _PATH.search(str(error)):
            return fitted(printable(str(error)), 400)
        _log.error(printable(str(error)))
        return UNREADABLE
    _log.error(BUG, exc_info=error)
    return BUG


def checked_query(query: Any) -> str:
    r"""A query as one line without control characters.

    >>> checked_query("films\n but\u202enot \x00 war\u200d "), checked_query("a\tb")
    ('films but not war\u200d', 'a b')
    """
    if not isinstance(query, str):
        raise BoolBertError(f"the query must be a text, got {_short(query)}")
    check_text(query, "the query")
    if len(query) > LONGEST_SERVED_QUERY:
        raise BoolBertError(f"the query has {len(query):,} letters; at most {LONGEST_SERVED_QUERY} are read here")
    kept = (letter if letter.isprintable() or letter in "\u200c\u200d" else " " for letter in query)
    text = " ".join("".join(kept).split())
    if not text:
        raise BoolBertError("the query is empty; type some words to search for")
    return text


def _short(value: Any) -> str:
    return printable(repr(value)[:40])


class RateLimiter:
    """A limit on the searches per minute from one address."""

    def __init__(self, rate: int = RATE):
        self.rate = rate
        self._lock = threading.Lock()
        self._times: dict[str, deque[float]] = {}

    def check(self, address: str, now: float | None = None) -> None:
        """Count a search, or raise.

        >>> limiter = RateLimiter(1)
        >>> limiter.check("here", now=0.0), limiter.check("there", now=1.0), limiter.check("here", now=61.0)
        (None, None, None)
        """
        now = time.monotonic() if now is None else now
        with self._lock:
            times = self._times[address] = self._times.pop(address, deque())  # the newest address stands last
            if len(self._times) > _ADDRESSES:
                del self._times[next(iter(self._times))]
            while times and now - times[0] >= _MINUTE:
                times.popleft()
            if len(times) >= self.rate:
                wait = int(_MINUTE - (now - times[0])) + 1
                raise BoolBertError(f"more than {self.rate} searches in a minute; wait {wait} seconds")
            times.append(now)
