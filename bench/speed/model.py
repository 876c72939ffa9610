"""Bool-BERT against BERT."""

import argparse
from collections.abc import Callable
from typing import Any

import torch
from transformers import BertConfig, BertModel

from boolbert import BoolBertConfig, BoolBertModel
from boolbert.configuration_boolbert import LITE, UPGRADED
from speed.made_up import SIZES, make_batch
from speed.timing import Table, as_graph, in_turn

# size, what, shapes, modes
GPU_PLAN = [
    ("base", "inference", ["1x32", "1x64", "32x64", "256x64", "192x256", "32x512"], ["eager", "graph"]),
    ("base", "training", ["32x64", "192x256"], ["eager"]),
    ("minilm", "inference", ["1x32", "32x64", "256x64", "192x256"], ["eager", "graph"]),
]
CPU_PLAN = [("minilm", "inference", ["1x16", "8x32", "32x64"], ["eager"]), ("minilm", "training", ["8x32"], ["eager"])]


def measure(options: argparse.Namespace) -> None:
    """As it is and, on a GPU, as a CUDA graph, which takes the launches out of the time.

    Bool-BERT has all operators on in all layers; "upgraded" is what `boolbert upgrade` makes, on queries with NOT;
    "its lite" the same with `--lite`; "lite" is `configuration_boolbert.LITE` with all operators on.
    """
    table = Table(size=-8, what=-10, shape=-8, mode=-6, model=-10, BERT_ms=9, ms=9, ratio=6)
    for size, what, shapes, modes in GPU_PLAN if options.gpu else CPU_PLAN:
        models = make_models(size, what, options)
        for shape in shapes:
            batch = make_batch(shape, options.device)
            steps = {name: make_step(model, batch, what, on, options) for name, (model, on) in models.items()}
            for mode in modes:
                works = {name: as_graph(step) for name, step in steps.items()} if mode == "graph" else steps
                times = in_turn(works, options)
                bert = times.pop("BERT")
                for name, time in times.items():
                    row = {"size": size, "what": what, "shape": shape, "mode": mode, "model": name}
                    table.add(**row, BERT_ms=bert, ms=time, ratio=time / bert)


def make_models(size: str, what: str, options: argparse.Namespace) -> dict[str, tuple[Any, list[int] | None]]:
    """Each with the operators that are on."""
    models: dict[str, tuple[Any, list[int] | None]] = {
        "BERT": (BertModel(BertConfig(**SIZES[size])), None),
        "Bool-BERT": (BoolBertModel(BoolBertConfig(**SIZES[size])), [1, 1, 1]),
    }
    if size == "base" and what == "inference":
        models["lite"] = BoolBertModel(BoolBertConfig(**LITE)), [1, 1, 1]
    if size == "minilm" and what == "inference":
        models["upgraded"] = BoolBertModel(BoolBertConfig(**SIZES[size], **UPGRADED)), [0, 0, 1]
        models["its lite"] = BoolBertModel(BoolBertConfig(**{**SIZES[size], **UPGRADED, **LITE})), [0, 0, 1]
    # Trained in mixed precision, used in half precision altogether.
    dtype = options.dtype if what == "inference" else torch.float32
    for model, _ in models.values():
        if isinstance(model, BoolBertModel):
            with_scopes(model)
        model.to(options.device, dtype).train(what == "training")
    return models


def with_scopes(model: BoolBertModel) -> None:
    """Let about half of the words be in scope, as in queries that exclude something: fresh ones have none."""
    if model.reader is not None:
        torch.nn.init.normal_(model.reader.head.weight)
    else:
        reader: Any = model.scope_reader
        torch.nn.init.normal_(reader.output.weight)
        torch.nn.init.zeros_(reader.output_bias)


def make_step(
    model: Any, batch: dict[str, Any], what: str, on: list[int] | None, options: argparse.Namespace
) -> Callable[[], Any]:
    if on is not None:
        batch = {**batch, "operators": torch.tensor([on] * len(batch["input_ids"]), device=options.device)}

    def infer() -> Any:
        with torch.inference_mode():
            return model(**batch).last_hidden_state

    def train() -> None:
        model.zero_grad(set_to_none=True)
        with torch.autocast(options.device.split(":")[0], options.dtype, enabled=options.gpu):
            loss = model(**batch).last_hidden_state[:, 0].float().square().mean()
        loss.backward()

    return infer if what == "inference" else train
