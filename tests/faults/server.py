"""Runs commands as processes of their own, with a fault in each; started by `commands.py`, which see.

It is forked from a process that has imported what the commands need, and forks itself for each of them, so a command
starts in a few hundredths of a second.
"""

import atexit
import ctypes
import functools
import importlib
import inspect
import os
import resource
import runpy
import selectors
import signal
import sys
import traceback

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
CLIENTS = [(".db", ("pymilvus", "MilvusClient")), ("qdrant:", ("qdrant_client", "QdrantClient"))]
CAPABILITY_VERSION_3, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 0x20080522, 1, 2


def serve(connection):
    """Answer requests until one is None."""
    while (request := connection.recv()) is not None:
        pipes = {name: os.pipe() for name in ("out", "err")}
        child = os.fork()
        if child == 0:
            for descriptor, (_, end) in zip((1, 2), pipes.values(), strict=True):
                os.dup2(end, descriptor)
            sys.stdout, sys.stderr = (os.fdopen(fd, "w", buffering=1, closefd=False) for fd in (1, 2))
            run(**request)
        for _, end in pipes.values():
            os.close(end)
        shown = read_all({name: start for name, (start, _) in pipes.items()})
        _, status = os.waitpid(child, 0)
        connection.send({"status": os.waitstatus_to_exitcode(status), **shown})


def read_all(descriptors):
    """What the child prints, until it ends."""
    chunks = dict.fromkeys(descriptors, b"")
    with selectors.DefaultSelector() as selector:
        for name, descriptor in descriptors.items():
            selector.register(descriptor, selectors.EVENT_READ, name)
        while selector.get_map():
            for key, _ in selector.select():
                if chunk := os.read(key.fd, 65536):
                    chunks[key.data] += chunk
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return {name: content.decode(errors="replace") for name, content in chunks.items()}


def run(command, folder, environment, kill_at, count, tear_at, full_at, as_user, closed, exports):
    """What the child does; it never returns."""
    os.environ.update(environment)
    os.chdir(folder)
    if closed:  # what Python finds where the shell was told >&-
        sys.stdout = None
    if not exports:
        from boolbert.search import cached_model

        cached_model.cache_model = lambda model: None
    if as_user:
        obey_permissions()
    if kill_at is not None or count:
        watch(
            os.path.realpath(folder),
            kill_at,
            count,
            [client for start, client in CLIENTS if start in " ".join(command)],
        )
    limit = tear_at if tear_at is not None else full_at
    if limit is not None:
        # The write that crosses the limit kills the process in its middle, or fails as on a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if tear_at is not None else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    status = 1
    try:
        script, *arguments = command
        sys.argv = [script, *arguments]
        if script == "boolbert":
            from boolbert.cli import main as boolbert

            status = boolbert(arguments)
        else:
            runpy.run_path(script, run_name="__main__")
            status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream and stream.flush()
            except OSError:
                status = status or 1
        atexit._run_exitfuncs()  # as at the end of an interpreter; os._exit leaves it out
        os._exit(status or 0)


def watch(folder, kill_at, count, clients):
    """Count what changes files below the folder, and the calls of databases' clients, which may change files unseen;
    kill the process before the n-th."""
    seen = 0
    file = os.open(count, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if count else None

    def one_more():
        nonlocal seen
        seen += 1
        if file is not None:
            os.pwrite(file, str(seen).encode(), 0)
        if seen == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event, details):
        if event == "open":
            path, _, flags = details
            paths = [path] if flags & WRITING else []
        elif event in CHANGES:
            paths = details[:2]
        else:
            return
        if any(isinstance(path, str | bytes | os.PathLike) and is_below(path, folder) for path in paths):
            one_more()

    def counted(call):
        @functools.wraps(call)
        def wrapper(*args, **kwargs):
            one_more()
            return call(*args, **kwargs)

        return wrapper

    for module, name in clients:
        client = getattr(importlib.import_module(module), name)
        for key, call in vars(client).items():
            if inspect.isfunction(call) and not key.startswith("__"):
                setattr(client, key, counted(call))
    sys.addaudithook(hook)


def is_below(path, folder):
    return os.path.abspath(os.fsdecode(path)).startswith(folder + os.sep)


def obey_permissions():
    """Give up root's right to pass over the permissions of files, as if the user were another."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable rights, twice 32 bits
    assert libc.capget(header, sets) == 0, os.strerror(ctypes.get_errno())
    for place in range(3):
        sets[place] &= ~(1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH)
    assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())
