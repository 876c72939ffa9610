"""AdamW with the right groups, and the learning rate as a function of the step."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from boolbert.configuration_boolbert import is_boolean
from boolbert.core.errors import TrainingError

SCHEDULES = ("linear", "cosine", "constant")
# The strength of exclusion and the penalty are single numbers that have to move by tenths. At a rate that suits
# matrices they would stay where they started.
STRENGTH, PENALTY = "composer.strength", "composer.penalty"
SINGLE_NUMBERS = (STRENGTH, PENALTY, "composer.penalty_above")
STRENGTH_RATE = 1e-2
# What torch warns of in the steps before one is recorded.
BEFORE_RECORDED = "This instance was constructed with capturable=True"


def learning_rate_share(step: int, total: int, warmup: float, schedule: str = "linear") -> float:
    """The share of the learning rate at a step (from 0): up in the warm-up, then down to 0 after the last step.

    >>> [round(learning_rate_share(step, total=5, warmup=0.4), 2) for step in range(5)]
    [0.5, 1.0, 1.0, 0.67, 0.33]
    >>> [round(learning_rate_share(step, total=4, warmup=0, schedule="cosine"), 2) for step in range(4)]
    [1.0, 0.85, 0.5, 0.15]
    """
    rising = round(total * warmup)
    if step < rising:
        return (step + 1) / rising
    done = (step - rising) / max(1, total - rising)
    return {"linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2, "constant": 1.0}[schedule]


def build_optimizer(
    model: nn.Module, *, learning_rate: float, boolean_learning_rate: float | None = None, weight_decay: float = 0.01
) -> torch.optim.AdamW:
    """AdamW over the parameters that learn."""
    groups: dict[tuple[float, float], dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            rate = (boolean_learning_rate or learning_rate) if is_boolean(name) else learning_rate
            rate = STRENGTH_RATE if name.endswith(SINGLE_NUMBERS) else rate
            # Matrices decay, biases do not, also where each operator has a bias of its own.
            decay = weight_decay if parameter.ndim > 1 and not name.endswith("bias") else 0.0
            new = {"params": [], "lr": rate, "base_lr": rate, "weight_decay": decay}
            groups.setdefault((rate, decay), new)["params"].append(parameter)
    if not groups:
        raise TrainingError("there is nothing to learn: every parameter is frozen")
    device = next(model.parameters()).device
    return torch.optim.AdamW(list(groups.values()), lr=learning_rate, fused=device.type in ("cuda", "cpu"))


def place_learning_rates(optimizer: Any, device: torch.device | None) -> None:
    """Make learning rates tensors on the GPU of a recorded step, else Python's numbers; checkpoints may hold either."""
    for group in optimizer.param_groups:
        group["capturable"] = device is not None
        rate = float(group["lr"])
        group["lr"] = rate if device is None else torch.tensor(rate, device=device)


def set_learning_rate(optimizer: Any, share: float) -> None:
    for group in optimizer.param_groups:
        rate = group["base_lr"] * share
        if isinstance(group["lr"], Tensor):  # where a recorded step finds it
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate
