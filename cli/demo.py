"""The whole of Bool-BERT in a few minutes on two CPU cores: upgrade, train, compare, answer, explain.

make demo                                 # or: boolbert demo
boolbert demo --fresh                     # train again, although there are finished runs

Real pretrained weights and the embedded countries; nothing else is needed. Bool-BERT and a plain BERT are trained the
same way, query side only, against the document vectors of the pretrained encoder. All settings were chosen on the dev
split (docs/results.md); what is printed is the test split.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boolbert.core.errors import INTERRUPTED, BoolBertError
from boolbert.core.files import read_json, whole_folder
from boolbert.core.runs import Run

PACKAGE = Path(__file__).resolve().parent.parent
OUTPUT, QUICK_OUTPUT = Path("runs/demo"), Path("runs/demo-quick")
QUESTION = "landlocked countries in Africa that are not former British colonies"
UPGRADED, PLAIN, BOOLEAN = "Upgraded encoder", "BERT", "Bool-BERT"


@dataclass
class Settings:
    """How much is trained and asked."""

    upgrade: dict[str, Any] = field(default_factory=lambda: {"sentences": 16_000})
    train: dict[str, Any] = field(
        default_factory=lambda: {
            "epochs": 4,
            "batch_size": 16,
            "learning_rate": 5e-4,
            "boolean_learning_rate": 5e-5,
            "eval_every": 4,
            "freeze_documents": True,
        }
    )
    exclusion: dict[str, Any] = field(default_factory=lambda: {"exclusion_weight": 0.5, "branches": 4})
    queries: int | None = None  # of the test split; all
    random_model: bool = False


QUICK = Settings(
    upgrade={"sentences": 200},
    train={"epochs": 1, "batch_size": 128, "learning_rate": 1e-3, "freeze_documents": True},
    queries=35,
    random_model=True,
)


class Steps:
    """Announces the steps, and what each one took."""

    def __init__(self, total: int):
        self.total = total
        self.number = 0
        self.began = self.last = time.perf_counter()

    def next(self, title: str) -> None:
        self.done()
        self.number += 1
        print(f"\n== {self.number}/{self.total} {title}", flush=True)

    def done(self) -> None:
        now = time.perf_counter()
        if self.number:
            print(f"-- {now - self.last:.0f} s", flush=True)
        self.last = now


def run_demo(output: Path | None = None, *, fresh: bool = False, quick: bool = False) -> None:
    from boolbert.eval.compare import footnote
    from boolbert.eval.tables import terminal

    settings = QUICK if quick else Settings()
    output = output or (QUICK_OUTPUT if quick else OUTPUT)
    steps = Steps(7)
    steps.next("Pretrained weights")
    encoder = prepare_encoder(output / "encoder", random=settings.random_model)
    steps.next("Data")
    show_data()
    steps.next("Upgrade: the encoder learns to read cues and scopes, from made sentences alone")
    is_new = upgraded(output / "upgraded", encoder, settings.upgrade, fresh)
    steps.next("Stage 2: Bool-BERT learns to answer")
    flags = {"encoder": output / "upgraded", "gate": "cue", **settings.exclusion, **settings.train}
    trained(output / "bool-bert", "quest", flags, fresh or is_new)
    steps.next("The baseline: a plain BERT, everything else the same")
    flags = {"encoder": encoder, "baseline": True, **settings.train}
    trained(output / "bert", "quest", flags, fresh)
    steps.next("Comparison on the test split")
    summaries = compare(output, encoder, settings.queries)
    print(f"\n{terminal(summaries)}\n\n{footnote(summaries)}")
    steps.next("What Bool-BERT makes of a query")
    show_one(output)
    steps.done()
    print(f"\n{verdict(summaries)}\n\n{closing(output, time.perf_counter() - steps.began)}")


def prepare_encoder(folder: Path, *, random: bool) -> Path:
    """A copy of the default encoder without dropout in attention.

    torch's fast CPU kernel has none, and training takes half the time.
    """
    from boolbert.retrieval.encoders import random_bert
    from boolbert.retrieval.models import load_encoder, side_modules

    if random:
        print("A tiny random BERT, to show that everything works; its numbers mean nothing")
    model = load_encoder(str(random_bert()) if random else None, quiet=random)
    if not folder.exists():
        side_modules(model, "query")[0].model.config.attention_probs_dropout_prob = 0.0
        with whole_folder(folder) as aside:
            model.save(str(aside), create_model_card=False)
    return folder


def show_data() -> None:
    from boolbert.data import Quest

    quest = Quest(progress=False)
    counts = ", ".join(f"{len(quest.queries(split)):,} {split}" for split in quest.splits)
    print(f"The world's {len(quest.corpus)} countries, a description of each; Boolean queries: {counts}")
    print(f"  a document: {quest.corpus[0].text[:88]}...")
    for query in quest.queries("train")[:3]:
        print(f"  a query:    {query.query}")


def upgraded(folder: Path, encoder: Path, settings: dict[str, Any], fresh: bool) -> bool:
    """Upgrade the encoder, unless that is done already. True where it was done now."""
    from boolbert.train.upgrade import UpgradeSettings, table, upgrade

    run = Run(folder)
    if not fresh and run.finished and all(run.arguments.get(name) == value for name, value in settings.items()):
        print(f"{folder} is finished, and used again; --fresh makes it again")
        return False
    shutil.rmtree(folder, ignore_errors=True)
    print(table(upgrade(encoder, folder, settings=UpgradeSettings(**settings)).metrics))
    return True


def trained(folder: Path, script: str, flags: dict[str, Any], fresh: bool) -> bool:
    """Train, unless a finished run with these flags is there; continue one that was cut off. True where it trained."""
    flags = {name: str(value) if isinstance(value, Path) else value for name, value in flags.items()}
    run = Run(folder)
    same = not fresh and all(run.arguments.get(name) == value for name, value in flags.items())
    if same and run.finished:
        print(f"{folder} is finished, and used again; --fresh trains it again")
        return False
    words = [f"--{name}={value}" for name, value in flags.items()]
    words += [f"--output_dir={folder}", "--tracker=none", "--keep_last=1", "--resume" if same else "--overwrite"]
    command = [sys.executable, str(PACKAGE / "train" / f"{script}.py"), *words]
    environment = {**os.environ, "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}
    status = run_and_wait(command, environment)
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    if status:
        raise BoolBertError(f"train/{script}.py ended with {status}; run it by itself to see why: {' '.join(command)}")
    return True


def run_and_wait(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command to its end. On Ctrl-C it saves a checkpoint and stops by itself; wait for that."""
    with subprocess.Popen(command, env=environment) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue


