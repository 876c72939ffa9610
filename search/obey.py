"""Any embedding model made to obey NOT and OR, without training.

    encoder = obey("sentence-transformers/all-MiniLM-L6-v2")       # or any embedder
    encoder.encode_query("hotels without a pool")                  # one vector that excludes
    encoder.encode_query_parts("hotels without a pool").scores(document_vectors)

A query is taken apart into texts (search/query_reader.py), which are embedded in one batch. A document scores
max_k v_k.d - w max(0, b.d - t): v_k are what is wanted and its alternatives, b is what is excluded. Documents' vectors
are the embedder's own, and a query without NOT and OR is embedded as it is.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.boolean.clauses import split_clauses
from boolbert.boolean.query import Query
from boolbert.core.checks import as_list, check_count, check_flags
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.calibration import near_cosine, spread_rows, unrelated_cosine, unrelated_texts
from boolbert.retrieval.evidence import Evidence, evidence_of, in_bytes, unit_length
from boolbert.retrieval.evidence_bytes import Keeper, Kept, is_kept, kept_from_text, kept_in_text
from boolbert.retrieval.functions import Embed, listed, vectors_of
from boolbert.retrieval.models import bool_bert, load_encoder
from boolbert.retrieval.scoring import Question, asked_parts
from boolbert.sentence_boolbert import QueryParts

from .query_encoder import QueryVectors
from .query_reader import read as read_query
from .query_reader import with_a_wish
from .rank import READ, RankedDocuments, rank
from .reasons import Reason, reasons

Vectors = npt.NDArray[np.float32]


class Treatment(NamedTuple):
    """What a kind of NOT does to a query whose parts are texts, embedded by themselves. whole_apart: the share of
    the whole query in what is wanted; penalty: how strongly what is excluded counts (a Bool-BERT has learned its own).
    """

    whole_apart: float
    penalty: float


# The sweeps are in docs/results.md. Where a property is negated, the query's vector stays whole.
TREATMENTS = {
    "topic": Treatment(0.3, 1.0),
    "set": Treatment(0.0, 0.7),
    "property": Treatment(1.0, 0.35),
}
NEAR_SHARE = 0.2  # where `near`, t, lies between the cosine of unrelated texts, 0, and that of equal texts, 1
ONE_VECTOR = 0.3  # how much of b is taken from the one vector of `encode_query`
AT_ONCE = 200  # documents whose clauses are kept at once
PROBE, PROBED = "A quiet hotel in the hills.", 8  # a text, and how many numbers of its vector tell an encoder
PROBE_NOISE = 0.25  # by which these may differ on another machine
MADE = 64  # made sentences that tell what "near" means: MiniLM has a cosine of .282 by them, of .276 by 200
REMEMBERED = 20_000  # texts and clauses whose vectors `rerank` keeps for the next query, and what these texts say


@dataclass(frozen=True)
class EncodedTexts:
    """A query's parts as texts and as vectors."""

    reading: Query
    vectors: QueryParts

    @property
    def wanted(self) -> str:
        return self.reading.wanted

    @property
    def excluded(self) -> tuple[str, ...]:
        return tuple(span.text for span in self.reading.excluded)

    @property
    def alternatives(self) -> tuple[str, ...]:
        return tuple(span.text for span in self.reading.alternatives)

    @property
    def kind(self) -> str | None:
        """What NOT excludes: a "topic", a "set" or a "property", of which texts that answer may speak."""
        return self.reading.kind

    def scores(self, documents: Any) -> Vectors:
        """The scores of documents' vectors: (N, D) -> (N,)."""
        return self.vectors.scores(documents)


