"""Nothing is lost and nothing silently wrong: what a run refuses, what it notices, and what it never touches."""

import json
import shutil
from itertools import permutations

import pytest
import torch
import training_helpers as helpers
from safetensors.torch import load_file, save_file

from boolbert.core.errors import BoolBertError, Interrupted, TrainingError
from boolbert.train import retrieval_run
from boolbert.train.pretrain import PretrainArguments, read_data
from boolbert.train.start import find_start


@pytest.fixture(scope="module")
def finished(folder):
    helpers.train_quest(folder, folder / "finished", epochs=2)
    return folder / "finished"


@pytest.fixture(scope="module")
def stopped(folder):
    """A run that was stopped after 7 of its 15 steps."""
    with pytest.MonkeyPatch.context() as patch:
        helpers.signal_at(patch, 7)
        with pytest.raises(Interrupted):
            helpers.train_quest(folder, folder / "stopped")
    return folder / "stopped"


@pytest.fixture
def unfinished(stopped, tmp_path):
    return shutil.copytree(stopped, tmp_path / "run")


@pytest.fixture
def encoder(folder, tmp_path):
    """To be damaged."""
    return shutil.copytree(folder / "encoder", tmp_path / "encoder")


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_repeating_a_command_that_is_done_says_so_and_touches_nothing(folder, finished, capsys):
    before = contents(finished)
    for again in ({}, {"resume": True}, {"threads": 2, "log_every": 3}):
        helpers.train_quest(folder, finished, epochs=2, **again)
        assert "is finished, with these flags and this data; --overwrite" in capsys.readouterr().out
    assert contents(finished) == before
    with pytest.raises(TrainingError, match=r"finished run with seed=0, not 1; give another folder, or --overwrite"):
        helpers.train_quest(folder, finished, epochs=2, seed=1)


def test_a_finished_run_is_started_over_when_asked_for(folder, finished, tmp_path):
    output = shutil.copytree(finished, tmp_path / "run")
    helpers.train_quest(folder, output, epochs=1, overwrite=True)
    assert json.loads((output / "metrics.json").read_text())["steps"] == 5
    with pytest.raises(TrainingError, match="--overwrite must be left out: --resume goes on"):
        helpers.quest_arguments(folder, output, overwrite=True, resume=True)


def test_a_run_never_writes_over_its_start_or_over_a_model_of_others(folder, encoder):
    before = contents(encoder)
    with pytest.raises(TrainingError, match="is the encoder that the run starts from"):
        helpers.train_quest(folder, encoder, encoder=str(encoder), overwrite=True)
    with pytest.raises(TrainingError, match="holds a model that no run wrote"):
        helpers.train_quest(folder, encoder)
    assert contents(encoder) == before


def edit_config(encoder, **changes):
    path = encoder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"num_hidden_layers": 4}, r"32 missing \(first encoder\.layer\.2\."),
        ({"num_hidden_layers": 1}, r"16 in layers that the config does not name \(first encoder\.layer\.1\."),
        ({"intermediate_size": 32}, r"6 of another size \(first encoder\.layer\.0\.intermediate"),
    ],
)
def test_weights_that_are_not_those_of_the_config_are_refused(encoder, changes, problem):
    edit_config(encoder, **changes)
    for load in (lambda s: s.query_encoder(baseline=False), lambda s: s.document_encoder()):
        with pytest.raises(TrainingError, match=f"{problem}.*--allow_random"):
            load(find_start(str(encoder)))
        assert load(find_start(str(encoder), allow_random=True))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", '{"model_type": "gpt2"}', "must be a BERT or Bool-BERT, and is gpt2"),
        ("config.json", "{", "not valid JSON"),
        ("model.safetensors", "PK", "is damaged, or no safetensors file"),
        ("model.safetensors", None, "pickled weights are never loaded"),
    ],
)
def test_an_encoder_that_cannot_be_one_gets_one_line(folder, tmp_path, encoder, name, content, message):
    if content is None:
        (encoder / name).rename(encoder / "pytorch_model.bin")
    else:
        (encoder / name).write_text(content)
    with pytest.raises(BoolBertError, match=message) as caught:
        helpers.train_quest(folder, tmp_path / "run", encoder=str(encoder))
    assert "\n" not in str(caught.value)


