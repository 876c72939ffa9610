"""The default model without torch: the same readings, vectors and index as with it, or it is not used."""

import json
import os
import stat
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from search_fixtures import run_without_torch, write_documents

from boolbert.cli import main
from boolbert.core import environment
from boolbert.core.errors import BoolBertError
from boolbert.retrieval import int8_encoder, models
from boolbert.retrieval.fingerprints import document_encoder_of
from boolbert.retrieval.index import Index
from boolbert.retrieval.int8_encoder import CannotUseInt8, Int8Encoder
from boolbert.retrieval.models import default_model
from boolbert.search import BoolSearcher, explain
from boolbert.search import default_program as module
from boolbert.search.cached_model import _read, cached_model
from boolbert.search.default_program import default_documents, default_program
from boolbert.search.export import checked_encoder, tokenizer_of

GPUS = environment.GPUS
TEXTS = ["", "a", "Ünïcode: it does NOT have a king.", "sea and sand " * 150, "x" * 300]
QUERY = "landlocked countries in Africa that are not former British colonies"


@pytest.fixture(scope="module")
def model():
    return default_model("cpu")


@pytest.fixture
def folder(model):
    return Path(model.path)


@pytest.fixture
def versions(folder):
    """Those of the libraries when the graph was made."""
    return module._stored(folder)[1]["versions"]


@pytest.fixture(autouse=True)
def any_machine(monkeypatch, versions):
    monkeypatch.setattr(int8_encoder, "INSTRUCTIONS", {"processor"})
    monkeypatch.setattr(environment, "GPUS", ())
    monkeypatch.setattr(module, "_versions", lambda: versions)


def run(*words, cache):
    return run_without_torch(*words, env={**os.environ, "BOOLBERT_CACHE": str(cache)}, cwd=cache.parent)


def test_it_is_the_default_model(model, folder):
    """If this fails, write it again: python -m boolbert.search.default_program."""
    graph, queries, document_encoder = default_program(folder)
    checked_encoder(graph, model.encoder)  # raises where anything differs by more than rounding
    assert json.loads(queries.tokenizer) == json.loads(tokenizer_of(model.encoder))
    assert document_encoder == document_encoder_of(model)
    assert (queries.prompt, queries.is_cosine, queries.can_exclude) == ("", True, True)


def test_explained_alike(model, monkeypatch):
    found, expected = (BoolSearcher(one) for one in (cached_model(None), model))
    for query in (QUERY, "monarchies or island countries"):
        ours, theirs = (explain(searcher, query, 5).as_json() for searcher in (found, expected))
        assert ours == rounded(theirs)
    monkeypatch.setattr(models, "take_shipped", lambda bert: False)  # as with an encoder that has none
    attention = explain(BoolSearcher(cached_model(None)), QUERY, 5).attention
    assert len(attention[0].strength) == len(QUERY.split())


def rounded(value):
    """What equals a JSON value but for rounding."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(rounded, value))
    return pytest.approx(value, abs=1e-4) if isinstance(value, float) else value


def test_its_documents_have_the_same_bits(model):
    found, expected = default_documents(), Int8Encoder.of(model.encoder)
    np.testing.assert_array_equal(found.int8(TEXTS), expected(TEXTS))
    assert (found.note, found.document_encoder) == (model.note, expected.fingerprint())


@pytest.mark.parametrize("name", ["tokenizer.json", "1_Pooling/config.json", "model.safetensors"])
def test_other_files_are_refused(tmp_path, folder, name):
    for file in (file for file in folder.rglob("*") if file.is_file()):
        link = tmp_path / file.relative_to(folder)
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(file)
    default_program(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes((folder / name).read_bytes()[:1000] + b" ")
    with pytest.raises(BoolBertError, match="was made from another encoder, or by other code"):
        default_program(tmp_path)


def test_other_code_and_other_versions_are_refused(folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module, "_code_hash", lambda: "0")
        with pytest.raises(BoolBertError, match="other code"):
            default_program(folder)
    monkeypatch.setattr(module, "_versions", lambda: ["9.0", "9.0"])
    with pytest.raises(BoolBertError, match="another fingerprint"):
        default_documents()
    default_program(folder)


def test_a_gpu_or_an_old_processor_encodes_documents_with_torch(monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        (tmp_path / "nvidia1").touch()
        patch.setattr(environment, "DEVICES", tmp_path)
        patch.setattr(environment, "GPUS", GPUS)
        with pytest.raises(BoolBertError, match="on a GPU"):
            default_documents()
    monkeypatch.setattr(int8_encoder, "INSTRUCTIONS", {"no-such-instruction"})
    with pytest.raises(CannotUseInt8, match="no int8 products"):
        default_documents()


def test_a_processor_that_computes_something_else_is_not_used(monkeypatch):
    encode = Int8Encoder.__call__
    monkeypatch.setattr(Int8Encoder, "__call__", lambda encoder, texts: encode(encoder, [text[::-1] for text in texts]))
    with pytest.raises(BoolBertError, match=r"a cosine of 0\.\d\d to those in float32"):
        default_documents()


def test_the_first_search_needs_no_torch_and_fills_the_cache(tmp_path, model, monkeypatch, capsys):
    cache = tmp_path / "cache"
    first, has_torch = run("search", QUERY, "--json", cache=cache)
    assert not has_torch
    (made,) = (cache / "exported").iterdir()
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    monkeypatch.setenv("BOOLBERT_CACHE", str(cache))
    assert _read(None, None).document_encoder == document_encoder_of(model)
    for file in made.iterdir():
        file.write_bytes(b"cut off")
    assert main(["search", QUERY, "--json"]) == 0  # and fills it again
    assert json.loads(capsys.readouterr().out) == rounded(json.loads(first))
    assert _read(None, None).document_encoder == document_encoder_of(model)
    titles = [hit["title"] for hit in json.loads(first)["hits"]]
    assert titles == [hit.title for hit in BoolSearcher(model).search(QUERY)]


def test_an_index_of_documents_needs_no_torch_where_int8_is_used(tmp_path, model, versions):
    documents = write_documents(tmp_path / "documents.jsonl")
    _, has_torch = run("index", str(documents), "--output", str(tmp_path / "index"), cache=tmp_path / "cache")
    built, encoder = Index(tmp_path / "index"), Int8Encoder.of(model.encoder)
    assert built.fits(model)
    if built.vectors.manifest["precision"] == "int8":
        assert has_torch == (versions != [version(name) for name in ("transformers", "sentence-transformers")])
        texts = [document.text for document in built.documents()]
        np.testing.assert_array_equal(built.vectors[:], encoder(texts))
