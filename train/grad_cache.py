"""Backward through a loss over all embeddings of a batch, a part of the batch at a time (as in GradCache).

A contrastive loss needs every embedding at once, but not every activation. So the parts are embedded without a graph,
the loss gives the gradient of each embedding, and each part is embedded again to carry its gradient on.

With several processes each computes the loss over all embeddings, and the gradient of its own. DistributedDataParallel
averages gradients over the processes, in the last backward pass of a step; the sum is wanted, so what goes backward is
multiplied by the number of processes.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn


@dataclass
class Side:
    """The texts of one encoder: how they are embedded, in which parts, and the rows of the result that are wanted."""

    embed: Callable[[Any], Tensor]
    parts: Sequence[Any]
    index: Tensor


def embedding_backward(
    sides: Sequence[Side],
    loss_of: Callable[..., Tensor],
    *,
    model: nn.Module,
    accelerator: Accelerator,
    reseed: Callable[[int, int], None],
    keep_graph: bool,
) -> Tensor:
    """Add the gradients of `loss_of(*embeddings)` to the parameters of `model`, and return the loss.

    `reseed(side, part)` sets the random numbers of a part, so that dropout is the same both times. With
    `keep_graph` all activations stay in memory, and nothing is computed twice.
    """
    last = len(sides) - 1, len(sides[-1].parts) - 1
    outputs: list[list[Tensor]] = []
    for number, side in enumerate(sides):
        outputs.append([])
        for part, inputs in enumerate(side.parts):
            reseed(number, part)
            # The processes exchange gradients once, after the last forward pass of the step.
            with (
                torch.set_grad_enabled(keep_graph),
                nullcontext() if (number, part) == last else accelerator.no_sync(model),
            ):
                outputs[-1].append(side.embed(inputs))

    leaves = [torch.cat([part.detach() for part in parts]).requires_grad_() for parts in outputs]
    loss = loss_of(*(leaf[side.index] for leaf, side in zip(leaves, sides, strict=True)))
    scaled = [gradient * accelerator.num_processes for gradient in torch.autograd.grad(loss, leaves)]
    gradients = [whole.split([len(part) for part in parts]) for whole, parts in zip(scaled, outputs, strict=True)]

    if keep_graph:
        pairs = [pair for parts in zip(outputs, gradients, strict=True) for pair in zip(*parts, strict=True)]
        accelerator.backward(torch.stack([(output * gradient).sum() for output, gradient in pairs]).sum())
        return loss.detach()

    # The last part of each side waits, so that the last backward pass reaches every parameter.
    waiting: list[Tensor] = []
    for number, side in enumerate(sides):
        for part, (inputs, gradient) in enumerate(zip(side.parts, gradients[number], strict=True)):
            with nullcontext() if (number, part) == last else accelerator.no_sync(model):
                reseed(number, part)
                product = (side.embed(inputs) * gradient).sum()
                if part == len(side.parts) - 1:
                    waiting.append(product)
                else:
                    accelerator.backward(product)
    accelerator.backward(torch.stack(waiting).sum())
    return loss.detach()


def reseed(seed: int, *numbers: int) -> None:
    """Make dropout and Gumbel noise, on every device, a function of these numbers: seed, step, process, part.

    A part that is computed a second time draws the same noise, and so does a step of a resumed run.
    """
    torch.manual_seed(int(np.random.SeedSequence([seed, *numbers]).generate_state(1, np.uint64)[0] >> 1))
