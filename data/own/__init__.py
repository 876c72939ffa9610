"""A user's own documents: read them from any format, and make Boolean queries from them alone."""

from .documents import NoDocuments, OwnDocument, OwnDocuments, documents_of
from .folder import QueryFolder, make_queries
from .passages import Passages
from .show import show_queries

__all__ = [
    "NoDocuments",
    "OwnDocument",
    "OwnDocuments",
    "Passages",
    "QueryFolder",
    "documents_of",
    "make_queries",
    "show_queries",
]
