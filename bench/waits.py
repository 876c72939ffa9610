"""How long people wait: commands and first answers in Python, each in a fresh process, and their goals.

make waits                                       # or: python bench/waits.py
python bench/waits.py --only "first search" index

The first search begins with an empty cache. The documents are 150 made-up recipes, hotels, gadgets and flats; LangChain
and `says` have texts of data/trades. CPU seconds are those of all cores together: on a machine that
does other things too, they say more than the clock. silence: the longest time without a line, where output goes into a
pipe.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from speed.timing import Table

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS, LANGCHAIN_DOCUMENTS = 150, 200
SHORT_TEXTS, TEXTS, WORDS = 30, 1000, 60
SILENCE = 12.0  # seconds: the first line comes after two, and then one every ten
QUERY = "landlocked countries in Africa that are not former British colonies"
EXPLAIN = ["explain", "monarchies or island countries", "--html", "explain.html", "--png", "explain.png"]

# What code that measures itself, without its imports, runs first.
TIMED = """
import json, os, time

def timed(work):
    before, began = os.times(), time.perf_counter()
    work()
    seconds, after = time.perf_counter() - began, os.times()
    print(json.dumps([seconds, after.user + after.system - before.user - before.system]))

def texts_of(name):
    return json.loads(open(name).read())
"""
LANGCHAIN = """
from langchain_core.vectorstores import InMemoryVectorStore
from boolbert import obey
from boolbert.integrations.langchain import BoolEmbeddings, BoolRetriever, with_clauses

encoder = obey("sentence-transformers/all-MiniLM-L6-v2")
documents = with_clauses(texts_of("langchain.json"), encoder)
store = InMemoryVectorStore.from_documents(documents, BoolEmbeddings(encoder))
encoder = obey("sentence-transformers/all-MiniLM-L6-v2")  # one that knows nothing, as in another process
retriever = BoolRetriever(vectorstore=store, embeddings=encoder, k=10)
timed(lambda: retriever.invoke("hotels without a pool"))
"""
SAYS = """
from boolbert import says

says(["A quiet hotel."], "a pool")
texts = texts_of("{name}.json")
timed(lambda: says(texts, "a guarantee"))
"""


class Wait(NamedTuple):
    """The words of a command or Python code, the seconds that it may take, and why it takes more.

    goal: in times of the wait `beside`, if there is one. inside: the code measures itself. needs: a package. silence:
    whether it has to say how far it is.
    """

    words: list[str]
    goal: float
    reason: str = ""
    beside: str = ""
    inside: bool = False
    needs: str = ""
    silence: bool = False


def readme_block() -> str:
    """The README's first code in Python."""
    found = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    if found is None:
        raise RuntimeError("README.md has no code in Python")
    return found[1]


def code(text: str) -> list[str]:
    return ["-c", text]


def boolbert(*words: str) -> list[str]:
    return ["-m", "boolbert.cli", *words]


# The order is that of a new user: what an earlier command leaves in the cache is there for the later ones.
WAITS = {
    "first search": Wait(boolbert("search", QUERY), 8),
    "later search": Wait(boolbert("search", QUERY), 3),
    "README's first block": Wait(code(readme_block()), 1.5, beside="later search"),
    "explain, both files": Wait(boolbert(*EXPLAIN), 8, "torch and transformers take 7 CPU s of 10"),
    "index": Wait(
        boolbert("index", "documents.jsonl", "--output", "indexed"),
        6,
        "documents and clauses take 7 CPU s of 10",
        silence=True,
    ),
    "index --calibrate": Wait(boolbert("index", "indexed", "--calibrate"), 120, silence=True),
    "data queries": Wait(boolbert("data", "queries", "documents.jsonl"), 6),
    "upgrade": Wait(boolbert("upgrade", "--output_dir", "upgraded"), 120, silence=True),
    "says, 30 short texts": Wait(code(TIMED + SAYS.format(name="short")), 0.5, inside=True),
    "says, 1,000 texts": Wait(code(TIMED + SAYS.format(name="texts")), 15, inside=True),
    "LangChain's first": Wait(code(TIMED + LANGCHAIN), 3, inside=True, needs="langchain_core"),
    "demo": Wait(boolbert("demo", "--output", "demo"), 240, "two trainings side by side take most of it"),
}
# Tables of other programs that are printed behind that of the waits: their titles, and the programs. What many queries
# take, one by one and at once, belongs here too.
TABLES: dict[str, list[str]] = {
    "Documents on a CPU, beside SentenceTransformer.encode; the goal is 1.8 times its speed:": [
        *("bench/all.py", "--only", "encode", "--device", "cpu"),
    ],
    "Search with reading, one by one (p50, p99, mean) and many at once, in ms for a query:": [
        *("bench/growth.py", "--documents", "10000", "--stores", "folder", "--evidence", "yes", "--queries", "50"),
    ],
}


