"""Fused rankings, and BM25 that leaves out what a query excludes."""

import numpy as np
import pytest

from boolbert.retrieval.hybrid import WordSearch, fuse, wanted_words

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
    fused = fuse(rankings, 15)
    for query in range(4):
        scores: dict[int, float] = {}
        for ranking in rankings:
            for rank, row in enumerate(ranking[query].tolist(), start=1):
                if row >= 0:
                    scores[row] = scores.get(row, 0.0) + 1 / (60 + rank)
        assert fused[query].tolist() == sorted(scores, key=lambda row: (-scores[row], row))[:15]


def test_fusion_pads_where_there_is_no_more():
    assert fuse([[[3]], [[3]]], 3).tolist() == [[3, -1, -1]]


@pytest.mark.parametrize(
    ("obedience", "first"),
    [("none", 0), ("wanted", 1)],  # the first document holds all the words
)
def test_bm25_obeys(obedience, first):
    pytest.importorskip("bm25s")
    search = WordSearch(TEXTS, obedience)
    (rows,) = search.top_k(["birds of Peru but not of Brazil"], 5)
    assert rows[0] == first
    assert {row for row in rows.tolist() if row >= 0} == {0, 1, 2, 3}


def test_a_query_without_exclusion_is_left_alone():
    assert wanted_words("birds of Peru") == ("birds of Peru", [])
    assert wanted_words("not dogs")[0] == "not dogs"


def test_words_nobody_knows_find_nothing():
    pytest.importorskip("bm25s")
    assert WordSearch(TEXTS).top_k(["zebra"], 3).tolist() == [[-1, -1, -1]]
