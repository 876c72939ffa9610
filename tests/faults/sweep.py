"""One command, killed or starved at many places: what must hold after each, and after the command is repeated."""

import re
import shutil
import signal

from faults.commands import snapshot


def some_of(count, many):
    """Places from 1 to `count`: all of them, or `many` spread over the whole.

    >>> some_of(10, 3), some_of(2, 3), some_of(3, None)
    ([1, 6, 10], [1, 2], [1, 2, 3])
    """
    if many is None or count <= many:
        return list(range(1, count + 1))
    return sorted({1 + round(place * (count - 1) / (many - 1)) for place in range(many)})


def clear(commands, name):
    """As if the command had never been called."""
    shutil.rmtree(commands.folder / name, ignore_errors=True)
    for folder in (commands.cache, commands.temporary):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()


def killed_anywhere(commands, command, output, *, many, check, repeat=(), same=snapshot, prepare=None):
    """Kill the command before its n-th change of a file, for many n; `check` the folder; repeat the command.

    `prepare` makes the folder ready for a call. Repeated (with the words `repeat` where there is something to go on
    with), the command must leave what an undisturbed call leaves, and nothing beside it. Returns how often it was
    killed.
    """
    total = commands.good(*command, count=True).changes
    whole = same(commands.folder / output)
    places = some_of(total, many)
    for place in places:
        clear(commands, output)
        if prepare is not None:
            prepare(commands.folder / output)
        done = commands.run(*command, kill_at=place)
        assert done.status == -signal.SIGKILL, f"change {place} of {total}: {done.err}"
        check(commands.folder / output)
        again = commands.run(*command, *(repeat if (commands.folder / output).exists() else ()))
        assert again.status == 0, f"after a kill at change {place} of {total}: {again.err}"
        assert same(commands.folder / output) == whole, f"after a kill at change {place} of {total}"
    return len(places)


def torn_anywhere(commands, command, output, sizes, *, check, repeat=(), same=snapshot, fault="tear_at", prepare=None):
    """End the command in the middle of a write (or let the write fail) at files of these sizes; repeat the command.

    Each size that is smaller than a file which the command writes must hit: an end with status 0 would have kept a
    part of that file. Returns how many calls were hit.
    """
    commands.good(*command)
    whole = same(commands.folder / output)
    largest = max(map(len, snapshot(commands.folder / output).values()))
    assert min(sizes) < largest, f"no file is larger than {min(sizes)} bytes"
    hit = 0
    for size in sizes:
        clear(commands, output)
        if prepare is not None:
            prepare(commands.folder / output)
        done = commands.run(*command, **{fault: size})
        if done.status == 0:
            assert size >= largest, f"done, though no file could be larger than {size} bytes, and one has {largest}"
            continue
        hit += 1
        if fault == "full_at":
            assert re.search("File too large|disk is full", done.error), done.error
            assert not [name for name in snapshot(commands.folder) if ".aside-" in name], "temporary files are left"
        else:
            assert done.status == -signal.SIGXFSZ, done.err
        check(commands.folder / output)
        again = commands.run(*command, *(repeat if (commands.folder / output).exists() else ()))
        assert again.status == 0, f"after a fault at {size} bytes: {again.err}"
        assert same(commands.folder / output) == whole, f"after a fault at {size} bytes"
    return hit
