"""The page in a real browser, and its API. Needs gradio; the browser's tests need playwright and Debian's chromium too.

make test-frameworks; apt-get install chromium
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from search_fixtures import QUERY

import boolbert

pytest.importorskip("gradio", reason="THE PAGE IS NOT TESTED: gradio is missing; pip install 'boolbert[serve]'")

from boolbert.serve.engine import UNREADABLE
from boolbert.serve.page import serve

ROOT = Path(boolbert.__file__).parent.resolve()
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1100, "height": 900}
EVIL = "<script>alert(1)</script> ${alert(1)} {{constructor.constructor('alert(1)')()}} <img src=x onerror=alert(1)>"
HOSTELS = [
    ("Alpenblick", "A hostel by the lake. It has a heated pool in the garden. Breakfast is included.", 45, "Graz"),
    ("Zum Anker", "A hostel by the river. No pool. Dogs are welcome. There is a bar on the roof.", 28, "Linz"),
    ("Nordlicht", "A quiet hostel. The outdoor pool opens in June. Bikes can be rented at the desk.", 62, "Graz"),
    ("Sonnenhof", "A hostel near the station. There is a bar on the roof. Pets are not allowed.", 35, "Wien"),
    ("Kupferkessel", "A hostel in an old brewery. A shared kitchen stands on each floor.", 22, "Wien"),
    *(
        (f"Haus {number}", f"A hostel with {number} beds. Rooms look over the river.", 50 + number, "Linz")
        for number in range(15)
    ),
]
EXAMPLES = ["films or books", "films, not war"]


@pytest.fixture
def address(engine):
    page = serve(engine, EXAMPLES, wait=False)
    yield page.local_url.rstrip("/")
    page.close()


@pytest.fixture(scope="module")
def hostels(tmp_path_factory):
    """A page over hostels of our own, searched by the model that ships."""
    from boolbert.retrieval.models import default_model
    from boolbert.search import BoolSearcher, build_index
    from boolbert.serve.engine import Engine

    folder = tmp_path_factory.mktemp("hostels")
    lines = [{"title": title, "text": text, "price": price, "city": city} for title, text, price, city in HOSTELS]
    (folder / "hostels.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    build_index(folder / "hostels.jsonl", folder / "hostels", default_model("cpu"), progress=False)
    searcher = BoolSearcher(index=folder / "hostels", progress=False)
    page = serve(Engine(lambda: (searcher, None)), (), wait=False)
    yield page.local_url.rstrip("/")
    page.close()


@pytest.fixture
def open_page(address):
    """A function that opens the page in a window of some size; nothing may go wrong in the browser's console."""
    api = pytest.importorskip("playwright.sync_api", reason="THE PAGE WAS NOT OPENED: playwright is missing")
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("THE PAGE WAS NOT OPENED: chromium is missing; apt-get install chromium")
    problems = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])

        def open_window(size=DESKTOP, path="/", at=address, **how):
            page = browser.new_page(viewport=size, **how)
            page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
            page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.goto(at + path)
            return page

        yield open_window
        browser.close()
    assert [one for one in problems if "net::ERR_FAILED" not in one] == []  # what a test cuts off itself


def ask(page, query):
    page.fill("#query", query)
    page.press("#query", "Enter")
    expect_query(page, query)


def expect_query(page, query):
    """The results of a query are shown, and nothing else is on its way."""
    page.wait_for_function(
        "query => document.querySelector('.query')?.innerText === query && !document.body.hasAttribute('aria-busy')",
        arg=query,
    )


def expect_titles(page, column, changes):
    from playwright.sync_api import expect

    expect(page.locator(f"#{column} .title")).to_have_text([change.hit.title for change in changes])


def pressed(page):
    return page.locator("[aria-pressed=true]").all_inner_texts()


def slow_down(monkeypatch, engine, seconds, *queries):
    """Let the engine take longer for some queries; the queries that it is asked are added to what is returned."""
    search, asked = engine.search, []

    def slow(query, **how):
        asked.append(query)
        time.sleep(seconds if query in queries else 0)
        return search(query, **how)

    monkeypatch.setattr(engine, "search", slow)
    return asked


