"""`boolbert index --store` into a store that is there, killed: its documents, their vectors and their evidence are the
old ones or the new ones, and a second call makes it whole."""

import json
import shutil

import pytest
from faults.sweep import killed_anywhere
from store_fixtures import FILES, KINDS, skip_without

MANY = [pytest.param(3, marks=pytest.mark.long), pytest.param(None, marks=pytest.mark.nightly)]
TEXTS = ("films about war. It has books", "It has no films and no war", "Made of c. There is war", "a film, but no b")


def write(path, texts):
    path.write_text("".join(json.dumps({"title": f"Doc {row}", "text": text}) + "\n" for row, text in enumerate(texts)))
    return path


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("kind", FILES)
def test_killed(commands, model, record, kind, many):
    skip_without(kind)
    commands.exports = False  # an export takes a second, and is not what is tested here
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
