"""The whole of Bool-BERT in minutes on two CPU cores: train, compare, answer, explain.

make demo                                 # or: boolbert demo
boolbert demo --fresh                     # train again, although there are finished runs

Real pretrained weights and the embedded countries; nothing else is needed. Bool-BERT and a plain BERT are trained the
same way, query side only, against the document vectors of the pretrained encoder. All settings were chosen on the dev
split (docs/results.md); what is printed is the test split.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boolbert.core.errors import INTERRUPTED, BoolBertError
from boolbert.core.files import read_json, whole_folder, write_text
from boolbert.core.runs import Run

if TYPE_CHECKING:
    from boolbert.data.tasks import Task
    from boolbert.eval.systems import System

PACKAGE = Path(__file__).resolve().parent.parent
OUTPUT, QUICK_OUTPUT = Path("runs/demo"), Path("runs/demo-quick")
QUESTION = "landlocked countries in Africa that are not former British colonies"
UPGRADED, PLAIN, BOOLEAN = "Upgraded encoder", "BERT", "Bool-BERT"
WITH_EVIDENCE = ", with evidence, none read"
# The folders of the two models that training starts from, and of the two that it makes.
ENCODER, READER, BERT, BOOL_BERT = "encoder", "upgraded", "bert", "bool-bert"


# The flags of both trainings, and of Bool-BERT's alone.
TRAIN: dict[str, Any] = {"epochs": 1, "batch_size": 16, "learning_rate": 5e-4, "boolean_learning_rate": 5e-5}
QUICK_TRAIN: dict[str, Any] = {"max_steps": 4, "batch_size": 128, "learning_rate": 1e-3}
EXCLUSION = {"exclusion_weight": 0.5, "branches": 4}
QUICK_QUERIES = 35  # of the test split
THREADS = max(1, (os.cpu_count() or 1) // 2)  # of each of the two trainings


@contextmanager
def step(title: str) -> Iterator[None]:
    """Announces a step, and what it took."""
    print(f"\n== {title}", flush=True)
    began = time.perf_counter()
    yield
    print(f"-- {time.perf_counter() - began:.0f} s", flush=True)


def run_demo(output: Path | None = None, *, fresh: bool = False, quick: bool = False) -> None:
    from boolbert.eval.compare import footnote
    from boolbert.eval.tables import terminal

    output = output or (QUICK_OUTPUT if quick else OUTPUT)
    began = time.perf_counter()
    with step("1/5 Pretrained weights, and the reading of AND, OR and NOT that comes with the package"):
        prepare_encoders(output, random=quick)
    with step("2/5 Data"):
        show_data()
    with step("3/5 Training: Bool-BERT learns to answer; beside it a plain BERT, everything else the same"):
        train_both(output, QUICK_TRAIN if quick else TRAIN, fresh)
    with step("4/5 Comparison on the test split"):
        summaries = compare(output, QUICK_QUERIES if quick else None)
        print(f"\n{terminal(summaries)}\n\n{footnote(summaries)}")
    with step("5/5 What Bool-BERT makes of a query"):
        show_one(output)
    print(f"\n{verdict(summaries)}\n\n{closing(output, time.perf_counter() - began)}")


def prepare_encoders(output: Path, *, random: bool) -> None:
    """The default encoder, plain and upgraded, each in a folder and without dropout in attention.

    torch's fast CPU kernel has none, and training takes half the time.
    """
    from boolbert.configuration_boolbert import UPGRADED as SETTINGS
    from boolbert.retrieval.encoders import RANDOM
    from boolbert.retrieval.models import default_model, load_encoder, side_modules, with_fresh_attention

    plain = load_encoder(RANDOM if random else None, quiet=random)
    if random:
        print("A tiny random BERT, to show that everything works; its numbers mean nothing")
        upgraded = with_fresh_attention(plain, share=True, query_length=None, **SETTINGS)
    else:
        upgraded = default_model().encoder
    for name, model in ((ENCODER, plain), (READER, upgraded)):
        if not (output / name).exists():
            side_modules(model, "query")[0].model.config.attention_probs_dropout_prob = 0.0
            with whole_folder(output / name) as aside:
                model.save(str(aside), create_model_card=False)


def show_data() -> None:
    from boolbert.data import Quest

    quest = Quest(progress=False)
    counts = ", ".join(f"{len(quest.queries(split)):,} {split}" for split in quest.splits)
    print(f"The world's {len(quest.corpus)} countries, a description of each; Boolean queries: {counts}")
    print(f"  a document: {quest.corpus[0].text[:88]}...")
    for query in quest.queries("train")[:3]:
        print(f"  a query:    {query.query}")


def train_both(output: Path, flags: dict[str, Any], fresh: bool) -> None:
    """Train Bool-BERT and BERT at the same time, each with its share of the processor's cores."""
    flags = {**flags, "freeze_documents": True}
    boolean = {"encoder": output / READER, "gate": "cue", **EXCLUSION, **flags}
    plain = {"encoder": output / ENCODER, "baseline": True, **flags}
    both = (training(output / BOOL_BERT, boolean, fresh), training(output / BERT, plain, fresh))
    commands = [command for command in both if command is not None]
    for command, status in zip(commands, run_together(commands, output / "training.log"), strict=True):
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        if status:
            raise BoolBertError(f"training ended with {status}; run it by itself to see why: {' '.join(command)}")


