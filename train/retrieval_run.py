"""A run of stage 2 or 3 from its flags: load, build, train, evaluate, save."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from boolbert.core.errors import TrainingError
from boolbert.data.tasks import Splits, quest_splits
from boolbert.retrieval.fingerprints import corpus_fingerprint
from boolbert.retrieval.metrics import Metrics, quest_metrics
from boolbert.train.dual_encoder import DualEncoder
from boolbert.train.logs import print_summary
from boolbert.train.loop import Progress, Trainer
from boolbert.train.optimizer import PENALTY, STRENGTH
from boolbert.train.outputs import (
    fingerprint,
    identity,
    is_finished,
    make_accelerator,
    open_run,
    own_settings,
    save_run,
)
from boolbert.train.retrieval import RetrievalArguments, RetrievalStage, with_known_gate
from boolbert.train.start import Start, find_start

# The share of the weights before training in the saved model's: it can still do what it could (docs/own_documents.md).
ORIGINAL_WEIGHT = 0.7


@own_settings()
def run_retrieval(
    script: str,
    args: RetrievalArguments,
    read: Callable[[], Splits],
    metrics: Metrics,
    earlier: str | None = None,
    vectors: torch.Tensor | None = None,
    report: bool = True,
    original_weight: float = 0.0,
) -> None:
    """Train. vectors: those of the documents, where they are fixed and known already. report: whether to print what the
    run starts from and what it reached. original_weight: the share of the weights before
    training in the saved model's."""
    accelerator = make_accelerator(args)
    start = find_start(args.encoder, earlier, allow_random=args.allow_random)
    with accelerator.main_process_first():
        data = read()
    args = with_known_gate(args, data, accelerator.print)
    wanted = identity(args, accelerator, data_fingerprint(data))
    if is_finished(args, wanted, start.path):
        accelerator.print(f"{args.output_dir} is finished, with these flags and this data; --overwrite trains it again")
        return
    if report:
        accelerator.print(f"{start.encoder.note}\n{data.note}")
    model = build_model(start, args)
    before = {name: value.detach().clone() for name, value in model.state_dict().items()} if original_weight else {}
    tokenizer = start.tokenizer()
    stage = RetrievalStage(model, data, tokenizer, accelerator, args, metrics, vectors)
    trainer = Trainer(stage, args, accelerator, wanted)
    open_run(script, args, accelerator, wanted, start.record())
    progress = trainer.fit()
    if original_weight:
        move_towards(accelerator.unwrap_model(stage.model), before, original_weight)
    found = final_metrics(stage, progress)
    if original_weight:
        found["dev"] = stage.evaluate()
    if accelerator.is_main_process:
        lengths = {"query_length": args.query_length, "document_length": args.document_length}
        save_run(args, model.cpu(), tokenizer, found, **lengths)
        if report:
            print_summary(args.output_dir, found)
    accelerator.end_training()


def build_model(start: Start, args: RetrievalArguments) -> DualEncoder:
    """Both encoders, and how their vectors are made: as the flags say, else as the encoder was trained."""
    gate = None if args.gate == "given" else args.gate
    similarity = args.similarity or start.encoder.similarity
    settings = args.model_settings()
    if args.penalty and (args.baseline or args.exclusion == "none" or args.recipe == "paper"):
        raise TrainingError("--penalty needs a Bool-BERT that excludes: without --baseline, --recipe, --exclusion none")
    if similarity != "cosine":
        if args.penalty:
            raise TrainingError(f"--penalty needs vectors of one length: --similarity cosine, got {similarity}")
        settings["penalty"] = 0.0
    model = DualEncoder(
        start.query_encoder(baseline=args.baseline, gate=gate, seed=args.seed, **settings),
        start.document_encoder(),
        pooling=args.pooling or start.encoder.pooling,
        similarity=similarity,
    )
    # The start may have learned other values.
    for wanted, value in ((STRENGTH, args.exclusion_weight), (PENALTY, args.penalty)):
        for name, parameter in model.query.named_parameters():
            if value and name.endswith(wanted):
                parameter.data.fill_(math.log(math.expm1(value)))
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


def train_on_query_folder(
    data: str | Path,
    output_dir: str | Path,
    start: str | Path,
    *,
    documents: str,
    epochs: int,
    vectors: torch.Tensor | None = None,
    original_weight: float | None = None,
    **flags: Any,
) -> None:
    """Train a model on queries that were made from documents (`boolbert.data.own`).

    documents: "fixed" leaves the document side as it is, "learned" trains both sides. original_weight: the
    share of the start's weights in the result. `flags` are more of those of train/quest.py.
    """
    args = RetrievalArguments(
        data=str(data),
        output_dir=str(output_dir),
        encoder=str(start),
        freeze_documents=documents == "fixed",
        epochs=epochs,
        eval_every=epochs,  # the held-out queries are for measuring: none of the epochs is chosen by them
        negatives="violating",
        gate="cue",  # users' queries come without labels
        branches=4,
        # Made queries need little exclusion: against fixed documents it would become too weak.
        learn_exclusion=documents == "learned",
        mixed_precision="bf16" if torch.cuda.is_available() else "no",
        tracker="none",
        keep_last=1,
        **flags,
    )
    run_retrieval(
        "fit",
        args,
        lambda: quest_splits(data),
        quest_metrics,
        vectors=vectors,
        report=False,
        original_weight=ORIGINAL_WEIGHT if original_weight is None else original_weight,
    )


def move_towards(model: torch.nn.Module, before: dict[str, torch.Tensor], share: float) -> None:
    """Move a trained model's weights towards those it started from.

    A mean of the two keeps most of what either can do (Wortsman et al. 2022, "Robust fine-tuning").
    """
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                value.copy_(between(value, before[name].to(value), share))


def between(trained: torch.Tensor, before: torch.Tensor, share: float) -> torch.Tensor:
    """Weights between two. Those that training left alone stay as they are to the bit: the fingerprint of a frozen side
    must not change, and arithmetic would turn -0.0 into 0.0.

    >>> between(torch.tensor([1.0, -0.0]), torch.tensor([0.0, -0.0]), 0.25)
    tensor([0.7500, -0.0000])
    """
    return torch.where(trained == before, trained, torch.lerp(trained, before, share))
