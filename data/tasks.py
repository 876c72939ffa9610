"""What is evaluated: queries with their gold, what they exclude, and the groups they are reported by."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from boolbert.boolean import OPERATORS
from boolbert.data import BoolQuestions, Corpus, DataError, HardNegatives, Query, Quest
from boolbert.data.gold import Rows
from boolbert.boolean.decompose import Parts, gold_parts
from boolbert.errors import EvaluationError


@dataclass(frozen=True)
class Question:
    """A query as the systems see it; operators and parts where the data set tells them."""

    id: str
    text: str
    operators: tuple[str, ...] | None = None
    parts: Parts | None = None


@dataclass
class Task:
    """Queries over a corpus. `gold`, `violating` and `negated` are rows of it, one collection a query."""

    name: str
    split: str
    corpus: Corpus
    questions: list[Question]
    gold: Sequence[Rows]
    violating: list[list[int]] | None = None  # documents that break the query's operators
    negated: list[list[int]] | None = None  # documents in the set that a NOT excludes
    groups: dict[str, list[str]] = field(default_factory=dict)  # "template" -> each query's
    pairs: "list[Pair]" = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.questions)


@dataclass(frozen=True)
class Pair:
    """Two queries that differ in a negation, and for each a document that answers it and not the other."""

    questions: tuple[Question, Question]
    rows: tuple[int, int]


def quest_task(data: str | Path | None, split: str, limit: int | None = None, *, progress: bool = True) -> Task:
    """A split of QUEST-format data. What its queries exclude is known where the atomic sets are."""
    quest = Quest(data, progress=progress)
    try:
        queries = quest.queries(split)[:limit]
    except DataError as error:
        raise EvaluationError(f"{error}; query splits: {', '.join(quest.splits) or 'none'}") from None
    gold = quest.gold(queries)
    rows = [gold[index] for index in range(len(queries))]
    task = Task(quest.source.name, split, quest.corpus, [_question(i, q) for i, q in enumerate(queries)], rows)
    if any(query.template for query in queries):
        task.groups["template"] = [query.template or "unknown" for query in queries]
    if any(query.domain for query in queries):
        task.groups["domain"] = [query.domain or "unknown" for query in queries]
    if quest.atoms is not None and any(query.atoms for query in queries):
        atoms = quest.atoms
        pools = HardNegatives.from_atoms(queries, atoms, gold)
        task.violating = [sorted({int(row) for pool in pools[i] for row in pool}) for i in range(len(queries))]
        task.negated = [
            atoms[query.atoms[-1]].tolist() if query.atoms and "not" in (query.operators or ()) else []
            for query in queries
        ]
        task.pairs = negation_pairs(queries, rows, task.violating)
    return task


def boolquestions_task(
    data: str | Path | None, split: str, subset: str = "MSMARCO", limit: int | None = None, *, progress: bool = True
) -> Task:
    """BoolQuestions: the positives are gold, the given negatives are what breaks a question's operator."""
    source = BoolQuestions(data, subset=subset, progress=progress)
    questions = source.questions(split)[:limit]
    gold, negatives = source.gold(questions), source.negatives(questions)
    return Task(
        source.source.name,
        split,
        source.corpus,
        [Question(question.qid, question.question, (question.operator,)) for question in questions],
        [gold[index] for index in range(len(questions))],
        violating=[negatives[index].tolist() for index in range(len(questions))],
        groups={"operator": [question.operator for question in questions]},
    )


def negation_pairs(queries: Sequence[Query], gold: Sequence[Rows], violating: Sequence[Sequence[int]]) -> list[Pair]:
    """From each "A that are not B" two queries, that one and "A that are also B", with the first document of each."""
    pairs = []
    for index, query in enumerate(queries):
        if query.template != "_ that are not _" or not query.original_query:
            continue
        if not len(gold[index]) or not len(violating[index]):
            continue
        first, second = (part.text for part in gold_parts(query.original_query))
        marked = [f"<mark>{first}</mark> that are {word} <mark>{second}</mark>" for word in ("not", "also")]
        without, both = (
            Question(
                f"{index}-{operator}", text.replace("<mark>", "").replace("</mark>", ""), (operator,), gold_parts(text)
            )
            for operator, text in zip(("not", "and"), marked, strict=True)
        )
        pairs.append(Pair((without, both), (int(gold[index][0]), int(violating[index][0]))))
    return pairs


def operator_labels(question: Question) -> list[int] | None:
    """The operators as 0/1 labels; None where they are unknown."""
    return None if question.operators is None else [int(name in question.operators) for name in OPERATORS]


def _question(index: int, query: Query) -> Question:
    parts = gold_parts(query.original_query) if query.original_query else None
    return Question(f"q{index}", query.query, query.operators, parts)
