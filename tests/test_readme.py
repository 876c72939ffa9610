"""Every block of the README runs, in its order, in a clean clone: RUNS has each line of them, and what it must show.

What a reader has and a clone has not is made in `clone`; REPLACED names what stands for other words there, and a line
that is not run as printed says in RUNS what is run instead, and why.
"""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from clone_fixtures import copied
from own_documents import write_products
from store_fixtures import PACKAGES, new_database

import boolbert

ROOT = Path(boolbert.__file__).parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FILMS = """id,text,year
tt0044706,A western about a marshal.,1952
tt0105695,A western about an outlaw.,1992
tt0080684,A horror film about a monster in space.,1995
"""
DATABASE = "postgresql://me@host/db"  # stands for an empty database of a Postgres that the tests start
REPLACED = {'"org/bool-bert-base"': '"my_model"'}  # what the README upgrades is what it loads
# The programs of a line, run by the Python of the tests.
PROGRAMS = {"python": "", "boolbert": "-m boolbert.cli", "accelerate": "-m accelerate.commands.accelerate_cli"}
HOOD = r'"text": "[^"]*\ba hood\b'


class Block(NamedTuple):
    language: str
    text: str


class Run(NamedTuple):
    """What a line of commands, or a block of Python, must show and must not show."""

    shows: str
    never: str | None = None
    instead: str | Callable[[dict[str, str]], str] | None = None  # a command, or a function that gives what is shown
    why: str = ""
    needs: tuple[str, ...] = ()


