"""Teach a larger encoder to read documents, and let it read what nobody has labelled.

    python train/document_teacher.py --encoder sentence-transformers/all-mpnet-base-v2 --output soft.jsonl.gz
    python train/document_reader.py --soft soft.jsonl.gz

An encoder of 110M parameters learns more from the same labels than the default one can. All of
its weights learn from the trades and statements of `data/`; then it reads their texts, and those of --texts, for
conditions that come near to them, and the small reader learns from that as well. A GPU is needed: ten minutes.
"""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import DataError, run_script
from boolbert.data.lines import read_lines
from boolbert.data.reading import marked_queries
from boolbert.retrieval.document_reader import OUTPUTS
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.train.adapting import WARMUP, load_bert
from boolbert.train.document_labels import (
    Labels,
    Passages,
    Question,
    Soft,
    Taught,
    asked_of,
    batches,
    epoch,
    loss_of,
    print_metrics,
    questions,
    summed,
    temperature_of,
    write_soft,
)
from boolbert.train.query_reader import whole_texts

FEWEST, FOR_EACH_CLAUSE, MOST = 6, 4, 48  # conditions that a text is read for without a label
NEAREST = 3  # two thirds of them are drawn from the nearest conditions, three times as many as are drawn
FURTHER = 10  # the others from those behind them, up to ten times as many
AT_ONCE = 512  # passages that are read together


@dataclass
class Arguments:
    output: str = flag(
        "soft.jsonl.gz", "the file to write: a text a line, with conditions and the three shares of each"
    )
    encoder: str = flag("sentence-transformers/all-mpnet-base-v2", "folder or Hub id of the larger encoder")
    dev: str = flag("first,t8,last", "authors whose trades are left out, by commas")
    trades: str | None = flag(None, "another folder of trades")
    statements: str | None = flag(None, "another folder of statements")
    texts: list[str] = flag([], "files of JSON lines with a text each, which are read as well")
    conditions: list[str] = flag([], "files of queries in QUEST's form, whose marked atoms are conditions as well")
    epochs: int = flag(3, "times that each label is seen")
    learning_rate: float = flag(3e-5, "the highest")
    batch_size: int = flag(64, "labels")
    tokens: int = flag(220, "of a document that are read")
    seed: int = flag(0, "of the head, the order and the phrases")
    device: str | None = flag(None, "cpu, cuda, ...; the best there is")


class Teacher(nn.Module):
    """An encoder of any family, and a head that gives three numbers to each token."""

    def __init__(self, folder: str, device: str):
        from transformers import AutoModel

        from boolbert.retrieval.models import no_warnings

        super().__init__()
        with no_warnings():
            self.body: Any = AutoModel.from_pretrained(folder, dtype=torch.float32)
        self.head = nn.Linear(self.body.config.hidden_size, OUTPUTS)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)
        self.device = device
        self.to(device)

    def forward(self, rows: Sequence[Question]) -> Tensor:
        longest, padding = max(len(row.ids) for row in rows), self.body.config.pad_token_id or 0
        ids = torch.full((len(rows), longest), padding)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        for number, row in enumerate(rows):
            ids[number, : len(row.ids)] = torch.tensor(row.ids)
            mask[number, : len(row.ids)] = 1
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device.startswith("cuda")):
            states = self.body(ids.to(self.device), attention_mask=mask.to(self.device)).last_hidden_state
            scores = self.head(states)
        return summed(scores.float(), rows)

    @torch.no_grad()
    def read(self, rows: Sequence[Question]) -> Tensor:
        """What all rows say, (N, 3)."""
        found = torch.empty(len(rows), OUTPUTS)
        order = sorted(range(len(rows)), key=lambda number: len(rows[number].ids))
        for start in range(0, len(rows), AT_ONCE):
            own = order[start : start + AT_ONCE]
            found[own] = self([rows[number] for number in own]).cpu()
        return found


