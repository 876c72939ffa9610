"""Passages and what people ask of them: `data/passages/`."""

import json

import pytest

from boolbert.core.errors import DataError
from boolbert.data.passages import passages


def test_the_passages_are_whole():
    every = passages()
    assert len({own.author for own in every}) == len(every) >= 7
    for own in every:
        assert all(question.good for question in own.questions)
        assert all(not set(question.good) & set(question.violating) for question in own.questions)
        assert [query.text for query in own.marked()] == [question.text for question in own.questions]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"good": ["p9"]}, "passages.jsonl:2: .p9. is none of the file.s passages"),
        ({"kind": "odd"}, "passages.jsonl:2: field .kind. must be one of topic, set, .* got .odd."),
        ({"good": None}, "passages.jsonl:2: field .good. is null"),
    ],
)
def test_a_bad_question_is_named(tmp_path, change, problem):
    question = {"query": "who?", "kind": "plain", "good": ["p1"], "violating": [], "marked": "[w who]?", **change}
    lines = [{"id": "p1", "text": "A text."}, question]
    (tmp_path / "passages.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        passages(tmp_path)
