"""What the embedded countries know about a query: which of them an excluded phrase names."""

from collections.abc import Iterable
from functools import cache

from boolbert.data import Corpus, Document
from boolbert.data.countries import country_atoms, country_documents
from boolbert.data.countries.atoms import all_atoms
from boolbert.retrieval.fingerprints import corpus_fingerprint
from boolbert.retrieval.index import Index


def named_rows(index: Index, phrases: Iterable[str]) -> frozenset[int] | None:
    """The documents that one of the phrases names; None where that is not known.

    It is known for the embedded countries, if each phrase names one of their sets.
    """
    if index.manifest["corpus"] != _countries():
        return None
    rows = [_rows(" ".join(phrase.lower().split())) for phrase in phrases]
    return None if None in rows else frozenset().union(*filter(None, rows))


def _rows(phrase: str) -> frozenset[int] | None:
    """
    >>> _rows("islands") == _rows("island countries"), _rows("great powers")
    (True, None)
    """
    named = _named()
    return named.get(phrase) or named.get(phrase.removesuffix("s"))


@cache
def _countries() -> str:
    return corpus_fingerprint(Corpus(Document(row["title"], row["text"]) for row in country_documents()))


@cache
def _named() -> dict[str, frozenset[int]]:
    """The rows of the countries by the words that name them.

    >>> _named()["former british colonies"] == _named()["british colonies"]
    True
    """
    rows = country_atoms()
    named: dict[str, frozenset[int]] = {}
    for key, atom in all_atoms().items():
        predicates = [predicate.removeprefix("are ").removeprefix("were ") for predicate in atom.predicates]
        for words in filter(None, (*atom.nouns, *atom.predicates, *predicates, atom.adjective, atom.after)):
            named.setdefault(words.lower(), frozenset(rows[key]))
    return named
