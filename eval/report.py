"""Join an evaluation's metrics, pictures and some queries with their top results into one HTML page.

python eval/report.py runs/compare        # a folder written by eval/compare.py, eval/quest.py or eval/boolquestions.py
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from boolbert.errors import EvaluationError, run_script
from boolbert.eval.arguments import parse
from boolbert.eval.page import page
from boolbert.eval.pictures import SHORT
from boolbert.eval.results import slug
from boolbert.eval.tables import cells, columns_of, with_margin

EXAMPLES = 12
SYSTEMS_SHOWN = 3
MARKS = {"hit": "✓", "violation": "✗", "miss": "·"}
MEANING = {"hit": "answers the query", "violation": "breaks an operator of the query", "miss": "does not answer it"}


def write_report(folder: Path, examples: int = EXAMPLES) -> Path:
    """Write `report.html` into a folder of results; nothing in it points outside of the file."""
    systems, queries = read_results(folder)
    first = systems[0]
    title = f"{first['data']}, {first['split']}"
    kind = next((name for name in ("template", "operator") if name in first["metrics"]), None)
    sections = [
        section("Results", result_table(systems) + notes(systems)),
        section("Pictures", pictures(folder)),
    ]
    if kind:
        sections.append(section(f"By {kind}", group_tables(systems, kind)))
    shown = example_systems(systems)
    sections.append(section("Examples", example_list(queries, shown, examples, kind)))
    many = f"{len(systems)} systems" if len(systems) > 1 else first["system"]
    lead = f"{first['queries']:,} queries over {first['documents']:,} documents; {many}."
    path = folder / "report.html"
    path.write_text(page(title, lead, sections), encoding="utf-8")
    return path


def read_results(folder: Path) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """The systems' metrics, and each system's rows of per_query.jsonl."""
    table, single = folder / "table.json", folder / "metrics.json"
    if table.exists():
        systems = json.loads(table.read_text(encoding="utf-8"))
        places = {system["system"]: folder / slug(system["system"]) for system in systems}
    elif single.exists():
        systems = [json.loads(single.read_text(encoding="utf-8"))]
        places = {systems[0]["system"]: folder}
    else:
        raise EvaluationError(f"{folder}: no evaluation there (neither table.json nor metrics.json)")
    queries = {}
    for name, place in places.items():
        lines = (place / "per_query.jsonl").read_text(encoding="utf-8").splitlines()
        queries[name] = [json.loads(line) for line in lines]
    return systems, queries


def section(title: str, body: str) -> str:
    return f'<section id="{slug(title)}"><h2>{escape(title)}</h2>{body}</section>'


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are HTML already."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def result_table(systems: Sequence[Mapping[str, Any]]) -> str:
    header, rows = cells(systems, margins=True, best="**")
    return html_table([escape(name) for name in header], [[_cell(text) for text in row] for row in rows])


def _cell(text: str) -> str:
    """A cell of the table: what is best in bold, the margin small."""
    inner = escape(text.strip("*"))
    inner = re.sub(r"±(\S+)", r'<span class="margin">±\1</span>', inner)
    return f"<strong>{inner}</strong>" if text.startswith("**") else inner


def notes(systems: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "± is half the width of the bootstrap 95% interval over the queries; the best of a column is bold.",
        "R@K and MR@K: share of the gold in the top K, and share of queries with all of it there.",
        "R-prec: share of gold among the first R, R being how much gold there is.",
        "Violations: share of the first R that breaks the query's operators, over queries that can be broken; "
        "Negated: share in the set that NOT excludes. Less is better.",
        "Pairs: each of “A that are not B” and “A that are also B” prefers its own of two documents (chance: 25%).",
        "ms/query: from one query's text to its ranked list. Parameters: weights that answer a query.",
    ]
    tested = next((system for system in systems if system.get("reference")), None)
    if tested:
        lines.append(f"p: paired permutation test on {tested['tested_on']} against {tested['reference']}.")
    return "<ul class=notes>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def pictures(folder: Path) -> str:
    """The folder's SVG pictures, put into the page."""
    found = []
    for number, path in enumerate(sorted((folder / "pictures").glob("*.svg"))):
        svg = path.read_text(encoding="utf-8")
        svg = svg[svg.index("<svg") :]
        # Ids are per file; in one page they must not meet.
        svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>p{number}-", svg)
        found.append(f'<figure><div class="scroll picture">{svg}</div></figure>')
    return "".join(found) or "<p>No pictures.</p>"


