"""Explanations: word pieces become words, values are means over heads and layers, and pictures show them."""

import json

import numpy as np
import pytest
import torch
from search_fixtures import QUERY, write_baseline, write_documents, write_run

from boolbert.search import BoolSearcher, build_index, explain, load_model
from boolbert.search.explain import per_word, token_words, words_of
from boolbert.search.page import explanation_page
from boolbert.search.picture import draw, write_picture


@pytest.fixture
def searcher(tmp_path, lively, tiny_config, tokenizer):
    write_run(tmp_path / "model", lively, tiny_config, tokenizer)
    model = load_model(tmp_path / "model")
    return BoolSearcher(model, build_index(write_documents(tmp_path / "docs.jsonl"), tmp_path / "i", model))


def test_values_are_those_of_the_model(searcher, tokenizer):
    """Every word is one token of this tokenizer, so each value can be computed by loops."""
    found = explain(searcher, QUERY, 5, ["and", "not"])
    bert = searcher.model.bert
    with torch.no_grad():
        output = bert(
            **tokenizer(QUERY, return_tensors="pt"),
            operators=torch.tensor([[1, 0, 1]]),
            output_scopes=True,
            output_biases=True,
        )
    layers, (_, _, heads, length) = len(output.scopes), output.scopes[0].shape
    assert length == len(found.words) + 2
    for number, reading in enumerate(found.readings):
        assert reading.on == (reading.operator in ("and", "not"))
        for word in range(len(found.words)):
            scope = [output.scopes[i][0, number, h, word + 1].item() for i in range(layers) for h in range(heads)]
            bias = [output.biases[i][0, number, h, word + 1].item() for i in range(layers) for h in range(heads)]
            assert reading.scope[word] == pytest.approx(np.mean(scope), abs=1e-5)
            assert reading.bias[word] == pytest.approx(np.mean(bias), abs=1e-5)
            assert reading.strength[word] == pytest.approx(np.mean(np.multiply(scope, bias)), abs=1e-5)
            cue = torch.sigmoid(output.cue_logits[0, number, word + 1]).item()
            assert reading.cue_probabilities[word] == pytest.approx(cue, abs=1e-5)
            assert reading.cues[word] == (cue > 0.5)
        assert reading.gate == pytest.approx(torch.sigmoid(output.gate_logits[0, number]).item(), abs=1e-5)


def test_word_pieces_are_merged():
    values = np.array([[0.0, 1.0, 2.0, 6.0, 9.0], [0.0, 4.0, 4.0, 4.0, 0.0]])
    np.testing.assert_allclose(per_word(values, [-1, 0, 0, 1, -1], 3), [[1.5, 6, 0], [4, 4, 0]])
    np.testing.assert_allclose(per_word(values, [-1, 0, 0, 1, -1], 3, highest=True), [[2, 6, 0], [4, 4, 0]])


def test_pieces_signs_and_accents_find_their_word(pretrained_bert):
    model = load_model(pretrained_bert)
    searcher = BoolSearcher.__new__(BoolSearcher)
    searcher.model = model
    query = "non-aligned Ivory Coast's  neighbours, Côte d’Ivoire"
    words = words_of(query)
    tokens = token_words(searcher, query, words)
    assert tokens[0] == tokens[-1] == -1
    assert set(tokens) == {-1, *range(len(words))}
    assert tokens[1:-1] == sorted(tokens[1:-1])
    assert tokens.count([word.text for word in words].index("neighbours")) >= 1


def test_results_are_compared_with_gates_off_or_a_baseline(tmp_path, searcher, lively, tiny_config, tokenizer):
    found = explain(searcher, QUERY, 4, ["not"])
    ranks = {hit.title: hit.rank for hit in searcher.search(QUERY, 10, operators=[])}
    with_not = [hit.title for hit in searcher.search(QUERY, 4, operators=["not"])]
    assert [(change.title, change.before) for change in found.changes] == [(title, ranks[title]) for title in with_not]
    baseline = BoolSearcher(write_baseline(tmp_path / "bert", lively, tiny_config, tokenizer), searcher.index)
    other = explain(searcher, QUERY, 4, ["not"], baseline=baseline)
    assert other.plain_name == str(tmp_path / "bert")
    assert [hit.title for hit in other.plain] == [hit.title for hit in baseline.search(QUERY, 10)]
    with pytest.raises(ValueError, match="nothing to explain"):
        explain(baseline, QUERY)


def test_long_queries_are_said_to_be_cut(searcher):
    assert explain(searcher, " ".join(["films"] * 40)).truncated
    assert not explain(searcher, QUERY).truncated


def test_json_is_plain(searcher):
    value = json.loads(json.dumps(explain(searcher, QUERY, 3, ["not"]).as_json()))
    assert value["operators"] == ["not"]
    assert [word["text"] for word in value["words"]] == QUERY.split()
    assert len(value["results"]) == len(value["plain"]["results"]) == 3


def test_page_stands_alone_and_escapes(searcher):
    page = explanation_page(explain(searcher, "films <b>& not a", 3, ["not"]))
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page
    assert "films &lt;b&gt;&amp; not a" in page
    assert page.count('class="off') >= 2 * 4  # AND and OR are off
    assert "−" in page


def test_picture_has_a_box_for_every_operator_and_word(tmp_path, searcher):
    found = explain(searcher, QUERY, 3, ["not"])
    figure = draw(found)
    boxes = [patch for patch in figure.axes[0].patches if patch.get_fill() and patch.get_linewidth() == 0]
    assert len(boxes) == 3 * len(found.words)
    shades = [patch.get_alpha() for patch in boxes[2::3]]  # NOT is each word's last
    strength = found.readings[2].strength
    np.testing.assert_allclose(shades, np.array(strength) / max(strength))
    assert write_picture(found, tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"try a name that ends in \.png"):
        write_picture(found, tmp_path / "p.nonsense")
