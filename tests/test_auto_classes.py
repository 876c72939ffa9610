"""One folder, loaded by strangers: with and without the package, offline, in a process of their own."""

import json
import os
import subprocess
import sys

import pytest
import torch

import boolbert
from boolbert import BoolBertModel
from boolbert.configuration_boolbert import UPGRADED
from boolbert.hub import load_published
from boolbert.hub.assemble import assemble
from boolbert.retrieval.models import load_encoder, with_fresh_attention
from boolbert.train.upgrade import give_reader

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


# What a published model excludes, by either door; and that its vector of a query that excludes nothing is whole.
READS = """
import json, sys, torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

folder, queries = sys.argv[1], json.loads(sys.argv[2])
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
model = AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
sentences = SentenceTransformer(folder, trust_remote_code=True, device="cpu")
ids = tokenizer(queries)["input_ids"]
with torch.no_grad():
    scopes = {
        "AutoModel": [model(torch.tensor([row])).scope[0, 2] for row in ids],
        "SentenceTransformer": [
            row["scope"][2] for row in sentences.encode(queries, task="query", output_value=None)
        ],
    }
print(json.dumps({
    door: [tokenizer.decode([id for id, inside in zip(row, scope.tolist()) if inside]) for row, scope in zip(ids, rows)]
    for door, rows in scopes.items()
} | {"installed": "boolbert" in sys.modules}))
"""


def run(script, *arguments, cwd):
    """The last line that a script prints in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": str(cwd / "modules"), "HF_HOME": str(cwd)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


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
    # Known to transformers as soon as the package is imported after it.
    imports = "from transformers import AutoConfig; import boolbert"
    assert run(f"{imports}; print(AutoConfig.for_model('boolbert').gate)", cwd=tmp_path) == "learned"
    told = {}
    for setting, (prelude, trust) in SETTINGS.items():
        again = tmp_path / setting
        told[setting] = json.loads(run(prelude + STRANGER, folder, json.dumps(trust), again, cwd=tmp_path))
        # What a stranger saves is whole again: weights as safetensors only, and the code.
        code = {f"{part}_boolbert.py" for part in ("configuration", "reading", "composing", "modeling")}
        assert {path.name for path in again.iterdir()} == {"config.json", "model.safetensors", *code}
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


@pytest.mark.long
def test_a_published_model_reads_by_itself(tmp_path):
    """An upgraded all-MiniLM-L6-v2, with nothing of the package but the files of its folder."""
    plain = load_encoder(device="cpu", quiet=True)
    model = with_fresh_attention(plain, share=True, query_length=None, **UPGRADED)
    give_reader(model, progress=False)
    run_dir, published = tmp_path / "run", tmp_path / "published"
    model.save(str(run_dir), create_model_card=False)
    published.mkdir()
    assemble(run_dir, published)
    queries = {"hotel with no pool": "pool", "black raincoat without a hood": "hood", "island monarchies": ""}
    found = json.loads(run(WITHOUT_PACKAGE + READS, published, json.dumps(list(queries)), cwd=tmp_path))
    assert found == {"AutoModel": [*queries.values()], "SentenceTransformer": [*queries.values()], "installed": False}


def test_the_plain_python_parts_do_not_load_torch(tmp_path):
    imports = "import sys, boolbert.boolean, boolbert.data"
    assert run(f"{imports}; print(bool({{'torch', 'transformers'}} & set(sys.modules)))", cwd=tmp_path) == "False"


def test_public_names():
    assert set(boolbert.__all__) <= set(dir(boolbert))
    assert all(getattr(boolbert, name) is not None for name in boolbert.__all__)
    with pytest.raises(AttributeError, match="no attribute 'BoolGPT'"):
        boolbert.BoolGPT  # noqa: B018
