"""BM25 that knows what a text denies: an index of words on disk, asked one part of a query at a time.

A word that is denied is another word than one that is not: "contains no nuts" holds "-nuts". So "nuts" does not find
it, and does not exclude it either.

words.txt      every word, in the order of their numbers
starts.npy     where the documents of each word begin in the two other files
rows.npy       the documents that hold a word
weights.npy    what the word adds to the score of each
counts.npy     how often it stands in each, and
lengths.npy    how many words each document has: with these, the documents of several folders are scored as one
checks.npy     for each word the check sums of its rows and weights, and of its rows and counts
"""

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.boolean.clauses import Clause
from boolbert.core.errors import RetrievalError
from boolbert.core.files import check_sum, save_array
from boolbert.retrieval.arrays import load_array
from boolbert.retrieval.ranking import Scores

K1, B = 1.5, 0.75  # of BM25: how soon repeating a word stops to count, and how much a long document is discounted
# The share of BM25's bound above which a document has all that is asked for; a word that stands once has 0.4.
FULL = 0.35
FEW_WORDS = 3  # of a condition: a document that has all of them has what is asked for, and more of them says no more
FEW = 100  # in fewer documents than these, how many hold a word says little about how rare it is
DENIED = "-"

Integers = npt.NDArray[np.integer[Any]]
_WORD = re.compile(r"\w\w+")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
STOP_WORDS = frozenset(
    {
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
        *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
        *("will", "with"),
    }
)


def words_of(text: str, clauses: Sequence[Clause] = (), *, decades: bool = False) -> list[str]:
    """The words of a text without their plurals; those that one of its clauses denies are marked.

    decades: a year says its decade too, as it should in a document.

    >>> from boolbert.boolean.clauses import split_clauses
    >>> text = "Bars of 1998 with honey, but no nuts"
    >>> words_of(text, split_clauses(text), decades=True)
    ['bar', '1998', '1990s', 'honey', '-nut']
    """
    denied = bytearray(len(text))  # for each character, whether it is
    for start, end in (span for clause in clauses for span in clause.denied):
        denied[start:end] = b"\1" * (end - start)
    found = []
    for match in _WORD.finditer(text):
        word = match.group().lower()
        if word in STOP_WORDS:
            continue
        is_denied = denied[match.start()]
        found.append(DENIED * is_denied + singular(word))
        if decades and _YEAR.fullmatch(word):
            found.append(f"{DENIED * is_denied}{word[:3]}0s")
    return found


def singular(word: str) -> str:
    """
    >>> singular("countries"), singular("films"), singular("glass"), singular("1990s")
    ('country', 'film', 'glass', '1990s')
    """
    if word[0].isdigit() or word.endswith(("ss", "us", "is")):
        return word
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def rarity(held_by: Any, documents: int) -> npt.NDArray[np.float64]:
    """BM25's weight of a word that this many documents hold."""
    held_by = np.asarray(held_by)
    return np.log1p((max(documents, FEW) - held_by + 0.5) / (held_by + 0.5))


def word_weights(counts: Any, relative: Any, held_by: Any, documents: int) -> npt.NDArray[np.float16]:
    """What words add to the scores of documents that hold them so often.

    relative: the documents' lengths by their mean. held_by: how many of all documents hold the word.
    """
    return np.asarray(rarity(held_by, documents) * counts / (counts + K1 * (1 - B + B * relative)), np.float16)


def changed(folder: Path) -> RetrievalError:
    return RetrievalError(
        f"{folder}: was changed after it was written; delete it and index again, or search with --no-evidence"
    )


ARRAYS = ("starts", "rows", "weights", "counts", "lengths", "checks")  # the files of a `WordIndex`


