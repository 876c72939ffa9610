"""Steps that are recorded: which are, what they read and give, and batches that come in few shapes."""

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import training_helpers as helpers
from accelerate.utils import DistributedType, DynamoBackend
from safetensors.torch import load_file
from torch.testing import assert_close

from boolbert.core.errors import Interrupted
from boolbert.retrieval import recorded as graphs
from boolbert.retrieval.recorded import WARM, RecordedStep
from boolbert.retrieval.tokens import Tokens
from boolbert.train import retrieval
from boolbert.train.arguments import RunArguments
from boolbert.train.loop import can_record
from boolbert.train.optimizer import build_optimizer, place_learning_rates, set_learning_rate
from boolbert.train.shapes import LENGTH_MULTIPLE, PART_COST_RECORDED, FixedShapes, rounded

CPU = torch.device("cpu")


@pytest.fixture
def recordings(monkeypatch):
    """A stand-in for CUDA graphs on a CPU: it repeats what was recorded, on the same tensors, into the same tensors."""
    made = []

    def record(compute, device, pool):
        results = {"loss": torch.empty(())}

        def replay():
            results["loss"].copy_(compute()["loss"])

        made.append(replay)
        return results, replay

    monkeypatch.setattr(graphs, "record", record)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "pool")
    return made


def batch_of(*shape, fill=1.0):
    return {"parts": [{"ids": torch.full(shape, fill)}], "sizes": [shape[0]], "more": None}


def total(batch):
    return {"loss": batch["parts"][0]["ids"].sum()}


def test_a_shape_is_recorded_when_it_comes_again_and_its_results_are_its_own(recordings):
    step = RecordedStep(total, CPU)
    results = [step(batch_of(2, 3, fill=fill))["loss"] for fill in range(1, WARM + 4)]
    assert len(recordings) == 1
    assert [float(value) for value in results] == [6.0 * fill for fill in range(1, WARM + 4)]


def test_what_cannot_be_recorded_is_computed_without_and_said_once(monkeypatch):
    def refuse(compute, device, pool):
        try:
            raise RuntimeError("operation not permitted when stream is capturing\nand more")
        finally:
            raise RuntimeError("a previous error during capture")

    monkeypatch.setattr(graphs, "record", refuse)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "pool")
    forgotten = []
    step = RecordedStep(total, CPU, forget=lambda: forgotten.append(1))
    for _ in range(WARM):
        step(batch_of(2, 2))
    with pytest.warns(UserWarning, match="are not recorded as CUDA graphs .operation not permitted"):
        assert float(step(batch_of(2, 2))["loss"]) == 4
    assert float(step(batch_of(2, 2, fill=2.0))["loss"]) == 8
    assert not step.on
    assert forgotten == [1]


def test_work_that_does_not_fit_beside_the_recordings_takes_their_place(recordings):
    step, tries = RecordedStep(total, CPU), []
    for _ in range(WARM + 1):
        step(batch_of(2, 2))
    assert len(step.recorded) == 1

    def work():
        tries.append(len(step.recorded))
        if step.recorded:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return "done"

    with pytest.warns(UserWarning, match="are not recorded as CUDA graphs .CUDA out of memory.:"):
        assert step.with_room(work) == "done"
    assert tries == [1, 0]
    assert float(step(batch_of(2, 2))["loss"]) == 4  # without recordings
    with pytest.raises(torch.OutOfMemoryError):
        step.with_room(lambda: (_ for _ in ()).throw(torch.OutOfMemoryError("too little, whatever gives way")))


@pytest.mark.parametrize(
    ("changes", "settings", "expected"),
    [
        ({}, {}, True),
        ({"compile": True}, {}, True),
        ({}, {"backend": DynamoBackend.INDUCTOR}, True),  # the launcher asks for it
        ({}, {"backend": DynamoBackend.INDUCTOR, "mode": "reduce-overhead"}, False),  # which records by itself
        ({}, {"backend": DynamoBackend.CUDAGRAPHS}, False),
        ({}, {"device": CPU}, False),
        ({}, {"distributed_type": DistributedType.MULTI_GPU}, False),
        ({}, {"scaler": object()}, False),  # fp16 looks at its gradients
        ({"graphs": False}, {}, False),
        ({"mini_batch_size": 4}, {}, False),
        ({"gradient_checkpointing": True}, {}, False),
    ],
)
def test_when_steps_are_recorded(changes, settings, expected):
    plugin = SimpleNamespace(**{"backend": DynamoBackend.NO, "mode": "default", **settings})
    usual = {"scaler": None, "device": torch.device("cuda"), "distributed_type": DistributedType.NO}
    accelerator = SimpleNamespace(state=SimpleNamespace(dynamo_plugin=plugin), **{**usual, **settings})
    assert can_record(RunArguments(**changes), accelerator) is expected


@pytest.mark.parametrize("before", [None, CPU])
@pytest.mark.parametrize("after", [None, CPU])
def test_learning_rates_after_a_checkpoint_are_where_the_run_needs_them(before, after):
    """A run that was recorded goes on without, and the other way round."""

    def optimizer_of(weight, device):
        model = torch.nn.Linear(2, 1, bias=False)
        model.weight.data.fill_(weight)
        optimizer = build_optimizer(model, learning_rate=0.5, weight_decay=0.0)
        place_learning_rates(optimizer, device)
        return model, optimizer

    def step(model, optimizer, share):
        set_learning_rate(optimizer, share)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    (model, optimizer), (other, resumed) = optimizer_of(1.0, before), optimizer_of(0.0, after)
    step(model, optimizer, 0.5)
    other.load_state_dict(model.state_dict())
    resumed.load_state_dict(optimizer.state_dict())
    place_learning_rates(resumed, after)
    (group,) = resumed.param_groups
    assert isinstance(group["lr"], float if after is None else torch.Tensor)
    assert group["capturable"] is (after is not None)
    if after is None:  # torch has no such step on a CPU
        step(other, resumed, 0.25)
        assert other.weight.flatten().tolist() == pytest.approx([0.625, 0.625])  # Adam: 1 - .5 .5 - .5 .25


def some_tokens(count=60, longest=64):
    lengths = np.random.default_rng(0).integers(3, longest + 1, count)
    return Tokens(np.arange(lengths.sum(), dtype=np.int32), np.concatenate([[0], np.cumsum(lengths)]))


def test_fixed_shapes_hold_every_wanted_row_where_the_index_says():
    """Those of more rows, or longer ones, than were looked at have shapes of their own."""
    tokens, random = some_tokens(), np.random.default_rng(1)
    batches = [random.integers(0, 60, 24) for _ in range(8)]
    short = np.argsort(tokens.lengths)[:6]
    longest = np.array([int(np.argmax(tokens.lengths)), *short[:3]])
    for looked_at, asked, count in ((batches, batches, 1), ([short], [short, longest, np.arange(20)], 3)):
        shapes, seen = FixedShapes.choose(looked_at, tokens, limit=64), set()
        for wanted in asked:
            rows, lengths, places = shapes.split(wanted, tokens)
            seen.add(tuple(zip(map(len, rows), lengths, strict=True)))
            assert (np.concatenate(rows)[places] == wanted).all()
            for part, length in zip(rows, lengths, strict=True):
                assert tokens.lengths[part].max() <= length <= 64
                assert length % LENGTH_MULTIPLE == 0
        assert len(seen) == count


def test_parts_cost_the_least_of_all_ways_to_cut():
    for seed in range(20):
        random = np.random.default_rng(seed)
        lengths = np.sort(random.choice([16, 48, 200, 256], 5) * np.array([1, 1, 1, 1, 2]))
        counts = random.integers(1, 60, 5)
        all_lengths = np.repeat(lengths, counts)
        tokens = Tokens(np.zeros(all_lengths.sum(), np.int32), np.concatenate([[0], np.cumsum(all_lengths)]))
        shapes = FixedShapes.choose([np.arange(len(all_lengths))], tokens, limit=512)
        costs = []
        for ends in (subset for n in range(5) for subset in itertools.combinations(np.cumsum(counts)[:-1], n)):
            parts = np.split(all_lengths, ends)
            costs.append(sum(len(p) * rounded(int(p[-1]), 16, 512) + PART_COST_RECORDED for p in parts))
        cost = sum(n * length + PART_COST_RECORDED for n, length in zip(shapes.sizes, shapes.lengths, strict=True))
        assert cost == min(costs)


@pytest.mark.parametrize("changes", [{}, {"freeze_documents": True}, {"freeze_reading": False, "reading_weight": 1.0}])
def test_a_stage_of_fixed_shapes_has_the_gradients_of_the_same_batch(still, accelerator, monkeypatch, changes):
    losses, gradients = helpers.gradients_of(helpers.quest_stage(still, accelerator, **changes), accelerator)
    monkeypatch.setattr(retrieval, "can_record", lambda args, accelerator: True)
    stage = helpers.quest_stage(still, accelerator, **changes)
    shapes = {graphs.shape_of(stage.load(epoch, step)) for epoch in range(2) for step in range(stage.steps_per_epoch)}
    assert len(shapes) == 1
    fixed_losses, fixed_gradients = helpers.gradients_of(stage, accelerator)
    assert fixed_losses == pytest.approx(losses, rel=1e-5)
    helpers.assert_same(fixed_gradients, gradients)