def asked_page(environment: dict[str, str]) -> str:
    """What the page of `boolbert serve` answers."""
    from gradio_client import Client

    command = [sys.executable, "-m", "boolbert.cli", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            address = next(found[0] for line in server.stdout if (found := re.search(r"http://[\d.]+:\d+", line)))
            return str(Client(address, verbose=False).predict("islands that are not monarchies", api_name="/search"))
        finally:
            server.send_signal(signal.SIGINT)


# By the line, or by a block's first line, in the README's order.
RUNS = {
    "make demo": Run(
        r"boolbert demo\n",
        instead="make -n demo",
        why="it installs, and takes minutes; tests/test_where_one_stands.py runs `boolbert demo --quick` in a clone",
    ),
    "source .venv/bin/activate": Run("", instead="true", why="the programs of the tests stand on the path"),
    'boolbert search "island countries that are not monarchies"': Run(r" 1 +1\.\d+ .*Samoa\n"),
    'boolbert explain "landlocked countries in Africa that are not former British colonies" --html explain.html': Run(
        r"Bool-BERT: 0 of 10 are former British colonies\n.*\nwritten: explain.html\n"
    ),
    "boolbert serve": Run(
        "'title': 'Samoa'", instead=asked_page, why="it never ends", needs=("gradio", "gradio_client")
    ),
    "from boolbert import read": Run(r"\] \['war'\]\nSamoa\n.*\n.*\n\Z"),
    "boolbert index products.csv --output my_shop": Run(r"my_shop: 400 documents with evidence"),
    'boolbert search "waterproof jackets without a hood" --index my_shop': Run(
        '"title"',
        never=HOOD,
        instead='boolbert search "waterproof jackets without a hood" --index my_shop -k 5 --json',
        why="whole texts, of those results that fit",
    ),
    'boolbert search "jackets under 100 euros, released after May 2021" --index my_shop': Run(
        r"filter: price < 100,.*\n.*filter: released > 2021-05-31"
    ),
    'boolbert search "waterproof jackets -hood" --index my_shop': Run("documents that have “hood” were left out"),
    "boolbert index my_shop --calibrate": Run(r"calibrated on \d+ exclusions .*5%"),
    'boolbert search "waterproof jackets without a hood" --index my_shop --violations 0.05': Run(
        r"\d documents? (was|were) left out; at most 5% of the results should have “hood”", never="nothing is promised"
    ),
    f"boolbert index films.csv --store {DATABASE} --collection films": Run(
        r"3 documents \(3 encoded now\) with evidence", needs=tuple(PACKAGES["postgres"])
    ),
    f'boolbert search "films that are not westerns" --store {DATABASE} --collection films --where "year > 1990"': Run(
        r"\n1 .*\n?.*A horror film", never="marshal", needs=tuple(PACKAGES["postgres"])
    ),
    "boolbert upgrade sentence-transformers/all-MiniLM-L6-v2 --output_dir my_model": Run(
        r"excluded in the top R +\.571 +\.\d+\n\nmy_model: ready for boolbert search"
    ),
    "boolbert index my_documents.csv --output my_index --model my_model": Run(
        r"my_index: 3 documents with evidence(.*\n)*Model: my_model, Bool-BERT"
    ),
    "from boolbert import obey": Run("There is no pool", never="large pool"),
    "from langchain_core.vectorstores import InMemoryVectorStore": Run(
        "There is no pool", never="large pool", needs=("langchain_core",)
    ),
    "from llama_index.core import Document, VectorStoreIndex": Run(
        "There is no pool", never="large pool", needs=("llama_index",)
    ),
    "from haystack import Document": Run("There is no pool", never="large pool", needs=("haystack",)),
    "from transformers import AutoModel, AutoTokenizer": Run(r"torch.Size\(\[1, 384\]\) tensor"),
    "from sentence_transformers import SentenceTransformer": Run(r"tensor\(\[\[0\.\d+, +-?0\.\d+\]\]\)"),
    "accelerate launch train/quest.py --encoder my_model": Run(
        "1 steps in .* saved in runs/quest",
        instead="accelerate launch train/quest.py --encoder my_model --max_steps 1 --batch_size 4",
        why="an epoch takes minutes",
    ),
    "python eval/compare.py --runs runs": Run(
        r"BM25 .*\n(.*\n)*Bool-BERT quest, gate given",
        instead="python eval/compare.py --runs runs --limit 4",
        why="all queries take minutes",
        needs=("bm25s", "matplotlib"),
    ),
    "python eval/evidence.py --model my_model --data denials:test": Run(
        r"search +good \.?\d",
        instead="python eval/evidence.py --model my_model --data denials:test --queries 2 --documents 40",
        why="all queries take minutes",
    ),
    "boolbert publish runs/quest --repo org/bool-bert-base --dry-run": Run("Dry run: nothing was uploaded."),
}


def blocks() -> Iterator[Block]:
    """The code of the README, in its order: between fences, or indented by four."""
    for found in re.finditer(r"^```(.*)\n((?:.*\n)*?)```$|(?<=\n\n)((?: {4}.*\n)+)", README, re.MULTILINE):
        language, fenced, indented = found.groups()
        yield Block(language, fenced) if indented is None else Block("shell", indented)


def steps() -> Iterator[tuple[str, Block]]:
    """What is run: each block of Python by its first line, and each line of commands without its comment."""
    for block in blocks():
        if block.language == "python":
            yield block.text.splitlines()[0], block
        else:
            for line in filter(None, map(str.strip, block.text.splitlines())):
                command = line.partition("  #")[0].rstrip()
                yield command, Block(block.language, command)


def test_no_block_is_left_out():
    assert {block.language for block in blocks()} == {"python", "shell"}
    assert [name for name, _ in steps()] == list(RUNS)
    assert [name for name, run in RUNS.items() if bool(run.instead) != bool(run.why)] == []


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clean clone with the files of a reader in it, and the environment in which its programs run."""
    folder = copied(tmp_path / "clone", "a clone")
    write_products(folder / "products.csv", 400)  # of 100 too few say anything about hoods for a promise
    for name in ("films.csv", "my_documents.csv"):
        (folder / name).write_text(FILMS)
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "boolbert").symlink_to(folder)
    (tmp_path / "bin").mkdir()
    for name, words in PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        program.chmod(0o755)
    own = ("BOOLBERT_", "PYTEST_", "MAKE", "XDG_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environment |= {"HOME": str(tmp_path), "PYTHONPATH": str(tmp_path / "path"), "NO_COLOR": "1"}
    environment["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{environment['PATH']}"
    monkeypatch.chdir(folder)
    return environment


def shown_by(run: Run, block: Block, environment: dict[str, str], names: dict) -> str:
    """What a step prints."""
    if callable(run.instead):
        return run.instead(environment)
    if block.language == "python":
        code = block.text
        for printed, used in REPLACED.items():
            code = code.replace(printed, used)
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            exec(compile(code, "README.md", "exec"), names)
        return shown.getvalue()
    command = (run.instead or block.text).replace(DATABASE, environment.get("DATABASE", DATABASE))
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.long
def test_every_block_runs_and_shows_what_it_should(clone):
    names: dict = {}
    missing, wrong = set(), []
    for name, block in steps():
        run = RUNS[name]
        if lacking := {package for package in run.needs if find_spec(package) is None}:
            missing |= lacking
            continue
        if DATABASE in name and "DATABASE" not in clone:
            clone["DATABASE"] = new_database()
        shown = shown_by(run, block, clone, names)
        if not re.search(run.shows, shown):
            wrong.append(f"{name}\nmust show {run.shows!r}, and shows\n{shown}")
        if run.never is not None and re.search(run.never, shown):
            wrong.append(f"{name}\nmust not show {run.never!r}, and shows\n{shown}")
    assert not wrong, "\n\n".join(wrong)
    if missing:
        pytest.skip(f"NOT TESTED: README.md's lines with {', '.join(sorted(missing))}; make test-frameworks")


def test_links_lead_to_files():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert len(links) >= 5
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_commands_within_the_text_are_there():
    """Their scripts, targets of make, and extras."""
    settings = ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    scripts, targets = re.findall(r"`python ([\w/]+\.py)", README), re.findall(r"`make ([\w-]+)", README)
    extras = re.findall(r'"(?:boolbert|\.)\[(\w+)\]"', README)
    assert min(map(len, (scripts, targets, extras))) >= 1
    assert [name for name in scripts if not (ROOT / name).is_file()] == []
    assert [name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
    assert [name for name in extras if name not in settings["options.extras_require"]] == []


def test_what_the_examples_find_is_right(tmp_path):
    """Asked of the model that ships: no monarchy, and Iceland before Tonga, by one vector and by parts."""
    from boolbert.retrieval.models import default_model
    from boolbert.search import BoolSearcher

    model = default_model("cpu")
    model.encoder.save(str(tmp_path / "model"))
    code = [block.text for block in blocks() if block.language == "python"]
    search, vectors = (next(text for text in code if name in text) for name in (".search(", "encode_document"))
    query, k = re.search(r'\.search\("(.+?)", k=(\d+)\)', search).groups()
    assert [hit.violates for hit in BoolSearcher(model, progress=False).search(query, k=int(k))] == [False] * int(k)
    found = {}
    exec(vectors.replace("org/bool-bert-base", str(tmp_path / "model")), found)
    one = (found["queries"] @ found["documents"].T)[0]
    query = re.search(r'encode_query\(\["(.+?)"\]\)', vectors)[1]
    for scores in (one, found["model"].encode_query_parts(query).scores(found["documents"])):
        assert ["republic", "monarchy"][scores.argmax()] == "republic"
