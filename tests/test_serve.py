"""The page without a browser: what a request may hold, what is refused, and what the HTML says."""

import asyncio
import shutil
import socket
from dataclasses import replace

import html5lib
import pytest
from search_fixtures import QUERY, write_baseline
from store_fixtures import write_films

from boolbert.cli import main
from boolbert.core.errors import BoolBertError
from boolbert.data.own import OwnDocuments
from boolbert.retrieval.stores import index_documents, open_store
from boolbert.search import BoolSearcher
from boolbert.search.reasons import Reason
from boolbert.serve.asked import Asked
from boolbert.serve.engine import LONGEST_SERVED_QUERY, UNREADABLE, Collection, Engine, RateLimiter, error_line
from boolbert.serve.guard import LARGEST, Guard, own_names
from boolbert.serve.view import SCRIPT, page_html

ASKED = Asked(QUERY)
EVIL = "<script>alert(1)</script> ${alert(1)} {{value}} <img src=x onerror=alert(1)> \"' not \u202e\x00 war"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"query": ""}, "the query is empty"),
        ({"query": " \x00\n"}, "the query is empty"),
        ({"query": "x" * (LONGEST_SERVED_QUERY + 1)}, "has 501 letters; at most 500"),
        ({"query": {"path": "/etc/passwd"}}, "must be a text"),
        ({"query": QUERY, "k": 0}, "k must be a whole number from 1 to 50, got 0"),
        ({"query": QUERY, "k": 10**9}, "k must be"),
        ({"query": QUERY, "k": True}, "k must be"),
        ({"query": QUERY, "strength": float("nan")}, "strength must be a number from 0 to 2, got nan"),
        ({"query": QUERY, "strength": "1"}, "strength must be"),
        ({"query": QUERY, "excluded": "0"}, "excluded must be a list"),
        ({"query": QUERY, "excluded": [0.5]}, "excluded must be a list"),
        ({"query": QUERY, "excluded": [99]}, "word 99, but the query has the words 0 to 4"),
        ({"query": QUERY, "excluded": [-1]}, "word -1"),
    ],
)
def test_what_a_request_may_not_hold(engine, request_, message):
    with pytest.raises(BoolBertError, match=message):
        engine.search(**request_)


def test_a_search_by_hand(engine):
    found = engine.search(QUERY, 3, 0.8, [0])
    assert found.reading.excluded_text == "films"
    assert found.not_weight == 0.8
    assert len(found.after) == len(found.before) == 3


def test_what_is_missing_is_looked_for_again(tmp_path, engine):
    folder = tmp_path / "index"
    folder.rename(tmp_path / "away")
    for _ in range(2):
        with pytest.raises(BoolBertError, match="no index there"):
            engine.search(QUERY)
    (tmp_path / "away").rename(folder)
    assert len(engine.search(QUERY).after) == 10


@pytest.mark.parametrize(
    "damage",
    [
        lambda index: index.rename(index.with_name("away")),
        lambda index: (index / "index.json").write_text("{"),
        lambda index: (index / "documents.jsonl").write_text(""),
        lambda index: shutil.rmtree(index / "vectors"),
    ],
)
def test_the_reader_is_told_no_path_of_the_server(tmp_path, engine, damage, caplog):
    """Where it lies is for the log alone."""
    damage(tmp_path / "index")
    for _ in range(2):
        with pytest.raises((BoolBertError, OSError)) as caught:
            engine.search(QUERY)
        assert str(tmp_path) in str(caught.value)
        assert error_line(caught.value) == UNREADABLE
    assert str(tmp_path / "index") in caplog.text


def test_a_path_is_known_wherever_it_stands():
    for text in ("/srv/x: no", "no (/srv/x)", "'/srv/x'", "~/x: no", r"C:\x: no", r"\\host\x", "--output /srv/x"):
        assert error_line(BoolBertError(text)) == UNREADABLE
        assert error_line(OSError(text)) == UNREADABLE
    for text in ("and/or", "my/index: no", "3 / 4", "word 9"):
        assert error_line(BoolBertError(text)) == text


