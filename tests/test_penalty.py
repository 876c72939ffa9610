"""What a query wants and what it excludes, kept apart: the score from loops, in training, in a search and by hand."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from search_fixtures import write_run
from sentence_helpers import DOCUMENTS, OPERATORS, QUERIES, write_dual
from torch.testing import assert_close

from boolbert.core.errors import BoolBertError
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.faiss_index import FaissIndex
from boolbert.retrieval.neighbours import top_k
from boolbert.retrieval.penalty import ask_deeper, penalised_query, penalised_scores, products
from boolbert.search.document_search import DEEPEST, best_in_store
from boolbert.search.query_encoder import QueryVectors
from boolbert.sentence_boolbert import load_dual_encoder, with_operators
from boolbert.train.dual_encoder import DualEncoder, both_forms, contrastive_loss, searched_with
from boolbert.train.retrieval import RetrievalArguments
from boolbert.train.retrieval_run import build_model
from boolbert.train.start import find_start


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def slow_scores(wanted, excluded, weight, above, documents):
    """One document and one alternative at a time."""
    scores = []
    for document in documents:
        best = max(float(np.dot(one, document)) for one in wanted)
        near = float(np.dot(excluded, document))
        scores.append(best - (weight * (near - above) if near > above else 0.0))
    return scores


def test_the_scores_are_those_of_loops():
    random = np.random.default_rng(0)
    wanted, excluded = unit(random.normal(size=(5, 3, 8))), unit(random.normal(size=(5, 8)))
    penalty = np.stack([random.uniform(0.2, 2, 5), random.uniform(-0.3, 0.6, 5)], 1)
    penalty[3, 0] = 0.0  # nothing is excluded
    documents = unit(random.normal(size=(40, 8)))
    given = (torch.from_numpy(part).float() for part in (wanted, excluded, penalty))
    rows = penalised_query(*given)
    found = penalised_scores(rows, torch.from_numpy(documents).float()).numpy()
    for query in range(5):
        expected = slow_scores(wanted[query], excluded[query], *penalty[query], documents)
        np.testing.assert_allclose(found[query], expected, atol=1e-5)
    scores, ranked = top_k(rows.numpy(), documents.astype(np.float32), 7, block=16)
    np.testing.assert_array_equal(ranked, np.argsort(-found, axis=1, kind="stable")[:, :7])
    np.testing.assert_allclose(scores, -np.sort(-found, axis=1)[:, :7], atol=1e-6)


@pytest.fixture
def model(tmp_path, lively, tiny_config, tokenizer):
    write_dual(tmp_path, lively, tiny_config, tokenizer, branches=2, penalty=0.5)
    return load_dual_encoder(tmp_path, device="cpu")


def test_a_query_by_hand_scores_as_a_search_does(model):
    documents = encode_inputs(model, DOCUMENTS, "document", 8)
    queries = encode_inputs(model, with_operators(QUERIES, OPERATORS), "query", 8)
    found = penalised_scores(torch.from_numpy(queries), torch.from_numpy(documents)).numpy()
    parts = model.encode_query_parts(QUERIES, operators=OPERATORS)
    for row, one in enumerate(parts):
        np.testing.assert_allclose(one.scores(documents), found[row], atol=1e-5)
        np.testing.assert_allclose(one.scores(3 * documents), found[row], atol=1e-5)  # lengths do not count
    assert any(one.excluded is not None for one in parts)
    assert any(one.excluded is None for one in parts)
    # A strength by hand is that of the one vector, and asks for it, also for one query of several.
    alone = model.encode_query_parts(QUERIES[0], not_weight=0.7)
    np.testing.assert_allclose(alone.scores(documents), (documents @ alone.vectors.T).max(1), atol=1e-6)
    some = [{"text": QUERIES[0], "not_weight": 0.7}, QUERIES[0]]
    found = model.encode_query_parts(some)
    np.testing.assert_allclose(found[0].scores(documents), alone.scores(documents), atol=1e-5)
    np.testing.assert_allclose(
        found[1].scores(documents), model.encode_query_parts(QUERIES[0]).scores(documents), atol=1e-5
    )
    rows = torch.from_numpy(encode_inputs(model, some, "query", 8))
    expected = np.stack([one.scores(documents) for one in found])
    np.testing.assert_allclose(penalised_scores(rows, torch.from_numpy(documents)).numpy(), expected, atol=1e-5)


def test_a_query_that_excludes_nothing_scores_as_its_vector_to_the_bit(model):
    documents = torch.from_numpy(encode_inputs(model, DOCUMENTS, "document", 8))
    texts = [{"text": text, "operators": [1, 0, 0]} for text in QUERIES]
    apart, together = (
        torch.from_numpy(encode_inputs(model, texts, "query", 8, one_vector=one)) for one in (False, True)
    )
    assert apart.shape[1:] == (together.shape[1] + 1, together.shape[2] + 1)
    assert not apart[:, -1].any()
    expected = torch.stack([rows @ documents.T for rows in together.unbind(1)]).amax(0)
    torch.testing.assert_close(penalised_scores(apart, documents), expected, rtol=0, atol=0)


def test_both_forms_of_a_query_learn(lively, tiny_config, tokenizer):
    """The loss is the mean of both forms', and strength, weight and threshold have the gradients of differences."""
    query = lively(branches=2, penalty=0.5, pooling="mean").train(False)
    dual = DualEncoder(query, query, pooling="mean", similarity="cosine")
    batch = tokenizer(QUERIES, padding=True, return_tensors="pt")
    operators = torch.tensor([[0, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1], [0, 0, 1]])
    inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "operators": operators}
    documents = torch.nn.functional.normalize(torch.randn(6, 16, generator=torch.Generator().manual_seed(0)), dim=-1)
    targets = torch.tensor([0, 1, 2, 3, 4])

    def loss():
        return contrastive_loss(dual("query", inputs), documents, targets, temperature=0.2)

    found = dual("query", inputs)
    composed, apart = both_forms(found)
    output = query.search(query(**inputs), inputs["attention_mask"])
    torch.testing.assert_close(composed, torch.nn.functional.normalize(output["query_vectors"], dim=-1))
    torch.testing.assert_close(searched_with(found, documents), apart)
    alone = [
        torch.nn.functional.cross_entropy(scores / 0.2, targets)
        for scores in ((composed @ documents.T).amax(1), penalised_scores(apart, documents))
    ]
    torch.testing.assert_close(loss(), (alone[0] + alone[1]) / 2)

    loss().backward()
    for parameter in (query.composer.strength, query.composer.penalty, query.composer.penalty_above):
        step = 1e-3
        with torch.no_grad():
            parameter += step
            above = loss()
            parameter -= 2 * step
            below = loss()
            parameter += step
        assert parameter.grad.abs().item() > 1e-4
        assert parameter.grad.item() == pytest.approx((above - below).item() / (2 * step), rel=0.05)


