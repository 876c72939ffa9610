r"""What queries made from documents alone teach: real queries before and after, beside BM25, the hybrid and baselines.

D=../shared/data; python bench/own_documents.py --documents $D/quest/documents.jsonl.gz --test $D/quest:train \
    --test $D/boolmovies:dev --traps $D/boolquestions_not $D/excluir_dev --seeds 0 1 2 --work WORK

For a look in CPU minutes add: --sample 2000 --queries 700 --epochs 1 --test_limit 40 --trap_limit 40 --sides fixed

Systems (--systems chooses some), each dense one also fused with BM25:

bm25        four rows: as it is; without the excluded words; also with documents that hold them dropped, or moved down
untrained   all-MiniLM-L6-v2
upgrade     the same, upgraded to obey NOT: what `boolbert fit` starts from
sentences   a plain BERT trained without queries: each sentence asks for its document (inverse cloze, Lee et al. 2019)
bert        a plain BERT trained on the made queries
fit         Bool-BERT trained on the made queries, as `boolbert fit` does
            --mix .3 .7: rows with these shares of the start's weights in it; `boolbert fit` has 0.7, plain "fit" none

WORK keeps what is made, trained and ranked, so that a call that was cut off, or asks for one more system, does the rest
only; a machine without bm25s uses the rankings in it. Flags behind -- go to training, as `-- --stay_close 1`. No query
of a test is ever trained on. The last table is the mean over the seeds; WORK/results.jsonl has all figures.
"""

import argparse
import hashlib
import json
import re
import shutil
import time
import warnings
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from boolbert.core.errors import BoolBertError, run_script
from boolbert.core.files import whole_file
from boolbert.core.tables import aligned, number
from boolbert.data import Corpus, DataWarning, Gold
from boolbert.data.own import OwnDocuments, make_queries
from boolbert.data.own.queries import WEIGHTS
from boolbert.data.tasks import Task, quest_task

SYSTEMS = ("bm25", "untrained", "upgrade", "sentences", "bert", "fit")
METRICS = {"recall@20": "R@20", "recall@100": "R@100", "mrr@10": "MRR", "r_precision": "R-prec", "negated": "negated"}
TRAPS = {"mrr": "MRR", "above": "above", "trapped": "trapped"}
DEPTH = 1000
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", required=True, help="the documents to make queries from")
    parser.add_argument("--test", action="append", default=[], metavar="FOLDER:SPLIT", help="real queries; repeatable")
    parser.add_argument("--traps", nargs="*", default=[], metavar="FOLDER", help="exclusion sets of eval/exclusion.py")
    parser.add_argument("--work", type=Path, required=True, help="folder for what is made, trained and measured")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="some of %(default)s")
    parser.add_argument("--queries", type=int, default=6000)
    parser.add_argument("--low", type=int, help="the least number of documents of an atom")
    parser.add_argument(
        "--weights", default="", metavar="SORT=W,...", help="how often sorts are asked for: name=0,word=2"
    )
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--sides", choices=("learned", "fixed"), default="learned", help="of the documents' vectors")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument(
        "--mix", type=float, nargs="*", default=[0.7], help="shares of the start's weights, such as .3 .7"
    )
    parser.add_argument("--sample", type=int, help="use only N documents, to make queries and as corpus")
    parser.add_argument("--test_limit", type=int, help="use only N queries of each test")
    parser.add_argument("--trap_limit", type=int, help="use only N queries of each exclusion set")
    parser.add_argument("flags", nargs="*", help="flags of train/quest.py, behind --")
    options = parser.parse_args()
    options.systems = options.systems.split(",")
    unknown = set(options.systems) - set(SYSTEMS)
    if unknown:
        parser.error(f"--systems must be some of {','.join(SYSTEMS)}, got {','.join(sorted(unknown))}")
    return options


def main() -> None:
    options = parse_arguments()
    warnings.simplefilter("ignore", DataWarning)
    options.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(options)
    for system in options.systems:
        if system == "bm25":
            bench.measure_bm25()
        elif system == "untrained":
            bench.measure("untrained", None)
        elif system == "upgrade":
            bench.measure("upgrade", str(upgraded(options.work)))
        else:
            for seed in options.seeds:
                run = train(system, seed, options)
                bench.measure(system, str(run))
                for share in options.mix if system == "fit" else ():
                    bench.measure(f"fit, start {share}", str(mixed(run, upgraded(options.work), share)))
    print("\n" + bench.table())
    record = {name: value for name, value in vars(options).items() if name != "work"}
    with (options.work / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"options": record, "results": bench.results}) + "\n")


