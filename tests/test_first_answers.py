"""A first answer in Python takes the command's way: torch, which takes seconds to import, is left alone until something
needs it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime

import boolbert
from boolbert import says
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


LONG = [
    "Hotel Bellevue: Vital Club for outside guests. Doors open at seven, and towels are at the desk. The sauna is "
    "heated from noon on, for two hours. Swim before breakfast in our heated pool, which is thirty metres long and has "
    "four lanes. Rooms look out on the lake, and most of them have a balcony with a table and two chairs. Ask for room "
    f"{number} at the desk."
    for number in range(4)
]


def test_says_opens_one_encoder_for_all_long_texts(monkeypatch):
    opened, session = [], onnxruntime.InferenceSession

    def open_session(*given, **how):
        opened.append(1)
        return session(*given, **how)

    monkeypatch.setattr(onnxruntime, "InferenceSession", open_session)
    found = says(LONG, "a pool")
    assert [one.verdict for one in found] == ["affirms"] * 4
    assert all("heated pool" in one.clause for one in found)
    assert len(opened) <= 2  # the reader, if this process had none, and the encoder that finds the sentences
    opened.clear()
    says([text.replace("lake", "sea") for text in LONG], "a sauna")
    assert opened == []


def test_of_a_text_that_is_read_as_a_whole_the_sentence_that_speaks_of_the_condition_is_shown():
    """None of them says by itself that there are no children."""
    text = (
        "Hotel Bellevue: Vital Club for outside guests\nTranquillity is the concept: no beats, merely the fountain. "
        "Finnish sauna, bio sauna and steam bath are included. We admit forty external members, so that you'll never "
        "stand in line. Your personal trainer is assigned at the first visit. Commitment: twelve months. Young guests "
        "below 16 are kindly redirected to the hotel's games room."
    )
    (found,) = says([text], "children")
    assert found.verdict == "denies"
    assert found.clause == "Young guests below 16 are kindly redirected to the hotel's games room."


def test_long_texts_are_read_alike_one_by_one_and_together():
    """Those that are read as a whole, those that are read in parts, and short ones."""
    texts = [LONG[0], " ".join(LONG), "There is no pool.", " ".join([LONG[1].replace("pool", "lake"), *LONG[2:]])]
    assert says(texts, "a pool") == [one for text in texts for one in says([text], "a pool")]
