"""The examples of the evaluation page run, and the files and names it speaks of exist."""

import doctest
import re
from pathlib import Path

import boolbert

ROOT = Path(boolbert.__path__[0])
PAGE = ROOT / "docs" / "evaluation.md"


def test_examples_run():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted >= 4
    assert result.failed == 0


def test_scripts_and_metrics_exist():
    text = PAGE.read_text(encoding="utf-8")
    for script in set(re.findall(r"\b(?:eval|bench|retrieval)/\w+\.py", text)):
        assert (ROOT / script).exists(), script
    from boolbert.eval.boolean_ranking import METRICS

    assert all(f"`{name}`" in text or f'"{name}"' in text for name in METRICS)