def compare(output: Path, encoder: Path, limit: int | None) -> list[dict[str, Any]]:
    """Measure the systems on the test split, and write tables, pictures and the report."""
    table = output / "compare" / "table.json"
    runs = [Run(output / name) for name in ("bool-bert", "bert")]
    if table.exists() and all(table.stat().st_mtime > run.finished_at for run in runs):
        print(f"{table.parent} is up to date, and used again")
        return read_json(table)
    from tqdm import tqdm

    from boolbert.data.tasks import quest_task
    from boolbert.eval.compare import write_all
    from boolbert.eval.lineup import Lineup
    from boolbert.eval.results import measure
    from boolbert.retrieval.metrics import quest_metrics

    task = quest_task(None, "test", limit, progress=False)
    lineup = Lineup(task, output / "vectors")
    results = []
    with tqdm(systems(lineup, output, encoder), total=6, unit="system") as bar:
        for system in bar:
            bar.set_postfix_str(system.name)
            results.append(measure(system, task, quest_metrics))
    return write_all(output / "compare", results, task, PLAIN)


def systems(lineup: Any, output: Path, encoder: Path) -> Iterator[Any]:
    """The encoder as it came and upgraded, BM25, BERT, BERT on queries split into parts, and Bool-BERT."""
    from boolbert.eval.lineup import UNTRAINED
    from boolbert.eval.systems import Decomposition, Dense, parts_by_parser

    untrained = lineup.load(str(encoder), quiet=True)
    yield Dense(UNTRAINED, untrained, lineup.vectors(untrained))
    obedient = lineup.load(str(output / "upgraded"), quiet=True)
    yield Dense(UPGRADED, obedient, lineup.vectors(obedient))
    yield from lineup.bm25()
    bert = lineup.load(str(output / "bert"), quiet=True)
    plain = Dense(PLAIN, bert, lineup.vectors(bert))
    yield plain
    yield Decomposition("BERT, query taken apart", plain, parts_by_parser)
    boolean = lineup.load(str(output / "bool-bert"), quiet=True)
    yield Dense(BOOLEAN, boolean, lineup.vectors(boolean))


def show_one(output: Path) -> None:
    from boolbert.cli.show import show_explanation
    from boolbert.search import BoolSearcher, explain
    from boolbert.search.page import write_page
    from boolbert.search.picture import write_picture

    searcher, baseline = (BoolSearcher(output / name, progress=False) for name in ("bool-bert", "bert"))
    explanation = explain(searcher, QUESTION, baseline=baseline)
    print(show_explanation(explanation))
    write_page(explanation, output / "explain.html")
    write_picture(explanation, output / "explain.png")


def verdict(summaries: Sequence[dict[str, Any]]) -> str:
    """The result in words."""
    plain, boolean = _named(summaries, PLAIN), _named(summaries, BOOLEAN)
    start, bert, bool_bert = (
        system["metrics"]["all"]["r_precision"]["mean"] for system in (summaries[0], plain, boolean)
    )
    p_value = boolean["p_value"]
    better = ("Bool-BERT" if bool_bert > bert else "BERT") + " is better in this one pair of runs"
    finding = better if p_value < 0.05 else "no difference that these queries could show"
    excluded = [system["metrics"]["all"]["negated"]["mean"] for system in (plain, boolean)]
    return (
        f"Training took R-precision from {start:.3f} to {bert:.3f} (BERT) and {bool_bert:.3f} (Bool-BERT): "
        f"{finding} (p = {p_value:.3f} over the queries).\n"
        "Another seed moves either by up to .04 (docs/results.md): one pair of runs is no proof.\n"
        f"Of the top results of a NOT query, {excluded[0]:.1%} (BERT) and {excluded[1]:.1%} (Bool-BERT) are what it "
        "excludes."
    )


def closing(output: Path, seconds: float) -> str:
    return (
        f"{output}/compare/report.html   all tables, pictures and examples\n"
        f"{output}/explain.html, .png    the query above, word by word\n"
        f"{output}/bool-bert             the model, for AutoModel and SentenceTransformer\n"
        f'Next: boolbert search "monarchies that are not islands"\n'
        "      make serve, or boolbert serve: a page to try it, on http://127.0.0.1:7860\n"
        f"{seconds / 60:.1f} minutes in all"
    )


def _named(summaries: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(summary for summary in summaries if summary["system"] == name)
