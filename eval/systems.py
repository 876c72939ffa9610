"""What can be compared: each system scores any query against all documents, a block of them at a time."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from boolbert.boolean.marks import Part, Parts
from boolbert.core.errors import EvaluationError, optional
from boolbert.data import Corpus
from boolbert.data.tasks import Question, operator_labels
from boolbert.retrieval.batches import encode_queries
from boolbert.retrieval.faiss_index import FaissIndex, recall_of_exact
from boolbert.retrieval.metrics import PerQuery
from boolbert.retrieval.models import bool_bert, query_parameters, with_gate
from boolbert.retrieval.neighbours import (
    QUERY_BLOCK,
    BlockScorer,
    Ranked,
    Scores,
    Vectors,
    best_of,
    check_shapes,
    dot_products,
)
from boolbert.search.query_reader import read

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

ANDS = ("sum", "min")
NOT_WEIGHT = 0.3


class System(ABC):
    """A name, a cost, and scores. `parameters`: how many weights answer a query."""

    name: str
    parameters: int
    documents: int

    @abstractmethod
    def scorer(self, questions: Sequence[Question]) -> BlockScorer:
        """The scores of these questions for any block of documents."""

    def search(self, questions: Sequence[Question], k: int) -> tuple[Scores, Ranked]:
        """The k best documents of each question."""
        blocks = [questions[start : start + QUERY_BLOCK] for start in range(0, len(questions), QUERY_BLOCK)]
        scores, rows = zip(*(best_of(self.scorer(block), self.documents, k) for block in blocks), strict=True)
        return np.concatenate(scores), np.concatenate(rows)

    def own_metrics(self, questions: Sequence[Question], rows: Ranked) -> PerQuery:
        """What can be measured on this system alone, one value per query."""
        return {}


class Dense(System):
    """A dual encoder.

    `gate` is for a Bool-BERT: "given" takes the operators from the data, "learned" and "cue" let the model find them in
    the text, and None is the model's own setting. The model itself is not changed.
    """

    def __init__(self, name: str, model: "SentenceTransformer", vectors: Vectors, gate: str | None = None):
        if gate is not None and bool_bert(model) is None:
            raise EvaluationError(f"{name}: --gate {gate} is for a Bool-BERT, and this model is a plain encoder")
        self.name, self.model, self.vectors, self.gate = name, with_gate(model, gate), vectors, gate
        self.documents, self.parameters = len(vectors), query_parameters(model)

    def encode(self, questions: Sequence[Question], *, one_vector: bool = False) -> Tensor:
        """The questions' vectors, as `encode_inputs` gives them, on the model's device."""
        operators = list(map(operator_labels, questions)) if self.gate == "given" else None
        unknown = [question.id for question, own in zip(questions, operators or (), strict=False) if own is None]
        if unknown:
            raise EvaluationError(f"{self.name}: query {unknown[0]} has no template, so its operators are unknown")
        texts = [question.text for question in questions]
        encoded = encode_queries(self.model, texts, operators, one_vector=one_vector)
        vectors = torch.from_numpy(encoded).to(self.model.device)
        check_shapes(vectors, self.vectors, 1)
        finite = torch.isfinite(vectors).flatten(1).all(dim=1)
        if not finite.all():
            bad = questions[int((~finite).nonzero()[0])]
            raise EvaluationError(f"{self.name}: the vector of query {bad.id} holds NaN or infinity")
        return vectors

    def scorer(self, questions: Sequence[Question]) -> BlockScorer:
        return dot_products(self.encode(questions), self.vectors)


class Faiss(Dense):
    """A dual encoder whose documents are searched through an index of FAISS instead of exactly."""

    def __init__(
        self, name: str, model: "SentenceTransformer", vectors: Vectors, gate: str | None = None, *, factory: str
    ):
        super().__init__(name, model, vectors, gate)
        self._index = FaissIndex(vectors, factory)

    def search(self, questions: Sequence[Question], k: int) -> tuple[Scores, Ranked]:
        return self._index.search(self.encode(questions).cpu().numpy(), k)

    def own_metrics(self, questions: Sequence[Question], rows: Ranked) -> PerQuery:
        queries = self.encode(questions).cpu().numpy()
        return {"found_of_exact": recall_of_exact(rows, queries, self.vectors, self.model.device)}


class OnDense(System):
    """A system that asks a dual encoder and does something else with its scores or vectors."""

    def __init__(self, name: str, dense: Dense):
        self.name, self.dense = name, dense
        self.documents, self.parameters = dense.documents, dense.parameters


class Decomposition(OnDense):
    """Score each atom by itself and join the scores: AND adds them or takes the lowest, OR takes the highest, NOT
    subtracts a share."""

    def __init__(
        self, name: str, dense: Dense, conjunction: str = "sum", not_weight: float = NOT_WEIGHT, *, gold: bool = False
    ):
        """gold: the atoms are those that the data set marks, where it does, else those that search reads."""
        if conjunction not in ANDS:
            raise EvaluationError(f"the AND of a decomposition must be one of {ANDS}, got {conjunction!r}")
        super().__init__(name, dense)
        self.gold, self.conjunction, self.not_weight = gold, conjunction, not_weight

    def scorer(self, questions: Sequence[Question]) -> BlockScorer:
        gold = [question.parts if self.gold else None for question in questions]
        taken_apart = [own or parts_as_read(question.text) for own, question in zip(gold, questions, strict=True)]
        texts = list(dict.fromkeys(part.text for parts in taken_apart for part in parts))
        row_of = {text: row for row, text in enumerate(texts)}
        score_atoms = dot_products(self.dense.encode([Question(text, text, ()) for text in texts]), self.dense.vectors)

        def score(start: int, end: int) -> Tensor:
            atoms = score_atoms(start, end)
            scores = ([atoms[row_of[part.text]] for part in parts] for parts in taken_apart)
            return torch.stack([self._join(own, parts) for own, parts in zip(scores, taken_apart, strict=True)])

        return score

    def _join(self, scores: Sequence[Tensor], parts: Parts) -> Tensor:
        total = scores[0]
        for score, part in zip(scores[1:], parts[1:], strict=True):
            if part.operator == "not":
                total = total - self.not_weight * score
            elif part.operator == "or":
                total = torch.maximum(total, score)
            else:
                total = total + score if self.conjunction == "sum" else torch.minimum(total, score)
        return total


def parts_as_read(text: str) -> Parts:
    """The conditions of a query as search reads them, a wanted one first."""
    query, found = read(text), list[Part]()
    for group in query.groups:
        for number, one in enumerate(group):
            found.append(Part("or" if number else "and" if found else "", *one.place, one.text))
    return (*found, *(Part("not", *one.place, one.text) for one in query.excluded))


class Subtraction(OnDense):
    """The whole query's vector, minus a share of the vector of what search reads as excluded."""

    def __init__(self, name: str, dense: Dense, not_weight: float = NOT_WEIGHT):
        super().__init__(name, dense)
        self.not_weight = not_weight

    def scorer(self, questions: Sequence[Question]) -> BlockScorer:
        excluded = [[one.text for one in read(question.text).excluded] for question in questions]
        owners = [row for row, texts in enumerate(excluded) for _ in texts]
        extra = [Question(text, text, ()) for texts in excluded for text in texts]
        vectors = self.dense.encode([*questions, *extra], one_vector=True)
        whole, parts = vectors[: len(questions)].clone(), vectors[len(questions) :]
        whole.index_add_(0, torch.tensor(owners, dtype=torch.long, device=whole.device), parts, alpha=-self.not_weight)
        return dot_products(whole, self.dense.vectors)


class BM25(System):
    """Words in common, weighted by their rarity (`bm25s`, English stop words, no stemming)."""

    name, parameters = "BM25", 0

    def __init__(self, corpus: Corpus):
        self._bm25s = optional("bm25s", "bm25s", "eval")
        self.documents = len(corpus)
        self._index = self._bm25s.BM25()
        self._index.index(self._tokens([document.text for document in corpus], return_ids=True), show_progress=False)

    def scorer(self, questions: Sequence[Question]) -> BlockScorer:
        scores = torch.from_numpy(np.stack([self._scores(question.text) for question in questions]))
        return lambda start, end: scores[:, start:end]

    def _scores(self, query: str) -> Scores:
        """The scores (N,) of all documents; 0 where the query shares no word with them."""
        (words,) = self._tokens([query], return_ids=False)
        known = [word for word in words if word in self._index.vocab_dict]
        return self._index.get_scores(known).astype(np.float32) if known else np.zeros(self.documents, np.float32)

    def _tokens(self, texts: Sequence[str], *, return_ids: bool) -> Any:
        return self._bm25s.tokenize(texts, stopwords="en", return_ids=return_ids, show_progress=False)
