"""Which of torch's attention kernels to take."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def varying_shapes() -> Iterator[None]:
    """For batches of ever new shapes: without cuDNN's attention, which makes a plan for each shape it has not seen.

    On an H200, where torch prefers it, a first pass over 32,768 documents took five times as long with it, and a first
    training step eight times as long; the next ones with the same shapes were no faster.
    """
    if not torch.backends.cuda.is_built() or not torch.backends.cuda.cudnn_sdp_enabled():
        yield
        return
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(True)
