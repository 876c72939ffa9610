"""Make Boolean queries from documents alone, look at them, and keep them as a data folder.

boolbert data queries recipes.csv                                  # make some, and show 20 of them
boolbert data queries films.jsonl --output films_made              # a folder for train/recipes/made_queries.yaml
"""

import argparse
import tempfile
from pathlib import Path
from random import Random

from ...core.arguments import Parser, add_document_flags
from ...core.errors import DataError
from ...core.terminal import fitted, printable
from ..gold import HardNegatives
from ..quest import Quest
from .documents import documents_of
from .folder import QUERIES, make_queries

_SHOWN, _WIDTH = 3, 40


def show_queries(folder: str, count: int, seed: int = 0) -> str:
    """Some training queries of a folder, each with a few documents that answer it and a few that break an operator."""
    quest = Quest(folder, progress=False)
    queries = quest.queries("train")
    chosen = sorted(Random(seed).sample(range(len(queries)), min(count, len(queries))))
    asked = [queries[index] for index in chosen]
    gold = quest.gold(asked)
    breaking = HardNegatives.from_atoms(asked, quest.atoms or {}, gold)
    lines = []
    for index, query in enumerate(asked):
        lines.append(printable(query.query))
        lines.append(f"    answers ({len(gold[index]):,}): {_titles(quest, gold[index].tolist())}")
        if len(rows := breaking.rows(index)):
            lines.append(f"    breaks it ({len(rows):,}): {_titles(quest, rows.tolist())}")
    return "\n".join(lines)


def _titles(quest: Quest, rows: list[int]) -> str:
    titles = (quest.corpus.titles[row] for row in rows[:_SHOWN])
    shown = "; ".join(fitted(title, _WIDTH) for title in titles)
    return shown + ("; ..." if len(rows) > _SHOWN else "")


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(
        prog="boolbert data queries", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("documents", help="a .jsonl, .csv, .tsv or .parquet file, a folder of texts, or a Hub data set")
    add_document_flags(parser)
    parser.add_argument(
        "--kind", metavar="NOUN", help="what the documents are called in queries; found out if not given"
    )
    parser.add_argument("--queries", type=int, default=QUERIES, help="how many to make (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--show", type=int, default=20, metavar="N", help="how many to show (%(default)s)")
    parser.add_argument("--output", type=Path, metavar="DIR", help="keep them in this new folder")
    options = parser.parse_args(arguments)
    if options.show < 0:
        raise DataError(f"--show must be at least 0, got {options.show}")
    documents = documents_of(options)
    print(documents.preview())
    with tempfile.TemporaryDirectory() as aside:
        folder = options.output or Path(aside) / "made"
        made = make_queries(documents, folder, queries=options.queries, seed=options.seed, kind=options.kind)
        print(made if options.output else str(made).removeprefix(f"{folder}: "))
        for note in made.notes:
            print(f"note: {note}")
        if options.show:
            print(f"\n{show_queries(str(folder), options.show, seed=options.seed)}")
    return 0
