"""A connection with Postgres that is given up where an answer takes too long, and whose errors are one line."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from boolbert.core.errors import BoolBertError, RetrievalError, in_brief, optional
from boolbert.retrieval.store_names import no_address

from .base import WAIT

# Seconds that a statement may take where neither the role nor the database has a statement_timeout. What a batch writes
# may wait until another process has made the index of neighbours, and a table of the user's may be a slow view.
LIMITS = {"search": 300.0, "batch": 3600.0, "table": 3600.0}
SPARE = 10.0  # more before the connection is shut: a server that is well ends a statement by itself
# A machine that is gone is noticed after two minutes, and not after two hours.
_ALIVE = {"keepalives_idle": "60", "keepalives_interval": "10", "keepalives_count": "6"}


class PostgresConnection:
    """A connection, each of whose statements ends by itself. place: the address as it is shown."""

    def __init__(self, uri: str, place: str, wait: float = WAIT):
        psycopg = self._psycopg = optional("psycopg", "psycopg", "postgres")
        try:
            settings = {"connect_timeout": max(1, round(wait)), **_ALIVE, **psycopg.conninfo.conninfo_to_dict(uri)}
            self.raw: Any = psycopg.connect(**settings, autocommit=True)
        except psycopg.OperationalError as error:
            raise RetrievalError(f"{place}: cannot be reached: {_last_line(error)}") from None
        except psycopg.Error:  # its message may quote the password
            raise no_address(uri) from None
        with one_line_errors(place), self._shut_after(max(1.0, wait), place):
            found = self.raw.execute("SELECT setting::float8 / 1000 FROM pg_settings WHERE name = 'statement_timeout'")
            self._own = float(found.fetchone()[0])  # the limit that the user has set, 0 where there is none
            if not self._own:
                self.raw.execute(f"SET statement_timeout = {round(LIMITS['search'] * 1000)}")

    @contextmanager
    def transaction(self, name: str, what: str | None = "search") -> Iterator[Any]:
        """psycopg's connection; what it does is there when this ends, or nothing of it.

        name: what errors begin with. what: one of LIMITS; None: it takes as long as it takes.
        """
        seconds = None if what is None else max(self._own, LIMITS[what])
        limit = self._own or seconds
        with one_line_errors(name, limit), self._shut_after(seconds, name), self.raw.transaction():
            if what != "search" and not self._own:
                self.raw.execute(f"SET LOCAL statement_timeout = {round((limit or 0) * 1000)}")
            yield self.raw

    @contextmanager
    def _shut_after(self, seconds: float | None, name: str) -> Iterator[None]:
        """Shut the connection where the server has not answered by then: one that hangs, or sends a byte now and then,
        would never be given up."""
        is_late = threading.Event()

        def shut() -> None:
            is_late.set()
            with suppress(OSError, self._psycopg.Error), socket.socket(fileno=os.dup(self.raw.fileno())) as own:
                own.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(0.0 if seconds is None else seconds + SPARE, shut)
        timer.daemon = True
        try:
            if seconds is not None:
                timer.start()
            yield
        except self._psycopg.Error:
            if is_late.is_set():
                raise _late(name, seconds) from None
            raise
        finally:
            timer.cancel()

    @property
    def closed(self) -> bool:
        return bool(self.raw.closed)

    def close(self) -> None:
        self.raw.close()


@contextmanager
def one_line_errors(name: str, limit: float | None = None) -> Iterator[None]:
    """Around calls of Postgres: an error is one line. limit: seconds after which a statement is ended."""
    psycopg = optional("psycopg", "psycopg", "postgres")
    try:
        yield
    except BoolBertError:
        raise
    except psycopg.errors.QueryCanceled as error:
        if limit is None or "statement timeout" not in str(error):
            raise RetrievalError(f"{name}: Postgres says: {in_brief(error)}") from None
        raise _late(name, limit) from None
    except psycopg.Error as error:
        said = getattr(error.diag, "message_primary", None) or in_brief(error)
        raise RetrievalError(f"{name}: Postgres says: {said}") from None


def _late(name: str, seconds: float | None) -> RetrievalError:
    return RetrievalError(
        f"{name}: Postgres has not answered within {seconds:,g} seconds; ALTER ROLE ... SET statement_timeout = '1h' "
        "allows more"
    )


def _last_line(error: BaseException) -> str:
    """What the server said of the last address that was tried."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if "FATAL" in line), lines[0] if lines else type(error).__name__)
    return said[-300:].rpartition("FATAL:")[2].strip()
