"""Fused rankings."""

import numpy as np

from boolbert.retrieval.hybrid import fuse


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
