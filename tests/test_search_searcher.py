"""Searching against a slow version of it; operators given, decided by the model, or read off the text."""

import os

import numpy as np
import pytest
import torch
from search_fixtures import QUERY, TEXTS, write_baseline, write_documents, write_run
from sentence_helpers import embed

from boolbert.retrieval.models import newest_run
from boolbert.search import BoolSearcher, build_index, load_model


@pytest.fixture
def encoders(tmp_path, lively, tiny_config, tokenizer):
    return write_run(tmp_path / "model", lively, tiny_config, tokenizer)


@pytest.fixture
def searcher(tmp_path, encoders):
    model = load_model(tmp_path / "model")
    return BoolSearcher(model, build_index(write_documents(tmp_path / "docs.jsonl"), tmp_path / "i", model))


def slow_ranking(encoders, tokenizer, operators):
    """Titles and scores by brute force."""
    query, document = encoders
    vectors = embed(document, tokenizer, TEXTS, "mean", "cosine")
    scores = vectors @ embed(query, tokenizer, [QUERY], "mean", "cosine", operators=torch.tensor([operators]))[0]
    order = np.argsort(-scores, kind="stable")
    return order.tolist(), scores[order]


@pytest.mark.parametrize(("names", "row"), [(["not"], [0, 0, 1]), ([], [0, 0, 0]), ([1, 1, 0], [1, 1, 0])])
def test_finds_what_a_slow_search_finds(searcher, encoders, tokenizer, names, row):
    answer = searcher.search(QUERY, 4, operators=names)
    rows, scores = slow_ranking(encoders, tokenizer, row)
    assert [hit.row for hit in answer] == rows[:4]
    np.testing.assert_allclose([hit.score for hit in answer], scores[:4], atol=1e-5)
    assert [hit.rank for hit in answer] == [1, 2, 3, 4]
    assert answer[0].text == TEXTS[rows[0]]


def test_without_operators_the_gate_decides(searcher, encoders, tokenizer):
    with torch.no_grad():
        gate = encoders[0](**tokenizer(QUERY, return_tensors="pt")).operators[0].tolist()
    answer = searcher.search(QUERY, 10)
    assert [int(name in answer.operators) for name in ("and", "or", "not")] == gate
    assert answer.decided_by == "the model's gate"
    assert [hit.row for hit in answer] == slow_ranking(encoders, tokenizer, gate)[0]


def test_more_results_than_documents(searcher):
    assert len(searcher.search(QUERY, 50)) == len(TEXTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("  ",), "the query is empty"),
        ((QUERY, 0), "k must be at least 1"),
        ((QUERY, 3, ["xor"]), "must be among and, or, not"),
    ],
)
def test_bad_questions(searcher, arguments, message):
    with pytest.raises(ValueError, match=message):
        searcher.search(*arguments)


def test_an_index_brings_its_model(tmp_path, searcher):
    again = BoolSearcher(index=searcher.index.folder)
    assert [hit.title for hit in again.search(QUERY)] == [hit.title for hit in searcher.search(QUERY)]


def test_a_plain_model_searches_without_operators(tmp_path, searcher, lively, tiny_config, tokenizer):
    plain = BoolSearcher(write_baseline(tmp_path / "bert", lively, tiny_config, tokenizer), searcher.index)
    assert len(plain.search(QUERY, 3)) == 3
    with pytest.raises(ValueError, match="operators cannot be given"):
        plain.search(QUERY, 3, operators=["not"])


def test_the_newest_finished_run_is_the_default(tmp_path, lively, tiny_config, tokenizer):
    runs = tmp_path / "runs"
    assert newest_run(runs) is None
    for age, (name, script) in enumerate([("late-stage-1", "pretrain"), ("new", "quest"), ("old", "quest")]):
        write_run(runs / name, lively, tiny_config, tokenizer, script=script)
        os.utime(runs / name / "metrics.json", (1e9 - age, 1e9 - age))
    write_baseline(runs / "bert", lively, tiny_config, tokenizer)
    assert newest_run(runs).folder == runs / "new"
    (runs / "new" / "metrics.json").unlink()  # not finished
    assert newest_run(runs).folder == runs / "old"
    assert "trained by quest on the embedded data" in load_model(runs=runs).note


def test_without_any_run_a_fresh_model_says_loudly_what_it_is(tmp_path, monkeypatch):
    from boolbert.retrieval.encoders import Encoder, random_bert

    folder = random_bert(tmp_path / "random")
    encoder = Encoder(str(folder), "cls", "dot", "random", "WARNING: random")
    monkeypatch.setattr("boolbert.retrieval.encoders.resolve_encoder", lambda name=None: encoder)
    model = load_model(runs=tmp_path / "none")
    assert not model.trained
    assert "UNTRAINED" in model.note
    assert model.bert is not None
    searcher = BoolSearcher(model, build_index(write_documents(tmp_path / "docs.jsonl"), tmp_path / "i", model))
    answer = searcher.search(QUERY, 3)
    assert (answer.operators, answer.decided_by) == (("not",), "the cue lexicon")
