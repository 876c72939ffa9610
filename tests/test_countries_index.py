"""The countries' vectors that come with the package: whose they are, and what happens where they do not fit."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from boolbert.retrieval import countries_index, index
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.countries_index import STORED, countries, default_index, write_stored
from boolbert.retrieval.evidence import Evidence
from boolbert.retrieval.fingerprints import document_encoder_of
from boolbert.retrieval.index import EVIDENCE, VECTORS, Index, clause_encoder
from boolbert.retrieval.models import default_model
from boolbert.retrieval.shards import Shards
from boolbert.search import BoolSearcher


@pytest.fixture(scope="module")
def corpus():
    return countries()


@pytest.fixture(scope="module")
def metadata():
    with safe_open(STORED, framework="np") as file:
        return file.metadata()


def test_they_are_those_of_the_default_encoder(tmp_path, corpus):
    """If this fails, write them again: python -m boolbert.retrieval.countries_index."""
    model = default_model("cpu")
    assert write_stored(tmp_path, corpus, document_encoder_of(model))  # every clause is stored
    few = corpus.texts()[:2]
    np.testing.assert_allclose(
        Shards(tmp_path / VECTORS)[:2], encode_inputs(model.encoder, few, "document", 2), atol=1e-3
    )
    index = Evidence(tmp_path / EVIDENCE, *(Shards(tmp_path / VECTORS).manifest[name] for name in ("corpus", "model")))
    start, end, _ = index._clauses[1]
    best, denied = index.best(clause_encoder(model)([few[0][start:end]]), np.array([0]))
    assert max(best.max(), denied.max()) > 0.999


def test_those_of_another_encoder_or_without_a_clause_are_not_taken(tmp_path, corpus, metadata):
    tensors = load_file(STORED)
    fewer = {name: tensor if name == "documents" else tensor[10:] for name, tensor in tensors.items()}
    save_file(fewer, tmp_path / "fewer.safetensors", metadata=metadata)
    fewer = tmp_path / "fewer.safetensors"
    assert not write_stored(tmp_path / "index", corpus, metadata["document_encoder"], fewer)
    assert not write_stored(tmp_path / "index", corpus, "another")
    assert [path.name for path in tmp_path.iterdir()] == ["fewer.safetensors"]


def test_a_full_cache_that_cannot_be_written_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path))
    model = default_model("cpu")
    made = default_index(model, progress=False)
    monkeypatch.setattr(countries_index, "_made", lambda *_: pytest.fail("it was tried by writing"))
    assert default_index(model, progress=False).folder == made.folder


def pipe(path):
    path.unlink()
    os.mkfifo(path)


DAMAGE = {
    "a pipe": lambda folder: pipe(folder / "index.json"),
    "a pipe below": lambda folder: pipe(folder / "evidence" / "vectors.npy"),
    "cut off": lambda folder: (folder / "evidence" / "evidence.json").write_text("{"),
    "no folder": lambda folder: (shutil.rmtree(folder), os.mkfifo(folder)),
}


@pytest.mark.filterwarnings("ignore:the cache cannot be written")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_is_made_anew(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path))
    model = default_model("cpu")
    DAMAGE[damage](default_index(model, progress=False).folder)
    assert len(BoolSearcher(model, progress=False).search("islands", 3)) == 3


def test_on_a_full_disk_it_answers_without_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path / "cache"))
    begin = index.begin

    def full(folder, manifest):
        if folder.is_relative_to(tmp_path):
            raise OSError(errno.ENOSPC, "No space left on device", str(folder))
        begin(folder, manifest)

    monkeypatch.setattr(index, "begin", full)
    with pytest.warns(UserWarning, match="the cache cannot be written .* using a temporary folder"):
        assert len(BoolSearcher(default_model("cpu"), progress=False).search("islands", 3)) == 3


def test_the_cache_changes_with_the_code_that_makes_it(tmp_path, monkeypatch):
    before = countries_index._version()
    for name in countries_index.WRITE:
        shutil.copy(Path(countries_index.__file__).with_name(f"{name}.py"), tmp_path)
    monkeypatch.setattr(countries_index, "__file__", str(tmp_path / "countries_index.py"))
    assert countries_index._version() == before
    (tmp_path / "words.py").write_text("# other rules")
    assert countries_index._version() != before


def test_what_a_killed_search_left_is_written_anew(tmp_path, corpus, metadata):
    (tmp_path / "index" / VECTORS).mkdir(parents=True)
    (tmp_path / "index" / VECTORS / "manifest.json").write_text("{")
    assert write_stored(tmp_path / "index", corpus, metadata["document_encoder"])
    assert len(Index(tmp_path / "index")) == len(corpus)
