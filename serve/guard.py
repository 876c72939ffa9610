"""What a request may be: small, and for nothing but the page itself. No file goes in, and none comes out."""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

LARGEST = 64 * 1024  # bytes of a request
# Gradio's doors for files, streams and other servers. This page has no use for them.
CLOSED = re.compile(
    r"/(?:gradio_api/)?(?:upload|upload_progress|file=.*|file/.*|proxy=.*|stream/.*|component_server|custom_component/.*"
    r"|process_recording|monitoring.*|deep_link|dev/.*|run-history/.*)/?",
    re.DOTALL,
)
CALLS = re.compile(r"/gradio_api/(?:call|run|api|queue)/.*", re.DOTALL)
UNKNOWN = ("FnIndexInferError", "KeyError")  # what Gradio raises for a call that the page does not have

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Guard:
    """ASGI middleware that answers what is closed with 403, what is too large with 413, and unknown calls with 404."""

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
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


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = reason.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