class WordIndex:
    """BM25 over documents."""

    def __init__(self, folder: Path, documents: int):
        starts = load_array(folder / "starts.npy", "int64", (None,))
        held = (int(starts[-1]),)
        shapes = {
            "rows": ("int32", held),
            "weights": ("float16", held),
            "counts": ("unsigned", held),
            "lengths": ("int32", (documents,)),
            "checks": ("uint32", (len(starts) - 1, 2)),
        }
        arrays = {name: load_array(folder / f"{name}.npy", *shape) for name, shape in shapes.items()}
        arrays["starts"] = starts
        self._take(folder, documents, (folder / "words.txt").read_bytes(), arrays)

    @classmethod
    def in_memory(cls, counts: "WordCounts") -> "WordIndex":
        """The words of documents, without files."""
        index = cls.__new__(cls)
        content, arrays = counts.arrays()
        index._take(Path("memory"), len(arrays["lengths"]), content, arrays)
        return index

    def _take(self, folder: Path, documents: int, content: bytes, arrays: Mapping[str, Any]) -> None:
        self._folder, self._documents = folder, documents
        self._numbers = {word: number for number, word in enumerate(content.decode().split("\n"))}
        self._starts, self._rows, self._weights, self._counts, self.lengths, self._checks = (
            arrays[name] for name in ARRAYS
        )
        self.small_files = (content, self._starts, self.lengths, self._checks)
        self._is_checked = np.zeros(self._checks.shape, np.bool_)
        words = max(1, len(self._starts) - 1)  # no word at all is an empty file, which holds one empty line
        if len(self._numbers) != words:
            raise ValueError("its files do not belong together")

    def scores(self, words: Iterable[str]) -> Scores:
        """The scores (N,) of all documents: 0 for one with none of the words, 1 for one of average length that has each
        of them about once, and of few words no more than 1. They are not scaled to the best document: where none has
        the words, all are 0.
        """
        scores, most, asked = np.zeros(self._documents, np.float32), 0.0, tuple(dict.fromkeys(words))
        for word in asked:
            rows, weights = self.weights(word)
            scores[rows] += weights
            most += float(rarity(self.held_by(word, len(rows)), self.documents))
        scores /= np.float32(max(FULL * most, 1e-9))
        return np.minimum(scores, 1.0, dtype=np.float32) if len(asked) <= FEW_WORDS else scores

    @property
    def documents(self) -> int:
        """How many documents there are, without those that were deleted."""
        return self._documents

    def held_by(self, word: str, found: int) -> int:
        """How many documents of the collection hold a word; found: how many of those that are here."""
        return found

    def weights(self, word: str) -> tuple[Integers, npt.NDArray[np.float16]]:
        """The documents that hold a word, and what it adds to the score of each."""
        inside = self._inside(word)
        rows, weights = self._rows[inside], self._weights[inside]
        self._check(word, 0, rows, weights)
        return rows, weights

    def _check(self, word: str, column: int, rows: Integers, values: npt.NDArray[Any]) -> None:
        """Raise where what was read of a word is not as it was written. It is looked at when it is first read."""
        if not len(rows) or self._is_checked[place := (self._numbers[word], column)]:
            return
        if self._checks[place] != check_sum(rows, values):
            raise changed(self._folder.parent)
        self._is_checked[place] = True

    def _inside(self, word: str) -> slice:
        number = self._numbers.get(word)
        return slice(0) if number is None else slice(self._starts[number], self._starts[number + 1])

    def holding(self, word: str) -> tuple[Integers, Integers]:
        """The documents that hold a word, and how often it stands in each."""
        inside = self._inside(word)
        rows, counts = self._rows[inside], self._counts[inside]
        self._check(word, 1, rows, counts)
        return rows, counts

    def of_documents(self, rows: Integers) -> list[dict[str, int]]:
        """The words of some documents, with their counts."""
        if not np.array_equal(self._checks[:, 1], _sums(self._starts, self._rows, self._counts)):
            raise changed(self._folder.parent)
        places = np.full(self._documents, -1)
        places[rows] = np.arange(len(rows))
        found = places[self._rows]
        inside = np.flatnonzero(found >= 0)
        numbers = np.searchsorted(self._starts, inside, side="right") - 1
        names = list(self._numbers)
        words: list[dict[str, int]] = [{} for _ in rows]
        for place, number, count in zip(found[inside], numbers, self._counts[inside].tolist(), strict=True):
            words[place][names[number]] = count
        return words


class WordCounts:
    """The words of documents, added one document after the other, and written as the files of a `WordIndex`."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words, self._rows, self._counts = array("i"), array("i"), array("i")
        self._lengths = array("i")

    def add(self, words: Mapping[str, int]) -> None:
        """The words of the next document, with their counts."""
        self._words.extend(self._numbers.setdefault(word, len(self._numbers)) for word in words)
        self._counts.extend(words.values())
        self._rows.extend([len(self._lengths)] * len(words))
        self._lengths.append(sum(words.values()))

    def arrays(self) -> tuple[bytes, dict[str, Any]]:
        """What the files hold: the words, and the arrays by their names."""
        words, rows, counts, lengths = (
            np.frombuffer(values, np.int32) if len(values) else np.empty(0, np.int32)
            for values in (self._words, self._rows, self._counts, self._lengths)
        )
        order = np.argsort(words, kind="stable")
        held_by = np.bincount(words, minlength=len(self._numbers))  # documents
        relative = lengths / max(float(lengths.mean()), 1e-9)
        weights = word_weights(counts, relative[rows], held_by[words], len(lengths))
        starts: npt.NDArray[np.int64] = np.concatenate([[0], np.cumsum(held_by)])
        rows, weights, counts = rows[order], weights[order], counts[order]
        counts = counts.astype(np.min_scalar_type(counts.max(initial=0)))
        checks = np.stack([_sums(starts, rows, values) for values in (weights, counts)], 1)
        named = zip(ARRAYS, (starts, rows, weights, counts, lengths, checks), strict=True)
        return "\n".join(self._numbers).encode(), dict(named)

    def write(self, folder: Path) -> tuple[Any, ...]:
        """Write the files; what the small ones hold."""
        content, arrays = self.arrays()
        for name, values in arrays.items():
            save_array(folder / f"{name}.npy", values)
        (folder / "words.txt").write_bytes(content)
        return content, arrays["starts"], arrays["lengths"], arrays["checks"]


def _sums(starts: Integers, rows: Integers, values: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """The check sums of each word's rows and values (W,)."""
    pieces = (slice(*edges) for edges in pairwise(starts.tolist()))
    return np.array([check_sum(rows[piece], values[piece]) for piece in pieces], np.uint32)
