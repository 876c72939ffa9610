"""Evaluate one model on one task and write its folder: what quest.py and boolquestions.py share."""

from dataclasses import dataclass
from pathlib import Path

from boolbert.core.arguments import flag
from boolbert.core.errors import EvaluationError
from boolbert.data.tasks import Task
from boolbert.eval.pictures import draw_all
from boolbert.eval.report import write_report
from boolbert.eval.results import measure, write_qrels, write_result
from boolbert.eval.systems import Dense, Faiss
from boolbert.eval.tables import breakdown
from boolbert.retrieval.encode import encode_corpus
from boolbert.retrieval.metrics import Metrics
from boolbert.retrieval.models import OPERATOR_SOURCES, bool_bert, load_encoder


@dataclass
class SingleArguments:
    """The flags of both scripts."""

    model: str | None = flag(None, "model folder or Hub id; all-MiniLM-L6-v2 if not given")
    data: str | None = flag(None, "data folder or Hub data set id; the embedded countries")
    output_dir: str = flag("runs/evaluation", "folder for the results")
    vectors: str | None = flag(None, "folder of the encoded corpus; output_dir/vectors")
    gate: str | None = flag(
        None, "of a Bool-BERT: given (operators from the data), learned or cue; the model's own setting"
    )
    faiss: str | None = flag(None, "search with this FAISS index, such as HNSW32,Flat, instead of exactly")
    limit: int | None = flag(None, "only the first N queries")
    device: str | None = flag(None, "cpu, cuda, ...; the best there is")
    precision: str = flag("float32", "of the model: float32, float16 or bfloat16")
    storage: str = flag("float32", "of the document vectors: float32 or float16")
    batch_size: int | None = flag(None, "documents of full length in a batch")


def evaluate_model(args: SingleArguments, task: Task, metrics: Metrics, metric: str) -> None:
    """Encode, search, score, write and print. `metric` is the one in the picture by group."""
    if args.gate not in (None, *OPERATOR_SOURCES):
        raise EvaluationError(f"--gate must be one of {', '.join(OPERATOR_SOURCES)}, got {args.gate!r}")
    print(f"{task.name}, {task.split}: {len(task):,} queries, {len(task.corpus):,} documents")
    folder = Path(args.output_dir)
    model = load_encoder(args.model, device=args.device, precision=args.precision)
    place = Path(args.vectors) if args.vectors else folder / "vectors"
    vectors = encode_corpus(model, task.corpus, place, storage=args.storage, batch_size=args.batch_size)
    bert = bool_bert(model)
    gate = args.gate or (bert.config.gate if bert is not None else None)
    name = (args.model or "default encoder") + (f", gate {gate}" if gate else "")
    system = Dense(name, model, vectors, gate)
    if args.faiss is not None:
        system = Faiss(f"{name}, FAISS {args.faiss}", model, vectors, gate, factory=args.faiss)
    result = measure(system, task, metrics)
    summary = write_result(folder, result, task)
    write_qrels(folder / "qrels.trec", task)
    draw_all([summary], folder / "pictures", metric)
    write_report(folder, [summary], [result], task)
    kind = next((name for name in ("template", "operator") if name in task.groups), "group")
    print(f"\n{breakdown(summary, kind)}\n\n{folder}: metrics.json, per_query.jsonl, run.trec, pictures, report.html")
