"""Make Boolean queries from documents alone, look at them, and keep them as a data folder.

boolbert data queries recipes.csv                                  # make some, and show 20 of them
boolbert data queries recipes.csv --atoms cuisine,year --show 50
boolbert data queries films.jsonl --output films_made              # a folder for train/quest.py --data films_made
"""

import argparse
import sys
import tempfile
from pathlib import Path

from ...core.arguments import add_document_flags
from ...core.errors import DataError
from .documents import documents_of
from .folder import QUERIES, QueryFolder, make_queries
from .show import show_queries


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
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
        print(_summary(made, kept=options.output is not None))
        if options.show:
            print(f"\n{show_queries(str(folder), options.show, seed=options.seed)}")
    return 0


def _summary(made: QueryFolder, *, kept: bool) -> str:
    text = str(made) if kept else str(made).removeprefix(f"{made.folder}: ")
    return "\n".join([text, *(f"note: {note}" for note in made.notes)])


if __name__ == "__main__":
    sys.exit(main())
