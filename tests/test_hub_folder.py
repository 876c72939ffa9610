"""What a published folder holds, what is kept out of it, and what its card says."""

import json
import subprocess

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from sentence_helpers import plain_bert

from boolbert.core.errors import HubError
from boolbert.hub import check as checking
from boolbert.hub.assemble import CODE, ROOT, assemble
from boolbert.hub.card import base_model, read_metrics, write_card
from boolbert.hub.refuse import refusals, uncommitted
from boolbert.sentence_boolbert import save_dual_encoder

METRICS = {
    "metric": "recall@100",
    "best_epoch": 3,
    "dev": {"recall@20": 0.25, "mrr@10": 0.5, "groups": {"_ or _": {"queries": 3, "recall@20": 0.1}}},
    "dev_without_labels": {"recall@20": 0.2},
    "history": [{"epoch": 1}],
    "seconds": 12.5,
    "seed": 0,
    "arguments": {"data": "/home/someone/quest", "epochs": 3},
}


@pytest.fixture
def run_dir(run_dir):
    (run_dir / "metrics.json").write_text(json.dumps(METRICS))
    return run_dir


@pytest.fixture
def folder(tmp_path, run_dir):
    path = tmp_path / "published"
    path.mkdir()
    assemble(run_dir, path)
    write_card(run_dir, "org/bool-bert", path)
    return path


def names(folder):
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_only_what_belongs_to_the_model(tmp_path, run_dir):
    (run_dir / ".files.aside-host-1.x").mkdir()  # what a killed process leaves
    left = (".tmpAbC123", "document_encoder/.tmpAbC123", ".files.aside-host-1.x/model.safetensors")
    for name in ("log.jsonl", "training_args.bin", "notes.txt", *left):
        (run_dir / name).write_text("/home/someone")
    (run_dir / "args.json").write_text('{"arguments": {"data": "/home/someone"}}')
    (run_dir / "modeling_boolbert.py").write_text("an older version")
    (tmp_path / "new").mkdir()
    files = assemble(run_dir, tmp_path / "new")
    encoder = {"config.json", "model.safetensors", "sentence_bert_config.json"}
    encoder |= {"tokenizer.json", "tokenizer_config.json"}
    settings = {"modules.json", "router_config.json", "config_sentence_transformers.json", "LICENSE"}
    pooling = {"1_Pooling/config.json", "2_Normalize/config.json"}
    expected = encoder | {f"document_encoder/{name}" for name in encoder} | settings | pooling | set(CODE)
    assert names(tmp_path / "new") == expected
    assert len(files) == len(expected)
    assert (tmp_path / "new/modeling_boolbert.py").read_bytes() == (ROOT / "modeling_boolbert.py").read_bytes()


def test_nothing_is_refused_in_a_good_folder(folder):
    assert refusals(folder, secrets=["", "hf_" + "s" * 30]) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.json", b'{"token": "hf_' + b"a" * 34 + b'"}', "notes.json, line 1: holds what looks like a token"),
        ("notes.json", b'{\n"key": "known-secret"}', "notes.json, line 2: holds what looks like a token"),
        ("README.md", b"see /root/runs/1", "README.md, line 1: holds the path of a machine, '/root/runs'"),
        ("weights.json", b"\x80\x04\x95", "weights.json: is pickled"),
        ("archive", b"PK\x03\x04", "archive: is pickled"),
        ("model.bin", b"", "model.bin: is pickled"),
        ("picture", b"\xff\xfe\xfa", "picture: is neither text nor safetensors"),
    ],
)
def test_refused(folder, name, content, message):
    (folder / name).write_bytes(content)
    (found,) = refusals(folder, secrets=["known-secret"])
    assert message in found
    assert "hf_aaa" not in found
    assert "known-secret" not in found


def test_uncommitted_code(tmp_path):
    root = tmp_path / "checkout"
    root.mkdir()
    assert uncommitted(root) == []
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for name in (*CODE, "other.py"):
        (root / name).write_text("1")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "1"]):
        subprocess.run([*git, *command], cwd=root, check=True)
    (root / "other.py").write_text("2")
    assert uncommitted(root) == []
    (root / CODE[1]).write_text("2")
    assert uncommitted(root) == [CODE[1]]


