"""Print a summary of a data folder, a file, a Hub data set, or (without one) the embedded data.

boolbert data summary [SOURCE ...] [--json]

It reads everything, goes on after broken rows, lists them at the end, and then exits with 1.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..boolean import OPERATORS, TEMPLATES
from ..core.arguments import Parser
from ..core.errors import DataError
from ..core.tables import aligned
from ..core.terminal import print_json, printable
from .boolquestions import passage
from .labels import operators_of
from .quest import read_atoms
from .rows import parse_rows
from .schema import BoolQuestion, Document, Query, kind_of
from .setbert import read_table
from .sources import Source, open_source, usual_place

FORMATS = {
    "queries": "QUEST",
    "documents": "QUEST",
    "questions": "BoolQuestions",
    "passages": "BoolQuestions",
    "triplets": "SetBERT",
}
COLLECTIONS = ("documents", "passages")
Table = dict[str, Any]
_SPREAD = ["median", "95%", "max"]
_SHOWN = 10  # problems spelled out


def summarise(source: str | Path) -> Table:
    """The summary as plain numbers, texts and dicts; `render` shows it."""
    opened = open_source(source)
    problems: list[DataError] = []
    tables = sorted(opened.tables(), key=usual_place)
    kinds = {table: _guarded(problems, "broken", _kind, opened, table) for table in tables}
    titles: dict[str, set[str]] = {}
    collections: Table = {}
    splits: Table = {}
    for table, kind in kinds.items():
        if kind in COLLECTIONS:
            titles[table] = set()
            reading = opened, table, kind, titles[table], problems
            collections[table] = _guarded(problems, {"rows": 0}, _collection, *reading)
    for table, kind in kinds.items():
        if kind in FORMATS and kind not in COLLECTIONS:
            known = _titles_for(table, titles)
            splits[table] = _guarded(problems, {"rows": 0}, _split, opened, table, kind, known, problems)
    summary: Table = {
        "source": opened.name,
        "format": " and ".join(dict.fromkeys(FORMATS[kind] for kind in kinds.values() if kind in FORMATS)) or "unknown",
        "collections": collections,
        "splits": splits,
        "other tables": [table for table, kind in kinds.items() if kind is None],
    }
    if (atoms := opened.atoms_path()) is not None:
        documents = sum(collection["rows"] for collection in collections.values())
        summary["atoms"] = _guarded(problems, {"rows": 0}, _atoms, atoms, documents)
    summary["problems"] = [str(problem) for problem in problems]
    return summary


def _kind(source: Source, table: str) -> str | None:
    return source.kind_of(table) or kind_of(next(source.rows(table, progress=False)).values)


def _guarded(problems: list[DataError], otherwise: Any, build: Callable[..., Any], *arguments: Any) -> Any:
    """What `build` gives; a file that cannot be read to its end becomes a problem."""
    try:
        return build(*arguments)
    except DataError as error:
        problems.append(error)
        return otherwise


def _collection(source: Source, table: str, kind: str, titles: set[str], bad: list[DataError]) -> Table:
    parse = Document.from_row if kind == "documents" else passage
    words, repeated = [], 0
    for document in parse_rows(source.rows(table, bad=bad), parse, bad):
        words.append(_words(document.text))
        repeated += document.title in titles
        titles.add(document.title)
    return {"rows": len(words), "duplicate titles": repeated, "empty texts": words.count(0), "words": _spread(words)}


def _split(source: Source, table: str, kind: str, known: set[str] | None, bad: list[DataError]) -> Table:
    if kind == "triplets":
        triplets = list(read_table(source, table, bad))
        return {
            "rows": len(triplets),
            "words": _spread(_words(triplet.sentence) for triplet in triplets),
            "operators": _counts((triplet.operator or "unknown" for triplet in triplets), OPERATORS),
            "sentences per row": {
                "that fit, median": _spread(len(triplet.positives) for triplet in triplets)["median"],
                "that do not, median": _spread(len(triplet.negatives) for triplet in triplets)["median"],
            },
        }
    rows = source.rows(table, bad=bad)
    if kind == "questions":
        questions = list(parse_rows(rows, BoolQuestion.from_row, bad))
        return {
            "rows": len(questions),
            **_gold([question.positives for question in questions], known),
            "words": _spread(_words(question.question) for question in questions),
            "operators": _counts((question.operator for question in questions), OPERATORS),
            "listed negatives per query": _spread(len(question.negatives) for question in questions),
        }
    queries = list(parse_rows(rows, Query.from_row, bad))
    operators = Counter(name for query in queries for name in query.operators or ())
    operators["none"] = sum(query.operators == () for query in queries)
    operators["unknown"] = sum(query.operators is None for query in queries)
    return {
        "rows": len(queries),
        **_gold([query.docs for query in queries], known),
        "queries with atoms": sum(bool(query.atoms) for query in queries),
        "words": _spread(_words(query.query) for query in queries),
        "operators": _counts(operators.elements(), OPERATORS),
        **_cues(queries),
        "templates": _counts((query.template or "unknown" for query in queries), TEMPLATES),
        "domains": _counts(query.domain or "unknown" for query in queries),
    }


def _cues(queries: list[Query]) -> Table:
    """How well the words of queries tell the operators of their templates."""
    pairs = [(operators_of(query.query), set(query.operators)) for query in queries if query.operators is not None]
    tables: dict[str, Table] = {"precision of cues, %": {}, "recall of cues, %": {}}
    for operator in OPERATORS:
        told = [operator in meant for found, meant in pairs if operator in found]
        found_of_meant = [operator in found for found, meant in pairs if operator in meant]
        for table, values in zip(tables.values(), (told, found_of_meant), strict=True):
            if values:
                table[operator] = round(100 * sum(values) / len(values), 1)
    return {name: table for name, table in tables.items() if table}


def _gold(golds: list[tuple[str, ...]], known: set[str] | None) -> Table:
    table: Table = {"gold titles": sum(map(len, golds))}
    if known is not None:
        table["gold titles missing"] = sum(title not in known for gold in golds for title in gold)
        table["queries with all gold"] = sum(bool(gold) and known.issuperset(gold) for gold in golds)
        table["queries with no gold"] = sum(known.isdisjoint(gold) for gold in golds)
    table["gold per query"] = _spread(map(len, golds))
    return table


def _atoms(path: Path, documents: int) -> Table:
    atoms = read_atoms(path, documents)
    return {"sets": len(atoms), "documents per set": _spread(map(len, atoms.values()))}


def _titles_for(table: str, titles: dict[str, set[str]]) -> set[str] | None:
    """The collection that a split's gold is looked up in: the one of its own folder or subset, or the only one."""
    folder = table.rpartition("/")[0]
    own = [name for name in titles if name.rpartition("/")[0].removesuffix("-corpus") == folder]
    return titles[own[0]] if own else next(iter(titles.values())) if len(titles) == 1 else None


