"""The project's own questions that negate and exclude nothing: a hundred subjects, asked about in two styles."""

import json
from collections import Counter
from pathlib import Path

import boolbert
from boolbert.boolean import operators_of, read_parts

FOLDER = Path(boolbert.__file__).parent / "data" / "negated_predicates"
QUESTIONS, PASSAGES = (
    [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    for name in ("queries", "corpus")
)


def test_two_hundred_questions_in_two_styles_with_an_answer_and_its_opposite():
    assert Counter(question["style"] for question in QUESTIONS) == {"question": 100, "keywords": 100}
    assert len({question["text"] for question in QUESTIONS}) == 200
    texts = {passage["id"]: passage["text"] for passage in PASSAGES}
    named = {name for question in QUESTIONS for name in (question["gold"][0], question["traps"][0])}
    assert len({texts[name] for name in named}) == 200
    assert all(len(texts[question["gold"][0]].split()) >= 10 for question in QUESTIONS)


def test_they_negate_and_hardly_any_is_read_as_an_exclusion():
    texts = [question["text"] for question in QUESTIONS]
    assert sum("not" in operators_of(text) for text in texts) >= 195
    excluding = [text for text in texts if read_parts(text).excluded]
    assert len(excluding) <= 3, excluding
