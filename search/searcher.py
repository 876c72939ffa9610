"""Ask an index: text in, ranked documents out."""

import copy
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from boolbert.boolean import find_cues, from_multi_hot, multi_hot, read_search_box
from boolbert.core.errors import BoolBertError, RetrievalError, first_line
from boolbert.retrieval.batches import encode_queries
from boolbert.retrieval.evidence import PENALTY, Evidence, Question
from boolbert.retrieval.hybrid import DEPTH, WordSearch, fuse_scored
from boolbert.retrieval.index import STORE, Index, default_index
from boolbert.retrieval.models import SearchModel, default_model, is_cosine, load_model, prompt_of, side_modules
from boolbert.retrieval.neighbours import best_of, block_size, check_k, check_shapes, dot_products, top_k
from boolbert.retrieval.stores import FileStore, VectorStore, open_store
from boolbert.retrieval.stores.file_store import Snapshot
from boolbert.retrieval.stores.where import fitted_filter

from .closest import Candidate, QueryVectors, closest, far_enough, in_store
from .known import named_rows
from .program import SPANS, Found, Program, agree, onnx_program
from .reading import QueryReading, Span, Word, with_cues, with_roles, word_at, words_in, words_of
from .weighing import Reason, conditions_of, reasons, weigh

# Who decides which operators are on.
CALLER, MODEL, LEXICON, NOBODY = "the caller", "the model's gate", "the cue lexicon", "nobody: a plain encoder"
SEARCH_BOX = "the search-box syntax"


@dataclass(frozen=True)
class Hit:
    """A found document. row: its place in an index; None in a store, where only its id is known.

    wanted, excluded: its dot products with what the query wants and with what it excludes, both as long as the query's
    vector; excluded is None where nothing is. violates: whether it is excluded, None where the data does not know.
    reasons: the clauses that speak for and against it, where the index has evidence.
    """

    rank: int
    score: float
    row: int | None
    title: str
    text: str
    wanted: float
    excluded: float | None = None
    violates: bool | None = None
    id: str | None = None
    reasons: tuple[Reason, ...] = ()

    @property
    def key(self) -> int | str | None:
        """Identifies the document in its collection: its row, or in a store its id."""
        return self.id if self.row is None else self.row


@dataclass(frozen=True)
class Answer:
    """The hits of a query, best first, and how it was read."""

    reading: QueryReading
    hits: tuple[Hit, ...]

    @property
    def query(self) -> str:
        return self.reading.query

    @property
    def operators(self) -> tuple[str, ...]:
        return self.reading.operators

    @property
    def decided_by(self) -> str:
        return self.reading.decided_by

    @property
    def cues(self) -> tuple[Span, ...]:
        return self.reading.cues

    @property
    def excluded_words(self) -> tuple[Span, ...]:
        return self.reading.excluded

    @property
    def alternatives(self) -> tuple[Span, ...]:
        return self.reading.alternatives

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]

    def as_json(self) -> dict[str, Any]:
        return {**self.reading.as_json(), "hits": [asdict(hit) for hit in self.hits]}


