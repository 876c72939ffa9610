"""BoolQuestions: questions of type and, or, not, with positive and negative passages."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from ..core.errors import DataError
from .corpus import Corpus
from .gold import Gold, HardNegatives, link_gold
from .quest import Quest
from .rows import Row
from .schema import BoolQuestion, Document
from .sources import Source, open_source

SUBSETS = ("MSMARCO", "NaturalQuestions")
_COUNTRY_SPLITS = {"train": "train", "dev": "dev", "eval": "test"}


class BoolQuestions:
    """The data set on the Hub ("ustc-zhangzm/BoolQuestions"), its folder or that of a subset, or (None) the countries.

    With `strict`, passages that the corpus lacks and ids that stand for two passages are errors.
    """

    def __init__(
        self,
        source: str | Path | Source | None = None,
        *,
        subset: str = "MSMARCO",
        strict: bool = False,
        progress: bool = True,
    ):
        if subset not in SUBSETS:
            raise ValueError(f"subset must be one of {SUBSETS}, got {subset!r}")
        self.source = CountryQuestions() if source is None or source == "countries" else open_source(source)
        self.subset = subset
        self.strict = strict
        self.progress = progress

    def has_split(self, split: str) -> bool:
        return self.source.find(f"{self.subset}/{split}", split) is not None

    def questions(self, split: str = "eval") -> list[BoolQuestion]:
        table = self.source.table(f"{self.subset}/{split}", split, what="split")
        return list(map(BoolQuestion.from_row, self.source.rows(table, progress=self.progress)))

    def passages(self) -> Iterator[Document]:
        """The passages, one at a time, titled by their id."""
        return map(passage, self.source.rows(self._corpus_table, progress=self.progress))

    @cached_property
    def corpus(self) -> Corpus:
        """All passages in memory: 8.8 million for MS MARCO, so mind their size."""
        return Corpus(self.passages(), name=self.source.file_of(self._corpus_table), strict=self.strict)

    def gold(self, questions: list[BoolQuestion]) -> Gold:
        """The positive passages of the questions as rows of the corpus."""
        return self._link(questions, [question.positives for question in questions], "positive_ctxs.passage_id")

    def negatives(self, questions: list[BoolQuestion]) -> Gold:
        """The negative passages that the data lists, in the same form: hard negatives for a sampler."""
        return self._link(questions, [question.negatives for question in questions], "negative_ctxs.passage_id")

    def _link(self, questions: list[BoolQuestion], ids: list[tuple[str, ...]], field: str) -> Gold:
        places = [question.where for question in questions]
        return link_gold(ids, self.corpus, places=places, field=field, strict=self.strict)

    @property
    def _corpus_table(self) -> str:
        return self.source.table(f"{self.subset}-corpus/corpus", f"{self.subset}/corpus", "corpus")


def passage(row: Row) -> Document:
    """A passage. Where it has a title (NaturalQuestions), its text is "title [SEP] doc", as in the published runs."""
    title = row.optional_text("title")
    text = row.text("doc", empty=True)
    return Document(row.identifier("docid"), f"{title} [SEP] {text}" if title else text)


class CountryQuestions(Source):
    """The embedded countries in the same form, so that nothing has to be downloaded: queries of one operator as
    questions; their negatives are the countries that break it."""

    name = "country questions (embedded)"

    def tables(self) -> list[str]:
        return ["corpus", *_COUNTRY_SPLITS]

    def rows(self, table: str, *, progress: bool = True, bad: list[DataError] | None = None) -> Iterator[Row]:
        quest = Quest(progress=False)
        documents = ({"docid": document.title, "doc": document.text} for document in quest.documents())
        values = documents if table == "corpus" else self._questions(quest, _COUNTRY_SPLITS[table])
        for number, row in enumerate(values, start=1):
            yield Row(f"country questions {table}", number, row, unit=" row ")

    def _questions(self, quest: Quest, split: str) -> Iterator[dict[str, Any]]:
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
