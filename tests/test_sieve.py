"""Documents that are ruled out in half precision: the answer is that of the exact search, whatever the vectors."""

import itertools
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from boolbert.core.errors import RetrievalError
from boolbert.retrieval import sieve as sieves
from boolbert.retrieval.index import Index
from boolbert.retrieval.neighbours import top_k
from boolbert.retrieval.shards import Shards
from boolbert.retrieval.sieve import AFTER, Sieve
from boolbert.retrieval.two_sided import two_sided


@pytest.fixture(autouse=True)
def from_the_first_document_on(monkeypatch):
    monkeypatch.setattr(sieves, "FEWEST", 1)


def write_shards(folder, vectors, shard_size=64):
    folder.mkdir(exist_ok=True)
    manifest = {"documents": len(vectors), "size": vectors.shape[1], "shard_size": shard_size, "batch_size": 1}
    manifest |= {"storage": str(vectors.dtype), "corpus": "made up", "model": "made up"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for number, start in enumerate(range(0, len(vectors), shard_size)):
        np.save(folder / f"vectors-{number:05d}.npy", vectors[start : start + shard_size])
    return Shards(folder)


@pytest.fixture(autouse=True)
def always_faster(monkeypatch):
    """Whatever is timed takes as long as it says."""
    times = {"exact": 2.0, "copy": 1.0}
    order = itertools.cycle(times)
    monkeypatch.setattr(sieves, "_seconds", lambda work: times[next(order)])
    return times


def prepared(shards, query, k=5):
    """A sieve with its copy."""
    sieve = Sieve(shards)
    sieve._copy = sieve._prepared(query, k)
    return sieve


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def made(rng, kind, count, size):
    """Documents and a query of several vectors, alone or with what it excludes."""
    documents, vectors = unit(rng.normal(size=(count, size))), unit(rng.normal(size=(1, 3, size)))
    if kind == "two-sided":
        parts = torch.from_numpy(vectors), torch.from_numpy(documents[:1]), torch.tensor([[0.4, 0.2]])
        return documents, two_sided(*parts).numpy()
    return documents * (1 if kind == "one" else 7), vectors[:, :1] * 3 if kind == "one" else vectors


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 20), kind=st.sampled_from(["one", "several", "two-sided"]))
def test_it_answers_as_the_exact_search(tmp_path_factory, seed, k, kind):
    documents, query = made(np.random.default_rng(seed), kind, 700, 16)
    shards = write_shards(tmp_path_factory.mktemp("vectors"), documents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sieves, "MOST_LEFT", 1)
        sieve = prepared(shards, query, k)
    assert sieve._copy is not None
    got, wanted = sieve.top_k(query, k), top_k(query, shards, k, device="cpu")
    assert got[1].tolist() == wanted[1].tolist()
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-5)
    assert [part.dtype for part in got] == [part.dtype for part in wanted]


def close_together(tmp_path, seed=0):
    """A query, and 40 of 2,000 documents that half precision can hardly tell apart."""
    rng = np.random.default_rng(seed)
    documents, query = unit(rng.normal(size=(2_000, 64))), unit(rng.normal(size=(1, 1, 64)))
    documents[::50] = unit(query[0] + 0.1 * unit(rng.normal(size=(40, 64))))
    return write_shards(tmp_path / f"close-{seed}", documents), query


def by_halves_alone(shards, query, k):
    halves = torch.from_numpy(shards[:]).bfloat16()
    return sieves._products(halves, torch.from_numpy(query[0])).amax(1).topk(k).indices[None].tolist()


def test_what_half_precision_cannot_tell_apart(tmp_path, monkeypatch):
    cases = [close_together(tmp_path, seed) for seed in range(20)]
    wanted = [top_k(query, shards, 5, device="cpu")[1].tolist() for shards, query in cases]
    assert [prepared(shards, query).top_k(query, 5)[1].tolist() for shards, query in cases] == wanted
    # With a bound that is too small there is no copy, and where nobody checked, some answers would be wrong.
    monkeypatch.setattr(sieves, "ERROR", 0.0)
    assert [prepared(shards, query)._copy for shards, query in cases] == [None] * 20
    found = [by_halves_alone(shards, query, 5) for shards, query in cases]
    assert found != wanted


