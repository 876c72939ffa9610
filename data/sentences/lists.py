"""The wordings of each Boolean meaning and the vocabulary of each subject; `frames.txt` and `words.txt` hold them."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from ...boolean.word_lists import Lists, lists_under, read_lists
from ..labels import cue_table

_FOLDER = Path(__file__).parent
_CUES = re.compile(r"<(\w+)>")


def _with_cues(frame: str) -> list[str]:
    """A frame; with <frame> in it, one for each cue of that list of the cue table."""
    cues = _CUES.search(frame)
    return [frame.replace(cues[0], cue) for cue in cue_table().written(cues[1])] if cues else [frame]


_FRAMES = {
    title: tuple(one for frame in frames for one in _with_cues(frame))
    for title, frames in read_lists(_FOLDER / "frames.txt").items()
}
FRAMES = lists_under(_FRAMES, "atoms")
TOPIC_FRAMES = lists_under(_FRAMES, "topics")
BEING_FRAMES = lists_under(_FRAMES, "being")
WITH_FRAMES = lists_under(_FRAMES, "with")
NAMES = read_lists(_FOLDER / "names.txt")
TYPED = read_lists(_FOLDER / "typed.txt")


class Domain(NamedTuple):
    """The vocabulary of one subject."""

    name: str
    heads: tuple[str, ...]
    adjectives: tuple[str, ...]
    phrases: tuple[str, ...]
    kinds: tuple[str, ...]
    relation: str
    group: str
    topics: tuple[str, ...]


def _domain(lists: Lists, name: str) -> Domain:
    words = lists_under(lists, name)
    relation, group = words.pop("relation")[0], words.pop("group")[0]
    return Domain(name=name, relation=relation, group=group, **words)


_WORDS = read_lists(_FOLDER / "words.txt")
DOMAINS = tuple(_domain(_WORDS, name) for name in dict.fromkeys(title.partition(":")[0] for title in _WORDS))
_LISTS = ("adjectives", "phrases", "kinds", "topics")
# Every fourth word of each list is for dev, in whichever other list it stands.
_DEV = frozenset(word for domain in DOMAINS for name in _LISTS for word in getattr(domain, name)[3::4])


def domain_of_split(domain: Domain, split: str) -> Domain:
    """The domain with the words of one split."""
    words: dict[str, Any] = {
        name: tuple(w for w in getattr(domain, name) if (w in _DEV) == (split == "dev")) for name in _LISTS
    }
    return domain._replace(**words)
