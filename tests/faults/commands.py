"""The project's commands as processes, with one fault in each: killed, out of space, without permission.

commands = Commands(tmp_path)
commands.run("boolbert", "index", "docs.jsonl", "--output", "index")              # as a user would
commands.run("boolbert", "index", ..., kill_at=3)    # SIGKILL before the third change of a file below the folder
commands.run("boolbert", "index", ..., tear_at=700)  # SIGXFSZ in the middle of the first write beyond 700 bytes
commands.run("boolbert", "index", ..., full_at=700)  # that write fails: File too large
"""

import multiprocessing
from pathlib import Path
from typing import NamedTuple

from faults.server import serve
from process_helpers import finish

import boolbert

ROOT = Path(boolbert.__file__).resolve().parent


class Result(NamedTuple):
    status: int  # negative: the signal that ended it
    out: str
    err: str
    changes: int | None  # how often it was about to change a file, where that was counted

    @property
    def error(self) -> str:
        """The one line that it ends with; a traceback, or more than a line, is a failure of the test."""
        assert self.status > 0, f"it ended with {self.status}: {self.err}"
        assert "Traceback" not in self.err, self.err
        line = self.err.strip().splitlines()[-1]
        assert "error: " in line, self.err
        return line


class Commands:
    """Runs commands in a folder, each in a process of its own, with the folder's own cache and temporary folder.

    `exports`: whether a search exports its model for the next one, which takes a second.
    """

    def __init__(self, folder, server, exports=True):
        self.folder = Path(folder)
        self.server = server
        self.exports = exports
        self.temporary, self.cache = self.folder / "tmp", self.folder / "cache"
        for path in (self.temporary, self.cache):
            path.mkdir(exist_ok=True)

    def run(self, *command, kill_at=None, count=False, tear_at=None, full_at=None, as_user=False, closed=False):
        counted = self.folder.with_name(f"{self.folder.name}.count")
        request = {
            "command": [str(ROOT / part) if part.endswith(".py") else part for part in map(str, command)],
            "folder": str(self.folder),
            "environment": {
                "TMPDIR": str(self.temporary),
                "BOOLBERT_CACHE": str(self.cache),
                "XDG_CACHE_HOME": str(self.cache),
            },
            "kill_at": kill_at,
            "count": str(counted) if count else None,
            "tear_at": tear_at,
            "full_at": full_at,
            "as_user": as_user,
            "closed": closed,
            "exports": self.exports,
        }
        answer = self.server.ask(request)
        return Result(**answer, changes=int(counted.read_text() or 0) if count else None)

    def good(self, *command, **options):
        """Run a command that has to succeed."""
        result = self.run(*command, **options)
        assert result.status == 0, result.err
        return result


class Server:
    """The process that all commands are forked from; `start` is the fixture of that name."""

    def __init__(self, start):
        self.connection, theirs = multiprocessing.Pipe()
        self.process = start(serve, theirs)
        theirs.close()

    def ask(self, request):
        self.connection.send(request)
        return self.connection.recv()

    def close(self):
        self.connection.send(None)
        assert finish(self.process) == [0]


def snapshot(folder):
    """Every file below a folder with its content, hidden ones among them."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
