"""A collection in which documents deny: what they have, what they say they lack, and queries that exclude it."""

from .folder import denials_folder
from .generate import denial_atoms, denial_documents, denial_queries, descriptions

__all__ = ["denial_atoms", "denial_documents", "denial_queries", "denials_folder", "descriptions"]
