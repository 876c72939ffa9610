"""BoolQuestions: questions of type and, or, not, with positive and negative passages."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from .corpus import Corpus
from .country_questions import CountryQuestions
from .gold import Gold, link_gold
from .rows import Row
from .schema import BoolQuestion, Document
from .sources import open_source
from .tables import Source, find_table, first_row, has_table

SUBSETS = ("MSMARCO", "NaturalQuestions")


class BoolQuestions:
    """The data set on the Hub ("ustc-zhangzm/BoolQuestions"), its folder or that of a subset, or (None) the countries.

        data = BoolQuestions("path/to/BoolQuestions", subset="MSMARCO")
        for question in data.questions("eval"): ...

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
        if source is None or source == "countries":
            source = CountryQuestions()
        self.source: Source = open_source(source) if isinstance(source, str | Path) else source
        self.subset = subset
        self.strict = strict
        self.progress = progress

    def has_split(self, split: str) -> bool:
        return has_table(self.source, self._names(split))

    def questions(self, split: str = "eval") -> list[BoolQuestion]:
        table = find_table(self.source, self._names(split), "split")
        return list(map(BoolQuestion.from_row, self.source.rows(table, progress=self.progress)))

    def passages(self) -> Iterator[Document]:
        """The passages, one at a time, titled by their id."""
        return map(passage, self.source.rows(self._corpus_table, progress=self.progress))

    @cached_property
    def corpus(self) -> Corpus:
        """All passages in memory: 8.8 million for MS MARCO, so mind their size."""
        name = first_row(self.source, self._corpus_table).file
        return Corpus(self.passages(), name=name, strict=self.strict)

    def gold(self, questions: list[BoolQuestion]) -> Gold:
        """The positive passages of the questions as rows of the corpus."""
        return self._link(questions, [question.positives for question in questions], "positive_ctxs.passage_id")

    def negatives(self, questions: list[BoolQuestion]) -> Gold:
        """The negative passages that the data lists, in the same form: hard negatives for a sampler."""
        return self._link(questions, [question.negatives for question in questions], "negative_ctxs.passage_id")

    def _link(self, questions: list[BoolQuestion], ids: list[tuple[str, ...]], field: str) -> Gold:
        places = [question.where for question in questions]
        return link_gold(ids, self.corpus, places=places, field=field, strict=self.strict)

    def _names(self, split: str) -> list[str]:
        return [f"{self.subset}/{split}", split]

    @property
    def _corpus_table(self) -> str:
        return find_table(self.source, [f"{self.subset}-corpus/corpus", f"{self.subset}/corpus", "corpus"], "table")


def passage(row: Row) -> Document:
    """A passage. Where it has a title (NaturalQuestions), its text is "title [SEP] doc", as in the published runs."""
    title = row.text("title", optional=True, empty=True)
    text = row.text("doc", empty=True)
    return Document(row.identifier("docid"), f"{title} [SEP] {text}" if title else text)
