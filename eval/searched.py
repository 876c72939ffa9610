"""Search as a system of the comparison: what `boolbert search` ranks, and nothing else."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from boolbert.boolean.query import Query
from boolbert.data import Corpus, Document
from boolbert.data.tasks import Question
from boolbert.eval.systems import System
from boolbert.retrieval.index import Index, build_index
from boolbert.retrieval.models import SearchModel, query_parameters
from boolbert.retrieval.neighbours import BlockScorer, Ranked, Scores
from boolbert.search.many import each_once
from boolbert.search.rank import READ
from boolbert.search.searcher import BoolSearcher

NOT_FOUND = -1


class Searched(System):
    """An index as `BoolSearcher` ranks it. how: "plain" for the encoder as it is, "words" for BM25 of
    the query's conditions alone, "vectors" without evidence, "search".

    read: how many documents the document reader looks at. readings: what queries are to be read as, by their texts.
    """

    def __init__(
        self,
        name: str,
        searcher: BoolSearcher,
        how: str = "search",
        read: int = READ,
        readings: Mapping[str, Query] | None = None,
    ):
        self.name, self._searcher, self._how, self._read = name, searcher, how, read
        self._readings = readings or {}
        self.documents, self.parameters = len(searcher.index), query_parameters(searcher.model.encoder)

    def ranked(self, query: str, k: int) -> list[int]:
        """The rows of the k best documents."""
        if self._how == "plain":
            return self._searcher.rows(query, k, [])
        if self._how == "words":
            return self._searcher.rows_by_words(query, k)
        asked = self._readings.get(query, query)
        return self._searcher.rows(asked, k, evidence=self._how == "search", read=self._read)

    def search(self, questions: Sequence[Question], k: int) -> tuple[Scores, Ranked]:
        """The rows of the best documents; where fewer than k were found, NOT_FOUND stands for the others."""
        rows = np.full((len(questions), k), NOT_FOUND)
        texts = [question.text for question in questions]
        for place, found in enumerate(each_once(lambda text: self.ranked(text, k), texts, self._searcher.at_once)):
            rows[place, : len(found)] = found
        scores = np.broadcast_to(-np.arange(k, dtype=np.float32), rows.shape)
        return np.array(scores), rows

    def scorer(self, questions: Sequence[Question]) -> BlockScorer:
        """Scores that have the order of the ranking."""
        _, rows = self.search(questions, self.documents)
        table = torch.full((len(questions), self.documents), -float(self.documents))
        for own, found in zip(table, rows, strict=True):
            found = found[found != NOT_FOUND]
            own[torch.from_numpy(found)] = -torch.arange(len(found), dtype=own.dtype)
        return lambda start, end: table[:, start:end]


class TextIndex:
    """An index of texts in a folder of its own, which is deleted with this object."""

    def __init__(self, texts: Sequence[str], model: SearchModel, *, progress: bool = True):
        self._folder = tempfile.TemporaryDirectory()
        corpus = Corpus([Document(f"{row}", text) for row, text in enumerate(texts)], name="texts")
        self.index: Index = build_index(corpus, Path(self._folder.name, "index"), model, progress=progress)
