"""BM25 that knows what a text denies: an index of words on disk, asked one part of a query at a time.

A word that is denied is another word than one that is not: "contains no nuts" holds "-nuts". So "nuts" does not find
it, and does not exclude it either.

words.txt      every word, in the order of their numbers
starts.npy     where the documents of each word begin in the two other files
rows.npy       the documents that hold a word
weights.npy    what the word adds to the score of each
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boolbert.boolean.clauses import Clause
from boolbert.retrieval.ranking import Scores

K1, B = 1.5, 0.75  # of BM25, as Lucene has them
DENIED = "-"
_WORD = re.compile(r"\w\w+")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_STOP_WORDS = frozenset(
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
        if word in _STOP_WORDS:
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


class WordIndex:
    """BM25 over documents."""

    def __init__(self, folder: Path, documents: int):
        self._numbers = {
            word: number for number, word in enumerate((folder / "words.txt").read_text("utf-8").split("\n"))
        }
        self._starts, self._rows, self._weights = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("starts", "rows", "weights")
        )
        self._documents = documents
        words = max(1, len(self._starts) - 1)  # no word at all is an empty file, which holds one empty line
        if len(self._numbers) != words or not self._starts[-1] == len(self._rows) == len(self._weights):
            raise ValueError("its files do not belong together")

    def scores(self, words: Iterable[str]) -> Scores:
        """The scores (N,) of all documents, 1 for the best; all 0 where none holds any of the words."""
        scores = np.zeros(self._documents, np.float32)
        for word in dict.fromkeys(words):
            number = self._numbers.get(word)
            if number is not None:
                inside = slice(self._starts[number], self._starts[number + 1])
                scores[self._rows[inside]] += self._weights[inside]
        return scores / max(float(scores.max(initial=0.0)), 1e-9)


class WordCounts:
    """The words of documents that come one after the other, of which `write` makes the files of a `WordIndex`."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words, self._rows, self._counts = array("i"), array("i"), array("i")
        self._lengths = array("i")

    def add(self, words: Sequence[str]) -> None:
        """The words of the next document."""
        counts = Counter(self._numbers.setdefault(word, len(self._numbers)) for word in words)
        self._words.extend(counts)
        self._counts.extend(counts.values())
        self._rows.extend([len(self._lengths)] * len(counts))
        self._lengths.append(len(words))

    def write(self, folder: Path) -> None:
        words, rows, counts, lengths = (
            np.frombuffer(values, np.int32) if len(values) else np.empty(0, np.int32)
            for values in (self._words, self._rows, self._counts, self._lengths)
        )
        order = np.argsort(words, kind="stable")
        held_by = np.bincount(words, minlength=len(self._numbers))  # documents
        rarity = np.log1p((len(lengths) - held_by + 0.5) / (held_by + 0.5))
        relative = lengths / max(float(lengths.mean()), 1e-9)
        weights = rarity[words] * counts / (counts + K1 * (1 - B + B * relative[rows]))
        starts: npt.NDArray[np.int64] = np.concatenate([[0], np.cumsum(held_by)])
        np.save(folder / "starts.npy", starts)
        np.save(folder / "rows.npy", rows[order])
        np.save(folder / "weights.npy", weights[order].astype(np.float16))
        (folder / "words.txt").write_text("\n".join(self._numbers), encoding="utf-8")
