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
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boolbert.arguments import add_document_flags
from boolbert.data import Document
from boolbert.data.own import Made, OwnDocuments, documents_of, make_queries
from boolbert.data.own.folder import QUERIES
from boolbert.data.tasks import Task, quest_splits
from boolbert.errors import TrainingError
from boolbert.files import write_json
from boolbert.tables import aligned, number
from boolbert.terminal import printable

if TYPE_CHECKING:
    from boolbert.retrieval.models import SearchModel
    from boolbert.search import BoolSearcher

EPOCHS, BATCH = 3, 64
MODEL, MADE, REPORT = "model", "queries", "fit.json"
SIDES = ("fixed", "learned")
# What is printed of the metrics; the first two tell whether training helped.
SHOWN = {
    "r_precision": "R-precision",
    "mrr@10": "MRR@10",
    "recall@20": "Recall@20",
    "recall@100": "Recall@100",
    "negated": "excluded in the top R",
}
_PROBE = 48  # texts that tell the speed of this machine


@dataclass(frozen=True)
class Fitted:
    """What `fit` leaves: a folder with a model, an index of the documents, and the queries that were made."""

    folder: Path
    model: "SearchModel"
    searcher: "BoolSearcher"
    made: Made
    before: dict[str, float]  # on held-out queries, before training
    after: dict[str, float]
    seconds: float
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rows = [
            [title, number(self.before[name]), number(self.after[name])]
            for name, title in SHOWN.items()
            if name in self.before and name in self.after
        ]
        head = f"{self.made.dev:,} held-out queries"
        return aligned([head, "before", "after"], rows)


