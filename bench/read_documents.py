"""Memory and speed of reading a document collection as large as QUEST's: 325,505 documents of 400 words.

python bench/read_documents.py                      # the full size, about a minute
python bench/read_documents.py --documents 20000    # a few seconds

Writes a corpus of made-up words (some outside ASCII) to a temporary folder, reads it in a fresh process, and prints
the growth of that process's peak memory over the size of the text (the goal: under 2), and documents per second.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

LETTERS = "etaoinshrdlucmfwygpbvk"
ACCENTED = "éüøñçş"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=325_505)
    parser.add_argument("--words", type=int, default=400, help="words of a document")
    parser.add_argument("--read", type=Path, help="read this folder and print its figures as JSON; the fresh process")
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read(options.read)))
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "documents.jsonl", options.documents, options.words)
        command = [sys.executable, __file__, "--read", folder]
        figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    text, memory, before = (figures[name] / 1e6 for name in ("text", "memory", "before"))
    print(f"documents            {figures['documents']:>10,}")
    print(f"text, MB             {text:>10,.1f}")
    print(f"peak memory, MB      {memory:>10,.1f}   above the {before:,.0f} MB of the imports alone")
    print(f"memory over text     {memory / text:>10.2f}")
    print(f"documents a second   {figures['documents'] / figures['seconds']:>10,.0f}")


def write(path: Path, documents: int, words: int) -> None:
    """Documents cut at random places from a long text, which is far quicker than choosing word by word."""
    rng = random.Random(0)
    vocabulary = ["".join(rng.choices(LETTERS, k=rng.randint(2, 9))) for _ in range(20_000)]
    vocabulary += [word[:1] + rng.choice(ACCENTED) + word[1:] for word in vocabulary[:1000]]
    stock = rng.choices(vocabulary, k=1_000_000)
    starts = [0, *accumulate(len(word) + 1 for word in stock)]
    text = " ".join(stock)
    with path.open("w", encoding="utf-8") as file:
        for number in range(documents):
            first = rng.randrange(len(stock) - words)
            body = text[starts[first] : starts[first + words] - 1]
            file.write(json.dumps({"title": f"Document {number}", "text": body}, ensure_ascii=False) + "\n")


def read(folder: Path) -> dict[str, float]:
    from boolbert.data import Quest

    before = peak_memory()
    start = time.perf_counter()
    corpus = Quest(folder).corpus
    seconds = time.perf_counter() - start
    memory = peak_memory() - before
    return {
        "documents": len(corpus),
        "text": corpus.text_bytes,
        "before": before,
        "memory": memory,
        "seconds": seconds,
    }


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
