"""`boolbert index --store`, killed before a change of a file or a call of a database's client: documents, their vectors
and their evidence are the old ones or the new ones, and a second call makes it whole."""

import json
import shutil
from dataclasses import replace

import pytest
from faults.sweep import killed_anywhere
from store_fixtures import FILES, KINDS, add_small, skip_without, small_about

from boolbert.retrieval.stores import open_store

MANY = [pytest.param(3, marks=pytest.mark.long), pytest.param(None, marks=pytest.mark.nightly)]
READ = "tests/faults/read_store.py"
TEXTS = ("films about war. It has books", "It has no films and no war", "Made of c. There is war", "a film, but no b")


def write(path, texts):
    path.write_text("".join(json.dumps({"title": f"Doc {row}", "text": text}) + "\n" for row, text in enumerate(texts)))
    return path


@pytest.mark.parametrize("many", [3, pytest.param(None, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("kind", [*FILES, "qdrant"])
def test_a_first_index_killed(commands, record, kind, many):
    """Where nothing was; the documents were encoded elsewhere. What is left is no store, or one that says that it is
    not complete; the next call leaves all documents, none twice."""
    skip_without(kind)
    name = "films_qdrant" if kind == "qdrant" else KINDS[kind]
    store = f"qdrant:{name}" if kind == "qdrant" else name
    source = open_store(commands.folder.parent / "source")
    source.create(small_about())
    add_small(source, [f"d{n}" for n in range(250)])
    source.note(replace(source.about(), complete=True))

    def held(folder):
        return json.loads(commands.good(READ, store).out)

    def check(folder):
        done = commands.run(READ, store)
        if done.status:
            assert "RetrievalError: " in done.err.splitlines()[-1], done.err
        else:
            found = json.loads(done.out)
            assert len(found["ids"]) == found["count"] == 250 or not found["complete"]

    command = ("boolbert", "index", source.folder, "--store", store)
    times = killed_anywhere(commands, command, name, many=many, check=check, same=held)
    record(
        f"boolbert index --store, {kind}, the first time",
        "SIGKILL",
        times,
        "none or some, which is said; repeated: all",
    )


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("kind", FILES)
def test_killed(commands, model, record, kind, many):
    skip_without(kind)
    commands.exports = False
    name, beside = KINDS[kind], commands.folder.parent
    new = write(beside / "new.jsonl", [TEXTS[0], "It has films and war", TEXTS[2], TEXTS[3], "books about war"])
    first = ("boolbert", "index", write(beside / "old.jsonl", TEXTS), "--store", name, "--model", model)
    commands.good(*first)
    old = beside / "old"
    shutil.copytree(commands.folder / name, old)

    def documents(folder):
        """What is found: titles, texts, scores and reasons."""
        found = commands.good("boolbert", "search", "films but not about war", "--store", folder, "--json")
        hits = json.loads(found.out)["hits"]
        assert any(hit["reasons"] for hit in hits)
        clauses = {hit["title"]: [reason["clause"] for reason in hit["reasons"]] for hit in hits}
        return {hit["title"]: (hit["text"], round(hit["score"], 3), clauses[hit["title"]]) for hit in hits}

    before = documents(commands.folder / name)
    command = ("boolbert", "index", new, "--store", name, "--model", model)
    commands.good(*command)
    after = documents(commands.folder / name)
    assert len(after) == len(before) + 1

    def check(folder):
        assert documents(folder) in (before, after)

    shutil.rmtree(commands.folder / name)
    shutil.copytree(old, commands.folder / name)
    times = killed_anywhere(
        commands,
        command,
        name,
        many=many,
        check=check,
        same=documents,
        prepare=lambda folder: shutil.copytree(old, folder, dirs_exist_ok=True),
    )
    record(f"boolbert index --store, {kind}", "SIGKILL", times, "the old documents or the new ones; repeated: the new")
