"""A first answer in Python takes the command's way: torch, which takes seconds to import, is left alone until something
needs it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import boolbert
from boolbert.retrieval.shards import Vectors
from boolbert.search.document_search import DocumentSearch
from boolbert.search.query_encoder import QueryVectors

README = Path(boolbert.__file__).parent / "README.md"
HEAVY = ("torch", "transformers", "sentence_transformers")
# On a machine with a GPU Python's searcher is on it.
BEFORE = "from boolbert.core import environment; environment.GPUS = ()\n"
AFTER = f"\nimport json, sys; print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"


def imported_by(code, **options):
    """What code prints in a process of its own, and which of the heavy packages it has imported."""
    command = [sys.executable, "-c", BEFORE + code + AFTER]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    shown, _, heavy = done.stdout.rstrip().rpartition("\n")
    return shown, json.loads(heavy)


def test_the_readmes_first_block_needs_no_torch(tmp_path):
    block = re.search(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]
    assert "BoolSearcher()" in block
    shown, heavy = imported_by(block, env={**os.environ, "BOOLBERT_CACHE": str(tmp_path / "cache")})
    assert len(shown.splitlines()) == 4
    assert heavy == []


def test_without_torch_too_equal_documents_come_in_their_order(searcher):
    vectors = np.array([[0.1], [0.5], [0.9], [0.5], [0.5], [0.5]], np.float32)
    searcher.index.vectors = Vectors([vectors], 1)
    asked = QueryVectors(np.ones((1, 1), np.float32), np.ones(1, np.float32), None)
    for k, expected in ((1, [2]), (3, [2, 1, 3]), (6, [2, 1, 3, 4, 5, 0]), (9, [2, 1, 3, 4, 5, 0])):
        assert DocumentSearch(searcher.index, None).rank(searcher.index, asked, k)[1] == expected
