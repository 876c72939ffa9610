"""What can be compared: each system scores any query against all documents, a block of them at a time."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from boolbert.boolean.decompose import Parts, negated, parsed_parts
from boolbert.data import Corpus
from boolbert.data.tasks import Question, operator_labels
from boolbert.errors import EvaluationError, optional
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.models import bool_bert, query_parameters
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

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

GATES = ("given", "learned", "cue")
ANDS = ("sum", "min")
NOT_WEIGHT = 0.3


class System(Protocol):
    """A name, a cost, and scores."""

    name: str
    parameters: int  # weights that answer a query
    documents: int

    def scorer(self, questions: Sequence[Question]) -> BlockScorer: ...


def search(system: System, questions: Sequence[Question], k: int) -> tuple[Scores, Ranked]:
    """The k best documents of each question."""
    found = [
        best_of(system.scorer(questions[start : start + QUERY_BLOCK]), system.documents, k)
        for start in range(0, len(questions), QUERY_BLOCK)
    ]
    return np.concatenate([scores for scores, _ in found]), np.concatenate([rows for _, rows in found])


class Dense:
    """A dual encoder. For a Bool-BERT, `gate` says who switches the operators on; a plain encoder has none."""

    def __init__(self, name: str, model: "SentenceTransformer", vectors: Vectors, gate: str | None = None):
        boolean = bool_bert(model)
        if (gate is not None) != (boolean is not None):
            raise EvaluationError(f"{name}: a gate is for a Bool-BERT, and a Bool-BERT needs one of {GATES}")
        self.name = name
        self.model = model
        self.vectors = vectors
        self.gate = gate
        self.documents = len(vectors)
        self.parameters = query_parameters(model)

    def encode(self, questions: Sequence[Question]) -> Tensor:
        inputs: list[Any] = [question.text for question in questions]
        boolean = bool_bert(self.model)
        if self.gate == "given":
            inputs = [{"text": question.text, "operators": self._labels(question)} for question in questions]
        elif boolean is not None:
            boolean.config.gate = self.gate
        vectors = torch.from_numpy(encode_inputs(self.model, inputs, "query", 32)).to(self.model.device)
        check_shapes(vectors, self.vectors, 1)
        if not torch.isfinite(vectors).all():
            bad = int((~torch.isfinite(vectors).all(dim=1)).nonzero()[0])
            raise EvaluationError(f"{self.name}: the vector of query {questions[bad].id} holds NaN or infinity")
        return vectors

    def scorer(self, questions: Sequence[Question]) -> BlockScorer:
        return dot_products(self.encode(questions), self.vectors)

    def _labels(self, question: Question) -> list[int]:
        labels = operator_labels(question)
        if labels is None:
            raise EvaluationError(f"{self.name}: query {question.id} has no template, so its operators are unknown")
        return labels


def known_parts(question: Question) -> Parts:
    """The parts that the data set marks."""
    if question.parts is None:
        raise EvaluationError(f"query {question.id} has no original_query, so its atoms are unknown")
    return question.parts


def found_parts(question: Question) -> Parts:
    """The parts that the cue parser finds in the text."""
    return parsed_parts(question.text)


class Decomposition:
    """Score each atom by itself, and join: AND adds or takes the least, OR the most, NOT subtracts a share."""

    def __init__(
        self,
        name: str,
        dense: Dense,
        parts_of: Callable[[Question], Parts],
        *,
        conjunction: str = "sum",
        not_weight: float = NOT_WEIGHT,
    ):
        if conjunction not in ANDS:
            raise EvaluationError(f"the AND of a decomposition must be one of {ANDS}, got {conjunction!r}")
        self.name = name
        self.dense = dense
        self.parts_of = parts_of
        self.conjunction = conjunction
        self.not_weight = not_weight
        self.documents = dense.documents
        self.parameters = dense.parameters

    def scorer(self, questions: Sequence[Question]) -> BlockScorer:
        parts = [self.parts_of(question) for question in questions]
        texts = {part.text: None for some in parts for part in some}
        place = {text: row for row, text in enumerate(texts)}
        of_atoms = dot_products(self.dense.encode([Question(text, text, ()) for text in texts]), self.dense.vectors)

        def score(start: int, end: int) -> Tensor:
            atoms = of_atoms(start, end)
            return torch.stack([self._joined([atoms[place[p.text]] for p in some], some) for some in parts])

        return score

    def _joined(self, scores: Sequence[Tensor], parts: Parts) -> Tensor:
        total = scores[0]
        for score, part in zip(scores[1:], parts[1:], strict=True):
            if part.operator == "not":
                total = total - self.not_weight * score
            elif part.operator == "or":
                total = torch.maximum(total, score)
            else:
                total = total + score if self.conjunction == "sum" else torch.minimum(total, score)
        return total


class Subtraction:
    """The whole query's vector, minus a share of the vector of what the cue parser finds negated."""

    def __init__(self, name: str, dense: Dense, not_weight: float = NOT_WEIGHT):
        self.name = name
        self.dense = dense
        self.not_weight = not_weight
        self.documents = dense.documents
        self.parameters = dense.parameters

    def scorer(self, questions: Sequence[Question]) -> BlockScorer:
        out = [negated(parsed_parts(question.text)) for question in questions]
        owners = [row for row, texts in enumerate(out) for _ in texts]
        extra = [Question(text, text, ()) for texts in out for text in texts]
        vectors = self.dense.encode([*questions, *extra])
        whole, parts = vectors[: len(questions)].clone(), vectors[len(questions) :]
        whole.index_add_(0, torch.tensor(owners, dtype=torch.long, device=whole.device), parts, alpha=-self.not_weight)
        return dot_products(whole, self.dense.vectors)


class BM25:
    """Words in common, weighted by their rarity (`bm25s`, English stop words, no stemming)."""

    def __init__(self, corpus: Corpus, name: str = "BM25"):
        self._bm25s = optional("bm25s", "bm25s", "eval")
        self.name = name
        self.parameters = 0
        self.documents = len(corpus)
        self._index = self._bm25s.BM25()
        tokens = self._tokens([document.text for document in corpus], return_ids=True)
        self._index.index(tokens, show_progress=False)

    def scorer(self, questions: Sequence[Question]) -> BlockScorer:
        tokens = self._tokens([question.text for question in questions], return_ids=False)
        vocabulary = self._index.vocab_dict
        rows = []
        for words in tokens:
            known = [word for word in words if word in vocabulary]
            rows.append(self._index.get_scores(known) if known else np.zeros(self.documents, np.float32))
        scores = torch.from_numpy(np.stack(rows).astype(np.float32))
        return lambda start, end: scores[:, start:end]

    def _tokens(self, texts: list[str], *, return_ids: bool) -> Any:
        return self._bm25s.tokenize(texts, stopwords="en", return_ids=return_ids, show_progress=False)