class QueryTexts(NamedTuple):
    """The texts that a query is embedded as: what it wants and its alternatives; what it excludes; and all of it, where
    that has a share in what it wants."""

    wanted: list[str]
    excluded: list[str]
    whole: list[str]
    takes_away: bool

    @classmethod
    def of(cls, reading: Query) -> "QueryTexts":
        treatment = TREATMENTS[reading.kind or "property"]
        excluded = [span.text for span in reading.excluded]
        takes_away = bool(excluded) and treatment.whole_apart < 1
        wanted = [reading.wanted if takes_away else reading.text, *(span.text for span in reading.alternatives)]
        whole = [reading.text] if takes_away and treatment.whole_apart else []
        return cls(wanted, excluded, whole, takes_away)

    @property
    def all(self) -> list[str]:
        return [*self.wanted, *self.excluded, *self.whole]


class _Text(NamedTuple):
    text: str


class _Rows(NamedTuple):
    """Vectors, of which some rows can be taken."""

    vectors: Vectors

    def __len__(self) -> int:
        return len(self.vectors)

    def rows(self, numbers: Any) -> Vectors:
        return self.vectors[numbers]


class Reranked(NamedTuple):
    """A text, its place among those that were given, its score, and the clauses that speak for and against it."""

    row: int
    score: float
    text: str
    reasons: tuple[Reason, ...]


def obey(embedder: Any, documents: Iterable[str] | None = None) -> "ObeyingEncoder":
    """Make an embedder obey: the name of a model (a folder or Hub id), a SentenceTransformer, a LangChain or LlamaIndex
    embedding, or a function from texts to vectors. documents: a sample of yours, by which is told what "near" means to
    it; made sentences if not given."""
    if isinstance(embedder, str | Path):
        embedder = load_encoder(str(embedder), quiet=True)
    embed_queries, embed_documents, is_cosine = _functions(embedder)
    texts = listed([] if documents is None else documents)
    sample = [texts[row] for row in spread_rows(len(texts))] if len(texts) > 1 else None
    vectors = None if sample is None else vectors_of(embed_documents, sample)
    return ObeyingEncoder(embed_queries, embed_documents, is_cosine=is_cosine, sample=vectors, texts=sample)


