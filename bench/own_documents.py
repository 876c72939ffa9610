r"""What queries made from documents alone teach: real queries before and after, beside BM25 and the hybrid.

python bench/own_documents.py --documents quest/documents.jsonl.gz --test quest:train --test boolmovies:dev --work WORK
python bench/own_documents.py ... --sample 2000 --queries 700 --epochs 1 --test_limit 40 --sides query  # CPU minutes

Three steps: make queries (WORK/queries-...), train on them (WORK/run-...), measure. --steps runs some of them. BM25's
rankings are kept in WORK, so that a machine without bm25s can use them. Flags behind -- go to train/quest.py as they
are. No query of a test is ever trained on. `--teach sentences` is the baseline without labels from the literature:
each sentence asks for the document it was taken from (inverse cloze, Lee et al. 2019).
"""

import argparse
import json
import re
import time
import warnings
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from boolbert.data import Corpus, DataWarning, Gold
from boolbert.data.own import OwnDocuments, make_queries
from boolbert.data.own.queries import WEIGHTS
from boolbert.data.tasks import Task, quest_task
from boolbert.errors import run_script

STEPS = ("make", "bm25", "untrained", "train", "measure")
METRICS = ("recall@20", "recall@100", "mrr@10", "r_precision", "negated")
DEPTH = 1000
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", required=True, help="the documents to make queries from")
    parser.add_argument("--test", action="append", default=[], metavar="FOLDER:SPLIT", help="real queries; repeatable")
    parser.add_argument("--work", type=Path, required=True, help="folder for what is made, trained and measured")
    parser.add_argument("--steps", default=",".join(STEPS), help="some of %(default)s")
    parser.add_argument("--teach", choices=("queries", "sentences"), default="queries", help="what is trained on")
    parser.add_argument("--encoder", help="all-MiniLM-L6-v2 if not given; or an upgraded model's folder")
    parser.add_argument("--queries", type=int, default=6000)
    parser.add_argument("--low", type=int, help="the least number of documents of an atom")
    parser.add_argument(
        "--weights", default="", metavar="SORT=W,...", help="how often sorts are asked for: name=0,word=2"
    )
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--sides", choices=("both", "query"), default="both", help="query: document vectors stay fixed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--sample", type=int, help="use so many documents only, to make queries and as corpus")
    parser.add_argument("--test_limit", type=int, help="use so many queries of each test only")
    parser.add_argument("flags", nargs="*", help="more flags of train/quest.py, behind --")
    options = parser.parse_args()
    unknown = set(options.steps.split(",")) - set(STEPS)
    if unknown:
        parser.error(f"--steps must be some of {','.join(STEPS)}, got {','.join(sorted(unknown))}")
    return options


def main() -> None:
    options = parse_arguments()
    warnings.simplefilter("ignore", DataWarning)
    steps = options.steps.split(",")
    options.work.mkdir(parents=True, exist_ok=True)
    made = options.work / re.sub(
        r"[^\w-]+", "_", f"{options.teach}-{options.queries}-{options.sample}-{options.low}-{options.weights}"
    )
    if "make" in steps and not made.exists():
        make(options, made)
    tests = {name: load_test(name, options) for name in options.test}
    results: dict[str, Any] = {}
    if "bm25" in steps:
        for name, task in tests.items():
            results |= measure_bm25(name, task, options.work)
    if "untrained" in steps:
        results |= measure("untrained", options.encoder, tests, options)
    for seed in options.seeds:
        run = options.work / f"run-{options.teach}-{options.sides}-{seed}"
        if "train" in steps:
            train(options, made, run, seed)
        if "measure" in steps:
            results |= measure(f"trained, seed {seed}", str(run), tests, options)
    with (options.work / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"options": vars(options) | {"work": str(options.work)}, "results": results}) + "\n")


def make(options: argparse.Namespace, folder: Path) -> None:
    start = time.perf_counter()
    documents: Any = OwnDocuments(options.documents, progress=False)
    if options.sample:
        rows = list(documents)
        rows = Random(0).sample(rows, min(options.sample, len(rows)))
        documents = OwnDocuments([{"title": row.name, "text": row.text} for row in rows], progress=False)
    if options.teach == "queries":
        weights = dict(WEIGHTS)
        for pair in filter(None, options.weights.split(",")):
            sort, _, weight = pair.partition("=")
            weights[sort] = float(weight)
        print(make_queries(documents, folder, queries=options.queries, weights=weights, low=options.low))
    else:
        make_sentences(documents, folder, options.queries)
    print(f"made in {time.perf_counter() - start:.0f} s")


