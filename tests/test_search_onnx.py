"""A searcher that lets ONNX Runtime compute its queries answers as the model does."""

import itertools
import json
import sys
import threading
from types import SimpleNamespace

import pytest
import torch
from search_fixtures import OPTIONS, QUERIES, write_baseline, write_documents, write_run

from boolbert.cli import commands, main
from boolbert.core.errors import BoolBertError, RetrievalError
from boolbert.search import BoolSearcher, build_index, explain, load_model, program
from boolbert.search.program import ENCODED, MODEL_DECIDES, READ, SPANS, Program
from boolbert.search.reading import words_of
from boolbert.search.searcher import token_words

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

# With every part, and with as few as there can be.
KINDS = {
    "whole": {"penalty": 0.5, "branches": 2, "scope_reader_layers": 2},
    "bare": {"exclusion": "none", "branches": 0, "scope_reader_size": 0},
}
MADE, GRAPHS = {}, {}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def searchers(kind, tmp_path_factory, lively, tiny_config, tokenizer):
    """The model's searcher and ONNX Runtime's, made once, because an export takes a second."""
    if kind not in MADE:
        folder = tmp_path_factory.mktemp(kind)
        small = {"num_hidden_layers": 1, "boolean_layers": [0]}
        write_run(folder / "run", lively, tiny_config, tokenizer, **small, **KINDS[kind])
        model = load_model(str(folder / "run"), device="cpu")
        index = build_index(write_documents(folder / "documents.jsonl"), folder / "index", model, progress=False)
        MADE[kind] = BoolSearcher(model, index), BoolSearcher(model, index, onnx=True)
        GRAPHS[kind] = program.graph_of(model)
    return MADE[kind]


@pytest.fixture
def exported(searchers, kind, monkeypatch):
    """The same without an export: its result is stored."""
    monkeypatch.setattr(program, "graph_of", lambda model: GRAPHS[kind])
    return searchers


def compare(found, expected):
    assert found.reading == expected.reading
    assert [hit.row for hit in found] == [hit.row for hit in expected]
    for name in ("score", "wanted", "excluded"):
        ours, theirs = ([getattr(hit, name) for hit in answer] for answer in (found, expected))
        assert ours == theirs if None in ours else ours == pytest.approx(theirs, abs=1e-5)


def test_the_same_answers(searchers, kind):
    plain, quick = searchers
    assert isinstance(quick._program, Program)
    assert (plain.model.bert.scope_reader is None) == (kind == "bare")
    assert plain._program is None
    for query in QUERIES:
        for given in (*OPTIONS, {"hybrid": True}, {"evidence": False}):
            if kind == "bare" and "excluded" in given:
                continue
            found, expected = (one.search(query, k=3, **given) for one in (quick, plain))
            compare(found, expected)
    assert kind == "bare" or any(plain.read(query).excluded for query in QUERIES)


def test_it_is_asked_and_not_the_model(searchers, monkeypatch):
    plain, quick = searchers
    expected = plain.search(QUERIES[0], k=3)

    def refuse(*_, **__):
        raise AssertionError("the model was asked")

    monkeypatch.setattr(type(plain.model.bert), "forward", refuse)
    with pytest.raises(AssertionError, match="the model was asked"):
        plain.search(QUERIES[0], k=3)
    compare(quick.search(QUERIES[0], k=3), expected)


@pytest.mark.parametrize("kind", ["whole"])
def test_explained_alike(searchers):
    plain, quick = (explain(one, QUERIES[0], 3).as_json() for one in searchers)
    for explanation in (plain, quick):
        for hit in explanation["results"]:
            hit.update({name: round(value, 4) for name, value in hit.items() if isinstance(value, float)})
    assert plain["results"] == quick["results"]
    assert plain["words"] == quick["words"]


