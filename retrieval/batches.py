"""Texts to vectors: batches of like length within a token budget, prepared by a thread while the model computes."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from boolbert.retrieval.models import is_cosine, prompt_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

FULL_LENGTH = 256  # tokens; the budget of a batch is batch_size texts of this length
CHUNK = 1024  # texts that are tokenized together, then sorted by their true length; more only costs memory
MOST = 4  # a batch of short texts holds at most this many times batch_size
LIKE = 0.9  # a text shorter than this share of the batch's longest starts the next batch,
LEAST = 4  # unless the batch is smaller than batch_size over this

Batch = tuple[npt.NDArray[np.int64], dict[str, Any]]  # places in the input, features


@torch.inference_mode()
def encode_inputs(
    model: "SentenceTransformer",
    inputs: Sequence[Any],
    task: str,
    batch_size: int,
    *,
    on_batch: Callable[[int], object] | None = None,
) -> npt.NDArray[np.float32]:
    """The vectors of texts, or of {"text": ..., "operators": ...}, in their order; task is "query" or "document".

    The same as `encode_query` and `encode_document`, and faster. The batches depend on the inputs alone.
    """
    from sentence_transformers.util import batch_to_device

    model.eval()
    cosine = is_cosine(model)
    places, vectors = [np.empty(0, np.int64)], []
    for where, features in _prepared(model, inputs, task, batch_size):
        output = model(batch_to_device(features, model.device), task=task)["sentence_embedding"].float()
        vectors.append(torch.nn.functional.normalize(output) if cosine else output)
        places.append(where)
        if on_batch is not None:
            on_batch(len(where))
    if not vectors:
        return np.empty((0, model.get_embedding_dimension() or 0), np.float32)
    found = torch.cat(vectors).cpu().numpy()
    result = np.empty_like(found)
    result[np.concatenate(places)] = found
    return result


def _prepared(model: "SentenceTransformer", inputs: Sequence[Any], task: str, batch_size: int) -> Iterator[Batch]:
    """The batches in turn; while one chunk of them is computed, the next is tokenized."""
    lengths = [len(given["text"] if isinstance(given, dict) else given) for given in inputs]
    order = np.argsort(-np.array(lengths, dtype=np.int64), kind="stable")
    prompt = prompt_of(model, task)
    step = max(CHUNK, batch_size)

    def prepare(start: int) -> list[Batch]:
        places = order[start : start + step]
        features = model.preprocess([inputs[place] for place in places], prompt=prompt, task=task)
        return list(cut(places, features, batch_size))

    with ThreadPoolExecutor(max_workers=1) as thread:
        starts = range(0, len(order), step)
        following = thread.submit(prepare, starts[0]) if len(starts) else None
        for start in starts:
            assert following is not None
            ready = following.result()
            following = thread.submit(prepare, start + step) if start != starts[-1] else None
            yield from ready


def cut(places: npt.NDArray[np.int64], features: dict[str, Any], batch_size: int) -> Iterator[Batch]:
    """Cut tokenized texts into batches of like length, without the padding that a batch does not need.

    >>> mask = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0]])
    >>> for where, batch in cut(np.arange(3), {"attention_mask": mask, "modality": "text"}, batch_size=8):
    ...     print(where.tolist(), batch["attention_mask"].tolist())
    [0, 2] [[1, 1, 1], [1, 1, 0]]
    [1] [[1]]
    """
    mask = features.get("attention_mask")
    rows = len(places)
    if not isinstance(mask, Tensor) or not all(_is_batched(value, rows) for value in features.values()):
        yield places, features  # of an unknown form: they stay together
        return
    tokens = mask.sum(dim=1)
    order = torch.argsort(tokens, descending=True, stable=True)
    start = 0
    while start < rows:
        longest = max(int(tokens[order[start]]), 1)
        count = min(max(batch_size * FULL_LENGTH // longest, 1), MOST * batch_size)
        chosen = order[start : start + count]
        like = int((tokens[chosen] >= LIKE * longest).sum())
        chosen = chosen[: max(like, batch_size // LEAST, 1)]
        width = int(mask[chosen].any(dim=0).nonzero().max()) + 1 if mask[chosen].any() else mask.shape[1]
        yield places[chosen.numpy()], {name: _part(value, chosen, mask, width) for name, value in features.items()}
        start += len(chosen)


def _is_batched(value: Any, rows: int) -> bool:
    return not isinstance(value, Tensor) or (value.ndim >= 1 and len(value) == rows)


def _part(value: Any, chosen: Tensor, mask: Tensor, width: int) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value[chosen][:, :width] if value.shape == mask.shape else value[chosen]
