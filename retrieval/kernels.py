"""Which of torch's kernels to take."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_lock = Lock()
_users = 0  # that are inside `quick_kernels`, in all threads
_were_on: dict[str, bool] = {}  # before the first of them came


@contextmanager
def quick_kernels() -> Iterator[None]:
    """Without those of torch's kernels that are slow for what encoding, training and search do.

    cuDNN's attention makes a plan for each shape it has not seen, and texts have ever new ones. On an H200, where torch
    prefers it, a first pass over 32,768 documents took five times as long with it; a second one was no faster.

    oneDNN's float32 products on ARM rearrange the weights in each call. On a Neoverse-N1 OpenBLAS's are faster, by a
    third with 16 tokens and by a tenth with 2,048, and differ in the last bits.

    The switches are torch's own, one for the process: other threads go without these kernels meanwhile.
    """
    global _users
    with _lock:
        if not _users:
            _were_on.update({name: is_on(name) for name in slow_kernels()})
        _users += 1
    try:
        with _lock:
            for name in filter(is_on, _were_on):
                switch(name, False)
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                for name, was_on in _were_on.items():
                    switch(name, was_on)
                _were_on.clear()


def slow_kernels() -> list[str]:
    found = ["cudnn"] if torch.backends.cuda.is_built() else []
    if (
        getattr(torch.backends.mkldnn, "is_acl_available", bool)()
        and torch.backends.cpu.get_cpu_capability() == "DEFAULT"
    ):
        found.append("onednn")  # on ARM processors without SVE; newer ones were not measured
    return found


def is_on(kernel: str) -> bool:
    return torch.backends.cuda.cudnn_sdp_enabled() if kernel == "cudnn" else bool(torch.backends.mkldnn.enabled)


def switch(kernel: str, on: bool) -> None:
    if kernel == "cudnn":
        torch.backends.cuda.enable_cudnn_sdp(on)
    else:
        torch.backends.mkldnn.enabled = on  # type: ignore[assignment]
