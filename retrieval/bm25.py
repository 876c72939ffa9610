"""BM25: words in common, weighted by their rarity (`bm25s`, English stop words, no stemming)."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from boolbert.core.errors import optional
from boolbert.retrieval.neighbours import Ranked, Scores


class BM25Index:
    """An index of texts; scores of 0 where a query shares no word with them."""

    def __init__(self, texts: Iterable[str]):
        self._bm25s = optional("bm25s", "bm25s", "eval")
        documents = list(texts)
        self._count = len(documents)
        self._index = self._bm25s.BM25()
        self._index.index(self._tokens(documents, return_ids=True), show_progress=False)

    def __len__(self) -> int:
        return self._count

    def scores(self, query: str) -> Scores:
        """The scores (N,) of all documents for one query."""
        (words,) = self._tokens([query], return_ids=False)
        known = [word for word in words if word in self._index.vocab_dict]
        if not known:
            return np.zeros(self._count, np.float32)
        return self._index.get_scores(known).astype(np.float32)

    def top_k(self, queries: Sequence[str], k: int) -> tuple[Scores, Ranked]:
        """The k best documents of each query: scores and rows (Q, k), best first; a score of 0 is no find."""
        tokens = self._tokens(queries, return_ids=True)
        rows, scores = self._index.retrieve(tokens, k=min(k, self._count), show_progress=False)
        return scores.astype(np.float32), rows.astype(np.int64)

    def _tokens(self, texts: Sequence[str], *, return_ids: bool) -> Any:
        return self._bm25s.tokenize(list(texts), stopwords="en", return_ids=return_ids, show_progress=False)
