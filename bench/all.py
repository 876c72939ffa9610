r"""Every speed that this project promises, in one run: model, encoding, training, search and the command line.

python bench/all.py                                     # on whatever there is; CPUs get smaller shapes and counts
python bench/all.py --device cuda --json bench.json     # everything on a GPU in bf16, about 4 minutes
python bench/all.py --only model search --rounds 20

What is compared takes turns in one process, and medians are shown with the spread (the middle half of the rounds):
only such ratios mean something. Each part runs by itself; one that fails says why, and the others go on. Nothing is
downloaded: models have random weights, texts are made of the embedded countries' words.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
ROOT = Path(__file__).resolve().parent.parent
PARTS = ("model", "encode", "train", "search", "start")
SIZES: dict[str, dict[str, int]] = {
    "base": {},
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
}
# size, what, shapes, modes; compiling takes most of the time, so what it is not promised for goes without.
GPU_PLAN = [
    ("base", "inference", ["1x32", "1x64", "32x64", "256x64", "192x256", "32x512"], ["eager", "graph"]),
    ("base", "inference", ["32x64", "256x64", "192x256", "32x512", "1x32"], ["compiled", "compiled graph"]),
    ("base", "training", ["32x64"], ["eager", "compiled"]),
    ("minilm", "inference", ["1x32", "32x64", "256x64", "192x256"], ["eager", "graph"]),
]
CPU_PLAN = [
    ("minilm", "inference", ["1x16", "8x32", "32x64"], ["eager"]),
    ("minilm", "training", ["8x32"], ["eager"]),
]
THEIRS = "sentence-transformers, BERT"
QUERY = "landlocked countries in Africa that are not former British colonies"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="cpu or cuda; the best there is if not given")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts alone")
    parser.add_argument("--rounds", type=int, help="how often each is timed; 15 on a GPU, 7 on a CPU")
    parser.add_argument("--documents", type=int, help="to encode; 32,768 on a GPU, 512 on a CPU")
    parser.add_argument("--sizes", type=int, nargs="+", help="of the searched indexes; up to 1,000,000 on a GPU")
    parser.add_argument("--threads", type=int, help="CPU threads of torch")
    parser.add_argument("--seconds", type=float, default=150, help="the model part compiles nothing new after these")
    parser.add_argument("--json", metavar="FILE", help="write all figures there, as soon as they are known")
    options = parser.parse_args()
    find_package()
    import torch

    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    options.gpu = options.device.startswith("cuda")
    options.rounds = options.rounds or (15 if options.gpu else 7)
    options.documents = options.documents or (32_768 if options.gpu else 512)
    options.sizes = options.sizes or [10_000, 100_000, *([1_000_000] if options.gpu else [])]
    options.dtype = torch.bfloat16 if options.gpu else torch.float32
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    figures: dict[str, Any] = {"machine": machine(options)}
    options.figures = figures
    print(json.dumps(figures["machine"]))
    for part in PARTS:
        if part not in options.only:
            continue
        began = time.perf_counter()
        try:
            figures[part] = MEASURES[part](options)
        except Exception as error:  # the other parts are worth having
            traceback.print_exc()
            figures[part] = {"error": f"{type(error).__name__}: {error}"}
        print(f"-- {part}: {time.perf_counter() - began:.0f} s\n", flush=True)
        save(options)


def save(options: argparse.Namespace) -> None:
    if options.json:
        Path(options.json).write_text(json.dumps(options.figures, indent=1) + "\n", encoding="utf-8")


def find_package() -> None:
    """Make this checkout importable as `boolbert`, here and in the processes that are started."""
    try:
        import boolbert  # noqa: F401

        return
    except ModuleNotFoundError:
        folder = Path(tempfile.mkdtemp())
        (folder / "boolbert").symlink_to(ROOT)
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


def machine(options: argparse.Namespace) -> dict[str, Any]:
    import torch
    import transformers

    name = torch.cuda.get_device_name() if options.gpu else f"CPU, {torch.get_num_threads()} threads"
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    return {"device": name, "dtype": str(options.dtype).removeprefix("torch."), "cores": os.cpu_count(), **versions}


# ---------------------------------------------------------------------------------------------------------- measuring


def synchronize(options: argparse.Namespace) -> None:
    if options.gpu:
        import torch

        torch.cuda.synchronize()


def timed(work: Callable[[], Any], options: argparse.Namespace) -> float:
    """Milliseconds."""
    synchronize(options)
    began = time.perf_counter()
    work()
    synchronize(options)
    return 1000 * (time.perf_counter() - began)


def in_turn(
    works: dict[str, Callable[[], Any]], options: argparse.Namespace, *, rounds: int | None = None, warm: int = 3
) -> dict[str, Any]:
    """The median and the middle half of each, in milliseconds."""
    for work in works.values():
        for _ in range(warm):
            work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds or options.rounds):
        for name, work in works.items():
            times[name].append(timed(work, options))
    return {name: spread(values) for name, values in times.items()}


def spread(values: list[float]) -> dict[str, float]:
    """
    >>> spread([1.0, 2.0, 3.0])
    {'median': 2.0, 'low': 1.0, 'high': 3.0}
    """
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return {name: round(v, 4) for name, v in (("median", statistics.median(values)), ("low", low), ("high", high))}


def peak_mebibytes(work: Callable[[], Any], options: argparse.Namespace) -> float | None:
    if not options.gpu:
        return None
    import torch

    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return round((torch.cuda.max_memory_allocated() - before) / 2**20, 1)


def busy_share(work: Callable[[], Any], options: argparse.Namespace) -> float | None:
    """The share of the time in which the GPU ran a kernel, by torch's profiler; None without a GPU."""
    if not options.gpu:
        return None
    import torch
    from torch.profiler import ProfilerActivity, profile

    synchronize(options)
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        began = time.perf_counter()
        work()
        synchronize(options)
        seconds = time.perf_counter() - began
    kinds = (event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA)
    spans = sorted((event.time_range.start, event.time_range.end) for event in kinds)
    busy, end = 0.0, 0.0
    for first, last in spans:
        busy += max(0.0, last - max(first, end))
        end = max(end, last)
    return round(busy / 1e6 / seconds, 3)


