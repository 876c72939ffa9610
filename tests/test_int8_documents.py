"""Documents in int8: near to float32, the same bits in one go and in ten, and float32 where int8 cannot be used."""

import shutil
import sys

import numpy as np
import pytest
from search_fixtures import write_documents, write_run
from store_fixtures import write_films

from boolbert.core.errors import RetrievalError
from boolbert.data import Corpus, Document
from boolbert.data.own import OwnDocuments
from boolbert.retrieval import int8_encoder as int8
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.encode import encode_corpus
from boolbert.retrieval.int8_encoder import CannotUseInt8, Int8Encoder
from boolbert.retrieval.models import load_encoder
from boolbert.retrieval.stores import copy_documents, index_documents, open_store
from boolbert.search import Index, build_index, load_model

TEXTS = ["", "a", "films about war " * 30, *(f"books {row} about war, not in c. Set in b" for row in range(20))]
SIZES = {"hidden_size": 128, "intermediate_size": 256}


@pytest.fixture(autouse=True)
def any_processor(monkeypatch):
    """The program runs everywhere, if not faster than float32: what every processor says of itself is enough."""
    monkeypatch.setattr(int8, "INSTRUCTIONS", {"processor"})


@pytest.fixture(params=[("mean", "cosine"), ("cls", "dot")], ids="-".join)
def model(request, tmp_path, made_once, lively, tiny_config, tokenizer):
    pooling, similarity = request.param
    config = type(tiny_config)(**{**tiny_config.to_dict(), **SIZES})

    def write(folder):
        write_run(folder, lively, config, tokenizer, pooling=pooling, similarity=similarity, **SIZES)

    return load_model(shutil.copytree(made_once(f"int8-{pooling}", write), tmp_path / "model"), device="cpu")


@pytest.fixture
def films(tmp_path):
    return OwnDocuments(write_films(tmp_path / "films.jsonl"), progress=False)


def cosines(found, expected):
    return (found * expected).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)


def content(folder):
    """The vectors and clauses of each document of a folder, by its id."""
    now = open_store(folder).snapshot()
    said = now.evidence.documents(np.arange(len(now))) if now.about.evidence else [None] * len(now)
    parts = [() if one is None else (one.clauses.tobytes(), one.vectors.tobytes()) for one in said]
    return {now.records[row]["id"]: (now[row : row + 1].tobytes(), *part) for row, part in enumerate(parts)}


def test_near_to_float32(model):
    found, expected = Int8Encoder.of(model.encoder)(TEXTS), encode_inputs(model.encoder, TEXTS, "document", 8)
    assert cosines(found, expected).min() > 0.99
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.linalg.norm(expected, axis=1), rtol=0.05)
    assert not np.array_equal(found, expected)


def test_near_to_float32_with_the_real_encoder(pretrained_bert):
    model = load_encoder(pretrained_bert, device="cpu", quiet=True)
    texts = ["Laos is a landlocked country in Asia.", "It does not have a king.", "owls", "sea and sand " * 150]
    assert cosines(Int8Encoder.of(model)(texts), model.encode_document(texts)).min() > 0.99


def test_the_same_bits_whatever_is_encoded_beside(model):
    encoder = Int8Encoder.of(model.encoder)
    together = encoder(TEXTS)
    assert np.array_equal(np.concatenate([encoder([text]) for text in TEXTS]), together)
    assert encoder([]).shape == (0, SIZES["hidden_size"])


