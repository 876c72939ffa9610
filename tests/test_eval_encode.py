"""Encoding into shards: the same vectors as sentence-transformers, the same bytes after a kill, and clear refusals."""

import hashlib
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from eval_fixtures import save_model

from boolbert.core.errors import RetrievalError
from boolbert.data import Corpus, Document
from boolbert.retrieval import encode, fingerprints
from boolbert.retrieval.batches import Preparation, encode_inputs, prepared_batches, start_batches
from boolbert.retrieval.encode import encode_corpus
from boolbert.retrieval.models import load_encoder
from boolbert.retrieval.neighbours import top_k
from boolbert.retrieval.shards import Shards, write_shard


@pytest.fixture
def folder(tmp_path, tokenizer, tiny_config):
    return save_model(tmp_path / "model", tokenizer, tiny_config)


@pytest.fixture
def model(folder):
    return load_encoder(str(folder), device="cpu", quiet=True)


@pytest.fixture
def corpus():
    words = ["films", "books", "war", "about", "not", "set", "in"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, size=rng.integers(0, 25))) for _ in range(60)]
    return Corpus([Document(f"d{row}", text) for row, text in enumerate(texts)])


def test_the_fingerprint_of_an_old_index_is_the_same(corpus):
    """In whatever form the documents come."""
    digest = hashlib.blake2b()
    for document in corpus:
        for text in (document.title, document.text):
            digest.update(len(text.encode()).to_bytes(8, "little"))
            digest.update(text.encode())
    expected = digest.hexdigest()[:16]
    assert fingerprints.corpus_fingerprint(list(corpus)) == expected
    assert fingerprints.corpus_fingerprint(corpus) == fingerprints.corpus_fingerprint(corpus) == expected


def test_encoding_goes_without_cudnns_attention_and_leaves_it_on(model, monkeypatch):
    is_on = torch.backends.cuda.cudnn_sdp_enabled
    seen, forward, before = [], type(model).forward, is_on()
    monkeypatch.setattr(type(model), "forward", lambda *args, **kw: seen.append(is_on()) or forward(*args, **kw))
    encode_inputs(model, ["films", "books"], "document", 2)
    assert (seen, is_on()) == ([False], before)


