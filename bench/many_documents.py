"""Memory and time of making queries from very many documents: they stream, and the tables are bounded.

python bench/many_documents.py                       # 20,000 made documents
python bench/many_documents.py --documents 1000000   # 0.7 GB of text, a quarter of an hour of one idle CPU core
"""

import argparse
import json
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from random import Random

from read_documents import peak_memory

from boolbert.data.own import OwnDocuments, make_queries

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in ("a", "e", "i", "o", "u", "an", "en", "or")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=6000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.jsonl"
        write_documents(path, options.documents)
        start, used = time.process_time(), peak_memory()
        print(make_queries(OwnDocuments(path), Path(folder) / "made", queries=options.queries))
        seconds = time.process_time() - start
        size, peak = path.stat().st_size / 1e6, peak_memory() / 2**20
        print(f"{size:,.0f} MB of documents: {seconds:,.0f} s of CPU, {peak:,.0f} MB at the peak")
        print(f"(of which {used / 2**20:,.0f} MB were used before)")


def write_documents(path: Path, count: int) -> None:
    """Texts of 100 words: common and rare words as in any language, names, kinds, years, a field."""
    rng = Random(0)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))) for _ in range(60_000)]
    names = [f"{one.title()} {two.title()}" for one, two in zip(words[:40_000], reversed(words), strict=False)]
    kinds = rng.sample(words, 800)
    of_words, of_names, of_kinds = (
        list(accumulate(1 / (rank + shift) for rank in range(len(items))))
        for items, shift in ((words, 5), (names, 50), (kinds, 5))
    )
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            first, second = rng.choices(kinds, cum_weights=of_kinds, k=2)
            writer, *stars = rng.choices(names, cum_weights=of_names, k=4)
            text = f"Report {number} is a {rng.randint(1900, 2020)} {first} {second} report written by {writer}"
            text += f" and starring {stars[0]}, {stars[1]} and {stars[2]}."
            for place, word in enumerate(rng.choices(words, cum_weights=of_words, k=40)):
                text += f" {('the', 'of a', 'with')[place % 3]} {word}{'.' if place % 8 == 7 else ''}"
            row = {
                "title": f"Report {number}",
                "text": text,
                "country": rng.choice(["France", "Spain", "Chad", "Peru"]),
            }
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