# -------------------------------------------------------------------------------------------------------------- model


def measure_model(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Bool-BERT against BERT: as it is, with compiled layers, and as CUDA graphs of both.

    Bool-BERT has all operators on in all layers; "upgraded" is what `boolbert upgrade` makes, on queries with NOT;
    "lite" is `configuration_boolbert.LITE` with all operators on. "best" takes each model's fastest mode.
    """
    import torch

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
            batch = make_batch(shape, options)
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
    import torch
    from transformers import BertConfig, BertModel

    from boolbert import BoolBertConfig, BoolBertModel
    from boolbert.configuration_boolbert import LITE, UPGRADED

    models: dict[str, tuple[Any, list[int] | None]] = {
        "BERT": (BertModel(BertConfig(**SIZES[size])), None),
        "Bool-BERT": (BoolBertModel(BoolBertConfig(**SIZES[size])), [1, 1, 1]),
    }
    if size == "base" and what == "inference" and not compiled:
        models["lite"] = BoolBertModel(BoolBertConfig(**LITE)), [1, 1, 1]
    if size == "minilm" and what == "inference":
        models["upgraded"] = BoolBertModel(BoolBertConfig(**SIZES[size], **UPGRADED)), [0, 0, 1]
    # Trained in mixed precision, used in half precision altogether.
    dtype = options.dtype if what == "inference" else torch.float32
    for model, _ in models.values():
        model.to(options.device, dtype).train(what == "training")
    return models


def make_batch(shape: str, options: argparse.Namespace) -> dict[str, Any]:
    """Rows from half to all of the length, padded, as queries come."""
    import torch

    batch, length = (int(number) for number in shape.split("x"))
    lengths = torch.linspace(length if batch == 1 else length // 2, length, batch).long()
    mask = (torch.arange(length) < lengths[:, None]).long()
    ids = torch.randint(1000, 30000, (batch, length))
    return {"input_ids": ids.to(options.device), "attention_mask": mask.to(options.device)}


def make_step(
    model: Any, batch: dict[str, Any], what: str, on: list[int] | None, options: argparse.Namespace
) -> Callable[[], Any]:
    import torch

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
    import torch

    torch._dynamo.config.cache_size_limit = 64
    parts = [layer for model in models for layer in model.encoder.layer]
    names = ("cue_predictor", "gate", "composer")
    parts += [getattr(model, name) for model in models for name in names if hasattr(model, name)]
    for part in parts:
        part.compile(dynamic=False)
    try:
        yield
    finally:
        for part in parts:
            part._compiled_call_impl = None


def as_graph(step: Callable[[], Any]) -> Callable[[], Any]:
    """The same work as one launch.

    It is recorded on the stream that it was warmed up on: on another, compiled code may be compiled anew, which is not
    possible while a graph is recorded.
    """
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.compiler.set_stance("fail_on_recompile"), torch.cuda.graph(graph, stream=stream):
        kept = step()  # its memory is the graph's

    def replay() -> Any:
        graph.replay()
        return kept

    return replay


# ------------------------------------------------------------------------------------------------- texts and encoders


def sentences() -> list[str]:
    """The sentences of the countries' descriptions."""
    from boolbert.data.countries import country_documents

    return [part for row in country_documents() for part in row["text"].split(". ") if part]


def made_texts(count: int, seed: int = 0) -> list[str]:
    """Texts from 1 to 12 sentences, most of them short, no two alike: 20 to 300 tokens."""
    rng = random.Random(seed)
    known = sentences()
    sizes = (min(12, 1 + int(rng.expovariate(1 / 3.5))) for _ in range(count))
    return [f"Document {row}. " + ". ".join(rng.choices(known, k=size)) for row, size in enumerate(sizes)]


def write_encoder(folder: Path, size: str = "minilm") -> Path:
    """A BERT of this size with random weights, for mean pooling and cosine, and a tokenizer of the countries' words."""
    from transformers import BertConfig, BertModel, BertTokenizer

    from boolbert.retrieval.encoders import _vocabulary

    vocab = {token: row for row, token in enumerate(_vocabulary())}
    BertModel(BertConfig(**{**SIZES[size], "vocab_size": len(vocab)})).save_pretrained(folder)
    BertTokenizer(vocab=vocab, model_max_length=256).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "pooling": "mean"}))
    return folder


