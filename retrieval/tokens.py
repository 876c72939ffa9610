"""Texts tokenised once and encoded often, as training does: flat arrays of token ids, cached, and their vectors.

`batches.encode_inputs` is for texts that are encoded once, with a sentence-transformers model.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from boolbert.core.files import cache_root, check_regular, whole_file

if TYPE_CHECKING:
    from accelerate import Accelerator

Rows = npt.NDArray[np.int64]
# Without cuDNN's, which makes a plan for every new shape, and batches of texts have many: on an H200 a first pass over
# 32,768 documents takes five times as long with it.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
# Below this many texts, tokenising is as quick as reading the cache.
WORTH_CACHING = 2000
TEXTS_AT_ONCE = 4096  # that are tokenised together
TOKENS_AT_ONCE = 32_768  # that are encoded together, padding included


@dataclass(frozen=True, eq=False)
class Tokens:
    """Token ids of many texts: text i is `ids[offsets[i] : offsets[i + 1]]`."""

    ids: npt.NDArray[np.int32]
    offsets: Rows
    pad: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Rows:
        return np.diff(self.offsets)

    def batch(self, rows: npt.ArrayLike, length: int | None = None) -> dict[str, Tensor]:
        """`input_ids` and `attention_mask` of these rows, padded to this length, or to the longest.

        >>> tokens = Tokens(np.array([7, 8, 9], dtype=np.int32), np.array([0, 1, 3]))
        >>> tokens.batch([1, 0])["input_ids"].tolist()
        [[8, 9], [7, 0]]
        """
        rows = np.asarray(rows, dtype=np.int64)
        starts, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        columns = np.arange(int(lengths.max(initial=0)) if length is None else length)
        real = columns < lengths[:, None]
        positions = np.where(real, starts[:, None] + columns, 0)
        ids = np.where(real, self.ids[positions], self.pad).astype(np.int64)
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(real.astype(np.int64))}


class TextReader:
    """A tokenizer for many texts at once: those of tokenizers' own kind run on all cores, beside Python.

    Long texts are cut at `max_length` tokens.
    """

    def __init__(self, tokenizer: Any, max_length: int):
        self.tokenizer, self.max_length, self.pad = tokenizer, max_length, tokenizer.pad_token_id
        backend = getattr(tokenizer, "backend_tokenizer", None)
        self._rules = backend.to_str() if backend is not None else json.dumps(sorted(tokenizer.get_vocab().items()))
        self._backend: Any = None
        if backend is not None:
            from tokenizers import Tokenizer

            # A copy: how a tokenizer cuts and pads is kept in it, and belongs to its other users.
            self._backend = Tokenizer.from_str(self._rules)
            self._backend.no_padding()
            self._backend.enable_truncation(max_length)

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """The tokens of texts; those of many are kept in the user's cache."""
        if len(texts) < WORTH_CACHING:
            return self._tokenize(texts)
        path = cache_root() / "tokens" / f"{self._fingerprint(texts)}.npz"
        # Where the file is missing or damaged, the texts are tokenised again.
        with suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            check_regular(path)
            with np.load(path) as stored:
                return Tokens(stored["ids"], stored["offsets"], self.pad)
        tokens = self._tokenize(texts)
        with suppress(OSError):  # a cache that cannot be written costs time only
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as aside, aside.open("wb") as file:
                np.savez(file, ids=tokens.ids, offsets=tokens.offsets)
        return tokens

    def _tokenize(self, texts: Sequence[str]) -> Tokens:
        parts: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
        lengths: list[int] = [0]
        for part in _in_parts(texts):
            rows = [np.array(row, dtype=np.int32) for row in self._ids(part)]
            lengths += map(len, rows)
            parts += rows
        return Tokens(np.concatenate(parts), np.cumsum(lengths, dtype=np.int64), self.pad)

    def _ids(self, texts: Sequence[str]) -> Iterable[list[int]]:
        if self._backend is not None:
            return (found.ids for found in self._backend.encode_batch_fast(texts))
        options = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
        return self.tokenizer(texts, truncation=True, max_length=self.max_length, **options)["input_ids"]

    def _fingerprint(self, texts: Sequence[str]) -> str:
        """Changes with any text, the tokenizer's rules or vocabulary, and the length."""
        rules: Any = json.loads(self._rules)
        if isinstance(rules, dict):  # without what the last call left
            rules = {name: value for name, value in rules.items() if name not in ("truncation", "padding")}
        digest = hashlib.sha256(f"1 {self.max_length}\0{json.dumps(rules)}".encode())
        for part in _in_parts(texts):
            encoded = [text.encode() for text in part]
            digest.update(b"".join(len(text).to_bytes(8, "little") + text for text in encoded))
        return digest.hexdigest()[:32]


@torch.no_grad()
@sdpa_kernel(ATTENTION)
def encode_tokens(
    model: nn.Module, side: str, tokens: Tokens, accelerator: "Accelerator", operators: Tensor | None = None
) -> Tensor:
    """The vectors (N, D) of all texts, on the model's device. The processes share the work; each gets all vectors.

    `model(side, inputs)` gives the vectors of a batch, as `train.dual_encoder.DualEncoder` does.
    """
    from accelerate.utils import send_to_device

    training = model.training
    model.eval()
    ranks, rank = accelerator.num_processes, accelerator.process_index
    order = np.argsort(-tokens.lengths, kind="stable")  # the longest first: what does not fit fails at once
    shares: list[list[Rows]] = [[] for _ in range(ranks)]
    vectors: list[Tensor] = []
    start = 0
    while start < len(order):
        size = max(1, TOKENS_AT_ONCE // int(tokens.lengths[order[start]]))
        rows = order[start : start + size * ranks]
        for other, share in enumerate(shares):
            share.append(rows[other::ranks])
        own = shares[rank][-1]
        # A process without a row of its own encodes one for its shape.
        encoded = own if len(own) else rows[:1]
        inputs = tokens.batch(encoded)
        if operators is not None:
            inputs["operators"] = operators[torch.from_numpy(encoded)]
        vectors.append(model(side, send_to_device(inputs, accelerator.device))[: len(own)])
        start += len(rows)
    model.train(training)
    indices = [np.concatenate(share) for share in shares]
    gathered = gather_rows(accelerator, torch.cat(vectors), [len(share) for share in indices])
    result = torch.empty_like(gathered)
    result[torch.from_numpy(np.concatenate(indices)).to(gathered.device)] = gathered
    return result


def gather_rows(accelerator: "Accelerator", own: Tensor, sizes: Sequence[int]) -> Tensor:
    """All processes' rows, one after the other; process r has `sizes[r]`. Only this process's rows carry a gradient."""
    if accelerator.num_processes == 1:
        return own
    padded = own.detach().new_zeros(max(sizes), *own.shape[1:])
    padded[: len(own)] = own.detach()
    gathered = accelerator.gather(padded).split(max(sizes))
    rows = [part[:size] for part, size in zip(gathered, sizes, strict=True)]
    rows[accelerator.process_index] = own
    return torch.cat(rows)


def _in_parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    return (texts[start : start + TEXTS_AT_ONCE] for start in range(0, len(texts), TEXTS_AT_ONCE))
