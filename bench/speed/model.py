"""Bool-BERT against BERT."""

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from transformers import BertConfig, BertModel

from boolbert import BoolBertConfig, BoolBertModel
from boolbert.configuration_boolbert import LITE, UPGRADED
from boolbert.train.loop import compile_layers
from speed.made_up import SIZES, make_batch
from speed.timing import as_graph, in_turn, peak_mebibytes, save

# size, what, shapes, modes; compiling takes most of the time, so what it is not promised for goes without.
GPU_PLAN = [
    ("base", "inference", ["1x32", "1x64", "32x64", "256x64", "192x256", "32x512"], ["eager", "graph"]),
    ("base", "inference", ["32x64", "256x64", "192x256", "32x512"], ["compiled", "compiled graph"]),
    ("base", "training", ["32x64", "192x256"], ["eager", "compiled", "compiled graph"]),
    ("minilm", "inference", ["1x32", "32x64", "256x64", "192x256"], ["eager", "graph"]),
]
CPU_PLAN = [
    ("minilm", "inference", ["1x16", "8x32", "32x64"], ["eager"]),
    ("minilm", "training", ["8x32"], ["eager"]),
]


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Bool-BERT against BERT: as it is, with compiled layers, and as CUDA graphs of both.

    Bool-BERT has all operators on in all layers; "upgraded" is what `boolbert upgrade` makes, on queries with NOT;
    "its lite" the same with `--lite`; "lite" is `configuration_boolbert.LITE` with all operators on. "best" takes each
    model's fastest mode.
    """
    rows: list[dict[str, Any]] = []
    options.figures["model"] = rows
    began = time.perf_counter()
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    print(
        f"{'size':<8}{'what':<11}{'shape':<9}{'mode':<16}{'BERT ms':>9}  {'model':<11}{'ms':>9}{'ratio':>7}{'MiB':>7}"
    )
    for size, what, shapes, modes in GPU_PLAN if options.gpu else CPU_PLAN:
        models = make_models(size, what, options, compiled="compiled" in modes)
        for shape in shapes:
            batch = make_batch(shape, options.device)
            steps = {name: make_step(model, batch, what, on, options) for name, (model, on) in models.items()}
            for mode in modes:
                key = (size, what, shape)
                if mode == "compiled" and time.perf_counter() - began > options.seconds:
                    print(f"{size:<8}{what:<11}{shape:<9}compiled: not measured, the {options.seconds:.0f} s are over")
                    break
                try:
                    with as_mode(mode, models, steps) as timed_steps:
                        times = in_turn(timed_steps, options)
                        peak = {name: peak_mebibytes(step, options) for name, step in timed_steps.items()}
                except Exception as error:  # the other modes are worth having
                    row = {"size": size, "what": what, "shape": shape, "mode": mode, "error": str(error)[:300]}
                    rows.append(row)
                    print(
                        f"{size:<8}{what:<11}{shape:<9}{mode:<16}{type(error).__name__}: {str(error)[:300]}", flush=True
                    )
                    continue
                finally:
                    save(options)
                add_rows(rows, key, mode, times, peak)
                best = found.setdefault(key, {})
                best |= {
                    name: time_of
                    for name, time_of in times.items()
                    if name not in best or time_of["median"] < best[name]["median"]
                }
            save(options)
        del models, steps, batch
        if options.gpu:
            torch.compiler.reset()
            torch.cuda.empty_cache()
    for key, best in found.items() if options.gpu else ():
        add_rows(rows, key, "best", best, {})
    return rows


def add_rows(
    rows: list[dict[str, Any]], key: tuple[str, ...], mode: str, times: dict[str, Any], peak: dict[str, Any]
) -> None:
    size, what, shape = key
    for name in list(times)[1:]:
        row = {"size": size, "what": what, "shape": shape, "mode": mode, "model": name}
        row |= {"bert_ms": times["BERT"], "ms": times[name], "peak_mib": peak.get(name)}
        row["ratio"] = round(times[name]["median"] / times["BERT"]["median"], 3)
        rows.append(row)
        print(
            f"{size:<8}{what:<11}{shape:<9}{mode:<16}{times['BERT']['median']:>9.3f}  {name:<11}"
            f"{times[name]['median']:>9.3f}{row['ratio']:>7.2f}{peak.get(name) or 0:>7.0f}",
            flush=True,
        )


@contextlib.contextmanager
def as_mode(mode: str, models: dict[str, Any], steps: dict[str, Callable[[], Any]]) -> Iterator[dict[str, Any]]:
    """The steps, made to run in this mode."""
    with contextlib.ExitStack() as stack:
        if mode.startswith("compiled"):
            stack.enter_context(compiled_parts([model for model, _ in models.values()]))
        if mode.endswith("graph"):
            yield {name: as_graph(step) for name, step in steps.items()}
        else:
            yield steps


def make_models(
    size: str, what: str, options: argparse.Namespace, compiled: bool = False
) -> dict[str, tuple[Any, list[int] | None]]:
    """Each with the operators that are on. What is compiled is BERT and Bool-BERT alone."""
    models: dict[str, tuple[Any, list[int] | None]] = {
        "BERT": (BertModel(BertConfig(**SIZES[size])), None),
        "Bool-BERT": (BoolBertModel(BoolBertConfig(**SIZES[size])), [1, 1, 1]),
    }
    if size == "base" and what == "inference" and not compiled:
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


@contextlib.contextmanager
def compiled_parts(models: list[Any]) -> Iterator[None]:
    """torch.compile of the layers, which share their code, and of what a Bool-BERT has before and after them.

    What was compiled stays for the next time.
    """
    torch._dynamo.config.cache_size_limit = 64
    for model in models:
        compile_layers(model, {"dynamic": False})
    parts = [part for model in models for part in model.modules() if part._compiled_call_impl is not None]
    try:
        yield
    finally:
        for part in parts:
            part._compiled_call_impl = None
