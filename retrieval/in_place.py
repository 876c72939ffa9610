"""A BERT that computes its GELUs in place while vectors are made on a CPU.

The layer inside a BERT's feed-forward part is four times as wide as its states: to find memory for a second copy of it,
and to write there, takes a share of the time that can be measured. The numbers are the same, to the bit.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers.activations import GELUActivation
from transformers.models.bert.modeling_bert import BertIntermediate

from boolbert.kernels_boolbert import activated, are_untouched


class InPlace(nn.Module):
    """An activation, in the memory of its input where no gradient is asked for."""

    def __init__(self, activation: nn.Module):
        super().__init__()
        self.activation = activation

    def forward(self, states: Tensor) -> Tensor:
        return self.activation(states) if torch.is_grad_enabled() else activated(states, self.activation)


@contextmanager
def activating_in_place(model: nn.Module) -> Iterator[None]:
    """Meanwhile the GELUs of a model's BERTs are such ones; another thread that uses it gets the same numbers."""
    parts = [
        part
        for part in model.modules()
        if type(part) is BertIntermediate and are_untouched((part.intermediate_act_fn,), (GELUActivation,))
    ]
    before = [part.intermediate_act_fn for part in parts]
    try:
        for part, activation in zip(parts, before, strict=True):
            part.intermediate_act_fn = InPlace(activation)
        yield
    finally:
        for part, activation in zip(parts, before, strict=True):
            part.intermediate_act_fn = activation