def test_stage_1_comes_in_few_lengths(still, accelerator):
    losses, gradients = helpers.gradients_of(helpers.pretraining_stage(still, accelerator), accelerator, step=0)
    stage = helpers.pretraining_stage(still, accelerator)
    stage.is_recorded = True
    lengths = {
        part["triplets"]["input_ids"].shape[1]
        for epoch, step in itertools.product(range(3), range(stage.steps_per_epoch))
        for part in stage.load(epoch, step)["parts"]
    }
    assert all(length % LENGTH_MULTIPLE == 0 for length in lengths)
    fixed_losses, fixed_gradients = helpers.gradients_of(stage, accelerator, step=0)
    assert fixed_losses == pytest.approx(losses, rel=1e-5)
    helpers.assert_same(fixed_gradients, gradients)


on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture
def gpu(monkeypatch, fresh_accelerate):
    """Let Accelerate see it: the other tests of training are for a CPU."""
    monkeypatch.setenv("ACCELERATE_USE_CPU", "false")


def losses_of(folder, name, **changes):
    """The losses and gradient norms of a short run with noise, its evaluations, and the weights that it ends with."""
    helpers.train_quest(folder, folder / name, log_every=1, epochs=6, **changes)
    rows = [json.loads(line) for line in (folder / name / "log.jsonl").read_text().splitlines()]
    losses = [(row["loss"], row["gradient_norm"]) for row in rows if "loss" in row]
    scores = [row["dev/mrr@10"] for row in rows if "dev/mrr@10" in row]
    return losses, scores, load_file(folder / name / "model.safetensors")


@on_a_gpu
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"baseline": True},
        {"freeze_documents": True},
        {"freeze_reading": False, "reading_weight": 1.0, "gate": "cue"},
        {"mixed_precision": "bf16"},
        {"mixed_precision": "bf16", "compile": True},
    ],
)
def test_a_recorded_run_is_the_run(tmp_path, monkeypatch, gpu, changes):
    """With the same noise: losses, gradients and learning rates step by step, and the weights at the end."""
    folder = helpers.make_folder(tmp_path, dropout=0.1)
    recorded, replayed = graphs.record, []

    def count(compute, device, pool):
        results, replay = recorded(compute, device, pool)
        return results, lambda: (replayed.append(1), replay())

    monkeypatch.setattr(graphs, "record", count)
    found, scores, weights = losses_of(folder, "recorded", **changes)
    assert len(replayed) >= len(found) - 2 * WARM
    monkeypatch.setattr(graphs, "WARM", 10**6)
    expected, expected_scores, expected_weights = losses_of(folder, "launched", **changes)
    half = changes.get("mixed_precision") == "bf16"
    # An evaluation sees the weights of its step: no replay leaves a trace by which what was made of them is known.
    assert len(set(expected_scores)) > 1
    assert scores == pytest.approx(expected_scores, abs=0.1 if half else 0.02)
    assert_close(torch.tensor(found), torch.tensor(expected), rtol=5e-2 if half else 1e-3, atol=1e-3)
    helpers.assert_same(weights, expected_weights, rtol=1e-2, atol=2e-3 if half else 2e-4)


@on_a_gpu
def test_a_recorded_run_goes_on_where_it_was_stopped(tmp_path, monkeypatch, gpu):
    folder = helpers.make_folder(tmp_path, dropout=0.1)
    expected, _, weights = losses_of(folder, "whole")
    helpers.signal_at(monkeypatch, 17)
    with pytest.raises(Interrupted):
        losses_of(folder, "stopped")
    found, _, resumed = losses_of(folder, "stopped", resume=True)
    assert_close(torch.tensor(found[-5:]), torch.tensor(expected[-5:]), rtol=1e-3, atol=1e-3)
    helpers.assert_same(resumed, weights, rtol=1e-2, atol=2e-4)


@on_a_gpu
def test_a_step_that_waits_for_the_gpu_is_not_recorded_and_the_run_goes_on(tmp_path, monkeypatch, gpu):
    folder, backward = helpers.make_folder(tmp_path, dropout=0.1), retrieval.embedding_backward

    def looking(*args, **kwargs):
        loss = backward(*args, **kwargs)
        assert float(loss) > 0
        return loss

    monkeypatch.setattr(retrieval, "embedding_backward", looking)
    with pytest.warns(UserWarning, match="are not recorded"):
        found, _, weights = losses_of(folder, "looking")
    monkeypatch.setattr(retrieval, "embedding_backward", backward)
    expected, _, expected_weights = losses_of(folder, "recorded")
    assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-3, atol=1e-3)
    helpers.assert_same(weights, expected_weights, rtol=1e-2, atol=2e-4)
