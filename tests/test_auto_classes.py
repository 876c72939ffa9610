"""One folder, loaded by strangers: with and without the package, offline, in a process of their own.

The processes are forked from one that has imported torch and transformers, and nothing of this package.
"""

import json
import os
import subprocess
import sys

import pytest
import torch

import boolbert
from boolbert import BoolBertModel
from boolbert.hub import load_published

# A process in which `import boolbert` fails, as on a machine that never installed it.
WITHOUT_PACKAGE = f"""
import runpy, sys
sys.meta_path.insert(0, runpy.run_path({load_published.__file__!r})["NotInstalled"]())
"""

STRANGER = """
import json, sys, torch
from transformers import AutoConfig, AutoModel, AutoModelForPreTraining, AutoTokenizer, pipeline

folder, trust = sys.argv[1], json.loads(sys.argv[2])
config = AutoConfig.from_pretrained(folder, trust_remote_code=trust)
model = AutoModel.from_pretrained(folder, trust_remote_code=trust).eval()
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust)
batch = tokenizer(["films about war but not a or b", "books"], padding=True, return_tensors="pt")
with torch.no_grad():
    out = model(**batch)
    given = model(**batch, operators=torch.tensor([[1, 0, 1], [0, 1, 0]]))
features = pipeline("feature-extraction", model=folder, trust_remote_code=trust)("films about war")
again = sys.argv[3]
model.save_pretrained(again)
head = AutoModelForPreTraining.from_pretrained(folder, trust_remote_code=trust)
print(json.dumps({
    "config": type(config).__name__, "gate": config.gate, "model": type(model).__name__, "head": type(head).__name__,
    "module": type(model).__module__, "installed": "boolbert" in sys.modules,
    "states": out.last_hidden_state.tolist(), "given": given.last_hidden_state.tolist(), "features": features[0],
}))
"""


FORKS = """
import json, os, sys
import transformers.models.bert.modeling_bert, transformers.models.bert.tokenization_bert, transformers.pipelines
from transformers import AutoConfig, AutoModel, AutoModelForPreTraining, AutoTokenizer, pipeline
from transformers.conversion_mapping import get_checkpoint_conversion_mapping

get_checkpoint_conversion_mapping("bert")  # the patterns of all models are compiled for the first one

for script, *arguments in json.loads(sys.argv[1]):
    if not os.fork():
        sys.argv = ["-", *arguments]
        exec(script, {"__name__": "__main__"})
        sys.exit()
    assert os.wait()[1] == 0
"""


def run(*scripts, cwd):
    """The last line that each script prints; a script is its text and its arguments."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": str(cwd / "modules"), "HF_HOME": str(cwd)}
    done = subprocess.run(
        [sys.executable, "-c", FORKS, json.dumps([[str(word) for word in script] for script in scripts])],
        cwd=cwd,
        env={**environment, "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def folder(tmp_path, lively, tokenizer):
    path = tmp_path / "bool-bert"
    lively(gate="cue").save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


SETTINGS = {
    "not installed": (WITHOUT_PACKAGE, True),
    "installed": ("", True),
    "imported": ("import boolbert; boolbert.BoolBertModel\n", False),
}


@pytest.mark.long
def test_auto_classes(tmp_path, folder, tokenizer):
    """Three strangers, each in a fresh process, get the same numbers to the last bit, and the right ones."""
    scripts = [
        (prelude + STRANGER, folder, json.dumps(trust), tmp_path / setting)
        for setting, (prelude, trust) in SETTINGS.items()
    ]
    registered = ("from transformers import AutoConfig; import boolbert; print(AutoConfig.for_model('boolbert').gate)",)
    *lines, gate = run(*scripts, registered, cwd=tmp_path)
    assert gate == "learned"  # known to transformers as soon as the package is imported after it
    told = dict(zip(SETTINGS, map(json.loads, lines), strict=True))
    for setting in SETTINGS:
        again = tmp_path / setting
        # What a stranger saves is whole again: weights as safetensors only, and the code.
        names = {path.name for path in again.iterdir()}
        parts = ("configuration", "composing", "modeling")
        code = {f"{part}_boolbert.py" for part in parts}
        assert names == {"config.json", "model.safetensors", *code}
        for name in code:
            assert (again / name).read_text() == (folder / name).read_text()

    for setting, answer in told.items():
        assert (answer["config"], answer["gate"], answer["model"]) == ("BoolBertConfig", "cue", "BoolBertModel")
        assert answer["head"] == "BoolBertForPreTraining"
        assert answer["installed"] == (setting == "imported")
        assert answer["module"].startswith("boolbert." if setting == "imported" else "transformers_modules.")
        for numbers in ("states", "given", "features"):
            assert answer[numbers] == told["imported"][numbers], (setting, numbers)

    model = BoolBertModel.from_pretrained(folder).eval()
    batch = tokenizer(["films about war but not a or b", "books"], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = model(**batch).last_hidden_state
        given = model(**batch, operators=torch.tensor([[1, 0, 1], [0, 1, 0]])).last_hidden_state
        single = model(**tokenizer(["films about war"], return_tensors="pt")).last_hidden_state[0]
    for numbers, tensor in (("states", expected), ("given", given), ("features", single)):
        torch.testing.assert_close(torch.tensor(told["imported"][numbers]), tensor)


def told_by(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_plain_python_parts_do_not_load_torch():
    imports = "import sys, boolbert.boolean, boolbert.data"
    assert told_by(f"{imports}; print(bool({{'torch', 'transformers'}} & set(sys.modules)))") == "False"


def test_public_names():
    assert set(boolbert.__all__) <= set(dir(boolbert))
    assert all(getattr(boolbert, name) is not None for name in boolbert.__all__)
    with pytest.raises(AttributeError, match="no attribute 'BoolGPT'"):
        boolbert.BoolGPT  # noqa: B018
