"""A run of stage 2 or 3 from its flags: load, build, train, evaluate, save."""

import math
from collections.abc import Callable

import torch

from boolbert.core.errors import TrainingError
from boolbert.data.tasks import Splits
from boolbert.retrieval.fingerprints import corpus_fingerprint
from boolbert.retrieval.metrics import Metrics
from boolbert.train.dual_encoder import DualEncoder
from boolbert.train.logs import print_summary
from boolbert.train.loop import Trainer
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


@own_settings()
def run_retrieval(
    script: str,
    args: RetrievalArguments,
    read: Callable[[], Splits],
    metrics: Metrics,
) -> None:
    accelerator = make_accelerator(args)
    start = find_start(args.encoder, allow_random=args.allow_random)
    with accelerator.main_process_first():
        data = read()
    args = with_known_gate(args, data, accelerator.print)
    wanted = identity(args, accelerator, data_fingerprint(data))
    if is_finished(args, wanted, start.path):
        accelerator.print(f"{args.output_dir} is finished, with these flags and this data; --overwrite trains it again")
        return
    accelerator.print(f"{start.encoder.note}\n{data.note}")
    model = build_model(start, args)
    is_mixed = args.original_weight > 0
    before = {name: value.detach().clone() for name, value in model.state_dict().items()} if is_mixed else {}
    tokenizer = start.tokenizer()
    stage = RetrievalStage(model, data, tokenizer, accelerator, args, metrics)
    trainer = Trainer(stage, args, accelerator, wanted)
    open_run(script, args, accelerator, wanted, start.record())
    progress = trainer.fit()
    found = progress.metrics(stage.metric)
    if is_mixed:
        move_towards(accelerator.unwrap_model(stage.model), before, args.original_weight)
        found["dev"] = stage.evaluate()
    if stage.operators["dev"] is not None:  # what it reaches on text alone
        found["dev_without_labels"] = stage.evaluate(labels=False)
    if accelerator.is_main_process:
        lengths = {"query_length": args.query_length, "document_length": args.document_length}
        save_run(args, model.cpu(), tokenizer, found, **lengths)
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


def move_towards(model: torch.nn.Module, before: dict[str, torch.Tensor], share: float) -> None:
    """Move a trained model's weights towards those it started from.

    A mean of the two keeps most of what either can do (Wortsman et al. 2022, "Robust fine-tuning"). Weights that
    training left alone stay as they are to the bit, by which a frozen side is known: arithmetic turns -0.0 into 0.0.
    """
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                old = before[name].to(value)
                value.copy_(torch.where(value == old, value, torch.lerp(value, old, share)))
