"""What a request may be: small, asked by one of the page's names, and for nothing but the page itself. No file goes in,
and none comes out."""

import os
import re
import socket
from collections.abc import Awaitable, Callable, Collection, MutableMapping, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from boolbert.core.terminal import fitted

LARGEST = 64 * 1024  # bytes of a request
# Gradio's doors for files, streams and other servers. This page has no use for them.
CLOSED = re.compile(
    r"/(?:gradio_api/)?(?:upload|upload_progress|file=.*|file/.*|proxy=.*|stream/.*|component_server|custom_component/.*"
    r"|process_recording|monitoring.*|deep_link|dev/.*|run-history/.*)/?",
    re.DOTALL,
)
CALLS = re.compile(r"/gradio_api/(?:call|run|api|queue)/.*", re.DOTALL)
UNKNOWN = ("FnIndexInferError", "KeyError")  # what Gradio raises for a call that the page does not have

ANY = "*"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def own_names(host: str | None, allowed: Sequence[str]) -> frozenset[str]:
    """The names by which the page may be asked, besides "localhost" and addresses of numbers.

    A page elsewhere can let its own name stand for this machine, and would then be let in by the browser. host: what
    the server listens on. allowed: what a proxy in front of it is called. A Space has a proxy that alone reaches it.
    """
    own = socket.gethostname().lower()
    listens = host or os.environ.get("GRADIO_SERVER_NAME", "")
    any_name = [ANY] if os.environ.get("SPACE_ID") else []
    return frozenset((own, f"{own.partition('.')[0]}.local", listens.lower(), *map(str.lower, allowed), *any_name))


class Guard:
    """ASGI middleware that answers what is asked by another name with 421, what another page asks and what is closed
    with 403, what is too large with 413, and unknown calls with 404. names: of `own_names`."""

    def __init__(self, app: Any, names: Collection[str] = ()):
        self.app, self.names = app, names

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
        elif refused := self._refused(scope):
            await _refuse(send, *refused, is_socket=scope["type"] == "websocket")
        elif scope["type"] == "websocket":
            await self.app(scope, receive, send)
        elif CLOSED.fullmatch(scope["path"]):
            await _refuse(send, 403, "this page takes and gives no files")
        elif scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
        else:
            body = await self._whole_body(receive)
            if body is None:
                await _refuse(send, 413, f"a request may have {LARGEST // 1024} kB")
            else:
                await self._call(scope, _replayed(body, receive), send)

    def _refused(self, scope: Message) -> tuple[int, str] | None:
        """Why a request is not for this page, or is another page's."""
        if ANY in self.names:
            return None
        sent = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if "host" not in sent:  # every browser says it
            return None
        host = _name_in(f"//{sent['host']}")
        if not (_is_here(host) or _is_address(host) or host in self.names):
            shown = fitted(sent["host"], 100)
            return 421, f"this page is not {shown}; if it should be, start it with --allowed-host {fitted(host, 100)}"
        origin = _name_in(sent["origin"]) if "origin" in sent else host
        if origin == host or (origin and origin in self.names) or (_is_here(origin) and _is_here(host)):
            return None
        return 403, f"pages of {fitted(sent['origin'], 100)} may not ask this one; --allowed-host lets them"

    async def _call(self, scope: Message, receive: Receive, send: Send) -> None:
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception as error:
            if has_begun or type(error).__name__ not in UNKNOWN or not CALLS.fullmatch(scope["path"]):
                raise
            await _refuse(send, 404, "this page has no such call; its API has /search alone")

    async def _whole_body(self, receive: Receive) -> bytes | None:
        """The request's body, or None as soon as it is too large, whatever length its header claims."""
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > LARGEST:
                return None
            if message["type"] != "http.request" or not message.get("more_body", False):
                return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _name_in(address: str) -> str:
    """The name in an address, in small letters; "" where there is none.

    >>> [_name_in(address) for address in ("//LocalHost:7860", "http://[::1]:80", "null", "//a b", "//[::1")]
    ['localhost', '::1', '', '', '']
    """
    try:
        parts = urlsplit(address)
        name = (parts.hostname or "").removesuffix(".")
    except ValueError:
        return ""
    is_plain = re.fullmatch(r"[\w.:%-]+", name) and not (parts.path or parts.query or parts.fragment or parts.username)
    return name if is_plain else ""


def _is_here(name: str) -> bool:
    """Whether a name can only mean the machine that asks."""
    return name == "localhost" or name.endswith(".localhost") or (_is_address(name) and ip_address(name).is_loopback)


def _is_address(name: str) -> bool:
    """Whether a name is an address of numbers, which stands for no other machine."""
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


async def _refuse(send: Send, status: int, reason: str, *, is_socket: bool = False) -> None:
    if is_socket:
        await send({"type": "websocket.close", "code": 1008, "reason": reason[:100]})
        return
    body = reason.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
