"""What libraries read when they are loaded is set before torch is, and a user's own setting stays."""

import os
import subprocess
import sys

import pytest

NAME = "MIMALLOC_PURGE_DELAY"
SHOWN = f"import os, sys; print(os.environ.get({NAME!r}), 'torch' in sys.modules)"
COMMAND = "import sys; sys.argv = ['boolbert', 'data', 'summary', 'nowhere']; from boolbert.cli import main; main()"


def found_after(code, own=None):
    """The setting after some code, and whether torch is loaded by then."""
    environment = {name: value for name, value in os.environ.items() if name != NAME}
    environment |= {} if own is None else {NAME: own}
    words = [sys.executable, "-c", f"{code}; {SHOWN}"]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.split()[-2:]


@pytest.mark.parametrize(
    ("code", "own"), [("import boolbert.train", None), ("import boolbert.eval", "10"), (COMMAND, None)]
)
def test_freed_memory_is_kept(code, own):
    assert found_after(code, own) == [own or "100000", "False"]


def test_a_library_sets_nothing():
    assert found_after("import boolbert; boolbert.BoolBertModel") == ["None", "True"]
