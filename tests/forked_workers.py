"""Runs the tests in several processes that are forked once they are collected: imports and collection are paid once.

python -m pytest --workers auto             # one per core
python -m pytest --workers auto --cpu-times # and in the end the CPU seconds of each room's tests

A worker gets the tests of one file at a time, so that what a file makes is made once; towards the end it gets fewer.
`start_server` forks a process before any test has run, from which tests start processes of their own (`start` in
conftest.py).
"""

import atexit
import os
import re
import resource
import socket
import sys
from collections import Counter, deque
from itertools import takewhile
from multiprocessing import connection, forkserver, get_context, resource_tracker
from pathlib import Path
from warnings import WarningMessage

import pytest

FORK = get_context("fork")
TOLD = "processes.txt"  # what processes that tests have started print, in the folder of the run
# The rooms of docs/contributing.md, by the names of test files; the first that fits.
ROOMS = {
    "faults": "faults/|fuzz/|damage|hostile|security|bad_|error_lines",
    "stores": "store|database|postgres|qdrant|milvus|elasticsearch|cut_off|engines",
    "train": "train|grad_cache|document_labels",
    "eval": "eval_|significance",
    "model": "boolbert|formulas|properties|transformers|configuration|auto_classes|checkpoints|graphs|upgrade|"
    "pretraining|penalty|open_points|sentence_|hub_",
    "boolean": "boolean|conditions|languages|number_filters|kinds|negation|search_box|lists|not_scope",
    "data": "data_|own_|denials|countries|passages",
    "retrieval": "int8|evidence|encoders|scoring|adapters|document_reader|reader|exclusion_line|kept_clauses",
    "search": "search|obey|reading|first_|default_program|typed|serve|equals",
    "cli": "cli|printing|arguments|demo|readme",
}