def test_weights_stored_in_half_precision_are_trained_in_float32(encoder):
    weights = load_file(encoder / "model.safetensors")
    save_file(
        {name: tensor.half() for name, tensor in weights.items()}, encoder / "model.safetensors", {"format": "pt"}
    )
    edit_config(encoder, dtype="float16")
    start = find_start(str(encoder))
    for model in (start.query_encoder(baseline=False), start.query_encoder(baseline=True), start.document_encoder()):
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("name", ["documents.jsonl", "train.jsonl", "dev.jsonl", "atoms.json"])
def test_data_that_was_edited_since_the_stop_is_noticed(folder, unfinished, tmp_path, name):
    data = shutil.copytree(folder / "quest", tmp_path / "quest")
    rename = {"data": str(data)}
    for path in (unfinished / "checkpoints").glob("checkpoint-*/state.json"):  # the same flags, but for the folder
        state = json.loads(path.read_text())
        state["identity"].update(rename)
        path.write_text(json.dumps(state))
    if name == "atoms.json":
        atoms = json.loads((data / name).read_text())
        (data / name).write_text(json.dumps({**atoms, "war": atoms["love"]}))
    else:
        (data / name).write_text((data / name).read_text().replace("films", "books", 1))
    with pytest.raises(TrainingError, match="has other training data; give the same flags and data"):
        helpers.train_quest(folder, unfinished, resume=True, **rename)


def last_checkpoint(run):
    return max((run / "checkpoints").glob("checkpoint-*"), key=lambda path: int(path.name[11:]))


@pytest.mark.parametrize("content", ["", "[]", "{}", "nonsense", '{"step": "seven"}', "[" * 100_000])
def test_a_damaged_state_gets_one_line_and_nothing_is_touched(folder, unfinished, content):
    (last_checkpoint(unfinished) / "state.json").write_text(content)
    before = contents(unfinished)
    with pytest.raises(TrainingError, match=r"the checkpoint is damaged .*remove .*checkpoint-7 to go on") as caught:
        helpers.train_quest(folder, unfinished, resume=True)
    assert "\n" not in str(caught.value)
    assert contents(unfinished) == before


def test_without_its_damaged_checkpoint_a_run_goes_on(folder, unfinished):
    shutil.rmtree(last_checkpoint(unfinished))
    helpers.train_quest(folder, unfinished, resume=True)  # from checkpoint-5, with the best weights that it names
    assert (unfinished / "metrics.json").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("checkpoint-7", "checkpoint-7: the checkpoint is damaged"),
        ("best-5", "best-5.*: the best weights cannot be read .*--overwrite"),
    ],
)
def test_cut_weights_get_one_line(folder, unfinished, name, message):
    path = unfinished / "checkpoints" / name / "model.safetensors"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(TrainingError, match=message):
        helpers.train_quest(folder, unfinished, resume=True)


def test_a_metric_of_mistakes_keeps_the_lowest_value(folder, tmp_path):
    helpers.train_quest(folder, tmp_path / "run", metric="violations", negatives="violating")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["dev"]["violations"] == min(row["violations"] for row in metrics["history"])
    assert len({row["violations"] for row in metrics["history"]}) > 1


@pytest.mark.parametrize("metric", ["ndcg@11", "recall@100"])
def test_a_metric_that_the_data_does_not_have_is_refused_before_the_first_step(folder, tmp_path, metric):
    with pytest.raises(TrainingError, match=rf"--metric must be one of recall@20, .*got '{metric}'"):
        helpers.train_quest(folder, tmp_path / "run", metric=metric)
    assert not (tmp_path / "run").exists()


def history(run):
    return [(row["epoch"], row["step"]) for row in json.loads((run / "metrics.json").read_text())["history"]]


def test_when_a_run_evaluates_and_when_it_ends(folder, tmp_path):
    helpers.train_quest(folder, tmp_path / "steps", eval_steps=4, eval_first=True, max_steps=7)
    assert history(tmp_path / "steps") == [(0, 0), (0.8, 4), (1.4, 7)]
    # A rate of next to nothing: no evaluation is better than the first.
    helpers.train_quest(folder, tmp_path / "tired", learning_rate=1e-30, eval_first=True, patience=2, epochs=9)
    assert history(tmp_path / "tired") == [(0, 0), (1, 5), (2, 10)]
    assert json.loads((tmp_path / "tired" / "metrics.json").read_text())["best_step"] == 0


