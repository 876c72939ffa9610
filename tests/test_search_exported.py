"""An exported query encoder, opened here or from the cache, answers as its model does, or is not used."""

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from search_fixtures import OPTIONS, QUERIES, run_without_torch, write_baseline, write_documents, write_run

from boolbert.boolean.query import split_words
from boolbert.cli import commands, main
from boolbert.core import environment
from boolbert.core.errors import BoolBertError, RetrievalError
from boolbert.retrieval.stores import copy_documents, open_store
from boolbert.search import BoolSearcher, build_index, cached_model, export, load_model
from boolbert.search.cached_model import CACHED_MODELS, GRAPH, SETTINGS, CachedModel, cache_model
from boolbert.search.query_encoder import Told
from boolbert.search.searcher import cached_searcher

# With every part, with as few as there can be, and with a reader of its own.
KINDS = {
    "reader": {"penalty": 0.5, "branches": 2, "reader_rank": 4, "gate": "cue"},
    "whole": {"penalty": 0.5, "branches": 2, "scope_reader_layers": 2},
    "bare": {"exclusion": "none", "branches": 0, "scope_reader_size": 0},
}
MADE = {}
of_all_kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def kind():
    return "whole"


@pytest.fixture
def work(kind, tmp_path_factory, lively, tiny_config, tokenizer, monkeypatch):
    """A folder with a model, its index and its cache. It is made once, because an export takes a second, and has the
    same name for each test, since what is cached belongs to a path; the files' times are copied with them."""
    work, made = (tmp_path_factory.getbasetemp() / f"{name}-{kind}" for name in ("exported", "made"))
    monkeypatch.setenv("BOOLBERT_CACHE", str(work / "cache"))
    if kind not in MADE:
        small = {"num_hidden_layers": 1, "boolean_layers": [0]}
        write_run(work / "run", lively, tiny_config, tokenizer, **small, **KINDS[kind])
        model = load_model(str(work / "run"), device="cpu")
        index = build_index(write_documents(work / "documents.jsonl"), work / "index", model, progress=False)
        graph = export.export_graph(model.encoder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(export, "export_graph", lambda encoder: graph)
            MADE[kind] = BoolSearcher(model, index), BoolSearcher(model, index, onnx=True), graph
            cache_model(model)
        shutil.copytree(work, made)
    shutil.rmtree(work)
    return shutil.copytree(made, work)


@pytest.fixture
def searchers(work, kind):
    """The model's searcher and ONNX Runtime's."""
    return MADE[kind][:2]


@pytest.fixture
def quick_export(searchers, kind, monkeypatch):
    """The same without an export: its result is stored."""
    whole = export.export_graph
    own = lambda encoder, reads=False: whole(encoder, reads=True) if reads else MADE[kind][2]  # noqa: E731
    monkeypatch.setattr(export, "export_graph", own)
    return searchers


def from_cache(work, **changes):
    given = {"name": str(work / "run"), "index": str(work / "index"), "device": None, **changes}
    return cached_searcher(**given)


def cached(work):
    return next((work / "cache/exported").iterdir())


def compare(found, expected):
    assert found.reading == expected.reading
    assert [hit.row for hit in found] == [hit.row for hit in expected]
    for name in ("score", "wanted", "excluded"):
        ours, theirs = ([getattr(hit, name) for hit in answer] for answer in (found, expected))
        assert ours == theirs if None in ours else ours == pytest.approx(theirs, abs=1e-5)


@of_all_kinds
def test_the_same_answers(work, searchers, kind, monkeypatch):
    """Of several threads too; and it is asked, not the model."""
    plain, *others = *searchers, from_cache(work)
    assert (others[1].model.name, others[1].model.note) == (plain.model.name, plain.model.note)
    options = [given for given in (*OPTIONS, {"evidence": False}) if kind != "bare" or "excluded" not in given]
    asked = list(product(QUERIES, options))
    expected = [plain.search(query, k=3, **given) for query, given in asked]
    assert kind == "bare" or any(answer.excluded_words for answer in expected)
    monkeypatch.setattr(type(plain.model.bert), "forward", lambda *_, **__: 1 / 0)
    with ThreadPoolExecutor(4) as threads:
        for searcher in others:
            answers = threads.map(lambda one, searcher=searcher: searcher.search(one[0], k=3, **one[1]), asked)
            for answer, theirs in zip(answers, expected, strict=True):
                compare(answer, theirs)


def test_over_a_store_too(work, searchers):
    plain = searchers[0]
    copy_documents(open_store(work / "index"), open_store(work / "films.faiss"), progress=False)
    expected = plain.search(QUERIES[0], k=3)
    for index in (str(work / "films.faiss"), open_store(work / "films.faiss")):
        found = from_cache(work, name=None, index=index)
        assert isinstance(found.model, CachedModel)
        answer = found.search(QUERIES[0], k=3)
        assert [hit.title for hit in answer] == [hit.title for hit in expected]
        assert [hit.score for hit in answer] == pytest.approx([hit.score for hit in expected], abs=1e-4)


@of_all_kinds
def test_queries_of_several_lengths_at_once(searchers):
    plain, exported = searchers
    tokens = [plain.queries.tokens(query).ids for query in QUERIES]
    length = max(map(len, tokens))
    told = Told([1, 1, 1], np.eye(3, length, 1, dtype=int), np.eye(3, length, 2, dtype=int))
    for given in (None, told):
        found, expected = (one.queries._run(tokens, given) for one in (exported, plain))
        assert set(found) == set(expected)
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, atol=1e-5)
    vectors = plain.model.encoder.encode_query([{"text": query, "operators": [0, 0, 0]} for query in QUERIES])
    off = plain.queries._run(tokens)
    np.testing.assert_allclose(off["sentence_embedding"], vectors, atol=1e-5)


