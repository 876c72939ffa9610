"""Teach the encoder to read queries: which words are wanted, excluded, alternatives, or cues.

    python train/query_reader.py --output retrieval/query_reader.safetensors     # half an hour on one core
    python train/query_reader.py --start retrieval/query_reader.safetensors --head      # and it stays as it tags

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
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F

from boolbert.boolean import find_cues
from boolbert.boolean.tags import CUE, EXCLUDED, KINDS_OF_NOT, TAGS, Mark, joined_words, marks_of, word_tags
from boolbert.configuration_boolbert import OPERATORS
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import DataError, run_script
from boolbert.data.reading import MarkedQuery, authors, marked_queries, queries_with_kinds
from boolbert.data.reading_scores import measured, own_queries, runs
from boolbert.data.tasks import quest_task
from boolbert.reading_boolbert import ASKS, HEAD_SIZE, KIND, PIECE, best_tags, between_specials, of_sentence
from boolbert.retrieval.adapters import encoder_mark
from boolbert.retrieval.encoders import QUERY_READER, resolve_encoder
from boolbert.train.adapting import Adapting, frozen, load_bert, padded, save_adapters
from boolbert.train.shapes import LENGTH_MULTIPLE, rounded

MOST_TOKENS_LEARNED = 128  # of a query; the reader does not learn from the rest
SORTED_TOGETHER = 16  # batches whose queries are sorted by length
FITTED, DECAY = 80, 3e-3  # steps of `teach_head`, and how much its weights are held down
SAID = ("kind", "asks")
OPEN = "?"  # a mark of words that are not excluded; whether they are wanted is not known


@dataclass
class Arguments:
    output: str = flag(str(QUERY_READER), "the file to write")
    encoder: str | None = flag(None, "folder or Hub id of a BERT; the default encoder if not given")
    quest: str | None = flag(None, "QUEST's queries (JSON lines), whose marked atoms are learned from as well")
    start: str | None = flag(None, "adapters to go on from, instead of new ones")
    head: bool = flag(
        False, "of those, only teach what tells pieces of words, the kind of NOT and whether a query asks"
    )
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
    word's further pieces; none for special tokens, and where it is not known. kind: what NOT excludes, a number in
    `KINDS_OF_NOT`; asks: 0 or 1; both -1 where they are not known."""

    ids: list[int]
    first: list[int]
    words: list[tuple[int, int]]
    right: np.ndarray
    kind: int = -1
    asks: int = -1


def tagged(query: MarkedQuery, tokenizer: Any) -> TaggedWords:
    encoding = tokenizer.encode(query.text)
    first, words = joined_words(encoding.word_ids, encoding.offsets)
    if query.asks is not None:  # these marks say more than the tags can
        right = np.zeros((len(encoding.ids), len(TAGS)), bool)
        # Where a question denies something and excludes nothing, nothing may be taken away from its vector.
        denies = query.asks and any(cue.operator == "not" for cue in find_cues(query.text))
        name = query.kind or ("property" if denies else None)
        kind = -1 if name is None else KINDS_OF_NOT.index(name)
        seen = [token for token in first if token < MOST_TOKENS_LEARNED]
        ids = encoding.ids[:MOST_TOKENS_LEARNED]
        return TaggedWords(ids, seen, words[: len(seen)], right[: len(ids)], kind, int(query.asks))
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


