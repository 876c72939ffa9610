"""Teach the encoder to read documents: does a text affirm a condition, deny it, or say nothing of it?

    python train/document_reader.py --output retrieval/document_reader.safetensors --dev first

The encoder stays as it is; adapters of low rank learn from the trades and statements of `data/`. The probabilities are
calibrated on the trades of the authors that are left out (--dev). `python eval/saying.py` measures the result.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F

from boolbert.boolean.clauses import split_clauses
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import run_script
from boolbert.data.trades import AFFIRMED, DENIED, NOT_AFFIRMED, SILENT, Label, statements, trades
from boolbert.retrieval.adapters import DOCUMENT_READER, encoder_mark
from boolbert.retrieval.document_reader import OUTPUTS, passage, question
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.retrieval.metrics import saying_metrics
from boolbert.train.adapting import Adapting, load_bert, save_adapters

CLASSES = (AFFIRMED, DENIED, SILENT)
TEMPERATURES = np.arange(0.6, 3.01, 0.1)

Questions = list[tuple[list[int], slice]]  # of one text: tokens, and where the sentence's stand


@dataclass
class Arguments:
    output: str = flag(str(DOCUMENT_READER), "the file to write")
    encoder: str | None = flag(None, "folder or Hub id of a BERT; the default encoder if not given")
    start: str | None = flag(None, "adapters to go on from, instead of new ones")
    mean: list[str] = flag([], "adapters that went on from the same start: their mean is written, nothing is learned")
    dev: str = flag("first,t8,last", "authors whose trades are left out, by commas; those of the first calibrate")
    trades: str | None = flag(None, "another folder of trades")
    statements: str | None = flag(None, "another folder of statements; none for none")
    more: list[str] = flag([], "files of JSON lines with text, condition and says, learned from as well")
    share: float = flag(1.0, "of --more, how much is seen in an epoch")
    epochs: int = flag(6, "times that each label is seen")
    learning_rate: float = flag(1e-3, "the highest")
    batch_size: int = flag(64, "labels")
    rank: int = flag(16, "of the adapters")
    turned: float = flag(0.1, "share of the labels that are learned with the condition denied: no pool, without a pool")
    foreign: float = flag(0.2, "share of the silent labels for which a condition of another trade is taken")
    smoothing: float = flag(0.0, "share of each label that is given to all classes")
    seed: int = flag(0, "of the adapters, the order and the phrases")
    device: str | None = flag(None, "cpu, cuda, ...; the best there is")


class Example(NamedTuple):
    """A label, the phrases that are asked about, and whether it stands in a trade."""

    label: Label
    in_trade: bool


class Passages:
    """Chooses the sentences of labels' texts. Clauses and conditions are encoded once, by the encoder as it is."""

    def __init__(self, reader: Adapting, tokenizer: Any, labels: Sequence[Label]):
        self.tokenizer = tokenizer
        texts = list(dict.fromkeys(label.text for label in labels))
        self._clauses = {text: clauses_of(text) for text in texts}
        pieces = [text[slice(*span)] for text, spans in self._clauses.items() for span in spans]
        found = sentence_vectors(reader, tokenizer, pieces)
        edges = np.cumsum([0, *(len(spans) for spans in self._clauses.values())])
        self._vectors = {text: found[a:b] for text, a, b in zip(texts, edges, edges[1:], strict=False)}
        phrases = list(dict.fromkeys(phrase for label in labels for phrase in label.phrases))
        self._phrases = dict(zip(phrases, sentence_vectors(reader, tokenizer, phrases), strict=True))

    def of(self, text: str, condition: str, near_to: str | None = None) -> list[tuple[list[int], slice]]:
        """The questions that are asked of a text. near_to: the phrase by which its sentences are chosen, if another
        one than the condition."""
        phrase = near_to or condition
        found = passage(phrase, text, self._clauses[text], self._vectors[text] @ self._phrases[phrase])
        return [question(self.tokenizer, condition, text[slice(*span)]) for span in found.sentences]


