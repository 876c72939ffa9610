"""How long people wait: the commands of the first hour, each in a fresh process with an empty cache, and their goals.

make waits                                       # or: python bench/waits.py
python bench/waits.py --only "first search" index
python bench/waits.py --package ../older         # a folder that holds another checkout as boolbert/, to compare with

The documents are 150 made-up recipes, hotels, gadgets and flats. CPU seconds are those of all cores together: on a
machine that does other things too, they say more than the clock.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from speed.start import QUERY, seconds_of
from speed.timing import Table

DOCUMENTS = 150
EXPLAIN = ["explain", "monarchies or island countries", "--html", "explain.html", "--png", "explain.png"]
# Name: the command's words, and the seconds it may take on two idle cores. The order is that of a new user: what an
# earlier command leaves in the cache is there for the later ones.
WAITS: dict[str, tuple[list[str], float]] = {
    "first search": (["search", QUERY], 8),
    "later search": (["search", QUERY], 3),
    "explain, both files": (EXPLAIN, 8),
    "index": (["index", "documents.jsonl", "--output", "indexed"], 6),
    "data queries": (["data", "queries", "documents.jsonl"], 6),
    "fit": (["fit", "documents.jsonl", "--output_dir", "fitted"], 90),
    "upgrade": (["upgrade", "--output_dir", "upgraded"], 120),
    "demo": (["demo", "--output", "demo"], 240),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=WAITS, default=list(WAITS), help="these commands alone")
    parser.add_argument("--package", metavar="DIR", help="take boolbert from this folder")
    parser.add_argument("--json", metavar="FILE", help="also write the figures there")
    options = parser.parse_args()
    rows, table = [], Table(what=-20, seconds=9, CPU_seconds=12, goal=6)
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "BOOLBERT_CACHE": f"{scratch}/cache", "XDG_CACHE_HOME": f"{scratch}/cache"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled files are part of an installation
        if options.package:
            environment["PYTHONPATH"] = str(Path(options.package).absolute())
        write_documents(Path(scratch, "documents.jsonl"))
        seconds_of(["--help"], environment, scratch)
        for name in options.only:
            words, goal = WAITS[name]
            wall, cpu = seconds_of(words, environment, scratch)
            rows.append(table.add(what=name, seconds=round(wall, 1), CPU_seconds=round(cpu, 1), goal=goal))
            if options.json:
                Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    sys.exit(any(row["seconds"] > row["goal"] for row in rows))


def write_documents(path: Path) -> None:
    from boolbert.data.denials.generate import SPLITS, denial_documents

    documents = [document for split in SPLITS for document in denial_documents(split)][:DOCUMENTS]
    path.write_text("".join(f"{json.dumps(document)}\n" for document in documents), encoding="utf-8")


if __name__ == "__main__":
    main()
