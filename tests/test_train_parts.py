"""The parts of training one by one: flags, tokens, batches ahead, schedule, negatives, trackers."""

import json
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from accelerate.commands.config.config_args import load_config_from_file

from boolbert.core.errors import TrainingError
from boolbert.data import DataError
from boolbert.data.tasks import boolquestions_splits, quest_splits
from boolbert.retrieval import tokens
from boolbert.retrieval.prefetch import prefetch
from boolbert.retrieval.tokens import TextReader
from boolbert.train import logs
from boolbert.train.arguments import RECIPES, parse_arguments
from boolbert.train.optimizer import STRENGTH, STRENGTH_RATE, build_optimizer, is_boolean
from boolbert.train.pretrain import PretrainArguments
from boolbert.train.retrieval import RetrievalArguments, with_known_gate
from boolbert.train.retrieval_run import move_towards
from boolbert.train.start import find_start


def parse(*words, embedded=None):
    return parse_arguments(RetrievalArguments, "", list(words), embedded=embedded)


def test_the_paper_s_hyperparameters_are_the_defaults():
    args = parse("--data", "somewhere")
    assert (args.batch_size, args.epochs, args.learning_rate, args.weight_decay) == (32, 40, 5e-5, 0.01)
    assert (args.num_negatives, args.query_length, args.document_length, args.negatives) == (5, 64, 256, "random")
    assert (PretrainArguments().epochs, PretrainArguments().learning_rate) == (1, 1e-5)


def test_a_flag_wins_over_the_file_and_the_file_over_the_embedded_recipe(tmp_path):
    (tmp_path / "mine.yaml").write_text("learning_rate: 3e-5\nepochs: 7\nbaseline: true\n")
    args = parse(str(tmp_path / "mine.yaml"), "--epochs", "9", embedded="quest_countries.yaml")
    assert (args.learning_rate, args.epochs, args.baseline, args.freeze_documents) == (3e-5, 9, True, True)
    (tmp_path / "mine.json").write_text(json.dumps({"data": "here", "gate": "cue"}))
    args = parse(str(tmp_path / "mine.json"), embedded="quest_countries.yaml")
    assert (args.data, args.gate, args.epochs, args.freeze_documents) == ("here", "cue", 40, False)


@pytest.mark.parametrize("name", ["quest_base", "quest_large", "quest_countries"])
def test_every_recipe_can_be_read(name):
    assert parse(str(RECIPES / f"{name}.yaml")).batch_size == 32


def test_the_recipe_for_made_queries_keeps_most_of_the_start():
    args = parse(str(RECIPES / "made_queries.yaml"))
    assert (args.gate, args.negatives, args.original_weight) == ("cue", "violating", 0.7)
    with pytest.raises(TrainingError, match="--original_weight must be a share from 0 to below 1"):
        parse("--original_weight", "1.5")


def test_a_trained_model_is_moved_towards_its_start():
    linear = torch.nn.Linear(3, 2)
    before = {name: value.clone() for name, value in linear.state_dict().items()}
    for value in linear.state_dict().values():
        value += 1
    move_towards(linear, before, 0.7)
    for name, value in linear.state_dict().items():
        torch.testing.assert_close(value, before[name] + 0.3)


def test_the_launcher_reads_every_config():
    names = sorted(path.name for path in (RECIPES.parent / "configs").glob("*.yaml"))
    assert names == ["one_gpu.yaml", "several_gpus.yaml"]
    found = [load_config_from_file(str(RECIPES.parent / "configs" / name)) for name in names]
    assert [config.mixed_precision for config in found] == ["bf16", "bf16"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch: 3", r"mine.yaml: unknown flag 'epoch'; there are .*epochs"),
        ("- 3", "must hold flags and their values, got list"),
        ("gate: sometimes", "--gate must be one of given, learned, cue, got 'sometimes'"),
        ("epochs: [1, 2]", "field 'epochs' must be one value"),
        ("epochs: 0", "--epochs must be at least 1, got 0"),
        ("a: b: c", "broken YAML"),
        ("[" * 700, "broken YAML"),
    ],
)
def test_a_bad_file_of_flags_gets_one_clear_line(tmp_path, text, message):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(TrainingError, match=message) as caught:
        parse(str(tmp_path / "mine.yaml"))
    assert "\n" not in str(caught.value)


def test_an_unknown_flag_is_named():
    with pytest.raises(TrainingError, match="unknown argument '--learning_rat'"):
        parse("--data", "x", "--learning_rat", "1")


