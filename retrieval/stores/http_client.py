"""Calls of a server that takes and gives JSON, with the standard library alone; every error is one line."""

import base64
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from boolbert.core.errors import RetrievalError, in_brief

from .elasticsearch_answers import BadAnswer, inside, read_json
from .time_limit import LONGEST, within

PORT = 9200
_ABSENT = object()


class HttpClient:
    """The server of an address such as elasticsearch+https://me@host:9200.

    place: the address as it is shown. token: an API key, or the password of the address's user where it has a user.
    """

    def __init__(self, address: str, place: str, product: str, token: str | None, wait: float):
        self._place, self._product, self._wait = place, product, wait
        self._connections = threading.local()  # one for each thread, which stays open
        try:
            parts = urlsplit(address.partition("+")[2])
            self._parts, self._port = parts, parts.port or PORT
        except ValueError:
            raise self._no_address() from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise self._no_address()
        self._headers = {"Accept": "application/json", **_authorization(parts, token)}

    def _no_address(self) -> RetrievalError:
        return RetrievalError(
            f"{self._place}: cannot be read as the address of a server; expected "
            f"{self._product.lower()}+https://user@host:{PORT}"
        )

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        read: Callable[[Any], Any],
        missing: Any = _ABSENT,
        taken: str | None = None,
    ) -> Any:
        """What `read` makes of the server's answer. body: an object, or a list of objects, which are sent one in each
        line.

        missing: what to return where the server has no such index. taken: None is returned for this type of error.
        """
        content, headers = None, dict(self._headers)
        if isinstance(body, Mapping):
            content, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        elif body is not None:
            content = "".join(json.dumps(line) + "\n" for line in body).encode()
            headers["Content-Type"] = "application/x-ndjson"
        status, text = self._sent(method, self._parts.path.rstrip("/") + path, content, headers)
        if status in (401, 403):
            raise self._refused(status)
        try:
            answer = read_json(text)
            error = inside(answer, "error")
            if missing is not _ABSENT and inside(error, "type") == "index_not_found_exception":
                return missing
            if taken is not None and inside(error, "type") == taken:
                return None
            if error:
                raise self.said(error)
            if not 200 <= status < 300:
                raise BadAnswer(f"answers with status {status} and without an error")
            return read(answer)
        except BadAnswer as problem:
            raise RetrievalError(f"{self._place}: {self._product} {problem}") from None

    def said(self, error: Any) -> RetrievalError:
        """An error of the server, as one line."""
        causes = [error, inside(error, "caused_by")]
        causes += roots if isinstance(roots := inside(error, "root_cause"), list) else []
        reasons = [str(reason) for one in causes if (reason := inside(one, "reason"))]
        said = ": ".join(dict.fromkeys(reasons)) or str(inside(error, "type") or error)
        return RetrievalError(f"{self._place}: {self._product} says: {' '.join(said.split())[:300]}")

    def _refused(self, status: int) -> RetrievalError:
        if status == 403:
            return RetrievalError(f"{self._place}: the server does not allow this user to do that")
        holder = "OPENSEARCH_PASSWORD" if self._product == "OpenSearch" else "ELASTICSEARCH_API_KEY"
        return RetrievalError(
            f"{self._place}: the server refuses the user, the password or the key; the address has the first two, "
            f"and {holder} holds the {'password' if self._product == 'OpenSearch' else 'key'}"
        )

    def _sent(self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Status and text of an answer. A connection that the server has closed meanwhile is opened again."""
        connection = getattr(self._connections, "open", None)
        is_kept = connection is not None
        try:
            if connection is None:
                connection = self._connections.open = self._new_connection()
            return within(LONGEST * self._wait, lambda: self._exchanged(connection, method, path, content, headers))
        except BaseException as error:
            self._abandon()  # what it has not answered yet must not be read as the answer to another request
            if is_kept and isinstance(error, http.client.RemoteDisconnected | ConnectionError):
                return self._sent(method, path, content, headers)
            if isinstance(error, http.client.HTTPException | OSError | UnicodeError):  # the last of a host's name
                raise self._unreachable(error) from None
            raise

    def _new_connection(self) -> http.client.HTTPConnection:
        host = str(self._parts.hostname)
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, self._port, timeout=self._wait)
        return http.client.HTTPSConnection(host, self._port, timeout=self._wait, context=ssl.create_default_context())

    def _exchanged(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[int, bytes]:
        if connection.sock is None:
            connection.connect()
            assert connection.sock is not None
            connection.sock.settimeout(6 * self._wait)  # a search or a bulk may take longer than to be reached
        connection.request(method, path, content, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()

    def _abandon(self) -> None:
        """Forget a connection on which another thread may still wait."""
        connection = getattr(self._connections, "open", None)
        self._connections.open = None
        if connection is not None:
            with suppress(OSError):
                if connection.sock is not None:
                    connection.sock.shutdown(socket.SHUT_RDWR)  # wakes that thread
            connection.close()

    def _unreachable(self, error: BaseException) -> RetrievalError:
        hint = ""
        if isinstance(error, ssl.SSLCertVerificationError):
            hint = "; SSL_CERT_FILE names the file of your certificate authority"
        return RetrievalError(f"{self._place}: cannot be reached: {in_brief(error)}{hint}")

    def close(self) -> None:
        self._abandon()


def _authorization(parts: SplitResult, token: str | None) -> dict[str, str]:
    """
    >>> _authorization(urlsplit("https://me:b%40d@host"), None), _authorization(urlsplit("https://host"), "key")
    ({'Authorization': 'Basic bWU6YkBk'}, {'Authorization': 'ApiKey key'})
    """
    if parts.username:
        password = unquote(parts.password) if parts.password is not None else token or ""
        return {"Authorization": f"Basic {base64.b64encode(f'{unquote(parts.username)}:{password}'.encode()).decode()}"}
    return {"Authorization": f"ApiKey {token}"} if token else {}
