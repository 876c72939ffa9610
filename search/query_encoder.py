"""A query as it is read, to vectors: computed by torch (search/export.py) or ONNX Runtime.

ONNX Runtime arranges the weights once and not for each product, so a short query takes half of torch's time on a CPU.
And it is imported in a tenth of torch's time: nothing here needs torch.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.boolean import OPERATORS, from_multi_hot
from boolbert.boolean.query import Query, Word, words_in
from boolbert.core.environment import without_telemetry
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.evidence import unit_length

INPUTS = ("input_ids", "attention_mask", "operators", "cues", "scope", "not_weight")
TOLD = ("prompt", "is_cosine", "can_exclude")  # what a `QueryEncoder` takes after its graph and its tokenizer

Vectors = npt.NDArray[np.float32]
Arrays = Mapping[str, npt.NDArray[Any]]
Run = Callable[[Arrays], Arrays]  # INPUTS of some queries -> `export.OUTPUTS`, without those that the model lacks


class QueryVectors(NamedTuple):
    """A query's own vector and one for each alternative (K, D), what it wants, and what it excludes, if any.

    rows: the query with its penalty, as one array (K + 1, D + 1); None where it has none, and the vectors are searched
    with. penalty: its weight, and the cosine with `excluded` above which it counts.
    """

    vectors: Vectors
    wanted: Vectors
    excluded: Vectors | None
    rows: Vectors | None = None
    penalty: tuple[float, float] | None = None

    @classmethod
    def of(cls, parts: Any) -> "QueryVectors":
        """The `QueryParts` of a query; of length 1 where vectors are compared by their cosine."""
        if parts.penalty is None:
            vectors = unit_length(parts.search_vectors) if parts.cosine else parts.search_vectors
            return cls(vectors, parts.wanted, parts.excluded)
        weight, above = parts.penalty
        wanted, excluded = unit_length(parts.search_vectors), unit_length(parts.excluded)
        last = weight * np.append(excluded, -above)
        rows = np.vstack([np.pad(wanted, [(0, 0), (0, 1)]), last]).astype(np.float32)
        return cls(parts.search_vectors, parts.wanted, parts.excluded, rows, parts.penalty)

    @property
    def asked(self) -> Vectors:
        """What documents are ranked by."""
        return self.vectors if self.rows is None else self.rows

    @property
    def fetched_by(self) -> Vectors:
        """The vectors by which a store searches, without the penalty, since stores sort by dot products alone.

        A document's score is its largest dot product with them, less its penalty, if any: never more than that product.
        """
        return self.vectors if self.rows is None else self.rows[:-1, :-1]

    def scores(self, documents: Vectors) -> Vectors:
        """The scores of documents: (N, D) -> (N,).

        >>> parts = QueryVectors(np.eye(2)[:1], np.eye(2)[0], np.eye(2)[1], np.array([[1, 0, 0], [0, 0.5, -0.2]]))
        >>> parts.scores(np.array([[1, 0], [0.8, 0.6], [0, 1]])).round(2).tolist()
        [1.0, 0.7, -0.3]
        """
        if self.rows is None:
            return (documents @ self.vectors.T).max(1)
        products = documents @ self.rows[:, :-1].T + self.rows[:, -1]
        return products[:, :-1].max(1) - np.maximum(products[:, -1], 0)


def word_at(start: int, end: int, words: Sequence[Word]) -> int:
    """The word that a span of characters lies in.

    >>> from boolbert.boolean.query import split_words
    >>> words = split_words("not former")
    >>> word_at(4, 7, words), word_at(7, 10, words), word_at(0, 0, words)
    (1, 1, -1)
    """
    return next((number for number, word in enumerate(words) if start < end and word.start <= start < word.end), -1)


class Told(NamedTuple):
    """What a model is told of a query instead of reading it, 0 and 1: which operators are on (E,), and which tokens are
    cues of each, and are reached by it, (E, L)."""

    operators: Sequence[int]
    cues: npt.NDArray[np.int64]
    scope: npt.NDArray[np.int64]


class QueryEncoder:
    """A model's query side: its tokenizer, and the function that computes the rest."""

    def __init__(self, run: Run, tokenizer: str, prompt: str, is_cosine: bool, can_exclude: bool):
        """tokenizer: the content of a tokenizer.json that cuts queries at the model's length."""
        from tokenizers import Tokenizer

        self.run, self.tokenizer, self._tokenizer = run, tokenizer, Tokenizer.from_str(tokenizer)
        self.prompt, self.is_cosine, self.can_exclude = prompt, is_cosine, can_exclude

    def tokens(self, query: str) -> Any:
        """A `tokenizers.Encoding` of the query with its prompt, cut at the model's length."""
        return self._tokenizer.encode(self.prompt + query)

    def token_words(self, tokens: Any, words: Sequence[Word]) -> list[int]:
        """For each token the word that it is a piece of; -1 for special tokens and a prompt's."""
        before = len(self.prompt)
        return [word_at(start - before, end - before, words) for start, end in tokens.offsets]

    def told(self, query: Query, tokens: Any, labels: Sequence[int] | None = None) -> Told:
        """A query as it is read, token by token. labels: the operators, where the caller has said which are on.

        Of a property of the answer nothing is taken away: a text that answers speaks of it.
        """
        words, places = query.words, self.token_words(tokens, query.words)
        wanted = set(words_in(words, [one.place for one in query.conditions if not one.excluded]))
        of_words = np.zeros((2, len(OPERATORS), len(words) + 1), np.int64)  # the last: tokens of no word
        for number, word in enumerate(words):
            if word.cue is not None:
                of_words[0, OPERATORS.index(word.cue), number] = 1
            elif word.excluded:
                of_words[1, OPERATORS.index("not"), number] = 1
            elif word.alternative is not None:
                of_words[1, OPERATORS.index("or"), number] = 1
            elif number in wanted:
                of_words[1, OPERATORS.index("and"), number] = 1
        operators = list(labels or [int(name in query.operators) for name in OPERATORS])
        if query.kind == "property" or not of_words[1, OPERATORS.index("not")].any():
            operators[OPERATORS.index("not")] = 0
        cues, scope = of_words[..., places]
        return Told(operators, cues, scope)

    def encode(self, tokens: Any, told: Told, not_weight: float | None = None) -> QueryVectors:
        """The vectors of a query; not_weight stands in for the learned strength of exclusion."""
        outputs = self._run([tokens.ids], told, not_weight)
        return _vectors({name: value[0] for name, value in outputs.items()})

    def plain_vectors(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts with every operator off, all from one pass."""
        return self._run([self.tokens(text).ids for text in texts])["query_vectors"][:, 0]

    def _run(self, ids: Sequence[Sequence[int]], told: Told | None = None, not_weight: float | None = None) -> Arrays:
        """What the model gives for queries of these tokens, which are told the same; None: every operator is off."""
        is_token = np.arange(max(map(len, ids))) < np.array([[len(row)] for row in ids])  # (B, L)
        padded = np.zeros(is_token.shape, np.int64)
        padded[is_token] = np.concatenate(ids)
        operators = np.zeros((len(ids), len(OPERATORS)), np.int64)
        cues, scope = np.zeros((2, *operators.shape, is_token.shape[1]), np.int64)
        if told is not None:
            operators[:], cues[:], scope[:] = told
        strength = np.full(len(ids), math.nan if not_weight is None else not_weight, np.float32)
        given = (padded, is_token.astype(np.int64), operators, cues, scope, strength)
        return self.run(dict(zip(INPUTS, given, strict=True)))


def _vectors(row: Arrays) -> QueryVectors:
    """One query's row of what the model gives."""
    exists, excluded = row["query_mask"], row["excluded_embedding"]
    vectors = QueryVectors(row["query_vectors"][exists], row["wanted_embedding"], excluded if excluded.any() else None)
    if "penalty" in row and row["penalty"][0] and vectors.excluded is not None:
        weight, above = map(float, row["penalty"])
        rows = row["penalised_query"][[*exists, True]]
        vectors = vectors._replace(rows=rows, penalty=(weight, above))
    return vectors


def encoded_query(
    queries: QueryEncoder, query: Query, labels: Sequence[int] | None, not_weight: float | None
) -> tuple[Query, QueryVectors]:
    """A query as a Bool-BERT takes it, cut at its length, and its vectors. labels: the operators, where the caller has
    said which are on."""
    excludes = any(word.excluded for word in query.words)
    if excludes and not queries.can_exclude and labels is None and query.decided_by == "the caller":
        raise RetrievalError("the model is built without exclusion, so no word can be excluded by hand")
    tokens = queries.tokens(query.text)
    vectors = queries.encode(tokens, queries.told(query, tokens, labels), not_weight)
    seen = query.words[: max(queries.token_words(tokens, query.words)) + 1]
    is_cut = query.truncated or bool(tokens.overflowing)
    names = from_multi_hot(labels) if labels else query.operators
    return replace(query, operators=names, words=seen, truncated=is_cut), vectors


def open_graph(graph: bytes) -> Run:
    """An exported query encoder, run by ONNX Runtime on the CPU. A graph with weights in other files is refused."""
    with without_telemetry():
        import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    options.log_severity_level = 4  # what is fatal; errors are raised anyway
    # Threads that look for more work when a query is done would take a core from the ranking.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    # Weights in other files are looked for in a folder that cannot exist.
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    taken = [given.name for given in session.get_inputs()]  # a model that reads no scopes takes none
    names = [output.name for output in session.get_outputs()]

    def run(inputs: Arrays) -> Arrays:
        return dict(zip(names, session.run(None, {name: inputs[name] for name in taken}), strict=True))

    return run
