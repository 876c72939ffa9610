"""Teach the encoder to read queries: which words are wanted, excluded, alternatives, or cues.

    python train/query_reader.py --output retrieval/query_reader.safetensors     # minutes on two cores

The encoder stays as it is; adapters of low rank learn from the queries of `data/reading`, in which many authors have
marked what people want and exclude. `python eval/reading.py` measures the result.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from boolbert.boolean.tags import CUE, EXCLUDED, TAGS, Mark, best_tags, marks_of, word_tags
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import run_script
from boolbert.data.reading import MarkedQuery, marked_queries
from boolbert.retrieval.adapters import QUERY_READER, encoder_mark
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.train.adapting import Adapting, save_adapters

LONGEST = 128  # tokens
OPEN = "?"  # a mark of words that are not excluded; whether they are wanted is not known


@dataclass
class Arguments:
    output: str = flag(str(QUERY_READER), "the file to write")
    encoder: str | None = flag(None, "folder or Hub id of a BERT; the default encoder if not given")
    quest: str | None = flag(None, "QUEST's train split (JSON lines), whose marked atoms are learned from as well")
    left_out: list[str] = flag([], "authors of data/reading whose queries are not learned from")
    epochs: int = flag(8, "times that each query is seen")
    learning_rate: float = flag(1e-3, "the highest")
    batch_size: int = flag(32, "queries")
    rank: int = flag(16, "of the adapters")
    typos: float = flag(0.2, "share of the queries in which two letters change places")
    seed: int = flag(0, "of the adapters, the order and the typing errors")
    device: str | None = flag(None, "cpu, cuda, ...; the best there is")


@dataclass(frozen=True)
class TaggedWords:
    """A query as the reader sees it: token ids, the first token of each word, the words' places in the text, and for
    each token the tags that are right, (L, T) of bool. More than one is right where its author left it open, and in a
    word's further pieces; none for special tokens."""

    ids: list[int]
    first: list[int]
    words: list[tuple[int, int]]
    right: np.ndarray


def tagged(query: MarkedQuery, tokenizer: Any) -> TaggedWords:
    encoding = tokenizer.encode(query.text)
    first: list[int] = []
    words: list[tuple[int, int]] = []
    for token, (word, (start, end)) in enumerate(zip(encoding.word_ids, encoding.offsets, strict=True)):
        if word is None:
            continue
        if first and word == encoding.word_ids[token - 1]:
            words[-1] = (words[-1][0], end)
        else:
            first.append(token)
            words.append((start, end))
    tags = np.array(word_tags(words, [mark for mark in query.marks if mark.kind != OPEN]), int)
    right = np.arange(len(TAGS)) == tags[:, None]
    if not query.has_cues:
        right[np.ix_(tags == 0, _of_kind(CUE))] = True
    for mark in query.marks:
        if mark.kind == OPEN:
            inside = [number for number, (start, end) in enumerate(words) if start < mark.end and mark.start < end]
            right[np.ix_(inside, ~_of_kind(EXCLUDED))] = True
    of_token = np.zeros((len(encoding.ids), len(TAGS)), bool)
    for number, token in enumerate(first):
        end = first[number + 1] if number + 1 < len(first) else len(encoding.ids) - 1
        of_token[token] = right[number]
        of_token[token + 1 : end] = right[number] | right[number] @ _SAME_KIND
    seen = [token for token in first if token < LONGEST]
    return TaggedWords(encoding.ids[:LONGEST], seen, words[: len(seen)], of_token[:LONGEST])


def _of_kind(kind: str) -> np.ndarray:
    return np.array([tag.endswith(f"-{kind}") for tag in TAGS])


_KINDS = [tag[2:] for tag in TAGS]
_SAME_KIND = np.array([[one == other for one in _KINDS] for other in _KINDS])


