"""Every development figure that the docs speak of, printed by one command, so that a change can be held against it.

    python eval/baseline.py --third_party FOLDER      # docs/baseline.txt; hours on two cores, minutes on a GPU
    python eval/baseline.py --only reading counts     # what is quick
    python eval/baseline.py --only trades countries --device cuda

FOLDER holds excluir_dev, boolquestions_not, comlq_dev, nevir_dev (as eval/exclusion.py reads them) and boolmovies
(QUEST's schema); without it they are left out, and the output says so. Rankings are those of eval/evidence.py: the
plain encoder, vectors, search that reads no documents ("unread"), and search. The sections: reading, saying, trades,
countries, lists, denials, excluir_dev, boolquestions_not, comlq_dev, nevir_dev, boolmovies, counts, times.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import EvaluationError, run_script
from boolbert.data.reading_scores import measured, own_queries
from boolbert.eval import evidence, reading, saying
from boolbert.eval.exclusion import TrapSet, read_trap_set
from boolbert.retrieval.metrics import means
from boolbert.retrieval.models import SearchModel, default_model

ROOT = Path(__file__).resolve().parent.parent
SYSTEMS = ("plain", "vectors", "unread", "search")
TRAPS = ("MRR@10", "above", "V@3")
PATTERN = re.compile(r"\b(?:re\.(?:compile|search|match|fullmatch|sub|subn|findall|finditer|split)|pattern)\(")


@dataclass
class Arguments:
    third_party: str | None = flag(None, "folder with the sets that others made")
    only: list[str] = flag([], "these sections alone")
    device: str | None = flag(None, "cpu, cuda, ...; the best there is")


def print_ranking(pools: Sequence[TrapSet], metrics: Sequence[str], model: SearchModel) -> None:
    """A line for each system: the metrics over all queries, and where they have kinds for each kind. Of several pools
    the means over pools."""
    tables = [evidence.figures(pool, evidence.scores(model, pool)) for pool in pools]
    kinds = [kind for kind in tables[0] if kind == "all" or len(tables[0]) > 2]
    for kind in kinds:
        for system in SYSTEMS:
            found = {name: [table[kind][system].get(name, np.nan) for table in tables] for name in metrics}
            own = means({name: np.array(values) for name, values in found.items()})
            print(f"  {kind:16} {system:8} " + "  ".join(f"{name} {value:.3f}" for name, value in own.items()))


def print_reading() -> None:
    for split in ("dev", "test"):
        found = measured(own_queries(split), reading.as_search_reads)
        del found["wrong"]
        wrong, count = reading.found_alternatives(split)
        print(f"  {split:5} " + "  ".join(f"{key} {value}" for key, value in found.items()), end="")
        print(f"  alternatives {count - len(wrong)} of {count}")


def print_saying() -> None:
    for words in (["--author", "first"], ["--author", "t8"], ["--author", "last"]):
        print(f"  {words[1]:6} ", end="", flush=True)
        saying.main(words)
    saying.main(["--statements", str(ROOT / "data/statements/dev")])


def print_trades(model: SearchModel) -> None:
    for data in ("trades:first", "trades:t8", "trades:last", "unseen"):
        chosen = evidence.chosen_trades(data)
        print(f"  {data}, {len(chosen)} trades")
        print_ranking(list(map(evidence.trade_pool, chosen)), ("good", "violating"), model)


def print_counts() -> None:
    files = [ROOT / name for name in _printed(["git", "ls-files", "*.py"], ROOT).split()]
    tests = [file for file in files if file.relative_to(ROOT).parts[0] == "tests"]
    code = [file for file in files if file not in tests]
    ruled = [file for file in code if file.relative_to(ROOT).parts[0] != "bench"]

    def lines(of: Sequence[Path]) -> list[str]:
        return [line for file in of for line in file.read_text(encoding="utf-8").splitlines()]

    patterns = sum(bool(PATTERN.search(line)) for line in lines(ruled))
    collected = _printed([sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not nightly"], ROOT)
    print(f"  {len(lines(code)):,} lines in {len(code)} files outside tests")
    print(f"  {len(lines(tests)):,} lines in {len(tests)} files of tests")
    print(f"  {patterns} lines with patterns outside tests and bench")
    print(f"  {collected.strip().splitlines()[-1].strip('= ')}")


def print_times() -> None:
    print(_printed([sys.executable, str(ROOT / "bench/waits.py")], ROOT))


def _printed(command: Sequence[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


def third_party_pool(folder: str, name: str) -> TrapSet:
    if name == "boolmovies":
        return evidence.quest_pool(f"{Path(folder, name)}:dev")
    return read_trap_set(Path(folder, name), need_traps=False)


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    opened = list[SearchModel]()

    def ranking(metrics: Sequence[str], pool: Callable[[], TrapSet]) -> None:
        print_ranking([pool()], metrics, model())

    def model() -> SearchModel:
        opened[:] = opened or [default_model(args.device)]
        return opened[0]

    sections: dict[str, Callable[[], None]] = {
        "reading": print_reading,
        "saying": print_saying,
        "trades": lambda: print_trades(model()),
        "countries": partial(ranking, ("R-prec", "good", "excluded"), partial(evidence.quest_pool, "countries")),
        "lists": partial(ranking, ("R-prec", "excluded"), evidence.list_pool),
        "denials": partial(ranking, ("in ten", "others"), partial(evidence.quest_pool, "denials:test")),
    }
    third_party = {
        "excluir_dev": TRAPS,
        "boolquestions_not": TRAPS,
        "nevir_dev": ("pairs", "MRR@10"),
        "comlq_dev": ("nDCG@10",),
        "boolmovies": ("R-prec", "R@100", "MRR@10", "excluded"),
    }
    for name, metrics in third_party.items():
        if args.third_party:
            sections[name] = partial(ranking, metrics, partial(third_party_pool, args.third_party, name))
    sections |= {"counts": print_counts, "times": print_times}
    if unknown := sorted(set(args.only) - set(sections) - set(third_party)):
        raise EvaluationError(f"--only {unknown[0]}: the sections are {', '.join(sections)}")
    for name in args.only or [*sections, *third_party]:
        if name in sections:
            print(f"\n{name}", flush=True)
            sections.pop(name)()
        elif not args.third_party:
            print(f"\n{name}\n  left out: it needs --third_party")


if __name__ == "__main__":
    run_script(main)
