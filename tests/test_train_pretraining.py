"""Stage 1: what learns and what is frozen, the labels, the scores, and the way into stage 2."""

import json
import sys

import pytest
import torch
import training_helpers as helpers
from accelerate import Accelerator
from transformers import BertModel

from boolbert import BoolBertConfig, BoolBertModel
from boolbert.configuration_boolbert import PAPER
from boolbert.core.errors import TrainingError
from boolbert.core.runs import Run
from boolbert.train import pretrain
from boolbert.train.labelled_sentences import label_sentences, parsed
from boolbert.train.optimizer import is_boolean
from boolbert.train.pretrain import PretrainArguments
from boolbert.train.start import find_start


@pytest.fixture(scope="module")
def folder(folder):
    rows = [{"G": g, "P": p, "N": n, "operator": operator} for operator, g, p, n in helpers.TRIPLETS * 6]
    helpers.write_lines(folder / "triplets.jsonl", rows)
    return folder


@pytest.fixture(scope="module")
def pretrained(folder):
    """The script itself, as it is launched."""
    flags = "epochs=30 eval_every=10 schedule=constant save_every=1000 batch_size=8 learning_rate=4e-3 "
    flags += "boolean_learning_rate=2e-2 triplet_share=0.5 tracker=none dev_share=0.2 query_length=32 threads=1"
    files = {"data": folder / "triplets.jsonl", "encoder": folder / "encoder", "output_dir": folder / "pretrained"}
    words = [f"--{name}={value}" for name, value in files.items()] + [f"--{flag}" for flag in flags.split()]
    before, sys.argv = sys.argv, ["pretrain.py", *words]
    try:
        pretrain.main()
    finally:
        sys.argv = before
    return folder / "pretrained"


def test_frozen_weights_do_not_move_by_a_bit_and_the_others_do(folder, pretrained):
    original = BertModel.from_pretrained(folder / "encoder").state_dict()
    fresh = find_start(str(folder / "encoder")).query_encoder(baseline=False, seed=0).state_dict()
    after = BoolBertModel.from_pretrained(pretrained).state_dict()
    assert {name for name in after if is_boolean(name)} == after.keys() - original.keys()
    frozen = [name for name in original if not name.startswith("embeddings.")]
    assert all(torch.equal(original[name], after[name]) for name in frozen)
    learned = {name for name in after if not torch.equal(after[name], fresh[name])}
    parts = ("embeddings.word", "operator_embeddings", "cue_predictor.", "gate.", "scope_predictor.", "bias_predictor.")
    for part in parts:
        assert any(part in name for name in learned), part


def test_the_papers_recipe_has_the_papers_form_and_no_labels_of_scopes(folder):
    """Built from a plain BERT; stage 2 goes on in the same form."""
    words = "--recipe=paper --epochs=1 --batch_size=8 --tracker=none --dev_share=0.2 --query_length=32 --threads=1"
    files = {"data": folder / "triplets.jsonl", "encoder": folder / "encoder", "output_dir": folder / "paper"}
    pretrain.main([*words.split(), *(f"--{name}={value}" for name, value in files.items())])
    config = BoolBertConfig.from_pretrained(folder / "paper")
    assert {name: getattr(config, name) for name in PAPER} == PAPER
    logged = [json.loads(line) for line in (folder / "paper/log.jsonl").read_text().splitlines()]
    steps = [row for row in logged if "cue_loss" in row]
    assert steps
    assert all(row["scope_loss"] == row["layer_scope_loss"] == 0 < row["cue_loss"] for row in steps)
    helpers.train_quest(folder, folder / "paper-2", encoder=str(folder / "paper"), epochs=1, recipe="paper")
    assert BoolBertConfig.from_pretrained(folder / "paper-2").cue_activation == "linear"


def test_it_finds_the_cues_and_operators(pretrained):
    metrics = json.loads((pretrained / "metrics.json").read_text())["dev"]
    assert metrics["cue_f1"] > 0.9
    assert metrics["groups"]["not"]["scope_f1"] > 0.8
    assert metrics["gate_accuracy"] > 0.6
    assert all(metrics["groups"][operator]["gate_f1"] > 0.6 for operator in ("and", "or", "not"))


def test_stage_2_starts_from_it_with_the_plain_bert_for_documents(folder, pretrained):
    start = find_start(str(pretrained))
    plain = find_start(str(folder / "encoder")).document_encoder().state_dict()
    query = start.query_encoder(baseline=False).state_dict()
    assert all(torch.equal(plain[name], tensor) for name, tensor in start.document_encoder().state_dict().items())
    assert not torch.equal(plain["embeddings.word_embeddings.weight"], query["embeddings.word_embeddings.weight"])
    baseline = start.query_encoder(baseline=True)
    assert type(baseline).__name__ == "BertModel"
    assert all(torch.equal(plain[name], tensor) for name, tensor in baseline.state_dict().items())
    helpers.train_quest(folder, folder / "second", encoder=str(pretrained), epochs=1)
    assert Run(folder / "second").is_bool_bert


def test_every_labelled_token_lies_in_a_cue(folder):
    tokenizer = find_start(str(folder / "encoder")).tokenizer()
    named = {"films about war as well as love but not mars": None, "books": "and", "films or books": None}
    sentences = [parsed(text, name) for text, name in named.items()]
    batch = label_sentences(tokenizer, sentences, 32).batch(range(3))
    words = [tokenizer.convert_ids_to_tokens(row) for row in batch["input_ids"].tolist()]
    found = [
        [[word for word, label in zip(words[row], labels, strict=True) if label == 1] for labels in cue_labels]
        for row, cue_labels in enumerate(batch["cue_labels"])
    ]
    assert found[0] == [["as", "well", "as"], [], ["but", "not"]]
    assert found[1] == [[], [], []]
    assert found[2] == [[], ["or"], []]
    assert batch["gate_labels"].tolist() == [[1, 0, 1], [1, 0, 0], [0, 1, 0]]
    reached = [word for word, label in zip(words[0], batch["scope_labels"][0, 2], strict=True) if label == 1]
    assert reached == ["mars"]


def test_the_variants_of_a_triplet_are_drawn_anew_in_each_epoch_and_the_same_for_a_seed(folder):
    train = helpers.pretraining_stage(folder, Accelerator()).train
    written = len(train.sentences) // train.variants
    draws = [train.draw(0, epoch, 4) for epoch in range(40)]
    assert draws == [train.draw(0, epoch, 4) for epoch in range(40)]
    assert len({anchor for anchor, _, _ in draws}) == 2  # as written, and with other cues
    assert {positive % written for _, positive, _ in draws} == set(train.positives[4].tolist())


def test_a_baseline_has_nothing_to_pretrain():
    with pytest.raises(TrainingError, match="plain BERT has nothing to learn"):
        PretrainArguments(baseline=True)