def test_dot_products_have_no_threshold(tmp_path, lively, tiny_config, tokenizer):
    write_run(tmp_path / "run", lively, tiny_config, tokenizer, penalty=0.5)
    start = find_start(str(tmp_path / "run"))
    assert build_model(start, RetrievalArguments()).query.composer.has_penalty
    assert not build_model(start, RetrievalArguments(similarity="dot")).query.composer.has_penalty
    assert not build_model(start, RetrievalArguments(penalty=0.0)).query.composer.has_penalty
    with pytest.raises(BoolBertError, match="--penalty needs vectors of one length"):
        build_model(start, RetrievalArguments(similarity="dot", penalty=0.5))
    for change in ({"exclusion": "none"}, {"baseline": True}, {"recipe": "paper"}):
        with pytest.raises(BoolBertError, match="--penalty needs a Bool-BERT that excludes"):
            build_model(start, RetrievalArguments(penalty=0.5, **change))
    given = build_model(start, RetrievalArguments(penalty=0.7)).query  # the start has another one
    assert torch.nn.functional.softplus(given.composer.penalty).item() == pytest.approx(0.7)
    write_dual(tmp_path / "dot", lively, tiny_config, tokenizer, similarity="dot", penalty=0.5)
    dot = load_dual_encoder(tmp_path / "dot", device="cpu")
    np.testing.assert_allclose(encode_inputs(dot, QUERIES, "query", 8), dot.encode_query(QUERIES), atol=1e-5)
    assert dot.encode_query_parts(QUERIES[0]).penalty is None


def test_an_approximate_index_sorts_anew(model):
    pytest.importorskip("faiss")
    random = np.random.default_rng(1)
    documents = unit(random.normal(size=(500, 16))).astype(np.float32)
    queries = encode_inputs(model, QUERIES, "query", 8)
    scores, rows = FaissIndex(documents, "Flat").search(queries, 10)
    expected_scores, expected = top_k(queries, documents, 10)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-5)
    plain = top_k(encode_inputs(model, QUERIES, "query", 8, one_vector=True), documents, 10)[1]
    assert (plain != expected).any()  # the penalty is felt


def test_more_is_looked_at_only_until_the_best_are_sure():
    random = np.random.default_rng(2)
    bounds = -np.sort(-random.uniform(size=(6, 300)), axis=1)
    scores = bounds - random.uniform(0, 0.5, size=bounds.shape) * (np.arange(6) > 0)[:, None]  # query 0 loses nothing
    asked = []

    def look(numbers, depth):
        asked.append((list(numbers), depth))
        rest = depth < 300
        return [
            (range(depth), scores[row, :depth].tolist(), bounds[row, depth - 1] if rest else None) for row in numbers
        ]

    found = ask_deeper(look, 6, k=5, depth=8, deepest=300)
    assert [[row for _, row in best] for best in found] == np.argsort(-scores, axis=1)[:, :5].tolist()
    assert asked[0] == ([0, 1, 2, 3, 4, 5], 8)
    for (before, less), (numbers, depth) in pairwise(asked):
        assert depth == min(4 * less, 300)
        fifth = [sorted(scores[row, :less], reverse=True)[4] for row in before]
        assert numbers == [row for row, score in zip(before, fifth, strict=True) if score < bounds[row, less - 1]]
    assert 1 < len(asked) < 4  # some were unsure, and not all documents were needed


def test_a_store_is_never_asked_for_more_than_it_gives():
    """Milvus gives 16,384 documents at most; with something excluded a search looks deeper than k."""
    vector = np.array([1.0, 0.0], np.float32)
    excluded, rows = np.array([0.0, 1.0], np.float32), np.zeros((2, 3), np.float32)
    parts = QueryVectors(vector[None], vector, excluded, rows, (0.5, 0.4))
    asked = []

    class Store:
        def search(self, vectors, depth, where):
            asked.append(depth)
            return [[]]

    for k in (1, 10, 5000, DEEPEST):
        assert best_in_store(Store(), parts, k, None) == []
    assert asked == [64, 64, DEEPEST, DEEPEST]


@pytest.mark.parametrize("has_mkl", [True, False])
@pytest.mark.parametrize("rows", [(1, 1), (1, 3), (2, 2), (0, 2)])
def test_products_row_by_row_are_the_same(monkeypatch, has_mkl, rows):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: has_mkl)
    queries, documents = torch.randn(*rows, 5), torch.randn(7, 5)
    assert_close(products(queries, documents), torch.einsum("bkd,nd->bkn", queries, documents))
