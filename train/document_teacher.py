"""Teach a larger encoder to read documents, and let it read what nobody has labelled.

    python train/document_teacher.py --encoder sentence-transformers/all-mpnet-base-v2 --output soft.jsonl.gz
    python train/document_reader.py --soft soft.jsonl.gz

An encoder of 110M parameters learns more from the same labels than the default one can. All of
its weights learn from the trades and statements of `data/`; then it reads their texts, and those of --texts, for
conditions that come near to them, and the small reader learns from that as well. A GPU is needed: six minutes.
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
from boolbert.core.errors import DataError, TrainingError, run_script
from boolbert.data.lines import read_lines
from boolbert.data.reading import marked_queries
from boolbert.retrieval.document_reader import OUTPUTS
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.train.adapting import in_half, learn, load_bert
from boolbert.train.document_labels import LabelledCondition, Labels, Passages, Soft, epoch, print_metrics, write_soft
from boolbert.train.packed_rows import batches, packed, packed_labels, read_all, reading_loss, temperature_of
from boolbert.train.query_reader import whole_texts

MORE, MOST = 1.5, 12  # a text counts as having so many clauses more than it has, and no more than so many
# Of a text's conditions two thirds are drawn from the nearest ones, three times as many as it gets, the others from
# those behind them, up to ten times as many.
NEAREST, FURTHER = 3, 10
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
    learning_rate: float = flag(4e-5, "the highest")
    batch_size: int = flag(128, "labels")
    per_clause: int = flag(4, "conditions that a text is read for without a label, for each of its clauses")
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

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Three numbers for each token (B, L, 3)."""
        padding = self.body.config.pad_token_id or 0
        with in_half(self.device):
            states = self.body(ids.masked_fill(~mask, padding), attention_mask=mask.long()).last_hidden_state
            scores: Tensor = self.head(states)
        return scores.float()


def teach(teacher: Teacher, passages: Passages, tokenizer: Any, labels: Labels, args: Arguments) -> None:
    draw = random.Random(args.seed)
    steps = args.epochs * -(-len(labels.all) // args.batch_size)
    parts = (packed(passages, tokenizer, epoch(labels, draw), args.tokens) for _ in range(args.epochs))
    each = (batch for rows in parts for batch in batches(rows.to(teacher.device), args.batch_size, draw))

    def loss(batch: dict[str, Tensor]) -> Tensor:
        return reading_loss(teacher(batch["ids"], batch["mask"]), batch)

    teacher.train()
    learn(teacher, loss, each, steps, args.learning_rate)
    teacher.eval()


def unlabelled(
    passages: Passages, texts: Sequence[str], labels: Labels, per_clause: int, draw: random.Random
) -> list[Soft]:
    """Texts with conditions that come near to them and that nobody has labelled."""
    own: dict[str, set[str]] = {}
    for label in labels.all:
        own.setdefault(label.text, set()).update(label.phrases)
    found = []
    for text in texts:
        count = int(per_clause * min(MOST, MORE + passages.clause_count(text)))
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
    if args.per_clause < 1:
        raise TrainingError(f"--per_clause must be 1 or more, got {args.per_clause}")
    torch.manual_seed(args.seed)
    labels = Labels.read(args.dev.replace(" ", "").split(","), args.trades, args.statements)
    more = [text for file in args.texts for text in values_of(Path(file), "text")]
    texts = list(dict.fromkeys([label.text for label in labels.all] + more))
    small = resolve_encoder(None).path
    choosing = load_bert(small, args.device), whole_texts(small)
    passages = Passages(*choosing, texts, conditions_of(labels, args.conditions))
    folder = resolve_encoder(args.encoder).path
    tokenizer, teacher = whole_texts(folder), Teacher(folder, str(choosing[0].device))
    teach(teacher, passages, tokenizer, labels, args)
    temperature = 1.0
    for number, (author, own) in enumerate(labels.of_dev().items()):
        says = [label.says for label in own]
        rows = packed_labels(own, *choosing, tokenizer, args.tokens).to(teacher.device)
        found = read_all(teacher, rows, AT_ONCE)
        temperature = temperature if number else temperature_of(found, says)
        print_metrics(author, found / temperature, says)
    pairs = unlabelled(passages, texts, labels, args.per_clause, random.Random(args.seed))
    rows = packed(passages, tokenizer, [LabelledCondition(*pair) for pair in pairs], args.tokens).to(teacher.device)
    shares = F.softmax(read_all(teacher, rows, AT_ONCE) / temperature, -1).tolist()
    write_soft(Path(args.output), [row._replace(says=tuple(own)) for row, own in zip(pairs, shares, strict=True)])
    means = [sum(column) / len(shares) for column in zip(*shares, strict=True)]
    print(
        f"{args.output}: {len(pairs):,} pairs of {len(texts):,} texts; {means[0]:.2f} affirmed, {means[1]:.2f} denied"
    )


if __name__ == "__main__":
    run_script(main)
