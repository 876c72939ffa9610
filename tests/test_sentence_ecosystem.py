"""What people do with any sentence-transformers model works with this one."""

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_helpers import DOCUMENTS, OPERATORS, QUERIES, write_dual
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    util,
)
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from boolbert.sentence_boolbert import load_dual_encoder, with_operators


@pytest.fixture
def folder(tmp_path, lively, tiny_config, tokenizer):
    write_dual(tmp_path / "dual", lively, tiny_config, tokenizer)
    return tmp_path / "dual"


@pytest.fixture
def model(folder):
    return load_dual_encoder(folder)


def test_similarity_and_semantic_search(model):
    queries = model.encode_query(QUERIES, operators=OPERATORS, convert_to_tensor=True)
    documents = model.encode_document(DOCUMENTS, convert_to_tensor=True)
    scores = model.similarity(queries, documents)
    torch.testing.assert_close(scores, queries @ documents.T, atol=1e-5, rtol=1e-4)
    for hits, row in zip(util.semantic_search(queries, documents, top_k=3), scores, strict=True):
        assert [hit["corpus_id"] for hit in hits] == row.topk(3).indices.tolist()


@pytest.mark.long
def test_multi_process(folder):
    """In another process, with the code of a stranger's folder, every query keeps its place and its operators."""
    model = SentenceTransformer(str(folder), trust_remote_code=True)
    pool = model.start_multi_process_pool(["cpu"])  # another process; more would only take longer
    try:
        found = model.encode_query(QUERIES, operators=OPERATORS, pool=pool, chunk_size=2)
    finally:
        model.stop_multi_process_pool(pool)
    np.testing.assert_allclose(found, model.encode_query(QUERIES, operators=OPERATORS), atol=1e-6)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("trust", [False, True])
def test_trainer(tmp_path, folder, labelled, trust):
    """Both routes learn, with and without operators in the data, and the best checkpoint is found again."""
    model = SentenceTransformer(str(folder), trust_remote_code=True) if trust else load_dual_encoder(folder)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    anchors = with_operators(QUERIES, OPERATORS) if labelled else QUERIES
    data = Dataset.from_dict({"anchor": anchors, "positive": DOCUMENTS})
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path / "run"),
        max_steps=2,
        per_device_train_batch_size=4,
        learning_rate=1e-2,
        router_mapping={"anchor": "query", "positive": "document"},
        eval_strategy="steps",
        eval_steps=1,
        save_strategy="steps",
        save_steps=1,
        load_best_model_at_end=True,
        report_to=[],
        disable_tqdm=True,
    )
    loss = MultipleNegativesRankingLoss(model)
    trainer = SentenceTransformerTrainer(model, arguments, train_dataset=data, eval_dataset=data, loss=loss)
    trainer.train()
    moved = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    for part in ("query.0.model.encoder.layer.1.attention", "query.0.model.embeddings", "document.0.model.encoder"):
        assert any(part in name for name in moved), part

    best = SentenceTransformer(trainer.state.best_model_checkpoint, trust_remote_code=True)
    np.testing.assert_allclose(best.encode_query(QUERIES), model.encode_query(QUERIES), atol=1e-6)
    card = (tmp_path / "run/checkpoint-2/README.md").read_text()
    assert "loss:MultipleNegativesRankingLoss" in card
    assert ", trust_remote_code=True)\n" in card


def test_evaluator(model, tmp_path):
    """The evaluator sends queries and documents down their own routes."""
    scores = model.similarity(model.encode_query(QUERIES), model.encode_document(DOCUMENTS))
    best = scores.argmax(1).tolist()
    evaluator = InformationRetrievalEvaluator(
        queries={f"q{i}": query for i, query in enumerate(QUERIES)},
        corpus={f"d{i}": document for i, document in enumerate(DOCUMENTS)},
        relevant_docs={f"q{i}": {f"d{row}"} for i, row in enumerate(best)},
        name="own",
        write_csv=False,
    )
    assert model.evaluate(evaluator)["own_cosine_mrr@10"] == 1.0


def test_prompts(folder, tmp_path):
    model = load_dual_encoder(folder, prompts={"query": "films that are ", "document": ""})
    plain = load_dual_encoder(folder)
    expected = plain.encode_query([f"films that are {query}" for query in QUERIES], operators=OPERATORS)
    np.testing.assert_allclose(model.encode_query(QUERIES, operators=OPERATORS), expected, atol=1e-5)
    model.save(str(tmp_path / "again"))
    again = load_dual_encoder(tmp_path / "again")
    np.testing.assert_allclose(again.encode_query(QUERIES, operators=OPERATORS), expected, atol=1e-5)