# ----------------------------------------------------------------------------------------------------------- encoding


def measure_encoding(options: argparse.Namespace) -> dict[str, Any]:
    """Documents a second: sentence-transformers' own loop against this project's, from text and from cached tokens."""
    import numpy as np
    import torch

    from boolbert.data import Corpus, Document
    from boolbert.retrieval.encode import default_batch_size, encode_corpus
    from boolbert.retrieval.models import load_encoder
    from boolbert.retrieval.tokens import WORTH_CACHING

    texts = made_texts(options.documents)
    corpus = Corpus([Document(f"d{row}", text) for row, text in enumerate(texts)])
    precisions = ["float32", "bfloat16"] if options.gpu else ["float32"]
    result: dict[str, Any] = {"documents": len(texts), "characters": sum(map(len, texts))}
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        name = str(write_encoder(Path(scratch, "encoder")))
        number = 0

        def ours(model: Any) -> Any:
            nonlocal number
            number += 1
            return encode_corpus(model, corpus, Path(scratch, f"v{number}"), progress=False)

        print(f"{'precision':<12}{'what':<34}{'documents/s':>12}{'ratio':>8}{'GPU busy':>10}")
        for precision in precisions:
            model = load_encoder(name, device=options.device, precision=precision, quiet=True)
            model.max_seq_length = 256
            size = default_batch_size(model)
            short = texts[: 4 * size]
            model.encode_document(short, batch_size=size)
            works: dict[str, Callable[[], Any]] = {
                "SentenceTransformer.encode": lambda m=model: m.encode_document(texts, batch_size=32),
                "the same, our batch size": lambda m=model, s=size: m.encode_document(texts, batch_size=s),
                "encode_corpus": lambda m=model: ours(m),
            }
            times: dict[str, list[float]] = {what: [] for what in works}
            for round_ in range(3 if options.gpu else 2):
                for what, work in works.items():
                    clear_tokens() if what == "encode_corpus" else None
                    times[what].append(timed(work, options) / 1000)
                    if what == "encode_corpus" and len(texts) >= WORTH_CACHING:  # its tokens are cached now
                        again = timed(work, options) / 1000
                        times.setdefault("encode_corpus, cached tokens", []).append(again)
                if options.gpu and precision == "float32" and round_ == 0:
                    break  # the reference point only
            difference = float(np.abs(ours(model)[0:256] - model.encode_document(texts[:256]).astype(np.float32)).max())
            base = statistics.median(times["SentenceTransformer.encode"])
            rows = {}
            for what, seconds in times.items():
                median = statistics.median(seconds)
                busy = busy_share(works[what], options) if what == "encode_corpus" else None
                rows[what] = {
                    "documents_per_second": round(len(texts) / median, 1),
                    "ratio": round(base / median, 3),
                    "gpu_busy": busy,
                }
                shown = "-" if busy is None else f"{busy:.0%}"
                print(
                    f"{precision:<12}{what:<34}{len(texts) / median:>12,.0f}{base / median:>8.2f}{shown:>10}",
                    flush=True,
                )
            result[precision] = {"rates": rows, "largest_difference": difference}
            del model
            if options.gpu:
                torch.cuda.empty_cache()
    return result


