"""Training batches as a pure function of (seed, epoch, step): every process computes the same ones, at any point."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.errors import DataError, DataWarning
from .gold import Gold, HardNegatives, Mask, Rows

_ORDER, _POSITIVES, _NEGATIVES = range(3)  # independent streams of random numbers


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Queries with a positive and K negatives each, all as indices: queries of the split, documents of the corpus."""

    epoch: int
    step: int
    queries: npt.NDArray[np.int64]  # (B,)
    positives: Rows  # (B,)
    negatives: Rows  # (B, K)
    hard: Mask  # (B, K): which negatives are hard ones, the others are random

    def __len__(self) -> int:
        return len(self.queries)

    def documents(self) -> Rows:
        """The positives, then the negatives query by query: query i's target is column i."""
        return np.concatenate([self.positives, self.negatives.ravel()])

    def shard(self, rank: int, world_size: int) -> "Batch":
        """The rows of one process. Those of all processes, one after the other, are the batch."""
        if not 0 <= rank < world_size:
            raise ValueError(f"rank must be 0 to {world_size - 1}, got {rank}")
        part = slice(len(self) * rank // world_size, len(self) * (rank + 1) // world_size)
        arrays = (self.queries[part], self.positives[part], self.negatives[part], self.hard[part])
        return Batch(self.epoch, self.step, *arrays)

    def gathered(self, rank: int, world_size: int) -> tuple[Rows, npt.NDArray[np.int64]]:
        """All processes' documents in the order in which they are gathered, and the columns of this one's positives."""
        shards = [self.shard(other, world_size) for other in range(world_size)]
        before = sum(len(shard.documents()) for shard in shards[:rank])
        return np.concatenate([shard.documents() for shard in shards]), before + np.arange(len(shards[rank]))


class TrainingSampler:
    """Batches of queries, each with one positive and `hard_negatives` + `random_negatives` negatives.

    Every epoch visits all queries in a new order, and a query's positive is another one until all were taken. Negatives
    are distinct and never gold. Hard ones come in equal shares from the query's pools, and random ones stand in for
    those that are missing.

    >>> sampler = TrainingSampler(Gold([[0, 1], [2], [3]], documents=9), batch_size=2, random_negatives=3)
    >>> sampler.steps_per_epoch, [len(batch) for batch in sampler.batches(epoch=0)]
    (2, [2, 2])
    >>> sorted(int(sampler.draw(epoch, query=0)[0]) for epoch in range(4))
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        gold: Gold,
        *,
        batch_size: int = 32,
        random_negatives: int = 5,
        hard: HardNegatives | None = None,
        hard_negatives: int = 0,
        seed: int = 0,
    ):
        if hard_negatives and hard is None:
            raise ValueError("hard_negatives needs `hard`, the pools to draw from")
        if hard is not None and len(hard) != len(gold):
            raise ValueError(f"`hard` must have a pool for each of the {len(gold)} queries, got {len(hard)}")
        if batch_size < 1 or random_negatives < 0 or hard_negatives < 0 or not 0 <= seed < 2**64:
            raise ValueError("batch_size must be positive; negatives and seed must not be negative")
        self.gold = gold
        self.batch_size = batch_size
        self.negatives = random_negatives + hard_negatives
        self.hard = hard
        self.hard_negatives = hard_negatives
        self.seed = seed
        self.queries = np.flatnonzero(gold.counts)
        self._check_gold()
        # Each query's gold rows in a random order; and, for each gold row, how many documents before it are not gold.
        owner = np.repeat(np.arange(len(gold)), gold.counts)
        self._shuffled = gold.rows[np.lexsort((_generator(seed, _POSITIVES, 0, 0).random(len(gold.rows)), owner))]
        self._others_before = gold.rows - (np.arange(len(gold.rows)) - gold.offsets[owner])

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.queries) // self.batch_size)

    def draw(self, epoch: int, query: int) -> tuple[int, Rows, int]:
        """A query's positive, its negatives, and how many of these, the first ones, are hard."""
        start, stop = self.gold.offsets[query], self.gold.offsets[query + 1]
        positive = self._shuffled[start + epoch % (stop - start)]
        random = _generator(self.seed, _NEGATIVES, epoch, query)
        hard = self._draw_hard(random, query)
        others = self.gold.documents - (stop - start)
        wanted = self.negatives - len(hard)
        ranks = random.choice(others, size=min(others, wanted + len(hard)), replace=False)
        # From "the i-th document that is not gold" to its row: add the gold documents that come before it.
        rows = ranks + np.searchsorted(self._others_before[start:stop], ranks, side="right")
        rows = rows[~np.isin(rows, hard)][:wanted] if len(hard) else rows
        return int(positive), np.concatenate([hard, rows]).astype(np.int32), len(hard)

    def batch(self, epoch: int, step: int) -> Batch:
        """The whole batch of a step."""
        if not 0 <= step < self.steps_per_epoch:
            raise IndexError(f"step must be 0 to {self.steps_per_epoch - 1}, got {step}")
        numbers, epochs = epoch_batch(len(self.queries), self.batch_size, epoch, step, seed=self.seed)
        queries = self.queries[numbers]
        draws = [self.draw(int(drawn_in), int(query)) for drawn_in, query in zip(epochs, queries, strict=True)]
        hard = np.array([count for *_, count in draws], dtype=np.int64)
        return Batch(
            epoch,
            step,
            queries,
            positives=np.array([positive for positive, *_ in draws], dtype=np.int32),
            negatives=np.array([rows for _, rows, _ in draws], dtype=np.int32).reshape(len(draws), self.negatives),
            hard=np.arange(self.negatives) < hard[:, None],
        )

    def batches(self, epoch: int) -> Iterator[Batch]:
        return (self.batch(epoch, step) for step in range(self.steps_per_epoch))

    def _draw_hard(self, random: np.random.Generator, query: int) -> Rows:
        pools = self.hard[query] if self.hard is not None and self.hard_negatives else ()
        shares = [0] * len(pools)
        left = min(self.hard_negatives, sum(map(len, pools)))
        turn = int(random.integers(len(pools))) if pools else 0
        while left:  # one from each pool in turn, from a random first one on
            if shares[turn] < len(pools[turn]):
                shares[turn] += 1
                left -= 1
            turn = (turn + 1) % len(pools)
        chosen = [pool[random.choice(len(pool), n, replace=False)] for pool, n in zip(pools, shares, strict=True) if n]
        return np.concatenate(chosen) if chosen else np.empty(0, dtype=np.int32)

    def _check_gold(self) -> None:
        if not len(self.queries):
            raise DataError(f"none of the {len(self.gold)} queries has a gold document in the corpus")
        if without := len(self.gold) - len(self.queries):
            message = f"{without:,} of {len(self.gold):,} queries have no gold document in the corpus"
            warnings.warn(f"{message}: they are left out of the batches", DataWarning, stacklevel=3)
        largest = int(self.gold.counts.argmax())
        if self.gold.documents - self.gold.counts[largest] < self.negatives:
            raise DataError(
                f"query {largest} has {self.gold.counts[largest]} gold documents of {self.gold.documents}, "
                f"which leaves fewer than the {self.negatives} negatives asked for"
            )


def epoch_batch(
    size: int, batch_size: int, epoch: int, step: int, *, seed: int = 0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The rows of a batch, of 0 to size - 1, and the epoch that each belongs to.

    Every batch is full: the last one of an epoch takes further rows from the order of the next epoch, none twice.

    >>> epoch_batch(5, 3, epoch=0, step=1)
    (array([0, 3, 2]), array([0, 0, 1]))
    """
    order, following = (_generator(seed, _ORDER, each, 0).permutation(size) for each in (epoch, epoch + 1))
    rows = order[step * batch_size : (step + 1) * batch_size]
    filling = following[~np.isin(following, rows)][: batch_size - len(rows)]
    return np.concatenate([rows, filling]), np.repeat([epoch, epoch + 1], [len(rows), len(filling)])


def _generator(seed: int, stream: int, high: int, low: int) -> np.random.Generator:
    """A counter-based generator: the key and the upper counter words name the draw, the lower words count in it."""
    words = np.array([seed, stream, 0, 0, low, high], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=words[:2], counter=words[2:]))