def clauses_of(text: str) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in split_clauses(text)] or [(0, len(text))]


@torch.no_grad()
def sentence_vectors(reader: Adapting, tokenizer: Any, texts: Sequence[str], at_once: int = 256) -> np.ndarray:
    """The encoder's own vectors, the mean of the tokens, of length 1."""
    ids = [encoding.ids[:128] for encoding in tokenizer.encode_batch(list(texts))]
    order = np.argsort([len(one) for one in ids], kind="stable")
    found = np.empty((len(ids), reader.bert.config.hidden_size), np.float32)
    for start in range(0, len(ids), at_once):
        rows = order[start : start + at_once]
        longest = max(len(ids[row]) for row in rows)
        padded = torch.tensor([[*ids[row], *[0] * (longest - len(ids[row]))] for row in rows], device=reader.device)
        mask = torch.arange(longest) < torch.tensor([[len(ids[row])] for row in rows])
        states = reader.bert(padded, attention_mask=mask.long().to(reader.device)).last_hidden_state.float()
        kept = mask.to(reader.device).unsqueeze(-1)
        found[rows] = F.normalize((states * kept).sum(1) / kept.sum(1), dim=-1).cpu().numpy()
    return found


def turned(phrase: str, draw: random.Random) -> str:
    """A condition that is denied: "a pool" to "no pool" or "without a pool", "sugar" to "sugar-free"."""
    bare = re.sub(r"^(?:an?|the|any) ", "", phrase)
    return draw.choice([f"no {bare}", f"without {phrase}", f"not {phrase}", *([] if " " in bare else [f"{bare}-free"])])


def batches(examples: Sequence[Example], more: Sequence[Example], args: Arguments, passages: Passages) -> Iterator[Any]:
    """Questions with what is said, for all epochs."""
    draw = random.Random(args.seed)
    phrases = [example.label.phrases for example in examples if example.in_trade]
    other = {AFFIRMED: DENIED, DENIED: AFFIRMED}
    for _ in range(args.epochs):
        rows = [*examples, *draw.sample(list(more), int(args.share * len(more)))]
        draw.shuffle(rows)
        for start in range(0, len(rows), args.batch_size):
            found, says = [], []
            for label, in_trade in rows[start : start + args.batch_size]:
                phrase, said = draw.choice(label.phrases), label.says
                if said in other and draw.random() < args.turned:
                    found.append(passages.of(label.text, turned(phrase, draw), phrase))
                    said = other[said]
                elif said == SILENT and in_trade and draw.random() < args.foreign:
                    phrase = draw.choice(draw.choice(phrases))
                    is_own = phrase in label.phrases or any(phrase in p for p in _of_text(label.text, examples))
                    found.append(passages.of(label.text, draw.choice(label.phrases) if is_own else phrase))
                else:
                    found.append(passages.of(label.text, phrase))
                says.append(said)
            yield found, says


_own_phrases: dict[str, list[tuple[str, ...]]] = {}


def _of_text(text: str, examples: Sequence[Example]) -> list[tuple[str, ...]]:
    """The phrases that a text has labels for."""
    if not _own_phrases:
        for example in examples:
            _own_phrases.setdefault(example.label.text, []).append(example.label.phrases)
    return _own_phrases.get(text, [])


def logits(reader: Adapting, rows: Sequence[Questions]) -> Tensor:
    """How much speaks for each class, (B, 3), as `document_reader.said` has it."""
    owners = torch.tensor([row for row, asked in enumerate(rows) for _ in asked], device=reader.device)
    scores = reader.scores([ids for asked in rows for ids, _ in asked])  # (S, L, 3)
    inside = torch.zeros(scores.shape[:2], dtype=torch.bool)
    for number, (_, own) in enumerate(one for asked in rows for one in asked):
        inside[number, own] = True
    tokens = scores[..., :2].masked_fill(~inside.to(scores.device).unsqueeze(-1), -1e4).logsumexp(1)  # (S, 2)
    of_row = owners == torch.arange(len(rows), device=reader.device).unsqueeze(1)  # (B, S)
    each = tokens.T.unsqueeze(1).masked_fill(~of_row, -1e4).logsumexp(-1)  # (2, B)
    silent = (of_row * scores[:, 0, 2]).sum(1) / of_row.sum(1)
    return torch.stack([*each, silent], 1)