class ObeyingEncoder:
    """What `obey` returns. sample: vectors of unrelated documents, and texts: the documents, by whose clauses `rerank`
    tells how near others are; made sentences if not given."""

    def __init__(
        self,
        embed_queries: Embed,
        embed_documents: Embed,
        *,
        is_cosine: bool = True,
        sample: Vectors | None = None,
        texts: Sequence[str] | None = None,
    ):
        check_flags(is_cosine=is_cosine)
        self._embed_queries, self._embed_documents, self._is_cosine = embed_queries, embed_documents, is_cosine
        self._sample, self._texts = sample, texts
        self._size: int | None = None
        self._remembered: dict[str, Vectors] = {}
        self._known: dict[str, Kept] = {}  # what texts say, of those whose vectors are remembered
        self._keepers: set[Keeper] = set()

    def encode_document(self, texts: Iterable[str]) -> Vectors:
        """The embedder's own vectors. They are remembered for `rerank`: what goes into a store is soon found there."""
        texts = listed(texts)
        if texts and all(text in self._remembered for text in texts):  # as after `keep_clauses`
            return self._document_vectors(texts)
        vectors = self._embedded(self._embed_documents, texts)
        self._remember(texts[:REMEMBERED], vectors[:REMEMBERED].copy())  # the caller may change his
        return vectors

    def _remember(self, texts: Sequence[str], vectors: Vectors) -> None:
        new = dict(zip(texts, vectors, strict=True))
        known = {**self._remembered, **new}
        self._remembered = known if len(known) <= REMEMBERED else new

    def _embedded(self, embed: Embed, texts: Sequence[str]) -> Vectors:
        """The vectors of texts, all of one size."""
        vectors = vectors_of(embed, texts)
        size = self._size = self._size or vectors.shape[1]
        if vectors.shape[1] != size:
            raise RetrievalError(f"the embedder gave vectors of {vectors.shape[1]} numbers, and of {size} before")
        return vectors

    def encode_query(self, query: str) -> Vectors:
        """One vector, from which what is excluded is taken."""
        return self.encode_query_parts(query).vectors.vectors[0]

    def encode_query_parts(self, query: str) -> EncodedTexts:
        reading = with_a_wish(read_query(query))
        return EncodedTexts(reading, self.encode_reading(reading))

    def search_vectors(self, query: str) -> Vectors:
        """The vectors by which a store is asked: of what is wanted, and its alternatives."""
        return self.encode_reading(with_a_wish(read_query(query)), penalty=False).search_vectors

    def encode_reading(
        self, reading: Query, *, penalty: bool = True, vectors_of_texts: Mapping[str, Vectors] | None = None
    ) -> QueryParts:
        """The vectors of a query that was read, from one call of the embedder. penalty: with what documents lose that
        are near to what is excluded. vectors_of_texts: of the query's texts, where they are embedded already."""
        texts = QueryTexts.of(reading)
        check_flags(penalty=penalty)
        known = self._query_vectors(texts.all) if vectors_of_texts is None else vectors_of_texts
        vectors = np.stack([known[text] for text in texts.wanted])
        if not texts.excluded:
            return QueryParts(vectors, vectors[0], None, vectors, cosine=self._is_cosine)
        treatment, takes_away = TREATMENTS[reading.kind or "property"], texts.takes_away
        if texts.whole:
            vectors[0] = mixed(vectors[0], known[texts.whole[0]], treatment.whole_apart)
        unwanted = unit_length(np.stack([known[text] for text in texts.excluded])).mean(0)
        one = less(vectors, unwanted, ONE_VECTOR) if takes_away else vectors
        if not self._is_cosine:  # w and t are about cosines
            return QueryParts(one, vectors[0], unwanted, one)
        if not penalty:
            return QueryParts(one, vectors[0], unwanted, vectors, cosine=True)
        return QueryParts(one, vectors[0], unwanted, vectors, (treatment.penalty, self.near), cosine=True)

    def _query_vectors(self, texts: Sequence[str]) -> dict[str, Vectors]:
        """The vector of each of a query's texts, from one call of the embedder."""
        texts = list(dict.fromkeys(texts))
        return dict(zip(texts, self._embedded(self._embed_queries, texts), strict=True))

    @cached_property
    def unrelated(self) -> float:
        """The cosine of clauses that have little in common, as an index tells it by those of different documents."""
        clauses = middle_clauses(unrelated_texts(MADE) if self._texts is None else self._texts)
        if not clauses:
            return 0.0
        in_an_index, _ = in_bytes(unit_length(self._embedded(self._embed_documents, clauses)))
        return unrelated_cosine(in_an_index.astype(np.float32))

    @cached_property
    def near(self) -> float:
        """The cosine with what is excluded above which a document loses: t."""
        sample = self._sample
        if sample is None:
            sample = self._embedded(self._embed_documents, unrelated_texts(MADE))
        return near_cosine(sample, NEAR_SHARE)

    def rerank(
        self,
        query: str,
        texts: Iterable[str],
        k: int | None = None,
        *,
        read: int = READ,
        kept: Sequence[str | None] | None = None,
    ) -> list[Reranked]:
        """Texts that any search has found, by what they say, clause by clause; best first. read: how many of the best
        the document reader looks at. A text with a word that the query excludes as -word or NOT word is left out.

        kept: for each text what `keep_clauses` gave for it, or None; of these nothing is embedded. What was embedded
        for an earlier query is not embedded again, as long as it is remembered.
        """
        if k is not None:
            check_count("k", k)
        check_count("read", read, least=0)
        given = None if kept is None else as_list("kept", kept, "what keep_clauses gave for each text, or None")
        texts = listed(texts)
        if not texts:
            return []
        reading = read_query(query)
        said = self._said(texts, [None] * len(texts) if given is None else given)
        conditions = [part.text for part in asked_parts(reading)]
        of_query = self._query_vectors([*QueryTexts.of(reading).all, *conditions])
        encoded = self.encode_reading(reading, vectors_of_texts=of_query)
        vectors = np.stack([one.vector for one in said])

        def encode_parts(parts: Sequence[str]) -> Vectors:
            return unit_length(np.stack([of_query[part] for part in parts]))

        def best(parts: QueryVectors, count: int) -> Sequence[int]:
            return np.argsort(-parts.scores(vectors), kind="stable")[:count].tolist()

        if self._is_cosine:
            vectors = unit_length(vectors)
        question = Question.of(reading, encode_parts)
        evidence = Evidence.in_memory([one.evidence for one in said], self.unrelated)
        documents = RankedDocuments(
            evidence, _Rows(vectors), None, best, lambda _, rows: [_Text(texts[row]) for row in rows]
        )
        found = rank(documents, question, QueryVectors.of(encoded), k or len(texts), read=read)
        found = found._replace(scores=found.scores[: found.kept], rows=found.rows[: found.kept])
        ranked = [texts[row] for row in found.rows]
        each = zip(found.rows, found.scores, ranked, reasons(documents, question, found, ranked), strict=True)
        return [Reranked(*one) for one in each]

    def keep_clauses(self, texts: Iterable[str]) -> list[str]:
        """What each text says and its vector, as a text for the metadata of a store: `rerank` takes it back. Some 500
        characters for each clause, with vectors of 384 numbers."""
        texts, kept = listed(texts), []
        for start in range(0, len(texts), AT_ONCE):
            own = texts[start : start + AT_ONCE]
            said = self._said(own, [None] * len(own))
            keeper = Keeper(self.unrelated, self.near if self._is_cosine else 0.0, self._probe)
            kept += [kept_in_text(text, one, keeper) for text, one in zip(own, said, strict=True)]
        return kept

    @cached_property
    def _probe(self) -> tuple[float, ...]:
        """The first numbers of the vector of one text, of which the mean square is about 1."""
        vector = unit_length(self._embedded(self._embed_documents, [PROBE]))[0]
        return tuple(round(float(number), 2) for number in vector[:PROBED] * np.sqrt(len(vector)))

    def _said(self, texts: Sequence[str], kept: Sequence[str | None]) -> list[Kept]:
        """What texts say and their vectors: as it was kept or is remembered, the rest embedded."""
        if len(kept) != len(texts):
            raise RetrievalError(f"{len(texts)} texts, and what was kept of {len(kept)}; give one for each, or None")
        found: list[Kept | None] = [None] * len(texts)
        for row, content in enumerate(kept):
            if content is not None and (known := kept_from_text(content, texts[row])) is not None:
                found[row], keeper = known
                self._check_keeper(keeper)
        stale = sum(one is None and is_kept(content) for one, content in zip(found, kept, strict=True))
        if stale:
            warnings.warn(
                f"the clauses of {stale} of {len(texts)} documents were kept of other texts or by another version, and "
                "are embedded again; keep them anew",
                stacklevel=3,
            )
        remembered = self._known
        found = [remembered.get(text) if one is None else one for text, one in zip(texts, found, strict=True)]
        new = [row for row, one in enumerate(found) if one is None]
        if new:
            own = [texts[row] for row in new]
            vectors = self._document_vectors(own)
            said = evidence_of(own, lambda clauses: unit_length(self._document_vectors(clauses)))
            for row, evidence, vector in zip(new, said, vectors, strict=True):
                found[row] = Kept(evidence, vector)
            made = {texts[row]: one for row in new if (one := found[row]) is not None}
            clauses = sum(len(one.evidence.clauses) for one in (*remembered.values(), *made.values()))
            self._known = {**remembered, **made} if clauses <= REMEMBERED else made
        return [one for one in found if one is not None]

    def _check_keeper(self, keeper: Keeper) -> None:
        """Raise where another encoder has kept clauses; what it knows of itself is taken over."""
        if keeper in self._keepers:
            return
        if len(keeper.probe) != len(self._probe) or not np.allclose(keeper.probe, self._probe, atol=PROBE_NOISE):
            raise RetrievalError("clauses were kept by another encoder than this one; keep them anew")
        self._keepers.add(keeper)
        if self._texts is None:
            self.__dict__.setdefault("unrelated", keeper.unrelated)
            if self._is_cosine:
                self.__dict__.setdefault("near", keeper.near)

    def _document_vectors(self, texts: Sequence[str]) -> Vectors:
        """The embedder's own vectors, each made once."""
        known = self._remembered
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            known = {**known, **dict(zip(new, self._embedded(self._embed_documents, new), strict=True))}
            self._remember(texts, np.stack([known[text] for text in texts]))
        return np.stack([known[text] for text in texts])


