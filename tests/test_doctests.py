"""Every doctest of the package runs: the examples in the docstrings are true."""

import doctest
import importlib
from pathlib import Path

import pytest

import boolbert

ROOT = Path(boolbert.__file__).parent
SKIPPED = {"tests", "bench", "build", "dist", "runs"}


def modules_with_examples():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0].startswith(".") or parts[0] in SKIPPED or ">>>" not in path.read_text(encoding="utf-8"):
            continue
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        yield ".".join(("boolbert", *parts))


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/*.md")), ids=lambda path: path.name)
def test_examples_in_the_docs(path):
    assert doctest.testfile(str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