def test_a_plain_encoder_is_shown_alone_and_as_a_baseline(engine, tmp_path, lively, tiny_config, tokenizer):
    boolean, _ = engine.open()
    plain = BoolSearcher(write_baseline(tmp_path / "plain", lively, tiny_config, tokenizer), boolean.index)
    found = Engine(lambda: (plain, None)).search(QUERY)
    assert [change.hit for change in found.after] == list(plain.search(QUERY, 10))
    assert found.composition == ""
    found = Engine(lambda: (boolean, plain)).search(QUERY)
    assert ">plain<" in page_html(ASKED, found=found)
    assert str(tmp_path) not in page_html(ASKED, found=found) + str(found.as_json())


def test_over_a_vector_store(engine, tmp_path):
    boolean, _ = engine.open()
    store = open_store(tmp_path / "films")
    index_documents(OwnDocuments(write_films(tmp_path / "films.jsonl"), progress=False), store, boolean.model)
    found = Engine(lambda: (BoolSearcher(boolean.model, store), None)).search(QUERY, 7, excluded=[0])
    assert len(found.after) == len(found.before) == 7
    assert found.after[0].hit.title in page_html(ASKED, found=found)
    assert {change.other for change in found.after} - {None}  # the same films are found again on the other side


def test_the_rate_is_limited_for_each_address(engine):
    limiter = RateLimiter(3)
    for moment in (0.0, 1.0, 2.0):
        limiter.check("one", moment)
    with pytest.raises(BoolBertError, match="more than 3 searches in a minute; wait 58 seconds"):
        limiter.check("one", 2.5)
    limiter.check("two", 2.5)
    limiter.check("one", 60.5)
    for number in range(20_000):  # many addresses do not fill the memory
        limiter.check(f"address {number}", 100.0 + number)
    assert len(limiter._times) <= 10_001


def ask(method, path, *chunks, names=(), kind="http", **headers):
    """What the guard answers: the status, and the body that the page would have been given."""
    given, sent = [], []

    async def page(scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body += message["body"]
            more = message.get("more_body", False)
        given.append(body)
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept", "status": 101})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    pending = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    pending.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive():
        return pending.pop(0)

    async def send(message):
        sent.append(message)

    sent_headers = [(name.encode(), value.encode()) for name, value in {"host": "127.0.0.1:7860", **headers}.items()]
    scope = {"type": kind, "method": method, "path": path, "headers": [each for each in sent_headers if each[1]]}
    asyncio.run(Guard(page, names)(scope, receive, send))
    return sent[0].get("status", sent[0].get("code")), given[0] if given else None


def test_large_requests_never_reach_the_page():
    assert ask("POST", "/gradio_api/queue/join", b"a" * 10, b"b") == (200, b"a" * 10 + b"b")
    assert ask("POST", "/gradio_api/queue/join", *[b"a" * 1000] * (LARGEST // 1000 + 1)) == (413, None)


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/upload",
        "/upload",
        "/gradio_api/file=/etc/passwd",
        "/gradio_api/file=https://example.org",
        "/gradio_api/file/etc/passwd",
        "/gradio_api/proxy=http://127.0.0.1:22/",
        "/gradio_api/component_server",
        "/gradio_api/component_server/",
        "/gradio_api/file=a\nb",
    ],
)
def test_the_doors_for_files_are_closed(path):
    assert ask("GET", path) == (403, None)
    assert ask("POST", path) == (403, None)


OWN = own_names("0.0.0.0", ["films.example.org"])


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.0.0.1:7860",
            "localhost:7860",
            "localhost:9000",
            "LOCALHOST",
            "localhost.",
            "app.localhost",
            "[::1]:7860",
        ),
        *("10.0.0.5:7860", "[fe80::1]", socket.gethostname(), f"{socket.gethostname().partition('.')[0]}.local:7860"),
        *("films.example.org", "Films.Example.org:443", ""),  # no browser asks without a name
    ],
)
def test_the_page_answers_to_its_names(host):
    assert ask("GET", "/", names=OWN, host=host) == (200, b"")
    assert ask("POST", "/gradio_api/queue/join", b"a", names=OWN, host=host) == (200, b"a")


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:7860", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost"),
        *("films.example.org.evil.example", "127.0.0.1@evil.example", "[::1", "a b", "evil.example/127.0.0.1"),
    ],
)
def test_the_page_answers_to_no_other_name(host):
    """A page elsewhere can let its own name stand for 127.0.0.1, and read what this one answers."""
    for method in ("GET", "POST", "OPTIONS"):
        assert ask(method, "/", names=OWN, host=host) == (421, None)
    assert ask("GET", "/", names=OWN, host=host, kind="websocket") == (1008, None)


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("http://127.0.0.1:7860", "127.0.0.1:7860", 200),
        ("http://localhost:3000", "127.0.0.1:7860", 200),  # another program of this machine, as Gradio lets it
        ("https://10.0.0.5", "10.0.0.5:7860", 200),
        ("https://films.example.org", "films.example.org", 200),
        ("https://films.example.org:8443", "127.0.0.1:7860", 200),  # a proxy that asks by the address
        ("https://evil.example", "127.0.0.1:7860", 403),
        ("https://evil.example", "10.0.0.5:7860", 403),
        ("http://10.0.0.6", "10.0.0.5:7860", 403),
        ("http://localhost", "10.0.0.5:7860", 403),
        ("https://127.0.0.1.evil.example", "127.0.0.1:7860", 403),
        ("null", "127.0.0.1:7860", 403),
        ("nonsense", "127.0.0.1:7860", 403),
    ],
)
def test_pages_elsewhere_ask_nothing(origin, host, status):
    answer = ask("POST", "/gradio_api/call/search", b"a", names=OWN, host=host, origin=origin)
    assert answer == (status, b"a" if status == 200 else None)
    assert ask("GET", "/", names=OWN, host=host, origin=origin)[0] == status