def test_tokens_are_padded_to_the_longest_row_and_cut_at_the_limit(folder):
    tokenizer = find_start(str(folder / "encoder")).tokenizer()
    texts = ["films", "films about war and love", "books " * 50]
    tokens = TextReader(tokenizer, 12)(texts)
    assert tokens.lengths.tolist() == [3, 7, 12]
    expected = tokenizer(texts[:2], padding=True, return_tensors="pt")
    batch = tokens.batch([0, 1])
    assert torch.equal(batch["input_ids"], expected["input_ids"])
    assert torch.equal(batch["attention_mask"], expected["attention_mask"])


def test_many_texts_are_tokenised_once_and_a_damaged_cache_is_made_anew(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path))
    monkeypatch.setattr(tokens, "WORTH_CACHING", 2)
    tokenizer = find_start(str(folder / "encoder")).tokenizer()
    calls = []
    original = TextReader._tokenize
    monkeypatch.setattr(TextReader, "_tokenize", lambda *a: (calls.append(1), original(*a))[1])
    texts = ["films about war", "books", "love or mars"]
    first, second = (TextReader(tokenizer, 16)(texts) for _ in range(2))
    assert len(calls) == 1
    assert np.array_equal(first.ids, second.ids)
    assert np.array_equal(first.offsets, second.offsets)
    TextReader(tokenizer, 16)(["films about war", "books", "love or rome"])
    TextReader(tokenizer, 4)(texts)
    assert len(calls) == 3
    for path in (tmp_path / "tokens").glob("*.npz"):
        path.write_bytes(path.read_bytes()[:40])
    assert np.array_equal(TextReader(tokenizer, 16)(texts).ids, first.ids)
    assert not list((tmp_path / "tokens").glob(".*"))


def test_batches_come_ahead_of_time_and_the_thread_ends_with_them():
    made = []
    batches = prefetch(lambda step: made.append(step) or step, range(100), depth=3)
    assert next(batches) == 0
    deadline = time.monotonic() + 5
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert 4 <= len(made) <= 6
    batches.close()
    assert not any(thread.name.startswith("batches") for thread in threading.enumerate())

    def broken(step):
        raise ValueError("bad row")

    with pytest.raises(ValueError, match="bad row"):
        next(prefetch(broken, range(3)))


def test_groups_of_the_optimizer(lively):
    model = lively()
    optimizer = build_optimizer(model, learning_rate=1e-4, boolean_learning_rate=1e-3, weight_decay=0.1)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    seen = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            seen.append(names[id(parameter)])
            expected = 1e-3 if is_boolean(seen[-1]) else 1e-4
            assert group["lr"] == (STRENGTH_RATE if seen[-1] == STRENGTH else expected)
            is_bias = seen[-1].endswith("bias")  # also those of each operator
            assert group["weight_decay"] == (0.1 if parameter.ndim > 1 and not is_bias else 0.0)
    assert sorted(seen) == sorted(names.values())
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    with pytest.raises(ValueError, match="nothing to learn"):
        build_optimizer(model, learning_rate=1)


def test_without_a_dev_split_a_share_of_the_training_queries_is_held_out(folder, tmp_path):
    for name in ("documents.jsonl", "train.jsonl", "atoms.json"):
        (tmp_path / name).write_text((folder / "quest" / name).read_text())
    data, again = (quest_splits(str(tmp_path), dev_share=0.25) for _ in range(2))
    queries = [json.loads(line)["query"] for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    assert sorted(data.train.texts + data.dev.texts) == sorted(queries)
    assert len(data.dev) == round(len(queries) / 4)
    assert data.dev.texts == again.dev.texts
    assert "held out" in data.note
    for share in (0.0, 1.0, 0.99):
        with pytest.raises(DataError, match="must leave rows on both sides"):
            quest_splits(str(tmp_path), dev_share=share)


def test_a_run_without_labels_of_every_query_finds_them_by_cues_and_says_so(folder):
    data = quest_splits(str(folder / "quest"))
    args, said = RetrievalArguments(), []
    assert with_known_gate(args, data, said.append).gate == "given"
    data.train.questions[3] = replace(data.train.questions[3], operators=None)
    assert with_known_gate(args, data, said.append).gate == "cue"
    assert said == ["note: 1 queries have no metadata.template; the model finds the operators itself (--gate cue)"]
    assert with_known_gate(replace(args, baseline=True), data, said.append).gate == "given"


def test_boolquestions_have_listed_negatives_and_operators():
    data = boolquestions_splits(None)
    assert set(data.train.groups["operator"]) == {"and", "or", "not"}
    assert len(data.train.violators) == len(data.train.questions)
    assert all(len(question.operators) == 1 for question in data.dev.questions)


def test_a_tracker_that_is_not_there_is_no_error_and_an_unknown_one_is(monkeypatch):
    monkeypatch.setattr(logs, "get_available_trackers", list)
    assert logs.available_tracker("tensorboard") is None
    assert logs.available_tracker("none") is None
    with pytest.raises(TrainingError, match="--tracker must be none or one of"):
        logs.available_tracker("notebook")
