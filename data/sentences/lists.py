"""Lists of words and wordings in text files: a name in brackets, then one entry per line; # begins a comment."""

import re
from pathlib import Path

from ...boolean import cue_table

_CUES = re.compile(r"<(\w+)>")


def read_lists(name: str) -> dict[str, tuple[str, ...]]:
    """The lists of a file in this folder. An entry with <frame> in it stands for one entry per cue of that list.

    >>> read_lists("frames.txt")["clauses"]
    ('which {core}?', 'these {core}.', 'the {core}.')
    """
    lists: dict[str, list[str]] = {}
    title = ""
    for line in (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            title = line.strip("[]")
            lists[title] = []
        elif line and not line.startswith("#"):
            cues = _CUES.search(line)
            lists[title] += [line.replace(cues[0], cue) for cue in cue_table().written(cues[1])] if cues else [line]
    return {title: tuple(entries) for title, entries in lists.items()}


def lists_under(lists: dict[str, tuple[str, ...]], prefix: str) -> dict[str, tuple[str, ...]]:
    """The lists whose names begin with a prefix and a colon, by the rest of their names.

    >>> lists_under({"films: heads": ("movies",), "food: heads": ("meals",)}, "food")
    {'heads': ('meals',)}
    """
    start = f"{prefix}: "
    return {title.removeprefix(start): entries for title, entries in lists.items() if title.startswith(start)}
