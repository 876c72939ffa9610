"""The embedded countries in BoolQuestions' form, so that its training and evaluation run with nothing to download."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ..core.errors import DataError
from .hard_negatives import HardNegatives
from .quest import Quest
from .rows import Row
from .tables import Source

_SPLITS = {"train": "train", "dev": "dev", "eval": "test"}


class CountryQuestions(Source):
    """The queries of one operator as questions; their negatives are the countries that break the operator."""

    name = "country questions (embedded)"

    def tables(self) -> list[str]:
        return ["corpus", *_SPLITS]

    def rows(self, table: str, *, progress: bool = True, bad: list[DataError] | None = None) -> Iterator[Row]:
        values = self._corpus() if table == "corpus" else self._questions(_SPLITS[table])
        for number, row in enumerate(values, start=1):
            yield Row(f"country questions {table}", number, row, unit=" row ")

    @cached_property
    def _quest(self) -> Quest:
        return Quest(progress=False)

    def _corpus(self) -> Iterator[dict[str, Any]]:
        return ({"docid": document.title, "doc": document.text} for document in self._quest.documents())

    def _questions(self, split: str) -> Iterator[dict[str, Any]]:
        quest = self._quest
        queries = quest.queries(split)
        violators = HardNegatives.from_atoms(queries, quest.atoms or {}, quest.gold(queries))
        for index, query in enumerate(queries):
            if query.operators is not None and len(query.operators) == 1:
                wrong = sorted(row for pool in violators[index] for row in pool)
                yield {
                    "qid": f"{split}-{index}",
                    "question": query.query,
                    "question_type": query.operators[0],
                    "positive_ctxs": [{"passage_id": title} for title in query.docs],
                    "negative_ctxs": [{"passage_id": quest.corpus.titles[row]} for row in wrong],
                }
