"""Backward through a loss over all embeddings of a batch, a part of the batch at a time (as in GradCache).

A contrastive loss needs every embedding at once, but not every activation. So the parts are embedded without a graph,
the loss gives the gradient of each embedding, and each part is embedded again to carry its gradient on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass
class Side:
    """The texts of one encoder: how they are embedded, in which parts, and the rows of the result that are wanted."""

    embed: Callable[[Any], Tensor]
    parts: Sequence[Any]
    index: Tensor | None = None


def embedding_backward(
    sides: Sequence[Side],
    loss_of: Callable[..., Tensor],
    *,
    reseed: Callable[[int, int], None],
    backward: Callable[[Tensor], None],
    keep: bool,
) -> Tensor:
    """Add the gradients of `loss_of(*embeddings)` to the parameters, and return the loss.

    `reseed(side, part)` sets the random numbers of a part, so that dropout is the same both times; `backward` is
    Accelerate's, which scales for fp16. With `keep` all activations are kept, and nothing is computed twice.
    """
    outputs: list[list[Tensor]] = []
    for number, side in enumerate(sides):
        outputs.append([])
        for part, inputs in enumerate(side.parts):
            reseed(number, part)
            with torch.set_grad_enabled(keep):
                outputs[-1].append(side.embed(inputs))

    leaves = [torch.cat([part.detach() for part in parts]).requires_grad_() for parts in outputs]
    wanted = [leaf if side.index is None else leaf[side.index] for leaf, side in zip(leaves, sides, strict=True)]
    loss = loss_of(*wanted)
    gradients = torch.autograd.grad(loss, leaves)

    for number, side in enumerate(sides):
        pieces = gradients[number].split([len(part) for part in outputs[number]])
        for part, (inputs, gradient) in enumerate(zip(side.parts, pieces, strict=True)):
            output = outputs[number][part]
            if not keep:
                reseed(number, part)
                output = side.embed(inputs)
            backward((output * gradient).sum())
    return loss.detach()


def reseed(seed: int, *numbers: int) -> None:
    """Make dropout and Gumbel noise, on every device, a function of these numbers: seed, step, process, part.

    A part that is computed a second time draws the same noise, and so does a step of a resumed run.
    """
    torch.manual_seed(int(np.random.SeedSequence([seed, *numbers]).generate_state(1, np.uint64)[0] >> 1))
