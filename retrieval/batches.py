"""Texts to vectors: batches of texts of similar length, prepared by a thread while the model computes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.attention import sdpa_kernel

from boolbert.retrieval.models import bool_bert, is_cosine, prompt_of, side_modules
from boolbert.retrieval.penalty import penalised_query
from boolbert.retrieval.prefetch import map_ahead, prefetch
from boolbert.retrieval.tokens import ATTENTION, Rows, TextReader, Tokens

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

QUERY_BATCH = 32
# A batch holds at most `batch_size` texts of this many tokens, or more texts if they are shorter,
FULL_LENGTH = 256
# but never more than this many times `batch_size`.
LARGEST = 4
# A text shorter than this share of the longest in a batch goes into the next batch. Where a corpus is encoded on a GPU
# another batch costs more than some padding.
SIMILAR, SIMILAR_GPU = 0.9, 0.8
# It stays where the batch holds fewer texts than `batch_size` divided by this.
SMALLEST = 4
# Texts that are tokenized together and then sorted by their number of tokens. More would only cost memory.
CHUNK = 1024
LANES = 2  # batches that a CPU computes at the same time

# Texts that show whether a model's own preparation is its tokenizer alone.
SAMPLES = ("", "a", "Two  Spaces, ünïcode\nand a line", "words " * 600)

Batch = tuple[Rows, dict[str, Any]]  # rows of the input, and their features


def encode_queries(
    model: "SentenceTransformer",
    texts: Sequence[str],
    operators: Sequence[Sequence[int] | None] | None = None,
    *,
    one_vector: bool = False,
) -> npt.NDArray[np.float32]:
    """The vectors of queries. `operators` (Bool-BERT only): three 0/1 per query, or None to let its gate decide."""
    inputs: Sequence[Any] = texts
    if operators is not None and bool_bert(model) is not None:
        inputs = [{"text": text, "operators": row} for text, row in zip(texts, operators, strict=True)]
    return encode_inputs(model, inputs, "query", QUERY_BATCH, one_vector=one_vector)


def encode_inputs(
    model: "SentenceTransformer", inputs: Sequence[Any], task: str, batch_size: int, *, one_vector: bool = False
) -> npt.NDArray[np.float32]:
    """The vectors of texts, or of {"text": ..., "operators": ...}, in their order; task is "query" or "document".

    The same as `encode_query` and `encode_document`, and faster. The batches depend on the inputs alone. (N, D), or
    (N, K, D) for the queries of a Bool-BERT that has a vector for each alternative of OR, or (N, K + 1, D + 1), as
    `penalised_query` gives it, for one with a penalty; the latter not with `one_vector`.
    """
    return start_batches(model, prepared_batches(model, inputs, task, batch_size), task, one_vector=one_vector)()


@torch.inference_mode()
@sdpa_kernel(ATTENTION)
def start_batches(
    model: "SentenceTransformer",
    batches: Iterable[Batch],
    task: str,
    *,
    on_batch: Callable[[int], object] = lambda count: None,
    one_vector: bool = False,
) -> Callable[[], npt.NDArray[np.float32]]:
    """Start encoding, and return a function that waits for the vectors: on a GPU all work is under way by then."""
    from accelerate.utils import send_to_device

    if model.training:
        model.eval()
    cosine = is_cosine(model)

    @torch.inference_mode()
    def encode(batch: Batch) -> tuple[Rows, Tensor]:
        sent = send_to_device(batch[1], model.device, non_blocking=model.device.type == "cuda")
        features = model(sent, task=task)
        return batch[0], _search_vectors(features, cosine, one_vector)

    rows, vectors = [np.empty(0, np.int64)], []
    for batch_rows, found in (_in_lanes if model.device.type == "cpu" else map)(encode, batches):
        vectors.append(found)
        rows.append(batch_rows)
        on_batch(len(batch_rows))
    size = model.get_embedding_dimension() or 0
    together = torch.cat(vectors) if vectors else torch.empty(0, size)
    # Another thread may wait for it, on another stream.
    done = torch.cuda.current_stream(model.device).record_event() if together.is_cuda else None

    def finish() -> npt.NDArray[np.float32]:
        if done is not None:
            done.synchronize()
        encoded = together.cpu().numpy()
        result = np.empty_like(encoded)
        result[np.concatenate(rows)] = encoded
        return result

    return finish


def _in_lanes(
    encode: Callable[[Batch], tuple[Rows, Tensor]], batches: Iterable[Batch]
) -> Iterator[tuple[Rows, Tensor]]:
    """encode(batch) for each batch, in their order. Two at a time, each with half of the processor's threads: where all
    threads share one product, they wait for the slowest at its end.
    """
    threads, coming = torch.get_num_threads(), iter(batches)
    first = list(islice(coming, LANES))
    # Autocast does not reach other threads.
    if threads < LANES or len(first) < LANES or torch.is_autocast_enabled("cpu"):
        yield from map(encode, chain(first, coming))
        return
    try:
        # What a thread sets counts for itself, and for threads that begin after it.
        with ThreadPoolExecutor(LANES, initializer=torch.set_num_threads, initargs=(threads // LANES,)) as pool:
            yield from map_ahead(pool, encode, chain(first, coming), 2 * LANES - 1)
    finally:
        torch.set_num_threads(threads)


def _search_vectors(features: dict[str, Any], cosine: bool, one_vector: bool) -> Tensor:
    """The vectors that a batch of queries or documents is searched with; a penalty needs vectors of length 1."""
    if "penalty" in features and cosine and not one_vector:
        return penalised_query(features["search_vectors"], features["excluded_embedding"], features["penalty"])
    output = features.get("query_vectors", features["sentence_embedding"]).float()
    if output.ndim == 3 and output.shape[1] == 1:
        output = output[:, 0]
    return torch.nn.functional.normalize(output, dim=-1) if cosine else output


def prepared_batches(
    model: "SentenceTransformer", inputs: Sequence[Any], task: str, batch_size: int
) -> Iterator[Batch]:
    """The batches in turn, the longest texts first. While the model works on one chunk, the next is tokenized."""
    lengths = [len(item["text"] if isinstance(item, dict) else item) for item in inputs]
    order = np.argsort(-np.array(lengths, dtype=np.int64), kind="stable")
    prompt = prompt_of(model, task)
    step = max(CHUNK, batch_size)

    def prepare(start: int) -> list[Batch]:
        rows = order[start : start + step]
        features = model.preprocess([inputs[row] for row in rows], prompt=prompt, task=task)
        return list(split_batches(rows, features, batch_size))

    yield from chain.from_iterable(prefetch(prepare, range(0, len(order), step), depth=1))


class Preparation:
    """What a model makes of texts before it computes, for many texts: tokens first, then batches of similar length.

    `of` gives None for a model that does more than tokenize.
    """

    def __init__(self, reader: TextReader, prompt: str, names: Sequence[str], others: dict[str, Any]):
        self.reader, self.prompt, self.names, self.others = reader, prompt, names, others

    @classmethod
    def of(cls, model: "SentenceTransformer", task: str) -> "Preparation | None":
        first, prompt = side_modules(model, task)[0], prompt_of(model, task)
        tokenizer, length = getattr(first, "tokenizer", None), getattr(first, "max_seq_length", None)
        if not callable(tokenizer) or getattr(tokenizer, "pad_token_id", None) is None or not length:
            return None
        expected = dict(model.preprocess(list(SAMPLES), prompt=prompt, task=task))
        tensors = {name: expected.pop(name) for name in list(expected) if isinstance(expected[name], Tensor)}
        if not tensors.keys() <= {"input_ids", "attention_mask", "token_type_ids"}:
            return None
        made = cls(TextReader(tokenizer, length), prompt or "", list(tensors), expected)
        found = made.features(made.tokens(SAMPLES), np.arange(len(SAMPLES)))
        return made if all(torch.equal(found[name], tensor) for name, tensor in tensors.items()) else None

    def tokens(self, texts: Sequence[str]) -> Tokens:
        return self.reader([self.prompt + text for text in texts])

    def features(self, tokens: Tokens, rows: Rows) -> dict[str, Any]:
        """What the model's own `preprocess` gives for these texts."""
        batch = tokens.batch(rows)
        batch["token_type_ids"] = torch.zeros_like(batch["input_ids"])
        return {**{name: batch[name] for name in self.names}, **self.others}

    def batches(self, tokens: Tokens, batch_size: int, *, pin: bool) -> Iterator[Batch]:
        """The longest texts first: what does not fit into memory fails at once. The next ones are made meanwhile."""
        lengths = tokens.lengths
        order = np.argsort(-lengths, kind="stable")
        parts, start = [], 0
        while start < len(order):
            size = batch_rows(lengths[order[start:]], batch_size, SIMILAR_GPU if pin else SIMILAR)
            parts.append(order[start : start + size])
            start += size

        def load(number: int) -> dict[str, Any]:
            return self.features(tokens, parts[number])

        yield from zip(parts, prefetch(load, range(len(parts)), pin=pin), strict=True)