@pytest.mark.parametrize("kind", ["whole"])
def test_several_threads(searchers):
    plain, quick = searchers
    expected = {query: [hit.row for hit in plain.search(query, k=3)] for query in QUERIES}
    wrong = []

    def ask(query):
        for _ in range(5):
            if [hit.row for hit in quick.search(query, k=3)] != expected[query]:
                wrong.append(query)

    threads = [threading.Thread(target=ask, args=(query,)) for query in QUERIES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("kind", ["whole"])
def test_weights_that_change_are_seen_when_it_is_asked_for_again(searchers):
    plain, quick = searchers
    before = [hit.score for hit in plain.search(QUERIES[0], k=3)]
    weight = plain.model.bert.embeddings.word_embeddings.weight
    kept = weight.detach().clone()
    try:
        with torch.no_grad():
            weight.mul_(torch.linspace(0.5, 2, weight.shape[1]))
        changed = plain.search(QUERIES[0], k=3)
        assert [hit.score for hit in changed] != pytest.approx(before, abs=1e-3)
        assert [hit.score for hit in quick.search(QUERIES[0], k=3)] == pytest.approx(before, abs=1e-5)
        quick.use_onnx()
        compare(quick.search(QUERIES[0], k=3), changed)
    finally:
        with torch.no_grad():
            weight.copy_(kept)
        quick.use_onnx()


@pytest.mark.parametrize("kind", ["whole"])
@pytest.mark.parametrize(
    ("name", "decided_by_model"),
    [("operators", True), ("scope", True), *itertools.product(["query_vectors", "penalty"], [True, False])],
)
def test_one_that_computes_something_else_is_not_used(exported, monkeypatch, name, decided_by_model):
    plain, _ = exported
    true_graph = program.open_graph

    def off(graph):
        run = true_graph(graph)

        def changed(*inputs):
            outputs = dict(zip((*READ, *ENCODED), run(*inputs), strict=True))
            if (inputs[3] == MODEL_DECIDES).all() == decided_by_model:
                outputs[name] = 1 - outputs[name].roll(1, -1)
            return list(outputs.values())

        return changed

    monkeypatch.setattr(program, "open_graph", off)
    with pytest.raises(RetrievalError, match="ONNX Runtime computes other vectors than torch; go without onnx"):
        BoolSearcher(plain.model, plain.index, onnx=True)


@pytest.mark.parametrize("kind", ["whole"])
@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_without_the_package(searchers, monkeypatch, missing):
    plain, _ = searchers
    true_import = program.optional

    def without(module, package, extra):
        if module == missing:
            raise BoolBertError(f"{package} is not installed: pip install 'boolbert[{extra}]'")
        return true_import(module, package, extra)

    monkeypatch.setattr(program, "optional", without)
    with pytest.raises(BoolBertError, match=rf"^{missing} is not installed: pip install 'boolbert\[onnx\]'$"):
        BoolSearcher(plain.model, plain.index, onnx=True)


def test_a_plain_encoder_is_refused(tmp_path, lively, tiny_config, tokenizer):
    folder = write_baseline(tmp_path / "bert", lively, tiny_config, tokenizer)
    model = load_model(str(folder), device="cpu")
    index = build_index(write_documents(tmp_path / "documents.jsonl"), tmp_path / "index", model, progress=False)
    with pytest.raises(RetrievalError, match=r"onnx cannot be given: the query encoder of .* is no Bool-BERT"):
        BoolSearcher(model, index, onnx=True)


@pytest.mark.parametrize("kind", ["whole"])
@pytest.mark.parametrize("fails", [None, "to open", "to run"])
def test_the_page_uses_it_where_it_can(exported, monkeypatch, fails):
    plain, _ = exported
    opened = []
    fresh = BoolSearcher(plain.model, plain.index)
    monkeypatch.setattr(commands, "_open_searcher", lambda options: fresh)
    page = SimpleNamespace(EXAMPLES=(), serve=lambda engine, *_, **__: opened.append(engine.open()))
    monkeypatch.setitem(sys.modules, "boolbert.serve.page", page)
    monkeypatch.setattr(commands, "optional", lambda *_: None)  # gradio
    if fails is not None:
        monkeypatch.setattr(program, "open_graph", lambda graph: 1 / 0 if fails == "to open" else lambda *_: 1 / 0)
    assert main(["serve"]) == 0
    assert (opened[0][0]._program is None) == (fails is not None)


@pytest.mark.parametrize("kind", ["whole"])
def test_an_error_of_the_runtime_is_one_line(exported, monkeypatch):
    plain, _ = exported
    monkeypatch.setattr(program, "open_graph", lambda graph: lambda *_: 1 / 0)
    with pytest.raises(RetrievalError, match=r"/run: cannot be run by ONNX Runtime: division by zero$"):
        BoolSearcher(plain.model, plain.index, onnx=True)


@pytest.mark.parametrize("kind", ["whole"])
def test_other_precisions_are_refused(searchers, monkeypatch):
    plain, _ = searchers
    monkeypatch.setattr(type(plain.model.bert), "dtype", torch.bfloat16)
    with pytest.raises(RetrievalError, match=r"/run is in torch.bfloat16; it has to be in torch.float32$"):
        BoolSearcher(plain.model, plain.index, onnx=True)


@pytest.mark.parametrize("side", ["left", "right"])
def test_long_queries_lose_the_end_that_the_tokenizer_says(tmp_path, lively, tiny_config, tokenizer, side):
    small = {"num_hidden_layers": 1, "boolean_layers": [0], "scope_reader_layers": 1, "penalty": 0.5}
    write_run(tmp_path / "run", lively, tiny_config, tokenizer, **small)
    file = tmp_path / "run/tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "truncation_side": side}))
    model = load_model(str(tmp_path / "run"), device="cpu")
    index = build_index(write_documents(tmp_path / "documents.jsonl"), tmp_path / "index", model, progress=False)
    plain, quick = BoolSearcher(model, index), BoolSearcher(model, index, onnx=True)
    query = "films but not about war " + "books or " * 100 + "films but not about war"
    ids = plain._tokens(query)["input_ids"]
    compare(quick.search(query, k=3), plain.search(query, k=3))
    words = words_of(query)
    tokens = token_words(plain, query, words, ids.shape[1])
    assert tokens == token_words(quick, query, words, ids.shape[1])
    assert tokens == token_words(quick, query, words, ids.shape[1], quick._tokens(query)[SPANS])
    last = len(words) - 1
    assert (tokens[1], tokens[-2]) == ((0, len(ids[0]) - 3) if side == "right" else (last - len(ids[0]) + 3, last))
