r"""Training speed: steps a second, how busy the GPU is, and the ratios to sentence-transformers and to plain BERT.

python bench/training.py                                  # a small model on a CPU, under 90 s
python bench/training.py --encoder FOLDER --data FOLDER --batch_size 32 --document_length 256 --steps 50 \
    --mixed_precision bf16                                # on a GPU

Three trainers take turns on the same data, batch size, lengths and negatives, and the median of their rounds is shown:
this project's with Bool-BERT, the same with a plain BERT, and sentence-transformers' own with that plain BERT and
MultipleNegativesRankingLoss. "waiting" is the share of time in which the loop had no batch, "GPU busy" the share in
which the GPU ran a kernel, as torch's profiler sees it.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in training; OpenMP reads it with torch

import torch

from boolbert.data.tasks import Splits, quest_splits
from boolbert.train.dual_encoder import TEMPERATURES
from boolbert.train.loop import Trainer
from boolbert.train.outputs import compile_options, make_accelerator
from boolbert.train.quest import QuestArguments
from boolbert.train.retrieval import RetrievalStage
from boolbert.train.retrieval_run import build_model
from boolbert.train.start import Start, find_start

WARM_UP = 3


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="QUEST-format data; the embedded countries if not given")
    parser.add_argument("--encoder", help="a BERT; one of 2 layers and random weights if not given")
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--num_negatives", type=int, default=5)
    parser.add_argument("--document_length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3, help="steps of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mixed_precision", choices=("no", "bf16", "fp16"), default="no")
    parser.add_argument("--compile", action="store_true", help="torch.compile this project's encoders")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads; one gives the steadiest figures")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        start = find_start(options.encoder or small_bert(Path(folder) / "bert"))
        data = quest_splits(options.data)
        runs = {
            "Bool-BERT": Ours(start, data, options, Path(folder) / "boolean", baseline=False),
            "BERT": Ours(start, data, options, Path(folder) / "plain", baseline=True),
            "sentence-transformers, BERT": Theirs(start, data, options, Path(folder) / "theirs"),
        }
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(options.rounds + 1):
            for name, run in runs.items():
                taken = run.round(WARM_UP if number == 0 else options.steps)
                if number:
                    seconds[name].append(taken / options.steps)
        figures = {name: {"steps_per_second": 1 / statistics.median(taken)} for name, taken in seconds.items()}
        for name in ("Bool-BERT", "BERT"):
            figures[name]["waiting"] = runs[name].waiting()
            figures[name]["gpu_busy"] = busy_share(lambda name=name: runs[name].round(options.steps))
        figures["sentence-transformers, BERT"]["gpu_busy"] = busy_share(
            lambda: runs["sentence-transformers, BERT"].round(options.steps)
        )
        report(figures, seconds, start, data, options)


class Ours:
    """This project's loop, a round at a time."""

    def __init__(self, start: Start, data: Splits, options: argparse.Namespace, folder: Path, *, baseline: bool):
        args = QuestArguments(
            output_dir=str(folder),
            baseline=baseline,
            batch_size=options.batch_size,
            num_negatives=options.num_negatives,
            document_length=options.document_length,
            mixed_precision=options.mixed_precision,
            compile=options.compile,
            threads=options.threads,
            tracker="none",
            epochs=10_000,
            log_every=10,
        )
        self.accelerator = make_accelerator(args)
        self.stage = RetrievalStage(build_model(start, args), data, start.tokenizer(), self.accelerator, args)
        options = compile_options(args, self.accelerator)
        self.trainer = Trainer(self.stage, args, self.accelerator, compile_options=options)
        self.seconds = 0.0
        self.batches: Any = None

    def round(self, steps: int) -> float:
        """The seconds that some steps take, with the batches that the loader has ready at the beginning not counted."""
        trainer = self.trainer
        trainer.model.train()
        if self.batches is None:
            self.batches = trainer.batches()
            trainer.log = Silent()
        for _ in range(2):  # other trainers had their turn meanwhile
            trainer._step(self.batches)
        synchronize()
        trainer.waited, begin = 0.0, time.perf_counter()
        for _ in range(steps):
            trainer._step(self.batches)
        synchronize()
        self.seconds = time.perf_counter() - begin
        return self.seconds

    def waiting(self) -> float:
        return self.trainer.waited / self.seconds


class Silent:
    """A log that says nothing."""

    def losses(self, step: int, values: dict[str, Any]) -> None: ...
    def advance(self) -> None: ...


