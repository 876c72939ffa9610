"""Teach the encoder to read documents: does a text affirm a condition, deny it, or say nothing of it?

    python train/document_reader.py --soft soft.jsonl.gz        # what train/document_teacher.py wrote

The encoder stays as it is; adapters of low rank learn from the trades and statements of `data/`, and from what a larger
encoder has read. The probabilities are calibrated on the trades of the first author that is left out (--dev).
`python eval/saying.py` measures the result.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import TrainingError, run_script
from boolbert.retrieval.adapters import DOCUMENT_READER, encoder_mark
from boolbert.retrieval.document_reader import OUTPUTS, TOKENS
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.train.adapting import Adapting, load_bert, save_adapters
from boolbert.train.document_labels import LabelledCondition, Labels, Passages, Soft, epoch, print_metrics, read_soft
from boolbert.train.packed_rows import Packed, batches, packed, packed_labels, read_all, reading_loss, temperature_of
from boolbert.train.query_reader import whole_texts

AT_ONCE = 256  # passages that are read together


@dataclass
class Arguments:
    output: str = flag(str(DOCUMENT_READER), "the file to write")
    encoder: str | None = flag(None, "folder or Hub id of a BERT; the default encoder if not given")
    start: str | None = flag(None, "adapters to go on from, instead of new ones")
    mean: list[str] = flag([], "adapters that went on from the same start: their mean is written, nothing is learned")
    dev: str = flag("first,t8,last", "authors whose trades are left out, by commas; those of the first calibrate")
    trades: str | None = flag(None, "another folder of trades")
    statements: str | None = flag(None, "another folder of statements")
    soft: list[str] = flag(
        [], "what train/document_teacher.py wrote: pairs with the shares that a larger encoder found"
    )
    share: float = flag(0.5, "of the pairs of --soft, how much is seen in an epoch")
    epochs: int = flag(6, "times that each label is seen")
    learning_rate: float = flag(1.5e-3, "the highest")
    batch_size: int = flag(128, "labels")
    rank: int = flag(16, "of the adapters")
    seed: int = flag(0, "of the adapters, the order and the phrases")
    device: str | None = flag(None, "cpu, cuda, ...; the best there is")
    compile: bool = flag(False, "compile the adapters' layers: faster steps on a GPU, after a minute")


def rows_of(
    passages: Passages, tokenizer: Any, labels: Labels, soft: Packed | None, args: Arguments, draw: random.Random
) -> Iterator[Packed]:
    """What is seen in each epoch."""
    for _ in range(args.epochs):
        own = packed(passages, tokenizer, epoch(labels, draw), TOKENS).to(passages.device)
        if soft is not None and (count := int(args.share * len(soft))):
            rows = torch.tensor(draw.sample(range(len(soft)), count), device=passages.device)
            own = Packed.joined([own, soft.drawn(rows)])
        yield own


def teach(reader: Adapting, tokenizer: Any, labels: Labels, soft: Sequence[Soft], args: Arguments) -> None:
    passages = Passages(
        reader.bert,
        tokenizer,
        [*(label.text for label in labels.all), *(row.text for row in soft)],
        [*(phrase for label in labels.all for phrase in label.phrases), *(row.condition for row in soft)],
    )
    found = (
        packed(passages, tokenizer, [LabelledCondition(*row) for row in soft], TOKENS).to(reader.device)
        if soft
        else None
    )
    steps = args.epochs * -(-(len(labels.all) + int(args.share * len(soft))) // args.batch_size)
    draw = random.Random(args.seed)
    parts = rows_of(passages, tokenizer, labels, found, args, draw)
    each = (batch for rows in parts for batch in batches(rows, args.batch_size, draw))
    reader.learn(each, steps, args.learning_rate, reading_loss)


def learned(args: Arguments) -> tuple[Adapting, float, dict[str, Any]]:
    """The adapters, the temperature of their probabilities, and what was learned from."""
    folder = resolve_encoder(args.encoder).path
    tokenizer = whole_texts(folder)
    labels = Labels.read(args.dev.replace(" ", "").split(","), args.trades, args.statements)
    soft = [row for file in args.soft for row in read_soft(Path(file))]
    reader = Adapting(load_bert(folder, args.device), args.rank, OUTPUTS, seed=args.seed, compile=args.compile)
    if begun := args.mean or ([args.start] if args.start else []):
        reader.adapters.load_state_dict(mean_of(begun))
    if not args.mean:
        teach(reader, tokenizer, labels, soft, args)
    about: dict[str, Any] = {"labels": len(labels.all), "soft": len(soft)}
    temperature = 1.0
    for number, (author, own) in enumerate(labels.of_dev().items()):
        says = [label.says for label in own]
        rows = packed_labels(own, reader.bert, tokenizer, tokenizer, TOKENS).to(reader.device)
        found = read_all(reader, rows, AT_ONCE)
        temperature = temperature if number else temperature_of(found, says)
        about[author] = print_metrics(author, found / temperature, says)
    return reader, temperature, about


def mean_of(files: Sequence[str]) -> dict[str, Tensor]:
    """The mean of adapters."""
    each = [load_file(file) for file in files]
    return {name: torch.stack([one[name].float() for one in each]).mean(0) for name in each[0]}


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    if not 0 <= args.share <= 1:
        raise TrainingError(f"--share must be from 0 to 1, got {args.share}")
    reader, temperature, about = learned(args)
    mark = encoder_mark(Path(resolve_encoder(args.encoder).path))
    told = {"temperature": f"{temperature:.1f}", "learned_from": json.dumps(about)}
    save_adapters(reader.adapters, Path(args.output), encoder=mark, **told)
    print(json.dumps({**vars(args), "temperature": temperature, **about}))


if __name__ == "__main__":
    run_script(main)
