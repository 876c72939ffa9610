"""Turn any BERT-based sentence-transformers model into one that obeys NOT, in minutes on a CPU.

    boolbert upgrade MODEL --output_dir DIR

Only a reader is added and learns, from 4,000 queries of `data/reading` in which people have marked what they want and
exclude; it needs no labels of yours. That of all-MiniLM-L6-v2 comes with the package; --epochs 8 learns it again.
Document vectors, and the vectors of queries that exclude nothing, stay the same to the bit: an index stays valid.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from boolbert.configuration_boolbert import LITE, POOLINGS, UPGRADED
from boolbert.core.arguments import Parser
from boolbert.core.checks import check_count, check_flags, check_whole
from boolbert.core.errors import TrainingError, run_script
from boolbert.core.files import check_folder, named_if_full, whole_folder
from boolbert.core.progress import shown_progress, shown_step
from boolbert.core.tables import aligned, number
from boolbert.data.tasks import Task, quest_task
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.calibration import near_cosine, unrelated_texts
from boolbert.retrieval.metrics import means, quest_metrics, search_depth
from boolbert.retrieval.models import bool_bert, load_encoder, no_warnings, prompt_of, take_shipped
from boolbert.retrieval.neighbours import top_k
from boolbert.train.outputs import ARGUMENTS, METRICS, git_commit, versions, write_json
from boolbert.train.query_reader import Arguments, steps_of, teach, training_queries
from boolbert.train.query_reader import measure as measure_reading

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

EPOCHS = 3  # docs/training.md has what more give
SHOWN = {"r_precision": "R-precision", "mrr@10": "MRR@10", "negated": "excluded in the top R"}  # of NOT queries
PENALTY_ABOVE_SHARE = 0.392  # where `penalty_above` lies between the cosine of unrelated texts, 0, and of equal ones, 1


@dataclass(frozen=True)
class Upgrade:
    """An upgraded model, and what it reached: how well it reads, and the countries before and after."""

    model: "SentenceTransformer"
    metrics: dict[str, Any]


@torch.random.fork_rng()
def upgrade(
    model: "str | Path | SentenceTransformer | None" = None,
    output_dir: str | Path | None = None,
    *,
    epochs: int | None = None,
    seed: int = 0,
    lite: bool = False,
    device: str | None = None,
    progress: bool = True,
) -> Upgrade:
    """Upgrade a model: a folder, a Hub id, a loaded SentenceTransformer, or all-MiniLM-L6-v2 if none is given.

    epochs: times that each query is learned from; if not given, the package's reader where it fits the encoder, else 3.
    lite: add half of the parameters only.
    """
    from boolbert.sentence_boolbert import BoolBertSentenceTransformer

    if epochs is not None:
        check_count("epochs", epochs)
    check_whole("seed", seed)
    check_flags(lite=lite, progress=progress)
    folder = None if output_dir is None else Path(output_dir)
    if folder is not None:
        check_is_new(folder)
    began = time.perf_counter()
    named = None if model is None else str(model)
    with shown_step("opening the encoder", shown=progress):
        is_loaded = model is not None and not isinstance(model, str | Path)
        source: Any = model if is_loaded else load_encoder(named, device=device, quiet=True)
    check_can_be_upgraded(source, named or "the model")
    torch.manual_seed(seed)
    form = {**UPGRADED, **(LITE if lite else {})}
    with no_warnings(), named_if_full(tempfile.gettempdir()):
        upgraded = BoolBertSentenceTransformer.from_sentence_transformer(
            source, share=True, query_length=None, device=str(source.device), **form
        )
    metrics: dict[str, Any] = {"reading": give_reader(upgraded, epochs, seed, progress=progress)}
    with shown_step("measuring it on the countries", shown=progress):
        set_threshold(upgraded)
        task = quest_task(None, "dev", progress=False)
        # An upgrade leaves these vectors as they are.
        documents = encode_inputs(source, task.corpus.texts(), "document", 32)
        excluding = [row for row, question in enumerate(task.questions) if "not" in (question.operators or ())]
        metrics["countries"] = {}
        for when, each in (("before", source), ("after", upgraded)):
            found = measure(each, task, documents, np.array(excluding))
            metrics["countries"][when] = {name: found[name] for name in SHOWN}
    metrics["seconds"] = round(time.perf_counter() - began, 1)
    if folder is not None:
        arguments = {"encoder": named, "data": None, "output_dir": str(folder)}
        save(upgraded, folder, {**arguments, "epochs": epochs, "seed": seed, "lite": lite}, metrics)
    return Upgrade(upgraded, metrics)


def check_is_new(folder: Path) -> None:
    if check_folder(folder).exists() and any(folder.iterdir()):
        raise TrainingError(f"--output_dir {folder}: holds files already; give a new folder")


def check_can_be_upgraded(model: "SentenceTransformer", name: str) -> None:
    """Raise for an encoder that Boolean-aware attention cannot be added to."""
    from transformers import BertModel

    if bool_bert(model) is not None:
        raise TrainingError(f"{name}: is a Bool-BERT already; upgrade takes a plain encoder")
    first, *rest = model.children()
    encoder = getattr(first, "model", None)
    pooling = getattr(rest[0], "pooling_mode", None) if rest else None
    found = None
    if not isinstance(encoder, BertModel):
        found = f"is no BERT but {type(first if encoder is None else encoder).__name__}"
    elif pooling not in POOLINGS:
        found = f"pools by {pooling}, not by {' or '.join(POOLINGS)}"
    if found:
        raise TrainingError(
            f"{name}: {found}, and Boolean attention is BERT's: it cannot be upgraded. Used as it is it "
            "obeys too: boolbert index DOCS --output DIR --model MODEL, or in Python boolbert.obey(MODEL)"
        )


def give_reader(
    model: "SentenceTransformer", epochs: int | None = None, seed: int = 0, *, progress: bool
) -> dict[str, Any]:
    """Give the model's Bool-BERT a reader, the package's or one that learns; how well it reads queries."""
    bert: Any = bool_bert(model)
    prompt = prompt_of(model, "query") or ""
    if epochs is None and not prompt and take_shipped(bert):
        if progress:
            print("the reader of this encoder comes with the package", file=sys.stderr, flush=True)
    else:
        args = Arguments(epochs=epochs or EPOCHS, rank=bert.config.reader_rank, seed=seed)
        steps = steps_of(args, training_queries())
        if progress:
            print(f"learning to read: {steps:,} steps, some minutes on a CPU", file=sys.stderr, flush=True)
        with shown_progress("learning to read", steps, "step", shown=progress) as advance:
            teach(bert, model.tokenizer, args, prompt=prompt, on_step=advance)
    with shown_step("measuring how it reads", shown=progress):
        return measure_reading(bert, model.tokenizer, prompt)


def set_threshold(model: "SentenceTransformer") -> None:
    """Set the cosine above which a document gets a penalty: encoders differ in how alike unrelated texts are."""
    vectors = encode_inputs(model, unrelated_texts(), "document", 32)
    bert: Any = bool_bert(model)
    bert.config.penalty_above = round(near_cosine(vectors, PENALTY_ABOVE_SHARE), 2)
    bert.composer.penalty_above.data.fill_(bert.config.penalty_above)


def measure(model: Any, task: Task, documents: Any, chosen: Any) -> dict[str, float]:
    """The metrics of a task's queries in the chosen rows."""
    _, rows = top_k(encode_inputs(model, task.texts, "query", 32), documents, search_depth(task))
    return means(quest_metrics(task, rows), chosen)


