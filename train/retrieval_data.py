"""The data of stages 2 and 3 in one form: texts, gold, operators, and the groups that are reported."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boolbert.data import BoolQuestion, BoolQuestions, Corpus, DataError, Gold, HardNegatives, Query, Quest
from boolbert.data.gold import Rows
from boolbert.data.split import keep_and_hold

# As `python -m boolbert.data.split` does, whose files hold the same queries.
HELD_OUT = 0.2


@dataclass
class Split:
    """Queries with their gold documents; `operators` is None for a query whose operators are unknown."""

    texts: list[str]
    gold: Gold
    operators: list[list[int] | None]
    groups: list[str]  # the template or the operator
    violating: HardNegatives | None = None  # documents that break a query's operator
    negated: list[Rows] | None = None  # documents in the set that a NOT excludes

    def __len__(self) -> int:
        return len(self.texts)


@dataclass
class RetrievalData:
    corpus: Corpus
    train: Split
    dev: Split
    note: str


def quest_data(source: str | None, *, dev_split: str = "dev", dev_share: float = HELD_OUT) -> RetrievalData:
    """QUEST-format data. Where there is no dev split, a share of the training queries is held out, always the same."""
    quest = Quest(source)
    train = quest.queries("train")
    if any(split in quest.splits for split in (dev_split, "dev", "val", "validation")):
        dev = quest.queries(dev_split)
        note = f"{len(train):,} training queries, {len(dev):,} for {dev_split}"
    else:
        kept, held = held_out(len(train), dev_share)
        train, dev = [train[row] for row in kept], [train[row] for row in held]
        note = f"no {dev_split} split: {len(dev):,} of {len(train) + len(dev):,} training queries are held out for it"
    return RetrievalData(
        quest.corpus,
        _quest_split(quest, train),
        _quest_split(quest, dev),
        f"Data: {quest.source.name}, {len(quest.corpus):,} documents, {note}",
    )


def boolquestions_data(
    source: str | None, *, subset: str = "MSMARCO", dev_split: str = "dev", dev_share: float = HELD_OUT
) -> RetrievalData:
    """BoolQuestions; its given negatives are the violating ones."""
    data = BoolQuestions(source, subset=subset)
    train = data.questions("train")
    try:
        dev = data.questions(dev_split)
        note = f"{len(train):,} training questions, {len(dev):,} for {dev_split}"
    except DataError as error:
        if "no split" not in str(error):
            raise
        kept, held = held_out(len(train), dev_share)
        train, dev = [train[row] for row in kept], [train[row] for row in held]
        note = f"no {dev_split} split: {len(dev):,} of {len(train) + len(dev):,} training questions are held out for it"
    return RetrievalData(
        data.corpus,
        _boolquestions_split(data, train),
        _boolquestions_split(data, dev),
        f"Data: {data.source.name}, {len(data.corpus):,} passages, {note}",
    )


def held_out(count: int, share: float) -> tuple[list[int], list[int]]:
    """Rows to keep and rows to hold out, both in order; the same for every seed.

    >>> kept, held = held_out(10, 0.2)
    >>> len(kept), len(held), sorted(kept + held) == list(range(10))
    (8, 2, True)
    """
    if not 0 < share < 1 or count < 2:
        raise DataError(f"a share of {share} of {count} queries cannot be held out; it must be between 0 and 1")
    return keep_and_hold(count, max(1, round(count * share)))


def _boolquestions_split(data: BoolQuestions, questions: list[BoolQuestion]) -> Split:
    gold = data.gold(questions)
    return Split(
        [question.question for question in questions],
        gold,
        [question.labels() for question in questions],
        [question.operator for question in questions],
        HardNegatives.from_given(data.negatives(questions), gold),
    )


def _quest_split(quest: Quest, queries: Sequence[Query]) -> Split:
    gold = quest.gold(queries)
    atoms = quest.atoms
    known = atoms is not None and any(query.atoms for query in queries)
    return Split(
        [query.query for query in queries],
        gold,
        [None if query.template is None else query.labels() for query in queries],
        [query.template or "unknown" for query in queries],
        HardNegatives.from_atoms(queries, atoms, gold) if atoms is not None and known else None,
        [_negated(query, atoms) for query in queries] if atoms is not None and known else None,
    )


def _negated(query: Query, atoms: dict[str, Rows]) -> Rows:
    """The members of the set that a NOT excludes, which is the template's last."""
    if not query.atoms or "not" not in (query.operators or ()):
        return np.empty(0, np.int32)
    return atoms[query.atoms[-1]]
