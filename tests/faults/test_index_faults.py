"""`boolbert index`, killed and starved: an index is whole or not there, and a second call makes the same one."""

import re

import pytest
from faults.commands import snapshot
from faults.sweep import killed_anywhere, torn_anywhere

MANY = [pytest.param(4, id="some places"), pytest.param(None, id="every place", marks=pytest.mark.nightly)]


@pytest.fixture
def command(documents, model):
    return ("boolbert", "index", documents, "--output", "index", "--model", model)


@pytest.fixture
def whole_or_not_there(commands):
    """A check of an index's folder: searching it gives the right answer or one line."""
    commands.exports = False  # the cache is emptied before the next search
    answers = set()

    def check(folder):
        found = commands.run("boolbert", "search", "films but not about war", "--index", folder, "-k", "3")
        if found.status == 0:
            answers.add(found.out)
            assert len(answers) == 1
        else:
            assert "no index there" in found.error

    return check


@pytest.mark.parametrize("many", MANY)
def test_killed(commands, command, documents, whole_or_not_there, record, many):
    before = documents.read_bytes()
    times = killed_anywhere(commands, command, "index", many=many, check=whole_or_not_there)
    assert documents.read_bytes() == before
    record(
        "boolbert index", "SIGKILL before a change of a file", times, "no index, or the whole one; repeated: the same"
    )


@pytest.mark.parametrize(("fault", "name"), [("tear_at", "killed within a write"), ("full_at", "a write fails")])
@pytest.mark.parametrize("sizes", [[100, 500], pytest.param(range(16, 1000, 16), marks=pytest.mark.nightly)])
def test_torn_writes_and_full_disks(commands, command, whole_or_not_there, record, fault, name, sizes):
    times = torn_anywhere(commands, command, "index", sizes, check=whole_or_not_there, fault=fault)
    record("boolbert index", name, times, "no index, or the whole one; repeated: the same")


@pytest.mark.parametrize("kibibytes", [4, 8, 16])
def test_a_disk_that_is_full(commands, documents, model, small_disk, record, kibibytes):
    disk = small_disk(kibibytes)
    command = ("boolbert", "index", documents, "--output", disk / "index", "--model", model)
    error = commands.run(*command).error
    assert re.search(r"disk/index\S*: cannot be written: the disk is full", error), error
    assert not [name for name in snapshot(disk) if ".aside-" in name]
    small_disk(1000)
    commands.good(*command)
    commands.good("boolbert", "search", "films", "--index", disk / "index")
    record("boolbert index", f"a disk of {kibibytes} KiB", 1, "one line; with more room, repeated: done")


def test_no_permission(commands, command, model, documents, record):
    folder = commands.folder / "index"
    folder.mkdir()
    folder.chmod(0o555)
    assert "Permission denied" in commands.run(*command, as_user=True).error
    documents.chmod(0o000)
    commands.run(*command, as_user=True).error  # noqa: B018
    documents.chmod(0o644)
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)
    commands.good(*command, as_user=True)
    (folder / "vectors/vectors-00000.npy").chmod(0o000)
    search = ("boolbert", "search", "films", "--index", "index")
    assert "are missing or damaged" in commands.run(*search, as_user=True).error
    (folder / "documents.jsonl").chmod(0o000)
    commands.run(*search, as_user=True).error  # noqa: B018
    record("boolbert index, search", "no permission", 4, "one line")


def test_without_a_cache_nothing_is_left_in_the_temporary_folder(commands, model, record):
    commands.cache.chmod(0o555)
    done = commands.run("boolbert", "search", "islands but not monarchies", "--model", model, as_user=True)
    assert done.status == 0, done.err
    assert "using a temporary folder" in done.err
    assert list(commands.temporary.iterdir()) == []
    commands.cache.chmod(0o755)
    commands.good("boolbert", "search", "islands", "--model", model)
    assert [str(path) for path in commands.temporary.rglob("*")] == []
    record("boolbert search", "a cache that cannot be written", 1, "a warning, the right answer, nothing left behind")


@pytest.mark.long
@pytest.mark.parametrize("many", [2, pytest.param(None, marks=pytest.mark.nightly)])
def test_the_cache_is_made_by_a_process_that_is_killed(commands, model, record, many):
    command = ("boolbert", "search", "islands but not monarchies", "--model", model)
    times = killed_anywhere(commands, command, "cache", many=many, check=lambda folder: None)
    record("boolbert search", "SIGKILL while the cache is made", times, "repeated: the same answer, the same cache")
