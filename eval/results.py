"""A system's result: measured once, written as metrics.json, per_query.jsonl and, as TREC's tools read it, run.trec."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import torch

from boolbert.core.files import make_folder, write_json, write_text
from boolbert.core.runs import METRICS
from boolbert.data import Corpus
from boolbert.data.lines import write_rows
from boolbert.data.tasks import Task
from boolbert.eval.significance import averages
from boolbert.eval.systems import System
from boolbert.retrieval.metrics import Metrics, PerQuery, search_depth
from boolbert.retrieval.neighbours import Ranked, Scores
from boolbert.retrieval.ranking import hits, pairwise_accuracy

SHOWN = 10  # ranked documents per query in per_query.jsonl
TIMED = 20  # queries whose latency is measured
LATENCY_DEPTH = 100


@dataclass
class Result:
    """One system on one task. Several seeds of it become one result by `merged`."""

    name: str
    parameters: int
    per_query: PerQuery
    scores: Scores
    rows: Ranked
    latency_ms: float
    seeds: int = 1
    spread: dict[str, float] = field(default_factory=dict)  # standard deviation of the means over the seeds


def slug(name: str) -> str:
    """A name made into the name of a folder.

    >>> slug("Bool-BERT quest, gate given")
    'bool-bert-quest-gate-given'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")


def folder_names(names: Sequence[str]) -> dict[str, str]:
    """A folder for each system of a comparison, in the order of the table.

    >>> folder_names(["BM25", "run é", "run è"])
    {'BM25': '1-bm25', 'run é': '2-run', 'run è': '3-run'}
    """
    return {name: f"{number}-{slug(name)}" for number, name in enumerate(dict.fromkeys(names), start=1)}


def measure(system: System, task: Task, metrics: Metrics) -> Result:
    """Search, score and time one system."""
    scores, rows = system.search(task.questions, search_depth(task))
    return Result(
        name=system.name,
        parameters=system.parameters,
        per_query={**metrics(task, rows), **system.own_metrics(task.questions, rows), **pair_accuracy(task, system)},
        scores=scores,
        rows=rows,
        latency_ms=latency(system, task),
    )


def latency(system: System, task: Task) -> float:
    """Milliseconds from one query's text to its ranked list, the median over some queries at batch size 1."""
    chosen = np.linspace(0, len(task) - 1, min(TIMED, len(task))).astype(int)
    times = []
    for index in [chosen[0], chosen[0], *chosen]:  # the first two only warm up
        start = time.perf_counter()
        system.search([task.questions[index]], LATENCY_DEPTH)
        times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times[2:]))


def pair_accuracy(task: Task, system: System) -> PerQuery:
    """NevIR's pairwise accuracy, for the queries that have a negation pair; nothing where none has."""
    if not task.pairs:
        return {}
    score = system.scorer([question for pair in task.pairs for question in pair.questions])
    scores = [
        torch.cat([score(row, row + 1)[2 * number : 2 * number + 2] for row in pair.rows], dim=1)
        for number, pair in enumerate(task.pairs)
    ]
    values = np.full(len(task), np.nan)
    values[[pair.query for pair in task.pairs]] = pairwise_accuracy(torch.stack(scores).float().cpu())
    return {"pairwise_accuracy": values}


def merged(runs: Sequence[Result], name: str) -> Result:
    """Several seeds as one result: their mean on every query. The rankings are the first seed's."""
    first = runs[0]
    means = {metric: [float(np.nanmean(run.per_query[metric])) for run in runs] for metric in first.per_query}
    return replace(
        first,
        name=name,
        per_query={metric: np.mean([run.per_query[metric] for run in runs], axis=0) for metric in first.per_query},
        latency_ms=float(np.median([run.latency_ms for run in runs])),
        seeds=len(runs),
        spread={metric: float(np.std(values, ddof=1)) for metric, values in means.items()} if len(runs) > 1 else {},
    )


def write_result(folder: Path, result: Result, task: Task) -> dict[str, Any]:
    """Write a result's three files, and return what stands in metrics.json."""
    make_folder(folder)
    metrics = {
        "system": result.name,
        "data": task.name,
        "split": task.split,
        "queries": len(task),
        "documents": len(task.corpus),
        "parameters": result.parameters,
        "latency_ms": round(result.latency_ms, 3),
        "seeds": result.seeds,
        "seed_deviation": result.spread,
        "metrics": averages(result.per_query, task.groups),
    }
    write_run(folder / "run.trec", task, result.scores, result.rows, slug(result.name) or "system")
    write_rows(folder / "per_query.jsonl", query_rows(result, task))
    write_json(folder / METRICS, metrics)
    return metrics


def query_rows(result: Result, task: Task) -> list[dict[str, Any]]:
    """A row for each query: what was asked, its metrics, and the first documents, each a hit, a violation or a miss."""
    gold = hits(result.rows[:, :SHOWN], task.gold)
    broken = hits(result.rows[:, :SHOWN], task.violating) if task.violating is not None else np.zeros_like(gold)
    titles = task.corpus.titles
    rows = []
    for index, question in enumerate(task.questions):
        top = [
            {
                "title": titles[row],
                "score": round(float(result.scores[index, rank]), 6),
                "mark": "hit" if gold[index, rank] else "violation" if broken[index, rank] else "miss",
            }
            for rank, row in enumerate(result.rows[index, :SHOWN].tolist())
            if row >= 0
        ]
        rows.append(
            {
                "id": question.id,
                "query": question.text,
                "operators": question.operators,
                **{kind: labels[index] for kind, labels in task.groups.items()},
                "gold": [titles[int(row)] for row in task.gold[index]],
                "metrics": {name: _number(values[index]) for name, values in result.per_query.items()},
                "top": top,
            }
        )
    return rows


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 6)


def identifier(text: str) -> str:
    """A title or id without what separates columns and lines; `urllib.parse.unquote` gives it back.

    >>> identifier("Costa Rica"), identifier("100% #1"), identifier("a\u2028b")
    ('Costa%20Rica', '100%25%20%231', 'a%E2%80%A8b')
    """
    return re.sub(r"[%#\s\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda match: quote(match.group(), safe=""), text)


def document_id(corpus: Corpus, row: int) -> str:
    """A document's title as an identifier; where two documents share a title, with the row.

    >>> from boolbert.data import Document
    >>> document_id(Corpus([Document("Costa Rica", "A country.")]), 0)
    'Costa%20Rica'
    """
    title = corpus.titles[row]
    return identifier(title) + (f"#{row}" if title in corpus.duplicates else "")


def write_run(path: Path, task: Task, scores: Scores, rows: Ranked, tag: str) -> None:
    """`query Q0 document rank score tag`, a line for each ranked document."""
    name = re.sub(r"\s+", "_", tag)
    names = [document_id(task.corpus, row) for row in range(len(task.corpus))]
    lines = (
        f"{identifier(question.id)} Q0 {names[row]} {rank} {value:.9g} {name}\n"
        for question, values, found in zip(task.questions, scores.tolist(), rows.tolist(), strict=True)
        for rank, (value, row) in enumerate(zip(values, found, strict=True), start=1)
        if row >= 0
    )
    write_text(path, "".join(lines))


def write_qrels(path: Path, task: Task) -> None:
    """`query 0 document 1`, a line for each gold document."""
    judged = ((question, int(row)) for question, rows in zip(task.questions, task.gold, strict=True) for row in rows)
    lines = (f"{identifier(question.id)} 0 {document_id(task.corpus, row)} 1\n" for question, row in judged)
    write_text(path, "".join(lines))
