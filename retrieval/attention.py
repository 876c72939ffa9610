"""Which of torch's attention kernels to take."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_lock = Lock()
_users = 0  # that are inside `varying_shapes`, in all threads
_was_on = False  # before the first of them came


@contextmanager
def varying_shapes() -> Iterator[None]:
    """For batches of ever new shapes: without cuDNN's attention, which makes a plan for each shape it has not seen.

    On an H200, where torch prefers it, a first pass over 32,768 documents took five times as long with it; a second one
    was no faster. The switch is torch's own, one for the process: other threads go without it meanwhile.
    """
    if not torch.backends.cuda.is_built():
        yield
        return
    global _users, _was_on
    with _lock:
        if not _users:
            _was_on = torch.backends.cuda.cudnn_sdp_enabled()
            torch.backends.cuda.enable_cudnn_sdp(False)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                torch.backends.cuda.enable_cudnn_sdp(_was_on)
