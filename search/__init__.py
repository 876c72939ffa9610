"""Search and explanation: ask an index of documents, and see what Bool-BERT makes of a query."""

from boolbert.retrieval.index import Index, build_index
from boolbert.retrieval.models import SearchModel, load_model

from .explain import Explanation, OperatorAttention, explain
from .reading import QueryReading, Span, Word
from .searcher import Answer, BoolSearcher, Hit

__all__ = [
    "Answer",
    "BoolSearcher",
    "Explanation",
    "Hit",
    "Index",
    "OperatorAttention",
    "QueryReading",
    "SearchModel",
    "Span",
    "Word",
    "build_index",
    "explain",
    "load_model",
]
