"""Publishing end to end, against a server that speaks the Hub's protocol and fails now and then."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from fake_hub import FakeHub
from huggingface_hub import HfApi, constants
from sentence_helpers import DOCUMENTS, OPERATORS, QUERIES, plain_bert

import boolbert.hub.publish as publishing
from boolbert import hub_upload
from boolbert.core.errors import HubError
from boolbert.hub import load_published
from boolbert.hub.publish import publish, retry
from boolbert.hub.refuse import LOOKED_FOR
from boolbert.sentence_boolbert import load_dual_encoder, save_dual_encoder

METRICS = {"dev": {"recall@20": 0.25, "mrr@10": 0.5}, "seed": 0, "arguments": {"data": None}}


@pytest.fixture
def run_dir(run_dir):
    (run_dir / "metrics.json").write_text(json.dumps(METRICS))
    (run_dir / "checkpoints").mkdir()
    (run_dir / "checkpoints/optimizer.pt").write_bytes(b"\x80\x02...")
    return run_dir


def environment(hub, home):
    """The variables of a process that knows this Hub only."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return {**kept, "HF_ENDPOINT": hub.url, "HF_TOKEN": hub.token, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(home)}


def loaded(hub, repo, operators, folder):
    """The vectors of somebody who has not installed the package and loads the repository by its name."""
    inputs = {"queries": QUERIES, "documents": DOCUMENTS, "operators": operators}
    (folder / "texts.json").write_text(json.dumps(inputs))
    command = [sys.executable, "-P", load_published.__file__, repo, "texts.json", "vectors.npz"]
    env = environment(hub, folder / "elsewhere")
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return dict(np.load(folder / "vectors.npz"))


@pytest.fixture
def connected(monkeypatch):
    """A function that opens a FakeHub that this process talks to."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(publishing, "WAIT", 0.01)

    def connect(faults=None):
        hub = FakeHub(faults)
        monkeypatch.setattr(publishing, "HfApi", lambda: HfApi(endpoint=hub.url, token=hub.token))
        return hub

    return connect


@pytest.mark.long
def test_published_and_loaded_by_strangers(tmp_path, run_dir, lively, tiny_config, tokenizer, connected, capfd):
    """One commit holds all files in spite of faults at every step; then others load it from the Hub by its name."""
    query = plain_bert(lively, tiny_config, seed=7)
    baseline = tmp_path / "baseline"
    save_dual_encoder(baseline, query, plain_bert(lively, tiny_config), tokenizer, pooling="cls", similarity="dot")
    faults = {"/repos/create": [503], "/preupload/": [503], "/lfs/": ["reset"], "/commit/": [503]}
    with connected(faults) as hub:
        hub_upload.main([str(run_dir), "--repo", "org/bool-bert", "--private", "--allow-dirty"])
        shown = capfd.readouterr()
        assert "Published: http" in shown.out
        assert hub.token not in shown.out + shown.err
        assert not any(hub.faults.values()), "every fault was met"
        repo = hub.repos["org/bool-bert"]
        assert repo["visibility"] == "private"
        wanted = {"README.md", "LICENSE", "modeling_boolbert.py", "document_encoder/model.safetensors"}
        assert wanted <= repo["files"].keys()
        assert not [name for name in repo["files"] if "checkpoint" in name or "metrics" in name]
        assert repo["files"]["model.safetensors"] == (run_dir / "model.safetensors").read_bytes()
        assert b"recall@20" in repo["files"]["README.md"]

        publish(baseline, "org/baseline")
        found, plain = (loaded(hub, *repo, tmp_path) for repo in (("org/bool-bert", OPERATORS), ("org/baseline", None)))
    own = load_dual_encoder(run_dir)
    expected = {
        "AutoModel": own.encode_query(QUERIES),
        "encode_query with operators": own.encode_query(QUERIES, operators=OPERATORS),
        "encode_document": own.encode_document(DOCUMENTS),
    }
    for way, vectors in expected.items():
        np.testing.assert_allclose(found[way] / np.linalg.norm(found[way], axis=1, keepdims=True), vectors, atol=1e-5)
    np.testing.assert_allclose(plain["encode_query"], load_dual_encoder(baseline).encode_query(QUERIES), atol=1e-5)


@pytest.fixture
def quick(monkeypatch):
    """Without the fresh process, which has its own test."""
    monkeypatch.setattr(hub_upload, "check", lambda run, folder: {"AutoModel": 0.0})


def test_dry_run_lists_and_sends_nothing(run_dir, connected, quick, capsys):
    with connected() as hub:
        hub_upload.main([str(run_dir), "--repo", "org/bool-bert", "--dry-run"])
        assert hub.requests == []
    out = capsys.readouterr().out
    for name in ("model.safetensors", "document_encoder/model.safetensors", "README.md", "sentence_boolbert.py"):
        assert f"  {name} " in out
    assert "optimizer.pt" not in out
    assert LOOKED_FOR in out


def test_pull_request(run_dir, connected, quick, capsys):
    with connected() as hub:
        hub_upload.main([str(run_dir), "--repo", "org/bool-bert", "--create-pr", "--allow-dirty"])
        assert len(hub.pull_requests) == 1
        assert hub.repos["org/bool-bert"]["files"] == {}
    assert "/discussions/1" in capsys.readouterr().out


def test_a_pull_request_is_never_opened_twice(run_dir, connected, capsys):
    """Where the answer got lost it may have been opened, so that is told; a commit is sent again."""
    with connected({"/commit/": ["reset"]}) as hub:
        with pytest.raises(HubError, match="uploading failed"):
            publish(run_dir, "org/bool-bert", create_pr=True)
        assert [path for _, path in hub.requests if "/commit/" in path] == ["/api/models/org/bool-bert/commit/main"]
        hub.faults["/commit/"] = ["reset"]
        assert publish(run_dir, "org/bool-bert").endswith("0123456789abcdef01234567")


def test_wrong_token(run_dir, connected, quick, monkeypatch):
    with connected() as hub:
        right, hub.token = hub.token, "hf_" + "w" * 30
        monkeypatch.setattr(publishing, "HfApi", lambda: HfApi(endpoint=hub.url, token=right))
        with pytest.raises(HubError, match="hf auth login") as error:
            hub_upload.main([str(run_dir), "--repo", "org/bool-bert", "--allow-dirty"])
    assert right not in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "calls", "message"),
    [
        (ConnectionError("hf_abcdefghijklmnopqrstuvwxyz is lost"), 4, r"4 times: \*\*\* is lost; run it"),
        (ValueError("no"), 1, ": no"),
    ],
)
def test_gives_up_after_a_few_attempts_and_at_once_where_no_network_failed(monkeypatch, capsys, error, calls, message):
    monkeypatch.setattr(publishing, "WAIT", 0.0)
    errors = [error] * 9
    with pytest.raises(HubError, match=f"uploading failed ?{message}"):
        retry(lambda: (_ for _ in ()).throw(errors.pop()), "uploading")
    assert len(errors) == 9 - calls
    assert "hf_abc" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "repo", "message"),
    [
        ("run", "bool-bert", "--repo must be owner/name"),
        ("run", "a/b/c", "--repo"),
        ("run", "org/with space", "--repo"),
        ("nowhere", "org/name", "nowhere: no such folder; give the output_dir of a finished run"),
    ],
)
def test_bad_names(run_dir, quick, folder, repo, message):
    with pytest.raises(HubError, match=message):
        hub_upload.main([str(run_dir.with_name(folder)), "--repo", repo, "--dry-run"])