def test_a_space_answers_to_any_name(monkeypatch):
    """Its proxy alone reaches it, by the name of the Space or by the user's own."""
    monkeypatch.setenv("SPACE_ID", "org/bool-bert")
    names = own_names("0.0.0.0", [])
    host = "org-bool-bert.hf.space"
    assert ask("POST", "/", b"a", names=names, host=host, origin="https://huggingface.co") == (200, b"a")
    assert ask("GET", "/", names=own_names(None, ["*"]), host="any.example")[0] == 200


def test_the_address_that_it_listens_on_is_a_name_of_it(monkeypatch):
    assert ask("GET", "/", names=own_names("films.lan", []), host="films.lan:7860")[0] == 200
    monkeypatch.setenv("GRADIO_SERVER_NAME", "other.lan")
    assert ask("GET", "/", names=own_names(None, []), host="other.lan")[0] == 200
    assert ask("GET", "/", names=own_names("films.lan", []), host="other.lan")[0] == 421


def elements(html):
    return html5lib.parse(html, namespaceHTMLElements=False)


def test_the_query_is_shown_word_by_word(engine):
    found = engine.search(QUERY, excluded=[3, 4])
    words = elements(page_html(ASKED, found=found)).findall(".//*[@data-word]")
    assert [word.text for word in words] == QUERY.split()
    assert [word.get("data-word") for word in words] == ["0", "1", "2", "3", "4"]
    assert [word.get("aria-pressed") for word in words] == ["false", "false", "false", "true", "true"]
    assert "".join(elements(page_html(ASKED, found=found)).find(".//*[@class='query']").itertext()) == QUERY
    assert "As Bool-BERT reads it" not in page_html(ASKED, found=found)
    assert "As Bool-BERT reads it" in page_html(Asked(QUERY, excluded=[3, 4]), found=found)


def counts_of(found):
    tree = elements(page_html(ASKED, found=found))
    return ["".join(count.itertext()) for count in tree.findall(".//*[@class='count']")], tree


def test_results_are_counted_and_marked_where_it_is_known(engine):
    found = engine.search(QUERY, 4)
    (excluded,) = (one.text for one in found.reading.excluded)
    assert counts_of(found)[0] == ["obeys NOT", "by an encoder that does not know AND, OR and NOT"]
    before = [change._replace(hit=replace(change.hit, violates=True)) for change in found.before]
    after = [change._replace(hit=replace(change.hit, violates=not row)) for row, change in enumerate(found.after)]
    counts, tree = counts_of(replace(found, before=before, after=after))
    assert counts == [f"1 of 4 are {excluded}", f"4 of 4 are {excluded}"]
    assert len(tree.findall(".//li[@class='broken']")) == 5


