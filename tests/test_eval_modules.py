"""The metrics as an `evaluate` module, the evaluators in sentence-transformers' hands."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from eval_fixtures import save_model, write_quest

import boolbert
from boolbert.eval import quest
from boolbert.eval.evaluators import BoolQuestionsEvaluator, QuestEvaluator
from boolbert.retrieval import ranking
from boolbert.retrieval.models import load_encoder

MODULE = Path(boolbert.__path__[0]) / "eval" / "boolean_ranking.py"
NAMES = [
    *("accuracy_at_k", "mrecall_at_k", "mrr_at_k", "ndcg_at_k"),
    *("pairwise_accuracy", "r_precision", "recall_at_k", "violation_rate"),
]


@pytest.fixture
def model(tmp_path, tokenizer, tiny_config):
    return load_encoder(str(save_model(tmp_path / "model", tokenizer, tiny_config)), device="cpu", quiet=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_loads_by_its_name_and_agrees_with_ours(name, tmp_path):
    evaluate = pytest.importorskip("evaluate")
    module = evaluate.load(str(MODULE), name, cache_dir=str(tmp_path))
    assert module.description
    assert "predictions" in module.inputs_description
    rng = np.random.default_rng(0)
    if name == "pairwise_accuracy":
        scores = rng.integers(0, 3, size=(20, 2, 2)).astype(float)
        result = module.compute(predictions=scores.tolist())
        assert result["per_query"] == ranking.pairwise_accuracy(scores).tolist()
        return
    rows = np.stack([rng.permutation(12)[:8] for _ in range(20)])
    gold = [rng.permutation(12)[: rng.integers(0, 12)].tolist() for _ in range(19)] + [[]]
    out = [rng.permutation(12)[: rng.integers(0, 5)].tolist() for _ in range(20)]

    def named(sets):
        return [[f"d{row}" for row in rows_of_one] for rows_of_one in sets]

    function = getattr(ranking, name)
    if name == "violation_rate":
        values = function(rows, out, gold)
        result = module.compute(predictions=named(rows), references=named(gold), excluded=named(out))
    else:
        options = {} if name == "r_precision" else {"k": 5}
        values = function(rows, gold, **options)
        result = module.compute(predictions=named(rows), references=named(gold), **options)
    np.testing.assert_allclose(result["per_query"], values)
    assert result[name] == pytest.approx(np.nanmean(values))
    assert result["low"] <= result[name] <= result["high"]
    assert result["queries"] == np.isfinite(values).sum() < 20


def test_the_page_on_evaluation_names_files_and_metrics_that_exist():
    text = (MODULE.parents[1] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    for script in set(re.findall(r"\b(?:eval|bench|retrieval)/\w+\.py", text)):
        assert (MODULE.parents[1] / script).exists(), script
    assert all(f"`{name}`" in text or f'"{name}"' in text for name in NAMES)


def test_what_the_module_refuses(tmp_path):
    evaluate = pytest.importorskip("evaluate")
    module = evaluate.load(str(MODULE), "recall_at_k", cache_dir=str(tmp_path))
    with pytest.raises(ValueError, match="query 0 name the document 'a' twice"):
        module.compute(predictions=[["a", "a"]], references=[["a"]], k=2)
    with pytest.raises(ValueError, match=r"name a metric, .* one of recall_at_k"):
        evaluate.load(str(MODULE), "precision", cache_dir=str(tmp_path))


def test_the_evaluator_agrees_with_the_script(model, tmp_path):
    data = str(write_quest(tmp_path / "data"))
    evaluator = QuestEvaluator(data, "dev")
    model.train()
    result = evaluator(model, str(tmp_path / "log"), epoch=1, steps=10)
    assert evaluator(model) == result
    assert model.training
    assert evaluator.primary_metric in result
    assert evaluator.primary_metric == "data_dev_r_precision"
    pytest.importorskip("matplotlib")
    quest.main(
        ["--model", str(tmp_path / "model"), "--data", data, "--output_dir", str(tmp_path / "out"), "--device", "cpu"]
    )

    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())["metrics"]["all"]
    assert result["data_dev_r_precision"] == pytest.approx(metrics["r_precision"]["mean"])


def test_boolquestions_evaluator(model):
    evaluator = BoolQuestionsEvaluator(limit=20, name="bq")
    assert 0 <= evaluator(model)["bq_mrr@10"] <= 1
