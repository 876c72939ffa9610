"""What SECURITY.md promises: no file of a model, an index or a checkpoint runs code, whoever made it."""

import contextlib
import json
import os
import pickle
import shutil

import numpy as np
import pytest
import training_helpers as helpers
from search_fixtures import write_documents

from boolbert.core.errors import BoolBertError
from boolbert.hub.assemble import CODE
from boolbert.retrieval.models import load_encoder
from boolbert.search import BoolSearcher, Index, build_index, load_model


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.fixture
def mark(tmp_path):
    """A path that must never exist; first, that a pickle would make it."""
    path = tmp_path / "run-by-a-pickle"
    pickle.loads(pickle.dumps(Touch(path)))
    path.rmdir()
    yield path
    assert not path.exists(), "code out of a file was run"


@pytest.fixture
def run(tmp_path, run_once):
    return shutil.copytree(run_once(), tmp_path / "run")


@pytest.mark.parametrize("part", ["", "document_encoder"])
@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "pytorch_model.bin, alone"])
def test_pickled_weights(run, mark, name, part):
    (run / part / name.partition(",")[0]).write_bytes(pickle.dumps(Touch(mark)))
    if name == "pytorch_model.bin":
        assert load_model(run).bert is not None  # the safetensors beside it are read
        return
    if name.endswith("alone"):
        (run / part / "model.safetensors").unlink()
    with pytest.raises(BoolBertError, match=r"model\.safetensors|never loaded"):
        load_model(run)


@pytest.mark.parametrize("name", ["lines.npy", "vectors/vectors-00000.npy"])
def test_pickled_arrays(tmp_path, run, mark, name):
    index = build_index(write_documents(tmp_path / "docs.jsonl"), tmp_path / "index", load_model(run), progress=False)
    np.save(index.folder / name, np.array([Touch(mark)] * 10, dtype=object), allow_pickle=True)
    with pytest.raises(BoolBertError, match="damaged"):
        BoolSearcher(run, Index(index.folder))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that was killed after its first checkpoint."""
    folder = helpers.make_folder(tmp_path_factory.mktemp("security"))
    helpers.train_quest(folder, folder / "run", epochs=2)
    (folder / "run/metrics.json").unlink()
    return folder


@pytest.mark.parametrize("name", ["optimizer.bin", "random_states_0.pkl", "scheduler.bin", "custom_checkpoint_0.pkl"])
def test_pickled_states_of_a_checkpoint(tmp_path, stopped, mark, name):
    """torch's restricted unpickler reads them: it makes tensors, and nothing else. The run stops or does without."""
    shutil.copytree(stopped / "run", tmp_path / "run")
    for checkpoint in (tmp_path / "run/checkpoints").glob("checkpoint-*"):
        (checkpoint / name).write_bytes(pickle.dumps(Touch(mark), protocol=2))
    with contextlib.suppress(BoolBertError):
        helpers.train_quest(stopped, tmp_path / "run", epochs=2, resume=True)


def test_code_in_a_models_folder_is_not_run_without_trust(run, mark):
    """This package's own classes load it, whatever stands in the folder's code files and settings."""
    code = f"import os\nos.mkdir({str(mark)!r})\n"
    for name in (*CODE, "evil.py"):
        (run / name).write_text(code)
        (run / "document_encoder" / name).write_text(code)
    for part in ("", "document_encoder"):
        config = json.loads((run / part / "config.json").read_text())
        config["auto_map"] = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
        (run / part / "config.json").write_text(json.dumps(config))
    assert load_model(run).bert is not None
    router = json.loads((run / "router_config.json").read_text())
    router["types"]["."] = "evil.Module"
    (run / "router_config.json").write_text(json.dumps(router))
    with pytest.raises(BoolBertError, match="cannot be loaded as an encoder"):
        load_encoder(str(run), quiet=True)
