"""What the document reader and its teacher learn from: texts, conditions, and what the texts say of them."""

import gzip
import json
import os
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from boolbert.boolean.clauses import split_clauses
from boolbert.core.errors import DataError
from boolbert.core.files import read_object, whole_file
from boolbert.data.embedded import countries_folder, country_names
from boolbert.data.lines import read_lines
from boolbert.data.trades import AFFIRMED, DENIED, NOT_AFFIRMED, SILENT, Label, Trade, statements, trades
from boolbert.retrieval.document_reader import OUTPUTS, Passage, chosen, condition_ids, passage, question
from boolbert.retrieval.metrics import saying_metrics
from boolbert.train.shapes import LENGTH_MULTIPLE, rounded

CLASSES = (AFFIRMED, DENIED, SILENT)
TURNED = 0.1  # share of the labels that are learned with the condition denied: no pool, without a pool
FOREIGN = 0.15  # share of the trades' silent labels for which a condition is taken that the text has no label for
SORTED_TOGETHER = 16  # batches whose texts are sorted by length
MOST_TOKENS = 512  # of a row
MADE_TOGETHER = 2000  # rows that a process makes at a time
TEMPERATURES = np.arange(0.6, 3.01, 0.1)

Shares = tuple[float, float, float]  # how probable it is that a text affirms, denies, does not say
Says = str | Shares
Result = TypeVar("Result")


class Asked(NamedTuple):
    """A text, a condition, and what the text says of it: a class, or the shares of all three. near_to: the condition by
    which the sentences are chosen, if it is another one."""

    text: str
    condition: str
    says: Says
    near_to: str | None = None


class Soft(NamedTuple):
    """What a teacher found in a text: a condition with the shares of the three classes."""

    text: str
    condition: str
    says: Shares


@dataclass(frozen=True)
class Labels:
    """The labels that are learned from, trades apart, and the trades of the authors that are left out."""

    of_trades: Sequence[Label]
    others: Sequence[Label]
    held_out: Sequence[Trade]

    @classmethod
    def read(cls, left_out: Sequence[str], trades_folder: str | None, statements_folder: str | None) -> "Labels":
        every = trades(Path(trades_folder)) if trades_folder else trades()
        if unknown := set(left_out) - {trade.author for trade in every}:
            authors = ", ".join(sorted({trade.author for trade in every}))
            raise DataError(f"--dev: {min(unknown)!r} is no author of the trades: {authors}")
        used = [trade for trade in every if trade.author not in left_out]
        told = statements(Path(statements_folder)) if statements_folder else statements()
        kinds = [*(label for trade in used for label in trade.kinds()), *country_labels()]
        dev = [trade for author in left_out for trade in every if trade.author == author]
        return cls([label for trade in used for label in trade.labels()], [*kinds, *told], dev)

    @property
    def all(self) -> list[Label]:
        return [*self.of_trades, *self.others]

    def of_dev(self) -> dict[str, list[Label]]:
        """The labels that are left out, by author."""
        found: dict[str, list[Label]] = {}
        for trade in self.held_out:
            found.setdefault(trade.author, []).extend(trade.labels())
        return found


def country_labels(seed: int = 0) -> list[Label]:
    """Members of the countries' sets, and as many countries that are none: of a set such as "region:Eastern Europe",
    those that are in another region."""
    draw, found, folder = random.Random(seed), list[Label](), countries_folder()
    rows = [json.loads(line) for _, line in read_lines(folder / "documents.jsonl", progress=False)]
    texts = [f"{row['title']}. {row['text']}" for row in rows]
    members: dict[str, list[int]] = read_object(folder / "atoms.json", DataError)
    for atom, phrases in country_names().items():
        family = f"{atom.partition(':')[0]}:"
        others = {row for name, own in members.items() if name.startswith(family) for row in own} or range(len(texts))
        outside = sorted(set(others) - set(members[atom]))
        for says, own in ((AFFIRMED, members[atom]), (NOT_AFFIRMED, outside)):
            drawn = draw.sample(own, min(len(own), len(members[atom])))
            found += [Label(texts[row], tuple(phrases), says) for row in drawn]
    return found


