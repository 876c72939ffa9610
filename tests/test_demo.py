"""The demo from end to end with a tiny model; what is finished is used again."""

import json
import os
import runpy
import sys
from pathlib import Path

import pytest

from boolbert.cli import demo, main
from boolbert.train import upgrade
from boolbert.train.upgrade import training_sentences


@pytest.fixture
def scripts_in_this_process(monkeypatch):
    """The demo's training scripts run as they are launched, but without importing everything anew."""

    def run(command, environment):
        python, script, *words = command
        assert python == sys.executable
        monkeypatch.setattr(sys, "argv", [script, *words])
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            return end.code or 0
        return 0

    monkeypatch.setattr(demo, "run_and_wait", run)


@pytest.mark.long
@pytest.mark.usefixtures("scripts_in_this_process")
def test_demo_runs_and_is_used_again(tmp_path, monkeypatch, capsys):
    output = tmp_path / "demo"
    monkeypatch.chdir(tmp_path)
    # How well it learns to read is the upgrade's test; an eighth of the sentences is enough to show something.
    monkeypatch.setattr(upgrade, "training_sentences", lambda *given: training_sentences(*given)[::8])
    assert main(["demo", "--quick", "--output", str(output)]) == 0
    shown = capsys.readouterr().out
    for number in range(1, 8):
        assert f"== {number}/7" in shown
    for name in ("Untrained encoder", "BM25", "Upgraded encoder", "Violations"):
        assert name in shown
    for name in ("bool-bert/modules.json", "bert/modules.json", "explain.html", "explain.png", "compare/report.html"):
        assert (output / name).stat().st_size > 100
    assert "are what it excludes" in shown
    # What a second call does before it shows the results: nothing.
    assert not demo.upgraded(output / "upgraded", output / "encoder", demo.QUICK.upgrade, fresh=False)
    assert not demo.trained(output / "bool-bert", "quest", demo.QUICK.train, fresh=False)
    assert len(demo.compare(output, output / "encoder", None)) == 6


def summary(name, r_precision, violations, p_value):
    return {
        "system": name,
        "p_value": p_value,
        "metrics": {"all": {"r_precision": {"mean": r_precision}, "negated": {"mean": violations}}},
    }


def test_a_script_is_a_process_with_its_own_environment():
    environment = {**os.environ, "ENDS_WITH": "7"}
    assert demo.run_and_wait([sys.executable, "-c", "import os; exit(int(os.environ['ENDS_WITH']))"], environment) == 7


def test_verdict_follows_from_the_numbers():
    summaries = [summary("Untrained encoder", 0.3, 0.5, 0.0), summary(demo.PLAIN, 0.5, 0.25, None)]
    same = demo.verdict([*summaries, summary(demo.BOOLEAN, 0.51, 0.2, 0.4)])
    assert "from 0.300 to 0.500 (BERT) and 0.510 (Bool-BERT): no difference" in same
    assert "25.0% (BERT) and 20.0% (Bool-BERT)" in same
    better = demo.verdict([*summaries, summary(demo.BOOLEAN, 0.6, 0.2, 0.001)])
    assert "Bool-BERT is better" in better
    assert "BERT is better" in demo.verdict([*summaries, summary(demo.BOOLEAN, 0.4, 0.2, 0.001)])


def test_a_run_of_other_flags_is_trained_again(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(demo, "run_and_wait", lambda command, environment: calls.append(command) or 0)
    (tmp_path / "args.json").write_text(json.dumps({"arguments": {"epochs": 2, "encoder": "e"}}))
    (tmp_path / "metrics.json").write_text("{}")
    assert not demo.trained(tmp_path, "quest", {"epochs": 2, "encoder": Path("e")}, fresh=False)
    assert demo.trained(tmp_path, "quest", {"epochs": 3, "encoder": "e"}, fresh=False)
    assert "--overwrite" in calls[-1]
    assert demo.trained(tmp_path, "quest", {"epochs": 2}, fresh=True)
    (tmp_path / "metrics.json").unlink()  # cut off
    assert demo.trained(tmp_path, "quest", {"epochs": 2}, fresh=False)
    assert "--resume" in calls[-1]
    assert len(calls) == 3


def test_the_encoder_is_copied_without_attention_dropout(tmp_path):
    from boolbert.retrieval.encoders import random_bert
    from boolbert.retrieval.models import load_encoder

    copy = demo.prepare_encoder(tmp_path / "copy", random=True)
    assert json.loads((copy / "config.json").read_text())["attention_probs_dropout_prob"] == 0
    texts = ["islands that are not monarchies"]
    before, after = (load_encoder(str(path), quiet=True).encode(texts) for path in (random_bert(), copy))
    assert before.tolist() == after.tolist()