def upgraded(work: Path) -> Path:
    """The model that training starts from, as a folder."""
    from boolbert.retrieval.models import default_model

    folder = work / "upgraded"
    if not folder.exists():
        default_model().encoder.save(str(folder), create_model_card=False)
    return folder


def mixed(run: Path, start: Path, share: float) -> Path:
    """A copy of a trained model, with a share of the start's weights on both sides."""
    from safetensors.torch import load_file, save_file

    from boolbert.sentence_boolbert import DOCUMENT_FOLDER
    from boolbert.train.retrieval_run import between

    folder = run.with_name(f"{run.name}-mixed")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(run, folder)
    for side in (".", DOCUMENT_FOLDER):
        for file in sorted((folder / side).glob("model*.safetensors")):
            before = start / side / file.name
            old = load_file(before if before.exists() else start / file.name)
            weights = {
                name: between(value, old[name].to(value.dtype), share) if name in old else value
                for name, value in load_file(file).items()
            }
            with whole_file(file) as aside:  # the tensors may still lie in the file
                save_file(weights, aside, metadata={"format": "pt"})
    return folder


def train(system: str, seed: int, options: argparse.Namespace) -> Path:
    """A trained model's folder; what is there already is not trained again."""
    from boolbert.core.runs import Run
    from boolbert.train.arguments import parse_arguments as parse_flags
    from boolbert.train.quest import QuestArguments
    from boolbert.train.retrieval_run import train_on_query_folder

    teach = "sentences" if system == "sentences" else "queries"
    settings = [options.documents, options.queries, options.sample, options.low, options.weights]
    made = options.work / f"{teach}-{_hash(settings)}"
    if not made.exists():
        make(options, teach, made)
    run = options.work / f"run-{system}-{seed}-{_hash([*settings, options.epochs, options.sides, options.flags])}"
    if Run(run).finished:
        return run
    given = vars(parse_flags(QuestArguments, None, options.flags))
    named = [flag[2:].partition("=")[0] for flag in options.flags if flag.startswith("--")]
    changes = {name: given[name] for name in named}
    if system != "fit":
        changes |= {"baseline": True}
    if teach == "sentences":
        changes |= {"negatives": "random"}
    start = time.perf_counter()
    train_on_query_folder(
        made,
        run,
        upgraded(options.work),
        documents=options.sides,
        original_weight=0.0,
        **{"epochs": options.epochs, "seed": seed, "overwrite": True, **changes},
    )
    shutil.rmtree(run / "checkpoints", ignore_errors=True)
    print(f"{system}, seed {seed}: trained in {time.perf_counter() - start:.0f} s")
    return run


def make(options: argparse.Namespace, teach: str, folder: Path) -> None:
    start = time.perf_counter()
    documents: Any = OwnDocuments(options.documents, progress=False)
    if options.sample:
        rows = list(documents)
        rows = Random(0).sample(rows, min(options.sample, len(rows)))
        documents = OwnDocuments([{"title": row.name, "text": row.text} for row in rows], progress=False)
    if teach == "queries":
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


def first_traps(traps: Any, limit: int | None) -> Any:
    """The first queries of an exclusion set, over the texts that they name."""
    if limit is None:
        return traps
    queries = traps.queries[:limit]
    kept = sorted({row for query in queries for row in (*query.gold, *query.traps)})
    place = {row: number for number, row in enumerate(kept)}
    queries = [
        query._replace(gold=[place[r] for r in query.gold], traps=[place[r] for r in query.traps]) for query in queries
    ]
    return traps._replace(texts=[traps.texts[row] for row in kept], queries=queries)


