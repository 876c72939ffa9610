"""Long documents as passages that overlap, and how many documents are too long otherwise."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...core.checks import check_count
from ...core.errors import DataError

WORDS, OVERLAP = 180, 40  # an encoder reads 256 tokens, about 190 English words
_SENTENCE_END = re.compile(r"[.!?][\"'”’)]*$")


@dataclass(frozen=True)
class Passages:
    """Passages of about `words` words that share `overlap` words with their neighbours."""

    words: int = WORDS
    overlap: int = OVERLAP

    def __post_init__(self) -> None:
        check_count("words", self.words)
        check_count("overlap", self.overlap, least=0)
        if self.overlap >= self.words:
            raise DataError(f"passages of {self.words} words cannot overlap by {self.overlap}")

    def split(self, text: str) -> Iterator[str]:
        """The passages of a text. One ends with a sentence where a sentence ends in its last third.

        >>> list(Passages(words=4, overlap=1).split("One two three. Four five six seven."))
        ['One two three.', 'three. Four five six', 'six seven.']
        """
        words = text.split()
        start = 0
        while True:
            end = min(start + self.words, len(words))
            if end < len(words):
                earliest = start + max(self.overlap, 2 * self.words // 3)
                ends = (place for place in range(end, earliest, -1) if _SENTENCE_END.search(words[place - 1]))
                end = next(ends, end)
            yield " ".join(words[start:end])
            if end == len(words):
                return
            start = max(end - self.overlap, start + 1)


def is_long(text: str, words: int = WORDS) -> bool:
    """Whether an encoder of 256 tokens would cut the text."""
    return len(text) > 4 * words and len(text.split(None, words)) > words
