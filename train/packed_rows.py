"""What the document reader and its teacher see in each step: conditions with sentences, in tokens, and the loss."""

import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from boolbert.core.errors import TrainingError
from boolbert.data.trades import NOT_AFFIRMED, Label
from boolbert.retrieval.document_reader import OUTPUTS, RememberingTokenizer, chosen, condition_ids, question
from boolbert.retrieval.int8_encoder import threads
from boolbert.train.document_labels import CLASSES, LabelledCondition, Passages, Says
from boolbert.train.shapes import LENGTH_MULTIPLE, rounded

SORTED_TOGETHER = 16  # batches whose texts are sorted by length
MOST_TOKENS = 512  # of a row
MADE_TOGETHER = 2000  # rows that a process makes at a time
TEMPERATURES = np.arange(0.6, 3.01, 0.1)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Packed:
    """Conditions with sentences in tokens, row behind row, and what each says.

    ids: the tokens of all rows. starts: where each row begins, and where the last one ends. inside: the first and the
    last token of the document's sentences (N, 2). shares: what is said (N, 3). is_other: whether a row is only known
    not to affirm.
    """

    ids: Tensor
    starts: Tensor
    inside: Tensor
    shares: Tensor
    is_other: Tensor

    def __len__(self) -> int:
        return len(self.is_other)

    @property
    def lengths(self) -> Tensor:
        return self.starts.diff()

    def to(self, device: str) -> "Packed":
        return Packed(*(getattr(self, field.name).to(device) for field in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence["Packed"]) -> "Packed":
        ends = np.cumsum([0, *(len(part.ids) for part in parts)]).tolist()
        starts = [part.starts[:-1] + shift for part, shift in zip(parts, ends, strict=False)]
        last = torch.tensor([ends[-1]], device=parts[0].starts.device)
        others = [torch.cat([getattr(part, name) for part in parts]) for name in ("inside", "shares", "is_other")]
        return cls(torch.cat([part.ids for part in parts]), torch.cat([*starts, last]), *others)

    def drawn(self, rows: Tensor) -> "Packed":
        """Some of the rows, in this order."""
        lengths = self.lengths[rows]
        starts = F.pad(lengths.cumsum(0), (1, 0))
        places = torch.arange(int(starts[-1]), device=rows.device)
        places += (self.starts[:-1][rows] - starts[:-1]).repeat_interleave(lengths)
        return Packed(self.ids[places], starts, self.inside[rows], self.shares[rows], self.is_other[rows])

    def batch(self, rows: Tensor, length: int) -> dict[str, Tensor]:
        """Some rows as a step takes them, padded to a length."""
        place = torch.arange(length, device=rows.device)
        mask = place < self.lengths[rows].unsqueeze(1)
        ids = self.ids[torch.where(mask, self.starts[rows].unsqueeze(1) + place, 0)].long() * mask
        first, last = self.inside[rows].unsqueeze(-1).unbind(1)
        inside = (place >= first) & (place <= last)
        return {"ids": ids, "mask": mask, "inside": inside, "shares": self.shares[rows], "other": self.is_other[rows]}


def packed(passages: Passages, tokenizer: Any, labelled: Sequence[LabelledCondition], tokens: int) -> Packed:
    """The rows of texts and conditions, made on all cores."""
    if not labelled:
        raise TrainingError("there is no text with a condition to read")
    known = RememberingTokenizer(tokenizer)

    def part(start: int) -> tuple[np.ndarray, ...]:
        rows = [_row(passages, known, one, tokens) for one in labelled[start : start + MADE_TOGETHER]]
        ids, inside = zip(*rows, strict=True)
        lengths = [len(one) for one in ids]
        return np.concatenate([np.array(one, np.int32) for one in ids]), np.array(lengths), np.array(inside)

    parts = list(on_all_cores(part, range(0, len(labelled), MADE_TOGETHER)))
    ids, lengths, inside = (torch.from_numpy(np.concatenate(own)) for own in zip(*parts, strict=True))
    shares, is_other = shares_of([one.says for one in labelled])
    return Packed(ids, F.pad(lengths.cumsum(0), (1, 0)), inside, shares, is_other)


def _row(passages: Passages, tokenizer: Any, one: LabelledCondition, tokens: int) -> tuple[list[int], tuple[int, int]]:
    """The tokens of a condition with sentences, and the first and the last that are the document's."""
    passage = passages.of(one.text, one.condition, one.near_to)
    ids, places = question(tokenizer, condition_ids(tokenizer, one.condition), chosen(tokenizer, passage, tokens))
    return ids, (places[0].start, places[-1].stop - 1) if places else (0, -1)


def shares_of(says: Sequence[Says]) -> tuple[Tensor, Tensor]:
    """What is said as shares of the classes (N, 3), and which are only known not to affirm (N)."""
    known = {name: [float(name == own) for own in CLASSES] for name in (*CLASSES, NOT_AFFIRMED)}
    shares = [known[one] if isinstance(one, str) else one for one in says]
    return torch.tensor(shares), torch.tensor([one == NOT_AFFIRMED for one in says])


def on_all_cores(work: Callable[[int], Result], starts: Sequence[int]) -> Iterator[Result]:
    """`work` of each, in their order; where there is much of it, in processes that share this one's memory."""
    count = min(threads(), len(starts) // 4)
    if count < 2 or sys.platform != "linux":  # elsewhere a process cannot be forked safely
        yield from map(work, starts)
        return
    _shared["work"] = work
    try:
        with ProcessPoolExecutor(count, get_context("fork"), initializer=_alone) as pool:
            yield from pool.map(_in_process, starts)
    finally:
        _shared.clear()


_shared: dict[str, Callable[[int], Any]] = {}


def _alone() -> None:
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the tokenizer warns that its threads are not in this process


def _in_process(start: int) -> Any:
    return _shared["work"](start)


def batches(rows: Packed, size: int, draw: random.Random) -> Iterator[dict[str, Tensor]]:
    """All rows in a new order, in batches that need little padding and are of few lengths. So that all have one size,
    some rows may come twice."""
    device, lengths = rows.starts.device, rows.lengths.cpu()
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(draw.getrandbits(32)))
    order = order[torch.arange(-(-len(rows) // size) * size) % len(rows)]
    found = []
    for start in range(0, len(rows), size * SORTED_TOGETHER):
        window = order[start : start + size * SORTED_TOGETHER]
        window = window[lengths[window].argsort(stable=True)]
        found += [window[first : first + size] for first in range(0, len(window), size)]
    draw.shuffle(found)
    for own in found:
        yield rows.batch(own.to(device), rounded(int(lengths[own].max()), LENGTH_MULTIPLE, MOST_TOKENS))


def summed(scores: Tensor, inside: Tensor) -> Tensor:
    """How much speaks for each class, (B, 3), as `document_reader.said` has it, from the scores of tokens (B, L, 3).
    inside: which of them are the document's (B, L)."""
    tokens = scores[..., :2].masked_fill(~inside.unsqueeze(-1), -1e4).logsumexp(1)
    return torch.cat([tokens, scores[:, :1, 2]], 1)


def loss_of(found: Tensor, shares: Tensor, is_other: Tensor) -> Tensor:
    """Cross-entropy; where a text is only known not to affirm, of the other two together."""
    log_shares = F.log_softmax(found, -1)
    return -torch.where(is_other, log_shares[:, 1:].logsumexp(-1), (shares * log_shares).sum(-1)).mean()


def reading_loss(scores: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """The loss of the tokens' scores (B, L, 3)."""
    return loss_of(summed(scores, batch["inside"]), batch["shares"], batch["other"])


@torch.no_grad()
def read_all(scores_of: Callable[[Tensor, Tensor], Tensor], rows: Packed, at_once: int) -> Tensor:
    """What speaks for each class in all rows, (N, 3). scores_of: ids and mask -> the tokens' scores."""
    found = torch.empty(len(rows), OUTPUTS)
    lengths, device = rows.lengths.cpu(), rows.starts.device
    for own in lengths.argsort().split(at_once):
        batch = rows.batch(own.to(device), int(lengths[own].max()))
        found[own] = summed(scores_of(batch["ids"], batch["mask"]).float(), batch["inside"]).cpu()
    return found


def temperature_of(found: Tensor, says: Sequence[Says]) -> float:
    """By what the sums are divided so that their shares are probabilities."""
    wanted = shares_of(says)
    return float(min(TEMPERATURES, key=lambda value: loss_of(found / value, *wanted).item()))


def packed_labels(labels: Sequence[Label], bert: Any, choosing: Any, tokenizer: Any, tokens: int) -> Packed:
    """The labels of authors that are left out, each with its first phrase. bert, choosing: the encoder that chooses
    sentences, and its tokenizer."""
    passages = Passages(bert, choosing, [one.text for one in labels], [one.phrases[0] for one in labels])
    return packed(
        passages, tokenizer, [LabelledCondition(one.text, one.phrases[0], one.says) for one in labels], tokens
    )
