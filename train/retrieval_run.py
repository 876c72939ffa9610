"""A run of stage 2 or 3 from its flags: load, build, train, evaluate, save."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from boolbert import BoolBertConfig
from boolbert.data.tasks import Splits
from boolbert.retrieval.metrics import Metrics
from boolbert.sentence_boolbert import save_dual_encoder
from boolbert.train.dual_encoder import DualEncoder
from boolbert.train.logs import print_summary
from boolbert.train.loop import Progress, Trainer
from boolbert.train.negatives import hard_negatives
from boolbert.train.outputs import METRICS, open_run, write_json, write_record
from boolbert.train.retrieval import RetrievalArguments, RetrievalStage
from boolbert.train.start import Start, find_start, quiet


def run_retrieval(
    script: str,
    args: RetrievalArguments,
    read: Callable[[], Splits],
    metrics: Metrics,
    earlier: str | None = None,
) -> None:
    accelerator = open_run(args)
    start = find_start(args.encoder, earlier)
    with accelerator.main_process_first():
        data = read()
    accelerator.print(f"{start.encoder.note}\n{data.note}")
    model = build_model(start, args)
    tokenizer = start.tokenizer()
    hard = hard_negatives(args.negatives, data.train)
    stage = RetrievalStage(model, data, tokenizer, accelerator, args, hard, metrics)
    if accelerator.is_main_process:
        write_record(Path(args.output_dir), script, args, start.record())
    progress = Trainer(stage, args, accelerator, args.eval_every).fit()
    found = final_metrics(stage, progress)
    if accelerator.is_main_process:
        save_run(Path(args.output_dir), model, tokenizer, args, found)
        print_summary(args.output_dir, found)
    accelerator.end_training()


def build_model(start: Start, args: RetrievalArguments) -> DualEncoder:
    """Both encoders, and how their vectors are made: as the flags say, else as the encoder was trained."""
    gate = None if args.gate == "given" else args.gate
    model = DualEncoder(
        start.query_encoder(baseline=args.baseline, gate=gate, seed=args.seed),
        start.document_encoder(),
        pooling=args.pooling or start.encoder.pooling,
        similarity=args.similarity or start.encoder.similarity,
    )
    encoders: tuple[Any, ...] = (model.query, model.document)
    for encoder in encoders:
        if args.gradient_checkpointing:
            encoder.gradient_checkpointing_enable()
        if args.compile:
            encoder.compile(dynamic=True)
    return model


def final_metrics(stage: RetrievalStage, progress: Progress) -> dict[str, Any]:
    """The best epoch's metrics; where it was given labels, also what it reaches on text alone."""
    metrics = progress.metrics(stage.metric)
    if stage.operators["dev"] is not None:
        metrics["dev_without_labels"] = stage.evaluate(labels=False)
    return metrics


def save_run(
    folder: Path, model: DualEncoder, tokenizer: Any, args: RetrievalArguments, metrics: dict[str, Any]
) -> None:
    """The model for both doors; metrics.json comes last and says that the run is finished."""
    lengths = {"query_length": args.query_length, "document_length": args.document_length}
    model.cpu()
    shape: dict[str, Any] = {"pooling": model.pooling, "similarity": model.similarity, **lengths}
    if isinstance(model.query.config, BoolBertConfig):
        model.query.config.pooling = model.pooling
    with quiet():
        save_dual_encoder(folder, model.query, model.document, tokenizer, **shape)
    write_json(folder / METRICS, {**metrics, "seed": args.seed, "arguments": asdict(args)})
