"""The wordings of each Boolean meaning, which `frames.txt` holds and explains.

Every frame of a meaning holds cues of exactly the operators that `OPERATORS_OF` names.
"""

from .lists import lists_under, read_lists

OPERATORS_OF: dict[str, tuple[str, ...]] = {
    "a": (),
    "not a": ("not",),
    "a and b": ("and",),
    "a or b": ("or",),
    "a not b": ("not",),
    "neither": ("not",),
    "a and b and c": ("and",),
    "a or b or c": ("or",),
    "a and (b or c)": ("and", "or"),
    "(a or b) not c": ("or", "not"),
    "a and b not c": ("and", "not"),
    "none": ("not",),
}

_LISTS = read_lists("frames.txt")
FRAMES = lists_under(_LISTS, "atoms")
TOPIC_FRAMES = lists_under(_LISTS, "topics")
BEING_FRAMES = lists_under(_LISTS, "being")
WITH_FRAMES = lists_under(_LISTS, "with")
WRAPPERS = _LISTS["wrappers"]
CLOSED = tuple(f"{word} " for word in _LISTS["closed"])
CLAUSES = _LISTS["clauses"]
