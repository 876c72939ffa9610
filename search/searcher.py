"""Ask an index: text in, ranked documents out.

torch is imported where it is used: a cached model (search/cached_model.py) answers without it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from boolbert.boolean import OPERATORS, from_multi_hot, multi_hot
from boolbert.boolean.query import Query, listed
from boolbert.core.checks import as_list, check_count, check_flags, check_number, check_whole
from boolbert.core.errors import RetrievalError, error_at
from boolbert.retrieval.calibration import spread_rows
from boolbert.retrieval.countries_index import default_index
from boolbert.retrieval.evidence import unit_length
from boolbert.retrieval.exclusion_line import ExclusionLine
from boolbert.retrieval.index import Index
from boolbert.retrieval.int8_encoder import threads
from boolbert.retrieval.models import SearchModel, is_cosine, load_model, prompt_of, side_modules
from boolbert.retrieval.scoring import Question, score_by_words, word_scores

from .answer import Answer, hits_of, promise_of
from .cached_model import CachedModel, cached_for
from .country_facts import named_rows
from .document_search import Candidate, DocumentSearch
from .many import each_once
from .number_filters import NO_NUMBERS, read_numbers
from .opening import open_index
from .query_encoder import QueryEncoder, QueryVectors, encoded_query
from .query_reader import as_it_is, check_query, read, read_for_caller, with_a_wish
from .rank import READ, Limit, RankedDocuments, Ranking, rank
from .reasons import reasons

if TYPE_CHECKING:
    from boolbert.retrieval.stores import VectorStore

    from .obey import ObeyingEncoder

T = TypeVar("T")


class BoolSearcher:
    """A model and an index of documents.

        searcher = BoolSearcher()                            # the default model, over the embedded countries
        searcher = BoolSearcher("runs/quest", "my_index")    # a folder or Hub id, and a folder of `boolbert index`
        for hit in searcher.search("landlocked countries that are not in Africa", k=5):
            print(hit.rank, hit.title)

    Without a model, the one that the index was made with. The index may be a vector store: "films.db" (Milvus Lite),
    "films.faiss", or what `open_store("http://host:19530", "films")` gives.

    The default model, and one that `boolbert search` has cached, is computed by ONNX Runtime from the start, and torch
    is not imported until something needs it; not so where a GPU may compute the queries, or `device` says otherwise.

    onnx: let ONNX Runtime compute the queries, which takes half of torch's time on a CPU. The model is exported for it
    when the searcher is opened, in a few seconds: what is changed in it later is seen by `explain` alone.
    """

    def __init__(
        self,
        model: str | Path | SearchModel | CachedModel | None = None,
        index: "str | Path | Index | VectorStore | None" = None,
        *,
        device: str | None = None,
        progress: bool = True,
        onnx: bool = False,
    ):
        check_flags(progress=progress, onnx=onnx)
        if isinstance(index, str | Path):
            index = open_index(index)
        if model is None or isinstance(model, str | Path):
            name = index.model if model is None and index is not None else model
            model = cached_for(name, index, device) or load_model(name, device=device)
        self.model = model
        asked: Any = model  # an index takes a cached model too
        index = index if index is not None else default_index(asked, progress=progress)
        index.check_model(asked)
        device_of_model = None if isinstance(model, CachedModel) else model.encoder.device
        self.documents = DocumentSearch(index, device_of_model)
        self.queries = _query_encoder(model)
        self._is_cosine = is_cosine(model.encoder) if self.queries is None else self.queries.is_cosine
        if onnx:
            self.use_onnx()

    @property
    def index(self) -> "Index | VectorStore":
        return self.documents.index

    def use_onnx(self) -> None:
        """Let ONNX Runtime compute the queries from now on."""
        if isinstance(self.model, CachedModel):  # it does already
            return
        from .export import exported_encoder

        self.queries = exported_encoder(self.model)

    def search(
        self,
        query: str | Query,
        k: int = 10,
        operators: Sequence[Any] | None = None,
        *,
        not_weight: float | None = None,
        excluded: Collection[int] | None = None,
        where: str | None = None,
        evidence: bool = True,
        not_kind: str | None = None,
        violations: float | None = None,
        read: int = READ,
        numbers: bool = True,
    ) -> Answer:
        """The k best documents. query: a text, or one that was read already, such as `boolbert.read` gives it.

        operators: names such as ["and", "not"]; [] switches every gate off, which makes the query encoder a plain BERT;
        None: as the query is read (search/query_reader.py). not_weight: how strongly what NOT
        excludes is taken away, instead of the strength that the model has learned. excluded: the numbers of the words
        that NOT excludes, instead of those that are read; they count from 0 in `read(query).words`. where: a
        filter on the documents' fields, such as "year > 1990 and genre = western". evidence: ask what documents say,
        clause by clause, where the index knows it and not every gate is switched off. not_kind: NOT excludes a
        "topic", a "set" or a "property" of the answer, of which texts may speak; if not given, the reader tells,
        and with a `not_weight` it is a set. violations: 0.05 leaves out documents until at most 5%
        of the others are expected to have what is excluded, in a calibrated index (search/calibrating.py). read: how
        many of the best documents the document reader looks at; 0 for none, which takes less time. numbers: bounds such
        as "under 20 minutes" and "since June 2023" filter where a field of numbers or dates fits
        (search/number_filters.py).
        """
        check_count("k", k)
        check_count("read", read, least=0)
        check_flags(evidence=evidence, numbers=numbers)
        if violations is not None:
            check_number("violations", violations)
        reading, vectors = self._read(query, operators, excluded, not_weight, not_kind)
        parts = self._scaled_parts(vectors)
        has_evidence = evidence and operators != [] and self.has_evidence
        reading, bounds = read_numbers(reading, self._fields) if numbers and operators != [] else (reading, NO_NUMBERS)
        where = bounds.where(where)
        reading = _as_asked(reading, vectors, has_evidence)
        if reading.typed and not has_evidence:
            near = f"what is near to {listed(reading.excluded, 'or')} only ranks lower"
            reading = replace(reading, notes=(*reading.notes, f"nothing is left out: without evidence, {near}"))
        limit = None if violations is None else self._limit(violations, has_evidence)
        promise, kept, left_out, counted_all = None, k, 0, True
        if has_evidence:
            question = self._question(reading, parts)
            strength = 1.0 if not_weight is None else not_weight / (question.weights.penalty or 1.0)
            ranking, found = self._ranked(question, parts, k, where, strength=strength, limit=limit, read=read)
            kept, left_out, counted_all = ranking.kept, ranking.left_out, ranking.counted_all
            if limit is not None:
                promise = promise_of(limit, ranking, reading, self.documents.was_calibrated(limit.line))
        else:
            with_a_wish(reading)
            found = self.documents.find(parts, k, where)
        violating = self.violating(reading)
        hits, unsure = (hits_of(part, parts, violating) for part in (found[:kept], found[kept:]))
        return Answer(reading, hits, parts, promise, unsure, left_out, bounds, counted_all)

    def search_many(self, queries: Iterable[str], k: int = 10, **how: Any) -> list[Answer]:
        """The answers to many queries, in their order: those that `search` gives with the same settings, in less time
        where they are computed on a CPU.

        An error says which query it is about: "query 3: ...".
        """
        asked = as_list("queries", queries, "texts")
        for number, query in enumerate(asked, start=1):
            with error_at(f"query {number}"):
                check_query(query)
        found, each = list[Answer](), self.answers(asked, k, **how)
        for number in range(1, len(asked) + 1):
            with error_at(f"query {number}"):
                found.append(next(each))
        return found

    def answers(self, queries: Sequence[str], k: int = 10, **how: Any) -> Iterator[Answer]:
        """As `search_many`, one by one as they come. An error is that of `search`."""
        return each_once(lambda query: self.search(query, k, **how), queries, self.at_once)

    @property
    def at_once(self) -> int:
        """How many queries are answered at once. A GPU answers each as fast as it can by itself."""
        return 1 if str(self.documents.device or "cpu") != "cpu" else threads()

    def rows(
        self,
        query: str | Query,
        k: int,
        operators: Sequence[Any] | None = None,
        *,
        evidence: bool = True,
        read: int = READ,
    ) -> list[int]:
        """The rows of the k best documents of an index, in the order of `search`, without what is shown of them."""
        assert isinstance(self.index, Index)
        check_count("k", k)
        check_count("read", read, least=0)
        check_flags(evidence=evidence)
        reading, vectors = self._read(query, operators, None)
        parts = self._scaled_parts(vectors)
        if not evidence or operators == [] or not self.has_evidence:
            with_a_wish(reading)
            return self.documents.rank(self.index, parts, k)[1]
        reading, bounds = read_numbers(reading, self._fields)
        question = self._question(reading, parts)
        look = partial(rank, question=question, parts=parts, k=k, read=read)
        found = self.documents.ranked(bounds.where(None), look, question, parts, k)
        return found.rows[: found.kept]

    def rows_by_words(self, query: str, k: int) -> list[int]:
        """The rows of the k best documents of an index by nothing but the words of the query's conditions: BM25."""
        assert isinstance(self.index, Index)
        assert self.index.evidence is not None
        check_count("k", k)
        question, _ = self.question(query)
        scores = score_by_words(question, word_scores(self.index.evidence, question))
        return np.argsort(-scores, kind="stable")[:k].tolist()

    def read(
        self, query: str, operators: Sequence[Any] | None = None, excluded: Collection[int] | None = None
    ) -> Query:
        """How a query is read: its cues, which operators are on and who says so, what is excluded or alternative."""
        return _as_asked(*self._read(query, operators, excluded), self.has_evidence)

    def _read(
        self,
        query: str | Query,
        operators: Sequence[Any] | None,
        excluded: Collection[int] | None,
        not_weight: float | None = None,
        not_kind: str | None = None,
    ) -> tuple[Query, QueryVectors]:
        """How a query is read, and its vectors."""
        given, query = (query, query.text) if isinstance(query, Query) else (None, query)
        check_query(query, not_kind)
        labels = _operator_labels(operators)
        if not_weight is not None:
            check_number("not_weight", not_weight)
        if excluded is not None:
            excluded = as_list("excluded", excluded, "the numbers of words")
            for number in excluded:
                check_whole("each number in excluded", number)
        boolean = {"operators": labels if any(labels or ()) else None, "excluded": excluded, "not_weight": not_weight}
        for name, value in boolean.items():
            if value is not None and self.queries is None:
                raise RetrievalError(f"{name} cannot be given: the query encoder of {self.model.name} is no Bool-BERT")
        if labels is None and excluded is None:
            found = read(query, not_kind) if given is None else given
        elif excluded is None and not any(labels or ()):
            found = as_it_is(query)
        else:
            found = read_for_caller(query, from_multi_hot(labels) if labels else (), excluded)
        if not_kind is not None or (not_weight is not None and found.excluded):
            found = replace(found, kind=not_kind or "set")
        if self.queries is not None:
            return encoded_query(self.queries, found, labels, not_weight)
        found = replace(found, truncated=found.truncated or self._is_cut(query))
        vectors = QueryVectors.of(self._obeying.encode_reading(found))
        given, size = vectors.wanted.shape[-1], self.index.about().size
        if given != size:  # of a function, which has its name alone to be known by
            raise RetrievalError(f"{self.model.name}: gives vectors of {given} numbers; those of the index have {size}")
        return found, vectors

    def _fields(self) -> Mapping[str, str]:
        """The documents' fields and their kinds."""
        return self.index.about().fields

    @cached_property
    def _obeying(self) -> "ObeyingEncoder":
        """A plain encoder made to obey. What "near" means to it is told by the index's own documents."""
        from boolbert.retrieval.batches import QUERY_BATCH, encode_inputs

        from .obey import ObeyingEncoder

        def embed(task: str) -> Callable[[Sequence[str]], npt.NDArray[np.float32]]:
            return lambda texts: encode_inputs(self.model.encoder, texts, task, QUERY_BATCH)

        vectors, rows = self.documents.vectors
        sample = vectors.rows(rows[spread_rows(len(rows))]).astype(np.float32) if len(rows) > 1 else None
        return ObeyingEncoder(embed("query"), embed("document"), is_cosine=self._is_cosine, sample=sample)

    def violating(self, reading: Query) -> frozenset[int] | None:
        """The rows of the documents that a query excludes, None where the data does not know."""
        if not reading.excluded or not isinstance(self.index, Index):
            return None
        return named_rows(self.index, [span.text for span in reading.excluded])

    @property
    def is_boolean(self) -> bool:
        """Whether queries go through a Bool-BERT."""
        return self.queries is not None

    def _is_cut(self, query: str) -> bool:
        """Whether a query is longer than a plain encoder reads."""
        prompt = prompt_of(self.model.encoder, "query") or ""
        return self._tokenizer is not None and bool(self._tokenizer.encode(prompt + query).overflowing)

    @cached_property
    def _tokenizer(self) -> Any:
        """A plain encoder's; None where it is not transformers' own, which cuts nothing."""
        if not hasattr(getattr(side_modules(self.model.encoder, "query")[0], "tokenizer", None), "backend_tokenizer"):
            return None
        from tokenizers import Tokenizer

        from .export import tokenizer_of

        return Tokenizer.from_str(tokenizer_of(self.model.encoder))

    @property
    def has_evidence(self) -> bool:
        """Whether it can tell what documents say, clause by clause."""
        return self.index.about().evidence

    @property
    def line(self) -> ExclusionLine:
        """What was calibrated on the documents; a RetrievalError where nothing was."""
        about = self.index.about()
        return ExclusionLine.of_json(about.line, self.index.name, about.encoder)

    def question(self, query: str) -> tuple[Question, QueryVectors]:
        """A query as evidence is asked: its conditions, and the vectors of the whole."""
        reading, vectors = self._read(query, None, None)
        parts = self._scaled_parts(vectors)
        return self._question(reading, parts), parts

    def _question(self, reading: Query, parts: QueryVectors) -> Question:
        def encode(texts: Sequence[str]) -> npt.NDArray[np.float32]:
            """The vectors of a query's parts, of length 1: those of a plain encoder."""
            if self.queries is None:
                from boolbert.retrieval.batches import encode_queries

                return unit_length(encode_queries(self.model.encoder, texts, one_vector=True))
            if not reading.operators and texts == [reading.text]:
                return parts.vectors  # it is encoded already
            return unit_length(self.queries.plain_vectors(texts))

        return Question.of(reading, encode)

    def _ranked(
        self, question: Question, parts: QueryVectors, k: int, where: str | None, **how: Any
    ) -> tuple[Ranking, list[Candidate]]:
        """The best documents by what they say, each with its reasons. how: see `rank`."""

        def look(documents: RankedDocuments) -> tuple[Ranking, list[Candidate]]:
            ranking = rank(documents, question, parts, k, **how)
            found = documents.candidates(ranking.scores, ranking.rows)
            each = reasons(documents, question, ranking, [one.text for one in found])
            return ranking, [one._replace(reasons=own) for one, own in zip(found, each, strict=True)]

        return self.documents.ranked(where, look, question, parts, k)

    def _limit(self, violations: float, has_evidence: bool) -> Limit:
        """The line for a promise, as the index was calibrated."""
        if not has_evidence:
            raise RetrievalError(
                "violations cannot be promised by the documents' vectors alone: it needs an index with evidence, and "
                "operators that are not switched off"
            )
        return Limit(self.line, self.line.at(violations), violations)

    def _scaled_parts(self, parts: QueryVectors) -> QueryVectors:
        """The query's vectors, what it wants and what it excludes, all of one length."""
        if self._is_cosine:
            parts = parts._replace(vectors=unit_length(parts.vectors), wanted=unit_length(parts.wanted))
        if parts.excluded is None:
            return parts
        return parts._replace(excluded=unit_length(parts.excluded) * np.linalg.norm(parts.wanted))


