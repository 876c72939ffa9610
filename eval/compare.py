"""Compare systems on the same queries and the same corpus: one table of quality and cost.

python eval/compare.py --runs runs                                  # the embedded countries, and all runs on them
python eval/compare.py --data quest --split dev --runs runs/quest/seed-* runs/baseline/seed-* --output_dir runs/compare

Always: the untrained encoder, BM25, queries split into parts (gold and parsed atoms) and embedding subtraction. --runs
takes run folders, and folders of runs: every finished one below that was trained on this data. Run folders whose names
differ only in their seed are averaged. --models adds sentence-transformers models by name. --faiss searches each dual
encoder a second time through an approximate index, with that search's own latency and recall.
Writes table.md, table.csv, table.json, pictures/, report.html, and a folder for each system.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import EvaluationError, run_script
from boolbert.core.files import make_folder, write_json, write_text
from boolbert.core.terminal import fitted
from boolbert.data.tasks import Task, quest_task
from boolbert.eval.lineup import UNTRAINED, Lineup, Settings, by_seed, chosen_runs
from boolbert.eval.pictures import draw_all
from boolbert.eval.report import write_report
from boolbert.eval.results import Result, folder_names, measure, merged, write_qrels, write_result
from boolbert.eval.significance import permutation_test
from boolbert.eval.systems import Dense, System
from boolbert.eval.tables import comma_separated, markdown, terminal
from boolbert.retrieval.metrics import main_metric, quest_metrics
from boolbert.retrieval.models import bool_bert


@dataclass
class Arguments(Settings):
    data: str | None = flag(None, "data folder or Hub data set id; the embedded countries")
    split: str = flag("dev", "the queries to ask")
    output_dir: str = flag("runs/compare", "folder for tables, pictures and the report")
    runs: list[str] = flag([], "folders written by train/quest.py, or folders of such")
    models: list[str] = flag([], "sentence-transformers models, folder or Hub id")
    encoder: str | None = flag(None, "the untrained encoder; all-MiniLM-L6-v2")
    untrained: bool = flag(True, "include what needs no training")
    reference: str | None = flag(None, "the system that p-values compare with")
    limit: int | None = flag(None, "only the first N queries")


def main(words: Sequence[str] | None = None) -> None:
    start = time.perf_counter()
    args = parse_arguments(Arguments, __doc__, words)
    folder = Path(args.output_dir)
    task = quest_task(args.data, args.split, args.limit)
    print(f"{task.name}, {task.split}: {len(task):,} queries, {len(task.corpus):,} documents")
    lineup = Lineup(task, folder / "vectors", args)
    results = measured(lineup, args)
    summaries = write_all(folder, results, task, args.reference)
    for line in lineup.left_out:
        print(f"note: {line}")
    print(f"\n{terminal(summaries)}\n\n{footnote(summaries)}")
    print(f"\n{folder}/report.html, table.md, table.csv, table.json: {time.perf_counter() - start:.0f} s in all")


def measured(lineup: Lineup, args: Arguments) -> list[Result]:
    """The results of all systems, in the order of the table."""
    runs = chosen_runs(args.runs, args.data)
    results: list[Result] = []
    if args.untrained:
        results += [timed(system, lineup.task) for system in lineup.untrained(args.encoder)]
    for name, folders in by_seed(runs).items():
        results += trained(lineup, name, folders)
    for name in dict.fromkeys(args.models):
        results += [timed(system, lineup.task) for system in lineup.dense(name, lineup.load(name))]
    if not results:
        raise EvaluationError("nothing to compare: give --runs or --models, or leave --untrained on")
    return results


def trained(lineup: Lineup, name: str, folders: Sequence[Path]) -> Iterator[Result]:
    """A trained system: each of its forms over all its seeds. On a plain BERT, decomposition as well."""
    by_form: dict[str, list[Result]] = {}
    for folder in folders:
        model = lineup.load(str(folder), quiet=True)
        plain = bool_bert(model) is None
        title = f"{'BERT' if plain else 'Bool-BERT'} {name}"
        systems: list[System] = list(lineup.dense(title, model))
        if plain:
            systems += lineup.decompositions(Dense(title, model, lineup.vectors(model)), on=f" on {title}")
        for system in systems:
            by_form.setdefault(system.name, []).append(timed(system, lineup.task))
    for form, runs in by_form.items():
        yield merged(runs, form) if len(runs) > 1 else runs[0]


def timed(system: System, task: Task) -> Result:
    start = time.perf_counter()
    result = measure(system, task, quest_metrics)
    print(f"  {fitted(system.name, 44):<44} {time.perf_counter() - start:6.1f} s", file=sys.stderr)
    return result


def write_all(folder: Path, results: Sequence[Result], task: Task, reference: str | None) -> list[dict[str, Any]]:
    """Every file of a comparison; returns the systems' metrics with their p-values."""
    make_folder(folder)
    folders = folder_names([result.name for result in results])
    summaries = [write_result(folder / folders[result.name], result, task) for result in results]
    add_p_values(summaries, results, task, reference)
    write_qrels(folder / "qrels.trec", task)
    write_text(folder / "table.md", f"{markdown(summaries)}\n{footnote(summaries)}\n")
    write_text(folder / "table.csv", comma_separated(summaries))
    write_json(folder / "table.json", summaries)
    write_json(folder / "significance.json", all_pairs(results, task))
    draw_all(summaries, folder / "pictures", main_metric(len(task.corpus)))
    write_report(folder, summaries, results, task)
    return summaries


def add_p_values(summaries: list[dict[str, Any]], results: Sequence[Result], task: Task, reference: str | None) -> None:
    """Test each system against the reference on the main metric."""
    names = [result.name for result in results]
    if reference is not None and reference not in names:
        raise EvaluationError(f"--reference {reference!r} is not in the comparison: {', '.join(names)}")
    plain = [name for name in names if name.startswith("BERT ")]
    chosen = reference or (plain[0] if plain else UNTRAINED if UNTRAINED in names else names[0])
    metric = main_metric(len(task.corpus))
    base = results[names.index(chosen)]
    for summary, result in zip(summaries, results, strict=True):
        same = result is base
        p_value = None if same else permutation_test(result.per_query[metric], base.per_query[metric])
        summary.update(reference=chosen, tested_on=metric, p_value=p_value)


def all_pairs(results: Sequence[Result], task: Task) -> list[dict[str, Any]]:
    """The permutation test for every two systems, on the main metric and on violations."""
    metrics = [name for name in (main_metric(len(task.corpus)), "violations") if name in results[0].per_query]
    return [
        {
            "first": first.name,
            "second": second.name,
            "metric": metric,
            "p_value": permutation_test(first.per_query[metric], second.per_query[metric]),
        }
        for first, second in combinations(results, 2)
        for metric in metrics
    ]


def footnote(summaries: Sequence[dict[str, Any]]) -> str:
    first = summaries[0]
    lines = [
        f"{first['data']}, {first['split']}: {first['queries']:,} queries, {first['documents']:,} documents.",
        "±: half the width of the bootstrap 95% interval. ms/query: from text to ranking, one query at a time.",
        "Violations: share of the top R that breaks the query's operators. Negated: share in the set NOT excludes.",
        "Of exact: share of the exact top results that an approximate search finds.",
        'Pairs: pairwise accuracy (NevIR) on "A that are not B" / "A that are also B".',
        f"p: paired permutation test on {first['tested_on']} against {first['reference']}.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    run_script(main)