def save(model: "SentenceTransformer", folder: Path, arguments: dict[str, Any], metrics: dict[str, Any]) -> None:
    """The model, for AutoModel and SentenceTransformer, and how it was made."""
    record = {"script": "upgrade", "arguments": arguments, "start": {"encoder": arguments["encoder"]}}
    with whole_folder(folder) as aside:
        write_json(aside / ARGUMENTS, {**record, "versions": versions(), "git_commit": git_commit()})
        with no_warnings():
            model.save(str(aside), create_model_card=False)
        write_json(aside / METRICS, {**metrics, "seed": arguments["seed"], "arguments": arguments})


def main(words: Sequence[str] | None = None) -> None:
    parser = Parser(prog="boolbert upgrade", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", nargs="?", help="folder or Hub id; all-MiniLM-L6-v2 if not given")
    parser.add_argument("--output_dir", "--output-dir", metavar="DIR", help="a new folder for the upgraded model")
    parser.add_argument(
        "--epochs",
        type=int,
        help=f"times that each query is learned from; {EPOCHS} if not given, where the package has no reader",
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same model")
    parser.add_argument(
        "--lite", action="store_true", help="half of the added parameters, nearly as good (docs/results.md)"
    )
    parser.add_argument("--device", help="cpu, cuda, ...; the best there is if not given")
    args = parser.parse_args(words)
    if args.output_dir is None:
        raise TrainingError("--output_dir must be given: a new folder for the upgraded model")
    if args.epochs is not None and args.epochs < 1:
        raise TrainingError(f"--epochs must be at least 1, got {args.epochs}")
    options = {"epochs": args.epochs, "seed": args.seed, "lite": args.lite, "device": args.device}
    upgraded = upgrade(args.model, args.output_dir, **options)
    print(
        f"{table(upgraded.metrics)}\n\n{args.output_dir}: ready for boolbert search, index and publish "
        f"({upgraded.metrics['seconds']:.0f} s)"
    )


def table(metrics: dict[str, Any]) -> str:
    """What an upgrade reached, for a terminal."""
    found = metrics["reading"]
    reading = [["excluded words, F1", number(found["F1"])], ["found exactly", found["exactly"]]]
    reading += [["nothing is excluded, and read so", found["silent"]]]
    moments = ("before", "after")
    countries = [[SHOWN[name], *(number(metrics["countries"][when][name]) for when in moments)] for name in SHOWN]
    tables = (["Queries of other authors", "read"], reading), (["Countries, NOT queries", *moments], countries)
    return "\n\n".join(aligned(header, rows) for header, rows in tables)


if __name__ == "__main__":
    run_script(main)
