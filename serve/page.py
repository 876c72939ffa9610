"""The page itself, and its API: one address for the page, on Gradio's server, which has the API.

boolbert serve                       # the embedded countries, on http://127.0.0.1:7860
boolbert serve --index my_index      # a folder of `boolbert index`
"""

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Any

import gradio as gr
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from .asked import RESULTS, Asked
from .engine import Engine, error_line
from .guard import Guard, own_names
from .view import POLICY, page_html

WAITING = 64  # searches that may wait for their turn; more are refused
AT_ONCE = 2  # searches that run
BUSY = "Many people are searching; try again in a moment."
GONE = 499  # the status of an answer that nobody waits for
EXAMPLES = (
    "island countries that are not monarchies",
    "landlocked countries in Africa that are not former British colonies",
    "monarchies that are not in Europe",
    "islands in the Caribbean or in the Pacific",
)


class Page:
    """What the address of the page answers: the whole page, with the results of what the address asks for."""

    def __init__(self, engine: Engine, examples: Sequence[str]):
        self.engine, self.examples = engine, examples
        self.turns, self.waiting = asyncio.Semaphore(AT_ONCE), 0

    async def __call__(self, request: Request) -> Response:
        """The answer to a request. A search that was given up while it waited for its turn is not begun."""
        if request.method == "HEAD":  # is the server there?
            return _html("")
        asked = Asked.of(request.query_params)
        if not asked.query:
            return _html(await run_in_threadpool(self.shown, asked))
        if self.waiting >= WAITING:
            return _html(await run_in_threadpool(self.shown, asked, error=BUSY))
        self.waiting += 1
        try:
            async with self.turns:
                if await request.is_disconnected():
                    return Response(status_code=GONE)
                return _html(await run_in_threadpool(self.searched, asked, _address(request)))
        finally:
            self.waiting -= 1

    def searched(self, asked: Asked, address: str) -> str:
        """The page with the results of what is asked, or with what is wrong with it."""
        began = time.perf_counter()
        try:
            found = self.engine.search(asked.query, **asked.limits(), address=address)
        except Exception as error:
            return self.shown(asked, error=error_line(error))
        return self.shown(asked, found=found, seconds=time.perf_counter() - began)

    def shown(self, asked: Asked, **answer: Any) -> str:
        return page_html(asked, self.engine.collection(), self.examples, **answer)


def build_api(engine: Engine) -> Any:
    """Gradio's app, which has the API alone."""

    def search(
        request: gr.Request,
        query: str,
        k: int = RESULTS,
        strength: float | None = None,
        excluded: list[int] | None = None,
        violations: float | None = None,
    ) -> dict[str, Any]:
        """How a query is read, and its results with and without its operators.

        strength: how strongly what NOT excludes is taken away; as learned if not given. excluded: the numbers of the
        words that NOT excludes, from 0 in "words", instead of those that the model finds. violations: leave out
        documents so that at most this share of the results should have what is excluded, where the index is calibrated.
        """
        try:
            found = engine.search(query, k, strength, excluded, violations, address=_address(request)).as_json()
        except Exception as error:
            raise gr.Error(error_line(error), print_exception=False) from None
        return {name: value for name, value in found.items() if name != "attention"}

    with gr.Blocks(title="Bool-BERT", analytics_enabled=False) as api:
        gr.api(search, api_name="search")
    return api.queue(max_size=WAITING, default_concurrency_limit=AT_ONCE)


def serve(
    engine: Engine,
    examples: Sequence[str],
    *,
    host: str | None = None,
    port: int | None = None,
    trusted_proxy: str | None = None,
    allowed_hosts: Sequence[str] = (),
    wait: bool = True,
) -> Any:
    """Open the page. Without a host it is this machine alone that can reach it, unless GRADIO_SERVER_NAME says more.

    trusted_proxy: the addresses whose X-Forwarded-For tells where a request comes from; none if not given, unless
    FORWARDED_ALLOW_IPS names some. Whoever is believed there can be a new address with each search. allowed_hosts:
    other names by which the page may be asked, such as a proxy's (`own_names` has the rest).
    """
    if trusted_proxy is not None:
        os.environ["FORWARDED_ALLOW_IPS"] = trusted_proxy
    else:
        os.environ.setdefault("FORWARDED_ALLOW_IPS", "")  # uvicorn would believe every program of this machine
    engine.collection()  # opens it, so that no request has to wait for that
    api = build_api(engine)
    api.launch(
        server_name=host,
        server_port=port,
        share=False,
        quiet=True,
        prevent_thread_lock=True,
        app_kwargs={
            "routes": [Route("/", Page(engine, examples).__call__)],  # before Gradio's own page
            "middleware": [Middleware(Guard, names=own_names(host, allowed_hosts))],
        },
        ssr_mode=False,
        mcp_server=False,
        run_history=False,
        enable_monitoring=False,
        max_file_size=1,
    )
    if wait:
        print(f"The page is at {api.local_url} (Ctrl-C ends it)", flush=True)
        api.block_thread()
    return api


def _html(content: str) -> HTMLResponse:
    return HTMLResponse(content, headers={"content-security-policy": POLICY, "cache-control": "no-store"})


def _address(request: Any) -> str:
    return str(getattr(getattr(request, "client", None), "host", "") or "")