def pytest_addoption(parser):
    parser.addoption("--workers", default="1", help="in how many processes the tests run; auto: one per core")
    parser.addoption("--cpu-times", action="store_true", help="print the CPU seconds of the tests of each room")
    parser.addoption("--ids", type=Path, help="a file that the ids of all tests are written to, sorted")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Before some are deselected."""
    if config.option.ids:
        config.option.ids.write_text("".join(sorted(f"{item.nodeid}\n" for item in items)), encoding="utf-8")


def number_of_workers(option):
    """
    >>> number_of_workers("3")
    3
    """
    if option != "auto":
        return int(option)
    # Elsewhere than on Linux, processes cannot be forked safely from one that has loaded torch.
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if session.config.option.collectonly or session.testsfailed:
        return None  # pytest's own loop
    if any("start" in getattr(item, "fixturenames", ()) for item in session.items):
        start_server(["forked_from"])
    count = number_of_workers(session.config.option.workers)
    if count < 2:
        return None
    session.config.pluginmanager.getplugin("terminalreporter").showfspath = False
    workers = Workers(session, count)
    workers.run()
    if session.config.option.cpu_times:
        rooms = [f"{room} {seconds:.1f}" for room, seconds in workers.seconds.most_common()]
        print(f"\nCPU seconds: {', '.join(rooms)}; together {workers.seconds.total():.1f}")
    return True


def room_of(path):
    """
    >>> room_of(Path("tests/test_stores_index.py")), room_of(Path("tests/test_house.py"))
    ('stores', 'core')
    """
    name = "/".join(path.parts[-2:]).removeprefix("tests/")
    return next((room for room, names in ROOMS.items() if re.search(names, name)), "core")


def cpu_seconds():
    """Of this process and of those that it has waited for."""
    used = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Workers:
    """The processes, what each is at, and the tests that nobody has begun."""

    def __init__(self, session, count):
        self.session, self.count = session, count
        self.left = deque(range(len(session.items)))
        self.seconds = Counter()
        self.begun = {}  # connection: (process, the numbers of the tests that it was given and has not finished)

    def run(self):
        try:
            for number in range(self.count):
                self.start(number)
            while self.begun:
                for ready in connection.wait(list(self.begun)):
                    self.hear(ready)
        finally:
            for process, _ in self.begun.values():
                process.terminate()
                process.join()

    def start(self, number):
        ours, theirs = FORK.Pipe()
        process = FORK.Process(target=work, args=(self.session, theirs, number), name=f"worker{number}")
        process.start()
        theirs.close()
        self.begun[ours] = process, []

    def hear(self, ready):
        process, given = self.begun[ready]
        try:
            name, content = ready.recv()
        except EOFError:
            process.join()
            del self.begun[ready]
            if given or process.exitcode:
                self.replace(process, given)
            return
        getattr(self, name)(ready, content)
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def replace(self, process, given):
        """A worker has died in a test, which failed by that; another one does the rest of what it was given."""
        if not given:
            raise RuntimeError(f"{process.name} ended with {process.exitcode} between two tests")
        item = self.session.items[given[0]]
        told = f"{process.name} ended in this test with {process.exitcode}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", told, "call")
        item.ihook.pytest_runtest_logreport(report=report)
        self.left.extendleft(reversed(given[1:]))
        self.start(int(process.name.removeprefix("worker")))

    # ---- what a worker tells

    def more(self, worker, _):
        """It wants tests; none means that there are no more."""
        files = [self.session.items[number].path for number in self.left]
        count = sum(1 for _ in takewhile(lambda file: file == files[0], files))
        chunk = [self.left.popleft() for _ in range(min(count, max(4, len(files) // (4 * self.count))))]
        self.begun[worker][1].extend(chunk)
        worker.send(chunk)

    def finished(self, worker, content):
        number, seconds = content
        self.begun[worker][1].remove(number)
        self.seconds[room_of(self.session.items[number].path)] += seconds

    def report(self, worker, data):
        hook = self.session.config.hook
        report = hook.pytest_report_from_serializable(config=self.session.config, data=data)
        hook.pytest_runtest_logreport(report=report)

    def warning(self, worker, content):
        *message, when, nodeid, location = content
        self.session.config.hook.pytest_warning_recorded.call_historic(
            kwargs={
                "warning_message": WarningMessage(*message),
                "when": when,
                "nodeid": nodeid,
                "location": location,
            }
        )


class Telling:
    """What a worker tells of its tests, instead of printing it."""

    def __init__(self, config, parent):
        self.config, self.parent = config, parent

    def pytest_runtest_logreport(self, report):
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.parent.send(("report", data))

    def pytest_warning_recorded(self, warning_message, when, nodeid, location):
        own = warning_message
        category = own.category if own.category.__module__ in sys.modules else UserWarning
        message = str(own.message), category, own.filename, own.lineno
        self.parent.send(("warning", (*message, when, nodeid, location)))


def work(session, parent, number):
    """What a worker does."""
    atexit._clear()  # those of the parent are the parent's
    config = session.config
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()  # into files that are shared with the parent
    capture.start_global_capturing()
    capture.suspend_global_capture()
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(Telling(config, parent))
    folders = config._tmp_path_factory
    folders._basetemp = folders.getbasetemp() / f"worker{number}"
    folders._basetemp.mkdir(exist_ok=True)

    numbers = deque()

    def more():
        parent.send(("more", None))
        numbers.extend(parent.recv())

    more()
    while numbers:
        now = numbers.popleft()
        if not numbers:
            more()
        following = session.items[numbers[0]] if numbers else None
        item = session.items[now]
        before = cpu_seconds()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        parent.send(("finished", (now, cpu_seconds() - before)))
    atexit._run_exitfuncs()


# ---- processes that tests start


def start_server(preload):
    """Fork the process that the standard library's forkserver would start anew; `preload`: what it imports."""
    own = forkserver._forkserver
    null, own_errors = os.open(os.devnull, os.O_RDWR), os.dup(2)
    os.dup2(null, 2)  # at its end the tracker would list what killed processes have left
    resource_tracker.ensure_running()
    os.dup2(own_errors, 2)
    os.close(own_errors)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address := connection.arbitrary_address("AF_UNIX"))
    listener.listen()
    alive, ours = os.pipe()
    if not os.fork():
        try:
            os.close(ours)
            atexit._clear()
            os.dup2(null, 0)
            told = os.open(Path(os.environ["BOOLBERT_TESTS"], TOLD), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for descriptor in (1, 2):
                os.dup2(told, descriptor)
            os.environ.pop("MIMALLOC_PURGE_DELAY", None)  # of a command in this process: see test_environment.py
            forkserver.main(listener.fileno(), alive, preload)
        finally:
            os._exit(0)
    os.close(null)
    os.close(alive)
    listener.close()
    own._forkserver_address, own._forkserver_alive_fd = address, ours
    own.ensure_running = lambda: None  # it is not the child of all who use it