def loss_of(found: Tensor, says: Sequence[str], smoothing: float = 0.0) -> Tensor:
    shares = F.log_softmax(found, -1)
    right = torch.tensor(
        [[name == said or (said == NOT_AFFIRMED and name != AFFIRMED) for name in CLASSES] for said in says],
        device=found.device,
    )
    own = shares.masked_fill(~right, -1e4).logsumexp(-1)
    return -((1 - smoothing) * own + smoothing * shares.mean(-1)).mean()


def learn(args: Arguments) -> tuple[Adapting, float, dict[str, Any]]:
    from transformers import AutoTokenizer

    folder = resolve_encoder(args.encoder).path
    tokenizer = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    left_out = args.dev.split(",")
    every = trades(Path(args.trades)) if args.trades else trades()
    used = [trade for trade in every if trade.author not in left_out]
    examples = [Example(label, True) for trade in used for label in (*trade.labels(), *trade.kinds())]
    if args.statements != "none":
        found = statements(Path(args.statements)) if args.statements else statements()
        examples += [Example(label, False) for label in found]
    more = [Example(label, False) for file in args.more for label in read_more(Path(file))]
    dev = [trade for trade in every if trade.author == left_out[0]]
    held_out = [label for trade in dev for label in trade.labels()]
    reader = Adapting(load_bert(folder, args.device), args.rank, OUTPUTS, seed=args.seed)
    if begun := args.mean or ([args.start] if args.start else []):
        reader.adapters.load_state_dict(mean_of(begun))
    learned = [] if args.mean else [example.label for example in (*examples, *more)]
    passages = Passages(reader, tokenizer, learned + held_out)
    if not args.mean:
        steps = args.epochs * -(-(len(examples) + int(args.share * len(more))) // args.batch_size)
        for rows, says in reader.steps(batches(examples, more, args, passages), steps, args.learning_rate):
            reader.learn(loss_of(logits(reader, rows), says, args.smoothing))
    about = {"trades": len(used), "labels": len(examples), "more": len(more)}
    if not held_out:
        return reader, 1.0, about
    with torch.no_grad():
        asked = [passages.of(label.text, label.phrases[0]) for label in held_out]
        given = torch.cat([logits(reader, asked[start : start + 256]) for start in range(0, len(asked), 256)]).cpu()
    says = [label.says for label in held_out]
    temperature = float(min(TEMPERATURES, key=lambda t: loss_of(given / t, says).item()))
    return reader, temperature, {**about, **saying_metrics(F.softmax(given / temperature, -1).numpy(), says)}


def mean_of(files: Sequence[str]) -> dict[str, Tensor]:
    """The mean of adapters."""
    each = [load_file(file) for file in files]
    return {name: torch.stack([one[name].float() for one in each]).mean(0) for name in each[0]}


def read_more(file: Path) -> list[Label]:
    """Labels from a file of JSON lines."""
    import gzip

    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    rows = map(json.loads, content.decode().splitlines())
    return [Label(row["text"], tuple(row["phrases"]), row["says"]) for row in rows]


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    reader, temperature, about = learn(args)
    mark = encoder_mark(Path(resolve_encoder(args.encoder).path))
    learned = json.dumps(about)
    save_adapters(
        reader.adapters, Path(args.output), encoder=mark, temperature=f"{temperature:.1f}", learned_from=learned
    )
    print(json.dumps({**vars(args), "temperature": temperature, **about}))


if __name__ == "__main__":
    run_script(main)