def test_where_too_many_are_left_all_are_read(tmp_path, monkeypatch):
    shards, query = close_together(tmp_path)
    sieve = prepared(shards, query)
    assert sieve._sifted(query, sieve._copy, 5) is not None
    monkeypatch.setattr(sieves, "MOST_LEFT", 1 / 100)
    assert sieve._sifted(query, sieve._copy, 5) is None
    for _ in range(sieves.MOST_IN_VAIN):  # and a copy that is of no use is given up
        assert sieve._copy is not None
        assert sieve.top_k(query, 5)[1].tolist() == top_k(query, shards, 5, device="cpu")[1].tolist()
    assert sieve._copy is None


def test_all_documents_can_be_asked_for(tmp_path):
    shards, query = close_together(tmp_path)
    got, wanted = prepared(shards, query).top_k(query, 3_000), top_k(query, shards, 3_000, device="cpu")
    assert got[1].tolist() == wanted[1].tolist()


@pytest.fixture
def asked(monkeypatch):
    """The shapes of the queries that all documents were compared with."""
    shapes = []

    def noted(query, *args, **kwargs):
        shapes.append(query.shape[1:])
        return top_k(query, *args, **kwargs)

    of_one = Sieve._best_of_one

    def noted_of_one(sieve, query, k):
        found = of_one(sieve, query, k)
        if found is not None:
            shapes.append(query.shape[1:])
        return found

    monkeypatch.setattr(sieves, "top_k", noted)
    monkeypatch.setattr(Sieve, "_best_of_one", noted_of_one)
    monkeypatch.setattr(sieves, "AFTER", 0)  # no copy
    monkeypatch.setattr(sieves, "BEST_WANTED", 40)
    return shapes


def test_what_is_excluded_is_only_asked_of_the_best(tmp_path, asked):
    rng, alone = np.random.default_rng(0), 0
    for _ in range(20):
        documents, query = made(rng, "two-sided", 3_000, 24)
        query[0, -1] *= rng.choice([0.1, 1.0])
        shards = write_shards(tmp_path / str(rng.integers(1 << 40)), documents)
        for k in (1, 5):
            asked.clear()
            got, wanted = Sieve(shards).top_k(query, k), top_k(query, shards, k, device="cpu")
            assert got[1].tolist() == wanted[1].tolist()
            np.testing.assert_allclose(got[0], wanted[0], atol=1e-6)
            assert asked[0] == (3, 24)
            alone += asked == [(3, 24)]
    assert alone >= 30  # of 40; for the others all documents were asked


def test_where_others_could_be_better_all_are_asked(tmp_path, asked):
    """Documents that are nearest to what is wanted, all of which are excluded."""
    rng = np.random.default_rng(0)
    documents, wanted = unit(rng.normal(size=(3_000, 24))), unit(rng.normal(size=(1, 1, 24)))
    documents[:200] = unit(wanted[0] + 0.01 * rng.normal(size=(200, 24)))
    parts = torch.from_numpy(wanted), torch.from_numpy(wanted[0]), torch.tensor([[5.0, 0.5]])
    shards, query = write_shards(tmp_path / "v", documents), two_sided(*parts).numpy()
    got, expected = Sieve(shards).top_k(query, 5), top_k(query, shards, 5, device="cpu")
    assert asked == [(1, 24), (2, 25)]
    assert got[1].tolist() == expected[1].tolist()
    assert min(got[1][0]) >= 200


