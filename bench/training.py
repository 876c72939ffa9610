r"""Training speed beside sentence-transformers' own trainer. It needs `datasets`; `bench/all.py --only train` does not.

python bench/training.py                                  # a small model on a CPU
python bench/training.py --encoder FOLDER --data FOLDER --batch_size 32 --document_length 256 --steps 50     # on a GPU

Three trainers take turns on the same data, batch size, lengths and negatives, and the median of their rounds is shown:
this project's with Bool-BERT, the same with a plain BERT, and sentence-transformers' own with that plain BERT and
MultipleNegativesRankingLoss. On a GPU all use bf16.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

# As in training (`environment.py`); both are read with torch.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("MIMALLOC_PURGE_DELAY", "100000")

import torch

from boolbert.data import TrainingSampler
from boolbert.data.tasks import Splits, quest_splits
from boolbert.train.dual_encoder import TEMPERATURES
from boolbert.train.start import Start, find_start
from speed.made_up import write_encoder
from speed.timing import synchronize, timed
from speed.training import THEIRS, Ours

WARM_UP = 2  # steps at the beginning of a round that do not count: other trainers had their turn meanwhile


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="QUEST-format data; the embedded countries if not given")
    parser.add_argument("--encoder", help="a BERT; one of 2 layers and random weights if not given")
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--num_negatives", type=int, default=5)
    parser.add_argument("--document_length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3, help="steps of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="torch.compile this project's encoders")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads; one gives the steadiest figures")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    options.gpu = torch.cuda.is_available()
    with tempfile.TemporaryDirectory() as folder:
        encoder = Path(options.encoder) if options.encoder else write_encoder(Path(folder, "bert"), "small")
        data = quest_splits(options.data)
        names = ("batch_size", "num_negatives", "document_length", "compile")
        flags = {name: getattr(options, name) for name in names}
        ours = {
            "Bool-BERT": Ours(encoder, data, Path(folder, "boolean"), WARM_UP, options, **flags),
            "BERT": Ours(encoder, data, Path(folder, "plain"), WARM_UP, options, baseline=True, **flags),
        }
        theirs = Theirs(find_start(str(encoder)), data, options, Path(folder, "theirs"))
        seconds: dict[str, list[float]] = {name: [] for name in (*ours, THEIRS)}
        for number in range(options.rounds + 1):
            taken = {name: round_of(run, options) for name, run in ours.items()}
            taken[THEIRS] = theirs.round()
            for name, value in taken.items() if number else ():  # the first round warms up
                seconds[name].append(value / options.steps)
        for run in ours.values():
            run.close()
    print(f"\n{encoder}, {data.note}\nbatch {options.batch_size}, {options.num_negatives} negatives\n")
    for name, values in seconds.items():
        print(f"{name:<30}{1 / statistics.median(values):>10.2f} steps/s")
    for what, above, below in (
        ("speed, ours over sentence-transformers' (both plain BERT)", THEIRS, "BERT"),
        ("cost of a step, Bool-BERT over BERT", "Bool-BERT", "BERT"),
    ):
        ratios = [one / other for one, other in zip(seconds[above], seconds[below], strict=True)]
        print(f"{what:<60}{statistics.median(ratios):>6.2f}   ({min(ratios):.2f} to {max(ratios):.2f} over the rounds)")


def round_of(run: Ours, options: argparse.Namespace) -> float:
    run.steps = WARM_UP
    run()
    run.steps = options.steps
    return timed(run, options) / 1000


class Theirs:
    """sentence-transformers' trainer with an encoder for each side."""

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

    def round(self) -> float:
        """The seconds of the steps alone, without the trainer's start."""
        from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments, util
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
        from transformers import TrainerCallback

        options, times = self.options, []

        class Clock(TrainerCallback):
            def on_step_end(self, *args: Any, **kwargs: Any) -> None:
                if len(times) in (WARM_UP - 1, WARM_UP + options.steps - 1):
                    synchronize(options)
                times.append(time.perf_counter())

        args = SentenceTransformerTrainingArguments(
            output_dir=str(self.folder),
            max_steps=WARM_UP + options.steps,
            per_device_train_batch_size=options.batch_size,
            router_mapping={name: "query" if name == "anchor" else "document" for name in self.rows.column_names},
            learning_rate=5e-5,
            bf16=options.gpu,
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
        return times[-1] - times[WARM_UP - 1]


def training_rows(data: Splits, options: argparse.Namespace) -> Any:
    """The rows of the first epochs: a query, its positive and its negatives, as texts."""
    from datasets import Dataset

    sampler = TrainingSampler(data.train.gold, batch_size=options.batch_size, random_negatives=options.num_negatives)
    columns: dict[str, list[str]] = {"anchor": [], "positive": []}
    columns.update({f"negative_{number}": [] for number in range(options.num_negatives)})
    while len(columns["anchor"]) < options.batch_size * (options.steps + WARM_UP):
        epoch = len(columns["anchor"]) // max(1, len(sampler.queries))
        for batch in sampler.batches(epoch):
            columns["anchor"] += [data.train.texts[query] for query in batch.queries]
            columns["positive"] += [data.train.corpus.text(int(row)) for row in batch.positives]
            for number in range(options.num_negatives):
                columns[f"negative_{number}"] += [
                    data.train.corpus.text(int(row)) for row in batch.negatives[:, number]
                ]
    return Dataset.from_dict(columns)


if __name__ == "__main__":
    main()
