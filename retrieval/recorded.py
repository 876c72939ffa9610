"""Training steps and queries as CUDA graphs: each is recorded once per shape of batch, and then started by one call.

A step of a dual encoder launches thousands of kernels, a query hundreds, and a GPU computes them faster than Python can
launch them.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from boolbert.core.errors import first_line

# Steps of a shape before it is recorded: kernels are compiled, and the optimizer makes its state.
WARM = 2
# Shapes that are recorded. Batches of still others are computed launch by launch.
MOST = 16

Results = dict[str, Tensor]
Result = TypeVar("Result")


class Recording(NamedTuple):
    """A step that was recorded: what it reads, what it writes, and how it is started."""

    inputs: list[Tensor]
    results: Results
    replay: Callable[[], None]


class RecordedStep:
    """`compute(batch)` on a GPU. Where a shape of batch comes again and again, its kernels are recorded and replayed.

    A replay does on the GPU what `compute` did when it was recorded, and nothing else: what changes from step to step
    has to be a tensor of the batch, or one that is changed in place, as the learning rate is. Each replay draws
    new random numbers, from the seed that was set before. Whatever cannot be recorded is computed launch by launch;
    `forget` then removes what `compute` may have left half done.
    """

    def __init__(
        self,
        compute: Callable[[Any], Results],
        device: torch.device,
        *,
        forget: Callable[[], object] = lambda: None,
        on: bool = True,
        name: str = "training steps",
    ):
        self.compute = compute
        self.device = device
        self.forget = forget
        self.on = on
        self.name = name
        self.recorded: dict[Any, Recording] = {}
        self._seen: Counter[Any] = Counter()
        self._pool: Any = None

    def __call__(self, batch: Any) -> Results:
        """The results of a batch whose tensors are still on the CPU."""
        if not self.on:
            return self.compute(self._sent(batch))
        shape = shape_of(batch)
        recording = self.recorded.get(shape)
        if recording is None:
            self._seen[shape] += 1
            if self._seen[shape] > WARM and len(self.recorded) < MOST:
                recording = self._try_to_record(shape, batch)
        if recording is None:
            return self.with_room(lambda: self.compute(self._sent(batch)))
        for static, tensor in zip(recording.inputs, tensors_of(batch), strict=True):
            static.copy_(tensor, non_blocking=True)
        recording.replay()
        return {name: value.clone() for name, value in recording.results.items()}  # the next replay writes there again

    def with_room(self, work: Callable[[], Result]) -> Result:
        """Do some work while the recordings hold their memory; where that leaves too little, they are given up."""
        try:
            return work()
        except torch.OutOfMemoryError as error:
            if not self.recorded:
                raise
            self._give_up(error)
        return work()

    def close(self) -> None:
        """Give the recordings' memory back."""
        self.on = False
        self.recorded.clear()
        self._pool = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _sent(self, batch: Any) -> Any:
        from accelerate.utils import send_to_device

        return send_to_device(batch, self.device, non_blocking=True)

    def _try_to_record(self, shape: Any, batch: Any) -> Recording | None:
        try:
            static = self._sent(batch)
            self._pool = self._pool or torch.cuda.graph_pool_handle()
            results, replay = record(lambda: self.compute(static), self.device, self._pool)
        except RuntimeError as error:  # an operation that waits for the GPU, or too little memory for a second copy
            self._give_up(error)
            return None
        self.recorded[shape] = Recording(list(tensors_of(static)), results, replay)
        return self.recorded[shape]

    def _give_up(self, error: BaseException) -> None:
        self.close()
        self.forget()
        warnings.warn(
            f"{self.name} are not recorded as CUDA graphs ({first_line(cause_of(error))}): they go on without, slower",
            stacklevel=2,
        )


def record(compute: Callable[[], Results], device: torch.device, pool: Any) -> tuple[Results, Callable[[], None]]:
    """Record what `compute` does on the GPU, without doing it; the results, and how to do it.

    All recordings share a pool of memory, since only one runs at a time.
    """
    stream, noise = torch.cuda.current_stream(device), torch.cuda.get_rng_state(device)
    graph, own = torch.cuda.CUDAGraph(), torch.cuda.Stream(device)
    try:
        # Another thread prepares batches meanwhile, in memory that the GPU can read.
        with torch.cuda.graph(graph, pool=pool, stream=own, capture_error_mode="thread_local"):
            results = compute()
    except RuntimeError:
        # torch stays where it was: on the recording's stream, with random numbers for a recording alone.
        torch.cuda.set_stream(stream)
        generator = torch.Generator(stream.device)
        generator.set_state(noise)
        torch.cuda.default_generators[stream.device.index].graphsafe_set_state(generator.graphsafe_get_state())
        raise
    return results, graph.replay


def cause_of(error: BaseException) -> BaseException:
    """The first of errors that followed from one another: the last ones only say that recording failed."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def shape_of(batch: Any) -> Any:
    """Shapes and types of a batch's tensors, and all that is no tensor.

    >>> shape_of({"ids": torch.zeros(2, 3), "sizes": [2], "more": None})
    (('ids', ((2, 3), torch.float32)), ('sizes', (2,)), ('more', None))
    """
    if isinstance(batch, Tensor):
        return tuple(batch.shape), batch.dtype
    if isinstance(batch, dict):
        return tuple((name, shape_of(value)) for name, value in batch.items())
    if isinstance(batch, list | tuple):
        return tuple(map(shape_of, batch))
    return batch


def tensors_of(batch: Any) -> Iterator[Tensor]:
    """A batch's tensors, always in the same order."""
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, dict | list | tuple):
        for part in batch.values() if isinstance(batch, dict) else batch:
            yield from tensors_of(part)