def group_tables(systems: Sequence[Mapping[str, Any]], kind: str) -> str:
    """For each metric of the main table, systems by groups; folded away."""
    groups = list(systems[0]["metrics"][kind])
    groups = [name for name in SHORT if name in groups] + [name for name in groups if name not in SHORT]
    tables = []
    for metric, title, _ in columns_of(systems):
        if not any(metric in values for values in systems[0]["metrics"][kind].values()):
            continue
        rows = [
            [
                escape(system["system"]),
                *(_cell(with_margin(system["metrics"][kind][name].get(metric))) for name in groups),
            ]
            for system in systems
        ]
        header = ["System", *(escape(SHORT.get(name, name)) for name in groups)]
        tables.append(f"<details><summary>{escape(title)}</summary>{html_table(header, rows)}</details>")
    return "".join(tables)


def example_systems(systems: Sequence[Mapping[str, Any]]) -> list[str]:
    """Three systems for the examples: of the reference, the first Bool-BERT, the best, and the least violating one."""
    names = [system["system"] for system in systems]
    metric = systems[0].get("tested_on", "r_precision")
    best = max(systems, key=lambda system: system["metrics"]["all"][metric]["mean"] or 0.0)["system"]
    boolean = next((name for name in names if name.startswith("Bool-BERT")), None)
    broken = [(system["metrics"]["all"].get("violations") or {}).get("mean") for system in systems]
    kept = min(zip(broken, names, strict=True), key=lambda pair: 1.0 if pair[0] is None else pair[0])[1]
    chosen = [systems[0].get("reference"), boolean, best, kept, *names]
    return list(dict.fromkeys(name for name in chosen if name is not None))[:SYSTEMS_SHOWN]


def example_list(
    queries: Mapping[str, Sequence[Mapping[str, Any]]], shown: Sequence[str], count: int, kind: str | None
) -> str:
    rows = queries[shown[0]]
    legend = " ".join(f'<span class="{mark}">{MARKS[mark]} {escape(MEANING[mark])}</span>' for mark in MARKS)
    parts = [f'<p class="legend">{legend}</p>']
    for index in spread([row.get(kind, "") if kind else "" for row in rows], count):
        row = rows[index]
        label = SHORT.get(row.get(kind, ""), row.get(kind, "")) if kind else ""
        gold = ", ".join(row["gold"][:12]) + (f" and {len(row['gold']) - 12} more" if len(row["gold"]) > 12 else "")
        lists = "".join(_ranked(name, queries[name][index]) for name in shown)
        parts.append(
            f'<article><h3>{escape(row["query"])} <span class="tag">{escape(label)}</span></h3>'
            f'<p class="gold"><b>{len(row["gold"])} gold:</b> {escape(gold)}</p>'
            f'<div class="lists">{lists}</div></article>'
        )
    return "".join(parts)


def _ranked(system: str, row: Mapping[str, Any]) -> str:
    items = "".join(
        f'<li class="{found["mark"]}" title="{MEANING[found["mark"]]}"><b>{MARKS[found["mark"]]}</b> '
        f"{escape(found['title'])}</li>"
        for found in row["top"]
    )
    return f"<div><h4>{escape(system)}</h4><ol>{items}</ol></div>"


def spread(labels: Sequence[str], count: int) -> list[int]:
    """The places of the first queries of each label in turn, so that every label is seen.

    >>> spread(["a", "a", "a", "b", "c"], 4)
    [0, 1, 3, 4]
    """
    places: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label, []).append(place)
    turns = range(max(map(len, places.values()), default=0))
    order = [some[turn] for turn in turns for some in places.values() if turn < len(some)]
    return sorted(order[:count], key=lambda place: (list(places).index(labels[place]), place))


@dataclass
class Arguments:
    folder: str = field(metadata={"help": "folder of results"})
    examples: int = field(default=EXAMPLES, metadata={"help": "how many queries to show"})


def main(arguments: Sequence[str] | None = None) -> None:
    import sys

    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and not words[0].startswith("-"):
        words.insert(0, "--folder")
    args = parse(Arguments, __doc__, words)
    print(write_report(Path(args.folder), args.examples))


if __name__ == "__main__":
    run_script(main)