def fit(
    documents: "str | Path | OwnDocuments | Iterable[Document | dict[str, Any] | str]",
    output_dir: str | Path | None = None,
    *,
    model: str | Path | None = None,
    document_side: str | None = None,
    queries: int = QUERIES,
    epochs: int = EPOCHS,
    seed: int = 0,
    kind: str | None = None,
    say: Callable[[str], None] = print,
) -> Fitted:
    """Train on Boolean queries made from documents; `fit(...).searcher.search("cakes without chocolate")` then asks.

    documents: a file, a folder, a Hub data set, documents in memory, or `OwnDocuments` where fields need names.
    output_dir: a new folder; without it one beside the working folder's files, NAME_fitted. model: what to start from,
    the upgraded default encoder if not given. document_side: "fixed" trains the query side only, so an index of this
    model stays valid (the default on a CPU); "learned" trains both (the default on a GPU).
    """
    began = time.perf_counter()
    own = documents if isinstance(documents, OwnDocuments) else OwnDocuments(documents)
    folder = Path(output_dir) if output_dir is not None else Path(default_folder(own.name))
    check_arguments(folder, document_side, epochs)
    say(own.preview())
    made = make_queries(own, folder / MADE, queries=queries, seed=seed, kind=kind)
    for line in (str(made), *(f"note: {note}" for note in made.notes)):
        say(line)

    import torch

    from boolbert.retrieval.encode import encode_corpus
    from boolbert.retrieval.models import load_model
    from boolbert.search import BoolSearcher, build_index
    from boolbert.train.retrieval_run import train_on_made

    side = document_side or ("learned" if torch.cuda.is_available() else "fixed")
    start = start_model(model, seed, say)
    data = quest_splits(folder / MADE)
    corpus = data.train.corpus
    steps = epochs * -(-made.train // BATCH)
    say(plan(start.encoder, data.train, data.dev, steps, side))
    with tempfile.TemporaryDirectory() as scratch:
        start_folder = Path(scratch, "start")
        start.encoder.save(str(start_folder), create_model_card=False)
        # Where documents are fixed these vectors are the index's too, and are not computed again.
        shards = encode_corpus(
            start.encoder, corpus, folder / "vectors" if side == "fixed" else Path(scratch, "before")
        )
        vectors = np.array(shards[:], dtype=np.float32)
        before = measure(start.encoder, data.dev, vectors)
        train_on_made(
            folder / MADE,
            folder / MODEL,
            start_folder,
            documents=side,
            vectors=torch.from_numpy(vectors) if side == "fixed" else None,
            summary=False,
            epochs=epochs,
            batch_size=BATCH,
            document_length=document_length(start.encoder),
            log_every=max(10, steps // 10),
            seed=seed,
        )
    shutil.rmtree(folder / MODEL / "checkpoints", ignore_errors=True)
    trained = load_model(folder / MODEL)
    index = build_index(corpus, folder, trained)
    after = measure(trained.encoder, data.dev, index.vectors)
    notes = [] if after["r_precision"] >= before["r_precision"] else [worse(folder)]
    fitted = Fitted(
        folder, trained, BoolSearcher(trained, index), made, before, after, time.perf_counter() - began, notes
    )
    write_json(folder / REPORT, {"before": before, "after": after, "seconds": round(fitted.seconds, 1)})
    return fitted


def default_folder(name: str) -> str:
    """
    >>> default_folder("shop/recipes.csv.gz"), default_folder("owner/films"), default_folder("documents")
    ('recipes_fitted', 'films_fitted', 'documents_fitted')
    """
    return f"{Path(name).name.partition('.')[0] or 'documents'}_fitted"


def check_arguments(folder: Path, document_side: str | None, epochs: int) -> None:
    """Raise before anything is read or loaded."""
    from boolbert.train.upgrade import check_is_new

    if document_side not in (None, *SIDES):
        raise TrainingError(f"--documents must be fixed or learned, got {document_side!r}")
    if epochs < 1:
        raise TrainingError(f"--epochs must be at least 1, got {epochs}")
    check_is_new(folder)


def start_model(name: str | Path | None, seed: int, say: Callable[[str], None]) -> "SearchModel":
    """The model that training starts from; a plain encoder is upgraded first."""
    from dataclasses import replace

    from boolbert.retrieval.models import default_model, load_model
    from boolbert.train.upgrade import UpgradeSettings, upgrade

    start = default_model() if name is None else load_model(name)
    say(start.note)
    if start.bert is not None:
        return start
    say("It is a plain encoder: it learns to read AND, OR and NOT first, in some minutes on a CPU")
    return replace(start, encoder=upgrade(start.encoder, settings=UpgradeSettings(seed=seed), progress=False).model)


def document_length(model: Any) -> int:
    """The tokens of a document that the model reads."""
    from boolbert.retrieval.models import side_modules

    return min(int(getattr(side_modules(model, "document")[0], "max_seq_length", None) or 256), 512)


def plan(model: Any, train: Task, dev: Task, steps: int, side: str) -> str:
    """What will be done, and how long it will take: measured on a few texts, a step backwards as two forwards."""
    from boolbert.retrieval.batches import encode_inputs

    def seconds_of(texts: Sequence[str], task: str) -> float:
        chosen = [texts[row] for row in np.linspace(0, len(texts) - 1, min(_PROBE, len(texts))).astype(int)]
        encode_inputs(model, chosen[:8], task, 32)
        start = time.perf_counter()
        encode_inputs(model, chosen, task, 32)
        return (time.perf_counter() - start) / len(chosen)

    corpus = train.corpus
    count = len(corpus)
    document = seconds_of([corpus.text(row) for row in range(0, count, max(1, count // 200))], "document")
    query = seconds_of(train.texts, "query")
    rounds = 1 if side == "fixed" else 3  # before, to evaluate, and for the index
    seconds = rounds * count * document + 3 * len(dev) * query + 3 * steps * BATCH * query
    if side == "learned":
        seconds += 3 * steps * min(6 * BATCH, count) * document
    what = "the query side learns, document vectors stay" if side == "fixed" else "both sides learn"
    return (
        f"Training: {steps:,} steps on {len(train):,} queries, {what}; {count:,} documents are encoded "
        f"{'once' if rounds == 1 else f'{rounds} times'}. About {duration(seconds)} on this {model.device.type.upper()}"
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


def measure(model: Any, task: Task, vectors: Any) -> dict[str, float]:
    """The held-out queries' metrics."""
    from boolbert.retrieval.batches import encode_inputs
    from boolbert.retrieval.metrics import means, quest_metrics, search_depth
    from boolbert.retrieval.neighbours import top_k

    _, rows = top_k(encode_inputs(model, task.texts, "query", 32), vectors, search_depth(task))
    return means(quest_metrics(task, rows))


def worse(folder: Path) -> str:
    return (
        "training did not help on the held-out queries; `boolbert index` makes an index for the model as it was, and "
        f"more or longer documents, or --atoms, make better queries (look at: boolbert data summary {folder / MADE})"
    )


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
    parser.add_argument("--queries", type=int, default=QUERIES, help="how many to make (%(default)s)")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes over them (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same model")
    options = parser.parse_args(words)
    fitted = fit(
        documents_of(options),
        options.output_dir,
        model=options.model,
        document_side=options.document_side,
        queries=options.queries,
        epochs=options.epochs,
        seed=options.seed,
        kind=options.kind,
    )
    folder = printable(str(fitted.folder))
    print(f"\n{fitted}\n")
    for note in fitted.notes:
        print(f"note: {note}")
    print(f"{folder}: model and index, {duration(fitted.seconds)}; ready for: boolbert search QUERY --index {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
