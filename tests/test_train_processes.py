"""Whole processes: killed anywhere and resumed a run ends with the same weights, and two processes train as one."""

import json
import multiprocessing
import shutil
import signal
import socket

import pytest
import training_helpers as helpers

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    helpers.write_encoder(folder / "encoder")
    helpers.write_quest(folder / "quest")
    return folder


@pytest.fixture(scope="module")
def start():
    """A function that runs one of the helpers in a fresh process; the imports are paid for once."""
    context = multiprocessing.get_context("forkserver")
    preload = ["training_helpers", "boolbert.train.retrieval_run", "boolbert.train.pretrain", "boolbert.train.quest"]
    context.set_forkserver_preload(preload)

    def run(function, *args, **kwargs):
        process = context.Process(target=function, args=args, kwargs=kwargs)
        process.start()
        return process

    return run


def finish(*processes):
    for process in processes:
        process.join(120)
        assert not process.is_alive()
    return [process.exitcode for process in processes]


def weights(run):
    from safetensors.torch import load_file

    files = sorted(run.glob("**/model.safetensors"))
    return {
        f"{file.parent.relative_to(run)}/{name}": tensor
        for file in files
        if "checkpoints" not in file.parts
        for name, tensor in load_file(file).items()
    }


@pytest.fixture(scope="module")
def undisturbed(folder, start):
    assert finish(start(helpers.train_quest, folder, folder / "whole")) == [0]
    return folder / "whole"


def test_a_run_that_is_killed_anywhere_and_resumed_ends_with_the_same_weights(folder, start, undisturbed):
    points = [
        ("step", 3),  # before there is any checkpoint
        ("step", 8),
        ("evaluation", 2),
        ("writing", 3),  # the weights of the second checkpoint
        ("writing", 4),  # its optimizer
        ("renaming", 1),  # the first best weights
        ("renaming", 4),
        ("pruning", 3),  # the last checkpoint has its name, the old ones are still there
    ]
    outputs = [folder / f"killed-{point}-{number}" for point, number in points]
    for begin in range(0, len(points), 2):  # two at a time
        pair = list(zip(points, outputs, strict=True))[begin : begin + 2]
        killed = finish(*(start(helpers.train_quest, folder, output, kill=point) for point, output in pair))
        assert killed == [-signal.SIGKILL] * len(pair)
        resumed = finish(*(start(helpers.train_quest, folder, output, resume=True) for _, output in pair))
        assert resumed == [0] * len(pair)
    expected = weights(undisturbed)
    assert any(name.startswith("document_encoder/") for name in expected)
    for output in outputs:
        found = weights(output)
        assert found.keys() == expected.keys()
        different = [name for name in expected if not torch.equal(found[name], expected[name])]
        assert not different, f"{output.name}: {different[:3]}"
        assert not list((output / "checkpoints").glob(".*"))
        same = [json.loads((run / "metrics.json").read_text())["history"] for run in (output, undisturbed)]
        assert same[0] == same[1]


def test_the_log_of_a_resumed_run_has_every_line_once(folder, start, undisturbed):
    def lines(run):
        rows = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
        return [{key: value for key, value in row.items() if key not in ("seconds", "rows_per_second")} for row in rows]

    output = folder / "log"
    assert finish(start(helpers.train_quest, folder, output, kill=("evaluation", 3))) == [-signal.SIGKILL]
    assert finish(start(helpers.train_quest, folder, output, resume=True)) == [0]
    assert lines(output) == lines(undisturbed)


def test_two_processes_with_half_the_batch_give_the_loss_and_gradients_of_one(folder, start):
    from accelerate import Accelerator

    shutil.rmtree(folder / "still", ignore_errors=True)
    helpers.write_encoder(folder / "still" / "encoder", dropout=0.0)
    shutil.copytree(folder / "quest", folder / "still" / "quest")
    changes = {
        "quest": {"negatives": "violating", "mini_batch_size": 4, "gate": "learned"},
        "pretrain": {"batch_size": 5, "triplet_share": 0.8, "mini_batch_size": 6},
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    group = [
        start(helpers.gradients_in_group, folder / "still", folder / "still", rank, 2, port, changes) for rank in (0, 1)
    ]
    assert finish(*group) == [0, 0]
    ranks = [torch.load(folder / "still" / f"rank-{rank}.pt") for rank in (0, 1)]
    assert [rank["processes"] for rank in ranks] == [2, 2]

    accelerator = Accelerator()
    alone = {
        "quest": helpers.quest_stage(folder / "still", accelerator, **changes["quest"]),
        "pretrain": helpers.pretraining_stage(folder / "still", accelerator, **changes["pretrain"]),
    }
    for name, stage in alone.items():
        losses, gradients = helpers.gradients_of(stage, accelerator)
        seen = [rank[name]["seen"] for rank in ranks]
        assert seen[0].shape != seen[1].shape or not torch.equal(*seen)
        for rank in ranks:
            assert rank[name]["losses"] == pytest.approx(losses, rel=1e-5)
            assert rank[name]["gradients"].keys() == gradients.keys()
            for parameter, gradient in gradients.items():
                torch.testing.assert_close(rank[name]["gradients"][parameter], gradient, rtol=1e-4, atol=1e-6)


def test_only_the_main_process_of_a_group_writes_and_the_model_loads(folder, start):
    from transformers import AutoModel

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    output = folder / "group"
    assert finish(*(start(helpers.train_in_group, folder, output, rank, 2, port, batch_size=6) for rank in (0, 1))) == [
        0,
        0,
    ]
    lines = [json.loads(line) for line in (output / "log.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines if "loss" in line]
    assert len(steps) == len(set(steps))
    assert AutoModel.from_pretrained(output).config.model_type == "boolbert"
