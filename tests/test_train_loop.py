"""A run in this process: what it writes, how it stops, and what it says when something is wrong."""

import json
import math
import shutil
import signal

import pytest
import torch
import training_helpers as helpers
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModel, AutoTokenizer

from boolbert.core.errors import BoolBertError, Interrupted, TrainingError
from boolbert.data import Quest
from boolbert.retrieval.ranking import mrr_at_k
from boolbert.sentence_boolbert import load_dual_encoder
from boolbert.train import retrieval
from boolbert.train.loop import check_batch


@pytest.fixture(scope="module")
def finished(folder):
    helpers.train_quest(folder, folder / "finished", negatives="violating", keep_last=1)
    return folder / "finished"


def test_the_output_loads_through_both_doors_and_says_how_it_came_about(finished):
    query = AutoModel.from_pretrained(finished)
    assert type(query).__name__ == "BoolBertModel"
    tokens = AutoTokenizer.from_pretrained(finished).tokenize("films about war")
    assert tokens == ["films", "about", "war"]
    both = load_dual_encoder(finished, device="cpu")
    assert both.encode_query(["films about war"], operators=[["not"]]).shape == (1, 16)
    assert both.encode_document(["films about war"]).shape == (1, 16)
    record = json.loads((finished / "args.json").read_text())
    assert record["script"] == "quest"
    assert record["arguments"]["negatives"] == "violating"
    assert {"torch", "transformers", "boolbert"} <= record["versions"].keys()
    assert "git_commit" in record
    metrics = json.loads((finished / "metrics.json").read_text())
    assert {"mrr@10", "r_precision", "violations", "negated", "groups"} <= metrics["dev"].keys()
    assert metrics["metric"] == "r_precision"
    assert len(metrics["history"]) == 3
    losses = [row["loss"] for row in map(json.loads, (finished / "log.jsonl").open()) if "loss" in row]
    assert losses[-1] < losses[0]
    readme = (finished / "README.md").read_text()
    assert f"best by r_precision after {metrics['best_step']} steps" in readme
    assert f"| {metrics['dev']['mrr@10']:.3f}".replace("0.", ".") in readme


def test_the_best_epoch_is_what_is_saved(finished):
    metrics = json.loads((finished / "metrics.json").read_text())
    best = max(metrics["history"], key=lambda row: row["r_precision"])  # the first of equals
    assert metrics["best_epoch"] == best["epoch"]
    assert metrics["dev"]["r_precision"] == best["r_precision"]
    kept = load_file(finished / "checkpoints" / f"best-{best['step']}" / "model.safetensors")
    saved = load_file(finished / "model.safetensors")
    assert all(torch.equal(kept[f"query.{name}"], tensor) for name, tensor in saved.items())
    assert [path.name for path in (finished / "checkpoints").glob("checkpoint-*")] == ["checkpoint-15"]


def test_the_metrics_are_those_of_the_saved_model(finished, folder):
    quest = Quest(folder / "quest", progress=False)
    queries = quest.queries("dev")
    model = load_dual_encoder(finished, device="cpu")
    vectors = model.encode_query([q.query for q in queries], operators=[list(q.operators) for q in queries])
    documents = model.encode_document([document.text for document in quest.corpus])
    rows = (-(vectors @ documents.T)).argsort(axis=1, kind="stable")
    gold = quest.gold(queries)
    value = mrr_at_k(rows, [gold[i] for i in range(len(queries))], 10).mean()
    assert json.loads((finished / "metrics.json").read_text())["dev"]["mrr@10"] == pytest.approx(value, abs=1e-6)


def test_ctrl_c_saves_and_stops_and_resuming_gives_the_same_weights(folder, finished, monkeypatch):
    output = folder / "stopped"
    helpers.signal_at(monkeypatch, 7)
    before = signal.getsignal(signal.SIGINT)  # a shell's background job ignores it
    with pytest.raises(Interrupted, match="stopped after step 7 of 15; go on with --resume"):
        helpers.train_quest(folder, output, negatives="violating")
    assert signal.getsignal(signal.SIGINT) is before
    assert (output / "checkpoints" / "checkpoint-7").is_dir()
    helpers.train_quest(folder, output, negatives="violating", resume=True)
    expected = load_file(finished / "model.safetensors")
    assert all(torch.equal(tensor, expected[name]) for name, tensor in load_file(output / "model.safetensors").items())


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_a_loss_or_gradient_that_is_not_finite_ends_the_run_before_any_checkpoint_holds_it(folder, monkeypatch, what):
    original, calls = retrieval.embedding_backward, []

    def broken(*args, model, **kwargs):
        calls.append(1)
        loss = original(*args, model=model, **kwargs)
        if len(calls) == 10:  # the last step of the second epoch
            if what == "loss":
                return loss * math.nan
            next(parameter.grad for parameter in model.parameters() if parameter.grad is not None).fill_(math.nan)
        return loss

    monkeypatch.setattr(retrieval, "embedding_backward", broken)
    output = folder / f"nan-{what}"
    with pytest.raises(TrainingError, match=r"is nan at step 10; the last good checkpoint is .*checkpoint-5"):
        helpers.train_quest(folder, output)
    assert [path.name for path in (output / "checkpoints").glob("checkpoint-*")] == ["checkpoint-5"]
    assert not (output / "metrics.json").exists()


def test_no_memory_gets_advice(folder, monkeypatch):
    def none_left(*args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    monkeypatch.setattr(retrieval, "embedding_backward", none_left)
    with pytest.raises(TrainingError, match=r"out of memory at step 1; .*--mini_batch_size 2"):
        helpers.train_quest(folder, folder / "memory")


def test_an_unfinished_run_is_not_overwritten_by_accident_nor_resumed_with_other_flags(folder, finished):
    output = folder / "unfinished"
    shutil.copytree(finished, output)
    (output / "metrics.json").unlink()
    with pytest.raises(TrainingError, match=r"unfinished run .*--resume.*--overwrite"):
        helpers.train_quest(folder, output)
    with pytest.raises(TrainingError, match=r"has seed=0, not 42"):
        helpers.train_quest(folder, output, resume=True, seed=42, negatives="violating")


def test_a_batch_that_is_smaller_than_the_group_gets_one_line():
    check_batch(2, 2)
    with pytest.raises(TrainingError, match="a batch of 1 cannot be shared out among 2 processes; give a larger"):
        check_batch(1, 2)


def test_a_folder_that_cannot_be_written_is_named(folder, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BoolBertError, match=r"file/run: a folder is to be written there, and .*file is a file"):
        helpers.train_quest(folder, tmp_path / "file" / "run")


def test_the_baseline_is_a_plain_bert_and_the_rest_is_the_same(folder):
    helpers.train_quest(folder, folder / "baseline", baseline=True, epochs=1)
    assert type(AutoModel.from_pretrained(folder / "baseline")).__name__ == "BertModel"
    metrics = json.loads((folder / "baseline" / "metrics.json").read_text())
    assert "dev_without_labels" not in metrics


@pytest.mark.parametrize("gate", ["learned", "cue"])
def test_a_gate_without_labels_is_kept_in_the_model(folder, gate):
    output = folder / gate
    helpers.train_quest(folder, output, gate=gate, epochs=1, freeze_documents=True, gradient_checkpointing=True)
    assert AutoConfig.from_pretrained(output).gate == gate