def test_the_latest_of_several_queries_wins(open_page, engine, monkeypatch):
    page = open_page()
    found = engine.search("books")
    asked = slow_down(monkeypatch, engine, 1.0, "films", "a", "b")
    for query in ("films", "a", "b", "books"):
        page.fill("#query", query)
        page.press("#query", "Enter")
    expect_query(page, "books")
    time.sleep(1.5)  # the others' answers would come now
    expect_query(page, "books")
    expect_titles(page, "ours", found.after)
    assert page.input_value("#query") == "books"
    assert asked == ["films", "a", "books"]  # two ran; the third was given up before its turn


def test_each_of_two_words_that_are_clicked_at_once_counts(open_page, engine, monkeypatch):
    page = open_page()
    ask(page, "films and books")
    found = engine.search("films and books", excluded=[0, 2])
    slow_down(monkeypatch, engine, 0.5, "films and books")
    page.click("[data-word='0']")
    page.click("[data-word='2']")
    page.wait_for_function("() => new URLSearchParams(location.search).get('excluded') === '0,2'")
    expect_titles(page, "ours", found.after)
    assert pressed(page) == ["films", "books"]


def test_reload_back_and_a_shared_link_show_the_same(open_page, engine):
    page = open_page()
    ask(page, "books or films")
    ask(page, QUERY)
    before = pressed(page)
    page.click("[data-word='0']")
    page.wait_for_selector("[data-word='0'][aria-pressed=true]")
    excluded = [number for number, word in enumerate(engine.search(QUERY).reading.words) if word.excluded]
    expect_titles(page, "ours", engine.search(QUERY, excluded=[0, *excluded]).after)

    page.reload()
    for shown in (page, open_page(path=page.evaluate("location.search"))):
        expect_titles(shown, "ours", engine.search(QUERY, excluded=[0, *excluded]).after)
        assert shown.input_value("#query") == QUERY
        assert pressed(shown) == ["films", *before]

    page.go_back()
    page.wait_for_selector("[data-word='0'][aria-pressed=false]")
    assert pressed(page) == before
    page.go_back()
    expect_query(page, "books or films")
    assert page.input_value("#query") == "books or films"
    page.go_forward()
    expect_query(page, QUERY)
    expect_titles(page, "ours", engine.search(QUERY).after)


def test_what_stands_beside_the_results_is_true_of_them(open_page, hostels):
    page = open_page(at=hostels)
    ask(page, "hostels without a pool")
    shown = page.locator("#answer").inner_text()
    assert "Documents that seem to have “pool” rank lower." in shown
    for title in page.locator("#ours .broken .title, #plain .broken .title").all_inner_texts():
        assert title in ("Alpenblick", "Nordlicht")
    assert page.locator("#plain .broken").count() > page.locator("#ours .broken").count()
    count = page.locator("#plain .broken").count()
    assert page.locator("#plain .count").inner_text() == f"{count} of 10 seem to have “pool”"

    ask(page, "bar on the roof")  # no operator, and the lists differ: documents are read
    assert "plain encoder." not in page.locator("#answer").inner_text()
    assert page.locator("#ours .count").inner_text() == "what documents say counts too"

    for number in range(4):
        page.click(f"[data-word='{number}']")
    page.wait_for_selector("text=Every word is excluded, so there is nothing to search for.")
    assert page.locator("#answer li").count() == 0
    assert "“”" not in page.locator("#answer").inner_text()


def test_a_model_that_is_slow_to_open_does_not_keep_the_page_from_starting(engine):
    """Gradio gives its own server up that does not answer within some seconds."""
    from boolbert.serve.engine import Engine

    page = serve(Engine(lambda: (time.sleep(20), engine.open_searchers())[1]), (), wait=False)
    try:
        assert asked(page.local_url.rstrip("/")) == 200
    finally:
        page.close()


def test_former_colonies_are_counted_as_what_they_are(open_page):
    from boolbert.search import BoolSearcher
    from boolbert.serve.engine import Engine

    page = serve(Engine(lambda: (BoolSearcher(progress=False), None)), (), wait=False)
    try:
        window = open_page(at=page.local_url.rstrip("/"))
        ask(window, "landlocked countries in Africa that are not former British colonies")
        assert window.locator("#ours .count").inner_text() == "0 of 10 are former British colonies"
        assert window.locator("#plain .count").inner_text().endswith(" of 10 are former British colonies")
        assert window.locator("#plain .broken").count() > 0
        assert window.is_visible("text=Documents that are “former British colonies” rank lower.")
    finally:
        page.close()


