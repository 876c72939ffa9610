"""In which shapes the texts of a batch are embedded: parts of like length, which need little padding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from boolbert.retrieval.tokens import Rows, Tokens

# What another part costs, in tokens: its small kernels, and adding up the gradients of the word embeddings. On a GPU
# Python launches them one by one, unless the step is recorded.
PART_COST_CPU, PART_COST_GPU, PART_COST_RECORDED = 256, 8192, 3072
# Lengths of recorded steps are a multiple of this.
LENGTH_MULTIPLE = 16
MOST_PARTS = 8


class Parts(NamedTuple):
    """The rows of each part and the length that it is padded to, and where each of the wanted rows is found."""

    rows: list[Rows]
    lengths: list[int]
    places: Tensor


def rounded(length: int, multiple: int, limit: int) -> int:
    """
    >>> rounded(17, 16, limit=64), rounded(60, 16, limit=62)
    (32, 62)
    """
    return min(-(-length // multiple) * multiple, max(limit, length))


def split_rows(wanted: npt.NDArray[Any], tokens: Tokens, count: int) -> Parts:
    """These rows in some parts, each padded to its longest. A row that comes twice is embedded once."""
    own, inverse = np.unique(wanted, return_inverse=True)
    order = np.argsort(tokens.lengths[own], kind="stable")
    rows = np.array_split(own[order], min(count, len(own)))
    return Parts(rows, [int(tokens.lengths[part].max()) for part in rows], torch.from_numpy(np.argsort(order)[inverse]))


def best_count(lengths: np.ndarray, overhead: int) -> int:
    """In how many parts rows of these sorted lengths are embedded at the least cost, padding and overhead together.

    >>> best_count(np.array([10] * 90 + [200] * 10), overhead=100), best_count(np.array([64] * 100), overhead=100)
    (8, 1)
    """
    costs = {}
    for count in range(1, min(MOST_PARTS, len(lengths)) + 1):
        parts = np.array_split(lengths, count)
        costs[count] = sum(len(part) * int(part[-1]) for part in parts) + count * overhead
    return min(costs, key=lambda count: costs[count])


@dataclass(frozen=True)
class FixedShapes:
    """The same shapes for all batches: each part has a fixed number of rows and is padded to a fixed length.

    A batch of fewer rows repeats its shortest row; those vectors are not used. A longer batch gets larger shapes.
    """

    sizes: tuple[int, ...]
    lengths: tuple[int, ...]
    limit: int  # no text is longer

    @classmethod
    def choose(cls, batches: Sequence[npt.NDArray[Any]], tokens: Tokens, limit: int) -> "FixedShapes":
        """Those that fit some batches at the least cost, padding and overhead together.

        >>> tokens = Tokens(np.zeros(100, np.int32), np.array([0, 30, 60, 100]))
        >>> FixedShapes.choose([np.array([0, 1]), np.array([1, 2, 2])], tokens, limit=64)
        FixedShapes(sizes=(2,), lengths=(48,), limit=64)
        """
        lengths = [np.sort(tokens.lengths[np.unique(rows)]) for rows in batches]
        most = max(map(len, lengths))
        longest = np.max([np.pad(row, (most - len(row), 0), mode="edge") for row in lengths], axis=0)
        padded = [rounded(int(length), LENGTH_MULTIPLE, limit) for length in longest]
        # A part ends where the length changes. For each end: the least cost up to it, and where its last part begins.
        ends = [0, *(np.flatnonzero(np.diff(padded)) + 1).tolist(), most]
        costs, begins = [0], [0]
        for place, end in enumerate(ends[1:], 1):
            options = [costs[begin] + (end - ends[begin]) * padded[end - 1] for begin in range(place)]
            begins.append(options.index(min(options)))
            costs.append(min(options) + PART_COST_RECORDED)
        chosen = [len(ends) - 1]
        while begins[chosen[-1]]:
            chosen.append(begins[chosen[-1]])
        cuts = [ends[place] for place in reversed(chosen)]
        return cls(tuple(np.diff([0, *cuts]).tolist()), tuple(padded[end - 1] for end in cuts), limit)

    def split(self, wanted: npt.NDArray[Any], tokens: Tokens) -> Parts:
        """These rows in parts of the chosen shapes, or longer ones where they do not fit."""
        (rows,), _, places = split_rows(wanted, tokens, 1)
        missing = sum(self.sizes) - len(rows)
        if missing > 0:
            rows, places = np.pad(rows, (missing, 0), mode="edge"), places + missing
        parts = np.split(rows, np.cumsum(self.sizes)[:-1])  # the last one takes what is too many
        longest = [rounded(int(tokens.lengths[part].max()), LENGTH_MULTIPLE, self.limit) for part in parts]
        return Parts(parts, [max(pair) for pair in zip(longest, self.lengths, strict=True)], places)