def middle_clauses(texts: Iterable[str]) -> list[str]:
    """The clause in the middle of each text that has any.

    >>> middle_clauses(["A hotel. It has a pool.", ""])
    ['It has a pool']
    """
    split = ((text, split_clauses(text)) for text in texts)
    return [text[(one := found[len(found) // 2]).start : one.end] for text, found in split if found]


def mixed(wanted: Vectors, whole: Vectors, share: float) -> Vectors:
    """What is wanted with a share of the whole query, as long as it was.

    >>> mixed(np.array([2.0, 0.0]), np.array([0.0, 1.0]), 0.5).round(3).tolist()
    [1.414, 1.414]
    """
    both: Vectors = share * unit_length(whole) + (1 - share) * unit_length(wanted)
    return (unit_length(both) * np.linalg.norm(wanted)).astype(wanted.dtype)


def less(wanted: Vectors, excluded: Vectors, weight: float) -> Vectors:
    """Vectors (K, D) less what `excluded` (D,) has besides them, as long as they were: A - l (B - (A.B) A).

    >>> less(np.array([[3.0, 0.0]]), np.array([0.6, 0.8]), 0.5).round(3).tolist()
    [[2.785, -1.114]]
    """
    a, b = unit_length(wanted), unit_length(excluded)
    foreign: Vectors = b - (a @ b)[:, None] * a
    length = np.linalg.norm(wanted, axis=1, keepdims=True)
    away: Vectors = a - weight * foreign
    return (unit_length(away) * length).astype(wanted.dtype)


def _functions(embedder: Any) -> tuple[Embed, Embed, bool]:
    """How an embedder embeds queries and documents, and whether its vectors are compared by their cosine."""
    if isinstance(embedder, ObeyingEncoder) or (
        hasattr(embedder, "encode_query_parts") and bool_bert(embedder) is not None
    ):
        raise RetrievalError(f"a {type(embedder).__name__} obeys already: call its own encode_query_parts")
    if hasattr(embedder, "encode_query") and hasattr(embedder, "encode_document"):  # sentence-transformers
        is_cosine = str(getattr(embedder, "similarity_fn_name", "cosine")) != "dot"
        return embedder.encode_query, embedder.encode_document, is_cosine
    if hasattr(embedder, "embed_query") and hasattr(embedder, "embed_documents"):  # LangChain
        return lambda texts: [embedder.embed_query(text) for text in texts], embedder.embed_documents, True
    if hasattr(embedder, "get_query_embedding") and hasattr(embedder, "get_text_embedding_batch"):  # LlamaIndex
        one = embedder.get_query_embedding
        return lambda texts: [one(text) for text in texts], embedder.get_text_embedding_batch, True
    if callable(embedder):
        return embedder, embedder, True
    raise RetrievalError(
        f"a {type(embedder).__name__} is no embedder: give a model's name, a SentenceTransformer, a LangChain or "
        "LlamaIndex embedding, or a function from texts to vectors"
    )
