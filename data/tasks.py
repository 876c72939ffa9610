"""Retrieval tasks, the same for training and evaluation: what is asked, what is gold, what breaks an operator."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from ..boolean import multi_hot
from ..boolean.marks import Parts, gold_parts
from ..core.errors import DataError
from .boolquestions import BoolQuestions
from .corpus import Corpus
from .gold import Gold, HardNegatives, Rows
from .quest import Quest
from .schema import BoolQuestion, Query

T = TypeVar("T")
HELD_OUT = 0.2  # share of the training queries, where there is no dev split


@dataclass(frozen=True)
class Question:
    """A query as an encoder sees it; operators and parts where the data set tells them."""

    id: str
    text: str
    operators: tuple[str, ...] | None = None
    parts: Parts | None = None


class Pair(NamedTuple):
    """Two questions that differ in a negation, and for each a document that answers it and not the other."""

    query: int  # the number of the query that they are made of
    questions: tuple[Question, Question]
    rows: tuple[int, int]


@dataclass
class Task:
    """Queries over a corpus. Documents are rows of the corpus; every list has one entry per query."""

    name: str
    split: str
    corpus: Corpus
    questions: list[Question]
    gold: Gold
    violators: HardNegatives | None = None  # documents that break a query's operators, in a pool for each way to do so
    negated: list[Rows] | None = None  # documents in the set that a NOT excludes
    groups: dict[str, list[str]] = field(default_factory=dict)  # {"template": [each query's template], ...}

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def texts(self) -> list[str]:
        return [question.text for question in self.questions]

    @cached_property
    def violating(self) -> list[Rows] | None:
        """The documents that break each query's operators, sorted."""
        return None if self.violators is None else [self.violators.rows(query) for query in range(len(self))]

    @cached_property
    def pairs(self) -> list[Pair]:
        """Each "A that are not B" with its "A that are also B", and the first document that answers each."""
        pairs = []
        templates = self.groups.get("template", [])
        for index, (question, template) in enumerate(zip(self.questions, templates, strict=False)):
            if template != "_ that are not _" or question.parts is None or self.violating is None:
                continue
            gold, violating = self.gold[index], self.violating[index]
            if len(gold) and len(violating):
                first, second = (part.text for part in question.parts)
                asked = _negation(index, "not", "not", first, second), _negation(index, "and", "also", first, second)
                pairs.append(Pair(index, asked, (int(gold[0]), int(violating[0]))))
        return pairs


class Splits(NamedTuple):
    """What a run trains on and what it is judged by, over one corpus, and a line about them for the user."""

    train: Task
    dev: Task
    note: str


def operator_labels(question: Question) -> list[int] | None:
    """The operators as 0/1 labels; None where they are unknown."""
    return None if question.operators is None else multi_hot(question.operators)


def quest_task(data: str | Path | None, split: str, limit: int | None = None, *, progress: bool = True) -> Task:
    """A split of QUEST-format data."""
    quest = Quest(data, progress=progress)
    return _quest_task(quest, split, _first(quest.queries(split), limit))


def boolquestions_task(
    data: str | Path | None, split: str, subset: str = "MSMARCO", limit: int | None = None, *, progress: bool = True
) -> Task:
    """A split of BoolQuestions."""
    source = BoolQuestions(data, subset=subset, progress=progress)
    return _boolquestions_task(source, split, _first(source.questions(split), limit))


def quest_splits(data: str | Path | None, *, dev_split: str = "dev", dev_share: float = HELD_OUT) -> Splits:
    """QUEST-format data for training. Without a dev split, a share of the training queries is held out."""
    quest = Quest(data)
    train, dev, note = _train_and_dev(quest, quest.queries, dev_split, dev_share)
    return Splits(_quest_task(quest, "train", train), _quest_task(quest, dev_split, dev), note)


