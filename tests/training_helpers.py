"""A tiny encoder, tiny data and tiny runs for the tests of training; child processes import this module too."""

import itertools
import json
import os
import random
import signal
from pathlib import Path

import pytest

os.environ["ACCELERATE_USE_CPU"] = "true"
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

KINDS = ("films", "books")
SETS = ("war", "love", "rome", "mars")
EXTRA = ("about", "in", "set", "that", "are", "also", "not", "but", "and", "or", "as", "well", "both", "a", "the")
TEMPLATES = ("_", "_ or _", "_ that are also _", "_ that are not _")


def write_encoder(folder, dropout=0.1):
    """A BERT of 2 layers with random weights and a tokenizer of a few words."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    words = [*KINDS, *SETS, *EXTRA, *(f"word{i}" for i in range(30))]
    vocab = {token: row for row, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])}
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocab),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=64,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        initializer_range=0.2,
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizer(vocab=vocab).save_pretrained(folder)
    return folder


def write_quest(folder, queries=22, documents=24):
    """Documents in some of four sets each, and queries over these sets, with atoms; train and dev."""
    rng = random.Random(0)
    members = {name: set() for name in SETS}
    rows = []
    for row in range(documents):
        chosen = [name for name in SETS if rng.random() < 0.5]
        for name in chosen:
            members[name].add(row)
        filler = " ".join(f"word{rng.randrange(30)}" for _ in range(rng.randrange(2, 9)))
        rows.append({"title": f"Document {row}", "text": f"films about {' and '.join(chosen) or 'the'} {filler}"})
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "documents.jsonl", rows)
    for split, count in (("train", queries), ("dev", 8)):
        write_lines(folder / f"{split}.jsonl", [_query(rng, members, documents) for _ in range(count)])
    (folder / "atoms.json").write_text(json.dumps({name: sorted(rows) for name, rows in members.items()}))
    return folder


def make_folder(folder, dropout=0.1):
    """What a run of stage 2 needs, an encoder and its data."""
    write_encoder(folder / "encoder", dropout=dropout)
    write_quest(folder / "quest")
    return folder


def _query(rng, members, documents):
    while True:
        template = rng.choice(TEMPLATES)
        a, b = rng.sample(SETS, 2)
        sets = {
            "_": (f"films about {a}", members[a], [a]),
            "_ or _": (f"films about {a} or {b}", members[a] | members[b], [a, b]),
            "_ that are also _": (f"films about {a} and also {b}", members[a] & members[b], [a, b]),
            "_ that are not _": (f"films about {a} that are not about {b}", members[a] - members[b], [a, b]),
        }
        text, answer, atoms = sets[template]
        if 0 < len(answer) < documents - 6:
            docs = [f"Document {row}" for row in sorted(answer)]
            return {"query": text, "docs": docs, "metadata": {"template": template, "atoms": atoms}}


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def quest_arguments(folder, output, **changes):
    """The flags of a run of 3 epochs of 5 steps."""
    from boolbert.train.retrieval import RetrievalArguments

    flags = {"epochs": 3, "batch_size": 5, "learning_rate": 1e-2, "tracker": "none", "num_negatives": 3, "threads": 1}
    files = {"data": str(folder / "quest"), "encoder": str(folder / "encoder"), "output_dir": str(output)}
    return RetrievalArguments(**{**files, "document_length": 32, "query_length": 32, **flags, **changes})


def train_quest(folder, output, kill=None, **changes):
    """A whole run of stage 2; the process kills itself in the step `kill`."""
    from boolbert.data.tasks import quest_splits
    from boolbert.retrieval.metrics import quest_metrics
    from boolbert.train.retrieval_run import run_retrieval

    args = quest_arguments(Path(folder), output, **changes)
    if kill is not None:
        signal_at(pytest.MonkeyPatch(), kill, signal.SIGKILL)
    run_retrieval("quest", args, lambda: quest_splits(args.data), quest_metrics)


def signal_at(patch, step, number=signal.SIGINT):
    """A signal to this process in the step of this number."""
    from boolbert.train.loop import Trainer

    original, steps = Trainer._step, itertools.count(1)

    def interrupted(trainer, batches):
        if next(steps) == step:
            os.kill(os.getpid(), number)
        original(trainer, batches)

    patch.setattr(Trainer, "_step", interrupted)


def join_group(rank, size, port):
    """Make this process one of a gloo group, as the launcher does."""
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )


def still(model):
    """Switch Gumbel noise off: the scopes' random numbers depend on how a batch is cut."""
    for name, module in model.named_modules():
        if name.endswith("scope_predictor"):
            module.eval()
    return model