def _query_encoder(model: SearchModel | CachedModel) -> QueryEncoder | None:
    """What encodes the queries of a model; None for a plain encoder."""
    if isinstance(model, CachedModel):
        return model.queries
    from .export import torch_encoder

    return None if model.bert is None else torch_encoder(model.encoder)


def _as_asked(reading: Query, vectors: QueryVectors, has_evidence: bool) -> Query:
    """A reading without its alternatives where neither evidence nor a vector of its own asks for each."""
    return reading if has_evidence or len(vectors.vectors) > 1 else reading.without_alternatives()


def cached_searcher(name: str | None, index: "str | VectorStore | None", device: str | None) -> BoolSearcher | None:
    """A searcher for a model's folder, or as without a name, that does not open the model; None: it is not cached. For
    one query this is quicker than to open the model on a GPU, too."""
    documents = open_index(index) if isinstance(index, str) else index
    name = name if name is not None or documents is None else documents.model
    model = cached_for(name, documents, "cpu" if device is None else device)
    return None if model is None else BoolSearcher(model, documents)


def _operator_labels(operators: Sequence[Any] | None) -> list[int] | None:
    """Operators as the caller gave them, as 0/1 for and, or, not.

    >>> _operator_labels(["not", "and"]), _operator_labels([0, 1, 0]), _operator_labels([]), _operator_labels(None)
    ([1, 0, 1], [0, 1, 0], [0, 0, 0], None)
    """
    if operators is None:
        return None
    operators = as_list("operators", operators, f"names out of {', '.join(OPERATORS)}")
    if all(name in OPERATORS for name in operators):
        return multi_hot(operators)
    from boolbert.sentence_boolbert import operator_row

    return operator_row(operators)