def all_bytes(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_same_vectors_as_sentence_transformers(model, corpus, tmp_path):
    model.prompts["document"] = "about "
    shards = encode_corpus(model, corpus, tmp_path / "v", shard_size=16, batch_size=4)
    wanted = model.encode_document([document.text for document in corpus])
    np.testing.assert_allclose(shards[0:60], wanted, atol=1e-6)
    np.testing.assert_allclose(shards[13:40], wanted[13:40], atol=1e-6)
    assert shards[60:70].shape == (0, 16)
    assert top_k(wanted[:3], shards, 5, block=7)[1].tolist() == top_k(wanted[:3], wanted, 5)[1].tolist()


def test_a_cpu_computes_two_batches_at_a_time(model, monkeypatch):
    texts = [f"a film about {'war and ' * (number % 9)}love" for number in range(80)]
    alone, forward = encode_inputs(model, texts, "document", 4), type(model).forward
    meeting, met = threading.Barrier(2), []

    def watched(*given, **names):
        if not met:  # the first two batches wait for one another
            meeting.wait(timeout=60)
            met.append(True)
        return forward(*given, **names)

    monkeypatch.setattr(type(model), "forward", watched)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    counts = []
    found = start_batches(model, prepared_batches(model, texts, "document", 4), "document", on_batch=counts.append)()
    np.testing.assert_array_equal(found, alone)
    assert (len(met), sum(counts)) == (2, len(texts))

    def fails(*given, **names):
        raise ValueError("no memory")

    monkeypatch.setattr(type(model), "forward", fails)
    with pytest.raises(ValueError, match="no memory"):
        encode_inputs(model, texts, "document", 4)


def test_a_cut_off_run_goes_on_and_ends_with_the_same_bytes(model, corpus, tmp_path, monkeypatch):
    encode_corpus(model, corpus, tmp_path / "whole", shard_size=16, batch_size=4)
    write, written = encode.write_shard, []

    def dies_after_two(*arguments):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(arguments[1])
        write(*arguments)

    monkeypatch.setattr(encode, "write_shard", dies_after_two)
    with pytest.raises(KeyboardInterrupt):
        encode_corpus(model, corpus, tmp_path / "cut", shard_size=16, batch_size=4)
    with pytest.raises(RetrievalError, match="2 of 4 shards are missing"):
        Shards(tmp_path / "cut")
    monkeypatch.setattr(encode, "write_shard", lambda *arguments: (written.append(arguments[1]), write(*arguments)))
    encode_corpus(model, corpus, tmp_path / "cut", shard_size=16, batch_size=32)  # it goes on with the batches begun
    assert written == [0, 1, 2, 3]
    assert all_bytes(tmp_path / "cut") == all_bytes(tmp_path / "whole")


def test_two_processes_write_the_same_bytes_as_one(model, corpus, tmp_path, monkeypatch):
    encode_corpus(model, corpus, tmp_path / "one", shard_size=16, batch_size=4)
    for process in (0, 1):
        state = SimpleNamespace(
            process_index=process,
            num_processes=2,
            is_main_process=process == 0,
            is_local_main_process=process == 0,
            wait_for_everyone=lambda: None,
        )
        monkeypatch.setattr(encode, "processes", lambda state=state: state)
        if process == 0:
            with pytest.raises(RetrievalError, match="2 of 4 shards"):  # the other half is still to come
                encode_corpus(model, corpus, tmp_path / "two", shard_size=16, batch_size=4)
    encode_corpus(model, corpus, tmp_path / "two", shard_size=16, batch_size=4)
    assert all_bytes(tmp_path / "two") == all_bytes(tmp_path / "one")


def test_a_changed_corpus_or_model_is_refused(model, corpus, tmp_path):
    encode_corpus(model, corpus, tmp_path / "v")
    changed = Corpus([*list(corpus)[:-1], Document("d59", "films about war")])
    with pytest.raises(RetrievalError, match="corpus has changed since it was encoded"):
        encode_corpus(model, changed, tmp_path / "v")
    with pytest.raises(RetrievalError, match="another storage"):
        encode_corpus(model, corpus, tmp_path / "v", storage="float16")
    with torch.no_grad():
        model[0].sub_modules["query"][0].model.embeddings.word_embeddings.weight[0, 0] += 1
    encode_corpus(model, corpus, tmp_path / "v")  # the query side does not shape document vectors
    with torch.no_grad():
        model[0].sub_modules["document"][0].model.embeddings.word_embeddings.weight[0, 0] += 1
    with pytest.raises(RetrievalError, match="another model"):
        encode_corpus(model, corpus, tmp_path / "v")


def test_half_precision_on_disk_and_in_the_model(folder, model, corpus, tmp_path):
    exact = encode_corpus(model, corpus, tmp_path / "f32")
    half = encode_corpus(model, corpus, tmp_path / "f16", storage="float16")
    assert half[0:5].dtype == np.float16
    np.testing.assert_allclose(half[0:60], exact[0:60], atol=2e-3)
    rough = load_encoder(str(folder), device="cpu", precision="bfloat16", quiet=True)
    np.testing.assert_allclose(encode_corpus(rough, corpus, tmp_path / "bf16")[0:60], exact[0:60], atol=0.1)


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_rows_of_several_shards(model, corpus, tmp_path, storage):
    shards = encode_corpus(model, corpus, tmp_path / "v", shard_size=16, batch_size=4, storage=storage)
    rows = np.array([59, 0, 16, 15, 16])
    assert (shards.rows(rows) == shards[0:60][rows]).all()
    assert shards.rows(rows).dtype == storage
    assert shards.rows(np.array([], np.int64)).shape == (0, shards.shape[1])


def test_nan_and_overflow_are_errors(model, corpus, tmp_path):
    with torch.no_grad():
        model[0].sub_modules["document"][0].model.embeddings.word_embeddings.weight[5:] = float("nan")
    with pytest.raises(RetrievalError, match=r"document \d+: the model gives NaN"):
        encode_corpus(model, corpus, tmp_path / "v")
    manifest = {"documents": 1, "shard_size": 1, "storage": "float16"}
    with pytest.raises(RetrievalError, match="too large for float16"):
        write_shard(tmp_path, 0, np.full((1, 2), 1e6, np.float32), manifest)


def test_a_model_that_does_more_than_to_tokenize_prepares_its_texts_itself(model, corpus, tmp_path, monkeypatch):
    original = type(model).preprocess

    def preprocess(self, texts, *args, **kwargs):
        return original(self, [text.replace("war", "books") for text in texts], *args, **kwargs)

    monkeypatch.setattr(type(model), "preprocess", preprocess)
    monkeypatch.setattr("boolbert.retrieval.batches.SAMPLES", ("films about war", "a"))
    assert Preparation.of(model, "document") is None
    shards = encode_corpus(model, corpus, tmp_path / "v", batch_size=4)
    wanted = model.encode_document([document.text for document in corpus])
    np.testing.assert_allclose(shards[0:60], wanted, atol=1e-6)