def quest_stage(folder, accelerator, **changes):
    from boolbert.data.tasks import quest_splits
    from boolbert.retrieval.metrics import quest_metrics
    from boolbert.train.retrieval import RetrievalStage
    from boolbert.train.retrieval_run import build_model
    from boolbert.train.start import find_start

    args = quest_arguments(Path(folder), Path(folder) / "unused", **changes)
    start = find_start(args.encoder)
    data = quest_splits(args.data)
    stage = RetrievalStage(build_model(start, args), data, start.tokenizer(), accelerator, args, quest_metrics)
    stage.model.train()
    still(stage.model)
    return stage


TRIPLETS = [
    ("and", "films about war and also love", ["films about love as well as war"], ["films about war or love"]),
    ("or", "films about rome or mars", ["books about mars or rome"], ["films about rome and mars", "films in rome"]),
    ("not", "films about war but not love", ["films that are not about love"], ["films about love and war"]),
    ("and", "books about rome and mars", ["books about mars as well as rome"], ["books in rome but not mars"]),
    ("not", "books not set in rome", ["films that are not in rome", "books not in rome"], ["books set in rome"]),
]


def pretraining_stage(folder, accelerator, **changes):
    from boolbert.data import Triplet
    from boolbert.train.labelled_sentences import prepare_triplets
    from boolbert.train.pretrain import PretrainArguments, PretrainingStage, build_model
    from boolbert.train.start import find_start

    start = find_start(str(Path(folder) / "encoder"))
    triplets = [Triplet(g, tuple(p), tuple(n), operator) for operator, g, p, n in TRIPLETS * 3]
    train, dev = (prepare_triplets(triplets, start.tokenizer(), max_length=32, rate=rate) for rate in (0.5, 0.0))
    args = PretrainArguments(**changes)
    stage = PretrainingStage(build_model(start, args), train, dev, accelerator, args)
    stage.model.train()
    still(stage.model)
    return stage


def gradients_of(stage, accelerator, epoch=0, step=1):
    """The losses of one step, and every gradient, as a trainer's optimizer would get them."""
    from boolbert.train.loop import freeze_unused

    noisy = {name for name, module in stage.model.named_modules() if module.training}
    freeze_unused(stage.model, stage)
    for name, module in stage.model.named_modules():
        module.training = name in noisy
    stage.model = accelerator.prepare(stage.model)
    losses = stage.backward(stage.load(epoch, step), step)
    plain = stage.model = accelerator.unwrap_model(stage.model)
    gradients = {name: p.grad for name, p in plain.named_parameters() if p.requires_grad}
    assert all(gradient is not None for gradient in gradients.values())
    return {name: float(value) for name, value in losses.items()}, gradients


def assert_same(found, expected, rtol=1e-3, **tolerance):
    """Tensors by name are the same."""
    import torch

    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, **{"rtol": rtol, "atol": 1e-6, **tolerance})


def gradients_in_group(folder, out, rank, size, port, changes):
    """Write this process's losses and gradients, and the rows that it saw."""
    join_group(rank, size, port)
    import torch
    from accelerate import Accelerator

    torch.set_num_threads(1)
    accelerator = Accelerator()
    results = {}
    for name, make in (("quest", quest_stage), ("pretrain", pretraining_stage)):
        stage = make(folder, accelerator, **changes[name])
        losses, gradients = gradients_of(stage, accelerator)
        batch = stage.load(0, 1)
        seen = batch["queries"][0] if name == "quest" else batch["parts"][0]["triplets"]
        results[name] = {"losses": losses, "gradients": gradients, "seen": seen["input_ids"]}
    torch.save({"processes": accelerator.num_processes, **results}, Path(out) / f"rank-{rank}.pt")


def train_in_group(folder, output, rank, size, port, **changes):
    join_group(rank, size, port)
    from boolbert.core.errors import BoolBertError

    try:
        train_quest(folder, output, **changes)
    except BoolBertError as error:
        Path(f"{output}.error-{rank}").write_text(str(error))
        raise SystemExit(2) from None
