"""The evaluators in sentence-transformers' hands, the MTEB tasks."""

import json
import re
from pathlib import Path

import pytest
from eval_fixtures import save_model, write_quest

import boolbert
from boolbert.data.tasks import quest_task
from boolbert.eval import quest
from boolbert.eval.evaluators import BoolQuestionsEvaluator, QuestEvaluator
from boolbert.retrieval.models import load_encoder

ROOT = Path(boolbert.__path__[0])


@pytest.fixture
def model(tmp_path, tokenizer, tiny_config):
    return load_encoder(str(save_model(tmp_path / "model", tokenizer, tiny_config)), device="cpu", quiet=True)


def test_the_page_on_evaluation_names_files_that_exist():
    text = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    for script in set(re.findall(r"\b(?:eval|bench|retrieval)/\w+\.py", text)):
        assert (ROOT / script).exists(), script


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


def test_what_the_mteb_tasks_hold_and_add(tmp_path):
    pytest.importorskip("datasets")
    from boolbert.eval.mteb_tasks import boolean_scores, split_data

    task = quest_task(write_quest(tmp_path / "data"), "dev", progress=False)
    held = split_data(task)
    assert held["queries"]["text"][3] == "films but not war"
    assert held["relevant_docs"]["q3"] == {"0": 1, "2": 1, "4": 1}
    assert len(held["corpus"]) == 10
    results = {"q3": {"0": 3.0, "1": 2.0, "3": 2.0}, "q0": {"0": 1.0}}
    scores = boolean_scores(task, results)
    assert scores["r_precision"] == pytest.approx((1 / 3 + 1 / 6) / 2)
    assert scores["violations"] == pytest.approx(2 / 3)


def test_mteb_takes_the_task(model):
    pytest.importorskip("mteb")
    import mteb

    from boolbert.eval.mteb_tasks import boolquestions_retrieval_task, countries_task

    task = countries_task("dev")
    result = mteb.evaluate(model, [task], cache=None).task_results[0].scores["dev"][0]
    assert 0 <= result["main_score"] <= 1
    assert "violations" in result
    assert boolquestions_retrieval_task().metadata.name == "BoolQuestionsMSMARCORetrieval"