def boolquestions_splits(
    data: str | Path | None, *, subset: str = "MSMARCO", dev_split: str = "dev", dev_share: float = HELD_OUT
) -> Splits:
    """BoolQuestions for training, as `quest_splits`."""
    source = BoolQuestions(data, subset=subset)
    train, dev, note = _train_and_dev(source, source.questions, dev_split, dev_share)
    return Splits(_boolquestions_task(source, "train", train), _boolquestions_task(source, dev_split, dev), note)


def _first(queries: list[T], limit: int | None) -> list[T]:
    if limit is not None and limit < 1:
        raise DataError(f"the limit must be at least 1 query, got {limit}")
    return queries[:limit]


def keep_and_hold(count: int, share: float) -> tuple[list[int], list[int]]:
    """Which of `count` rows to keep, and which share of them to hold out, both in order.

    >>> keep, hold = keep_and_hold(10, 0.2)
    >>> len(keep), len(hold), sorted(keep + hold) == list(range(10))
    (8, 2, True)
    """
    held = max(1, round(count * share))
    if not 0 < share < 1 or held >= count:
        raise DataError(f"a share of {share} of {count} rows cannot be held out; it must leave rows on both sides")
    chosen = set(np.random.default_rng(0).permutation(count)[:held].tolist())
    return sorted(set(range(count)) - chosen), sorted(chosen)


def _train_and_dev(
    data: Quest | BoolQuestions, read: Callable[[str], list[T]], split: str, share: float
) -> tuple[list[T], list[T], str]:
    train = read("train")
    if data.has_split(split):
        dev = read(split)
        note = f"{len(train):,} training queries, {len(dev):,} for {split}"
    else:
        kept, held = keep_and_hold(len(train), share)
        note = f"no {split} split: {len(held):,} of {len(train):,} training queries are held out for it"
        train, dev = [train[row] for row in kept], [train[row] for row in held]
    return train, dev, f"Data: {data.source.name}, {len(data.corpus):,} documents, {note}"


def _quest_task(quest: Quest, split: str, queries: list[Query]) -> Task:
    """What breaks an operator, and what a NOT excludes, is known where the atomic sets are."""
    gold = quest.gold(queries)
    task = Task(quest.source.name, split, quest.corpus, [_question(*pair) for pair in enumerate(queries)], gold)
    for kind, values in (("template", [q.template for q in queries]), ("domain", [q.domain for q in queries])):
        if any(values):
            task.groups[kind] = [value or "unknown" for value in values]
    atoms = quest.atoms
    if atoms is not None and any(query.atoms for query in queries):
        task.violators = HardNegatives.from_atoms(queries, atoms, gold)
        # A NOT's set is the template's last.
        task.negated = [
            atoms[query.atoms[-1]] if query.atoms and "not" in (query.operators or ()) else np.empty(0, np.int32)
            for query in queries
        ]
    return task


def _boolquestions_task(source: BoolQuestions, split: str, questions: list[BoolQuestion]) -> Task:
    """The listed negatives are what breaks a question's operator."""
    gold = source.gold(questions)
    return Task(
        source.source.name,
        split,
        source.corpus,
        [Question(question.qid, question.question, (question.operator,)) for question in questions],
        gold,
        violators=HardNegatives.from_listed(source.negatives(questions), gold),
        groups={"operator": [question.operator for question in questions]},
    )


def _question(index: int, query: Query) -> Question:
    try:
        marked = query.original_query or ""
        parts = gold_parts(marked) if "<mark>" in marked else None
    except ValueError as error:
        raise DataError(f"{query.where}: field 'original_query': {error}") from None
    return Question(f"q{index}", query.query, query.operators, parts)


def _negation(index: int, operator: str, word: str, first: str, second: str) -> Question:
    parts = gold_parts(f"<mark>{first}</mark> that are {word} <mark>{second}</mark>")
    return Question(f"{index}-{operator}", f"{first} that are {word} {second}", (operator,), parts)
