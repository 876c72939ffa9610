"""A run of stage 2 or 3 from its flags: load, build, train, evaluate, save."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from boolbert import BoolBertConfig
from boolbert.data.tasks import Splits
from boolbert.retrieval.fingerprints import corpus_fingerprint
from boolbert.retrieval.metrics import Metrics
from boolbert.retrieval.negatives import hard_negatives
from boolbert.sentence_boolbert import save_dual_encoder
from boolbert.train.checkpoints import full_weights
from boolbert.train.dual_encoder import DualEncoder
from boolbert.train.logs import print_summary
from boolbert.train.loop import Progress, Trainer
from boolbert.train.outputs import (
    compile_options,
    fingerprint,
    identity,
    is_finished,
    make_accelerator,
    open_run,
    save_model,
)
from boolbert.train.retrieval import RetrievalArguments, RetrievalStage
from boolbert.train.start import Start, find_start, quiet


def run_retrieval(
    script: str,
    args: RetrievalArguments,
    read: Callable[[], Splits],
    metrics: Metrics,
    earlier: str | None = None,
) -> None:
    accelerator = make_accelerator(args)
    start = find_start(args.encoder, earlier, allow_random=args.allow_random)
    with accelerator.main_process_first():
        data = read()
    wanted = identity(args, accelerator, data_fingerprint(data))
    if is_finished(args, wanted, start.path):
        accelerator.print(f"{args.output_dir} is finished, with these flags and this data; --overwrite trains it anew")
        return
    accelerator.print(f"{start.encoder.note}\n{data.note}")
    model = build_model(start, args)
    tokenizer = start.tokenizer()
    hard = hard_negatives(args.negatives, data.train)
    stage = RetrievalStage(model, data, tokenizer, accelerator, args, hard, metrics)
    trainer = Trainer(stage, args, accelerator, wanted, compile_options(args, accelerator))
    open_run(script, args, accelerator, wanted, start.record())
    progress = trainer.fit()
    found = final_metrics(stage, progress)
    weights = full_weights(stage.model)
    if accelerator.is_main_process:
        save_run(model.copy_with(weights), tokenizer, args, found)
        print_summary(args.output_dir, found)
    accelerator.end_training()


def build_model(start: Start, args: RetrievalArguments) -> DualEncoder:
    """Both encoders, and how their vectors are made: as the flags say, else as the encoder was trained."""
    gate = None if args.gate == "given" else args.gate
    model = DualEncoder(
        start.query_encoder(baseline=args.baseline, gate=gate, seed=args.seed, **args.model_settings()),
        start.document_encoder(),
        pooling=args.pooling or start.encoder.pooling,
        similarity=args.similarity or start.encoder.similarity,
    )
    if args.gradient_checkpointing:
        for encoder in (model.query, model.document):
            encoder.gradient_checkpointing_enable()
    return model


def data_fingerprint(data: Splits) -> str:
    """Changes with any document, query, operator or gold of the training and dev data."""
    tasks = (data.train, data.dev)
    return fingerprint(
        corpus_fingerprint(data.train.corpus),
        *((question.text, question.operators) for task in tasks for question in task.questions),
        *(rows.tolist() for task in tasks for rows in (task.gold.offsets, task.gold.rows)),
        *(rows.tolist() for rows in data.train.violating or ()),
    )


def final_metrics(stage: RetrievalStage, progress: Progress) -> dict[str, Any]:
    """The best evaluation's metrics; where operators were given, also what the model reaches on text alone."""
    metrics = progress.metrics(stage.metric)
    if stage.operators["dev"] is not None:
        metrics["dev_without_labels"] = stage.evaluate(labels=False)
    return metrics


def save_run(model: DualEncoder, tokenizer: Any, args: RetrievalArguments, metrics: dict[str, Any]) -> None:
    """Both encoders, for AutoModel and SentenceTransformer; then metrics.json, which says that the run is finished."""
    folder = Path(args.output_dir)
    if isinstance(model.query.config, BoolBertConfig):
        model.query.config.pooling = model.pooling
    settings: dict[str, Any] = {
        "pooling": model.pooling,
        "similarity": model.similarity,
        "query_length": args.query_length,
        "document_length": args.document_length,
    }

    def save() -> None:
        with quiet():
            save_dual_encoder(folder, model.query, model.document, tokenizer, **settings)

    save_model(folder, save, {**metrics, "seed": args.seed, "arguments": asdict(args)})