class TagLoss:
    """How far the reader's tags are from the right ones."""

    def __call__(self, scores: Tensor, rows: Sequence[TaggedWords]) -> Tensor:  # (B, L, T)
        right = torch.zeros(scores.shape, dtype=torch.bool)
        for number, row in enumerate(rows):
            right[number, : len(row.right)] = torch.from_numpy(row.right)
        counts = right.any(-1).to(scores.device)
        log_right = F.log_softmax(scores.float(), -1).masked_fill(~right.to(scores.device), -1e4).logsumexp(-1)
        return -log_right[counts].mean()


def mistyped(query: MarkedQuery, draw: random.Random) -> MarkedQuery:
    """The query with two neighbouring letters of one word in the wrong order; every mark stays where it is."""
    places = [i for i in range(len(query.text) - 1) if query.text[i].isalpha() and query.text[i + 1].isalpha()]
    if not places:
        return query
    place = draw.choice(places)
    text = query.text
    return query._replace(text=text[:place] + text[place + 1] + text[place] + text[place + 2 :])


def batches(queries: Sequence[MarkedQuery], tokenizer: Any, args: Arguments) -> Iterator[list[TaggedWords]]:
    """The queries of all epochs, in a new order each time."""
    draw = random.Random(args.seed)
    known = [tagged(query, tokenizer) for query in queries]
    for _ in range(args.epochs):
        rows = [
            tagged(mistyped(query, draw), tokenizer) if draw.random() < args.typos else row
            for query, row in zip(queries, known, strict=True)
        ]
        draw.shuffle(rows)
        yield from (rows[start : start + args.batch_size] for start in range(0, len(rows), args.batch_size))


def learn(args: Arguments, queries: Sequence[MarkedQuery]) -> "tuple[Adapting, Any]":
    """The adapters for an encoder, learned from queries."""
    from transformers import AutoTokenizer

    folder = resolve_encoder(args.encoder).path
    tokenizer = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    steps = args.epochs * -(-len(queries) // args.batch_size)
    reader = Adapting(folder, args.rank, len(TAGS), seed=args.seed, device=args.device)
    loss = TagLoss()
    for rows in reader.steps(batches(queries, tokenizer, args), steps, args.learning_rate):
        reader.learn(loss(reader.scores([row.ids for row in rows]), rows))
    return reader, tokenizer


def read_all(reader: "Adapting", tokenizer: Any, texts: Sequence[str]) -> list[list[Mark]]:
    """The marks that a reader finds in queries."""
    found = []
    for text in texts:
        row = tagged(MarkedQuery(text, [], "", True), tokenizer)
        with torch.no_grad():
            scores = F.log_softmax(reader.scores([row.ids])[0].float(), -1).cpu().numpy()
        found.append(marks_of(text, row.words, best_tags(scores[row.first])) if row.first else [])
    return found


def quest_queries(file: str) -> list[MarkedQuery]:
    """QUEST's queries of the templates with NOT, as their template words them: the last atom is excluded."""
    import json
    import re

    found = []
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "not" not in row["metadata"]["template"].split():
            continue
        text, marks = "", []
        for piece in re.split(r"(<mark>.*?</mark>)", row["original_query"]):
            is_atom = piece.startswith("<mark>")
            plain = piece.removeprefix("<mark>").removesuffix("</mark>")
            if is_atom:
                marks.append(Mark(OPEN, len(text), len(text) + len(plain)))
            text += plain
        marks[-1] = marks[-1]._replace(kind=EXCLUDED)
        found.append(MarkedQuery(text, marks, "quest", False))
    return found


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    queries = [query for query in marked_queries("train") if query.author not in args.left_out]
    queries += quest_queries(args.quest) if args.quest else []
    reader, _ = learn(args, queries)
    mark = encoder_mark(Path(resolve_encoder(args.encoder).path))
    save_adapters(reader.adapters, Path(args.output), encoder=mark, learned_from=f"{len(queries)} queries")
    print(f"{args.output}: {Path(args.output).stat().st_size:,} bytes, learned from {len(queries):,} queries")


if __name__ == "__main__":
    run_script(main)