class Bench:
    """The tests, and what the systems reach on them: {test: {system: [figures of each seed]}}."""

    def __init__(self, options: argparse.Namespace):
        from boolbert.eval.exclusion import read_trap_set

        self.work = options.work
        self.tests = {name: load_test(name, options) for name in options.test}
        traps = [first_traps(read_trap_set(folder), options.trap_limit) for folder in options.traps]
        self.traps = {trap.name: trap for trap in traps}
        self._vectors: dict[tuple[str, str], Any] = {}  # of tests and document encoders: a fixed one encodes once
        self.results: dict[str, dict[str, list[dict[str, float]]]] = defaultdict(lambda: defaultdict(list))

    def measure_bm25(self) -> None:
        """BM25, and BM25 that obeys NOT; their rankings stay in the work folder."""
        from boolbert.retrieval.hybrid import Obedience, WordSearch

        levels: tuple[Obedience, ...] = ("none", "wanted", "drop", "down")
        for name, task in self.tests.items():
            search = None
            for obedience in levels:
                path = self._bm25(name, task, obedience)
                if not path.exists():
                    try:
                        search = search or WordSearch([document.text for document in task.corpus])
                    except BoolBertError as error:  # not installed
                        print(f"BM25 is left out: {error}")
                        return
                    search.obedience = obedience
                    np.save(path, search.top_k(task.texts, DEPTH).astype(np.int32))
                self._note(name, f"BM25, {obedience}", task, np.load(path))

    def measure(self, system: str, model_name: str | None) -> None:
        """A model on the tests, alone and fused with BM25 over the wanted words; and on the exclusion sets."""
        from boolbert.eval.exclusion import score
        from boolbert.eval.systems import Dense
        from boolbert.retrieval.batches import encode_inputs
        from boolbert.retrieval.fingerprints import model_fingerprint
        from boolbert.retrieval.hybrid import fuse
        from boolbert.retrieval.models import load_encoder

        model = load_encoder(model_name, quiet=True)
        batch = 256 if model.device.type == "cuda" else 32
        encoder = model_fingerprint(model, "document")
        self._vectors = {key: vectors for key, vectors in self._vectors.items() if key[1] == encoder}

        def encode(name: str, texts: list[str]) -> Any:
            if (name, encoder) not in self._vectors:
                self._vectors[name, encoder] = encode_inputs(model, texts, "document", batch)
            return self._vectors[name, encoder]

        for name, task in self.tests.items():
            vectors = encode(name, [document.text for document in task.corpus])
            _, rows = Dense(system, model, vectors).search(task.questions, min(DEPTH, len(task.corpus)))
            self._note(name, system, task, rows)
            path = self._bm25(name, task, "wanted")
            if path.exists():
                self._note(name, f"{system}, hybrid", task, fuse([rows, np.load(path)], DEPTH))
        for name, traps in self.traps.items():
            queries = encode_inputs(model, [query.text for query in traps.queries], "query", batch)
            found = score(system, queries, encode(name, traps.texts), traps).means()
            self._add(name, system, {TRAPS[metric]: found[metric] for metric in TRAPS})

    def _note(self, name: str, system: str, task: Task, rows: Any) -> None:
        from boolbert.retrieval.metrics import means, quest_metrics

        rows = np.pad(np.asarray(rows), ((0, 0), (0, max(0, DEPTH - np.shape(rows)[1]))), constant_values=-1)
        found = means(quest_metrics(task, rows))
        self._add(_short(name), system, {METRICS[metric]: found[metric] for metric in METRICS if metric in found})

    def _add(self, test: str, system: str, figures: dict[str, float]) -> None:
        self.results[test][system].append({name: round(value, 4) for name, value in figures.items()})
        print(f"{test:20} {system:24} " + "  ".join(f"{name} {value:.3f}" for name, value in figures.items()))

    def _bm25(self, name: str, task: Task, obedience: str) -> Path:
        return self.work / f"bm25-{_short(name).replace(':', '-')}-{len(task)}-{len(task.corpus)}-{obedience}.npy"

    def table(self) -> str:
        """The means over the seeds, a table for each test."""
        tables = []
        for test, systems in self.results.items():
            columns = list(dict.fromkeys(column for seeds in systems.values() for column in seeds[0]))
            rows = []
            for system, seeds in systems.items():
                cells = [number(float(np.mean([row[c] for row in seeds]))) if c in seeds[0] else "-" for c in columns]
                rows.append([f"{system} ({len(seeds)} seeds)" if len(seeds) > 1 else system, *cells])
            tables.append(aligned([test, *columns], rows))
        return "\n\n".join(tables)


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:8]


if __name__ == "__main__":
    run_script(main)