class Measured(NamedTuple):
    """The clock's and the CPU's seconds, and the longest time without a line."""

    seconds: float
    cpu: float
    silence: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=WAITS, help="these waits alone, without the other tables")
    options = parser.parse_args()
    table = Table(what=-21, now=8, CPU_seconds=12, goal=6, silence=8, verdict=-1)
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "BOOLBERT_CACHE": f"{scratch}/cache", "XDG_CACHE_HOME": f"{scratch}/cache"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled files are part of an installation
        write_texts(Path(scratch))
        measure(boolbert("--help"), environment, scratch)
        missed = run_all(options.only or list(WAITS), environment, scratch, table)
    for title, program in TABLES.items() if options.only is None else ():
        print(f"\n{title}", flush=True)
        missed |= subprocess.run([sys.executable, *program], cwd=ROOT).returncode != 0
    sys.exit(missed)


def run_all(names: list[str], environment: dict[str, str], folder: str, table: Table) -> bool:
    """Measure these waits, and print each; whether a goal was missed."""
    missed, known = False, dict[str, float]()
    for name in names:
        wait = WAITS[name]
        if wait.needs and find_spec(wait.needs) is None:
            table.add(what=name, verdict=f"NOT MEASURED: {wait.needs} is missing; .venv/frameworks/bin/python has it")
            continue
        if wait.beside and wait.beside not in known:
            for _ in range(2):  # the first one fills the cache
                known[wait.beside] = measure(WAITS[wait.beside].words, environment, folder).seconds
        found = measure(wait.words, environment, folder, inside=wait.inside)
        known[name] = found.seconds
        goal = wait.goal * known.get(wait.beside, 1.0)
        now, cpu, silence = (round(value, 2 if wait.goal < 1 else 1) for value in found)
        result = verdict(wait, goal, now, cpu, silence)
        shown = {"silence": silence} if wait.silence else {}
        table.add(what=name, now=now, CPU_seconds=cpu, goal=round(goal, 1), **shown, verdict=result)
        missed |= result != "met"
    return missed


def measure(words: list[str], environment: dict[str, str], folder: str, *, inside: bool = False) -> Measured:
    """What a process takes, from the shell to its end; inside: what it has measured itself."""
    before, began = os.times(), time.perf_counter()
    lines, moments = list[str](), [began]
    with subprocess.Popen(
        [sys.executable, *words],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            moments.append(time.perf_counter())
    ended, after = time.perf_counter(), os.times()
    if process.returncode:
        raise RuntimeError("".join(lines).strip().splitlines()[-1])
    if inside:
        return Measured(*json.loads(lines[-1]), 0.0)
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    silence = max(later - earlier for earlier, later in zip(moments, [*moments[1:], ended], strict=True))
    return Measured(ended - began, cpu, silence)


def verdict(wait: Wait, goal: float, now: float, cpu: float, silence: float) -> str:
    """Whether the goal is met, and else why not.

    >>> imports = Wait([], 8, "imports")
    >>> verdict(imports, 8, 6.0, 9.0, 6.0), verdict(imports, 8, 9.0, 9.0, 9.0)
    ('met', 'imports')
    >>> verdict(imports, 8, 40.0, 7.0, 40.0)
    'the machine is busy: 7.0 CPU seconds would do'
    >>> verdict(imports._replace(silence=True), 80, 40.0, 7.0, 40.0)
    'no line for 40.0 seconds'
    """
    if now <= goal:
        return f"no line for {silence} seconds" if wait.silence and silence > SILENCE else "met"
    return f"the machine is busy: {cpu} CPU seconds would do" if cpu <= goal else wait.reason or "not met"


def write_texts(folder: Path) -> None:
    from boolbert.data import Quest
    from boolbert.data.embedded import denials_folder
    from boolbert.data.lines import write_rows
    from boolbert.data.trades import trades

    documents = list(Quest(denials_folder("dev"), progress=False).documents())[:DOCUMENTS]
    rows = [{"title": document.title, "text": document.text} for document in documents]
    write_rows(folder / "documents.jsonl", rows)
    every = [text for trade in trades() for text in trade.texts]
    words = [text.split() for text in every]
    long = [" ".join(text[:WORDS]) for text in words if len(text) >= WORDS]
    short = [" ".join(text[: WORDS // 4]) for text in words]
    spread = every[:: len(every) // LANGCHAIN_DOCUMENTS][:LANGCHAIN_DOCUMENTS]
    texts = {"langchain": spread, "texts": long[:TEXTS], "short": short[:SHORT_TEXTS]}
    for name, own in texts.items():
        (folder / f"{name}.json").write_text(json.dumps(own), encoding="utf-8")


if __name__ == "__main__":
    main()