def test_how_strongly_to_exclude_is_set_by_arrow_keys_and_by_typing(open_page, engine):
    page = open_page()
    ask(page, QUERY)
    learned = engine.search(QUERY)
    page.focus("#range")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("text=You have set how strongly to exclude")
    strength = int(page.input_value("#range"))
    assert page.input_value("#strength") == str(strength)
    expect_titles(page, "ours", engine.search(QUERY, strength=strength / 100).after)
    assert page.evaluate("document.activeElement.id") == "range"

    page.fill("#strength", "100")  # without leaving the field
    page.wait_for_selector("text=− 1.00 ×", state="attached")
    assert page.input_value("#range") == "100"
    expect_titles(page, "ours", engine.search(QUERY, strength=1.0).after)

    page.fill("#strength", "700")
    page.wait_for_selector(".error")
    assert page.locator(".error").all_inner_texts() == ["How strongly to exclude goes from 0 to 100, got 700"]
    page.fill("#strength", "7")
    page.wait_for_selector("text=− 0.07 ×", state="attached")
    assert page.locator(".error").count() == 0

    page.click("text=As learned")
    page.wait_for_selector("text=You have set", state="detached")
    expect_titles(page, "ours", learned.after)
    assert page.input_value("#strength") == ""
    assert abs(int(page.input_value("#range")) - 100 * learned.not_weight) <= 2.5  # its steps are of 5
    ask(page, "books")  # excludes nothing: there is nothing to set
    assert not page.is_visible("#range")


def test_the_page_speaks_of_its_own_documents_in_a_persons_words(open_page, hostels):
    page = open_page(at=hostels)
    assert page.title() == "Bool-BERT"
    assert "“Alpenblick”" in page.get_attribute("#query", "placeholder")
    for query in ("hostels under 50 euros without a pool", "hostels with 3 or 4 stars", "hostels opened before 1990"):
        ask(page, query)
        assert page.title() == f"{query} · Bool-BERT"
        shown = page.locator("body").inner_text()
        for word in ("--", "query vector", "NOT excludes", "encoder's list", "gate"):
            assert word not in shown
    page.fill("#query", "long " * 1000)
    page.press("#query", "Enter")
    page.wait_for_selector(".error")
    assert page.locator(".error").inner_text() == "The query has 5,000 letters; at most 500 are read here."
    assert len(page.input_value("#query")) == 5000  # nothing of it is taken away


def test_a_filter_is_taken_off_by_a_click(open_page, hostels):
    page = open_page(at=hostels)
    ask(page, "hostels under 50 euros, without a pool")
    cheap = {title for title, _, price, _ in HOSTELS if price < 50}
    titles = page.locator("#ours .title")
    assert set(titles.all_inner_texts()) == cheap
    page.click("text=price < 50")
    expect_query(page, "hostels, without a pool")
    assert page.input_value("#query") == "hostels, without a pool"
    assert titles.count() == 10
    assert pressed(page) == ["pool"]
    page.go_back()
    page.wait_for_selector("text=price < 50")
    assert set(titles.all_inner_texts()) == cheap


def test_the_page_is_as_wide_with_results_as_without(open_page, hostels):
    page = open_page(at=hostels)
    widths = [page.locator("#answer").bounding_box()["width"]]
    for query in ("hostels without a pool", "long " * 200):
        page.fill("#query", query)
        page.press("#query", "Enter")
        page.wait_for_selector(".error" if query.startswith("long") else "#ours li")
        widths.append(page.locator("#answer").bounding_box()["width"])
    assert widths == [widths[0]] * 3
    assert widths[0] > 900


def test_a_snippet_is_grey_and_says_what_the_reason_does_not(open_page, hostels):
    page = open_page(at=hostels)
    ask(page, "hostels without a pool")
    title, snippet = page.locator("#ours .title").first, page.locator("#ours .snippet").first
    colour = "node => getComputedStyle(node).color"
    assert snippet.evaluate(colour) != title.evaluate(colour)
    for result in page.locator("#ours li, #plain li").all():
        for clause in result.locator("summary q").all_text_contents():
            assert all(clause not in text for text in result.locator(".snippet").all_text_contents())
    first = page.locator("#ours li", has_text="Zum Anker").first
    assert "price 28 · city Linz" in first.inner_text()
    first.locator("summary").click()
    assert "No pool." in first.locator("mark.denied").all_inner_texts()


