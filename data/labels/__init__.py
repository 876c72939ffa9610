"""Rules that read English to make labels: cues, the parts they reach, synonyms. Stage 1 and made queries learn from
them; search, and whatever searches, imports nothing of this room."""

from .augmentation import augment
from .cues import CueSpan, find_cues, operators_of
from .labels import cue_labels, scope_labels
from .lexicon import cue_table
from .parts import Reading, read_parts

__all__ = [
    "CueSpan",
    "Reading",
    "augment",
    "cue_labels",
    "cue_table",
    "find_cues",
    "operators_of",
    "read_parts",
    "scope_labels",
]