@pytest.mark.parametrize(("storage", "shard_size"), [("float32", 700), ("float32", 8192), ("float16", 700)])
def test_one_vector(tmp_path, asked, storage, shard_size):
    documents, query = made(np.random.default_rng(1), "one", 3_000, 24)
    documents[[5, 1_500, 2_999]] = documents[7]  # ties, in several shards
    query[0, 0] = documents[7]
    shards = write_shards(tmp_path / "v", documents.astype(storage), shard_size)
    assert (Sieve(shards)._best_of_one(query, 5) is None) == (storage == "float16")
    for k in (1, 5, 3_000, 5_000):
        got, expected = Sieve(shards).top_k(query, k), top_k(query, shards, k, device="cpu")
        assert got[1].tolist() == expected[1].tolist()
        np.testing.assert_allclose(got[0], expected[0], rtol=1e-5, atol=1e-6)
    assert got[1][0, :4].tolist() == [5, 7, 1_500, 2_999]
    broken = np.array(query)
    broken[0, 0, 3] = np.inf
    with pytest.raises(RetrievalError, match="query vector 0 holds NaN or infinity"):
        Sieve(shards).top_k(broken, 5)


def test_one_vector_and_a_broken_document(tmp_path, asked):
    documents, query = made(np.random.default_rng(1), "one", 3_000, 24)
    documents[1_234, 3] = np.nan
    shards = write_shards(tmp_path / "v", documents)
    with pytest.raises(RetrievalError, match="document vector 1234 holds NaN or infinity"):
        Sieve(shards).top_k(query, 5)


def test_nothing_excluded_no_documents_and_no_numbers_are_as_before(tmp_path, asked):
    documents, query = made(np.random.default_rng(0), "two-sided", 3_000, 24)
    shards = write_shards(tmp_path / "v", documents)
    plain, broken = query.copy(), query.copy()
    plain[0, -1], broken[0, -1, 0] = 0, np.nan
    Sieve(shards).top_k(plain, 5)
    Sieve(shards).top_k(query, 1_000)  # more than the best few
    assert asked == [(4, 25), (4, 25)]
    for wrong, k, match in ((broken, 5, "NaN"), (query, 0, "at least 1")):
        with pytest.raises(RetrievalError, match=match):
            Sieve(shards).top_k(wrong, k)


@pytest.mark.parametrize("count", [1, 2])
def test_documents_that_are_the_same_stand_in_their_order(tmp_path, count):
    rng = np.random.default_rng(0)
    documents = unit(rng.normal(size=(4_000, 96)))
    documents[rng.permutation(4_000)[:3_000]] = np.repeat(documents[:300], 10, axis=0)
    shards = write_shards(tmp_path / "same", documents)
    for _ in range(40):
        query = unit(rng.normal(size=(1, count, 96)))
        sieve = prepared(shards, query, 25)
        scores, rows = sieve.top_k(query, 25)
        pairs = list(zip((-scores[0]).tolist(), rows[0].tolist(), strict=True))
        assert pairs == sorted(pairs)
        exact = (documents.astype(np.float64) @ query[0].T.astype(np.float64)).max(1)
        assert rows[0].tolist() == np.lexsort((np.arange(4_000), -exact.astype(np.float32)))[:25].tolist()


def test_ties_go_to_the_lower_row(tmp_path):
    documents = np.zeros((2_000, 4), np.float32)
    documents[[1_900, 70, 3]] = 1
    shards, query = write_shards(tmp_path / "ties", documents), np.ones((1, 1, 4), np.float32)
    assert prepared(shards, query, 2).top_k(query, 2)[1].tolist() == [[3, 70]]


def test_a_copy_that_does_not_pay_is_not_kept(tmp_path, monkeypatch, always_faster):
    shards, query = close_together(tmp_path)
    assert prepared(shards, query)._copy is not None
    always_faster["copy"] = 3.0
    assert prepared(shards, query)._copy is None
    always_faster["copy"] = 1.0
    with monkeypatch.context() as patch:
        patch.setattr(sieves, "LARGEST", 100)
        assert prepared(shards, query)._copy is None
    with monkeypatch.context() as patch:
        patch.setattr(sieves, "FEWEST", 2_001)
        assert prepared(shards, query)._copy is None


def test_a_machine_that_is_slow_in_half_precision_is_not_kept_waiting(tmp_path, monkeypatch):
    documents, query = made(np.random.default_rng(0), "several", 4000, 16)
    seen, products = [], sieves._products
    monkeypatch.setattr(sieves, "_seconds", lambda work: work().numel() and len(seen) * 1.0)

    def slow(halves, rows):
        seen.append(len(halves))
        return products(halves, rows)

    monkeypatch.setattr(sieves, "_products", slow)
    assert prepared(write_shards(tmp_path, documents), query)._copy is None
    assert seen == [sieves.PROBED]  # some documents have shown it: all of them would take long