def test_card(folder):
    """The Hub reads its metadata, and nothing of the machine is in it."""
    card = ModelCard.load(folder / "README.md")
    assert card.data.license == "apache-2.0"
    assert card.data.library_name == "sentence-transformers"
    found = {(r.dataset_config, r.metric_type): r.metric_value for r in card.data.eval_results}
    assert found == {("dev", "recall@20"): 0.25, ("dev", "mrr@10"): 0.5, ("dev_without_labels", "recall@20"): 0.2}
    assert {r.dataset_name for r in card.data.eval_results if r.dataset_config == "dev"} == {"quest, dev split"}
    assert 'SentenceTransformer("org/bool-bert", trust_remote_code=True)' in card.text
    assert "| dev split | 0.25 | 0.5 |" in card.text
    assert "someone" not in card.content


def test_card_of_a_baseline_without_metrics(tmp_path, lively, tiny_config, tokenizer):
    run = tmp_path / "run"
    bert = plain_bert(lively, tiny_config)
    save_dual_encoder(run, bert, bert, tokenizer, pooling="cls", similarity="dot")
    write_card(run, "org/bert", tmp_path)
    card = ModelCard.load(tmp_path / "README.md")
    assert card.data.eval_results is None
    assert "trust_remote_code" not in card.text
    assert "nothing was measured" in card.text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"recall@20": 0.5, "seed": 1, "steps": 3}, {"dev": {"recall@20": 0.5}}),
        ({"test": {"mrr@10": 1}, "arguments": {"lr": 1.0}, "note": "x"}, {"test": {"mrr@10": 1.0}}),
        ({"dev": None, "history": []}, {}),
    ],
)
def test_metrics_of_other_shapes(tmp_path, content, expected):
    (tmp_path / "metrics.json").write_text(json.dumps(content))
    assert read_metrics(tmp_path) == expected


def test_base_model_is_followed_through_earlier_runs(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"

    def record(run, kind, path, encoder=None):
        run.mkdir(exist_ok=True)
        content = {"start": {"kind": kind, "encoder": str(path)}, "arguments": {"encoder": encoder}}
        (run / "args.json").write_text(json.dumps(content))

    record(first, "minilm", "x")
    record(second, "given", first)
    assert base_model(second) == "sentence-transformers/all-MiniLM-L6-v2"
    name = "google-bert/bert-base-uncased"
    record(first, "given", tmp_path / "hub/models--google-bert--bert-base-uncased/snapshots/1", name)
    assert base_model(second) == name
    record(first, "given", "runs/bert", "runs/bert")  # a folder that is gone by now
    assert base_model(second) is None
    record(first, "given", second)  # a circle
    assert base_model(second) is None
    assert base_model(tmp_path) is None


def test_the_check_compares_every_way_to_load(run_dir, folder, monkeypatch):
    """With this process standing in for the fresh one: what differs is named."""
    own = checking.own_vectors(run_dir)
    assert set(own) == {"AutoModel", "encode_query", "encode_document", "encode_query with operators"}
    monkeypatch.setattr(checking, "published_vectors", checking.own_vectors)
    assert max(checking.check(run_dir, folder).values()) == 0
    weights = load_file(folder / "document_encoder/model.safetensors")
    weights["encoder.layer.1.output.dense.weight"] *= 1.5
    save_file(weights, folder / "document_encoder/model.safetensors", metadata={"format": "pt"})
    with pytest.raises(HubError, match="the check failed: encode_document differs from the run's own by"):
        checking.check(run_dir, folder)
    for way in own:
        other = {**own, way: own[way] + np.float32(0.1)}
        monkeypatch.setattr(checking, "published_vectors", lambda path, other=other: other)
        with pytest.raises(HubError, match=f"the check failed: {way} differs"):
            checking.check(run_dir, folder)


def test_a_run_of_another_version(run_dir, folder):
    weights = load_file(run_dir / "model.safetensors")
    weights["cue_predictor.score.weight"] = torch.zeros(1, 99)
    save_file(weights, run_dir / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(HubError, match="run: does not load with this version of the package: "):
        checking.check(run_dir, folder)


def test_a_folder_that_does_not_load(folder, tmp_path, monkeypatch):
    """A stand-in for Python that fails as it would, and gets neither a token nor a way to the network."""
    stand_in = tmp_path / "python"
    stand_in.write_text('#!/bin/sh\necho "offline: $HF_HUB_OFFLINE, token: $HF_TOKEN" >&2\nexit 1\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(checking.sys, "executable", str(stand_in))
    with pytest.raises(HubError, match=r"does not load in a fresh process: offline: 1, token:$"):
        checking.published_vectors(folder)