class BoolSearcher:
    """A model and an index of documents.

        searcher = BoolSearcher()                            # the newest run, over the embedded countries
        searcher = BoolSearcher("runs/quest", "my_index")    # a folder or Hub id, and a folder of `boolbert index`
        for hit in searcher.search("landlocked countries that are not in Africa", k=5):
            print(hit.rank, hit.title)

    Without a model, the one that the index was made with. The index may be a vector store: "films.db" (Milvus Lite),
    "films.faiss", or what `open_store("http://host:19530", "films")` gives.

    onnx: let ONNX Runtime compute the queries, which takes half of torch's time on a CPU. The model is exported for it
    when the searcher is opened, in a few seconds: what is changed in it later is seen by `explain` alone.
    """

    _program: Program | None = None  # what is asked in the model's place

    def __init__(
        self,
        model: str | Path | SearchModel | None = None,
        index: str | Path | Index | VectorStore | None = None,
        *,
        device: str | None = None,
        progress: bool = True,
        onnx: bool = False,
    ):
        if isinstance(index, str | Path):
            index = open_index(index)
        if model is None and index is not None:
            model = model_of(index, device)
        elif not isinstance(model, SearchModel):
            model = load_model(model, device=device)
        self.model = model
        self.index = index if index is not None else default_index(model, progress=progress)
        self.index.check_model(model)
        self._words_of_store: tuple[Snapshot, WordSearch] | None = None  # BM25, and the state of the store it knows
        if onnx:
            self.use_onnx()

    def use_onnx(self) -> None:
        """Let ONNX Runtime compute the queries from now on."""
        name, bert = self.model.name or "the default encoder", self.model.bert
        if bert is None:
            raise RetrievalError(f"onnx cannot be given: the query encoder of {name} is no Bool-BERT")
        if torch.device(self._device).type != "cpu":
            raise RetrievalError(f'onnx cannot be given: the model is on {self._device}; open it with device="cpu"')
        if bert.dtype != torch.float32:
            raise RetrievalError(f"onnx cannot be given: {name} is in {bert.dtype}; it has to be in torch.float32")
        plain, quick = copy.copy(self), copy.copy(self)
        try:
            plain._program = None
            quick._program = onnx_program(self.model, self.prompt, self._is_cosine)
            is_right = agree(quick, plain)
        except BoolBertError:
            raise
        except Exception as error:  # of an exporter and of a runtime, which have many kinds
            raise RetrievalError(f"{name}: cannot be run by ONNX Runtime: {first_line(error)}") from error
        if not is_right:
            raise RetrievalError(f"{name}: ONNX Runtime computes other vectors than torch; go without onnx")
        self._program = quick._program

    def search(
        self,
        query: str,
        k: int = 10,
        operators: Sequence[Any] | None = None,
        *,
        not_weight: float | None = None,
        exclude_above: float | None = None,
        excluded: Collection[int] | None = None,
        where: str | None = None,
        hybrid: bool = False,
        evidence: bool = True,
    ) -> Answer:
        """The k best documents.

        operators: names such as ["and", "not"]; [] switches every gate off, which makes the query encoder a plain BERT;
        None leaves it to the model, or to the cue lexicon where it is untrained. not_weight: how strongly what NOT
        excludes is taken away, instead of the strength that the model has learned. exclude_above: documents whose
        `excluded` is above it are left out, and others move up. excluded: the numbers of the words that NOT excludes,
        instead of those that the model finds; they count from 0 in `read(query).words`. where: a filter on the
        documents' fields, such as "year > 1990 and genre = western". hybrid: fuse the ranking with BM25's over the
        words that are neither excluded nor cues; `score` is then the sum of both reciprocal ranks. evidence: ask what
        documents say, clause by clause, where the index knows it and not every gate is switched off; words are a part
        of that, so that `hybrid` changes nothing then.
        """
        check_k(k)
        self._check_limits(not_weight, exclude_above)
        reading, encoded = self._read(query, operators, excluded, not_weight, encodes=True)
        parts = self._scaled_parts(self._vectors(reading, not_weight) if encoded is None else encoded)
        known = self._evidence if evidence and operators != [] else None
        if known is not None:
            found = self._weighed(known, reading, parts, k, not_weight, exclude_above, where)
        else:
            found = self._find(parts, k, exclude_above, where, reading.wanted_words if hybrid else None)
        violating = self.violating(reading)
        hits = [
            Hit(
                rank=rank,
                score=candidate.score,
                row=candidate.row,
                title=candidate.title,
                text=candidate.text,
                wanted=float(candidate.vector @ parts.wanted),
                excluded=None if parts.excluded is None else float(candidate.vector @ parts.excluded),
                violates=None if violating is None else candidate.row in violating,
                id=candidate.id,
                reasons=candidate.reasons,
            )
            for rank, candidate in enumerate(found, start=1)
        ]
        return Answer(reading, tuple(hits))

    def read(
        self, query: str, operators: Sequence[Any] | None = None, excluded: Collection[int] | None = None
    ) -> QueryReading:
        """How a query is read: its cues, which operators are on and who says so, what is excluded or alternative."""
        return self._read(query, operators, excluded)[0]

    def _read(
        self,
        query: str,
        operators: Sequence[Any] | None,
        excluded: Collection[int] | None,
        not_weight: float | None = None,
        *,
        encodes: bool = False,
    ) -> tuple[QueryReading, QueryVectors | None]:
        """How a query is read, and with `encodes` a Bool-BERT's vectors for it, from the same pass."""
        if not query.strip():
            raise RetrievalError("the query is empty; give some words to search for")
        if any("\ud800" <= letter <= "\udfff" for letter in query):
            raise RetrievalError(f"the query {query!r} is not valid UTF-8; check the terminal's or the file's encoding")
        labels = self._labels(operators)
        if not self.is_boolean:
            if labels is not None and any(labels):
                raise RetrievalError(
                    f"operators cannot be given: the query encoder of {self.model.name} is no Bool-BERT"
                )
            if excluded is not None:
                raise RetrievalError(
                    f"excluded cannot be given: the query encoder of {self.model.name} is no Bool-BERT"
                )
            return QueryReading(query, (), NOBODY, tuple(words_of(query)), truncated=self._is_cut(query)), None
        decided_by = CALLER if labels is not None else MODEL
        words = words_of(query)
        cues = [cue for cue in find_cues(query) if not cue.weak]
        typed = read_search_box(query) if self._excludes and labels is None and excluded is None else None
        if typed is not None:
            labels, decided_by, cues = multi_hot({cue.operator for cue in typed.cues}), SEARCH_BOX, list(typed.cues)
            excluded = words_in(words, typed.scopes("not")) or None
        elif labels is None and not self.model.trained:
            labels, decided_by = multi_hot({cue.operator for cue in cues}), LEXICON
        inputs = self._tokens(query)
        tokens = token_words(self, query, words, self._length(inputs), inputs.get(SPANS))
        not_scope = self._not_scope(tokens, words, excluded)
        if encodes:
            found = self._look_and_encode(inputs, labels, not_scope, not_weight)
        else:
            found = self._look_at(inputs, labels, not_scope)
        names = from_multi_hot(found.operators)

        roles = words[: max(tokens) + 1]
        if self.model.trained:
            roles = with_roles(roles, tokens, names, found.cues, found.scope)
        if typed is not None or not self.model.trained:
            roles = with_cues(roles, [cue for cue in cues if cue.operator in names])
        if not_scope is not None:
            roles = [word._replace(excluded=number in (excluded or ())) for number, word in enumerate(roles)]
        reading = QueryReading(
            query, names, decided_by, tuple(roles), truncated=self._is_cut(query), not_scope=not_scope
        )
        return reading, found.vectors

    def _not_scope(
        self, tokens: Sequence[int], words: Sequence[Word], excluded: Collection[int] | None
    ) -> tuple[int, ...] | None:
        """For each token whether it is a piece of an excluded word; None where the model shall decide."""
        if excluded is None:
            return None
        if not self._excludes:
            raise RetrievalError(f"{self.model.name}: is built without exclusion, so no word can be excluded by hand")
        wrong = [number for number in excluded if not 0 <= number < len(words)]
        if wrong:
            raise RetrievalError(f"excluded names word {wrong[0]}, but the query has the words 0 to {len(words) - 1}")
        return tuple(int(word in excluded) for word in tokens)

    def violating(self, reading: QueryReading) -> frozenset[int] | None:
        """The rows of the documents that a query excludes, None where the data does not know."""
        if not reading.excluded or isinstance(self.index, VectorStore):
            return None
        return named_rows(self.index, [span.text for span in reading.excluded])

    @cached_property
    def _filterable(self) -> FileStore:
        """The index as a store, which knows the documents' fields."""
        assert isinstance(self.index, Index)
        return FileStore(self.index.folder)

    @property
    def is_boolean(self) -> bool:
        """Whether queries go through a Bool-BERT."""
        return self.model.bert is not None

    @property
    def _excludes(self) -> bool:
        """Whether its vectors can exclude."""
        return self.model.bert is not None and self.model.bert.config.exclusion != "none"

    @property
    def prompt(self) -> str:
        """What is put before a query."""
        return prompt_of(self.model.encoder, "query") or ""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where each token of a text begins and ends, however long the text is."""
        return self._offset_tokenizer(text, return_offsets_mapping=True, verbose=False)["offset_mapping"]

    def _tokens(self, query: str) -> Any:
        """A query as the encoder takes it."""
        if self._program is not None:
            return self._program.tokens(query)
        encoder = self.model.encoder
        features = encoder.preprocess([query], prompt=prompt_of(encoder, "query"), task="query")
        device = encoder.device
        return {name: value.to(device) if isinstance(value, Tensor) else value for name, value in features.items()}

    def _is_cut(self, query: str) -> bool:
        """Whether a query is longer than the model reads. A tokenizer that is not transformers' own cuts nothing."""
        if self._program is not None:
            return self._program.cuts(query)
        first = side_modules(self.model.encoder, "query")[0]
        if not hasattr(getattr(first, "tokenizer", None), "backend_tokenizer"):
            return False
        return len(self.spans(self.prompt + query)) > self._length(self._tokens(query))

    @property
    def _cuts_left(self) -> bool:
        """Whether a query that is too long loses its beginning."""
        return side_modules(self.model.encoder, "query")[0].tokenizer.truncation_side == "left"

    def _length(self, tokens: Any) -> int:
        """How many tokens of a query the model sees."""
        return tokens["input_ids"].shape[1]

    def _labels(self, operators: Sequence[Any] | None) -> list[int] | None:
        """Operators as the caller gave them, as 0/1 for and, or, not."""
        from boolbert.sentence_boolbert import operator_row

        return operator_row(operators)

    @torch.inference_mode()
    def _look_at(self, tokens: Any, labels: Sequence[int] | None, not_scope: Sequence[int] | None) -> Found:
        """What the model reads off a query; None for labels (the operators that are on) or a scope: it decides."""
        if self._program is not None:
            return self._program(tokens, labels, not_scope, None)
        bert: Any = self.model.bert
        if bert.training:
            bert.eval()
        found = bert.read(**_of_bert(tokens), **_given(labels, not_scope))
        return _found(found.operators, found.cue_logits, found.scope)

    def _look_and_encode(
        self,
        tokens: Any,
        labels: Sequence[int] | None,
        not_scope: Sequence[int] | None,
        not_weight: float | None,
    ) -> Found:
        """The same, with the vectors that come of it."""
        if self._program is not None:
            return self._program(tokens, labels, not_scope, not_weight)
        from boolbert.sentence_boolbert import query_parts

        encoder: Any = self.model.encoder
        if encoder.training:
            encoder.eval()
        with torch.inference_mode():
            output = encoder({**tokens, **_given(labels, not_scope, not_weight)}, task="query")
            row = {name: value[0] for name, value in output.items() if isinstance(value, Tensor)}
            vectors = QueryVectors.of(*query_parts(row, self._is_cosine)[:5])
            return _found(output["operators"], output["cue_logits"], output.get("scope"))._replace(vectors=vectors)

    @cached_property
    def _offset_tokenizer(self) -> Any:
        """A copy of the query's tokenizer that neither truncates nor pads: how one does is kept in it, and another
        thread may be searching.
        """
        tokenizer = copy.deepcopy(side_modules(self.model.encoder, "query")[0].tokenizer)
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
        return tokenizer

    def features(self, query: str) -> dict[str, Any]:
        """The query's tokens as its BERT takes them."""
        return _of_bert(self._tokens(query))

    def _check_limits(self, not_weight: float | None, exclude_above: float | None) -> None:
        for name, value in (("not_weight", not_weight), ("exclude_above", exclude_above)):
            if value is None:
                continue
            if not self.is_boolean:
                raise RetrievalError(f"{name} cannot be given: the query encoder of {self.model.name} is no Bool-BERT")
            if not math.isfinite(value) or (name == "not_weight" and value < 0):
                least = " of at least 0" if name == "not_weight" else ""
                raise RetrievalError(f"{name} must be a number{least}, got {value}")

    @property
    def has_evidence(self) -> bool:
        """Whether it can tell what documents say, clause by clause."""
        return self._evidence is not None

    @property
    def _evidence(self) -> Evidence | None:
        """What the index's documents say, where it is known."""
        return self.index.evidence if isinstance(self.index, Index) else None

    def _encode_parts(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The vectors of a query's parts, of length 1: those of a plain encoder."""
        off = multi_hot([])
        if self._program is not None:
            found = [self._program(self._tokens(text), off, None, None).vectors for text in texts]
            return _scaled(np.stack([vectors.vectors[0] for vectors in found if vectors is not None]))
        operators = [off] * len(texts) if self.is_boolean else None
        encoded = encode_queries(self.model.encoder, texts, operators, one_vector=True)
        return _scaled(encoded if encoded.ndim == 2 else encoded[:, 0])

    def _weighed(
        self,
        evidence: Evidence,
        reading: QueryReading,
        parts: QueryVectors,
        k: int,
        not_weight: float | None,
        exclude_above: float | None,
        where: str | None,
    ) -> list[Candidate]:
        """The k best documents by what they say, each with its reasons."""
        assert isinstance(self.index, Index)
        index, allowed = self.index, None
        if where is not None:
            now = self._filterable.snapshot()
            allowed = now.allowed(fitted_filter(where, now.about.fields))

        def best(depth: int) -> list[int]:
            if where is None:
                return self._rank(index, parts, min(depth, len(index)), None)[1]
            found = closest(self._filterable, parts, depth, None, where)
            return [now.rows[hit.record.id] for _, hit in found]

        question = Question.of(conditions_of(reading, self.is_boolean and self.model.trained), self._encode_parts)
        strength = 1.0 if not_weight is None else not_weight / PENALTY
        ranked = weigh(
            index,
            evidence,
            question,
            parts,
            best,
            k,
            allowed=allowed,
            exclude_above=exclude_above,
            strength=strength,
        )
        found = []
        for score, row, document in zip(*ranked, index.at(ranked[1]), strict=True):
            vector = index.vectors[row : row + 1][0].astype(np.float32)
            why = reasons(evidence, question, row, document.text)
            found.append(Candidate(score, row, None, document.title, document.text, vector, why))
        return found

    def _vectors(self, reading: QueryReading, not_weight: float | None) -> QueryVectors:
        """The vectors of a query as it was read, as the model gives them."""
        if not self.is_boolean:
            vectors = encode_queries(self.model.encoder, [reading.query])
            return QueryVectors(vectors, vectors[0], None)
        labels, tokens = multi_hot(reading.operators), self._tokens(reading.query)
        encoded = self._look_and_encode(tokens, labels, reading.not_scope, not_weight).vectors
        assert encoded is not None
        return encoded

    @property
    def _is_cosine(self) -> bool:
        return is_cosine(self.model.encoder)

    @property
    def _device(self) -> Any:
        return self.model.encoder.device

    def _scaled_parts(self, parts: QueryVectors) -> QueryVectors:
        """The query's vectors, what it wants and what it excludes, all of one length."""
        if self._is_cosine:
            parts = parts._replace(vectors=_scaled(parts.vectors), wanted=_scaled(parts.wanted))
        if parts.excluded is None:
            return parts
        return parts._replace(excluded=_scaled(parts.excluded) * np.linalg.norm(parts.wanted))

    def _find(
        self, parts: QueryVectors, k: int, exclude_above: float | None, where: str | None, words: str | None = None
    ) -> list[Candidate]:
        """The k best documents that pass the filter and are not too near to what is excluded."""
        if words is not None and (where is not None or isinstance(self.index, VectorStore)):
            return self._fused_in_store(parts, k, exclude_above, where, words)
        if where is not None and isinstance(self.index, Index):
            return in_store(self._filterable, parts, k, exclude_above, where)
        if isinstance(self.index, VectorStore):
            return in_store(self.index, parts, k, exclude_above, where)
        found = []
        ranked = (
            self._rank(self.index, parts, k, exclude_above)
            if words is None
            else self._fused(self.index, parts, k, exclude_above, words)
        )
        for score, row, document in zip(*ranked, self.index.at(ranked[1]), strict=True):
            vector = self.index.vectors[row : row + 1][0].astype(np.float32)
            found.append(Candidate(score, row, None, document.title, document.text, vector))
        return found

    @cached_property
    def _word_search(self) -> WordSearch:
        """BM25 over the index's documents, made when it is first asked."""
        assert isinstance(self.index, Index)
        return WordSearch([document.text for document in self.index.documents()], "none")

    def _fused(
        self, index: Index, parts: QueryVectors, k: int, exclude_above: float | None, words: str
    ) -> tuple[list[float], list[int]]:
        """The k best documents of the vectors' and the words' rankings together."""
        depth = min(max(k, DEPTH), len(index))
        holding = [int(row) for row in self._word_search.top_k([words], depth)[0] if row >= 0]
        _, close = self._rank(index, parts, depth, exclude_above)
        return _fused_rows(close, far_enough(holding, index.vectors, parts, exclude_above), k)

    def _fused_in_store(
        self, parts: QueryVectors, k: int, exclude_above: float | None, where: str | None, words: str
    ) -> list[Candidate]:
        """The same in a folder that documents were added to or removed from, or with a filter."""
        store = self._filterable if isinstance(self.index, Index) else self.index
        if not isinstance(store, FileStore):
            raise RetrievalError(f"{store.name}: hybrid search needs a folder, since BM25 reads all of its documents")
        now = store.snapshot()
        if self._words_of_store is None or self._words_of_store[0] is not now:
            texts = [document.text for segment in now.segments for document in segment.index.documents()]
            self._words_of_store = (now, WordSearch(texts, "none"))
        allowed = now.allowed(fitted_filter(where, now.about.fields))
        depth = min(max(k, DEPTH), len(now))
        found = closest(store, parts, depth, exclude_above, where)
        close = [now.rows[hit.record.id] for _, hit in found if hit.record.id in now.rows]
        ranked = self._words_of_store[1].top_k([words], len(now))[0].tolist()
        holding = far_enough([row for row in ranked if row >= 0 and allowed[row]][:depth], now, parts, exclude_above)
        candidates = []
        for score, row in zip(*_fused_rows(close, holding, k), strict=True):
            segment, inside = now.at(row)
            record, vector = segment.record(inside), now[row : row + 1][0].astype(np.float32)
            candidates.append(Candidate(score, None, record.id, record.title, record.text, vector))
        return candidates

    def _rank(
        self, index: Index, parts: QueryVectors, k: int, exclude_above: float | None
    ) -> tuple[list[float], list[int]]:
        """The scores and rows of the k best documents, without those that are too near to what is excluded."""
        device = torch.device(self._device)
        vectors = index.vectors.on(device)
        if exclude_above is None or parts.excluded is None:
            asked = parts.asked[None]
            is_cpu = device.type == "cpu"
            scores, rows = index.prefilter.top_k(asked, k) if is_cpu else top_k(asked, vectors, k, device=device)
            return scores[0].tolist(), rows[0].tolist()
        check_shapes(parts.asked[None], vectors, k)
        wanted, unwanted = (torch.from_numpy(part[None]).to(device) for part in (parts.asked, parts.excluded))
        score, excluded = dot_products(wanted, vectors), dot_products(unwanted, vectors)

        def allowed(start: int, end: int) -> Tensor:
            return score(start, end).masked_fill(excluded(start, end) > exclude_above, -math.inf)

        scores, rows = best_of(allowed, len(index), k, block=block_size(wanted, vectors))
        kept = np.isfinite(scores[0])
        return scores[0][kept].tolist(), rows[0][kept].tolist()


def open_index(name: str | Path) -> Index | VectorStore:
    """A folder of `boolbert index`, or a store by its name."""
    return open_store(name) if is_store(name) else Index(name)


def is_store(name: str | Path) -> bool:
    """Whether a name is a store's, or that of an index which has become one."""
    return str(name).endswith((".db", ".faiss")) or "://" in str(name) or (Path(name) / STORE).exists()


def _fused_rows(close: list[int], holding: list[int], k: int) -> tuple[list[float], list[int]]:
    """The scores and rows of the k best documents of two rankings."""
    scores, rows = fuse_scored([[close], [holding]], k)
    return scores[0][rows[0] >= 0].tolist(), rows[0][rows[0] >= 0].tolist()


def token_words(
    searcher: BoolSearcher,
    query: str,
    words: Sequence[Word],
    length: int,
    spans: Sequence[tuple[int, int]] | None = None,
) -> list[int]:
    """For each of the query's `length` tokens, the word it is a piece of; -1 for special tokens and a prompt's.

    spans: where the tokens begin and end in the text, if the caller knows.
    """
    prompt = searcher.prompt
    if spans is None:
        spans = searcher.spans(prompt + query)
    if len(spans) > length:  # the model's copy of the query has [CLS] and [SEP] all the same
        spans = [(0, 0), *spans[1 - length :]] if searcher._cuts_left else [*spans[: length - 1], (0, 0)]
    return [word_at(start - len(prompt), end - len(prompt), words) for start, end in spans]


def _of_bert(tokens: dict[str, Any]) -> dict[str, Any]:
    return {name: tokens[name] for name in ("input_ids", "attention_mask", "token_type_ids") if name in tokens}


def _given(
    labels: Sequence[int] | None, not_scope: Sequence[int] | None, not_weight: float | None = None
) -> dict[str, Tensor]:
    """What a caller has decided of one query, as the model takes it."""
    rows = {"operators": labels, "not_scope": not_scope}
    given = {name: torch.tensor([list(row)]) for name, row in rows.items() if row is not None}
    return given if not_weight is None else {**given, "not_weight": torch.tensor([not_weight])}


def _found(operators: Tensor, cue_logits: Tensor, scope: Tensor | None) -> Found:
    cues = torch.sigmoid(cue_logits[0].double()).cpu().numpy()
    return Found(operators[0].tolist(), cues, None if scope is None else scope[0].double().cpu().numpy())


def _scaled(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Vectors of length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def model_of(index: Index | VectorStore, device: str | None) -> SearchModel:
    """The model that an index was made with. The default encoder's vectors serve a run that left them as they were."""
    if index.model is not None:
        return load_model(index.model, device=device)
    model = load_model(device=device)
    return model if model.name is None or index.fits(model) else default_model(device)
