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
    for script in set(re.findall(r"(?:eval|bench)/\w+\.py", text)):
        assert (ROOT / script).exists(), script
    modules = {path.name for path in (ROOT / "eval" / "metrics").iterdir() if (path / f"{path.name}.py").exists()}
    assert all(f"`{name}`" in text or f"metrics/{name}" in text for name in modules)
