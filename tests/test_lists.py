"""Where nothing but words decides, search is no worse than BM25 over the same conditions: data/lists.py."""

import pytest

from boolbert.eval.evidence import figures, list_pool, scores
from boolbert.retrieval.models import default_model


@pytest.mark.long
def test_lists_are_found_by_their_items():
    pool = list_pool()
    found = figures(pool, scores(default_model("cpu"), pool))
    for kind in ("who", "and", "not"):
        assert found[kind]["search"]["R-prec"] >= found[kind]["words"]["R-prec"] + 0.2
    assert found["not"]["search"]["excluded"] <= found["not"]["words"]["excluded"] / 2
