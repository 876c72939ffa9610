"""`--push_to_hub`: a run that ends on the Hub, or says before its first step why it cannot."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from fake_hub import FakeHub
from huggingface_hub import HfApi, constants
from training_helpers import write_encoder, write_quest

import boolbert.hub.publish as publishing
from boolbert import hub_upload
from boolbert.core.errors import TrainingError
from boolbert.core.runs import Run
from boolbert.train import outputs, quest, seeds


@pytest.fixture
def train(tmp_path, monkeypatch):
    """A function that runs train/quest.py with these flags besides those of a short run in tmp_path/run."""
    write_encoder(tmp_path / "encoder")
    write_quest(tmp_path / "quest")

    def run(*words):
        folders = {"--data": "quest", "--encoder": "encoder", "--output_dir": "run"}
        flags = [word for name, folder in folders.items() for word in (name, str(tmp_path / folder))]
        flags += ["--max_steps", "2", "--batch_size", "5", "--tracker", "none", "--threads", "1"]
        monkeypatch.setattr(sys, "argv", ["quest.py", *flags, *words])
        quest.main()

    return run


@pytest.fixture
def publish(monkeypatch):
    """A function that sets what is done instead of starting `boolbert publish`; it is given the words behind that."""

    def replace(act):
        def run(command, **options):
            if command[0] == "git":
                return subprocess.run(command, **options)
            assert command[:3] == [sys.executable, "-m", "boolbert.hub_upload"]
            return SimpleNamespace(returncode=act(command[3:]) or 0)

        monkeypatch.setattr(outputs, "subprocess", SimpleNamespace(run=run, SubprocessError=OSError))

    return replace


def test_a_finished_run_stands_on_the_hub(tmp_path, train, publish, monkeypatch, capsys):
    """In this process: in one of its own it takes long, and test_hub_upload.py has that."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(hub_upload, "check", lambda run, folder: {"AutoModel": 0.0})
    publish(hub_upload.main)
    with FakeHub() as hub:
        monkeypatch.setattr(publishing, "HfApi", lambda: HfApi(endpoint=hub.url, token=hub.token))
        train("--push_to_hub", "org/bool-bert --private --allow-dirty")
    files = hub.repos["org/bool-bert"]["files"]
    assert hub.repos["org/bool-bert"]["visibility"] == "private"
    assert files["model.safetensors"] == (tmp_path / "run" / "model.safetensors").read_bytes()
    assert {"modeling_boolbert.py", "document_encoder/model.safetensors", "README.md"} <= files.keys()
    assert [path for _, path in hub.requests].count("/api/repos/create") == 2  # before the first step, and at the end
    assert "Published: http" in capsys.readouterr().out


def test_a_wrong_token_is_told_before_the_first_step(tmp_path, train, monkeypatch, capfd):
    wrong = "hf_" + "w" * 30
    with FakeHub() as hub:
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        for name, value in (("HF_ENDPOINT", hub.url), ("HF_TOKEN", wrong), ("HF_HOME", str(tmp_path / "home"))):
            monkeypatch.setenv(name, value)
        with pytest.raises(TrainingError, match="--push_to_hub org/x --allow-dirty: nothing could be published"):
            train("--push_to_hub", "org/x --allow-dirty")
        assert ("POST", "/api/repos/create") in hub.requests
    shown = capfd.readouterr()
    assert "hf auth login" in shown.err
    assert wrong not in shown.out + shown.err
    assert not (tmp_path / "run").exists()


def test_a_run_that_was_not_published_is_published_by_the_same_command(tmp_path, train, publish):
    output = str(tmp_path / "run")
    words = [output, "--repo", "org/bool-bert", "--create-pr"]
    commands = []
    publish(lambda command: commands.append(command) or 2 * (command == words))
    again = f"is finished, but was not published; see above, then: boolbert publish {output} --repo org/bool-bert"
    with pytest.raises(TrainingError, match=again):
        train("--push_to_hub", "org/bool-bert --create-pr")
    assert commands == [[*words, "--create-only"], words]
    assert Run(output).finished

    commands.clear()
    publish(commands.append)
    train("--push_to_hub", "org/bool-bert --create-pr")
    assert commands == [[*words, "--create-only"], words]


def test_one_process_publishes_and_a_baseline_has_no_code(tmp_path, publish, monkeypatch):
    commands = []
    publish(commands.append)
    args = quest.QuestArguments(output_dir=str(tmp_path), baseline=True)
    monkeypatch.setenv("RANK", "1")
    with outputs.published("org/bert", args):
        pass
    assert commands == []
    monkeypatch.setenv("RANK", "0")
    with outputs.published("org/bert", args):
        pass
    assert commands[1] == [str(tmp_path), "--repo", "org/bert", "--allow-dirty"]


def test_a_run_that_fails_is_not_published(tmp_path, publish):
    commands = []
    publish(commands.append)
    with pytest.raises(TrainingError, match="lost"), outputs.published("org/x", quest.QuestArguments()):
        raise TrainingError("lost")
    assert [command[-1] for command in commands] == ["--create-only"]


def test_several_seeds_are_refused(tmp_path, monkeypatch):
    words = ["seeds.py", "train/quest.py", "--output_dir", str(tmp_path / "seeds"), "--push_to_hub", "org/x"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(TrainingError, match="each seed would replace the one before"):
        seeds.main()