@contextlib.contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    before = os.environ.get("BOOLBERT_CACHE")
    os.environ["BOOLBERT_CACHE"] = str(folder)
    try:
        yield
    finally:
        os.environ.pop("BOOLBERT_CACHE") if before is None else os.environ.update(BOOLBERT_CACHE=before)


def clear_tokens() -> None:
    import shutil

    shutil.rmtree(Path(os.environ["BOOLBERT_CACHE"], "tokens"), ignore_errors=True)


# ----------------------------------------------------------------------------------------------------------- training


def measure_training(options: argparse.Namespace) -> dict[str, Any]:
    """A step of stage 2 against what sentence-transformers' trainer does, on documents that do not repeat.

    Theirs, by hand, since their trainer needs `datasets`: texts tokenized in the loop, MultipleNegativesRankingLoss,
    AdamW, clipped gradients. Batch 32 and 5 negatives for each query: 192 documents.
    """
    from boolbert.data.tasks import quest_splits

    batch, negatives, length, steps = (32, 5, 256, 10) if options.gpu else (8, 2, 64, 2)
    result: dict[str, Any] = {"batch": batch, "negatives": negatives, "document_length": length}
    print(f"{'size':<8}{'trainer':<32}{'steps/s':>9}{'ratio':>8}{'waiting':>9}{'GPU busy':>10}")
    for size in ["minilm", "base"] if options.gpu else ["minilm"]:
        with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
            encoder = write_encoder(Path(scratch, "encoder"), size)
            data = quest_splits(str(write_data(Path(scratch, "data"), batch * 64, batch * 64 * (1 + negatives))))
            flags = {"batch_size": batch, "num_negatives": negatives, "document_length": length}
            runs: dict[str, Any] = {
                "Bool-BERT": Ours(encoder, data, Path(scratch, "b"), steps, options, **flags),
                "BERT": Ours(encoder, data, Path(scratch, "p"), steps, options, baseline=True, **flags),
            }
            if options.gpu:
                runs["Bool-BERT, compiled"] = Ours(
                    encoder, data, Path(scratch, "c"), steps, options, compile=True, **flags
                )
                runs["BERT, compiled"] = Ours(
                    encoder, data, Path(scratch, "d"), steps, options, compile=True, baseline=True, **flags
                )
            runs[THEIRS] = Theirs(encoder, data, steps, options, **flags)
            times = in_turn(runs, options, rounds=5 if options.gpu else 3, warm=1)
            for name, run in runs.items():
                seconds = timed(run, options) / 1000
                row = {
                    **times[name],
                    "steps_per_second": round(1000 * steps / times[name]["median"], 3),
                    "ratio": round(times[THEIRS]["median"] / times[name]["median"], 3),
                    "waiting": None if name == THEIRS else round(run.trainer.waited / seconds, 3),
                    "gpu_busy": busy_share(run, options),
                }
                result.setdefault(size, {})[name] = row
                shown = ["-" if row[key] is None else f"{row[key]:.0%}" for key in ("waiting", "gpu_busy")]
                print(
                    f"{size:<8}{name:<32}{row['steps_per_second']:>9.2f}{row['ratio']:>8.2f}{shown[0]:>9}{shown[1]:>10}",
                    flush=True,
                )
            for run in runs.values():
                run.close()
            del runs
    return result