def batch_rows(lengths: npt.NDArray[np.int64], batch_size: int, similar: float = SIMILAR) -> int:
    """How many of the first texts, the longest of which stands first, make a batch.

    >>> batch_rows(np.array([256, 250, 240, 128]), batch_size=8), batch_rows(np.array([64] * 100), batch_size=8)
    (3, 32)
    """
    longest = max(int(lengths[0]), 1)
    fitting = min(max(batch_size * FULL_LENGTH // longest, 1), LARGEST * batch_size)
    alike = int((lengths[:fitting] >= similar * longest).sum())
    return min(max(alike, batch_size // SMALLEST, 1), len(lengths))


def split_batches(rows: Rows, features: dict[str, Any], batch_size: int) -> Iterator[Batch]:
    """Tokenized texts as batches of similar length, each as wide as its longest text.

    >>> mask = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0]])
    >>> for rows, batch in split_batches(np.arange(3), {"attention_mask": mask, "modality": "text"}, batch_size=8):
    ...     print(rows.tolist(), batch["attention_mask"].tolist())
    [0, 2] [[1, 1, 1], [1, 1, 0]]
    [1] [[1]]
    """
    mask = features.get("attention_mask")
    count = len(rows)
    tensors = [value for value in features.values() if isinstance(value, Tensor)]
    if not isinstance(mask, Tensor) or not all(value.ndim and len(value) == count for value in tensors):
        yield rows, features  # features that are not one row per text cannot be cut
        return
    tokens = mask.sum(dim=1)
    order = torch.argsort(tokens, descending=True, stable=True)
    start = 0
    while start < count:
        chosen = order[start : start + batch_rows(tokens[order[start:]].numpy(), batch_size)]
        width = int(mask[chosen].any(dim=0).nonzero().max()) + 1 if mask[chosen].any() else mask.shape[1]
        yield rows[chosen.numpy()], {name: _select(value, chosen, mask, width) for name, value in features.items()}
        start += len(chosen)


def _select(value: Any, chosen: Tensor, mask: Tensor, width: int) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value[chosen][:, :width] if value.shape == mask.shape else value[chosen]
