"""The language of Boolean queries: operators, templates, marks, the search box. Plain Python, nothing to install."""

from .clauses import affirmed, split_clauses
from .languages import foreign_language
from .marks import parse_original_query, render_original_query
from .operators import OPERATORS, TEMPLATES, from_multi_hot, multi_hot, template_operators
from .query import Condition, Query
from .search_box import read_search_box, without_double_negation

__all__ = [
    "OPERATORS",
    "TEMPLATES",
    "Condition",
    "Query",
    "affirmed",
    "foreign_language",
    "from_multi_hot",
    "multi_hot",
    "parse_original_query",
    "read_search_box",
    "render_original_query",
    "split_clauses",
    "template_operators",
    "without_double_negation",
]
