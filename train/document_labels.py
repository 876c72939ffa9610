"""What the document reader and its teacher learn from: texts, conditions, and what the texts say of them."""

import gzip
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from boolbert.boolean.clauses import split_clauses
from boolbert.core.errors import DataError
from boolbert.core.files import read_object, whole_file
from boolbert.data.embedded import countries_folder, country_names
from boolbert.data.lines import read_lines
from boolbert.data.trades import AFFIRMED, DENIED, NOT_AFFIRMED, SILENT, Label, Trade, by_authors, statements, trades
from boolbert.retrieval.document_reader import Passage, passage
from boolbert.retrieval.metrics import saying_metrics

CLASSES = (AFFIRMED, DENIED, SILENT)
TURNED = 0.1  # share of the labels that are learned with the condition denied: no pool, without a pool
# Families of the countries' sets where a text may say what a country is instead: a republic, on another continent,
# without a coast. Of the others it keeps silent: that a country belongs to the Arab League does not deny that it is in
# NATO.
STATED = {"landlocked", "island", "sea", "government", "hemisphere", "area", "population", "continent", "region"}
STATED |= {"independence", "drives", "language", "currency", "border"}
FOREIGN = 0.15  # share of the trades' silent labels for which a condition is taken that the text has no label for

Shares = tuple[float, float, float]  # how probable it is that a text affirms, denies, does not say
Says = str | Shares


class LabelledCondition(NamedTuple):
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
        dev = by_authors(every, left_out, "--dev")
        used = [trade for trade in every if trade.author not in left_out]
        told = statements(Path(statements_folder)) if statements_folder else statements()
        kinds = [*(label for trade in used for label in trade.kinds()), *country_labels()]
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
    """Members of the countries' sets, and as many countries that are none, whose texts do not affirm it or do not speak
    of it: of a set such as "region:Eastern Europe", those that are in another region."""
    draw, found, folder = random.Random(seed), list[Label](), countries_folder()
    rows = [json.loads(line) for _, line in read_lines(folder / "documents.jsonl", progress=False)]
    texts = [f"{row['title']}. {row['text']}" for row in rows]
    members: dict[str, list[int]] = read_object(folder / "atoms.json", DataError)
    for atom, phrases in country_names().items():
        family = atom.partition(":")[0]
        others = {row for name, own in members.items() if name.startswith(f"{family}:") for row in own}
        if len(others) < len(texts) / 2:  # republics are no set, so all others are outside
            others = set(range(len(texts)))
        outside = sorted(others - set(members[atom]))
        for says, own in ((AFFIRMED, members[atom]), (NOT_AFFIRMED if family in STATED else SILENT, outside)):
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
        self.device = str(bert.device)

    def of(self, text: str, condition: str, near_to: str | None = None) -> Passage:
        """The sentences of a text for a condition. near_to: the condition by which they are chosen, if it is another
        one."""
        chosen_by = near_to or condition
        near = self._vectors[text] @ self._matrix[self._row[chosen_by]]
        return passage(chosen_by, text, self._clauses[text], near)._replace(condition=condition)

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


def epoch(labels: Labels, draw: random.Random) -> list[LabelledCondition]:
    """Every label once, each with one of its phrases; some turned round, some silent ones with a foreign condition."""
    other, found = {AFFIRMED: DENIED, DENIED: AFFIRMED}, list[LabelledCondition]()
    of_text: dict[str, set[str]] = {}
    for label in labels.of_trades:
        of_text.setdefault(label.text, set()).update(label.phrases)
    for number, label in enumerate(labels.all):
        phrase, says = draw.choice(label.phrases), label.says
        if says in other and draw.random() < TURNED:
            found.append(LabelledCondition(label.text, turned(phrase, draw), other[says], phrase))
            continue
        if says == SILENT and number < len(labels.of_trades) and draw.random() < FOREIGN:
            foreign = draw.choice(draw.choice(labels.of_trades).phrases)
            phrase = phrase if foreign in of_text[label.text] else foreign
        found.append(LabelledCondition(label.text, phrase, says))
    return found


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
