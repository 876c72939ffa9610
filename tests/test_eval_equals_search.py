"""What is measured is what search answers, query by query."""

import numpy as np
import pytest

from boolbert.data.tasks import Question
from boolbert.eval.searched import NOT_FOUND, Searched
from boolbert.retrieval.models import default_model
from boolbert.search import BoolSearcher

QUERIES = (
    "island countries that are not monarchies",
    "landlocked countries in Africa that are not former British colonies",
    "monarchies in Europe or in Asia",
    "countries that border France and have a coast",
    "-islands monarchies",
    "Which countries are not in Africa?",
    "countries",
)
ASKED = {"plain": {"operators": []}, "vectors": {"evidence": False}, "search": {}}


@pytest.fixture(scope="module")
def searcher():
    return BoolSearcher(default_model("cpu"), progress=False)


@pytest.mark.parametrize("how", ASKED)
def test_the_rows_that_are_measured_are_those_of_search(searcher, how):
    system = Searched(how, searcher, how)
    asked = [Question(f"q{number}", query, ()) for number, query in enumerate(QUERIES)]
    _, ranked = system.search(asked, 20)
    for query, rows in zip(QUERIES, ranked.tolist(), strict=True):
        expected = [hit.row for hit in searcher.search(query, 20, **ASKED[how])]
        assert system.ranked(query, 20) == expected == rows


def test_scores_have_the_order_of_search(searcher):
    system = Searched("search", searcher)
    asked = [Question("q", QUERIES[0], ())]
    scores = system.scorer(asked)(0, len(searcher.index)).numpy()[0]
    assert np.argsort(-scores, kind="stable").tolist() == system.ranked(QUERIES[0], len(searcher.index))
    _, rows = system.search(asked, len(searcher.index) + 3)
    assert rows[0, -3:].tolist() == [NOT_FOUND] * 3
