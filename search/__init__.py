"""Search and explanation: ask an index of documents, and see what Bool-BERT makes of a query."""

from boolbert.retrieval.models import SearchModel, load_model

from .explain import Explanation, OperatorReading, explain
from .index import Index, build_index
from .searcher import Answer, BoolSearcher, Hit

__all__ = [
    "Answer",
    "BoolSearcher",
    "Explanation",
    "Hit",
    "Index",
    "OperatorReading",
    "SearchModel",
    "build_index",
    "explain",
    "load_model",
]