class Ours:
    """Some steps of this project's loop."""

    def __init__(
        self, encoder: Path, data: Any, folder: Path, steps: int, options: argparse.Namespace, **flags: Any
    ) -> None:
        from boolbert.train.loop import Trainer
        from boolbert.train.outputs import compile_options, make_accelerator
        from boolbert.train.quest import QuestArguments
        from boolbert.train.retrieval import RetrievalStage
        from boolbert.train.retrieval_run import build_model
        from boolbert.train.start import find_start

        precision = "bf16" if options.gpu else "no"
        common = {"mixed_precision": precision, "tracker": "none", "epochs": 1000, "threads": options.threads}
        args = QuestArguments(output_dir=str(folder), **common, **flags)
        accelerator = make_accelerator(args)
        start = find_start(str(encoder))
        stage = RetrievalStage(build_model(start, args), data, start.tokenizer(), accelerator, args)
        self.trainer = Trainer(stage, args, accelerator, compile_options=compile_options(args, accelerator))
        self.trainer.log = Silent()  # type: ignore[assignment]
        self.batches: Any = self.trainer.batches()
        self.steps = steps

    def __call__(self) -> None:
        self.trainer.model.train()
        self.trainer.waited = 0.0
        for _ in range(self.steps):
            self.trainer._step(self.batches)

    def close(self) -> None:
        self.batches.close()


class Silent:
    """A log that says nothing."""

    def losses(self, step: int, values: dict[str, Any]) -> None: ...
    def advance(self) -> None: ...


def write_data(folder: Path, queries: int, documents: int) -> Path:
    """QUEST-format data, each document an answer at most once."""
    folder.mkdir()
    lines = [json.dumps({"title": f"d{row}", "text": text}) for row, text in enumerate(made_texts(documents, seed=1))]
    (folder / "documents.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    known = sentences()
    rows = [
        {
            "query": f"{known[row % len(known)][:60]} that are not {known[(7 * row + 1) % len(known)][:40]}",
            "original_query": f"<mark>{known[row % len(known)][:60]}</mark> that are not <mark>x</mark>",
            "docs": [f"d{row}"],
            "metadata": {"template": "_ that are not _", "domain": "films"},
        }
        for row in range(queries)
    ]
    for name, part in (("train", rows), ("dev", rows[:8])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part), encoding="utf-8")
    return folder


class Theirs:
    """sentence-transformers' loss and tokenizing, a step at a time, as its trainer does them."""

    def __init__(self, encoder: Path, data: Any, steps: int, options: argparse.Namespace, **flags: int) -> None:
        import torch
        from sentence_transformers import SentenceTransformer, util
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

        first = Transformer(str(encoder))
        first.max_seq_length = flags["document_length"]
        pooling = Pooling(first.get_embedding_dimension(), pooling_mode="mean")
        self.model = SentenceTransformer(modules=[first, pooling], device=options.device)
        self.loss = MultipleNegativesRankingLoss(self.model, scale=20.0, similarity_fct=util.cos_sim)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-5)
        self.data, self.steps, self.options, self.rng = data, steps, options, random.Random(0)
        self.batch, self.negatives = flags["batch_size"], flags["num_negatives"]

    def __call__(self) -> None:
        for _ in range(self.steps):
            self.step()

    def close(self) -> None: ...

    def step(self) -> None:
        import torch

        corpus, train = self.data.train.corpus, self.data.train
        queries = [self.rng.randrange(len(train.texts)) for _ in range(self.batch)]
        columns = [[train.texts[query] for query in queries], [corpus.text(query) for query in queries]]
        columns += [
            [corpus.text(self.rng.randrange(len(corpus))) for _ in range(self.batch)] for _ in range(self.negatives)
        ]
        features = [
            {
                name: value.to(self.options.device) if isinstance(value, torch.Tensor) else value
                for name, value in self.model.preprocess(column).items()
            }
            for column in columns
        ]
        device = self.options.device.split(":")[0]
        with torch.autocast(device, torch.bfloat16, enabled=self.options.gpu):
            loss = self.loss(features, torch.zeros(self.batch))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


# ------------------------------------------------------------------------------------------------------------- search


