"""Vectors of many texts: batches of like length, shared out among the processes."""

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from boolbert.train.gather import gather_rows
from boolbert.train.loader import to_device
from boolbert.train.tokens import Tokens

TOKENS_AT_ONCE = 32_768


@torch.no_grad()
def encode(
    model: nn.Module, side: str, tokens: Tokens, accelerator: Accelerator, operators: Tensor | None = None
) -> Tensor:
    """The vectors (N, D) of all texts, on the device of the model; the same on every process."""
    training = model.training
    model.eval()
    ranks, rank = accelerator.num_processes, accelerator.process_index
    order = np.argsort(-tokens.lengths, kind="stable")  # the longest first: what does not fit fails at once
    shares = [order[other::ranks] for other in range(ranks)]
    own = shares[rank]
    parts: list[Tensor] = []
    start = 0
    while start < len(own):
        size = max(1, TOKENS_AT_ONCE // int(tokens.lengths[own[start]]))
        rows = own[start : start + size]
        inputs = tokens.batch(rows)
        if operators is not None:
            inputs["operators"] = operators[torch.from_numpy(rows)]
        parts.append(model(side, to_device(inputs, accelerator.device)))
        start += size
    width = parts[0].shape[1] if parts else 0
    local = torch.cat(parts) if parts else torch.empty(0, width, device=accelerator.device)
    gathered = gather_rows(accelerator, local, [len(share) for share in shares])
    vectors = torch.empty_like(gathered)
    vectors[torch.from_numpy(np.concatenate(shares)).to(gathered.device)] = gathered
    model.train(training)
    return vectors
