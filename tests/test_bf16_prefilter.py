"""Documents that are ruled out in half precision: the answer is that of the exact search, whatever the vectors."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fixtures import QUERY, write_documents, write_run

from boolbert.core.errors import RetrievalError
from boolbert.retrieval import bf16_prefilter
from boolbert.retrieval.bf16_prefilter import Prefilter
from boolbert.retrieval.index import build_index
from boolbert.retrieval.models import load_model
from boolbert.retrieval.neighbours import top_k
from boolbert.retrieval.penalty import penalised_query
from boolbert.retrieval.shards import Shards
from boolbert.search import BoolSearcher


@pytest.fixture(autouse=True)
def copied_at_the_first_query(monkeypatch):
    """However few documents there are, and however long it takes on this machine."""
    monkeypatch.setattr(bf16_prefilter, "FEWEST", 1)
    monkeypatch.setattr(bf16_prefilter, "AFTER", 1)
    monkeypatch.setattr(bf16_prefilter, "BEST_WANTED", 40)
    times = iter(range(10**9, 0, -1))  # what is timed later is faster: the copy
    monkeypatch.setattr(bf16_prefilter, "_seconds", lambda work: float(next(times)))


def write_shards(folder, vectors, shard_size=64):
    folder.mkdir(exist_ok=True)
    manifest = {"documents": len(vectors), "size": vectors.shape[1], "shard_size": shard_size, "batch_size": 1}
    manifest |= {"storage": str(vectors.dtype), "corpus": "made up", "model": "made up"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for number, start in enumerate(range(0, len(vectors), shard_size)):
        np.save(folder / f"vectors-{number:05d}.npy", vectors[start : start + shard_size])
    return Shards(folder)


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def with_penalty(vectors, excluded, weight, above):
    return penalised_query(*map(torch.from_numpy, (vectors, excluded)), torch.tensor([[weight, above]])).numpy()


def documents_and_query(rng, kind, count, size):
    """A query of one vector, of several, or of several with a penalty."""
    documents, vectors = unit(rng.normal(size=(count, size))), unit(rng.normal(size=(1, 3, size)))
    if kind == "penalty":
        return documents, with_penalty(vectors, documents[:1], 0.4, 0.2)
    return documents * (1 if kind == "one" else 7), vectors[:, :1] * 3 if kind == "one" else vectors


def check(prefilter, shards, query, k):
    """The first answers, before and after the copy is made, are those of the exact search."""
    wanted = top_k(query, shards, k, device="cpu")
    for _ in range(3):
        got = prefilter.top_k(query, k)
        assert got[1].tolist() == wanted[1].tolist()
        np.testing.assert_allclose(got[0], wanted[0], rtol=1e-5, atol=1e-6)
        assert [part.dtype for part in got] == [part.dtype for part in wanted]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 20), kind=st.sampled_from(["one", "several", "penalty"]))
def test_it_answers_as_the_exact_search(tmp_path_factory, seed, k, kind):
    documents, query = documents_and_query(np.random.default_rng(seed), kind, 700, 16)
    shards = write_shards(tmp_path_factory.mktemp("vectors"), documents)
    prefilter = Prefilter(shards)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bf16_prefilter, "MOST_LEFT", 1)
        check(prefilter, shards, query, k)
    assert prefilter.copy is not None


def close_together(tmp_path, seed=0):
    """A query, and 40 of 2,000 documents that half precision can hardly tell apart."""
    rng = np.random.default_rng(seed)
    documents, query = unit(rng.normal(size=(2_000, 64))), unit(rng.normal(size=(1, 1, 64)))
    documents[::50] = unit(query[0] + 0.1 * unit(rng.normal(size=(40, 64))))
    return write_shards(tmp_path / f"close-{seed}", documents), query


def test_what_half_precision_cannot_tell_apart(tmp_path):
    wrong = 0
    for seed in range(20):
        shards, query = close_together(tmp_path, seed)
        check(Prefilter(shards), shards, query, 5)
        rough = (torch.from_numpy(shards[:]).bfloat16() @ torch.from_numpy(query[0, 0]).bfloat16()).topk(5).indices
        wrong += rough.tolist() != top_k(query, shards, 5, device="cpu")[1][0].tolist()
    assert wrong  # by half precision alone


def no_memory(*args, **kwargs):
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory")


def off_by_more_than_the_bound(halves, rows, products=bf16_prefilter._products):
    return products(halves, rows) + 0.02


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LARGEST", 100),
        ("FEWEST", 2_001),
        ("ERROR", 0.0),
        ("MOST_LEFT", 1 / 100),
        ("HOPELESS", 0),
        ("Copy", no_memory),
        ("_products", off_by_more_than_the_bound),
    ],
)
def test_without_a_copy_where_it_is_too_large_wrong_or_slow(tmp_path, monkeypatch, name, value):
    shards, query = close_together(tmp_path)
    monkeypatch.setattr(bf16_prefilter, name, value)
    prefilter = Prefilter(shards)
    check(prefilter, shards, query, 5)
    assert prefilter.copy is None


def test_a_copy_that_rules_out_too_few_is_given_up(tmp_path, monkeypatch):
    shards, query = close_together(tmp_path)
    prefilter = Prefilter(shards)
    check(prefilter, shards, query, 5)
    assert prefilter.copy is not None
    monkeypatch.setattr(bf16_prefilter, "MOST_LEFT", 1 / 100)
    monkeypatch.setattr(bf16_prefilter, "MOST_IN_VAIN", 3)
    check(prefilter, shards, query, 5)
    assert prefilter.copy is None


def test_all_documents_can_be_asked_for(tmp_path):
    shards, query = close_together(tmp_path)
    check(Prefilter(shards), shards, query, 3_000)


def test_a_query_with_a_penalty_without_a_copy(tmp_path, monkeypatch):
    monkeypatch.setattr(bf16_prefilter, "AFTER", 0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        documents, query = documents_and_query(rng, "penalty", 3_000, 24)
        query[0, -1] *= rng.choice([0.0, 0.1, 1.0])
        shards = write_shards(tmp_path / str(rng.integers(1 << 40)), documents)
        for k in (1, 5, 1_000):
            check(Prefilter(shards), shards, query, k)


def test_all_documents_nearest_to_what_is_wanted_are_excluded(tmp_path, monkeypatch):
    monkeypatch.setattr(bf16_prefilter, "AFTER", 0)
    rng = np.random.default_rng(0)
    documents, wanted = unit(rng.normal(size=(3_000, 24))), unit(rng.normal(size=(1, 1, 24)))
    documents[:200] = unit(wanted[0] + 0.01 * rng.normal(size=(200, 24)))
    shards, query = write_shards(tmp_path / "v", documents), with_penalty(wanted, wanted[0], 5.0, 0.5)
    check(Prefilter(shards), shards, query, 5)
    assert min(Prefilter(shards).top_k(query, 5)[1][0]) >= 200


@pytest.mark.parametrize(("storage", "shard_size"), [("float32", 700), ("float32", 8192), ("float16", 700)])
def test_ties_in_several_shards(tmp_path, storage, shard_size):
    documents, query = documents_and_query(np.random.default_rng(1), "one", 3_000, 24)
    documents[[5, 1_500, 2_999]] = documents[7]
    query[0, 0] = documents[7]
    shards = write_shards(tmp_path / "v", documents.astype(storage), shard_size)
    for k in (1, 5, 3_000, 5_000):
        check(Prefilter(shards), shards, query, k)
    assert Prefilter(shards).top_k(query, 5)[1][0, :4].tolist() == [5, 7, 1_500, 2_999]


@pytest.mark.parametrize("count", [1, 2])
def test_documents_that_are_the_same_stand_in_their_order(tmp_path, count):
    rng = np.random.default_rng(0)
    documents = unit(rng.normal(size=(4_000, 96)))
    documents[rng.permutation(4_000)[:3_000]] = np.repeat(documents[:300], 10, axis=0)
    shards = write_shards(tmp_path / "same", documents)
    prefilter = Prefilter(shards)
    for _ in range(40):
        query = unit(rng.normal(size=(1, count, 96)))
        scores, rows = prefilter.top_k(query, 25)
        pairs = list(zip((-scores[0]).tolist(), rows[0].tolist(), strict=True))
        assert pairs == sorted(pairs)
        exact = (documents.astype(np.float64) @ query[0].T.astype(np.float64)).max(1)
        if prefilter.copy is not None:
            assert rows[0].tolist() == np.lexsort((np.arange(4_000), -exact.astype(np.float32)))[:25].tolist()


@pytest.mark.parametrize("after", [0, 1])
def test_what_is_wrong_is_said_with_and_without_a_copy(tmp_path, monkeypatch, after):
    monkeypatch.setattr(bf16_prefilter, "AFTER", after)
    shards, query = close_together(tmp_path)
    prefilter = Prefilter(shards)
    prefilter.top_k(query, 5)
    assert (prefilter.copy is not None) == bool(after)
    penalised = with_penalty(query, query[0], 0.4, float("nan"))
    broken = np.array(query)
    broken[0, 0, 3] = np.inf
    for wrong, k, match in (
        (broken, 5, "query vector 0 holds NaN or infinity"),
        (penalised, 5, "query vector 0 holds NaN or infinity"),
        (np.ones((1, 1, 3), np.float32), 5, "size 3, document vectors of size 64"),
        (query, 0, "k must be a whole number of at least 1, got 0"),
    ):
        with pytest.raises(RetrievalError, match=match):
            prefilter.top_k(wrong, k)


def test_a_broken_document_is_named(tmp_path):
    documents, query = documents_and_query(np.random.default_rng(1), "one", 3_000, 24)
    documents[1_234, 3] = np.nan
    prefilter = Prefilter(write_shards(tmp_path / "v", documents))
    for _ in range(3):
        with pytest.raises(RetrievalError, match="document vector 1234 holds NaN or infinity"):
            prefilter.top_k(query, 5)


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_rows_of_several_shards(tmp_path, storage):
    documents = np.random.default_rng(0).normal(size=(200, 8)).astype(storage)
    shards = write_shards(tmp_path / storage, documents)
    rows = np.array([199, 0, 64, 63, 64])
    assert (shards.rows(rows) == documents[rows]).all()
    assert shards.rows(rows).dtype == storage
    assert shards.rows(np.array([], np.int64)).shape == (0, 8)


def test_a_searcher_answers_the_same_again_and_again(tmp_path, lively, tiny_config, tokenizer, monkeypatch):
    write_run(tmp_path / "run", lively, tiny_config, tokenizer, gate="cue")
    model = load_model(str(tmp_path / "run"), device="cpu")
    index = build_index(
        write_documents(tmp_path / "docs.jsonl"), tmp_path / "index", model, progress=False, evidence=False
    )
    searcher = BoolSearcher(tmp_path / "run", index, device="cpu")
    monkeypatch.setattr(bf16_prefilter, "MOST_LEFT", 1)
    answers = [[(hit.row, pytest.approx(hit.score, abs=1e-5)) for hit in searcher.search(QUERY, k=4)] for _ in range(4)]
    assert answers[1:] == answers[:1] * 3
    assert searcher.index.prefilter.copy is not None
