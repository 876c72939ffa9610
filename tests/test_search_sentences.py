"""Documents that are read sentence by sentence: the scores by hand, what moves, and what cannot be asked."""

import json

import numpy as np
import pytest
from search_fixtures import write_documents, write_run

from boolbert.cli.main import main
from boolbert.core.errors import RetrievalError
from boolbert.search import BoolSearcher, build_index, load_model
from boolbert.search.sentences import NEARER, WEIGHT, sentences_of

QUERY = "films but not about war"
TEXTS = [
    "films in a. films in b. films in c.",
    "films in a. films about war and war. films in c.",
    "books about films; films in a",
    "films",
    "war and war and war\nfilms in b and c",
]


@pytest.fixture
def searcher(tmp_path, lively, tiny_config, tokenizer):
    write_run(tmp_path / "run", lively, tiny_config, tokenizer, penalty=0.5)
    model = load_model(str(tmp_path / "run"), device="cpu")
    documents = tmp_path / "documents.jsonl"
    documents.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return BoolSearcher(model, build_index(documents, tmp_path / "index", model, progress=False))


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_a_near_sentence_costs_what_it_costs_by_hand(searcher):
    encoder = searcher.model.encoder
    parts = encoder.encode_query_parts(QUERY, operators=["not"])
    before = {hit.row: hit for hit in searcher.search(QUERY, 5, ["not"])}
    after = searcher.search(QUERY, 5, ["not"], look_into=1)  # all that are shown are looked into
    expected = {}
    for row, hit in before.items():
        found = sentences_of(TEXTS[row])
        cosines = [float(unit(encoder.encode_document(text)) @ unit(parts.excluded)) for text in found]
        nearest = int(np.argmax(cosines))
        loss = WEIGHT * max(0.0, cosines[nearest] - parts.penalty[1] - NEARER)
        expected[row] = (hit.score - loss, found[nearest])
    assert any(before[row].score - score > 1e-3 for row, (score, _) in expected.items())
    assert [hit.row for hit in after] == sorted(expected, key=lambda row: -expected[row][0])
    for hit in after:
        assert hit.score == pytest.approx(expected[hit.row][0], abs=1e-5)
        assert hit.nearest == expected[hit.row][1]


def test_a_query_that_excludes_nothing_is_left_alone(searcher):
    plain, looked = (searcher.search(QUERY, 3, [], look_into=number) for number in (0, 5))
    assert [(hit.row, hit.score) for hit in plain] == [(hit.row, hit.score) for hit in looked]


def test_fewer_are_shown_than_were_looked_into(searcher):
    assert [hit.row for hit in searcher.search(QUERY, 2, ["not"], look_into=5)] == [
        hit.row for hit in searcher.search(QUERY, 5, ["not"], look_into=5)
    ][:2]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"look_into": -1}, "look_into must be at least 0, got -1"),
        ({"look_into": 5, "not_weight": 0.5}, "look_into cannot be given with not_weight"),
        ({"look_into": 5, "hybrid": True}, "look_into cannot be given with hybrid"),
    ],
)
def test_what_cannot_be_asked_is_one_line(searcher, options, problem):
    with pytest.raises(RetrievalError, match=problem):
        searcher.search(QUERY, **options)


def test_a_model_without_a_penalty_says_so(tmp_path, lively, tiny_config, tokenizer, capsys):
    write_run(tmp_path / "run", lively, tiny_config, tokenizer)
    documents = str(write_documents(tmp_path / "documents.jsonl"))
    model, index = str(tmp_path / "run"), str(tmp_path / "index")
    assert main(["index", documents, "--output", index, "--model", model]) == 0
    assert main(["search", QUERY, "--index", index, "--look-into", "5"]) != 0
    assert "has no penalty for what is excluded" in capsys.readouterr().err
