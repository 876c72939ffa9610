"""BM25: words in common, weighted by their rarity (`bm25s`, English stop words, no stemming)."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from boolbert.core.errors import optional
from boolbert.retrieval.ranking import Ranked, Scores


class BM25Index:
    """An index of texts; scores of 0 where a query shares no word with them."""

    def __init__(self, texts: Iterable[str]):
        self._bm25s = optional("bm25s", "bm25s", "eval")
        documents = list(texts)
        self._count = len(documents)
        self._index = self._bm25s.BM25()
        self._index.index(self._tokens(documents, return_ids=True), show_progress=False)

    def scores(self, query: str) -> Scores:
        """The scores (N,) of all documents for one query."""
        (words,) = self._tokens([query], return_ids=False)
        known = [word for word in words if word in self._index.vocab_dict]
        if not known:
            return np.zeros(self._count, np.float32)
        return self._index.get_scores(known).astype(np.float32)

    def top_k(self, queries: Sequence[str], k: int) -> Ranked:
        """The k best documents of each query (Q, k), ties by the lower row; -1 where no other shares a word with it."""
        k = min(k, self._count)
        result = np.full((len(queries), k), -1, dtype=np.int64)
        for row, query in enumerate(queries):
            scores = self.scores(query)
            best = np.argpartition(-scores, k - 1)[:k]
            best = best[np.lexsort((best, -scores[best]))]
            found = best[scores[best] > 0]
            result[row, : len(found)] = found
        return result

    def _tokens(self, texts: Sequence[str], *, return_ids: bool) -> Any:
        return self._bm25s.tokenize(list(texts), stopwords="en", return_ids=return_ids, show_progress=False)