class Passages:
    """Chooses the sentences of texts. Clauses and conditions are encoded once, by the default encoder as it is."""

    def __init__(self, bert: Any, tokenizer: Any, texts: Sequence[str], conditions: Sequence[str]):
        self._clauses = {text: clauses_of(text) for text in dict.fromkeys(texts)}
        pieces = [text[slice(*span)] for text, spans in self._clauses.items() for span in spans]
        found = sentence_vectors(bert, tokenizer, pieces)
        edges = np.cumsum([0, *(len(spans) for spans in self._clauses.values())])
        self._vectors = {text: found[a:b] for text, a, b in zip(self._clauses, edges, edges[1:], strict=False)}
        self.conditions = list(dict.fromkeys(conditions))
        self._matrix = sentence_vectors(bert, tokenizer, self.conditions)
        self._row = {condition: row for row, condition in enumerate(self.conditions)}
        self._known: dict[tuple[str, str], Passage] = {}
        self.device = str(bert.device)

    def of(self, text: str, condition: str, near_to: str | None = None) -> Passage:
        """The sentences of a text for a condition. near_to: the condition by which they are chosen, if it is another
        one."""
        key = (text, near_to or condition)
        if key not in self._known:
            near = self._vectors[text] @ self._matrix[self._row[key[1]]]
            self._known[key] = passage(key[1], text, self._clauses[text], near)
        return self._known[key]._replace(condition=condition)

    def near(self, text: str, count: int) -> list[str]:
        """The conditions that are nearest to a clause of a text."""
        cosines = (self._on_device @ torch.from_numpy(self._vectors[text]).to(self.device).T).max(1).values
        return [self.conditions[row] for row in cosines.topk(min(count, len(cosines))).indices.tolist()]

    @cached_property
    def _on_device(self) -> Tensor:
        return torch.from_numpy(self._matrix).to(self.device)

    def clause_count(self, text: str) -> int:
        return len(self._clauses[text])


def clauses_of(text: str) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in split_clauses(text)] or [(0, len(text))]


@torch.no_grad()
def sentence_vectors(bert: Any, tokenizer: Any, texts: Sequence[str], at_once: int = 512) -> np.ndarray:
    """A BERT's own vectors, the mean of the tokens, of length 1."""
    ids = [encoding.ids[:128] for encoding in tokenizer.encode_batch(list(texts))]
    order = np.argsort([len(one) for one in ids], kind="stable")
    found = np.empty((len(ids), bert.config.hidden_size), np.float32)
    for start in range(0, len(ids), at_once):
        rows = order[start : start + at_once]
        longest = max(len(ids[row]) for row in rows)
        padded = torch.tensor([[*ids[row], *[0] * (longest - len(ids[row]))] for row in rows], device=bert.device)
        mask = torch.arange(longest) < torch.tensor([[len(ids[row])] for row in rows])
        states = bert(padded, attention_mask=mask.long().to(bert.device)).last_hidden_state.float()
        kept = mask.to(bert.device).unsqueeze(-1)
        found[rows] = F.normalize((states * kept).sum(1) / kept.sum(1), dim=-1).cpu().numpy()
    return found


def turned(phrase: str, draw: random.Random) -> str:
    """A condition that is denied: "a pool" to "no pool" or "without a pool", "sugar" to "sugar-free"."""
    bare = re.sub(r"^(?:an?|the|any) ", "", phrase)
    return draw.choice([f"no {bare}", f"without {phrase}", f"not {phrase}", *([] if " " in bare else [f"{bare}-free"])])


def epoch(labels: Labels, draw: random.Random) -> list[Asked]:
    """Every label once, each with one of its phrases; some turned round, some silent ones with a foreign condition."""
    other, found = {AFFIRMED: DENIED, DENIED: AFFIRMED}, list[Asked]()
    of_text: dict[str, set[str]] = {}
    for label in labels.of_trades:
        of_text.setdefault(label.text, set()).update(label.phrases)
    for number, label in enumerate(labels.all):
        phrase, says = draw.choice(label.phrases), label.says
        if says in other and draw.random() < TURNED:
            found.append(Asked(label.text, turned(phrase, draw), other[says], phrase))
            continue
        if says == SILENT and number < len(labels.of_trades) and draw.random() < FOREIGN:
            foreign = draw.choice(draw.choice(labels.of_trades).phrases)
            phrase = phrase if foreign in of_text[label.text] else foreign
        found.append(Asked(label.text, phrase, says))
    return found


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

    def some(self, rows: Tensor) -> "Packed":
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


