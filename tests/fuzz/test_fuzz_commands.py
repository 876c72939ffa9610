"""Any words on the command line, and any content in the files of a run or an index: done, or one line and status 2."""

import functools
import json
import random
import shutil

import pytest
from fuzz.strategies import EXAMPLES, fuzz, json_values, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fixtures import write_documents, write_run

from boolbert.cli import main
from boolbert.core.errors import BoolBertError
from boolbert.core.runs import Run, finished_runs
from boolbert.hub.assemble import assemble
from boolbert.hub.card import write_card
from boolbert.hub.refuse import refusals
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.search import BoolSearcher, Index, build_index, explain, load_model, searcher

pytestmark = pytest.mark.long


@pytest.fixture
def model_folder(folder, lively, tiny_config, tokenizer):
    """One for all examples; the tests put it back as it was."""
    if not (folder / "model").exists():
        write_run(folder / "model", lively, tiny_config, tokenizer)
    return folder / "model"


@pytest.fixture
def index_folder(folder, model_folder):
    if not (folder / "index").exists():
        docs = write_documents(folder / "docs.jsonl")
        build_index(docs, folder / "index", load_model(model_folder, device="cpu"), progress=False)
    return folder / "index"


@pytest.fixture
def ask(folder, monkeypatch, capsys):
    """A function that runs a command in a folder of its own, and checks how it ends."""
    work = folder / "work"
    monkeypatch.setenv("BOOLBERT_CACHE", str(folder / "cache"))
    monkeypatch.setattr(searcher, "load_model", functools.cache(load_model))

    def run(words):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        monkeypatch.chdir(work)
        try:
            status = main(words)
        except SystemExit as end:  # argparse: a mistake in the user's own words, or --help
            assert end.code in (0, 2)  # noqa: PT017
            capsys.readouterr()
            return
        shown = capsys.readouterr()
        assert status in (0, 1, 2), (words, status)
        assert "Traceback" not in shown.err
        for line in (shown.out + shown.err).split("\n"):
            assert line.replace("\u200d", "").replace("\u200c", "").isprintable(), line
        if status == 2:
            assert "error: " in shown.err.strip().split("\n")[-1]

    return run


def safe_paths(text):
    """A path that stays in the folder that the command works in."""
    return text.replace("/", "_").replace("\x00", "_").replace("..", "_")[:60] or "x"


queries = st.lists(st.sampled_from(["films", "but not", "war", "and", "a"]) | texts, max_size=6).map(" ".join)
numbers = st.integers(-3, 12).map(str) | st.sampled_from(["", "x", "1e3", "٣", "999999999999", "-1"])
options = st.lists(
    st.one_of(
        st.tuples(st.just("-k"), numbers),
        st.tuples(st.just("--operators"), st.sampled_from(["and", "not,or", "none", "AND, not", "xor", ","]) | texts),
        st.tuples(st.just("--json")),
        st.tuples(st.just("--device"), st.sampled_from(["cpu", "cuda:7", "tpu", "", "meta"])),
        st.tuples(st.sampled_from(["--help", "--no-such", "--", "-", "--version", "-kk"])),
        st.tuples(texts),
    ),
    max_size=3,
).map(lambda pairs: [word for pair in pairs for word in pair])


@fuzz
@given(command=st.sampled_from(["search", "explain"]), query=queries, options=options)
def test_search_and_explain(index_folder, ask, command, query, options):
    ask([command, query, "--index", str(index_folder), *options])


any_words = st.lists(st.sampled_from(["index", "data", "publish", "export", "split", "--output"]) | texts, max_size=5)
summaries = st.tuples(st.just("data"), st.just("summary"), texts.filter(bool)).map(list)


@fuzz
@given(words=any_words | summaries)
def test_any_words(ask, words):
    """Of any length and order; a demo, which trains, is left out, and searching has its own test."""
    if not {"demo", "search", "explain"} & set(words):
        ask([safe_paths(word) if "/" in word or "\x00" in word else word for word in words])


FILES = [
    *("args.json", "metrics.json", "config.json", "modules.json", "router_config.json", "tokenizer_config.json"),
    *("config_sentence_transformers.json", "1_Pooling/config.json", "document_encoder/config.json", "tokenizer.json"),
    *("model.safetensors", "document_encoder/model.safetensors"),
]
INDEX_FILES = ["index.json", "lines.npy", "documents.jsonl", "vectors/manifest.json", "vectors/vectors-00000.npy"]


@st.composite
def damages(draw):
    """A file, and what becomes of its content."""
    name = draw(st.sampled_from([f"model/{name}" for name in FILES] + [f"index/{name}" for name in INDEX_FILES]))
    kinds = ["mutated", "json", "field", "cut"] if name.endswith(".json") else ["mutated", "cut"]
    match draw(st.sampled_from(kinds)):
        case "mutated":
            change = draw(st.integers(0, 2**32 - 1))
            return name, lambda content, seed=change: scrambled(content, seed)
        case "cut":
            share = draw(st.floats(0, 1))
            return name, lambda content: content[: int(len(content) * share)]
        case "json":
            value = json.dumps(draw(json_values)).encode()
            return name, lambda content: value
        case _:
            value, number = draw(json_values), draw(st.integers(0, 30))
            return name, lambda content: with_field(content, number, value)


def scrambled(content, seed):
    """A few bytes overwritten."""
    rng = random.Random(seed)
    changed = bytearray(content)
    for _ in range(rng.randrange(1, 6)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def with_field(content, number, value):
    """Another value in one field of a JSON object."""
    found = json.loads(content)
    if isinstance(found, list):
        found = [{**found[0], "path": value}, *found[1:]]
    elif found:
        found[list(found)[number % len(found)]] = value
    return json.dumps(found).encode()


@settings(fuzz, max_examples=EXAMPLES // 5)  # each loads a model
@given(damage=damages())
def test_a_damaged_run_or_index(folder, model_folder, index_folder, tmp_path_factory, damage):
    """Loading, searching, explaining and publishing end with an answer, or a line that says where the damage is."""
    name, change = damage
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(change(content))
    try:
        for act in (search_and_explain, describe, publish):
            try:
                act(folder)
            except (BoolBertError, OSError) as error:
                assert str(folder) in str(error)  # noqa: PT017
                assert "\n" not in str(error)  # noqa: PT017
    finally:
        path.write_bytes(content)


def search_and_explain(folder):
    model = load_model(folder / "model", device="cpu")
    asked = BoolSearcher(model, Index(folder / "index"))
    asked.search("films but not war", 3)
    explain(asked, "films but not war", 3)


def describe(folder):
    assert isinstance(Run(folder / "model").finished, bool)
    resolve_encoder(str(folder / "model"))
    finished_runs(folder)


def publish(folder):
    published = folder / "published"
    shutil.rmtree(published, ignore_errors=True)
    published.mkdir()
    assemble(folder / "model", published)
    write_card(folder / "model", "org/name", published)
    refusals(published)
