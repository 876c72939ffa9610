"""What NOT excludes, said by the caller instead of the model: in the model, in sentence-transformers, in search."""

import numpy as np
import pytest
import torch
from search_fixtures import QUERY, write_baseline

from boolbert.core.errors import BoolBertError, RetrievalError
from boolbert.search import BoolSearcher, explain

NOT = 2


@torch.no_grad()
def test_saying_what_the_model_reads_changes_nothing(lively, batch):
    """The layers' own corrections are what the caller overrules, so they are off here."""
    model = lively()
    for layer in model.encoder.layer:
        predictor = layer.attention.self.scope_predictor
        for parameter in (predictor.context.weight, predictor.cue_weight, predictor.bias, *predictor.film.parameters()):
            parameter.zero_()
        predictor.threshold.fill_(0.5)
    operators = torch.tensor([[0, 0, 1]] * 3)
    read = model(**batch, operators=operators)
    assert 0 < read.scope[:, NOT].sum() < batch["attention_mask"].sum()
    said = model(**batch, operators=operators, scope=read.scope)
    torch.testing.assert_close(said.sentence_embedding, read.sentence_embedding)
    torch.testing.assert_close(said.last_hidden_state[0], read.last_hidden_state[0])


@torch.no_grad()
def test_every_layer_obeys(lively, batch):
    scope = torch.zeros(3, 3, 7, dtype=torch.long)
    scope[1, NOT] = torch.tensor([0, 1, 1, 0, 0, 1, 1])  # the last two are padding
    given = lively()(**batch, scope=scope, output_scopes=True)
    assert given.scope[1, NOT].tolist() == [0, 1, 1, 0, 0, 0, 0]
    assert given.operators.tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    for layer in given.scopes:
        assert layer[1, NOT].tolist() == [[0, 1, 1, 0, 0, 0, 0]] * 2


@torch.no_grad()
def test_cues_are_where_the_caller_says(lively, batch):
    """Their probability is 0 or 1, and the distance to them counts."""
    cues, scope = torch.zeros(2, 3, 3, 7, dtype=torch.long)
    scope[:, NOT, 3] = cues[0, NOT, 1] = cues[1, NOT, 3] = 1
    found = lively()(**batch, cues=cues, scope=scope, output_biases=True)
    assert torch.sigmoid(found.cue_logits).equal(cues.float())
    other = lively()(**batch, cues=torch.zeros_like(cues), scope=scope, output_biases=True)
    differs = (found.biases[0][:, NOT] - other.biases[0][:, NOT]).abs().amax(1) > 1e-6  # (B, L)
    assert differs.tolist() == [[False, *[True] * 6], [*[False] * 3, *[True] * 4], [False] * 7]


def test_wrong_shapes_and_values_are_refused(lively, batch):
    with pytest.raises(ValueError, match=r"scope must be a \(3, 3, 7\) tensor of 0 and 1, .*, got shape \(3, 6\)"):
        lively()(**batch, scope=torch.zeros(3, 6))
    with pytest.raises(ValueError, match=r"cues must be .*, got other values; leave cues out where it is not known"):
        lively()(**batch, cues=torch.full((3, 3, 7), -1))
    with pytest.raises(ValueError, match=r"scope must be .*, got a list"):
        lively()(**batch, scope=[[0]])


def test_sentence_transformers_leave_to_the_model_what_nobody_says(searcher):
    """Queries of one batch, of which some are told; each as if it were alone."""
    encoder = searcher.model.encoder
    told = [{"operators": [0, 0, 1]}, {"operators": [1, 0, 0]}, {}, {"operators": [0, 0, 0]}]
    together = encoder.encode_query([{"text": QUERY, **one} for one in told])
    for row, one in enumerate(told):
        alone = encoder.encode_query([{"text": QUERY, **one}])
        np.testing.assert_allclose(together[row], alone[0], atol=1e-5)
    assert not np.allclose(together[0], together[3], atol=1e-3)


def test_sentence_transformers_pass_it_on(searcher):
    encoder = searcher.model.encoder
    words = QUERY.split()  # each is one token of this tokenizer, between [CLS] and [SEP]
    scope = [0, *(int(word == "war") for word in words), 0]
    ids = torch.tensor([searcher.queries.tokens(QUERY).ids])
    bert = searcher.model.bert
    with torch.no_grad():
        whole = (bert.read(ids).scope_logits > 0).long()
        whole[:, NOT] = torch.tensor([scope])
        output = bert(ids, operators=torch.tensor([[*bert.read(ids).operators[0, :NOT].tolist(), 1]]), scope=whole)
    parts = encoder.encode_query_parts(QUERY, not_scope=scope)
    expected = torch.nn.functional.normalize(output.sentence_embedding[0], dim=0)  # this model ends with Normalize
    np.testing.assert_allclose(parts.vectors[0], expected.numpy(), rtol=1e-4, atol=1e-5)


def test_a_searcher_takes_the_numbers_of_words(searcher):
    words = [word.text for word in searcher.read(QUERY).words]
    answer = searcher.search(QUERY, 10, excluded=[words.index("films")])
    assert [span.text for span in answer.excluded_words] == ["films"]
    assert "not" in answer.operators
    nothing = searcher.search(QUERY, 10, excluded=[])
    assert nothing.excluded_words == ()
    assert "not" not in nothing.operators
    assert [hit.score for hit in nothing] != [hit.score for hit in answer]
    explanation = explain(searcher, QUERY, 10, excluded=[words.index("films")])
    assert [change.hit.row for change in explanation.after] == [hit.row for hit in answer]
    assert explanation.reading.excluded_text == "films"


def test_words_that_are_not_there_and_plain_encoders_are_refused(searcher, tmp_path, lively, tiny_config, tokenizer):
    with pytest.raises(RetrievalError, match="word 99, but the query has the words 0 to 4"):
        searcher.search(QUERY, excluded=[99])
    plain = BoolSearcher(write_baseline(tmp_path / "plain", lively, tiny_config, tokenizer), searcher.index)
    with pytest.raises(RetrievalError, match="is no Bool-BERT"):
        plain.search(QUERY, excluded=[0])


def test_search_box_syntax_says_what_is_excluded(searcher):
    """The same as naming the operator and the words by hand, whatever the model would have read."""
    for query, number in (("films NOT war", 2), ("films -war", 2), ("!war films", 1)):
        typed = searcher.search(query, 10, evidence=False)
        by_hand = searcher.search(query, 10, ["not"], excluded=[number], evidence=False)
        assert [span.text for span in typed.excluded_words] == ["war"]
        assert (typed.operators, typed.reading.decided_by) == (("not",), "the search-box syntax")
        assert [(hit.row, hit.score) for hit in typed] == [(hit.row, hit.score) for hit in by_hand]
    assert searcher.read("films | books").operators == ("or",)
    assert searcher.read("films -war", operators=[]).excluded == ()  # who asks for no operator gets none
    assert searcher.read(QUERY).decided_by != "the search-box syntax"
    with pytest.raises(BoolBertError, match="does not know 'site:'"):
        searcher.search("site:example.com films")
