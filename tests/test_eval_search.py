"""Exact search against a full sort, ties included; what cannot be searched says so."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from boolbert.core.errors import RetrievalError
from boolbert.retrieval.faiss_index import FaissIndex, recall_of_exact
from boolbert.retrieval.neighbours import top_k


def slow(queries, documents, k):
    scores = np.asarray(queries, np.float32) @ np.asarray(documents, np.float32).T
    rows = np.array(
        [sorted(range(len(documents)), key=lambda row: (-scores[q, row], row))[:k] for q in range(len(scores))]
    )
    return np.take_along_axis(scores, rows, axis=1), rows


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), documents=st.integers(1, 60), k=st.integers(1, 70), block=st.integers(1, 25))
def test_finds_what_a_full_sort_finds_with_ties_by_the_lower_row(seed, documents, k, block):
    rng = np.random.default_rng(seed)
    queries = rng.integers(-1, 2, (5, 3)).astype(np.float32)  # few values: many ties
    vectors = rng.integers(-1, 2, (documents, 3)).astype(np.float32)
    scores, rows = top_k(queries, vectors, k, block=block, device="cpu")
    wanted_scores, wanted_rows = slow(queries, vectors, k)
    assert rows.tolist() == wanted_rows.tolist()
    assert scores.tolist() == wanted_scores.tolist()
    assert (scores.dtype, rows.dtype) == (np.float32, np.int64)


def test_takes_memory_maps_half_precision_and_tensors(tmp_path):
    rng = np.random.default_rng(0)
    queries, vectors = rng.normal(size=(4, 8)), rng.normal(size=(50, 8)).astype(np.float16)
    np.save(tmp_path / "vectors.npy", vectors)
    wanted = slow(queries, vectors, 7)[1].tolist()
    for given_vectors in (vectors, np.load(tmp_path / "vectors.npy", mmap_mode="r"), torch.from_numpy(vectors)):
        assert top_k(queries, given_vectors, 7, block=16)[1].tolist() == wanted
    assert top_k(torch.from_numpy(queries), vectors, 7)[1].tolist() == wanted


@pytest.mark.parametrize(
    ("queries", "documents", "k", "message"),
    [
        (np.ones((1, 3)), np.ones((2, 4)), 1, "size 3, document vectors of size 4"),
        (np.ones((1, 3)), np.array([[1.0, 2, 3], [1, np.nan, 3]]), 1, "document vector 1 holds NaN"),
        (np.array([[np.inf, 1, 1]]), np.ones((2, 3)), 1, "query vector 0 holds NaN or infinity"),
        (np.ones((1, 3)), np.ones((2, 3)), 0, "k must be a whole number of at least 1, got 0"),
        (np.ones(3), np.ones((2, 3)), 1, "queries must be of shape"),
        (np.ones((1, 3)), np.empty((0, 3)), 1, "no documents"),
    ],
)
def test_what_cannot_be_searched(queries, documents, k, message):
    with pytest.raises(ValueError, match=message):
        top_k(queries, documents, k)


def test_faiss_flat_finds_everything_and_its_recall_is_told():
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    queries, vectors = rng.normal(size=(4, 8)).astype(np.float32), rng.normal(size=(50, 8)).astype(np.float32)
    _, rows = FaissIndex(vectors, "Flat").search(queries, 7)
    assert rows.tolist() == slow(queries, vectors, 7)[1].tolist()
    assert recall_of_exact(rows, queries, vectors).tolist() == [1.0] * 4
    rows[:, 0] = -1
    assert recall_of_exact(rows, queries, vectors) == pytest.approx([6 / 7] * 4)
    with pytest.raises(RetrievalError, match="no index of FAISS"):
        FaissIndex(vectors, "Nonsense")