def make_sentences(documents: OwnDocuments, folder: Path, count: int) -> None:
    """Sentences that ask for their documents, in QUEST's format."""
    rng = Random(0)
    folder.mkdir(parents=True)
    rows = list(documents)
    with (folder / "documents.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"title": row.name, "text": row.content}) + "\n" for row in rows)
    for split, wanted in (("train", count), ("dev", max(10, count // 10))):
        chosen = rng.sample(rows, min(wanted, len(rows)))
        with (folder / f"{split}.jsonl").open("w", encoding="utf-8") as file:
            for row in chosen:
                sentence = rng.choice(_SENTENCE.split(row.content))
                query = {"query": sentence, "docs": [row.name], "metadata": {"template": "_"}}
                file.write(json.dumps(query) + "\n")


def load_test(name: str, options: argparse.Namespace) -> Task:
    """Real queries; for a quick look some of them, over a part of their corpus that holds their gold."""
    folder, _, split = name.rpartition(":")
    task = quest_task(folder, split, progress=False)
    if not options.test_limit and not options.sample:
        return task
    chosen = sorted(Random(0).sample(range(len(task)), min(options.test_limit or len(task), len(task))))
    rows = {int(row) for index in chosen for row in task.gold[index]}
    others = Random(0).sample(range(len(task.corpus)), min(options.sample or len(task.corpus), len(task.corpus)))
    kept = sorted(rows | set(others))
    place = {row: number for number, row in enumerate(kept)}
    gold = [[place[int(row)] for row in task.gold[index]] for index in chosen]
    negated = [[place[int(r)] for r in task.negated[i] if int(r) in place] for i in chosen] if task.negated else None
    return Task(
        name,
        split,
        Corpus((task.corpus[row] for row in kept), name=task.corpus.name),
        [task.questions[index] for index in chosen],
        Gold(gold, len(kept)),
        negated=None if negated is None else [np.array(rows, dtype=np.int32) for rows in negated],
    )


def train(options: argparse.Namespace, made: Path, run: Path, seed: int) -> None:
    """train/quest.py on the made folder."""
    from boolbert.data.tasks import quest_splits
    from boolbert.retrieval.metrics import quest_metrics
    from boolbert.train.arguments import parse_arguments as parse_flags
    from boolbert.train.quest import QuestArguments
    from boolbert.train.retrieval_run import run_retrieval

    flags = ["--data", str(made), "--output_dir", str(run), "--seed", str(seed), "--tracker", "none", "--overwrite"]
    flags += ["--epochs", str(options.epochs), "--batch_size", str(options.batch_size)]
    flags += ["--learning_rate", str(options.learning_rate), "--keep_last", "1"]
    flags += ["--negatives", "violating" if options.teach == "queries" else "random"]
    flags += ["--encoder", options.encoder] if options.encoder else []
    flags += ["--freeze_documents"] if options.sides == "query" else []
    start = time.perf_counter()
    args = parse_flags(QuestArguments, None, [*flags, *options.flags])
    run_retrieval("quest", args, lambda: quest_splits(str(made)), quest_metrics)
    print(f"trained in {time.perf_counter() - start:.0f} s")


def measure_bm25(name: str, task: Task, work: Path) -> dict[str, Any]:
    """BM25, and BM25 that obeys NOT; their rankings stay in the work folder."""
    from boolbert.retrieval.hybrid import Obedience, WordSearch

    levels: tuple[Obedience, ...] = ("none", "wanted", "drop", "down")
    search = None
    results = {}
    for obedience in levels:
        path = bm25_path(name, task, work, obedience)
        if not path.exists():
            search = search or WordSearch([document.text for document in task.corpus])
            search.obedience = obedience
            np.save(path, search.top_k(task.texts, DEPTH).astype(np.int32))
        results |= report(name, f"BM25, {obedience}", task, np.load(path))
    return results


def bm25_path(name: str, task: Task, work: Path, obedience: str) -> Path:
    plain = re.sub(r"\W+", "-", "-".join(name.split("/")[-1:]))
    return work / f"bm25-{plain}-{len(task)}-{len(task.corpus)}-{obedience}.npy"


def measure(system: str, model_name: str | None, tests: dict[str, Task], options: argparse.Namespace) -> dict[str, Any]:
    """A model on the tests, alone and fused with BM25 over the wanted words."""
    from boolbert.eval.systems import Dense
    from boolbert.retrieval.batches import encode_inputs
    from boolbert.retrieval.hybrid import fuse
    from boolbert.retrieval.models import load_encoder

    model = load_encoder(model_name, quiet=True)
    results: dict[str, Any] = {}
    for name, task in tests.items():
        vectors = encode_inputs(model, [document.text for document in task.corpus], "document", 64)
        _, rows = Dense(system, model, vectors).search(task.questions, min(DEPTH, len(task.corpus)))
        results |= report(name, system, task, rows)
        path = bm25_path(name, task, options.work, "wanted")
        if path.exists():
            results |= report(name, f"{system}, hybrid", task, fuse([rows, np.load(path)], DEPTH))
    return results


def report(name: str, system: str, task: Task, rows: Any) -> dict[str, Any]:
    from boolbert.retrieval.metrics import means, quest_metrics

    rows = np.pad(np.asarray(rows), ((0, 0), (0, max(0, DEPTH - np.shape(rows)[1]))), constant_values=-1)
    found = means(quest_metrics(task, rows))
    shown = {metric: round(found[metric], 3) for metric in METRICS if metric in found}
    print(f"{Path(name).name:20} {system:28} " + "  ".join(f"{metric} {value:.3f}" for metric, value in shown.items()))
    return {f"{name} {system}": shown}


if __name__ == "__main__":
    run_script(main)
