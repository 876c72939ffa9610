"""The project's own word lists, one domain per subject; `words.txt` holds and explains them."""

from typing import NamedTuple

from .lists import lists_under, read_lists


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


def _domains() -> tuple[Domain, ...]:
    lists = read_lists("words.txt")
    names = dict.fromkeys(title.partition(":")[0] for title in lists)
    domains = []
    for name in names:
        words = lists_under(lists, name)
        relation, group = words.pop("relation")[0], words.pop("group")[0]
        domains.append(Domain(name=name, relation=relation, group=group, **words))
    return tuple(domains)


DOMAINS = _domains()
