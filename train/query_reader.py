"""Teach the encoder to read queries: which words are wanted, excluded, alternatives, or cues.

    python train/query_reader.py --output retrieval/query_reader.safetensors     # an hour on one core

The encoder stays as it is; adapters of low rank learn from the queries of `data/reading`, in which many authors have
marked what people want and exclude. `python eval/reading.py` measures the result.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from boolbert.boolean.tags import (
    BOUND,
    CUE,
    DENIAL,
    DENIED_BOUND,
    EXCLUDED,
    JOIN,
    KINDS_OF_NOT,
    TAGS,
    WANTED,
    Mark,
    joined_words,
    marks_of,
    word_tags,
)
from boolbert.configuration_boolbert import OPERATORS
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import DataError, run_script
from boolbert.data.labels import find_cues
from boolbert.data.passages import passages
from boolbert.data.reading import MarkedQuery, authors, marked_queries, queries_with_kinds
from boolbert.data.reading_scores import measured, own_queries, runs
from boolbert.data.tasks import quest_task
from boolbert.reading_boolbert import HEAD_SIZE, KIND, PIECE, best_tags, between_specials, of_sentence
from boolbert.retrieval.adapters import encoder_mark
from boolbert.retrieval.encoders import QUERY_READER, resolve_encoder
from boolbert.train.adapting import Adapting, frozen, load_bert, padded, save_adapters
from boolbert.train.shapes import LENGTH_MULTIPLE, rounded

LEAST_OPENING = 3  # words before what a query asks for that make an opening
MOST_TOKENS_LEARNED = 128  # of a query; the reader does not learn from the rest
SORTED_TOGETHER = 16  # batches whose queries are sorted by length
# Authors of data/reading who look for items, save where a query begins with one of these words.
_ITEMS = "bookers choosers clerks leavers letters listers phones shoppers stumbles trades first"
LOOK_FOR_ITEMS = frozenset(f"train_{name}" for name in _ITEMS.split())
ASKING = frozenset(("why", "how", "what", "what's", "who", "whose", "when"))
OPEN = "?"  # a mark of words that are not excluded; whether they are wanted is not known


@dataclass
class Arguments:
    output: str = flag(str(QUERY_READER), "the file to write")
    encoder: str | None = flag(None, "folder or Hub id of a BERT; the default encoder if not given")
    quest: str | None = flag(None, "QUEST's queries (JSON lines), whose marked atoms are learned from as well")
    start: str | None = flag(None, "adapters to go on from, instead of new ones")
    halfway: bool = flag(False, "give the mean of the adapters of `start` and of those learned")
    left_out: list[str] = flag([], "authors of data/reading whose queries are not learned from")
    epochs: int = flag(12, "times that each query is seen")
    learning_rate: float = flag(1e-3, "the highest")
    batch_size: int = flag(32, "queries")
    rank: int = flag(16, "of the adapters")
    varied: float = flag(0.5, "share of the queries that are mistyped or put together anew")
    older: float = flag(0.5, "share of the queries of data/reading, whose marks say less, that is seen in an epoch")
    seed: int = flag(0, "of the adapters, the order and the typing errors")
    device: str | None = flag(None, "cpu, cuda, ...; the best there is")


@dataclass(frozen=True)
class TaggedWords:
    """A query as the reader sees it: token ids, the first token of each word, the words' places in the text, and for
    each token the tags that are right, (L, T) of bool. More than one is right where its author left it open, and in a
    word's further pieces; none for special tokens, and where a query has no marks of what it excludes. kind: what NOT
    excludes, a number in `KINDS_OF_NOT`; asks: 0 or 1; both -1 where they are not known."""

    ids: list[int]
    first: list[int]
    words: list[tuple[int, int]]
    right: np.ndarray
    kind: int = -1
    asks: int = -1


def tagged(query: MarkedQuery, tokenizer: Any) -> TaggedWords:
    encoding = tokenizer.encode(query.text)
    first, words = joined_words(encoding.word_ids, encoding.offsets)
    tags = np.array(word_tags(words, _with_joins(query)), int)
    right = (np.arange(len(TAGS)) == tags[:, None]) & bool(query.marks or not query.kind)
    if query.asks is None:  # older marks tell neither bounds nor wanted denials
        for kind, more in ((WANTED, BOUND + DENIAL), (EXCLUDED, DENIED_BOUND)):
            for place in "BI":
                right[np.ix_(tags == TAGS.index(f"{place}-{kind}"), [TAGS.index(f"{place}-{one}") for one in more])] = (
                    True
                )
    if not query.has_cues:
        right[np.ix_(tags == 0, _of_kind(CUE))] = True
    for mark in query.marks:
        if mark.kind == OPEN:
            inside = np.array([start < mark.end and mark.start < end for start, end in words], bool)
            right[np.ix_(inside, ~(_of_kind(EXCLUDED) | _of_kind(DENIED_BOUND)))] = True
    of_token = np.zeros((len(encoding.ids), len(TAGS)), bool)
    for number, token in enumerate(first):
        end = first[number + 1] if number + 1 < len(first) else len(encoding.ids) - 1
        of_token[token] = right[number]
        of_token[token + 1 : end] = right[number] | right[number] @ _SAME_KIND
    seen = [token for token in first if token < MOST_TOKENS_LEARNED]
    of_not, asks = _said_of(query)
    ids = encoding.ids[:MOST_TOKENS_LEARNED]
    return TaggedWords(ids, seen, words[: len(seen)], of_token[:MOST_TOKENS_LEARNED], of_not, asks)


def _with_joins(query: MarkedQuery) -> list[Mark]:
    """The marks of a query, and those of "and" and "or" outside of them."""
    marks = [mark for mark in query.marks if mark.kind != OPEN]
    cues = [cue for cue in find_cues(query.text) if cue.operator != "not" and not cue.weak]
    free = [cue for cue in cues if not any(mark.start < cue.end and cue.start < mark.end for mark in query.marks)]
    return sorted([*marks, *(Mark(JOIN, cue.start, cue.end) for cue in free)], key=lambda mark: mark.start)


def _said_of(query: MarkedQuery) -> tuple[int, int]:
    """What NOT excludes, and whether the query asks; -1 where nobody has said it."""
    if query.asks is not None:
        # Where a question denies something and excludes nothing, nothing may be taken away from its vector.
        denies = query.asks and any(cue.operator == "not" for cue in find_cues(query.text))
        name = query.kind or ("property" if denies else None)
        return (-1 if name is None else KINDS_OF_NOT.index(name)), int(query.asks)
    if query.kind is not None:
        return KINDS_OF_NOT.index(query.kind), -1
    # Who looks for items does not ask for an answer, and leaves some of them out.
    if query.author not in LOOK_FOR_ITEMS or query.text.split()[0].lower() in ASKING:
        return -1, -1
    return (KINDS_OF_NOT.index("set") if any(mark.kind == EXCLUDED for mark in query.marks) else -1), 0


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


NEAR = dict(zip("abcdefghijklmnopqrstuvwxyz", "svxswdfguhklknipaeartycweutx", strict=False))  # a key beside each


def mistyped(query: MarkedQuery, draw: random.Random) -> MarkedQuery:
    """The query with one to four typing errors."""
    for _ in range(draw.choice((1, 1, 2, 3, 4))):
        text = query.text
        places = [i for i in range(len(text) - 1) if text[i].isalpha() and text[i + 1].isalpha()]
        if not places:
            return query
        place = draw.choice(places)
        letter, next_letter = text[place], text[place + 1]
        new = draw.choices(
            (next_letter + letter, next_letter, letter + letter + next_letter, NEAR.get(letter, "e") + next_letter),
            (35, 30, 15, 20),
        )[0]
        query = changed(query, place, place + 2, new)
    return query


def changed(query: MarkedQuery, start: int, end: int, new: str) -> MarkedQuery:
    """The query with another text in place of a stretch; its marks go along.

    >>> query = MarkedQuery("no pools here", [Mark("x", 3, 8)], "", True)
    >>> other = changed(query, 3, 8, "dog")
    >>> other.text, other.marks
    ('no dog here', [Mark(kind='x', start=3, end=6, group=0)])
    """

    def moved(place: int) -> int:
        return place if place <= start else max(place - (end - start), start) + len(new)

    marks = [mark._replace(start=moved(mark.start), end=moved(mark.end)) for mark in query.marks]
    return query._replace(text=query.text[:start] + new + query.text[end:], marks=marks)


@dataclass(frozen=True)
class Pieces:
    """What queries are put together from anew. things: what is excluded; tails: "without a pool", with its marks;
    openings: "We have no car. ", of which nothing is marked."""

    things: list[str]
    tails: list[tuple[str, list[Mark]]]
    openings: list[str]

    @classmethod
    def of(cls, queries: Sequence[MarkedQuery]) -> "Pieces":
        things, tails, openings = list[str](), list[tuple[str, list[Mark]]](), list[str]()
        for query in (query for query in queries if query.has_cues and query.marks):
            marks = sorted(query.marks, key=lambda mark: mark.start)
            things += [query.text[mark.start : mark.end] for mark in marks if mark.kind == EXCLUDED]
            opening = query.text[: marks[0].start]
            if len(opening.split()) >= LEAST_OPENING and opening.rstrip()[-1] in ".,;:!?":
                openings.append(opening)
            first = next((number for number, mark in enumerate(marks) if mark.kind == CUE), None)
            own = [] if first is None else list(takewhile(lambda mark: mark.kind in CUE + EXCLUDED, marks[first:]))
            if len(own) > 1 and own[-1].end == len(query.text.rstrip(" ?.!")):
                left = own[0].start
                tails.append((query.text[left : own[-1].end], [_shifted(mark, -left) for mark in own]))
        return cls(things, tails, openings)


def _shifted(mark: Mark, by: int) -> Mark:
    return mark._replace(start=mark.start + by, end=mark.end + by)


def varied(query: MarkedQuery, pieces: Pieces, draw: random.Random) -> MarkedQuery:
    """The query mistyped, with another thing excluded, with one more exclusion, or behind another opening."""
    excluded = [mark for mark in query.marks if mark.kind == EXCLUDED]
    how = draw.random()
    if how < 0.25 and excluded and pieces.things:
        mark = draw.choice(excluded)
        query = changed(query, mark.start, mark.end, draw.choice(pieces.things))
    elif how < 0.5 and pieces.tails and query.has_cues and query.kind != "property" and (query.marks or not query.kind):
        text = query.text.rstrip(" ?.!") + draw.choice((" ", ", ", ", ", " and ", " but "))
        tail, marks = draw.choice(pieces.tails)
        kind = query.kind or (None if query.asks or query.asks is None else "set")
        marks = [*query.marks, *(_shifted(mark, len(text)) for mark in marks)]
        query = query._replace(text=text + tail, marks=marks, kind=kind)
    elif how < 0.6 and pieces.openings and query.asks is not None:
        opening = draw.choice(pieces.openings)
        marks = [_shifted(mark, len(opening)) for mark in query.marks]
        query = query._replace(text=opening + query.text, marks=marks)
    else:
        return mistyped(query, draw)
    return mistyped(query, draw) if draw.random() < 0.3 else query


def batches(queries: Sequence[MarkedQuery], tokenizer: Any, args: Arguments) -> Iterator[list[TaggedWords]]:
    """The queries of all epochs, in a new order each time."""
    draw = random.Random(args.seed)
    known = {id(query): tagged(query, tokenizer) for query in queries}
    pieces = Pieces.of(queries)
    newer, count = seen_in_an_epoch(args, queries)
    older = [query for query in queries if query.asks is None]
    for _ in range(args.epochs):
        rows = [
            tagged(varied(query, pieces, draw), tokenizer) if draw.random() < args.varied else known[id(query)]
            for query in (*newer, *draw.sample(older, len(count)))
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
    began = load_file(args.start) if args.start else {}
    if began:
        reader.adapters.load_state_dict(began)
    each = map(batch_of, batches(queries, tokenizer, args))
    steps = steps_of(args, queries)
    mean = RunningMean(reader.adapters, from_step=steps // 2)

    def after_step(count: int) -> None:
        mean.add()
        on_step(count)

    reader.learn(each, steps, args.learning_rate, reading_loss, after_step)
    mean.put()
    if args.halfway:
        own = reader.adapters.state_dict()
        reader.adapters.load_state_dict({name: (own[name] + value.to(own[name])) / 2 for name, value in began.items()})
    return reader, tokenizer


class RunningMean:
    """The weights of a module, averaged over the last steps of its training."""

    def __init__(self, module: nn.Module, from_step: int, share: float = 0.01):
        self.module, self.from_step, self.share = module, from_step, share
        self.steps, self.means = 0, dict[str, Tensor]()

    @torch.no_grad()
    def add(self) -> None:
        self.steps += 1
        if self.steps <= self.from_step:
            return
        for name, parameter in self.module.named_parameters():
            if name in self.means:
                self.means[name].lerp_(parameter.detach(), self.share)
            else:
                self.means[name] = parameter.detach().clone()

    def put(self) -> None:
        if self.means:
            self.module.load_state_dict(self.means)


def steps_of(args: Arguments, queries: Sequence[MarkedQuery]) -> int:
    return args.epochs * -(-sum(map(len, seen_in_an_epoch(args, queries))) // args.batch_size)


def seen_in_an_epoch(args: Arguments, queries: Sequence[Any]) -> tuple[Sequence[Any], range]:
    """The queries that say everything, all of which are seen, and how many of the older ones are."""
    newer = [query for query in queries if query.asks is not None]
    return newer, range(round(args.older * (len(queries) - len(newer))))


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
    """The training queries of `data/reading` and `data/passages`, each behind the prompt.

    >>> query = training_queries("query: ")[0]
    >>> query.text.startswith("query: "), query.marks[0].start >= len("query: ")
    (True, True)
    """
    shift = len(prompt)
    of_passages = (query for own in passages() for query in own.marked())
    return [
        query._replace(
            text=prompt + query.text,
            marks=[mark._replace(start=mark.start + shift, end=mark.end + shift) for mark in query.marks],
        )
        for query in (*marked_queries("train"), *queries_of_kinds(), *of_passages)
    ]


def queries_of_kinds() -> list[MarkedQuery]:
    """Queries that say what NOT excludes: those of `data/reading/conditions`, and of the countries, which are sets and
    have no marks."""
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
        found.append(marks_of(row.words, tags))
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
    if args.halfway and not args.start:
        raise DataError("--halfway: give the adapters to go on from with --start")
    queries = training_queries()
    if unknown := set(args.left_out) - set(authors(queries)):
        raise DataError(f"--left_out: {min(unknown)!r} is no author of data/reading: {', '.join(authors(queries))}")
    queries = [query for query in queries if query.author not in args.left_out]
    queries += quest_queries(args.quest) if args.quest else []
    reader, _ = learn(args, queries)
    mark = encoder_mark(Path(resolve_encoder(args.encoder).path))
    learned_from = f"{len(queries)} queries"
    save_adapters(reader.adapters, Path(args.output), encoder=mark, learned_from=learned_from)
    print(f"{args.output}: {Path(args.output).stat().st_size:,} bytes, learned from {len(queries):,} queries")


if __name__ == "__main__":
    run_script(main)
