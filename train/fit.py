"""From documents alone to a search that obeys AND, OR and NOT: no labels, one command.

boolbert fit recipes.csv                                    # writes recipes_fitted: a model, an index, the queries
boolbert search "cakes without chocolate" --index recipes_fitted
boolbert fit films.jsonl --title name --text plot --output_dir films_fitted --documents learned

Boolean queries are made from the documents, and a model that obeys NOT already is trained on them. What it gains is
measured on queries whose words and names training never saw.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boolbert.core.arguments import add_document_flags
from boolbert.core.errors import INTERRUPTED, BoolBertError, Interrupted, TrainingError
from boolbert.core.files import read_object, whole_folder, write_json
from boolbert.core.tables import aligned, number
from boolbert.core.terminal import printable
from boolbert.data import Document
from boolbert.data.own import OwnDocuments, QueryFolder, documents_of, make_queries
from boolbert.data.own.folder import QUERIES, check_unchanged
from boolbert.data.tasks import Task, quest_splits

if TYPE_CHECKING:
    from boolbert.retrieval.index import Index
    from boolbert.retrieval.int8_encoder import Int8Encoder
    from boolbert.retrieval.models import SearchModel


class Schedule(NamedTuple):
    queries: int
    epochs: int
    batch_size: int


# Fixed documents are all compared with, however small the batch; those that learn are compared with the batch's. On a
# CPU a third of the queries gives most of the gain (docs/performance.md).
SCHEDULES = {"fixed": Schedule(2000, 1, 16), "learned": Schedule(QUERIES, 3, 64)}
MODEL, MADE, START, REPORT = "model", "queries", "start", "fit.json"
# The metrics that are printed.
SHOWN = {
    "r_precision": "R-precision",
    "mrr@10": "MRR@10",
    "recall@20": "Recall@20",
    "recall@100": "Recall@100",
    "negated": "excluded in the top R",
}
# Of train/quest.py. Users' queries come without labels, so the gate finds the operators.
FLAGS: dict[str, Any] = {"negatives": "violating", "gate": "cue", "branches": 4, "tracker": "none", "keep_last": 1}
# The share of the weights before training in the saved model's: it can still do what it could (docs/own_documents.md).
ORIGINAL_WEIGHT = 0.7
FEW = 30  # fewer held-out queries than this say little
_PROBE = 16  # texts that are encoded to estimate how long it will take


@dataclass(frozen=True)
class Fitted:
    """What `fit` leaves: a folder with a model, an index of the documents, and the queries that were made."""

    folder: Path
    model: "SearchModel"
    index: "Index"
    made: QueryFolder
    before: dict[str, float]  # on held-out queries, before training, by vectors: no document is asked what it says
    after: dict[str, float]
    seconds: float
    notes: list[str]

    def __str__(self) -> str:
        shown = [name for name in SHOWN if name in self.before]
        rows = [[SHOWN[name], number(self.before[name]), number(self.after[name])] for name in shown]
        head = f"{self.made.dev:,} held-out queries, by vectors alone"
        return "\n".join([aligned([head, "before", "after"], rows), *(f"note: {note}" for note in self.notes)])


def fit(
    documents: "str | Path | OwnDocuments | Iterable[Document | dict[str, Any] | str]",
    output_dir: str | Path | None = None,
    *,
    model: str | Path | None = None,
    document_side: str | None = None,
    queries: int | None = None,
    epochs: int | None = None,
    seed: int = 0,
    kind: str | None = None,
    original_weight: float = ORIGINAL_WEIGHT,
    say: Callable[[str], None] = print,
) -> Fitted:
    """Train on Boolean queries made from documents; `BoolSearcher(fitted.model, fitted.index)` then asks.

    documents: a file, a folder, a Hub data set, documents in memory, or `OwnDocuments` where fields need names.
    output_dir: a new folder; without it one beside the working folder's files, NAME_fitted. model: what to start from,
    the upgraded default encoder if not given. document_side: "fixed" trains the query side only, so an index of this
    model stays valid (the default on a CPU); "learned" trains both (the default on a GPU). original_weight: the
    share of the weights before training in the saved model; less is better on your documents, more on others.
    """
    began = time.perf_counter()
    own = documents if isinstance(documents, OwnDocuments) else OwnDocuments(documents)
    folder = Path(output_dir) if output_dir is not None else Path(default_folder(own.name))
    settings: dict[str, Any] = {"queries": queries, "epochs": epochs, "seed": seed, "kind": kind}
    settings |= {"model": None if model is None else str(model), "original_weight": original_weight}
    settings |= {"documents": own.name, "document_side": document_side}
    settings |= {"layout": str(own.layout), "passages": own.passages is not None}
    check_arguments(settings)
    begun = is_begun(folder, settings)
    say(own.preview())

    import torch

    from boolbert.retrieval.encode import encode_corpus
    from boolbert.retrieval.encoders import resolve_encoder
    from boolbert.retrieval.index import VECTORS, build_index
    from boolbert.retrieval.int8_encoder import int8_encoder
    from boolbert.retrieval.metrics import quest_metrics
    from boolbert.retrieval.models import load_model
    from boolbert.retrieval.shards import INT8, precision_of
    from boolbert.train.retrieval import RetrievalArguments
    from boolbert.train.retrieval_run import run_retrieval
    from boolbert.train.upgrade import measure

    side = document_side or ("learned" if torch.cuda.is_available() else "fixed")
    usual = SCHEDULES[side]
    epochs = usual.epochs if epochs is None else epochs
    made = queries_of(own, folder, settings, usual.queries if queries is None else queries)
    for line in (str(made), *(f"note: {note}" for note in made.notes)):
        say(line)
    start = start_model(folder, model, seed, say)
    data = quest_splits(folder / MADE)
    corpus = data.train.corpus
    steps = epochs * -(-made.train // usual.batch_size)
    # Where documents are fixed these vectors are the index's too, and are not computed again.
    place = folder / VECTORS if side == "fixed" else folder / START / VECTORS
    precision = precision_of(place)
    int8 = int8_encoder(start.encoder, precision, place)
    say(plan(start.encoder, data.train, data.dev, steps, side, int8 if side == "fixed" else None))
    shards = encode_corpus(int8 or start.encoder, corpus, place, mixed=precision == INT8)
    vectors = np.array(shards[:], dtype=np.float32)
    before = measure(start.encoder, data.dev, vectors)
    args = RetrievalArguments(
        data=str(folder / MADE),
        output_dir=str(folder / MODEL),
        encoder=str(folder / START),
        resume=begun,
        freeze_documents=side == "fixed",
        # Made queries need little exclusion: against fixed documents it would become too weak.
        learn_exclusion=side == "learned",
        epochs=epochs,
        eval_every=epochs,  # the held-out queries are for measuring: none of the epochs is chosen by them
        batch_size=usual.batch_size,
        document_length=document_length(start.encoder),
        mixed_precision="bf16" if torch.cuda.is_available() else "no",
        log_every=max(10, steps // 10),
        seed=seed,
        **FLAGS,
    )
    encoder = resolve_encoder(settings["model"])
    run_retrieval(
        "fit",
        args,
        lambda: data,
        quest_metrics,
        vectors=torch.from_numpy(vectors) if side == "fixed" else None,
        origin={"encoder": encoder.path, "kind": encoder.kind},
        original_weight=original_weight,
    )
    trained = load_model(folder / MODEL)
    check_unchanged(own, folder / MADE)  # training takes hours: the figures are those of the documents as they were
    index = build_index(own, folder, trained)  # with its ids and fields
    after = measure(trained.encoder, data.dev, index.vectors)
    for leftover in (folder / START, folder / MODEL / "checkpoints"):
        shutil.rmtree(leftover, ignore_errors=True)
    seconds = time.perf_counter() - began
    write_json(folder / REPORT, {"settings": settings, "before": before, "after": after, "seconds": round(seconds, 1)})
    notes = notes_of(folder, made, before, after, original_weight)
    return Fitted(folder, trained, index, made, before, after, seconds, notes)


def default_folder(name: str) -> str:
    """
    >>> default_folder("shop/recipes.csv.gz"), default_folder("owner/films"), default_folder("documents")
    ('recipes_fitted', 'films_fitted', 'documents_fitted')
    """
    return f"{Path(name).name.partition('.')[0] or 'documents'}_fitted"


def check_arguments(settings: dict[str, Any]) -> None:
    """Raise before anything is loaded or written."""
    if settings["document_side"] not in (None, *SCHEDULES):
        raise TrainingError(f"--documents must be fixed or learned, got {settings['document_side']!r}")
    if (epochs := settings["epochs"]) is not None and epochs < 1:
        raise TrainingError(f"--epochs must be at least 1, got {epochs}")
    if not 0 <= (share := settings["original_weight"]) < 1:
        raise TrainingError(f"--original_weight must be at least 0 and below 1, got {share}")


def is_begun(folder: Path, settings: dict[str, Any]) -> bool:
    """Whether the folder holds this very fit, cut off before its end; a folder with anything else is refused."""
    from boolbert.train.upgrade import check_is_new

    if not (folder / REPORT).is_file():
        check_is_new(folder)
        return False
    report = read_object(folder / REPORT, TrainingError)
    if "after" in report:
        raise TrainingError(f"--output_dir {folder}: holds a finished fit; give a new folder, or delete this one")
    if report.get("settings") != settings:
        raise TrainingError(
            f"--output_dir {folder}: holds a fit that was cut off, with other flags; give those, or a new folder"
        )
    return True


def queries_of(own: OwnDocuments, folder: Path, settings: dict[str, Any], count: int) -> QueryFolder:
    """The queries that an earlier call has made of these documents, else new ones. Where none can be made, nothing is
    left behind."""
    if (folder / MADE).exists():
        check_unchanged(own, folder / MADE)
        return QueryFolder.read(folder / MADE)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / REPORT, {"settings": settings})
    try:
        return make_queries(own, folder / MADE, queries=count, seed=settings["seed"], kind=settings["kind"])
    except BoolBertError:
        (folder / REPORT).unlink()
        folder.rmdir()
        raise


def start_model(folder: Path, name: str | Path | None, seed: int, say: Callable[[str], None]) -> "SearchModel":
    """The model that training starts from, kept in the folder until the end; a plain encoder is upgraded first."""
    from boolbert.retrieval.models import default_model, load_model
    from boolbert.train.upgrade import upgrade

    if (folder / START).exists():
        return load_model(folder / START)
    start = default_model() if name is None else load_model(name)
    say(start.note)
    if start.bert is None:
        say("It is a plain encoder: it learns to read AND, OR and NOT first, in some minutes on a CPU")
        start = replace(start, encoder=upgrade(start.encoder, seed=seed).model)
    with whole_folder(folder / START) as aside:
        start.encoder.save(str(aside), create_model_card=False)
    return start


def document_length(model: Any) -> int:
    """The tokens of a document that the model reads."""
    from boolbert.retrieval.models import side_modules

    return min(int(getattr(side_modules(model, "document")[0], "max_seq_length", None) or 256), 512)


def plan(model: Any, train: Task, dev: Task, steps: int, side: str, int8: "Int8Encoder | None" = None) -> str:
    """What will be done, and how long it will take: timed on a few texts; a backward pass counts as two forward.

    int8: what encodes the documents, where the model itself does not.
    """
    from boolbert.retrieval.batches import encode_inputs

    def seconds_of(texts: Sequence[str], task: str) -> float:
        chosen = [texts[row] for row in np.linspace(0, len(texts) - 1, min(_PROBE, len(texts))).astype(int)]
        encode = partial(encode_inputs, model, task=task, batch_size=32) if int8 is None or task == "query" else int8
        encode(chosen[:2])
        start = time.perf_counter()
        encode(chosen)
        return (time.perf_counter() - start) / len(chosen)

    corpus = train.corpus
    count = len(corpus)
    document = seconds_of(corpus.texts(range(0, count, max(1, count // 200))), "document")
    query = seconds_of(train.texts, "query")
    batch_size = SCHEDULES[side].batch_size
    rounds = 1 if side == "fixed" else 3  # before, to evaluate, and for the index
    seconds = rounds * count * document + 3 * len(dev) * query + 3 * steps * batch_size * query
    if side == "learned":
        seconds += 3 * steps * min(6 * batch_size, count) * document
    what = "the query side learns, document vectors stay" if side == "fixed" else "both sides learn"
    times = "once" if rounds == 1 else f"{rounds} times"
    machine = "CPU" if model.device.type == "cpu" else "GPU"
    return (
        f"Training: {steps:,} steps on {len(train):,} queries, {what}; {count:,} documents are encoded {times}. "
        f"About {duration(seconds)} on this {machine}"
    )


def duration(seconds: float) -> str:
    """
    >>> duration(40), duration(100), duration(5000)
    ('1 minute', '2 minutes', '1.4 hours')
    """
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return f"{minutes} minute{'s' if minutes > 1 else ''}"
    return f"{seconds / 3600:.1f} hours"


def notes_of(
    folder: Path, made: QueryFolder, before: dict[str, float], after: dict[str, float], original_weight: float
) -> list[str]:
    """What the user should know about the figures."""
    notes = []
    if made.dev < FEW:
        notes.append(f"{made.dev} held-out queries are too few for figures that can be relied on")
    worse = [SHOWN[name] for name in worse_lines(before, after)]
    if worse:
        remedy = (
            f"look at what it learned from ({folder / MADE / 'train.jsonl'}), bring more documents or name fields "
            "with --atoms; `boolbert index` makes an index for the model as it was"
            if SHOWN["r_precision"] in worse
            else f"--original_weight {(1 + original_weight) / 2:.2g} and a new folder keep more of the model as it was"
        )
        notes.append(f"after training it is worse in {' and '.join(worse)} than before; {remedy}")
    return notes


def worse_lines(before: dict[str, float], after: dict[str, float]) -> list[str]:
    """The lines of the table in which a figure is worse after training, as far as its digits show.

    >>> before = {"mrr@10": 0.5, "recall@20": 0.5, "negated": 0.1}
    >>> worse_lines(before, {"mrr@10": 0.4, "recall@20": 0.4999, "negated": 0.2})
    ['mrr@10', 'negated']
    """
    gains = {name: round(after[name], 3) - round(before[name], 3) for name in SHOWN if name in before}
    return [name for name, gain in gains.items() if (gain > 0 if name == "negated" else gain < 0)]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="boolbert fit", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "documents", metavar="DOCUMENTS", help="a .jsonl, .csv, .tsv or .parquet file, a folder, a Hub id"
    )
    parser.add_argument("--output_dir", metavar="DIR", help="a new folder; NAME_fitted if not given")
    add_document_flags(parser)
    parser.add_argument("--kind", metavar="NOUN", help="what the documents are called in queries; found if not given")
    parser.add_argument("--model", metavar="DIR", help="folder or Hub id; the default encoder, upgraded, if not given")
    parser.add_argument(
        "--documents",
        dest="document_side",
        metavar="fixed|learned",
        help="fixed: only the query side learns (default on a CPU); learned: both sides (default on a GPU)",
    )
    parser.add_argument(
        "--queries", type=int, help="how many to make (2000 with fixed documents, 6000 with learned ones)"
    )
    parser.add_argument("--epochs", type=int, help="passes over them (1 with fixed documents, 3 with learned ones)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same model")
    parser.add_argument(
        "--original_weight",
        type=float,
        default=ORIGINAL_WEIGHT,
        metavar="SHARE",
        help=f"share of the weights before training in the saved model ({ORIGINAL_WEIGHT}): less fits your documents "
        "better, more keeps what the model could do before",
    )
    options = parser.parse_args(words)
    names = ("model", "document_side", "queries", "epochs", "seed", "kind", "original_weight")
    try:
        fitted = fit(documents_of(options), options.output_dir, **{name: getattr(options, name) for name in names})
    except Interrupted:
        print("stopped; the same command goes on where it was", file=sys.stderr)
        return INTERRUPTED
    folder = printable(str(fitted.folder))
    print(f"\n{fitted}\n")
    print(f"{folder}: model and index, {duration(fitted.seconds)}; ready for: boolbert search QUERY --index {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
