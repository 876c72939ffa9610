"""Teach the encoder to read queries: which words are wanted, excluded, alternatives, or cues.

    python train/query_reader.py --output retrieval/query_reader.safetensors     # half an hour on one core

The encoder stays as it is; adapters of low rank learn from the queries of `data/reading`, in which many authors have
marked what people want and exclude. `python eval/reading.py` measures the result.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F

from boolbert.boolean.tags import CUE, EXCLUDED, TAGS, Mark, joined_words, marks_of, word_tags
from boolbert.configuration_boolbert import OPERATORS
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import DataError, run_script
from boolbert.data.reading import MarkedQuery, authors, marked_queries
from boolbert.data.reading_scores import measured, own_queries, runs
from boolbert.reading_boolbert import best_tags, between_specials
from boolbert.retrieval.adapters import QUERY_READER, embeddings_mark, encoder_mark
from boolbert.retrieval.encoders import resolve_encoder
from boolbert.train.adapting import Adapting, frozen, load_bert, padded, save_adapters
from boolbert.train.shapes import LENGTH_MULTIPLE, rounded

MOST_TOKENS_LEARNED = 128  # of a query; the reader does not learn from the rest
SORTED_TOGETHER = 16  # batches whose queries are sorted by length
OPEN = "?"  # a mark of words that are not excluded; whether they are wanted is not known


@dataclass
class Arguments:
    output: str = flag(str(QUERY_READER), "the file to write")
    encoder: str | None = flag(None, "folder or Hub id of a BERT; the default encoder if not given")
    quest: str | None = flag(None, "QUEST's queries (JSON lines), whose marked atoms are learned from as well")
    start: str | None = flag(None, "adapters to go on from, instead of new ones")
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
    first, words = joined_words(encoding.word_ids, encoding.offsets)
    tags = np.array(word_tags(words, [mark for mark in query.marks if mark.kind != OPEN]), int)
    right = np.arange(len(TAGS)) == tags[:, None]
    if not query.has_cues:
        right[np.ix_(tags == 0, _of_kind(CUE))] = True
    for mark in query.marks:
        if mark.kind == OPEN:
            inside = np.array([start < mark.end and mark.start < end for start, end in words], bool)
            right[np.ix_(inside, ~_of_kind(EXCLUDED))] = True
    of_token = np.zeros((len(encoding.ids), len(TAGS)), bool)
    for number, token in enumerate(first):
        end = first[number + 1] if number + 1 < len(first) else len(encoding.ids) - 1
        of_token[token] = right[number]
        of_token[token + 1 : end] = right[number] | right[number] @ _SAME_KIND
    seen = [token for token in first if token < MOST_TOKENS_LEARNED]
    return TaggedWords(encoding.ids[:MOST_TOKENS_LEARNED], seen, words[: len(seen)], of_token[:MOST_TOKENS_LEARNED])


def _of_kind(kind: str) -> np.ndarray:
    return np.array([tag.endswith(f"-{kind}") for tag in TAGS])


_KINDS = [tag[2:] for tag in TAGS]
_SAME_KIND = np.array([[one == other for one in _KINDS] for other in _KINDS])


def tag_loss(scores: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """How far the tags of tokens (B, L, T) are from the right ones."""
    right = batch["right"]
    counts = right.any(-1)
    log_right = F.log_softmax(scores.float(), -1).masked_fill(~right, -1e4).logsumexp(-1)
    return -(log_right * counts).sum() / counts.sum()


def batch_of(rows: Sequence[TaggedWords]) -> dict[str, Tensor]:
    """Queries as a step takes them."""
    length = rounded(max(len(row.ids) for row in rows), LENGTH_MULTIPLE, MOST_TOKENS_LEARNED)
    ids, mask = padded([row.ids for row in rows], length)
    right = torch.zeros((len(rows), length, len(TAGS)), dtype=torch.bool)
    for number, row in enumerate(rows):
        right[number, : len(row.right)] = torch.from_numpy(row.right)
    return {"ids": ids, "mask": mask, "right": right}


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
        yield from of_like_lengths(rows, args.batch_size, draw)


def of_like_lengths(rows: Sequence[TaggedWords], size: int, draw: random.Random) -> list[list[TaggedWords]]:
    """Batches that need little padding, in any order: without this, more than half of the tokens would be padding."""
    found = []
    for start in range(0, len(rows), size * SORTED_TOGETHER):
        window = sorted(rows[start : start + size * SORTED_TOGETHER], key=lambda row: len(row.ids))
        found += [window[first : first + size] for first in range(0, len(window), size)]
    draw.shuffle(found)
    return found


def learn(
    args: Arguments,
    queries: Sequence[MarkedQuery],
    bert: Any = None,
    tokenizer: Any = None,
    on_step: Callable[[int], object] = lambda _: None,
) -> tuple[Adapting, Any]:
    """The adapters for an encoder, learned from queries, and its tokenizer. bert, tokenizer: the encoder, where it is
    loaded already; on_step: called with 1 after each of `steps_of` steps."""
    if bert is None:
        folder = resolve_encoder(args.encoder).path
        bert, tokenizer = load_bert(folder, args.device), whole_texts(folder)
    reader = Adapting(bert, args.rank, len(TAGS), seed=args.seed)
    if args.start:
        reader.adapters.load_state_dict(load_file(args.start))
    each = map(batch_of, batches(queries, tokenizer, args))
    reader.learn(each, steps_of(args, queries), args.learning_rate, tag_loss, on_step)
    return reader, tokenizer


def steps_of(args: Arguments, queries: Sequence[MarkedQuery]) -> int:
    return args.epochs * -(-len(queries) // args.batch_size)


def whole_texts(tokenizer: Any) -> Any:
    """The `tokenizers.Tokenizer` of a folder or of a loaded tokenizer, which neither pads nor cuts texts."""
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer

    if isinstance(tokenizer, str):
        tokenizer = AutoTokenizer.from_pretrained(tokenizer)
    found = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    found.no_padding()
    found.no_truncation()
    return found


def take_shipped(bert: Any) -> bool:
    """Give a Bool-BERT the adapters that come with the package; False where they belong to another encoder."""
    from safetensors import safe_open

    own = bert.reader.state_dict()
    with safe_open(QUERY_READER, framework="pt") as stored:
        if stored.metadata()["encoder"] != embeddings_mark(bert.get_input_embeddings().weight.detach().cpu().numpy()):
            return False
        weights = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118, safetensors has no other
    if {name: value.shape for name, value in weights.items()} != {name: value.shape for name, value in own.items()}:
        return False
    bert.reader.load_state_dict(weights)
    return True


def teach(bert: Any, tokenizer: Any, args: Arguments, *, prompt: str = "", on_step: Callable[[int], object]) -> None:
    """Teach a Bool-BERT's reader with the queries of `data/reading`; all else stays as it is. prompt: what its queries
    begin with."""
    with frozen(bert):
        reader, _ = learn(args, training_queries(prompt), bert, whole_texts(tokenizer), on_step)
    bert.reader.load_state_dict(reader.adapters.state_dict())


def training_queries(prompt: str = "") -> list[MarkedQuery]:
    """The training queries of `data/reading`, each behind the prompt.

    >>> query = training_queries("query: ")[0]
    >>> query.text.startswith("query: "), query.marks[0].start >= len("query: ")
    (True, True)
    """
    shift = len(prompt)
    return [
        query._replace(
            text=prompt + query.text,
            marks=[mark._replace(start=mark.start + shift, end=mark.end + shift) for mark in query.marks],
        )
        for query in marked_queries("train")
    ]


@torch.no_grad()
def measure(bert: Any, tokenizer: Any, prompt: str = "", batch_size: int = 64) -> dict[str, Any]:
    """How well a Bool-BERT reads queries of authors whom it has not learned from: `data/reading_scores.py`."""
    queries = own_queries("dev")
    excluded: dict[str, list[str]] = {}
    wanted: dict[str, list[str]] = {}
    order = sorted((query.text for query in queries), key=len)
    for start in range(0, len(order), batch_size):
        texts = [prompt + text for text in order[start : start + batch_size]]
        batch = tokenizer(texts, padding=True, truncation=True, return_offsets_mapping=True, return_tensors="pt")
        places = batch.pop("offset_mapping").tolist()
        reading = bert.read(**batch.to(bert.device))
        is_not, is_wanted = reading.scope[:, OPERATORS.index("not")] > 0, (reading.scope_logits[:, :2] > 0).any(1)
        for row, text in enumerate(order[start : start + batch_size]):
            excluded[text] = runs(texts[row], places[row], is_not[row].tolist())
            wanted[text] = runs(texts[row], places[row], is_wanted[row].tolist())
    found = measured(queries, lambda text: (excluded[text], wanted[text]))
    return {name: value for name, value in found.items() if name != "wrong"}


def read_all(reader: "Adapting", tokenizer: Any, texts: Sequence[str]) -> list[list[Mark]]:
    """The marks that a reader finds in queries."""
    found = []
    for text in texts:
        row = tagged(MarkedQuery(text, [], "", True), tokenizer)
        with torch.no_grad():
            scores = reader.scores([row.ids])
            tags = best_tags(scores, between_specials(torch.ones(1, len(row.ids))))[0, row.first].tolist()
        found.append(marks_of(text, row.words, tags))
    return found


def quest_queries(file: str) -> list[MarkedQuery]:
    """QUEST's queries as their templates word them. Where one has a NOT, its last atom is excluded; else nothing is."""
    import json
    import re

    found = []
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text, marks = "", []
        for piece in re.split(r"(<mark>.*?</mark>)", row["original_query"]):
            is_atom = piece.startswith("<mark>")
            plain = piece.removeprefix("<mark>").removesuffix("</mark>")
            if is_atom:
                marks.append(Mark(OPEN, len(text), len(text) + len(plain)))
            text += plain
        excludes = "not" in row["metadata"]["template"].split()
        if excludes:
            marks[-1] = marks[-1]._replace(kind=EXCLUDED)
        found.append(MarkedQuery(text, marks, "quest", has_cues=not excludes))
    return found


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    queries = marked_queries("train")
    if unknown := set(args.left_out) - set(authors(queries)):
        raise DataError(f"--left_out: {min(unknown)!r} is no author of data/reading: {', '.join(authors(queries))}")
    queries = [query for query in queries if query.author not in args.left_out]
    queries += quest_queries(args.quest) if args.quest else []
    reader, _ = learn(args, queries)
    mark = encoder_mark(Path(resolve_encoder(args.encoder).path))
    save_adapters(reader.adapters, Path(args.output), encoder=mark, learned_from=f"{len(queries)} queries")
    print(f"{args.output}: {Path(args.output).stat().st_size:,} bytes, learned from {len(queries):,} queries")


if __name__ == "__main__":
    run_script(main)
