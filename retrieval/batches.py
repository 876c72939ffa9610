"""Texts to vectors: batches of texts of similar length, prepared by a thread while the model computes."""

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

QUERY_BATCH = 32
# A batch holds at most `batch_size` texts of this many tokens, or more texts if they are shorter,
FULL_LENGTH = 256
# but never more than this many times `batch_size`.
LARGEST = 4
# A text shorter than this share of the longest in a batch goes into the next batch,
SIMILAR = 0.9
# unless the batch holds fewer texts than `batch_size` divided by this.
SMALLEST = 4
# Texts that are tokenized together and then sorted by their number of tokens. More would only cost memory.
CHUNK = 1024

Rows = npt.NDArray[np.int64]
Batch = tuple[Rows, dict[str, Any]]  # rows of the input, and their features


def encode_queries(
    model: "SentenceTransformer",
    texts: Sequence[str],
    operators: Sequence[Sequence[int] | None] | None = None,
    *,
    batch_size: int = QUERY_BATCH,
) -> npt.NDArray[np.float32]:
    """The vectors of queries. `operators` (Bool-BERT only): three 0/1 per query, or None to let its gate decide."""
    inputs: Sequence[Any] = texts
    if operators is not None:
        inputs = [{"text": text, "operators": row} for text, row in zip(texts, operators, strict=True)]
    return encode_inputs(model, inputs, "query", batch_size)


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

    The same as `encode_query` and `encode_document`, and faster. The batches depend on the inputs alone. (N, D), or
    (N, K, D) for the queries of a Bool-BERT that has a vector for each alternative of OR.
    """
    from sentence_transformers.util import batch_to_device

    if model.training:
        model.eval()
    cosine = is_cosine(model)
    rows, vectors = [np.empty(0, np.int64)], []
    for batch_rows, features in _batches(model, inputs, task, batch_size):
        features = model(batch_to_device(features, model.device), task=task)
        output = features.get("query_vectors", features["sentence_embedding"]).float()
        if output.ndim == 3 and output.shape[1] == 1:
            output = output[:, 0]
        vectors.append(torch.nn.functional.normalize(output, dim=-1) if cosine else output)
        rows.append(batch_rows)
        if on_batch is not None:
            on_batch(len(batch_rows))
    if not vectors:
        return np.empty((0, model.get_embedding_dimension() or 0), np.float32)
    encoded = torch.cat(vectors).cpu().numpy()
    result = np.empty_like(encoded)
    result[np.concatenate(rows)] = encoded
    return result


def _batches(model: "SentenceTransformer", inputs: Sequence[Any], task: str, batch_size: int) -> Iterator[Batch]:
    """The batches in turn, the longest texts first. While the model works on one chunk, the next is tokenized."""
    lengths = [len(item["text"] if isinstance(item, dict) else item) for item in inputs]
    order = np.argsort(-np.array(lengths, dtype=np.int64), kind="stable")
    prompt = prompt_of(model, task)
    step = max(CHUNK, batch_size)

    def prepare(start: int) -> list[Batch]:
        rows = order[start : start + step]
        features = model.preprocess([inputs[row] for row in rows], prompt=prompt, task=task)
        return list(cut(rows, features, batch_size))

    with ThreadPoolExecutor(max_workers=1) as thread:
        starts = range(0, len(order), step)
        following = thread.submit(prepare, starts[0]) if len(starts) else None
        for start in starts:
            assert following is not None
            ready = following.result()
            following = thread.submit(prepare, start + step) if start != starts[-1] else None
            yield from ready


def cut(rows: Rows, features: dict[str, Any], batch_size: int) -> Iterator[Batch]:
    """Cut tokenized texts into batches of similar length, and each batch to the length of its longest text.

    >>> mask = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0]])
    >>> for rows, batch in cut(np.arange(3), {"attention_mask": mask, "modality": "text"}, batch_size=8):
    ...     print(rows.tolist(), batch["attention_mask"].tolist())
    [0, 2] [[1, 1, 1], [1, 1, 0]]
    [1] [[1]]
    """
    mask = features.get("attention_mask")
    count = len(rows)
    if not isinstance(mask, Tensor) or not all(_has_rows(value, count) for value in features.values()):
        yield rows, features  # features that are not one row per text cannot be cut
        return
    tokens = mask.sum(dim=1)
    order = torch.argsort(tokens, descending=True, stable=True)
    start = 0
    while start < count:
        longest = max(int(tokens[order[start]]), 1)
        fitting = min(max(batch_size * FULL_LENGTH // longest, 1), LARGEST * batch_size)
        chosen = order[start : start + fitting]
        similar = int((tokens[chosen] >= SIMILAR * longest).sum())
        chosen = chosen[: max(similar, batch_size // SMALLEST, 1)]
        width = int(mask[chosen].any(dim=0).nonzero().max()) + 1 if mask[chosen].any() else mask.shape[1]
        yield rows[chosen.numpy()], {name: _select(value, chosen, mask, width) for name, value in features.items()}
        start += len(chosen)


def _has_rows(value: Any, count: int) -> bool:
    """Whether a feature has one row per text; one that is no tensor belongs to the whole batch."""
    return not isinstance(value, Tensor) or (value.ndim >= 1 and len(value) == count)


def _select(value: Any, chosen: Tensor, mask: Tensor, width: int) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value[chosen][:, :width] if value.shape == mask.shape else value[chosen]