def measure_search(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of one warm query, p50 and p99: the ranking alone, and a whole search with a MiniLM Bool-BERT."""
    import numpy as np

    from boolbert.retrieval.models import SearchModel, load_encoder, with_fresh_attention
    from boolbert.search import BoolSearcher

    rng = np.random.default_rng(0)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch, cache_in(Path(scratch, "cache")):
        source = load_encoder(str(write_encoder(Path(scratch, "encoder"))), device=options.device, quiet=True)
        bert = with_fresh_attention(with_pooling(source), query_length=None, gate="cue")
        model = SearchModel(None, bert, "")
        searcher = BoolSearcher(model, progress=False)
        words = made_texts(64, seed=2)
        queries = [" ".join(text.split()[3:11]) for text in words]
        print(f"{'documents':>10}  {'what':<10}{'p50 ms':>9}{'p99 ms':>9}")
        for size in options.sizes:
            vectors = rng.standard_normal((size, 384), dtype=np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            index = fake_index(Path(scratch, f"index-{size}"), vectors)
            searcher.index = index
            vector = vectors[:1].copy()
            works: dict[str, Callable[[], Any]] = {
                "ranking": lambda v=vector: rank(searcher, v),
                "search": lambda: searcher.search(rng.choice(queries), k=10),
            }
            del vectors
            for what, work in works.items():
                for _ in range(5):
                    work()
                times = sorted(timed(work, options) for _ in range(100 if size < 1_000_000 or options.gpu else 20))
                p50, p99 = times[len(times) // 2], times[min(len(times) - 1, int(0.99 * len(times)))]
                result.setdefault(str(size), {})[what] = {"p50": round(p50, 3), "p99": round(p99, 3)}
                print(f"{size:>10,}  {what:<10}{p50:>9.2f}{p99:>9.2f}", flush=True)
    return result


def rank(searcher: Any, vector: Any) -> Any:
    from boolbert.search.searcher import QueryVectors

    return searcher._rank(searcher.index, QueryVectors(vector, vector[0], None), 10, None)


def with_pooling(model: Any) -> Any:
    """A BERT that pools by the mean, whatever its folder says: random weights have no opinion."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    first = next(iter(model.children()))
    pooling = Pooling(first.get_embedding_dimension(), pooling_mode="mean")
    return SentenceTransformer(
        modules=[first, pooling, Normalize()], device=str(model.device), similarity_fn_name="cosine"
    )


def fake_index(folder: Path, vectors: Any) -> Any:
    """An index on disk with these vectors and empty documents."""
    import numpy as np

    from boolbert.retrieval.index import Index
    from boolbert.retrieval.shards import SHARD_SIZE

    (folder / "vectors").mkdir(parents=True)
    common = {"documents": len(vectors), "corpus": "made up"}
    shards = {**common, "size": vectors.shape[1], "shard_size": SHARD_SIZE, "batch_size": 1, "storage": "float32"}
    (folder / "vectors/manifest.json").write_text(json.dumps({**shards, "model": "made up"}))
    for number, start in enumerate(range(0, len(vectors), SHARD_SIZE)):
        np.save(folder / f"vectors/vectors-{number:05d}.npy", vectors[start : start + SHARD_SIZE])
    line = json.dumps({"title": "t", "text": "x"}) + "\n"
    (folder / "documents.jsonl").write_text(line * len(vectors))
    np.save(folder / "lines.npy", np.arange(len(vectors), dtype=np.int64) * len(line))
    size = (folder / "documents.jsonl").stat().st_size
    (folder / "index.json").write_text(json.dumps({**common, "document_encoder": "made up", "bytes": size}))
    return Index(folder)


# -------------------------------------------------------------------------------------------------- the command line


def measure_start(options: argparse.Namespace) -> dict[str, Any]:
    """`boolbert search` from the shell to the answer, the first call and later ones; and help, which imports little."""
    result = {}
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "BOOLBERT_CACHE": scratch, "XDG_CACHE_HOME": scratch}
        search = ["search", QUERY, "--device", "cpu"]
        plan = {"--help": (["--help"], 3), "first search": (search, 1), "search": (search, 5)}
        print(f"{'command':<16}{'seconds':>9}{'CPU s':>9}")
        for name, (words, times) in plan.items():
            taken = [seconds_of(words, environment, scratch) for _ in range(times)]
            wall, cpu = (statistics.median(values) for values in zip(*taken, strict=True))
            result[name] = {"seconds": round(wall, 3), "cpu_seconds": round(cpu, 3)}
            print(f"{name:<16}{wall:>9.2f}{cpu:>9.2f}", flush=True)
    return result


def seconds_of(words: list[str], environment: dict[str, str], folder: str) -> tuple[float, float]:
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "boolbert.cli", *words], env=environment, cwd=folder, capture_output=True, text=True
    )
    seconds, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, cpu


MEASURES: dict[str, Callable[[argparse.Namespace], Any]] = {
    "model": measure_model,
    "encode": measure_encoding,
    "train": measure_training,
    "search": measure_search,
    "start": measure_start,
}

if __name__ == "__main__":
    main()
