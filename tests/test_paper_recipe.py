"""The paper's recipe through all three stages, on the embedded default: a few steps of each, as they are launched."""

import subprocess
import sys
from pathlib import Path

import pytest

import boolbert
from boolbert import BoolBertConfig
from boolbert.configuration_boolbert import PAPER

ROOT = Path(boolbert.__file__).parent
STEPS = "--recipe=paper --max_steps=3 --batch_size=4 --tracker=none --epochs=1"
STAGES = {
    "pretrain": "--max_rows=20 --query_length=32",
    "quest": "--freeze_reading=False --document_length=48 --num_negatives=2",
    "boolquestions": "--freeze_reading=False --document_length=48 --num_negatives=2",
}


@pytest.mark.long
def test_every_stage_has_the_papers_form(tmp_path):
    before = None
    for stage, flags in STAGES.items():
        words = [*STEPS.split(), *flags.split(), f"--output_dir={tmp_path / stage}"]
        words += [] if before is None else [f"--encoder={before}"]
        command = [sys.executable, str(ROOT / f"train/{stage}.py"), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-2000:]
        before = tmp_path / stage
        config = BoolBertConfig.from_pretrained(before)
        assert {name: getattr(config, name) for name in PAPER} == PAPER
        assert not config.reads_scopes
