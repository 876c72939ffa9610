"""What the embedded countries know about a query: which of them an excluded phrase names."""

from collections.abc import Iterable
from functools import cache

from boolbert.data import Quest
from boolbert.data.embedded import country_names
from boolbert.retrieval.fingerprints import corpus_fingerprint
from boolbert.retrieval.index import Index


def named_rows(index: Index, phrases: Iterable[str]) -> frozenset[int] | None:
    """The documents that one of the phrases names; None where that is not known.

    It is known for the embedded countries, if each phrase names one of their sets.
    """
    if index.manifest["corpus"] != _countries():
        return None
    named, rows = _named(), []
    for phrase in phrases:
        words = " ".join(phrase.lower().split())
        rows.append(named.get(words) or named.get(words.removesuffix("s")))
    return None if None in rows else frozenset().union(*filter(None, rows))


@cache
def _countries() -> str:
    return corpus_fingerprint(Quest(progress=False).corpus)


@cache
def _named() -> dict[str, frozenset[int]]:
    """The rows of the countries by the words that name them.

    >>> _named()["former british colonies"] == _named()["british colonies"]
    True
    """
    atoms = Quest(progress=False).atoms or {}
    named: dict[str, frozenset[int]] = {}
    for key, names in country_names().items():
        for words in names:
            named.setdefault(words.lower(), frozenset(atoms[key].tolist()))
    return named
