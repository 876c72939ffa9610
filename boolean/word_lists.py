"""Lists of words and wordings in text files: a name in brackets, then one entry per line; # begins a comment."""

import re
from pathlib import Path

Lists = dict[str, tuple[str, ...]]


def read_lists(path: Path) -> Lists:
    """The lists of a file."""
    lists: dict[str, list[str]] = {}
    title = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            title = line.strip("[]")
            lists[title] = []
        elif line and not line.startswith("#"):
            lists[title].append(line)
    return {title: tuple(entries) for title, entries in lists.items()}


def read_word_sets(path: Path) -> dict[str, frozenset[str]]:
    """The lists of a file as sets of words, several of which may stand on a line."""
    return {title: frozenset(" ".join(lines).split()) for title, lines in read_lists(path).items()}


def lists_under(lists: Lists, prefix: str) -> Lists:
    """The lists whose names begin with a prefix and a colon, by the rest of their names.

    >>> lists_under({"films: heads": ("movies",), "food: heads": ("meals",)}, "food")
    {'heads': ('meals',)}
    """
    start = f"{prefix}: "
    return {title.removeprefix(start): entries for title, entries in lists.items() if title.startswith(start)}


_ENGLISH = Path(__file__).with_name("words_en.txt")
WORDS = read_word_sets(_ENGLISH)  # small lists that several rules ask for
FIXED = read_lists(Path(__file__).with_name("fixed_en.txt"))["fixed"]  # "salt and pepper"
_ANY = {name: "|".join(" ".join(lines).split()).replace("_", r"\s+") for name, lines in read_lists(_ENGLISH).items()}


def pattern(shape: str, flags: int = 0) -> re.Pattern[str]:
    r"""A regular expression that ignores case; {name} in it is any word of that list of words_en.txt.

    >>> pattern(r"\s*{auxiliary}\b").match("Does it rain?").group()
    'Does'
    """
    filled = re.sub(r"\{([a-z][a-z ]+)\}", lambda slot: f"(?:{_ANY[slot[1]]})", shape)
    return re.compile(filled, re.IGNORECASE | flags)
