"""The project's own questions that negate and exclude nothing."""

from collections import Counter

from boolbert.boolean import operators_of, read_parts
from boolbert.data.negated import FOLDER, STYLES, negated_predicates


def test_two_hundred_questions_in_two_styles_with_an_answer_and_its_opposite():
    questions = negated_predicates()
    assert Counter(question.style for question in questions) == dict.fromkeys(STYLES, 100)
    assert len({question.text for question in questions}) == 200
    assert len({question.answer for question in questions} | {question.opposite for question in questions}) == 200
    assert all(len(question.answer.split()) >= 10 for question in questions)
    assert {path.name for path in FOLDER.iterdir()} == {"corpus.jsonl", "queries.jsonl"}


def test_they_negate_and_hardly_any_is_read_as_an_exclusion():
    texts = [question.text for question in negated_predicates()]
    assert sum("not" in operators_of(text) for text in texts) >= 195
    excluding = [text for text in texts if read_parts(text).excluded]
    assert len(excluding) <= 3, excluding