class Theirs:
    """sentence-transformers' trainer: one encoder for both sides, which is what it is usually used with."""

    def __init__(self, start: Start, data: Splits, options: argparse.Namespace, folder: Path):
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Router, Transformer

        encoders = [
            Transformer(str(start.plain), processor_kwargs={"model_max_length": length})
            for length in (64, options.document_length)
        ]
        size = encoders[0].get_embedding_dimension()
        modules: list[Any] = [
            Router.for_query_document([encoders[0]], [encoders[1]]),
            Pooling(size, pooling_mode=start.encoder.pooling),
        ]
        if start.encoder.similarity == "cosine":
            modules.append(Normalize())
        self.model = SentenceTransformer(modules=modules)
        self.options = options
        self.folder = folder
        self.scale = 1 / TEMPERATURES[start.encoder.similarity]
        self.rows = training_rows(data, options)

    def round(self, steps: int) -> float:
        """As `Ours.round`: the steps' own time, without the trainer's start."""
        from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments, util
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
        from transformers import TrainerCallback

        times: list[float] = []

        class Clock(TrainerCallback):
            def on_step_end(self, *args: Any, **kwargs: Any) -> None:
                if not times or len(times) == 2 + steps - 1:
                    synchronize()
                times.append(time.perf_counter())

        args = SentenceTransformerTrainingArguments(
            output_dir=str(self.folder),
            max_steps=2 + steps,
            per_device_train_batch_size=self.options.batch_size,
            router_mapping={name: "query" if name == "anchor" else "document" for name in self.rows.column_names},
            learning_rate=5e-5,
            bf16=self.options.mixed_precision == "bf16",
            fp16=self.options.mixed_precision == "fp16",
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_drop_last=True,
            dataloader_num_workers=0,
        )
        loss = MultipleNegativesRankingLoss(self.model, scale=self.scale, similarity_fct=util.dot_score)
        trainer = SentenceTransformerTrainer(self.model, args, train_dataset=self.rows, loss=loss, callbacks=[Clock()])
        trainer.train()
        return times[-1] - times[1]


def training_rows(data: Splits, options: argparse.Namespace) -> Any:
    """The rows of the first epoch: a query, its positive and its negatives, as texts."""
    from datasets import Dataset

    from boolbert.data import TrainingSampler

    sampler = TrainingSampler(data.train.gold, batch_size=options.batch_size, random_negatives=options.num_negatives)
    columns: dict[str, list[str]] = {"anchor": [], "positive": []}
    columns.update({f"negative_{number}": [] for number in range(options.num_negatives)})
    while len(columns["anchor"]) < options.batch_size * (options.steps + 2 + WARM_UP):
        epoch = len(columns["anchor"]) // max(1, len(sampler.queries))
        for batch in sampler.batches(epoch):
            columns["anchor"] += [data.train.texts[query] for query in batch.queries]
            columns["positive"] += [data.train.corpus.text(int(row)) for row in batch.positives]
            for number in range(options.num_negatives):
                columns[f"negative_{number}"] += [
                    data.train.corpus.text(int(row)) for row in batch.negatives[:, number]
                ]
    return Dataset.from_dict(columns)


def small_bert(folder: Path) -> str:
    from transformers import BertConfig, BertModel, BertTokenizer

    from boolbert.retrieval.encoders import _vocabulary

    vocab = {token: row for row, token in enumerate(_vocabulary())}
    config = BertConfig(
        vocab_size=len(vocab), hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizer(vocab=vocab, model_max_length=512).save_pretrained(folder)
    return str(folder)


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def busy_share(work: Any) -> float | None:
    """The share of the time in which the GPU ran a kernel, by the profiler; None without a GPU."""
    if not torch.cuda.is_available():
        return None
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
    spans = sorted(
        (event.time_range.start, event.time_range.end)
        for event in profiler.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
    )
    if not spans:
        return None
    busy, end = 0.0, spans[0][0]
    for first, last in spans:
        busy += max(0.0, last - max(first, end))
        end = max(end, last)
    return busy / (end - spans[0][0])


def report(figures: dict[str, Any], seconds: dict[str, list[float]], start: Start, data: Splits, options: Any) -> None:
    ratios = {
        "speed, ours over sentence-transformers' (both plain BERT)": _ratio(
            seconds["sentence-transformers, BERT"], seconds["BERT"]
        ),
        "cost of a step, Bool-BERT over BERT": _ratio(seconds["Bool-BERT"], seconds["BERT"]),
    }
    if options.json:
        print(json.dumps({"runs": figures, "ratios": ratios}, indent=2))
        return
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} threads"
    print(f"\n{device}, torch {torch.__version__}, {options.mixed_precision} precision; {start.encoder.path}")
    print(f"{data.note}\nbatch {options.batch_size}, {options.num_negatives} negatives, {options.rounds} rounds\n")
    print(f"{'':<30}{'steps/s':>10}{'waiting':>10}{'GPU busy':>10}")
    for name, values in figures.items():
        shares = [_percent(values.get(key)) for key in ("waiting", "gpu_busy")]
        print(f"{name:<30}{values['steps_per_second']:>10.2f}{shares[0]:>10}{shares[1]:>10}")
    print()
    for name, (middle, low, high) in ratios.items():
        print(f"{name:<60}{middle:>6.2f}   ({low:.2f} to {high:.2f} over the rounds)")


def _ratio(above: list[float], below: list[float]) -> tuple[float, float, float]:
    """The median ratio of rounds that ran next to each other, the lowest and the highest."""
    ratios = [one / other for one, other in zip(above, below, strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


if __name__ == "__main__":
    main()