@of_all_kinds
def test_a_published_file_reads_by_itself(searchers):
    encoder = searchers[0].model.encoder
    graph = export.export_graph(encoder, reads=True)
    export.check_published(graph, encoder)
    found = export.published_vectors(graph, encoder, QUERIES)
    np.testing.assert_allclose(found, encoder.encode_query(QUERIES), atol=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_long_queries_lose_the_end_that_the_tokenizer_says(tmp_path, lively, tiny_config, tokenizer, side):
    small = {"num_hidden_layers": 1, "boolean_layers": [0], "scope_reader_layers": 1, "penalty": 0.5}
    write_run(tmp_path / "run", lively, tiny_config, tokenizer, **small)
    file = tmp_path / "run/tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "truncation_side": side}))
    model = load_model(str(tmp_path / "run"), device="cpu")
    queries = export.torch_encoder(model.encoder)
    query = "films but not about war " + "books or " * 100 + "films but not about war"
    tokens, words = queries.tokens(query), split_words(query)
    expected = model.encoder.preprocess([query], task="query")["input_ids"][0].tolist()
    assert tokens.ids == expected
    places = [next((number for number, word in enumerate(words) if word[1:3] == span), -1) for span in tokens.offsets]
    last = len(words) - 1
    assert (places[1], places[-2]) == ((0, len(expected) - 3) if side == "right" else (last - len(expected) + 3, last))
    assert tokens.overflowing
    assert not queries.tokens("films").overflowing


# ---- what is not used


def changed_weights(work, patch):
    os.utime(work / "run/model.safetensors", ns=(1, 1))


def changed_code(work, patch):
    copy = shutil.copytree(Path(cached_model.__file__).parent, work / "package/search")
    for file in Path(cached_model.__file__).parent.parent.glob("*_boolbert.py"):
        shutil.copy2(file, work / "package")
    patch.setattr(cached_model, "__file__", str(copy / "cached_model.py"))


def changed_penalty(work, patch):
    """A changed module that the program was made by, which lies in another folder."""
    package, source = work / "package", Path(cached_model.__file__).parent.parent
    for file in (file for folder in cached_model.COMPUTES for file in source.glob(f"{folder}*.*") if file.is_file()):
        (package / file.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, package / file.relative_to(source))
    patch.setattr(cached_model, "__file__", str(package / "search/cached_model.py"))
    change_settings(work, fingerprint=cached_model._fingerprint(work / "run"))
    assert from_cache(work) is not None
    (package / "retrieval/penalty.py").write_text("# another formula")


def pipe(work, patch):
    (cached(work) / SETTINGS).unlink()
    os.mkfifo(cached(work) / SETTINGS)


def changed(name, change):
    """Another content of a cached file."""

    def write(work, patch):
        path = cached(work) / name
        path.write_bytes(change(path.read_bytes()))

    return write


def linked_folder(work, patch):
    cached(work).rename(work / "elsewhere")
    (work / "cache/exported" / cached_model._folder(str(work / "run")).name).symlink_to(work / "elsewhere")


def linked_file(work, patch):
    (cached(work) / GRAPH).rename(work / GRAPH)
    (cached(work) / GRAPH).symlink_to(work / GRAPH)


def of_another_user(name):
    def give_away(work, patch):
        if os.getuid() == 0:
            os.chown(cached(work) / name, 65534, 65534)
        else:  # another user asks
            user = os.getuid()
            patch.setattr(os, "getuid", lambda: user + 1)

    return give_away


def change_settings(work, **changes):
    file = cached(work) / SETTINGS
    settings = {**json.loads(file.read_text()), **changes}
    del settings["check"]
    file.write_text(json.dumps({**settings, "check": cached_model._check_of(settings)}))


def other_tokenizer(work, patch):
    """A damaged settings file that is valid JSON, and has all fields."""
    file = cached(work) / SETTINGS
    settings = json.loads(file.read_text())
    settings["queries"][0] = settings["queries"][0].replace("[CLS]", "[SLC]")
    file.write_text(json.dumps(settings))


def of_another_model(work, patch):
    other = shutil.copytree(work / "run", work / "other")
    change_settings(work, path=str(other), fingerprint=cached_model._fingerprint(other))


def weights_elsewhere(work, patch):
    """A file and hash that belong together, whose weights are read from a file beside it."""
    import onnx

    file = cached(work) / GRAPH
    graph = onnx.load(str(file))
    onnx.save(graph, str(file), save_as_external_data=True, location="weights", size_threshold=0)
    shutil.copy(cached(work) / "weights", work / "weights")
    patch.chdir(work)  # where a runtime might look
    change_settings(work, sha256=cached_model._sha256(file.read_bytes()))


ATTACKS = {
    "other weights": changed_weights,
    "other code": changed_code,
    "another formula": changed_penalty,
    "a pipe": pipe,
    "other settings": other_tokenizer,
    "half a graph": changed(GRAPH, lambda content: content[:-20]),
    "half the settings": changed(SETTINGS, lambda content: content[:-20]),
    "another byte": changed(GRAPH, lambda content: content[:999] + bytes([content[999] ^ 1]) + content[1000:]),
    "open to all": lambda work, patch: cached(work).chmod(0o777),
    "open to the group": lambda work, patch: cached(work).chmod(0o770),
    "a linked folder": linked_folder,
    "a linked file": linked_file,
    "another user's folder": of_another_user("."),
    "another user's file": of_another_user(GRAPH),
    "another model's": of_another_model,
    "weights in another file": weights_elsewhere,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_file_that_is_not_what_was_cached_is_refused(work, monkeypatch, attack):
    assert from_cache(work) is not None
    ATTACKS[attack](work, monkeypatch)
    assert from_cache(work) is None


@pytest.mark.parametrize("attack", ["open to all", "half the settings", "a pipe", "another user's folder"])
def test_the_model_answers_then_and_is_cached_again(work, quick_export, monkeypatch, capsys, attack):
    if attack == "another user's folder" and os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    ATTACKS[attack](work, monkeypatch)
    assert main(["search", "films", "--model", str(work / "run"), "--index", str(work / "index")]) == 0
    assert "Doc 0" in capsys.readouterr().out
    assert from_cache(work) is not None
    assert cached(work).stat().st_mode & 0o777 == 0o700


def test_only_a_cached_model_in_a_folder_on_the_cpu(work, quick_export, tmp_path, monkeypatch):
    assert from_cache(work, device="cuda") is None
    assert from_cache(work, name="org/name") is None
    assert isinstance(from_cache(work, name=None, device="cpu").model, CachedModel)  # the index knows its model
    monkeypatch.chdir(tmp_path)
    shutil.copytree(work / "run", tmp_path / "other")
    assert from_cache(work, name="other") is None
    cache_model(load_model("other", device="cpu"))
    assert from_cache(work, name="other") is not None


def test_pythons_searcher_takes_the_cached_model_where_there_is_no_gpu(work, searchers, tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "DEVICES", tmp_path)
    named = str(work / "run"), work / "index"
    for given in (named, (None, work / "index"), (work / "run", searchers[0].index)):
        assert isinstance(BoolSearcher(*given).model, CachedModel)
    (tmp_path / "nvidia0").touch()
    assert not isinstance(BoolSearcher(*named).model, CachedModel)
    assert isinstance(BoolSearcher(*named, device="cpu").model, CachedModel)
    assert isinstance(from_cache(work).model, CachedModel)  # for the one query of a command


def test_only_the_models_that_were_cached_last_stay(work, quick_export):
    own, root = cached(work).name, work / "cache/exported"
    old = [root / f"old{number}" for number in range(CACHED_MODELS + 2)]
    for age, folder in enumerate(old):
        folder.mkdir()
        os.utime(folder, (age, age))
    cache_model(quick_export[0].model)
    assert {folder.name for folder in root.iterdir()} == {own, *(folder.name for folder in old[-CACHED_MODELS + 1 :])}


def test_the_command_gives_the_same_json_without_torch(work, capsys):
    words = ["search", QUERIES[0], "--model", str(work / "run"), "--index", str(work / "index"), "--json"]
    answer, has_torch = run_without_torch(*words)
    assert not has_torch
    changed_weights(work, None)
    assert main(words) == 0
    near = {"parse_float": lambda number: pytest.approx(float(number), abs=1e-4)}
    assert json.loads(answer) == json.loads(capsys.readouterr().out, **near)


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_without_onnx_the_model_answers(work, searchers, monkeypatch, capsys, missing):
    changed_weights(work, None)
    monkeypatch.setattr(export, "find_spec", lambda package: None if package == missing else package)
    monkeypatch.setitem(sys.modules, missing, None)
    words = ["search", "films", "--model", str(work / "run"), "--index", str(work / "index")]
    assert main(words) == 0
    assert "Doc 0" in capsys.readouterr().out
    with pytest.raises(RetrievalError, match=rf"/run: cannot be exported to ONNX: {missing} is not installed$"):
        BoolSearcher(searchers[0].model, searchers[0].index, onnx=True)


@pytest.mark.parametrize(("name", "on"), [("query_vectors", 0), ("query_vectors", 1), ("penalised_query", 1)])
def test_one_that_computes_something_else_is_not_used(work, quick_export, monkeypatch, name, on):
    plain, _ = quick_export
    true_graph = export.open_graph

    def off(graph):
        run = true_graph(graph)

        def changed(inputs):
            outputs = dict(run(inputs))
            if (inputs["operators"] == on).all():
                outputs[name] = 1 - np.roll(outputs[name], 1, -1)
            return outputs

        return changed

    monkeypatch.setattr(export, "open_graph", off)
    with pytest.raises(RetrievalError, match="/run: ONNX Runtime computes other vectors than torch; go without onnx"):
        BoolSearcher(plain.model, plain.index, onnx=True)
    changed_weights(work, None)
    cache_model(plain.model)
    assert from_cache(work) is None


def test_weights_that_change_are_seen_when_it_is_asked_for_again(quick_export, monkeypatch):
    plain, exported = quick_export
    before = plain.search(QUERIES[0], k=3)
    weight = plain.model.bert.embeddings.word_embeddings.weight
    monkeypatch.undo()  # of the stored export
    monkeypatch.setattr(weight, "data", weight.data * torch.linspace(0.5, 2, weight.shape[1]))
    changed = plain.search(QUERIES[0], k=3)
    compare(exported.search(QUERIES[0], k=3), before)
    assert [hit.score for hit in changed] != pytest.approx([hit.score for hit in before], abs=1e-3)
    compare(BoolSearcher(plain.model, plain.index, onnx=True).search(QUERIES[0], k=3), changed)


@pytest.mark.parametrize("fails", [None, "to open", "to run"])
def test_the_page_uses_it_where_it_can(quick_export, monkeypatch, fails):
    plain, _ = quick_export
    opened = []
    fresh = BoolSearcher(plain.model, plain.index)
    by_torch = fresh.queries
    monkeypatch.setattr(commands, "_open_searcher", lambda options: fresh)
    page = SimpleNamespace(EXAMPLES=(), serve=lambda engine, *_, **__: opened.append(engine.open()))
    monkeypatch.setitem(sys.modules, "boolbert.serve.page", page)
    monkeypatch.setattr(commands, "optional", lambda *_: None)  # gradio
    if fails is not None:
        monkeypatch.setattr(export, "open_graph", lambda graph: 1 / 0 if fails == "to open" else lambda *_: 1 / 0)
        with pytest.raises(RetrievalError, match=r"/run: cannot be run by ONNX Runtime: division by zero$"):
            BoolSearcher(plain.model, plain.index, onnx=True)
    assert main(["serve"]) == 0
    assert (opened[0][0].queries is by_torch) == (fails is not None)


def test_other_precisions_are_refused(searchers, monkeypatch):
    plain, _ = searchers
    monkeypatch.setattr(type(plain.model.bert), "dtype", torch.bfloat16)
    with pytest.raises(RetrievalError, match=r"/run is in torch.bfloat16; it has to be in torch.float32$"):
        BoolSearcher(plain.model, plain.index, onnx=True)


# ---- the command


@pytest.mark.long
def test_the_command_writes_a_file_and_measures_it(work, quick_export, capsys):
    target = work / "query.onnx"
    assert main(["export", str(work / "run"), "--output", str(target), "--int8"]) == 0
    out = capsys.readouterr().out
    assert f"{target}: 0." in out
    model = quick_export[0].model.encoder
    exact, rough = export.measure(model, target), export.measure(model, target.with_suffix(".int8.onnx"))
    assert exact["largest difference"] < 1e-5
    assert 1e-5 < rough["largest difference"] < 0.5
    assert rough["lowest cosine"] <= rough["mean cosine"] < exact["mean cosine"]
    before, after = (rough[f"R-precision, {name}"] for name in ("torch", "onnx"))
    assert f"R-precision: {before:.4f} with torch, {after:.4f} with this file" in out


def test_a_plain_encoder_is_refused(tmp_path, lively, tiny_config, tokenizer):
    folder = write_baseline(tmp_path / "bert", lively, tiny_config, tokenizer)
    model = load_model(str(folder), device="cpu")
    index = build_index(write_documents(tmp_path / "documents.jsonl"), tmp_path / "index", model, progress=False)
    with pytest.raises(RetrievalError, match=r"onnx cannot be given: the query encoder of .* is no Bool-BERT"):
        BoolSearcher(model, index, onnx=True)
    with pytest.raises(BoolBertError, match="is not a Bool-BERT"):
        export.main([str(folder), "--output", str(tmp_path / "x.onnx")])
    with pytest.raises(FileNotFoundError, match="none: no such folder"):
        export.main([str(tmp_path / "none"), "--output", str(tmp_path / "x.onnx")])
