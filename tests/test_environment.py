"""What a command sets for its process, and that a library call leaves the process as it was."""

import logging
import multiprocessing
import os
import subprocess
import sys
import warnings

import pytest
import torch
from process_helpers import finish, tell_setting
from transformers.utils import logging as transformers_logging

from boolbert.retrieval.encoders import random_bert
from boolbert.retrieval.models import load_encoder
from boolbert.train.outputs import own_settings

NAME = "MIMALLOC_PURGE_DELAY"
SHOWN = f"import os, sys; print(os.environ.get({NAME!r}), 'torch' in sys.modules)"
COMMAND = "import sys; sys.argv = ['boolbert', 'data', 'summary', 'nowhere']; from boolbert.cli import main; main()"


def setting_after(code, own=None):
    """The setting after some code, and whether torch is loaded by then."""
    environment = {name: value for name, value in os.environ.items() if name != NAME}
    environment |= {} if own is None else {NAME: own}
    words = [sys.executable, "-c", f"{code}; {SHOWN}"]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.split()[-2:]


@pytest.mark.parametrize("own", [None, "10"])
def test_a_command_sets_memory_before_torch_is_loaded(own):
    assert setting_after(COMMAND, own) == [own or "100000", "False"]


@pytest.mark.long
def test_imports_set_nothing(start):
    """In a process forked from one that has imported the commands: forked_from.py."""
    told, telling = multiprocessing.Pipe(duplex=False)
    assert finish(start(tell_setting, NAME, telling)) == [0]
    assert told.recv() == (None, True)


def test_loading_a_model_leaves_logs_and_progress_bars(tmp_path):
    loggers = [logging.getLogger(name) for name in ("", "transformers", "sentence_transformers", "httpx")]
    before = [logger.level for logger in loggers], transformers_logging.is_progress_bar_enabled()
    load_encoder(str(random_bert(tmp_path / "model")), device="cpu", quiet=True)
    assert ([logger.level for logger in loggers], transformers_logging.is_progress_bar_enabled()) == before


def test_training_leaves_threads_seed_and_warnings():
    def state():
        return torch.get_num_threads(), torch.get_rng_state().tolist(), list(warnings.filters)

    before = state()
    with own_settings():
        torch.set_num_threads(before[0] + 1)
        torch.manual_seed(7)
        warnings.simplefilter("ignore")
        assert state() != before
    assert state() == before
