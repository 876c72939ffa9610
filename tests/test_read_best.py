"""Documents that cannot come among the first any more are not read further, and the first are the same as ever."""

import numpy as np
import pytest

from boolbert.boolean.query import Condition
from boolbert.retrieval.document_reader import Passage, Said
from boolbert.retrieval.scoring import COLLECTION, Asked, Question
from boolbert.search.rank import reread
from boolbert.search.read_best import read_best

DOCUMENTS, K = 20, 5
LONG = "one two three four five six seven eight nine"  # a condition that is not read


class Reader:
    """Says of each document and condition what a table has, and counts what it was asked."""

    def __init__(self, affirmed, at_once):
        self.affirmed, self.at_once, self.asked = affirmed, at_once, []

    def read(self, passages):
        self.asked.append([(one.condition, int(one.text)) for one in passages])
        return [Said(float(self.affirmed[one.condition][int(one.text)]), 0.0, 0.0) for one in passages]


def asked(text):
    return Asked.of(Condition(text, 0, len(text)), np.zeros(2, np.float32))


def question_of(wanted, excluded=(), answer=None):
    groups = tuple(tuple(map(asked, group)) for group in wanted)
    return Question(groups, tuple(map(asked, excluded)), COLLECTION, answer=answer and asked(answer))


QUESTIONS = {
    "one condition": question_of([["pool"]]),
    "wanted and excluded": question_of([["hotels"], ["pool"]], ["bar"]),
    "alternatives": question_of([["pool", "lake"], ["garden"]], ["bar", "club"]),
    "one that is not read": question_of([["pool"], [LONG]], ["bar"]),
    "a whole question": question_of([["pool"]], ["bar"], answer="which hotel has a pool?"),
}


def found_by(question, reader, scores, k, strength):
    """The order and scores of all documents after both stages."""
    passages = [[Passage(part.part.text, str(row), []) for part in question.read_parts] for row in range(DOCUMENTS)]
    said = read_best(reader, question, passages, scores, k, strength)
    rows = np.arange(DOCUMENTS)
    return reread(question, scores, rows, dict(zip(rows.tolist(), said, strict=True)), strength), said


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("strength", [1.0, 0.0, -0.5])
def test_the_first_are_those_of_all_that_is_read(name, strength):
    question = QUESTIONS[name]
    saved = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scores = np.sort(rng.choice(np.linspace(0, 3, 8 if seed % 2 else 1000), DOCUMENTS))[::-1].astype(np.float32)
        conditions = [part.part.text for part in question.read_parts]
        affirmed = {text: rng.choice([0.0, 0.01, 0.3, 0.9, 1.0], DOCUMENTS) for text in conditions}
        every, few = Reader(affirmed, 256), Reader(affirmed, 2)
        (expected, order), all_said = found_by(question, every, scores, DOCUMENTS, strength)
        (found, rows), said = found_by(question, few, scores, K, strength)
        np.testing.assert_array_equal(rows[:K], order[:K])
        np.testing.assert_array_equal(found[:K], expected[:K])
        assert [said[row] for row in rows[:K]] == [all_said[row] for row in rows[:K]]
        pairs = [pair for batch in few.asked for pair in batch]
        assert len(pairs) == len(set(pairs))
        saved += sum(map(len, every.asked)) - len(pairs)
    assert saved > 30


def test_where_many_are_read_in_the_time_of_one_they_are_read_at_once():
    """As on a GPU, where each pass more would take longer than the texts that it saves."""
    affirmed = {text: np.zeros(DOCUMENTS) for text in ("hotels", "pool", "bar")}
    reader = Reader(affirmed, 256)
    found_by(QUESTIONS["wanted and excluded"], reader, np.linspace(3, 0, DOCUMENTS), K, 1.0)
    assert [len(batch) for batch in reader.asked] == [3 * DOCUMENTS]


def test_what_lowers_scores_most_is_read_first():
    """Of an excluded condition that most documents have, and a wanted one that all have."""
    affirmed = {"hotels": np.ones(DOCUMENTS), "pool": np.ones(DOCUMENTS), "bar": np.ones(DOCUMENTS)}
    affirmed["bar"][[3, 9, 12, 14, 17]] = 0.0
    reader = Reader(affirmed, 2)
    found_by(QUESTIONS["wanted and excluded"], reader, np.linspace(1, 0.9, DOCUMENTS), K, 1.0)
    assert {condition for condition, _ in reader.asked[1]} == {"bar"}
    assert sum(map(len, reader.asked)) <= DOCUMENTS + 2 * (K + 2)
