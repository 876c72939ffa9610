"""The language of Boolean queries: operators, templates, cues. Plain Python, nothing to install."""

from .augmentation import augment
from .clauses import Clause, split_clauses
from .cues import Cue, find_cues, operators_of
from .labels import cue_labels, encode_with_cues, scope_labels
from .marks import ParsedQuery, marked_scopes, parse_original_query, render_original_query
from .operators import OPERATORS, TEMPLATES, from_multi_hot, multi_hot, template_operators
from .parts import Part, Reading, read_parts

__all__ = [
    "OPERATORS",
    "TEMPLATES",
    "Clause",
    "Cue",
    "ParsedQuery",
    "Part",
    "Reading",
    "augment",
    "cue_labels",
    "encode_with_cues",
    "find_cues",
    "from_multi_hot",
    "marked_scopes",
    "multi_hot",
    "operators_of",
    "parse_original_query",
    "read_parts",
    "render_original_query",
    "scope_labels",
    "split_clauses",
    "template_operators",
]
