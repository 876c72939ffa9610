"""A run of stage 2 or 3 from its flags: load, build, train, evaluate, save."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from boolbert import BoolBertConfig
from boolbert.sentence_boolbert import save_dual_encoder
from boolbert.train.arguments import RunArguments, flag
from boolbert.train.dual_encoder import DualEncoder
from boolbert.train.loop import Progress, Trainer
from boolbert.train.negatives import NEGATIVES, hard_negatives
from boolbert.train.outputs import METRICS, open_run, write_json, write_record
from boolbert.train.retrieval import RetrievalSettings, RetrievalStage
from boolbert.train.retrieval_data import RetrievalData
from boolbert.train.start import Start, find_start, quiet
from boolbert.train.summary import print_summary

GATES = ("label", "learned", "cue")
TEMPERATURES = {"dot": 1.0, "cosine": 0.05}


@dataclass
class RetrievalArguments(RunArguments):
    """What stages 2 and 3 can be told besides."""

    gate: str = flag("label", "who tells a query's operators: label (the data), learned or cue (the model)")
    negatives: str = flag("random", "random; violating (documents that break the operator) or bm25 among them")
    num_negatives: int = flag(5, "negatives of each query besides those of the batch")
    hard_negatives: int = flag(2, "how many of them are violating or from bm25, if asked for")
    freeze_documents: bool = flag(False, "train the query side only, against document vectors computed once")
    corpus_negatives: int = flag(4096, "with freeze_documents: documents that every query is compared with")
    pooling: str | None = flag(None, "cls or mean; as the encoder was trained if not given")
    similarity: str | None = flag(None, "dot or cosine; as the encoder was trained if not given")
    temperature: float | None = flag(None, "divides the scores; 1 for dot, 0.05 for cosine if not given")
    query_length: int = flag(64, "tokens of a query, longer ones are cut")
    document_length: int = flag(256, "tokens of a document, longer ones are cut")
    metric: str | None = flag(None, "tells the best epoch: recall@100, or r_precision in a corpus of less than 1,000")
    eval_every: int = flag(1, "epochs between evaluations")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("gate", GATES), ("negatives", NEGATIVES)):
            self.require(name, getattr(self, name) in known, f"one of {', '.join(known)}")
        self.require("pooling", self.pooling in (None, "cls", "mean"), "cls or mean")
        self.require("similarity", self.similarity in (None, "dot", "cosine"), "dot or cosine")
        self.require("temperature", self.temperature is None or self.temperature > 0, "above 0")
        self.require("num_negatives", self.num_negatives >= 0, "at least 0")
        self.require("hard_negatives", 0 <= self.hard_negatives <= self.num_negatives, "0 to num_negatives")
        for name in ("query_length", "document_length", "eval_every", "corpus_negatives"):
            self.require(name, getattr(self, name) >= 1, "at least 1")


def run_retrieval(
    script: str, args: RetrievalArguments, read: Callable[[], RetrievalData], earlier: str | None = None
) -> None:
    accelerator = open_run(args)
    start = find_start(args.encoder, earlier)
    with accelerator.main_process_first():
        data = read()
    accelerator.print(f"{start.encoder.note}\n{data.note}")
    model = build_model(start, args)
    tokenizer = start.tokenizer()
    stage = build_stage(model, data, tokenizer, accelerator, args)
    if accelerator.is_main_process:
        write_record(Path(args.output_dir), script, args, start.record())
    progress = Trainer(stage, args, accelerator, args.eval_every).fit()
    metrics = final_metrics(stage, progress)
    if accelerator.is_main_process:
        save_run(Path(args.output_dir), model, tokenizer, args, metrics)
        print_summary(args.output_dir, metrics)
    accelerator.end_training()


def build_model(start: Start, args: RetrievalArguments) -> DualEncoder:
    """Both encoders, and how their vectors are made: as the flags say, else as the encoder was trained."""
    gate = None if args.gate == "label" else args.gate
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


def build_stage(
    model: DualEncoder, data: RetrievalData, tokenizer: Any, accelerator: Any, args: RetrievalArguments
) -> RetrievalStage:
    settings = RetrievalSettings(
        batch_size=args.batch_size,
        negatives=args.num_negatives,
        hard_negatives=args.hard_negatives,
        gate=args.gate,
        temperature=args.temperature or TEMPERATURES[model.similarity],
        query_length=args.query_length,
        document_length=args.document_length,
        freeze_documents=args.freeze_documents,
        corpus_negatives=args.corpus_negatives,
        parts=args.gradient_accumulation_steps,
        seed=args.seed,
        metric=args.metric,
    )
    hard = hard_negatives(args.negatives, data.train, data.corpus)
    return RetrievalStage(model, data, tokenizer, accelerator, settings, hard)


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
