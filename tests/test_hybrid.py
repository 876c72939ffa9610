"""Fused rankings, and BM25 that leaves out what a query excludes."""

import numpy as np
import pytest

from boolbert.retrieval.bm25 import BM25Index
from boolbert.retrieval.hybrid import fuse, wanted_words

TEXTS = [
    "birds of Peru and Brazil",
    "birds of Peru",
    "birds of Brazil",
    "a volcano in Peru",
    "the history of chess",
]


def test_fusion_against_a_slow_version():
    rng = np.random.default_rng(0)
    rankings = [np.stack([rng.permutation(50)[:size] for _ in range(4)]) for size in (20, 30, 10)]
    rankings[1][:, 25:] = -1
    _, fused = fuse(rankings, 15)
    for query in range(4):
        scores: dict[int, float] = {}
        for ranking in rankings:
            for rank, row in enumerate(ranking[query].tolist(), start=1):
                if row >= 0:
                    scores[row] = scores.get(row, 0.0) + 1 / (60 + rank)
        assert fused[query].tolist() == sorted(scores, key=lambda row: (-scores[row], row))[:15]


def test_fusion_pads_where_there_is_no_more():
    assert fuse([[[3]], [[3]]], 3)[1].tolist() == [[3, -1, -1]]


def test_bm25_obeys():
    pytest.importorskip("bm25s")
    query = "birds of Peru but not of Brazil"
    every_word, wanted, unknown = BM25Index(TEXTS).top_k([query, wanted_words(query), "zebra"], 5).tolist()
    assert (every_word[0], wanted[0]) == (0, 1)  # the first document holds all the words
    for rows in (every_word, wanted):
        assert set(rows) == {0, 1, 2, 3, -1}
    assert unknown == [-1] * 5