def learn(teacher: Teacher, tokenizer: Any, labels: Labels, passages: Passages, args: Arguments) -> None:
    draw = random.Random(args.seed)
    steps = args.epochs * -(-len(labels.all) // args.batch_size)
    optimizer = torch.optim.AdamW(teacher.parameters(), lr=args.learning_rate, weight_decay=0.01)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / (WARMUP * steps)) * max(0.0, 1 - step / steps)
    )
    teacher.train()
    for number in range(args.epochs):
        for rows in batches(questions(tokenizer, epoch(labels, passages, draw), args.tokens), args.batch_size, draw):
            loss = loss_of(teacher(rows), [row.says for row in rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(teacher.parameters(), 1.0)
            optimizer.step()
            rate.step()
        print(f"epoch {number + 1} of {args.epochs}: loss of its last batch {loss.item():.3f}", flush=True)
    teacher.eval()


def unlabelled(passages: Passages, texts: Sequence[str], labels: Labels, draw: random.Random) -> list[Soft]:
    """Texts with conditions that come near to them and that nobody has labelled."""
    own: dict[str, set[str]] = {}
    for label in labels.all:
        own.setdefault(label.text, set()).update(label.phrases)
    found = []
    for text in texts:
        count = min(MOST, FEWEST + FOR_EACH_CLAUSE * passages.clause_count(text))
        near = passages.near(text, FURTHER * count)
        nearest, further = near[: NEAREST * count], near[NEAREST * count :]
        drawn = draw.sample(nearest, min(2 * count // 3, len(nearest)))
        drawn += draw.sample(further, min(count - len(drawn), len(further)))
        found += [Soft(text, one, (0.0, 0.0, 1.0)) for one in drawn if one not in own.get(text, ())]
    return found


def values_of(file: Path, name: str) -> list[str]:
    """A field of each row of a file of JSON lines."""
    found = []
    for number, line in read_lines(file, progress=False):
        try:
            found.append(str(json.loads(line)[name]))
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{file}:{number}: must be a JSON object with a field {name!r}") from None
    return found


def marked_atoms(file: Path) -> list[str]:
    """What the marks of a file of queries hold: QUEST's `original_query`."""
    return [
        atom.strip() for text in values_of(file, "original_query") for atom in re.findall(r"<mark>(.*?)</mark>", text)
    ]


def conditions_of(labels: Labels, files: Sequence[str]) -> list[str]:
    """All conditions at hand: of labels, of the queries that people have marked, of files."""
    found = [phrase for label in labels.all for phrase in label.phrases]
    for query in marked_queries("train"):
        found += [query.text[mark.start : mark.end] for mark in query.marks if mark.kind in "wxa"]
    return found + [atom for file in files for atom in marked_atoms(Path(file))]


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    torch.manual_seed(args.seed)
    labels = Labels.read(args.dev.replace(" ", "").split(","), args.trades, args.statements)
    more = [text for file in args.texts for text in values_of(Path(file), "text")]
    texts = list(dict.fromkeys([label.text for label in labels.all] + more))
    small = resolve_encoder(None).path
    choosing = load_bert(small, args.device), whole_texts(small)
    passages = Passages(*choosing, texts, conditions_of(labels, args.conditions))
    folder = resolve_encoder(args.encoder).path
    tokenizer, teacher = whole_texts(folder), Teacher(folder, str(choosing[0].device))
    learn(teacher, tokenizer, labels, passages, args)
    temperature = 1.0
    for number, (author, own) in enumerate(labels.of_dev().items()):
        says = [label.says for label in own]
        found = teacher.read(questions(tokenizer, asked_of(own, *choosing), args.tokens))
        temperature = temperature if number else temperature_of(found, says)
        print_metrics(author, found / temperature, says)
    pairs = unlabelled(passages, texts, labels, random.Random(args.seed))
    asked = [Taught(passages.of(text, condition), says) for text, condition, says in pairs]
    shares = F.softmax(teacher.read(questions(tokenizer, asked, args.tokens)) / temperature, -1).tolist()
    write_soft(Path(args.output), [row._replace(says=tuple(own)) for row, own in zip(pairs, shares, strict=True)])
    means = [sum(column) / len(shares) for column in zip(*shares, strict=True)]
    print(
        f"{args.output}: {len(pairs):,} pairs of {len(texts):,} texts; {means[0]:.2f} affirmed, {means[1]:.2f} denied"
    )


if __name__ == "__main__":
    run_script(main)
