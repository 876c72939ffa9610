"""The language of Boolean queries: operators, templates, cues. Plain Python, nothing to install."""

from .augmentation import augment
from .clauses import affirmed, split_clauses
from .cues import CueSpan, find_cues, operators_of
from .kinds import kind_of_exclusion
from .labels import cue_labels, scope_labels
from .lacking import read_lacking
from .languages import foreign_language
from .lexicon import cue_table
from .marks import parse_original_query, render_original_query
from .operators import OPERATORS, TEMPLATES, from_multi_hot, multi_hot, template_operators
from .parts import Reading, read_parts
from .reasons import has_words, notes_on_reading, why_nothing_excluded
from .search_box import read_search_box, without_double_negation

__all__ = [
    "OPERATORS",
    "TEMPLATES",
    "CueSpan",
    "Reading",
    "affirmed",
    "augment",
    "cue_labels",
    "cue_table",
    "find_cues",
    "foreign_language",
    "from_multi_hot",
    "has_words",
    "kind_of_exclusion",
    "multi_hot",
    "notes_on_reading",
    "operators_of",
    "parse_original_query",
    "read_lacking",
    "read_parts",
    "read_search_box",
    "render_original_query",
    "scope_labels",
    "split_clauses",
    "template_operators",
    "why_nothing_excluded",
    "without_double_negation",
]