def tab_to(page, selector):
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab does not reach {selector}")


def test_everything_is_reached_and_said_without_a_mouse(open_page, hostels):
    page = open_page(at=hostels)
    tab_to(page, "#query")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.type("hostels without a pool")
    page.keyboard.press("Enter")
    expect_query(page, "hostels without a pool")
    assert page.locator("[role=status]").inner_text() == "10 results, “pool” excluded"

    tab_to(page, "#range")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab_to(page, "[data-word='0']")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('[role=status]').textContent.includes('hostels')")
    assert page.evaluate("document.activeElement.dataset.word") == "0"  # where the reader was
    page.keyboard.press("Space")
    expect_query(page, "hostels without a pool")
    assert pressed(page) == ["pool"]

    tab_to(page, ".more a")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('#ours li').length === 20")
    assert page.evaluate("document.activeElement.innerText.startsWith('11')")  # the first that is new
    page.keyboard.press("Enter")
    assert page.locator("#ours li:nth-child(11) details[open]").count() == 1


@pytest.mark.parametrize("how", [{}, {"color_scheme": "dark"}, {"forced_colors": "active"}])
def test_axe_finds_nothing(open_page, hostels, how, tmp_path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="AXE DID NOT LOOK: it is missing").Axe()
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
    paths = ("/", "/?q=hostels+-pool+under+90+euros&strength=40&excluded=0,2", "/?q=bar&k=x")
    for width in (320, 390, 1280, 1920):
        for path in paths:
            page = open_page({"width": width, "height": 900}, path, hostels, **how)
            found = axe.run(page, options=options).response["violations"]
            assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], (width, path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.close()


def test_more_results_come_on_demand_and_the_box_is_cleared_by_a_click(open_page, hostels):
    page = open_page(at=hostels)
    assert "20 documents of “hostels”" in page.locator("#answer").inner_text()
    assert not page.is_visible("text=Show more results")
    ask(page, "hostels without a pool")
    assert re.search(r"20 documents of “hostels”, searched in \d+\.\d\d s", page.locator("#answer").inner_text())
    page.click("text=Show more results")
    page.wait_for_function("() => document.querySelectorAll('#ours li').length === 20")
    assert page.locator("#ours .rank").last.inner_text() == "20"
    page.reload()
    assert page.locator("#ours li").count() == 20

    page.click("[aria-label=Clear]")
    page.wait_for_selector("#ours", state="detached")
    assert page.input_value("#query") == ""
    assert page.evaluate("document.activeElement.id") == "query"
    assert page.evaluate("location.search") == ""


def test_a_server_that_was_away_takes_nothing_from_the_page(open_page):
    page = open_page()
    ask(page, QUERY)
    page.route("**/*", lambda route: route.abort())  # as where nothing listens
    page.fill("#query", "books")
    page.press("#query", "Enter")
    page.wait_for_selector(".error")
    assert page.locator(".error").inner_text() == "The server does not answer; try again in a moment."
    assert page.input_value("#query") == "books"
    page.unroute("**/*")
    page.click("#search")
    expect_query(page, "books")


@pytest.mark.parametrize("path", ["call/nothing", "call/v2/nothing", "run/nothing", "api/nothing", "queue/join"])
def test_an_unknown_call_is_not_found(address, path):
    content = json.dumps({"data": ["films"], "fn_index": 999, "session_hash": "a"}).encode()
    request = urllib.request.Request(f"{address}/gradio_api/{path}", content, {"content-type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=30)
    assert (caught.value.code, caught.value.read().decode()) == (
        404,
        "this page has no such call; its API has /search alone",
    )


def test_a_reader_asks_clicks_and_compares(open_page, engine):
    page = open_page()
    ask(page, QUERY)
    found = engine.search(QUERY)
    expect_titles(page, "ours", found.after)
    expect_titles(page, "plain", found.before)
    assert pressed(page) == [word.text for word in found.reading.words if word.excluded]

    excluded = [number for number, word in enumerate(found.reading.words) if word.excluded]
    other = next(number for number in range(len(found.reading.words)) if number not in excluded)
    word = page.locator(f"[data-word='{other}']")
    word.click()
    page.wait_for_selector(f"[data-word='{other}'][aria-pressed=true]")
    chosen = [*excluded, other]
    by_hand = engine.search(QUERY, excluded=chosen)
    expect_titles(page, "ours", by_hand.after)
    assert "line-through" in word.evaluate("node => getComputedStyle(node.parentNode).textDecorationLine")

    word.focus()  # and back, without a mouse
    page.keyboard.press("Enter")
    page.wait_for_selector(f"[data-word='{other}'][aria-pressed=false]")
    page.click("text='As Bool-BERT reads it'")
    page.wait_for_selector(".reset", state="detached")
    expect_titles(page, "ours", found.after)

    page.fill("#strength", "90")
    page.wait_for_selector("text=− 0.90 ×", state="attached")
    page.locator("#ours summary").first.click()
    assert (
        page.locator("#ours details[open] .text").inner_text() == engine.search(QUERY, strength=0.9).after[0].hit.text
    )


def test_examples_fill_the_box_and_ask(open_page):
    page = open_page(PHONE)
    page.click(f"text={EXAMPLES[1]}")
    expect_query(page, EXAMPLES[1])
    assert page.input_value("#query") == EXAMPLES[1]


def test_it_fits_on_a_phone(open_page, hostels):
    for at, query in ((None, "films " * 40 + "but not about " + "w" * 200), (hostels, "hostels without a pool")):
        page = open_page(PHONE, **({"at": at} if at else {}))
        ask(page, query.strip())
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert page.is_visible("#ours")
        assert not page.is_visible("#plain")
        assert page.locator("#ours .title").first.bounding_box()["width"] > 50
        assert page.locator("#ours ol").bounding_box()["width"] > 340
        page.click(".switch")
        assert page.is_visible("#plain")
        assert not page.is_visible("#ours")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.locator("#plain .broken").count() > 0
    ask(page, "hostels without a bar")  # the switch stays as it is
    assert page.is_visible("#plain")
    assert page.locator("#ours li").count() == page.locator("#plain li").count() == 10


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_what_a_cue_is_stands_beside_it_and_over_nothing(open_page, size):
    page = open_page(size)
    for query in ("films -war", "books about war " * 3 + "but not about films"):
        ask(page, query.strip())
        query_end = page.locator(".query").bounding_box()
        hint = page.locator(".hint").bounding_box()
        assert query_end["y"] + query_end["height"] <= hint["y"]
        cue = page.locator(".run.cue").last
        label = cue.evaluate("node => getComputedStyle(node, '::after').position")
        assert label == "static"  # in the line, so that it takes room
        assert cue.evaluate("node => getComputedStyle(node, '::after').whiteSpace") == "nowrap"


def test_what_is_typed_is_text(open_page):
    page = open_page()
    ask(page, EVIL)
    assert page.locator("#answer img, #answer script").count() == 0
    page.fill("#query", "films \u202e\x07\x1b[31m not war")
    page.click("#search")
    expect_query(page, "films [31m not war")


def test_what_is_missing_is_told_on_the_page(open_page, engine, tmp_path):
    (tmp_path / "index").rename(tmp_path / "away")
    page = open_page()
    page.fill("#query", QUERY)
    page.click("#search")
    page.wait_for_selector(".error")
    assert page.locator(".error").inner_text() == UNREADABLE
    (tmp_path / "away").rename(tmp_path / "index")
    page.click("#search")
    page.wait_for_selector("#ours li")
    assert page.locator(".error").count() == 0


def status(address, path, body=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(address + path, body), timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_limits_hold_on_the_running_page(address, engine, tmp_path):
    assert address.startswith("http://127.0.0.1:")
    assert status(address, "/") == 200
    assert status(address, "/gradio_api/call/search", b"x" * 100_000) == 413
    files = (f"/gradio_api/file={file}" for file in (tmp_path / "docs.jsonl", "setup.cfg"))
    for path in ("/gradio_api/upload", "/upload", *files):
        assert status(address, path) == 403
    assert status(address, "/gradio_api/upload", b"x") == 403


def asked(address, path="/", body=None, **headers):
    """What the page answers to a request with these headers."""
    request = urllib.request.Request(address + path, body, {"content-type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_the_running_page_answers_to_its_own_names(address):
    """A name elsewhere may be let stand for 127.0.0.1; browsers then let that page read what this one answers."""
    port = address.rpartition(":")[2]
    call = json.dumps({"data": [QUERY]}).encode()
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", "localhost:9000", "[::1]"):
        assert asked(address, host=host) == 200
        assert asked(address, "/gradio_api/call/search", call, host=host) == 200
    for path, body in (("/", None), ("/config", None), ("/gradio_api/info", None), ("/gradio_api/call/search", call)):
        assert asked(address, path, body, host=f"evil.example:{port}") == 421
        assert asked(address, path, body, origin="https://evil.example") == 403
        assert asked(address, path, body, origin=f"http://localhost:{port}") == 200


def test_a_page_for_others_is_asked_by_its_address_and_by_names_that_are_allowed(engine):
    page = serve(engine, EXAMPLES, host="0.0.0.0", allowed_hosts=["films.example.org"], wait=False)
    try:
        address = f"http://127.0.0.1:{page.server_port}"
        for host in ("10.0.0.5:7860", "localhost", "films.example.org"):
            assert asked(address, host=host) == 200
        assert asked(address, host="films.example.org", origin="https://films.example.org") == 200
        assert asked(address, host="evil.example") == 421
    finally:
        page.close()


@pytest.mark.parametrize(
    ("trusted", "counted"), [(None, "127.0.0.1"), ("10.0.0.7", "127.0.0.1"), ("127.0.0.1", "9.9.9.9")]
)
def test_a_forwarded_address_counts_only_where_its_proxy_is_trusted(engine, trusted, counted, monkeypatch):
    """Else anyone could be a new address with each search, and no rate would hold."""
    from gradio_client import Client

    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "")
    if trusted is None:
        monkeypatch.delenv("FORWARDED_ALLOW_IPS")
    page = serve(engine, EXAMPLES, trusted_proxy=trusted, wait=False)
    addresses = []
    monkeypatch.setattr(engine.limiter, "check", addresses.append)
    try:
        client = Client(page.local_url, verbose=False, headers={"X-Forwarded-For": "9.9.9.9"})
        client.predict(QUERY, api_name="/search")
    finally:
        page.close()
    assert addresses == [counted]


def test_the_api_as_it_is_documented(address, engine, capsys):
    """The example of docs/serve.md, with a query of the small model's words; then what is refused."""
    (code,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "serve.md").read_text(), re.DOTALL | re.MULTILINE)
    found: dict = {}
    code = code.replace("http://127.0.0.1:7860", address).replace('"island"', '"films"')
    exec(code.replace("island countries that are not monarchies", QUERY), found)
    expected = engine.search(QUERY, 10, 0.5, [0])
    assert [hit["title"] for hit in found["answer"]["results"]] == [change.hit.title for change in expected.after]
    assert found["answer"]["not_weight"] == 0.5
    client = found["client"]
    for wrong, message in (({"k": 99}, "from 1 to 50"), ({"excluded": [99]}, "word 99"), ({"strength": -1}, "from 0")):
        with pytest.raises(Exception, match=message):
            client.predict(QUERY, api_name="/search", **wrong)
    engine.limiter.rate = 1
    with pytest.raises(Exception, match="more than 1 searches in a minute"):
        client.predict(QUERY, api_name="/search")
    assert list(client.view_api(return_format="dict")["named_endpoints"]) == ["/search"]


def test_a_bug_is_for_the_log(address, engine, monkeypatch, caplog):
    from gradio_client import Client

    monkeypatch.setattr(engine, "search", lambda *args, **options: 1 / 0)
    with pytest.raises(Exception, match="its log says what"):
        Client(address, verbose=False).predict(QUERY, api_name="/search")
    assert "ZeroDivisionError" in caplog.text


def test_a_space_needs_nothing_installed(tmp_path):
    """A Space has the repository under another name, and only its requirements are installed."""
    code = (
        "import pathlib, runpy, sys\n"
        "sys.path = [path for path in sys.path if not (pathlib.Path(path) / 'boolbert').exists()]\n"
        "sys.meta_path = [finder for finder in sys.meta_path if 'editable' not in repr(finder)]\n"
        "import gradio\n"
        "gradio.Blocks.launch = lambda self, **options: print('launched', options['server_name'])\n"
        "gradio.Blocks.block_thread = lambda self: None\n"
        "runpy.run_path('app.py', run_name='__main__')\n"
        "print(sys.modules['boolbert'].__file__)"
    )
    space = tmp_path / "app"
    space.symlink_to(ROOT, target_is_directory=True)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=space, capture_output=True, text=True, env=environment)
    assert "launched None" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == str(ROOT / "__init__.py")
