"""The metrics as an `evaluate` module, the evaluators in sentence-transformers' hands."""

import json
import re
from pathlib import Path

import pytest
from eval_fixtures import save_model, write_quest

import boolbert
from boolbert.eval import quest
from boolbert.eval.evaluators import BoolQuestionsEvaluator, QuestEvaluator
from boolbert.retrieval.models import load_encoder

MODULE = Path(boolbert.__path__[0]) / "eval" / "boolean_ranking.py"
INPUTS = {"predictions": [["a", "b", "c"], ["a"]], "references": [["b", "d"], []]}
CASES = {
    "recall_at_k": ({**INPUTS, "k": 2}, 0.5),
    "mrecall_at_k": ({**INPUTS, "k": 2}, 0.0),
    "accuracy_at_k": ({**INPUTS, "k": 1}, 0.0),
    "mrr_at_k": (INPUTS, 0.5),
    "ndcg_at_k": (INPUTS, 0.3869),
    "r_precision": (INPUTS, 0.5),
    "violation_rate": ({**INPUTS, "excluded": [["a", "c"], ["a"]]}, 0.5),
    "pairwise_accuracy": ({"predictions": [[[0.9, 0.1], [0.2, 0.3]]]}, 1.0),
}


@pytest.fixture
def model(tmp_path, tokenizer, tiny_config):
    return load_encoder(str(save_model(tmp_path / "model", tokenizer, tiny_config)), device="cpu", quiet=True)


@pytest.mark.parametrize("name", CASES)
def test_every_metric_loads_by_its_name(name, tmp_path):
    evaluate = pytest.importorskip("evaluate")
    module = evaluate.load(str(MODULE), name, cache_dir=str(tmp_path))
    assert "predictions" in module.inputs_description
    inputs, value = CASES[name]
    result = module.compute(**inputs)
    assert [result[key] for key in (name, "low", "high")] == pytest.approx([value] * 3, abs=1e-4)
    assert result["queries"] == 1  # the other one has no gold
    assert len(result["per_query"]) == len(inputs["predictions"])


def test_the_page_on_evaluation_names_files_and_metrics_that_exist():
    text = (MODULE.parents[1] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    for script in set(re.findall(r"\b(?:eval|bench|retrieval)/\w+\.py", text)):
        assert (MODULE.parents[1] / script).exists(), script
    assert all(f"`{name}`" in text or f'"{name}"' in text for name in CASES)


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
