"""Turn any BERT-based sentence-transformers model into one that obeys NOT, in minutes on a CPU.

    boolbert upgrade MODEL --output_dir DIR

Only Boolean-aware attention learns, from made sentences whose cues and scopes are known; it needs no labels of yours.
For all-MiniLM-L6-v2 it was learned before, and comes with the package; --sentences 24000 learns it again.
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

from boolbert.boolean import OPERATORS
from boolbert.configuration_boolbert import LITE, POOLINGS, UPGRADED
from boolbert.core.errors import TrainingError, run_script
from boolbert.core.files import named_if_full, whole_file, whole_folder
from boolbert.core.progress import shown_progress
from boolbert.core.tables import aligned, number
from boolbert.data import Quest
from boolbert.data.sentences import Sentence, labelled_sentences
from boolbert.data.tasks import Task, quest_task
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.calibration import near_cosine, unrelated_texts
from boolbert.retrieval.metrics import means, quest_metrics, search_depth
from boolbert.retrieval.models import bool_bert, embeddings_hash, load_encoder, load_reading, no_warnings
from boolbert.retrieval.neighbours import top_k
from boolbert.train.outputs import ARGUMENTS, METRICS, git_commit, versions, write_json
from boolbert.train.reading import (
    MAX_LENGTH,
    ReadingSettings,
    content_words,
    label_sentences,
    learn_to_read,
    measure_reading,
    parsed_sentence,
)

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SENTENCES = 24_000
SHOWN = {"r_precision": "R-precision", "mrr@10": "MRR@10", "negated": "excluded in the top R"}  # of NOT queries
NEAR = 0.392  # where the penalty's threshold lies between unrelated texts, 0, and equal ones, 1


@dataclass(frozen=True)
class Upgrade:
    """An upgraded model, and what it reached: F1 of cues, scopes and gates, and the countries before and after."""

    model: "SentenceTransformer"
    metrics: dict[str, Any]


@torch.random.fork_rng()
def upgrade(
    model: "str | Path | SentenceTransformer | None" = None,
    output_dir: str | Path | None = None,
    *,
    sentences: int | None = None,
    seed: int = 0,
    lite: bool = False,
    device: str | None = None,
    progress: bool = True,
) -> Upgrade:
    """Upgrade a model: a folder, a Hub id, a loaded SentenceTransformer, or all-MiniLM-L6-v2 if none is given.

    sentences: how many made ones to learn from; without them, the reading of the package where it fits the encoder.
    lite: add a fourth of the parameters only.
    """
    from boolbert.sentence_boolbert import BoolBertSentenceTransformer

    folder = None if output_dir is None else Path(output_dir)
    if folder is not None:
        check_is_new(folder)
    began = time.perf_counter()
    named = None if model is None else str(model)
    source = (
        load_encoder(named, device=device, quiet=True) if model is None or isinstance(model, (str, Path)) else model
    )
    check_can_be_upgraded(source, named or "the model")
    torch.manual_seed(seed)
    form = {**UPGRADED, **(LITE if lite else {})}
    with no_warnings(), named_if_full(tempfile.gettempdir()):
        upgraded = BoolBertSentenceTransformer.from_sentence_transformer(
            source, share=True, query_length=None, device=str(source.device), **form
        )
    metrics = train_reading(upgraded, sentences, seed, lite, progress=progress)
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
        save(upgraded, folder, {**arguments, "sentences": sentences, "seed": seed, "lite": lite}, metrics)
    return Upgrade(upgraded, metrics)


def check_is_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
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


def train_reading(
    model: "SentenceTransformer", sentences: int | None = None, seed: int = 0, lite: bool = False, *, progress: bool
) -> dict[str, Any]:
    """Teach the model's Bool-BERT to read; what it reaches on held-out sentences of other words."""
    bert: Any = bool_bert(model)
    count = sentences or SENTENCES
    if (sentences, seed, lite) == (None, 0, False) and load_reading(bert):
        if progress:
            print("The reading of this encoder comes with the package", file=sys.stderr, flush=True)
    else:
        data = label_sentences(model.tokenizer, training_sentences(count, seed), MAX_LENGTH)
        reading = ReadingSettings(seed=seed)
        steps = reading.epochs * -(-len(data) // reading.batch_size)
        if progress:
            print(f"Learning to read: {steps:,} steps, some minutes on a CPU", file=sys.stderr, flush=True)
        with shown_progress("Learning to read", steps, "step", shown=progress) as advance:
            words = content_words(model.tokenizer)
            learn_to_read(bert, data, reading, word_ids=words, on_step=lambda losses: advance(1))
    held_out = labelled_sentences(max(200, count // 10), seed=seed, split="dev")
    return measure_reading(bert, label_sentences(model.tokenizer, held_out, MAX_LENGTH))


def set_threshold(model: "SentenceTransformer") -> None:
    """Set the cosine above which a document gets a penalty: encoders differ in how alike unrelated texts are."""
    vectors = encode_inputs(model, unrelated_texts(), "document", 32)
    bert: Any = bool_bert(model)
    bert.config.penalty_above = round(near_cosine(vectors, NEAR), 2)
    bert.composer.penalty_above.data.fill_(bert.config.penalty_above)


def training_sentences(count: int, seed: int) -> list[Sentence]:
    """Made sentences, and the embedded countries' training queries and descriptions as the cue parser reads them."""
    quest = Quest(progress=False)
    texts = [query.query for query in quest.queries("train")]
    texts += [sentence for text in quest.corpus.texts() for sentence in text.split(". ")[:2]]
    return [*labelled_sentences(count, seed=seed, split="train"), *map(parsed_sentence, texts)]


def measure(model: Any, task: Task, documents: Any, chosen: Any = slice(None)) -> dict[str, float]:
    """The metrics of a task's queries, or of those in the chosen rows."""
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
    parser = argparse.ArgumentParser(
        prog="boolbert upgrade", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL", nargs="?", help="folder or Hub id; all-MiniLM-L6-v2 if not given")
    parser.add_argument("--output_dir", "--output-dir", metavar="DIR", help="a new folder for the upgraded model")
    parser.add_argument(
        "--sentences",
        type=int,
        help=f"made sentences to learn from; {SENTENCES:,} if not given and the package has no reading of the encoder",
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same model")
    parser.add_argument(
        "--lite", action="store_true", help="a fourth of the added parameters, nearly as good (docs/results.md)"
    )
    parser.add_argument("--device", help="cpu, cuda, ...; the best there is if not given")
    parser.add_argument(
        "--reading_file", metavar="FILE", help="also write what was learned to this file, as the package ships it"
    )
    args = parser.parse_args(words)
    if args.output_dir is None:
        raise TrainingError("--output_dir must be given: a new folder for the upgraded model")
    if args.lite and args.reading_file is not None:
        raise TrainingError("--reading_file is for what the package ships, which is not the lite form: leave one out")
    if args.sentences is not None and args.sentences < 1:
        raise TrainingError(f"--sentences must be at least 1, got {args.sentences}")
    sentences = args.sentences or (SENTENCES if args.reading_file is not None else None)
    options = {"sentences": sentences, "seed": args.seed, "lite": args.lite, "device": args.device}
    upgraded = upgrade(args.model, args.output_dir, **options)
    if args.reading_file is not None:
        write_reading(bool_bert(upgraded.model), args.reading_file)
    print(
        f"{table(upgraded.metrics)}\n\n{args.output_dir}: ready for boolbert search, index and publish "
        f"({upgraded.metrics['seconds']:.0f} s)"
    )


def write_reading(bert: Any, file: str | Path) -> None:
    """The reading parts in half precision, with a hash of the encoder that they belong to."""
    from safetensors.torch import save_file

    tensors = {name: value.detach().cpu().half().contiguous() for name, value in bert.reading_parameters().items()}
    with whole_file(file) as aside:
        save_file(tensors, aside, metadata={"encoder": embeddings_hash(bert)})


def table(metrics: dict[str, Any]) -> str:
    """What an upgrade reached, for a terminal."""
    reading = [[kind, *(number(metrics[kind][name]) for name in OPERATORS)] for kind in ("cue", "scope", "gate")]
    moments = ("before", "after")
    countries = [[SHOWN[name], *(number(metrics["countries"][when][name]) for when in moments)] for name in SHOWN]
    tables = (["Held-out sentences, F1", *OPERATORS], reading), (["Countries, NOT queries", *moments], countries)
    return "\n\n".join(aligned(header, rows) for header, rows in tables)


if __name__ == "__main__":
    run_script(main)
