"""Explanations: word pieces become words, the vector's parts are the model's, and pictures show how it was read."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from search_fixtures import QUERY, write_baseline

from boolbert.boolean.query import query_of, split_words
from boolbert.boolean.tags import Mark, parse_marked
from boolbert.search import BoolSearcher, explain, load_model
from boolbert.search.export import tokenizer_of
from boolbert.search.picture import draw, write_picture
from boolbert.search.query_encoder import QueryEncoder

BOTH = "films or books but not about war"


def test_values_are_those_of_the_model(searcher, tokenizer):
    """Every word is one token of this tokenizer, so each value can be computed by loops."""
    found = explain(searcher, QUERY, 5, ["and", "not"])
    bert = searcher.model.bert
    told = searcher.queries.told(found.reading, searcher.queries.tokens(QUERY))
    assert list(told.operators) == [1, 0, 1]
    with torch.no_grad():
        output = bert(
            **tokenizer(QUERY, return_tensors="pt"),
            **{name: torch.tensor(np.array([value])) for name, value in told._asdict().items()},
            output_scopes=True,
            output_biases=True,
        )
    layers, (_, _, heads, length) = len(output.scopes), output.scopes[0].shape
    assert length == len(found.reading.words) + 2
    for number, reading in enumerate(found.attention):
        assert reading.on == (reading.operator in ("and", "not"))
        for word in range(len(found.reading.words)):
            scope = [output.scopes[i][0, number, h, word + 1].item() for i in range(layers) for h in range(heads)]
            bias = [output.biases[i][0, number, h, word + 1].item() for i in range(layers) for h in range(heads)]
            assert reading.scope[word] == pytest.approx(np.mean(scope), abs=1e-5)
            assert reading.bias[word] == pytest.approx(np.mean(bias), abs=1e-5)
            assert reading.strength[word] == pytest.approx(np.mean(np.multiply(scope, bias)), abs=1e-5)
            cue = torch.sigmoid(output.cue_logits[0, number, word + 1]).item()
            assert reading.cue_probabilities[word] == pytest.approx(cue, abs=1e-5)
        assert reading.gate == pytest.approx(torch.sigmoid(output.gate_logits[0, number]).item(), abs=1e-5)


def test_pieces_signs_and_accents_find_their_word(pretrained_bert):
    model = load_model(pretrained_bert)
    queries = QueryEncoder(None, tokenizer_of(model.encoder), "", is_cosine=True, can_exclude=True)
    query = "non-aligned Ivory Coast's  neighbours, Côte d’Ivoire"
    words = split_words(query)
    tokens = queries.token_words(queries.tokens(query), words)
    assert tokens[0] == tokens[-1] == -1
    assert set(tokens) == {-1, *range(len(words))}
    assert tokens[1:-1] == sorted(tokens[1:-1])
    assert tokens.count([word.text for word in words].index("neighbours")) >= 1


def both_as_marked():
    text, marks = parse_marked("[a films] or [a books] [c but not] [x about war]")
    return query_of(text, [*marks, Mark("j", 6, 8)], "a person")


def test_spans_are_runs_of_words():
    reading = both_as_marked()
    assert (reading.text, reading.operators) == (BOTH, ("or", "not"))
    assert [(span.operator, span.text) for span in reading.cues] == [("or", "or"), ("not", "but not")]
    assert [span.text for span in reading.alternatives] == ["films", "books"]
    (excluded,) = reading.excluded
    assert (excluded.text, excluded.place) == ("about war", (23, 32))
    assert BOTH[excluded.start : excluded.end] == excluded.text == reading.excluded_text
    assert reading.wanted_text == "films or books but not"
    assert [(group.role, group.text) for group in reading.word_groups] == [
        ("alternative", "films"),
        ("or", "or"),
        ("alternative", "books"),
        ("not", "but not"),
        ("excluded", "about war"),
    ]


def test_results_are_compared_with_gates_off_or_a_baseline(tmp_path, searcher, lively, tiny_config, tokenizer):
    found = explain(searcher, QUERY, 4, ["not"])
    plain, boolean = (searcher.search(QUERY, 10, operators=names) for names in ([], ["not"]))
    for changes, own, other in ((found.before, plain, boolean), (found.after, boolean, plain)):
        ranks = {hit.title: hit.rank for hit in other}
        expected = [(hit.title, hit.rank, ranks[hit.title]) for hit in own.hits[:4]]
        assert [(change.hit.title, change.rank, change.other) for change in changes] == expected
    assert found.before != found.after
    baseline = BoolSearcher(write_baseline(tmp_path / "bert", lively, tiny_config, tokenizer), searcher.index)
    other = explain(searcher, QUERY, 4, ["not"], baseline=baseline)
    assert other.plain_name == str(tmp_path / "bert")
    assert [change.hit.title for change in other.before] == [hit.title for hit in baseline.search(QUERY, 4)]
    with pytest.raises(ValueError, match="nothing to explain"):
        explain(baseline, QUERY)


def test_the_vector_is_what_the_explanation_says(searcher):
    """A - l (B - (A.B) A), of length 1, with the l that is shown."""
    parts = searcher.model.encoder.encode_query_parts(QUERY, operators=["not"])
    a, b = (vector / np.linalg.norm(vector) for vector in (parts.wanted, parts.excluded))
    found = explain(searcher, QUERY, 3, ["not"])
    vector = a - found.not_weight * (b - (a @ b) * a)
    np.testing.assert_allclose(parts.vectors[0], vector / np.linalg.norm(vector), atol=1e-5)
    assert found.composition.endswith(f"− {found.not_weight:.2f} × “{found.reading.excluded_text}”")
    assert explain(searcher, QUERY, 3, ["not"], not_weight=0.7).not_weight == 0.7
    plain = explain(searcher, QUERY, 3, [])
    assert (plain.not_weight, plain.composition) == (None, "")


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("topic", "Documents about “war” rank lower."),
        ("set", "Documents similar to “war” rank lower."),
        ("property", "What is denied is a property of the answer, so documents may speak of “war”."),
    ],
)
def test_the_kind_of_not_in_plain_words(searcher, kind, line):
    found = explain(searcher, QUERY, 3, ["not"], not_kind=kind)
    assert [one.text for one in found.reading.excluded] == ["war"]
    assert found.notes == [line]
    assert found.as_json()["not_kind"] == kind
    assert (found.not_weight is None) == (kind == "property")
    assert line not in explain(searcher, QUERY, 3, []).notes


def test_where_every_word_is_excluded_nothing_is_said_to_be_searched_for(searcher):
    found = explain(searcher, "films war", 3, excluded=[0, 1])
    assert found.composition == ""
    assert found.notes == ["Every word is excluded, so there is nothing to search for."]
    assert "query vector" not in found.page()


def test_long_queries_are_said_to_be_cut(searcher):
    long = explain(searcher, " ".join(["films"] * 40))
    assert long.reading.truncated
    assert len(long.reading.words) == 30  # 32 tokens, two of them [CLS] and [SEP]
    assert all(len(reading.strength) == 30 for reading in long.attention)
    assert any("longer than the model reads" in note for note in long.notes)
    assert not explain(searcher, QUERY).reading.truncated


def test_json_is_plain(searcher):
    found = explain(searcher, QUERY, 3, ["not"])
    value = json.loads(json.dumps(found.as_json()))
    assert value["operators"] == ["not"]
    assert [word["text"] for word in value["words"]] == QUERY.split()
    assert [span["text"] for span in value["excluded_words"]] == [span.text for span in found.reading.excluded]
    assert len(value["results"]) == len(value["plain"]["results"]) == 3
    assert value["results"][0]["excluded"] == found.after[0].hit.excluded


@pytest.fixture
def shown(searcher):
    """An explanation of a query that is read as people would read it."""
    found = explain(searcher, BOTH, 3, ["or", "not"])
    assert found.not_weight is not None
    first, *rest = found.after
    first = first._replace(hit=replace(first.hit, violates=True))
    rest = [change._replace(hit=replace(change.hit, violates=False)) for change in rest]
    return replace(found, reading=both_as_marked(), after=[first, *rest])


def test_page_shows_how_the_query_was_read(shown):
    page = shown.page()
    assert "<s>about war</s>" in page
    assert "<b>films</b>" in page
    assert 'data-operator="NOT">but not</u>' in page
    assert f"− {shown.not_weight:.2f} ×" in page
    assert f"✗ {shown.after[0].hit.title}" in page
    assert page.count("✗") == 1
    assert "1 of 3 are about war" in page


def test_page_stands_alone_and_escapes(searcher):
    page = explain(searcher, "films <b>& not a", 3, ["not"]).page()
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page
    assert "films &lt;b&gt;&amp; not a" in page
    assert "<b>&" not in page
    assert page.count('class="off') >= 2 * 4  # AND and OR are off


def test_picture_shows_how_the_query_was_read(tmp_path, shown):
    axes = draw(shown).axes[0]
    places = {text.get_text(): text.get_position() for text in reversed(axes.texts)}  # the query's words come first
    marks = {kind: [line for line in axes.lines if line.get_gid() == kind] for kind in ("excluded", "cue", "link")}
    (strike,) = marks["excluded"]
    left, right = strike.get_xdata()
    assert left < places["about"][0] < places["war"][0] < right
    assert strike.get_ydata()[0] == places["war"][1]
    assert len(marks["cue"]) == 2
    boxes = [patch.get_x() for patch in axes.patches if patch.get_gid() == "alternative"]
    assert len(boxes) == 2
    assert boxes[0] < places["films"][0] < places["or"][0] < boxes[1] < places["books"][0]
    assert len(marks["link"]) == len({change.hit.row for change in (*shown.before, *shown.after)})
    assert f"✗ {shown.after[0].hit.title}" in places
    assert write_picture(shown, tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"try a name that ends in \.png"):
        write_picture(shown, tmp_path / "p.nonsense")


def test_long_queries_stay_within_the_picture(shown):
    query = " ".join(["films"] * 60 + ["x" * 500])
    figure = draw(replace(shown, reading=query_of(query, [Mark("x", 0, len(query))], "a person")))
    width = figure.get_size_inches()[0]
    strikes = [line for line in figure.axes[0].lines if line.get_gid() == "excluded"]
    assert len(strikes) > 3
    assert all(0 <= x <= width for line in strikes for x in line.get_xdata())