def _words(text: str) -> int:
    return len(text.split())


def _spread(values: Iterable[int]) -> Table:
    """
    >>> _spread([1, 2, 3, 4, 100])
    {'median': 3, '95%': 100, 'max': 100}
    """
    numbers = [*values] or [0]
    return dict(zip(_SPREAD, np.percentile(numbers, (50, 95, 100), method="nearest").tolist(), strict=True))


def _counts(names: Iterable[str], order: Iterable[str] = ()) -> Table:
    """How often each name comes: those of `order` first, the others by their count.

    >>> _counts(["b", "c", "c", "a"], order=["a", "z"])
    {'a': 1, 'c': 2, 'b': 1}
    """
    counts = Counter(names)
    names = dict.fromkeys([*order, *(name for name, _ in counts.most_common())])
    return {name: counts[name] for name in names if name in counts}


def render(summary: Table) -> str:
    """The text for a terminal.

    >>> print(render({"source": "here", "format": "SetBERT", "collections": {}, "other tables": [], "problems": [],
    ...               "splits": {"and": {"rows": 1200, "operators": {"and": 1200}}, "not": {"rows": 9}}}))
    here: SetBERT format
    <BLANKLINE>
                 and  not
    rows       1,200    9
    operators
      and      1,200    -
    """
    blocks = [f"{printable(summary['source'])}: {summary['format']} format"]
    for part in ("collections", "splits"):
        if summary[part]:
            blocks.append(_columns(summary[part]))
    if "atoms" in summary:
        blocks.append(_columns({"atoms": summary["atoms"]}))
    if summary["other tables"]:
        blocks.append(printable(f"not read, of no known format: {', '.join(summary['other tables'])}"))
    if problems := summary["problems"]:
        rest = [f"and {len(problems) - _SHOWN:,} more"] if len(problems) > _SHOWN else []
        blocks.append("\n  ".join([f"{len(problems):,} problems", *problems[:_SHOWN], *rest]))
    return "\n\n".join(blocks)


def _columns(tables: dict[str, Table]) -> str:
    """One row for each key of the tables, one column for each table; a dict is a section of indented rows."""
    lines: list[list[str]] = []
    for key in _merged(tables.values()):
        values = [table.get(key) for table in tables.values()]
        sections = [value for value in values if isinstance(value, dict)]
        if not sections:
            lines.append([key, *map(_cell, values)])
        elif all(list(section) == _SPREAD for section in sections):
            cells = [" / ".join(map(_cell, value.values())) if value else "-" for value in values]
            lines.append([f"{key}: {' / '.join(_SPREAD)}", *cells])
        else:
            lines.append([key])
            for name in _merged(sections):
                lines.append([f"  {name}", *(_cell((value or {}).get(name)) for value in values)])
    return aligned(["", *tables], lines, rule=False)


def _merged(tables: Iterable[Table]) -> list[str]:
    """All keys, in the order in which the tables bring them."""
    return list(dict.fromkeys(key for table in tables for key in table))


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog="boolbert data summary", description="Summarise a data set.")
    parser.add_argument("source", nargs="*", default=["countries", "sentences"], help="folder, file or Hub id")
    parser.add_argument("--json", action="store_true", help="print JSON, a list with one summary for each source")
    options = parser.parse_args(arguments)
    summaries = [summarise(source) for source in options.source]
    if options.json:
        print_json(summaries)
    else:
        print("\n\n".join(map(render, summaries)))
    return int(any(summary["problems"] for summary in summaries))
