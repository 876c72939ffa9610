"""What the tests run in processes of their own; the process that these are forked from imports this module once."""

import os
import socket
import sys
from pathlib import Path

import numpy as np
from forked_workers import TOLD


def finish(*processes):
    """The exit codes of processes; negative is the signal that ended one. What those that failed printed is shown."""
    for process in processes:
        process.join(120)
        assert not process.is_alive()
    if any(process.exitcode for process in processes):
        print(Path(os.environ["BOOLBERT_TESTS"], TOLD).read_text(errors="replace")[-3000:], file=sys.stderr)
    return [process.exitcode for process in processes]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def tell_setting(name, told):
    """A variable of the environment, and whether torch is loaded."""
    told.send((os.environ.get(name), "torch" in sys.modules))


def write_records(place, count, name, told):
    """Write records into a store one by one, and tell each."""
    from boolbert.retrieval.stores import About, Record, open_store

    store = open_store(place)
    with store.writing():
        store.create(About("e" * 16, 4))
        told.send("writing")
        for number in range(count):
            store.add([Record(f"{name}{number}", "t", "x" * 1000)], np.ones((1, 4), np.float32))
            told.send(number)


def hold_open(place, told):
    """Open a store, tell it, and keep it until something is heard."""
    from boolbert.retrieval.stores import open_store

    store = open_store(place)
    told.send("open")
    told.recv()
    store.close()


def index_as_rank(rank, port, folder, arguments):
    """Run a command as one of two processes, as `accelerate launch` or torchrun start them."""
    from boolbert.cli.main import main
    from boolbert.retrieval import encode

    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.chdir(folder)
    encode.encode_corpus.__kwdefaults__["shard_size"] = 16
    with open(f"out-{rank}.txt", "w") as sys.stdout:
        sys.exit(main(arguments))
