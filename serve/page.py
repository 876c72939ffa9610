"""The page itself, in Gradio, and its API.

boolbert serve                       # the embedded countries, on http://127.0.0.1:7860
boolbert serve --index my_index      # a folder of `boolbert index`
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from boolbert.composing_boolbert import PENALISED_SHARE
from boolbert.core.errors import BoolBertError

from .engine import LONGEST_SERVED_QUERY, Engine, error_line
from .guard import Guard, own_names
from .view import CLICKS, CSS, HEAD, error_html, examples_html, reading_html, results_html

WAITING = 64  # searches that may wait for their turn; more are refused
RESULTS = 10
EXAMPLES = (
    "island countries that are not monarchies",
    "landlocked countries in Africa that are not former British colonies",
    "monarchies that are not in Europe",
    "islands in the Caribbean or in the Pacific",
)


@dataclass(frozen=True)
class Shown:
    """What the page shows: a query, its excluded words, whether they were clicked, and a strength if it was set.

    violations: the share of the results that may have what is excluded; None: no line is drawn.
    """

    query: str = ""
    excluded: tuple[int, ...] = ()
    by_hand: bool = False
    strength: float | None = None
    violations: float | None = None

    def asks(self, query: str, excluded: tuple[int, ...] = (), by_hand: bool = False) -> "Shown":
        """Another query, or the same with other words excluded; what was set stays."""
        return replace(self, query=query, excluded=excluded, by_hand=by_hand)


def build_page(engine: Engine, examples: Sequence[str]) -> Any:
    """The Gradio page over an engine."""

    def show(shown: Shown, request: gr.Request) -> tuple[Any, ...]:
        excluded = list(shown.excluded) if shown.by_hand else None
        try:
            limits = (shown.strength, excluded, shown.violations)
            found = engine.search(shown.query, RESULTS, *limits, address=_address(request))
        except Exception as error:
            return error_html(error_line(error)), "", gr.skip(), shown
        words = tuple(number for number, word in enumerate(found.reading.words) if word.excluded)
        shown = shown.asks(found.reading.text, words, shown.by_hand)
        slider = gr.skip() if found.not_weight is None else gr.update(value=round(found.not_weight, 2))
        return reading_html(found, shown.by_hand), results_html(found), slider, shown

    def ask(query: str, shown: Shown, request: gr.Request) -> tuple[Any, ...]:
        return show(shown.asks(query), request)

    def ask_example(shown: Shown, request: gr.Request, event: gr.EventData) -> tuple[Any, ...]:
        number = _number(event)
        if number is None or not 0 <= number < len(examples):
            return gr.skip(), gr.skip(), gr.skip(), shown, gr.skip()
        return *show(shown.asks(examples[number]), request), examples[number]

    def click_word(shown: Shown, request: gr.Request, event: gr.EventData) -> tuple[Any, ...]:
        word = _number(event)
        if word is None:
            return gr.skip(), gr.skip(), gr.skip(), shown
        if word < 0:  # as the model reads it
            return show(shown.asks(shown.query), request)
        words = tuple(sorted(set(shown.excluded) ^ {word}))
        return show(shown.asks(shown.query, words, True), request)

    def set_strength(strength: float, shown: Shown, request: gr.Request) -> tuple[Any, ...]:
        # Back at the learned strength, the model searches with its penalty again.
        return again(replace(shown, strength=None if strength == _learned(engine) else strength), request)

    def set_violations(violations: float, shown: Shown, request: gr.Request) -> tuple[Any, ...]:
        return again(replace(shown, violations=violations or None), request)

    def again(shown: Shown, request: gr.Request) -> tuple[Any, ...]:
        return show(shown, request) if shown.query else (gr.skip(), gr.skip(), gr.skip(), shown)

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

    with gr.Blocks(title="Bool-BERT", analytics_enabled=False) as page:
        gr.HTML(HEAD)
        state = gr.State(Shown())
        with gr.Row(equal_height=True):
            query = gr.Textbox(
                placeholder="islands that are not monarchies",
                label="Query",
                show_label=False,
                max_length=LONGEST_SERVED_QUERY,
                lines=1,
                max_lines=3,
                scale=6,
                min_width=200,
                container=False,
                elem_id="query",
            )
            button = gr.Button("Search", variant="primary", scale=1, min_width=90, elem_id="search")
        tried = gr.HTML(examples_html(examples), js_on_load=CLICKS, visible=bool(examples))
        reading = gr.HTML(js_on_load=CLICKS, elem_id="reading")
        slider = gr.Slider(
            0, 1, value=_learned(engine), step=0.05, label="How strongly to exclude", buttons=[], elem_id="strength"
        )
        promises = _promises(engine)
        line = gr.Radio(
            [("any", 0.0), *((f"at most {promise:.0%}", promise) for promise in promises)],
            value=0.0,
            label="Results that may have what is excluded",
            visible=bool(promises),
            elem_id="violations",
        )
        results = gr.HTML(js_on_load=None, elem_id="results")

        outputs = [reading, results, slider, state]
        private: dict[str, Any] = {"outputs": outputs, "api_visibility": "private", "show_progress": "minimal"}
        gr.on([query.submit, button.click], ask, [query, state], **private)
        tried.click(ask_example, [state], **{**private, "outputs": [*outputs, query]})
        reading.click(click_word, [state], **private)
        slider.release(set_strength, [slider, state], **private)
        line.input(set_violations, [line, state], **private)
        gr.api(search, api_name="search")
    return page.queue(max_size=WAITING, default_concurrency_limit=2)


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
    page = build_page(engine, examples)
    page.launch(
        server_name=host,
        server_port=port,
        share=False,
        quiet=True,
        prevent_thread_lock=True,
        app_kwargs={"middleware": [Middleware(Guard, names=own_names(host, allowed_hosts))]},
        footer_links=["api"],
        ssr_mode=False,
        mcp_server=False,
        run_history=False,
        enable_monitoring=False,
        max_file_size=1,
        css=CSS,
        theme=gr.themes.Default(
            primary_hue="blue", font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
        ),
    )
    if wait:
        print(f"The page is at {page.local_url} (Ctrl-C ends it)", flush=True)
        page.block_thread()
    return page


def _learned(engine: Engine) -> float:
    """Where the slider stands at first."""
    try:
        bert = engine.open()[0].model.bert
    except (BoolBertError, OSError):
        return 0.0
    if bert is None:
        return 0.0
    return round(bert.config.exclusion_weight * (PENALISED_SHARE if bert.composer.has_penalty else 1.0), 2)


def _promises(engine: Engine) -> list[float]:
    """The shares of violations that the index is calibrated for, the largest first."""
    try:
        return engine.open()[0].line.promises[::-1]
    except (BoolBertError, OSError):
        return []


def _number(event: Any) -> int | None:
    """The number of what was clicked."""
    number = event._data.get("number") if isinstance(event._data, dict) else None
    return number if type(number) is int else None


def _address(request: Any) -> str:
    return str(getattr(getattr(request, "client", None), "host", "") or "")
