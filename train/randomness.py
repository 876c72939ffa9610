"""Dropout and Gumbel noise as a function of (seed, step, process, part), so that nothing has to be remembered.

A part of a step that is computed a second time draws the same numbers, and so does a step of a resumed run.
"""

import numpy as np
import torch


def reseed(seed: int, *place: int) -> None:
    """Start torch's random numbers, on every device, at the ones of this place."""
    torch.manual_seed(int(np.random.SeedSequence([seed, *place]).generate_state(1, np.uint64)[0] >> 1))