def test_results_are_counted_and_marked_by_what_their_sentences_say(engine):
    found = engine.search(QUERY, 4)
    said = {
        "against": Reason("war", "against", "about war", 0, 9, 0.9),
        "denied": Reason("war", "denied", "", 0, 0, 0.9),
    }

    def say(changes, *says):
        hits = [
            replace(one.hit, reasons=(said[says[row]],) if row < len(says) else ()) for row, one in enumerate(changes)
        ]
        return [change._replace(hit=hit) for change, hit in zip(changes, hits, strict=True)]

    found = replace(found, after=say(found.after, "denied", "against"), before=say(found.before, "against", "against"))
    counts, tree = counts_of(found)
    (excluded,) = (one.text for one in found.reading.excluded)
    assert counts == [f"1 of 4 seem to have “{excluded}”", f"2 of 4 seem to have “{excluded}”"]
    assert len(tree.findall(".//li[@class='broken']")) == 3
    unknown = [found.before[0]._replace(other=None), *found.before[1:]]
    assert counts_of(replace(found, before=unknown))[0][1] == f"at least 2 of 4 seem to have “{excluded}”"


def test_each_result_shows_the_clause_that_decided_and_a_line_of_its_text(engine):
    found = engine.search(QUERY, 2)
    text = "Alpina tent 004. A tent for two. It has a hood."
    reasons = (
        Reason("tents", "for", "A tent for two", 17, 31, 0.9),
        Reason("hood", "against", "It has a hood", 33, 46, 0.6),
    )
    own = {"title": "Alpina tent 004", "text": text, "fields": {"price": 45.0, "tags": ["bar"]}}
    hits = [replace(found.after[0].hit, reasons=some, **own) for some in (reasons, ())]
    after = [change._replace(hit=hit) for change, hit in zip(found.after, hits, strict=True)]
    lines = elements(page_html(ASKED, found=replace(found, before=[], after=after))).findall(".//*[@class='lines']")
    assert [["".join(line.itertext()) for line in one] for one in lines] == [
        ["price 45 · tags bar", "− hood: It has a hood", "A tent for two."],
        ["price 45 · tags bar", "A tent for two. It has a hood."],
    ]
    marks = elements(page_html(ASKED, found=replace(found, before=[], after=after))).findall(".//mark")
    assert [(mark.get("class"), mark.text) for mark in marks] == [
        ("for", "A tent for two"),
        ("against", "It has a hood"),
    ]


def test_hostile_text_is_text(tmp_path, engine):
    found = engine.search(EVIL, excluded=[0])
    change = found.after[0]._replace(hit=replace(found.after[0].hit, title=EVIL, text=EVIL))
    found = replace(found, after=[change], plain_name=EVIL)
    evil = Collection(EVIL, 1, EVIL, (), True)
    for shown in ({"found": found}, {"error": EVIL}):
        html = page_html(Asked(EVIL), evil, [EVIL], **shown)
        tree = elements(html)
        assert [script.text for script in tree.findall(".//script")] == [SCRIPT]
        assert not tree.findall(".//img")
        assert not [name for node in tree.iter() for name in node.attrib if name.startswith("on")]
        assert "<script>alert(1)</script>" in "".join(tree.itertext())
    assert "\u202e" not in page_html(ASKED, found=found)


def test_wrong_flags_and_a_missing_gradio_are_one_line(monkeypatch, capsys):
    assert main(["serve", "--rate", "0"]) == 2
    assert "--rate must be at least 1" in capsys.readouterr().err
    assert main(["serve", "--port", "70000"]) == 2
    assert "--port must be a number from 1 to 65535" in capsys.readouterr().err
    for wrong in ("*", "proxy", "10.0.0.7,", ""):
        assert main(["serve", "--trusted-proxy", wrong]) == 2
        assert "--trusted-proxy must be an address such as" in capsys.readouterr().err
    for wrong in ("https://films.example.org", "films.example.org:443", "films.example.org/", "", "a b"):
        assert main(["serve", "--allowed-host", wrong]) == 2
        assert "--allowed-host must be a name such as films.example.org" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "gradio", None)
    assert main(["serve"]) == 2
    assert "pip install 'boolbert[serve]'" in capsys.readouterr().err