def training(folder: Path, flags: dict[str, Any], fresh: bool) -> list[str] | None:
    """The command that trains, or continues a run that was cut off; None where a finished one has these flags."""
    flags = {name: str(value) if isinstance(value, Path) else value for name, value in flags.items()}
    run = Run(folder)
    same = not fresh and all(run.arguments.get(name) == value for name, value in flags.items())
    if same and run.finished:
        print(f"{folder} is finished, and used again; --fresh trains it again")
        return None
    words = [f"--{name}={value}" for name, value in flags.items()]
    words += [f"--output_dir={folder}", "--tracker=none", "--keep_last=1", "--resume" if same else "--overwrite"]
    words += [f"--threads={THREADS}"]
    return [sys.executable, str(PACKAGE / "train" / "quest.py"), *words]


def run_together(commands: Sequence[Sequence[str]], log: Path) -> list[int]:
    """Run commands at the same time, and return their exit statuses. The first is shown, others write into a file."""
    environment = {**os.environ, "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}
    environment["OMP_NUM_THREADS"] = str(THREADS)
    with log.open("w", encoding="utf-8") as file:
        outputs = [None, *[file] * (len(commands) - 1)]
        processes = [
            subprocess.Popen(command, env=environment, stdout=output, stderr=output)
            for command, output in zip(commands, outputs, strict=False)
        ]
        return [wait_for(process) for process in processes]


def wait_for(process: "subprocess.Popen[bytes]") -> int:
    """Wait for a process's end. On Ctrl-C a training saves a checkpoint and stops by itself; wait for that."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def compare(output: Path, limit: int | None) -> list[dict[str, Any]]:
    """Measure the systems on the test split, and write tables, pictures and the report."""
    table = output / "compare" / "table.json"
    runs = [Run(output / name) for name in (BOOL_BERT, BERT)]
    if table.exists() and all(table.stat().st_mtime > run.finished_at for run in runs):
        print(f"{table.parent} is up to date, and used again")
        return read_json(table)
    from boolbert.core.environment import one_thread
    from boolbert.core.progress import shown_progress
    from boolbert.data.tasks import quest_task
    from boolbert.eval.compare import write_all
    from boolbert.eval.results import measure
    from boolbert.retrieval.metrics import quest_metrics

    task = quest_task(None, "test", limit, progress=False)
    results = []
    with one_thread(), shown_progress("compare", 8, "system") as advance:
        for system in systems(output, task):
            results.append(measure(system, task, quest_metrics))
            advance(1)
    return write_all(output / "compare", results, task, PLAIN)


def systems(output: Path, task: "Task") -> "Iterator[System]":
    """The encoder as it came and upgraded, BM25, BERT, BERT on queries split into parts, and Bool-BERT; then both
    with what documents say, clause by clause; the document reader, which the searches at the end ask, is left out.

    All have the same document side, so that the countries and their clauses are encoded once.
    """
    from boolbert.eval.lineup import UNTRAINED, Lineup
    from boolbert.eval.searched import Searched
    from boolbert.eval.systems import Decomposition, Dense
    from boolbert.retrieval.countries_index import default_index
    from boolbert.retrieval.models import load_model
    from boolbert.search.searcher import BoolSearcher

    folders = {UNTRAINED: ENCODER, UPGRADED: READER, PLAIN: BERT, BOOLEAN: BOOL_BERT}
    models = {name: load_model(output / folder) for name, folder in folders.items()}
    indexes = {name: default_index(model) for name, model in models.items()}
    dense = {name: Dense(name, model.encoder, indexes[name].vectors) for name, model in models.items()}
    yield from (dense[UNTRAINED], dense[UPGRADED])
    yield from Lineup(task, output / "vectors").bm25()
    yield dense[PLAIN]
    yield Decomposition("BERT, query taken apart", dense[PLAIN])
    yield dense[BOOLEAN]
    for name in (PLAIN, BOOLEAN):
        if indexes[name].evidence is not None:
            searcher = BoolSearcher(models[name], indexes[name])
            yield Searched(f"{name}{WITH_EVIDENCE}", searcher, read=0)  # to read for 400 queries takes minutes


def show_one(output: Path) -> None:
    from boolbert.cli.show import show_explanation
    from boolbert.search import BoolSearcher, explain
    from boolbert.search.picture import write_picture

    searcher, baseline = (BoolSearcher(output / name, progress=False) for name in (BOOL_BERT, BERT))
    explanation = explain(searcher, QUESTION, baseline=baseline)
    print(show_explanation(explanation))
    write_text(output / "explain.html", explanation.page())
    write_picture(explanation, output / "explain.png")


def verdict(summaries: Sequence[dict[str, Any]]) -> str:
    """The result in words."""
    by_name = {summary["system"]: summary for summary in summaries}

    def mean(name: str, metric: str = "r_precision") -> float:
        return by_name[name]["metrics"]["all"][metric]["mean"]

    p_value = by_name[BOOLEAN]["p_value"]
    better = (BOOLEAN if mean(BOOLEAN) > mean(PLAIN) else PLAIN) + " is better in this one pair of runs"
    finding = better if p_value < 0.05 else "no difference that these queries could show"
    lines = [
        f"Training took R-precision from {mean(summaries[0]['system']):.3f} to {mean(PLAIN):.3f} (BERT) and "
        f"{mean(BOOLEAN):.3f} (Bool-BERT): {finding} (p = {p_value:.3f} over the queries).",
        "Another seed moves either by up to .04 (docs/results.md): one pair of runs is no proof.",
        f"Of the top results of a NOT query, {mean(PLAIN, 'negated'):.1%} (BERT) and {mean(BOOLEAN, 'negated'):.1%} "
        "(Bool-BERT) are what it excludes.",
    ]
    plain, boolean = (f"{name}{WITH_EVIDENCE}" for name in (PLAIN, BOOLEAN))
    if boolean in by_name:  # vectors that are not compared by their cosine have none
        lines.append(
            f"With evidence, which is what documents say clause by clause, R-precision is {mean(plain):.3f} (BERT) and "
            f"{mean(boolean):.3f} (Bool-BERT), and {mean(plain, 'negated'):.1%} and {mean(boolean, 'negated'):.1%} "
            "are excluded."
        )
    return "\n".join(lines)


def closing(output: Path, seconds: float) -> str:
    return (
        f"{output}/compare/report.html   all tables, pictures and examples\n"
        f"{output}/explain.html, .png    the query above, word by word\n"
        f"{output}/bool-bert             the model, for AutoModel and SentenceTransformer\n"
        f'Next: boolbert search "monarchies that are not islands" --model {output}/{BOOL_BERT}\n'
        f"      boolbert serve --model {output}/{BOOL_BERT}: a page to try it, on http://127.0.0.1:7860\n"
        f"{seconds / 60:.1f} minutes in all"
    )