def reading_loss(scores: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """How far what the head says of tokens, (B, L, HEAD_SIZE), is from what is right."""
    return tag_loss(scores[..., : len(TAGS)], batch) + sentence_loss(scores, batch)


def tag_loss(scores: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """How far the tags of tokens (B, L, T) are from the right ones."""
    right = batch["right"]
    counts = right.any(-1)
    log_right = F.log_softmax(scores.float(), -1).masked_fill(~right, -1e4).logsumexp(-1)
    return -(log_right * counts).sum() / counts.sum().clamp_min(1)


def sentence_loss(scores: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """The same of what tells the pieces of words, the kind of NOT and whether the query asks."""
    words, piece = batch["is_word"], scores[..., PIECE].float()
    pieces = F.binary_cross_entropy_with_logits(piece, batch["goes_on"].float(), reduction="none")
    said, kind, asks = of_sentence(scores, words).float(), batch["kind"], batch["asks"]
    of_kind = F.cross_entropy(said[:, :-1], kind.clamp_min(0), reduction="none") * (kind >= 0)
    of_asks = F.binary_cross_entropy_with_logits(said[:, -1], asks.clamp_min(0).float(), reduction="none") * (asks >= 0)
    known = (kind >= 0).sum() + (asks >= 0).sum()
    return (pieces * words).sum() / words.sum().clamp_min(1) + (of_kind + of_asks).sum() / known.clamp_min(1)


def batch_of(rows: Sequence[TaggedWords]) -> dict[str, Tensor]:
    """Queries as a step takes them."""
    length = rounded(max(len(row.ids) for row in rows), LENGTH_MULTIPLE, MOST_TOKENS_LEARNED)
    ids, mask = padded([row.ids for row in rows], length)
    right = torch.zeros((len(rows), length, len(TAGS)), dtype=torch.bool)
    is_word = between_specials(mask)
    goes_on = is_word.clone()
    for number, row in enumerate(rows):
        right[number, : len(row.right)] = torch.from_numpy(row.right)
        goes_on[number, row.first] = False
    kind, asks = (torch.tensor([getattr(row, name) for row in rows]) for name in ("kind", "asks"))
    return {
        "ids": ids,
        "mask": mask,
        "right": right,
        "is_word": is_word,
        "goes_on": goes_on,
        "kind": kind,
        "asks": asks,
    }


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
    reader = Adapting(bert, args.rank, HEAD_SIZE, seed=args.seed)
    if args.start:
        reader.adapters.load_state_dict(load_file(args.start))
    if args.head:
        teach_head(reader, [tagged(query, tokenizer) for query in queries], args.batch_size)
        return reader, tokenizer
    each = map(batch_of, batches(queries, tokenizer, args))
    reader.learn(each, steps_of(args, queries), args.learning_rate, reading_loss, on_step)
    return reader, tokenizer


@torch.no_grad()
def teach_head(reader: Adapting, rows: Sequence[TaggedWords], batch_size: int) -> None:
    """Fit what tells the pieces of words, the kind of NOT and questions, on what the adapters' layers give."""
    head = reader.adapters.head
    reader.adapters.head = torch.nn.Identity()  # type: ignore[assignment]
    states, goes_on, means = [], [], []
    ordered = sorted(rows, key=lambda row: len(row.ids))
    for start in range(0, len(ordered), batch_size):
        batch = batch_of(ordered[start : start + batch_size])
        found = reader(batch["ids"].to(reader.device), batch["mask"].to(reader.device)).cpu()
        states.append(found[batch["is_word"]])
        goes_on.append(batch["goes_on"][batch["is_word"]].long())
        counted = batch["is_word"].unsqueeze(-1)
        means.append((found * counted).sum(1) / counted.sum(1))
    reader.adapters.head = head
    of_queries, kinds, asks = (
        torch.cat(means),
        *(torch.tensor([getattr(row, name) for row in ordered]) for name in SAID),
    )
    known = kinds >= 0
    piece, ask = (_fitted(*given) for given in ((torch.cat(states), torch.cat(goes_on)), (of_queries, asks)))
    kind = _fitted(of_queries[known], kinds[known])
    for place, (weight, bias) in (((PIECE,), _one(piece)), (range(KIND, ASKS), kind), ((ASKS,), _one(ask))):
        head.weight[list(place)], head.bias[list(place)] = weight.to(head.weight), bias.to(head.bias)


def _fitted(states: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The weight and bias of a linear layer that tells classes (N,) from states (N, D)."""
    mean, spread = states.mean(0), states.std(0) + 1e-5
    scaled = (states - mean) / spread
    counts = labels.bincount().float()
    rarer = (counts.sum() / counts).sqrt()  # counts more
    weight = torch.zeros(len(counts), states.shape[1], requires_grad=True)
    bias = torch.zeros(len(weight), requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=FITTED, line_search_fn="strong_wolfe")

    @torch.enable_grad()
    def loss() -> Tensor:
        optimizer.zero_grad()
        found = F.cross_entropy(scaled @ weight.T + bias, labels, rarer) + DECAY * weight.square().sum()
        found.backward()
        return found

    optimizer.step(loss)
    own = weight.detach() / spread
    return own, bias.detach() - own @ mean


def _one(layer: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Of a layer that tells two classes, one number above 0 for the second."""
    weight, bias = layer
    return weight[1:] - weight[:1], bias[1:] - bias[:1]


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
        for query in (*marked_queries("train"), *queries_of_kinds())
    ]


def queries_of_kinds() -> list[MarkedQuery]:
    """Queries that say what NOT excludes: those of `data/reading/conditions`, and of the countries, which are sets."""
    questions = quest_task(None, "train", progress=False).questions
    excluding = [question.text for question in questions if "not" in (question.operators or ())]
    sets = [MarkedQuery(text, [], "countries", True, "set", False) for text in excluding]
    return [*queries_with_kinds("train"), *sets]


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
            tags = best_tags(scores[..., :KIND], between_specials(torch.ones(1, len(row.ids))))[0, row.first].tolist()
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
    if args.head and not args.start:
        raise DataError("--head goes on from adapters that have learned to tag: give them with --start")
    queries = queries_of_kinds() if args.head else training_queries()
    if unknown := set(args.left_out) - set(authors(queries)):
        raise DataError(f"--left_out: {min(unknown)!r} is no author of data/reading: {', '.join(authors(queries))}")
    queries = [query for query in queries if query.author not in args.left_out]
    queries += quest_queries(args.quest) if args.quest else []
    reader, _ = learn(args, queries)
    mark = encoder_mark(Path(resolve_encoder(args.encoder).path))
    learned_from = f"{len(queries)} queries"
    if args.head:
        with safe_open(args.start, framework="pt") as stored:
            learned_from = f"{(stored.metadata() or {}).get('learned_from', args.start)}, its head from {learned_from}"
    save_adapters(reader.adapters, Path(args.output), encoder=mark, learned_from=learned_from)
    print(f"{args.output}: {Path(args.output).stat().st_size:,} bytes, learned from {len(queries):,} queries")


if __name__ == "__main__":
    run_script(main)