def test_the_same_index_in_one_go_and_in_ten(tmp_path, model, films):
    build_index(films, tmp_path / "at-once", model, progress=False)
    index_documents(films, open_store(tmp_path / "in-ten"), model, batch=6, progress=False)
    lines = (tmp_path / "films.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    for name, count in (("begun", 20), ("rest", 60)):
        (tmp_path / f"{name}.jsonl").write_text("".join(lines[count - 40 if count == 60 else 0 : count]), "utf-8")
    begun, rest = (OwnDocuments(tmp_path / f"{name}.jsonl", progress=False) for name in ("begun", "rest"))
    build_index(begun, tmp_path / "extended", model, progress=False)
    index_documents(rest, open_store(tmp_path / "extended"), model, progress=False)
    copy_documents(open_store(tmp_path / "at-once"), open_store(tmp_path / "copied"), progress=False)
    expected = content(tmp_path / "at-once")
    assert len(expected) == 60
    for name in ("in-ten", "extended", "copied"):
        assert content(tmp_path / name) == expected
        assert open_store(tmp_path / name).about().precision == "int8"


def test_a_build_that_was_cut_off_goes_on_with_the_same_bytes(tmp_path, model):
    corpus, encoder = Corpus(Document(str(row), text) for row, text in enumerate(TEXTS)), Int8Encoder.of(model.encoder)
    counts = []
    for name in ("whole", "again"):
        shards = encode_corpus(encoder, corpus, tmp_path / name, shard_size=5, progress=False)
        counts.append(shards[:].tobytes())
    (tmp_path / "again" / "vectors-00001.npy").unlink()
    with pytest.raises(RetrievalError, match="was begun in int8 and would go on in float32; give another folder"):
        encode_corpus(model.encoder, corpus, tmp_path / "again", shard_size=5, progress=False)
    shards = encode_corpus(encoder, corpus, tmp_path / "again", shard_size=5, progress=False)
    assert {*counts, shards[:].tobytes()} == {counts[0]}


def test_two_precisions_do_not_meet_in_one_store(tmp_path, model, films):
    for name, float32 in (("exact", True), ("rounded", False)):
        build_index(films, tmp_path / name, model, progress=False, float32=float32)
    copy_documents(open_store(tmp_path / "exact"), open_store(tmp_path / "copied"), progress=False)
    with pytest.raises(RetrievalError, match=r"were computed in float32, those of .*rounded in int8"):
        copy_documents(open_store(tmp_path / "rounded"), open_store(tmp_path / "copied"), progress=False)


def test_an_index_goes_on_as_it_began(tmp_path, model, films, capsys, monkeypatch):
    """One in float32 stays so; one in int8 does where it can, and else says so in one line."""
    build_index(films, tmp_path / "exact", model, progress=False, float32=True)
    build_index(films, tmp_path / "quick", model, progress=False)
    more = OwnDocuments(write_documents(tmp_path / "more.jsonl"), progress=False)
    for name in ("exact", "quick"):
        index_documents(more, open_store(tmp_path / name), model, progress=False)
    assert [open_store(tmp_path / name).about().precision for name in ("exact", "quick")] == ["float32", "int8"]
    first = Index(tmp_path / "exact")
    expected = encode_inputs(model.encoder, [one.text for one in first.documents()], "document", 8)
    np.testing.assert_allclose(first.vectors[:], expected, atol=1e-5)
    with pytest.raises(RetrievalError, match="quick: its vectors were computed in int8; leave --float32 out"):
        index_documents(more, open_store(tmp_path / "quick"), model, progress=False, float32=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(int8, "INSTRUCTIONS", {"no-such-instruction"})
    (tmp_path / "more.jsonl").write_text('{"id": "new", "title": "New", "text": "war in c"}\n')
    index_documents(OwnDocuments(tmp_path / "more.jsonl", progress=False), open_store(tmp_path / "quick"), model)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note")]
    assert "computed in int8, and here the processor has no int8 products" in line


@pytest.mark.parametrize("missing", ["onnxruntime", "onnx"])
def test_without_onnx_runtime_it_is_float32(tmp_path, model, films, missing, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, missing, None)
    built = build_index(films, tmp_path / "index", model, progress=False)
    texts = [document.text for document in built.documents()]
    np.testing.assert_allclose(built.vectors[:], encode_inputs(model.encoder, texts, "document", 8), atol=1e-5)
    assert open_store(tmp_path / "index").about().precision == "float32"
    assert capsys.readouterr().err == ""


def test_a_program_that_computes_something_else_is_not_used(model, monkeypatch):
    rounded = int8.in_int8
    monkeypatch.setattr(int8, "in_int8", lambda matrix: rounded(-matrix))
    with pytest.raises(CannotUseInt8, match=r"a cosine of -?0"):
        Int8Encoder.of(model.encoder)


def test_models_that_are_no_such_bert(tmp_path, lively, tiny_config, tokenizer, model):
    write_run(tmp_path / "small", lively, tiny_config, tokenizer)
    with pytest.raises(CannotUseInt8, match="size"):
        Int8Encoder.of(load_model(tmp_path / "small").encoder)
    half = load_encoder(str(tmp_path / "model"), device="cpu", precision="bfloat16", quiet=True)
    with pytest.raises(CannotUseInt8, match="precision"):
        Int8Encoder.of(half)
