"""What the reader of queries learns from: queries put together anew, older marks that leave things open, passages."""

import json
import random

import pytest
import torch

from boolbert.boolean.tags import CUE, EXCLUDED, EXCLUDING, TAGS, parse_marked
from boolbert.core.errors import DataError
from boolbert.data.passages import passages
from boolbert.data.reading import MarkedQuery
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.train import query_reader
from boolbert.train.query_reader import Arguments, Pieces, RunningMean, batches, changed, tagged, varied, whole_texts


def marked(line, *, kind=None, asks=False, author="someone"):
    text, marks = parse_marked(line)
    return MarkedQuery(text, marks, author, True, kind, asks)


def stretches(query, kinds):
    return [query.text[mark.start : mark.end] for mark in query.marks if mark.kind in kinds]


@pytest.fixture(scope="module")
def tokenizer():
    return whole_texts(resolve_encoder().path)


QUERIES = [
    marked("[w hotels] [w in Rome] [c without] a [x pool]", kind="set"),
    marked("We have no car. [w Inns] [w near York], [c no] [x dogs] or [x bars]", kind="set"),
    marked("[w bread]"),
]


def test_a_varied_query_keeps_its_marks_on_its_words():
    pieces = Pieces.of(QUERIES)
    assert pieces.openings == ["We have no car. "]
    assert [text for text, _ in pieces.tails] == ["without a pool", "no dogs or bars"]
    draw, more, opened = random.Random(0), 0, 0
    for _ in range(400):
        query = varied(QUERIES[0], pieces, draw)
        assert all(0 <= mark.start < mark.end <= len(query.text) for mark in query.marks)
        assert len(stretches(query, CUE)) >= 1
        excluded = stretches(query, EXCLUDING)
        assert all(text and text == text.strip() for text in excluded)
        more += len(excluded) > 1
        opened += query.text.startswith("We have no car")
    assert more > 50  # another exclusion stands behind its own
    assert opened > 10


def test_an_exclusion_is_never_put_behind_a_query_of_which_nothing_is_marked():
    unmarked = MarkedQuery("islands but not monarchies", [], "countries", True, "set", False)
    draw, pieces = random.Random(1), Pieces.of(QUERIES)
    assert all(not varied(unmarked, pieces, draw).marks for _ in range(100))


def test_a_change_moves_what_stands_behind_it():
    query = changed(QUERIES[0], 0, 6, "small inns")
    assert query.text == "small inns in Rome without a pool"
    assert stretches(query, EXCLUDED) == ["pool"]
    assert stretches(query, CUE) == ["without"]


def test_older_marks_leave_bounds_and_denials_open(tokenizer):
    def right(asks):
        query = marked("[w flats] [w under 900], [c no] [x pets]", asks=asks, kind=None if asks is None else "set")
        row = tagged(query, tokenizer)
        return [{TAGS[tag] for tag in torch.tensor(own).nonzero().flatten()} for own in row.right[row.first]]

    assert right(False)[:2] == [{"B-w"}, {"B-w"}]
    assert right(None)[0] == {"B-w", "B-m", "B-n"}
    assert right(None)[-1] == {"B-x", "B-y"}


def test_of_older_queries_a_share_is_seen_in_an_epoch(tokenizer):
    older = [marked("[w bread]", asks=None, author="older") for _ in range(40)]
    args = Arguments(epochs=2, older=0.25, varied=0.0, batch_size=5)
    rows = [row for batch in batches([*QUERIES, *older], tokenizer, args) for row in batch]
    assert len(rows) == 2 * (len(QUERIES) + 10)
    assert query_reader.steps_of(args, [*QUERIES, *older]) == 2 * 3


def test_the_mean_is_that_of_the_later_steps():
    module = torch.nn.Linear(1, 1, bias=False)
    mean = RunningMean(module, from_step=2, share=0.5)
    for value in (100.0, 200.0, 1.0, 3.0):
        torch.nn.init.constant_(module.weight, value)
        mean.add()
    mean.put()
    assert module.weight.item() == 2.0


def test_who_looks_for_items_does_not_ask(tokenizer):
    query = marked("is there a [w pub] [c without] [x music]", asks=None, author="train_phones")
    assert tagged(query, tokenizer).asks == 0
    assert tagged(query._replace(author="train_quizzers"), tokenizer).asks == -1
    assert tagged(query._replace(text="why is there a pub without music"), tokenizer).asks == -1


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
        ({"good": ["p9"]}, "passages.jsonl:2: 'p9' is none of the file's passages"),
        (
            {"kind": "odd"},
            "passages.jsonl:2: field 'kind' must be one of topic, set, property, plain, and, or, got 'odd'",
        ),
        ({"good": None}, "passages.jsonl:2: field 'good' is null"),
    ],
)
def test_a_bad_question_is_named(tmp_path, change, problem):
    question = {"query": "who?", "kind": "plain", "good": ["p1"], "violating": [], "marked": "[w who]?", **change}
    lines = [{"id": "p1", "text": "A text."}, question]
    (tmp_path / "passages.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with pytest.raises(DataError, match=problem.replace("'", ".").replace("(", ".")):
        passages(tmp_path)
