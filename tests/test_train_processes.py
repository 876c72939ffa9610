"""Whole processes: killed anywhere and resumed a run ends with the same weights, and two processes train as one."""

import json
import signal

import pytest
import torch
import training_helpers as helpers
from accelerate import Accelerator
from process_helpers import finish, free_port
from safetensors.torch import load_file
from transformers import AutoModel

import boolbert

boolbert.register()  # from here on AutoModel knows it


def weights(run):
    files = sorted(run.glob("**/model.safetensors"))
    return {
        f"{file.parent.relative_to(run)}/{name}": tensor
        for file in files
        if "checkpoints" not in file.parts
        for name, tensor in load_file(file).items()
    }


def test_two_processes_with_half_the_batch_give_the_loss_and_gradients_of_one(still, start):
    quest = {"negatives": "violating", "gate": "learned", "similarity": "cosine", "penalty": 0.5}
    changes = {
        "quest": {**quest, "mini_batch_size": 4, "branches": 2},
        "pretrain": {"batch_size": 5, "triplet_share": 0.8, "mini_batch_size": 6},
    }
    port = free_port()
    group = [start(helpers.gradients_in_group, still, still, rank, 2, port, changes) for rank in (0, 1)]
    assert finish(*group) == [0, 0]
    ranks = [torch.load(still / f"rank-{rank}.pt") for rank in (0, 1)]
    assert [rank["processes"] for rank in ranks] == [2, 2]

    accelerator = Accelerator()
    alone = {
        "quest": helpers.quest_stage(still, accelerator, **changes["quest"]),
        "pretrain": helpers.pretraining_stage(still, accelerator, **changes["pretrain"]),
    }
    for name, stage in alone.items():
        values, gradients = helpers.gradients_of(stage, accelerator)
        seen = [rank[name]["seen"] for rank in ranks]
        assert seen[0].shape != seen[1].shape or not torch.equal(*seen)
        for rank in ranks:
            assert rank[name]["losses"] == pytest.approx(values, rel=1e-5)
            helpers.assert_same(rank[name]["gradients"], gradients, rtol=1e-4)


def in_group(start, folder, output, ranks=2, **changes):
    """The exit codes of a run on several processes."""
    port = free_port()
    group = [start(helpers.train_in_group, folder, output, rank, ranks, port, **changes) for rank in range(ranks)]
    return finish(*group)


# Of a group, which takes longer than a process alone: two epochs of two steps.
SHORT = {"batch_size": 11, "mini_batch_size": 6, "epochs": 2}


@pytest.fixture(scope="module")
def whole_group(folder, start):
    assert in_group(start, folder, folder / "group", **SHORT) == [0, 0]
    return folder / "group"


def test_only_the_main_process_of_a_group_writes_and_the_model_loads(whole_group):
    lines = [json.loads(line) for line in (whole_group / "log.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines if "loss" in line]
    assert len(steps) == len(set(steps))
    assert AutoModel.from_pretrained(whole_group).config.model_type == "boolbert"
    # As many steps as one process takes: 22 queries in batches of 11, twice.
    assert json.loads((whole_group / "metrics.json").read_text())["steps"] == 4


def test_a_group_that_is_killed_and_resumed_ends_with_the_same_weights(folder, start, whole_group):
    output = folder / "group-killed"
    assert -signal.SIGKILL in in_group(start, folder, output, **SHORT, kill=4)
    assert in_group(start, folder, output, **SHORT, resume=True) == [0, 0]
    expected, found = weights(whole_group), weights(output)
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