def test_no_room_for_a_copy_is_no_error(tmp_path, monkeypatch):
    shards, query = close_together(tmp_path)

    empty = torch.empty

    def full(*args, **kwargs):
        if kwargs.get("dtype") == torch.bfloat16:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return empty(*args, **kwargs)

    monkeypatch.setattr(torch, "empty", full)
    sieve, wanted = Sieve(shards), top_k(query, shards, 5, device="cpu")[1].tolist()
    assert [sieve.top_k(query, 5)[1].tolist() for _ in range(AFTER + 1)] == [wanted] * (AFTER + 1)
    assert sieve._copy is None


def test_a_machine_whose_products_are_worse_than_the_bound_goes_without(tmp_path, monkeypatch):
    shards, query = close_together(tmp_path)
    products = sieves._products
    monkeypatch.setattr(sieves, "_products", lambda *args: products(*args) + 0.02)
    assert prepared(shards, query)._copy is None


def test_what_is_wrong_is_said_with_the_copy_too(tmp_path):
    shards, query = close_together(tmp_path)
    sieve = prepared(shards, query)
    with pytest.raises(RetrievalError, match="query vector 0 holds NaN"):
        sieve.top_k(np.full_like(query, np.nan), 5)
    sides = made(np.random.default_rng(0), "two-sided", 100, 64)[1]
    for value in (np.nan, -np.inf):
        sides[0, -1, -1] = value
        with pytest.raises(RetrievalError, match="query vector 0 holds NaN"):
            sieve.top_k(sides, 5)
    with pytest.raises(RetrievalError, match="size 3, document vectors of size 64"):
        sieve.top_k(np.ones((1, 1, 3), np.float32), 5)
    with pytest.raises(RetrievalError, match="k must be a whole number of at least 1, got 0"):
        sieve.top_k(query, 0)


def test_vectors_that_are_no_numbers_are_not_copied(tmp_path):
    documents = np.ones((100, 4), np.float32)
    documents[70, 2] = np.inf
    shards, query = write_shards(tmp_path / "broken", documents), np.ones((1, 1, 4), np.float32)
    sieve = Sieve(shards)
    for _ in range(AFTER + 1):
        with pytest.raises(RetrievalError, match="document vector 70 holds NaN or infinity"):
            sieve.top_k(query, 5)
    assert sieve._copy is None


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_rows_of_several_shards(tmp_path, storage):
    documents = np.random.default_rng(0).normal(size=(200, 8)).astype(storage)
    shards = write_shards(tmp_path / storage, documents)
    rows = np.array([199, 0, 64, 63, 64])
    assert (shards.rows(rows) == documents[rows]).all()
    assert shards.rows(rows).dtype == storage
    assert shards.rows(np.array([], np.int64)).shape == (0, 8)


def test_a_searcher_asks_it_from_the_third_query_on(tmp_path, lively, tiny_config, tokenizer, monkeypatch):
    from search_fixtures import QUERY, write_documents, write_run

    from boolbert.search import BoolSearcher

    write_run(tmp_path / "run", lively, tiny_config, tokenizer, gate="cue")
    searcher = BoolSearcher(tmp_path / "run", build(tmp_path, write_documents), device="cpu")
    assert isinstance(searcher.index, Index)
    monkeypatch.setattr(sieves, "MOST_LEFT", 1)
    answers = []
    for number in range(AFTER + 1):
        assert (searcher.index.sieve._copy is not None) == (number >= AFTER)
        answers.append([(hit.row, pytest.approx(hit.score, abs=1e-5)) for hit in searcher.search(QUERY, k=4)])
    assert answers[-1] == answers[0]


def build(tmp_path, write_documents):
    from boolbert.retrieval.index import build_index
    from boolbert.retrieval.models import load_model

    model = load_model(str(tmp_path / "run"), device="cpu")
    return build_index(write_documents(tmp_path / "docs.jsonl"), tmp_path / "index", model, progress=False)
