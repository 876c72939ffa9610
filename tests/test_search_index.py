"""An index on disk: whole or not there, true to its documents, and not to be mixed with another model."""

import json

import numpy as np
import pytest
from search_fixtures import TEXTS, write_baseline, write_documents
from sentence_helpers import embed, plain_bert

from boolbert.data import DataError
from boolbert.search import Index, build_index, load_model


@pytest.fixture
def model(run_once, load_once):
    return load_once(run_once())


@pytest.mark.parametrize("name", ["any_name.jsonl", "documents.jsonl.gz"])
def test_holds_every_document_and_its_vector(tmp_path, model, lively, tiny_config, tokenizer, name):
    build_index(write_documents(tmp_path / name), tmp_path / "index", model, progress=False)
    index = Index(tmp_path / "index")
    assert len(index) == len(TEXTS)
    assert [index[row].text for row in range(len(index))] == TEXTS
    assert index[7].title == "Doc 7 é"
    assert index.model == model.name
    assert index.fits(model)
    slow = embed(plain_bert(lively, tiny_config), tokenizer, TEXTS, "mean", "cosine")
    np.testing.assert_allclose(index.vectors[:], slow, atol=1e-5)


def test_building_again_gives_the_same_and_another_corpus_is_refused(tmp_path, model):
    docs = write_documents(tmp_path / "docs.jsonl")
    first = build_index(docs, tmp_path / "index", model, progress=False).manifest
    assert build_index(docs, tmp_path / "index", model, progress=False).manifest == first
    docs.write_text(docs.read_text() + json.dumps({"title": "more", "text": "war"}) + "\n")
    with pytest.raises(ValueError, match="the corpus has changed"):
        build_index(docs, tmp_path / "index", model, progress=False)


def test_another_document_encoder_does_not_fit(tmp_path, model, lively, tiny_config, tokenizer):
    index = build_index(write_documents(tmp_path / "docs.jsonl"), tmp_path / "index", model, progress=False)
    other = load_model(write_baseline(tmp_path / "other", lively, tiny_config, tokenizer, document_seed=9))
    with pytest.raises(ValueError, match="another document encoder"):
        index.check_model(other)


def test_missing_torn_and_mixed_indexes_are_told(tmp_path, model):
    with pytest.raises(ValueError, match=r"no index there .* boolbert index"):
        Index(tmp_path / "nowhere")
    index = build_index(write_documents(tmp_path / "docs.jsonl"), tmp_path / "index", model, progress=False)
    manifest = index.folder / "index.json"
    good = manifest.read_text()
    manifest.write_text(good.replace(index.manifest["corpus"], "0" * 16))
    with pytest.raises(ValueError, match="do not belong together"):
        Index(index.folder)
    manifest.write_text(good[:20])
    with pytest.raises(ValueError, match="not valid JSON"):
        Index(index.folder)


def test_a_file_of_queries_is_no_collection(tmp_path, model):
    (tmp_path / "train.jsonl").write_text('{"query": "a", "docs": ["b"]}\n')
    with pytest.raises(DataError, match="holds queries; expected documents"):
        build_index(tmp_path / "train.jsonl", tmp_path / "index", model, progress=False)
    (tmp_path / "bad.jsonl").write_text('{"title": "a", "text": "b"}\n{"title": "c", "text": {"d": 1}}\n')
    with pytest.raises(DataError, match=r"bad.jsonl:2: field 'text' must be a text, got dict"):
        build_index(tmp_path / "bad.jsonl", tmp_path / "index", model, progress=False)
