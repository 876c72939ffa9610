"""What is measured is what search answers, query by query."""

from dataclasses import replace

import numpy as np
import pytest
from framework_fixtures import bag_of_words

from boolbert import obey, read
from boolbert.bench.obey import reranked
from boolbert.data.tasks import Question
from boolbert.eval.exclusion import TrapQuery, TrapSet
from boolbert.eval.searched import NOT_FOUND, Searched, TextIndex
from boolbert.retrieval.functions import function_model
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


@pytest.mark.parametrize("how", ["vectors", "search"])
def test_so_are_those_of_an_encoder_that_is_no_bool_bert(how):
    """What `eval/evidence.py` measures with --model, over texts of its own."""
    texts = ["A hotel with a pool.", "A hotel. There is no pool.", "A quiet hotel by the sea.", "A book about pools."]
    model = function_model(bag_of_words, "bag-of-words")
    held = TextIndex(texts, model)
    searcher = BoolSearcher(model, held.index)
    for query in ("hotels without a pool", "hotel -pool", "a hotel by the sea or a book"):
        expected = [hit.row for hit in searcher.search(query, 4, **ASKED[how])]
        assert Searched(how, searcher, how).ranked(query, 4) == expected


def test_the_benchmark_of_obey_ranks_by_rerank():
    texts = ["A hotel with a pool.", "A hotel. There is no pool.", "A quiet hotel by the sea.", "A book about pools."]
    queries = [TrapQuery(text, [1], [0]) for text in ("hotels without a pool", "hotel -pool")]
    encoder = obey(bag_of_words, texts)
    rows = reranked(encoder, TrapSet("hotels", texts, queries))
    for query, own in zip(queries, rows.tolist(), strict=True):
        found = [hit.row for hit in encoder.rerank(query.text, texts)]
        assert own[: len(found)] == found
        assert sorted(own) == [0, 1, 2, 3]


def test_scores_have_the_order_of_search(searcher):
    system = Searched("search", searcher)
    asked = [Question("q", QUERIES[0], ())]
    scores = system.scorer(asked)(0, len(searcher.index)).numpy()[0]
    assert np.argsort(-scores, kind="stable").tolist() == system.ranked(QUERIES[0], len(searcher.index))
    _, rows = system.search(asked, len(searcher.index) + 3)
    assert rows[0, -3:].tolist() == [NOT_FOUND] * 3


def test_a_query_that_was_read_already_is_searched_like_its_text(searcher):
    text = "island countries that are not monarchies or republics"
    reading = read(text)
    assert searcher.rows(reading, 10) == searcher.rows(text, 10)
    other = replace(reading, conditions=tuple(one for one in reading.conditions if not one.excluded))
    assert searcher.rows(other, 10) != searcher.rows(text, 10)
    assert searcher.search(other, k=3).reading.conditions == other.conditions
