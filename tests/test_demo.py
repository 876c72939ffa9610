"""The demo from end to end with a tiny model; what is finished is used again."""

import json
import runpy
import sys
from pathlib import Path

import pytest

from boolbert.cli import demo, main


@pytest.fixture
def scripts_in_this_process(monkeypatch):
    """The demo's training scripts run as they are launched, but without importing everything anew."""

    def run(command):
        python, script, *words = command
        assert python == sys.executable
        monkeypatch.setattr(sys, "argv", [script, *words])
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            return end.code or 0
        return 0

    monkeypatch.setattr(demo, "run_together", lambda commands, log: [run(command) for command in commands])


@pytest.mark.long
@pytest.mark.usefixtures("scripts_in_this_process")
def test_demo_runs_and_is_used_again(tmp_path, monkeypatch, capsys):
    output = tmp_path / "demo"
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--quick", "--output", str(output)]) == 0
    shown, told = capsys.readouterr()
    assert "\r" not in told
    for number in range(1, 6):
        assert f"== {number}/5" in shown
    for name in ("Untrained encoder", "BM25", "Upgraded encoder", "Violations"):
        assert name in shown
    for name in ("bool-bert/modules.json", "bert/modules.json", "explain.html", "explain.png", "compare/report.html"):
        assert (output / name).stat().st_size > 100
    assert "are what it excludes" in shown
    # What a second call does before it shows the results: nothing.
    assert demo.training(output / "bool-bert", demo.QUICK_TRAIN, fresh=False) is None
    assert len(demo.compare(output, None)) == 6  # the tiny model has no cosine, so no evidence


def summary(name, r_precision, violations, p_value):
    return {
        "system": name,
        "p_value": p_value,
        "metrics": {"all": {"r_precision": {"mean": r_precision}, "negated": {"mean": violations}}},
    }


def test_commands_run_at_the_same_time_and_the_second_writes_into_a_file(tmp_path, capfd):
    # Each waits for the other's file: one after the other they would never end.
    meet = "import sys, pathlib, time; pathlib.Path(sys.argv[1]).touch(); print('hello from', sys.argv[1])\n"
    meet += "while not pathlib.Path(sys.argv[2]).exists(): time.sleep(0.01)\nsys.exit(int(sys.argv[3]))"
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    commands = [[sys.executable, "-c", meet, one, two, "0"], [sys.executable, "-c", meet, two, one, "7"]]
    assert demo.run_together(commands, tmp_path / "log") == [0, 7]
    assert capfd.readouterr().out == f"hello from {one}\n"
    assert (tmp_path / "log").read_text() == f"hello from {two}\n"


def test_verdict_follows_from_the_numbers():
    summaries = [summary("Untrained encoder", 0.3, 0.5, 0.0), summary(demo.PLAIN, 0.5, 0.25, None)]
    same = demo.verdict([*summaries, summary(demo.BOOLEAN, 0.51, 0.2, 0.4)])
    assert "from 0.300 to 0.500 (BERT) and 0.510 (Bool-BERT): no difference" in same
    assert "25.0% (BERT) and 20.0% (Bool-BERT)" in same
    assert "With evidence" not in same
    better = demo.verdict([*summaries, summary(demo.BOOLEAN, 0.6, 0.2, 0.001)])
    assert "Bool-BERT is better" in better
    evidence = [
        summary("BERT, with evidence, none read", 0.7, 0.1, 0.0),
        summary("Bool-BERT, with evidence, none read", 0.8, 0.05, 0.0),
    ]
    both = demo.verdict([*summaries, summary(demo.BOOLEAN, 0.6, 0.2, 0.001), *evidence])
    assert "R-precision is 0.700 (BERT) and 0.800 (Bool-BERT), and 10.0% and 5.0% are excluded" in both
    assert "BERT is better" in demo.verdict([*summaries, summary(demo.BOOLEAN, 0.4, 0.2, 0.001)])


def test_a_run_of_other_flags_is_trained_again(tmp_path):
    (tmp_path / "args.json").write_text(json.dumps({"arguments": {"epochs": 2, "encoder": "e"}}))
    (tmp_path / "metrics.json").write_text("{}")
    assert demo.training(tmp_path, {"epochs": 2, "encoder": Path("e")}, fresh=False) is None
    assert "--overwrite" in demo.training(tmp_path, {"epochs": 3, "encoder": "e"}, fresh=False)
    assert "--overwrite" in demo.training(tmp_path, {"epochs": 2}, fresh=True)
    (tmp_path / "metrics.json").unlink()  # cut off
    assert "--resume" in demo.training(tmp_path, {"epochs": 2}, fresh=False)
