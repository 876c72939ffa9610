"""The embedded default: facts about the world's countries, and Boolean queries over them."""

from .atoms import country_atoms
from .describe import country_documents
from .folder import countries_folder
from .queries import country_queries
from .table import Country, load_countries

__all__ = ["Country", "countries_folder", "country_atoms", "country_documents", "country_queries", "load_countries"]
