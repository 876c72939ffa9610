"""Search and explanation: ask an index of documents, and see what Bool-BERT makes of a query.

The names below are loaded when they are first used, because some of their modules import torch, which takes seconds.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boolbert.boolean.query import Query
    from boolbert.retrieval.index import Index, build_index
    from boolbert.retrieval.models import SearchModel, load_model

    from .answer import Answer, Hit
    from .explanation import Explanation, explain
    from .searcher import BoolSearcher

__all__ = [
    "Answer",
    "BoolSearcher",
    "Explanation",
    "Hit",
    "Index",
    "Query",
    "SearchModel",
    "build_index",
    "explain",
    "load_model",
]
_HOMES = {
    "boolbert.retrieval.index": ("Index", "build_index"),
    "boolbert.retrieval.models": ("SearchModel", "load_model"),
    "boolbert.search.answer": ("Answer", "Hit"),
    "boolbert.search.explanation": ("Explanation", "explain"),
    "boolbert.boolean.query": ("Query",),
    "boolbert.search.searcher": ("BoolSearcher",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