def test_a_run_that_stopped_early_is_finished_and_resuming_does_not_train_on(folder, tmp_path, monkeypatch):
    flags = {"learning_rate": 1e-30, "eval_first": True, "patience": 1, "epochs": 9}
    with monkeypatch.context() as patch:
        patch.setattr(retrieval_run, "save_run", lambda *a, **b: None)
        helpers.train_quest(folder, tmp_path / "run", **flags)
    helpers.train_quest(folder, tmp_path / "run", resume=True, **flags)
    assert history(tmp_path / "run") == [(0, 0), (1, 5)]


def test_losses_are_shown_where_there_is_no_terminal(folder, tmp_path, capsys):
    helpers.train_quest(folder, tmp_path / "run", epochs=1, log_every=2)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step ")]
    assert [line.partition(":")[0] for line in lines] == ["step 2 of 5", "step 4 of 5", "step 5 of 5"]
    assert all("loss " in line and "rows/s" in line for line in lines)


def test_the_first_rows_of_each_operator_do_not_depend_on_the_order_of_a_set(tmp_path):
    for order in permutations(("and", "or", "not")):
        rows = [{"G": f"{name} {i}", "P": ["p"], "N": ["n"], "operator": name} for name in order for i in range(20)]
        helpers.write_lines(tmp_path / "triplets.jsonl", rows)
        train, _, _ = read_data(PretrainArguments(data=str(tmp_path / "triplets.jsonl"), max_rows=2))
        assert [triplet.operator for triplet in train] == [name for name in order for _ in range(2)]


@pytest.mark.usefixtures("fresh_accelerate")
@pytest.mark.parametrize(
    ("environment", "flags", "message"),
    [
        ({"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "4"}, {}, "gradient accumulation over 4 steps: leave that out"),
        ({"ACCELERATE_MIXED_PRECISION": "fp16"}, {}, "fp16 needs a GPU"),
        ({}, {"mixed_precision": "fp16"}, "fp16 needs a GPU"),
        ({"MASTER_ADDR": "127.0.0.1"}, {}, "starts one process, whatever --num_processes says; type .*torchrun"),
        *(
            ({f"ACCELERATE_USE_{engine}": "true"}, {}, f"{engine}: only DistributedDataParallel is supported")
            for engine in ("FSDP", "DEEPSPEED", "MEGATRON_LM")
        ),
    ],
)
def test_settings_of_the_launcher_that_cannot_be_obeyed(folder, tmp_path, monkeypatch, environment, flags, message):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TrainingError, match=message) as caught:
        helpers.train_quest(folder, tmp_path / "run", **flags)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("fresh_accelerate")
def test_the_precision_that_the_launcher_asked_for_is_part_of_the_run(folder, unfinished, tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    with pytest.raises(TrainingError, match="has precision='no', not 'bf16'"):
        helpers.train_quest(folder, unfinished, resume=True)
    helpers.train_quest(folder, tmp_path / "bf16", max_steps=1)
    assert json.loads((tmp_path / "bf16" / "args.json").read_text())["machine"]["precision"] == "bf16"


@pytest.mark.usefixtures("fresh_accelerate")
@pytest.mark.parametrize(
    ("environment", "flags"), [({"ACCELERATE_DYNAMO_BACKEND": "AOT_EAGER"}, {}), ({}, {"compile": True})]
)
def test_what_is_trained_is_compiled_and_keeps_its_names(folder, tmp_path, monkeypatch, environment, flags):
    compiled = []
    original = torch.nn.Module.compile

    def compile_eagerly(self, *args, **options):
        compiled.append((type(self).__name__, options["backend"]))
        original(self, *args, **{**options, "backend": "eager"})  # without waiting for a compiler

    monkeypatch.setattr(torch.nn.Module, "compile", compile_eagerly)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with torch.compiler.set_stance("eager_on_recompile"):  # nor for a second trace, of texts of another length
        helpers.train_quest(folder, tmp_path / "run", max_steps=2, **flags)
    parts = ["BertLayer"] * 2 + ["BoolBertLayer"] * 2 + ["CuePredictor", "OperatorGate", "QueryComposer", "ScopeReader"]
    assert sorted(compiled) == [(part, "inductor" if flags else "aot_eager") for part in parts]
    names = load_file(tmp_path / "run" / "model.safetensors").keys()
    assert not any("_orig_mod" in name for name in names)
    assert "encoder.layer.0.attention.self.query.weight" in names
