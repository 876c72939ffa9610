"""What processes exchange: embeddings before the loss, gradients after the backward pass.

There is no DistributedDataParallel here. It averages gradients, wants one forward pass for each backward pass, and
stumbles over parameters that get no gradient. Every process computes the same loss over all embeddings and sends back
the part of the gradient that belongs to its own rows, so the gradient of the whole batch is the plain sum.
"""

from collections.abc import Iterable, Sequence

import torch
from accelerate import Accelerator
from torch import Tensor, nn

BUCKET = 25_000_000  # numbers that are summed at once


def gather_rows(accelerator: Accelerator, own: Tensor, sizes: Sequence[int]) -> Tensor:
    """All processes' rows, one after the other; process r has `sizes[r]`. Only this process's rows carry a gradient."""
    if accelerator.num_processes == 1:
        return own
    padded = own.detach().new_zeros(max(sizes), *own.shape[1:])
    padded[: len(own)] = own.detach()
    gathered = accelerator.gather(padded).split(max(sizes))
    rows = [part[:size] for part, size in zip(gathered, sizes, strict=True)]
    rows[accelerator.process_index] = own
    return torch.cat(rows)


def sum_gradients(accelerator: Accelerator, parameters: Iterable[nn.Parameter]) -> None:
    """Add up the gradients of all processes. A parameter that has none anywhere keeps none."""
    if accelerator.num_processes == 1:
        return
    learned = list(parameters)
    present = torch.tensor([p.grad is not None for p in learned], dtype=torch.float32, device=accelerator.device)
    torch.distributed.all_reduce(present)
    shared = [p for p, count in zip(learned, present.tolist(), strict=True) if count]
    for parameter in shared:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    for bucket in _buckets(shared):
        gradients = [p.grad for p in bucket if p.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        torch.distributed.all_reduce(flat)
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterable[list[nn.Parameter]]:
    bucket: list[nn.Parameter] = []
    for parameter in parameters:
        if bucket and sum(p.numel() for p in bucket) + parameter.numel() > BUCKET:
            yield bucket
            bucket = []
        bucket.append(parameter)
    if bucket:
        yield bucket
