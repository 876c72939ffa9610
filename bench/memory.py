"""How far memory grows with a collection as large as QUEST's: while it is read, or made into queries.

python bench/memory.py read                          # 325,505 documents of 400 words, about a minute
python bench/memory.py queries --documents 100000 --words 100

The documents are made up. They are read in a fresh process, whose peak memory is compared with the size of the text.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in ("a", "e", "i", "o", "u", "é", "en", "or")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=WORKS)
    parser.add_argument("--documents", type=int, default=325_505)
    parser.add_argument("--words", type=int, default=400, help="words of a document")
    parser.add_argument("--folder", type=Path, help="measure with the documents of this folder: the fresh process")
    options = parser.parse_args()
    if options.folder:
        measure(options.what, options.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_documents(Path(folder) / "documents.jsonl", options.documents, options.words)
        subprocess.run([sys.executable, __file__, options.what, "--folder", folder], check=True)


def measure(what: str, folder: Path) -> None:
    work = WORKS[what](folder)
    text, before, start = (folder / "documents.jsonl").stat().st_size, peak_memory(), time.perf_counter()
    work()
    seconds, grown = time.perf_counter() - start, peak_memory() - before
    print(f"{text / 1e6:,.0f} MB of documents, {what} in {seconds:,.0f} s")
    print(f"peak memory grew by {grown / 1e6:,.0f} MB, {grown / text:.2f} times the documents")


def read(folder: Path) -> Callable[[], object]:
    from boolbert.data import Quest

    return lambda: Quest(folder, progress=False).corpus


def queries(folder: Path) -> Callable[[], object]:
    from boolbert.data.own import OwnDocuments, make_queries

    return lambda: print(make_queries(OwnDocuments(folder / "documents.jsonl", progress=False), folder / "made"))


WORKS = {"read": read, "queries": queries}


def write_documents(path: Path, count: int, words: int) -> None:
    """Reports with a year, kinds, names and a country, and then a stretch of a long text of common and rare words."""
    rng = random.Random(0)
    vocabulary = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))) for _ in range(60_000)]
    names = [
        f"{one.title()} {two.title()}" for one, two in zip(vocabulary[:40_000], reversed(vocabulary), strict=False)
    ]
    kinds = vocabulary[:800]
    stock = rng.choices(vocabulary, cum_weights=falling(vocabulary), k=1_000_000)
    of_kinds, of_names = falling(kinds), falling(names)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            first, second = rng.choices(kinds, cum_weights=of_kinds, k=2)
            writer, star = rng.choices(names, cum_weights=of_names, k=2)
            begin = rng.randrange(len(stock) - words)
            text = (
                f"Report {number} is a {rng.randint(1900, 2020)} {first} {second} report written by {writer} and "
                f"starring {star}. The {' of the '.join(stock[begin : begin + words // 3])}."
            )
            country = rng.choice(["France", "Spain", "Chad", "Peru"])
            row = {"title": f"Report {number}", "text": text, "country": country}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def falling(items: list[str]) -> list[float]:
    """Cumulative weights: the first is common, the last rare, as words are in any language."""
    return list(accumulate(1 / (rank + 5) for rank in range(len(items))))


def peak_memory() -> int:
    """The most memory this process ever held, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # unlike getrusage, it does not count what the parent held before this program started
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