def packed(passages: Passages, tokenizer: Any, asked: Sequence[Asked], tokens: int) -> Packed:
    """The rows of texts and conditions, made on all cores."""
    known = _Known(tokenizer)

    def part(start: int) -> tuple[np.ndarray, ...]:
        rows = [_row(passages, known, one, tokens) for one in asked[start : start + MADE_TOGETHER]]
        ids, inside = zip(*rows, strict=True)
        lengths = [len(one) for one in ids]
        return np.concatenate([np.array(one, np.int32) for one in ids]), np.array(lengths), np.array(inside)

    parts = list(on_all_cores(part, range(0, len(asked), MADE_TOGETHER)))
    ids, lengths, inside = (torch.from_numpy(np.concatenate(own)) for own in zip(*parts, strict=True))
    shares, is_other = shares_of([one.says for one in asked])
    return Packed(ids, F.pad(lengths.cumsum(0), (1, 0)), inside, shares, is_other)


def _row(passages: Passages, tokenizer: Any, one: Asked, tokens: int) -> tuple[list[int], tuple[int, int]]:
    """The tokens of a condition with sentences, and the first and the last that are the document's."""
    passage = passages.of(one.text, one.condition, one.near_to)
    ids, places = question(tokenizer, condition_ids(tokenizer, one.condition), chosen(tokenizer, passage, tokens))
    return ids, (places[0].start, places[-1].stop - 1) if places else (0, -1)


def shares_of(says: Sequence[Says]) -> tuple[Tensor, Tensor]:
    """What is said as shares of the classes (N, 3), and which are only known not to affirm (N)."""
    known = {name: [float(name == own) for own in CLASSES] for name in (*CLASSES, NOT_AFFIRMED)}
    shares = [known[one] if isinstance(one, str) else one for one in says]
    return torch.tensor(shares), torch.tensor([one == NOT_AFFIRMED for one in says])


def on_all_cores(work: Callable[[int], Result], given: Sequence[int]) -> Iterator[Result]:
    """`work` of each, in their order; where there is much of it, in processes that share this one's memory."""
    count = min(os.cpu_count() or 1, len(given) // 4)
    if count < 2 or sys.platform == "win32":
        yield from map(work, given)
        return
    _shared["work"] = work
    with get_context("fork").Pool(count) as pool:
        yield from pool.imap(_in_process, given)


_shared: dict[str, Callable[[int], Any]] = {}


def _in_process(number: int) -> Any:
    torch.set_num_threads(1)
    return _shared["work"](number)


class _Known:
    """A tokenizer that remembers the texts it has seen."""

    def __init__(self, tokenizer: Any):
        self._tokenizer, self._found = tokenizer, dict[tuple[str, ...], Any]()

    def encode(self, *texts: str, add_special_tokens: bool = True) -> Any:
        if texts not in self._found:
            self._found[texts] = self._tokenizer.encode(*texts, add_special_tokens=add_special_tokens)
        return self._found[texts]


def batches(rows: Packed, size: int, draw: random.Random) -> Iterator[dict[str, Tensor]]:
    """All rows in a new order, in batches that need little padding and are of few lengths."""
    device, lengths = rows.starts.device, rows.lengths.cpu()
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(draw.getrandbits(32)))
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
    return packed(passages, tokenizer, [Asked(one.text, one.phrases[0], one.says) for one in labels], tokens)


def print_metrics(author: str, found: Tensor, says: Sequence[str]) -> dict[str, float]:
    metrics = saying_metrics(F.softmax(found, -1).numpy(), says)
    print(f"{author}: " + ", ".join(f"{name} {value:.3f}" for name, value in metrics.items()), flush=True)
    return metrics


def write_soft(file: Path, rows: Sequence[Soft]) -> None:
    """A text a line, with its conditions."""
    grouped: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        grouped.setdefault(row.text, {})[row.condition] = [round(share, 3) for share in row.says]
    with whole_file(file) as aside, gzip.open(aside, "wt", encoding="utf-8") as stream:
        for text, conditions in grouped.items():
            stream.write(json.dumps({"text": text, "conditions": conditions}) + "\n")


def read_soft(file: Path) -> list[Soft]:
    """What `write_soft` wrote."""
    found = []
    for number, line in read_lines(file, progress=False):
        try:
            row = json.loads(line)
            found += [
                Soft(str(row["text"]), condition, (float(a), float(d), float(s)))
                for condition, (a, d, s) in row["conditions"].items()
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError(f"{file}:{number}: must be a text with conditions, and three shares of each") from None
    return found
