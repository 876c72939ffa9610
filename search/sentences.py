"""Documents of many facts, read sentence by sentence: one sentence about what NOT excludes moves a document down."""

import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .closest import Candidate, QueryVectors

# A sentence is about one thing, so its cosine with what is excluded is higher than its document's. Its threshold is
# higher by this,
NEARER = 0.05
# and a document loses this many times what its sentence's cosine exceeds the threshold by.
WEIGHT = 0.5
_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_FEWEST_WORDS = 3

Encode = Callable[[Sequence[str]], npt.NDArray[np.float32]]  # texts -> vectors of length 1


def sentences_of(text: str) -> list[str]:
    """The sentences of a text; where there are none, all of it.

    >>> sentences_of("It has a British colonial past; it became independent in 1964. Yes. Traffic keeps left.")
    ['It has a British colonial past;', 'it became independent in 1964.', 'Traffic keeps left.']
    """
    found = [part for part in _END.split(text.strip()) if len(part.split()) >= _FEWEST_WORDS]
    return found or [text]


def looked_into(candidates: Sequence[Candidate], parts: QueryVectors, encode: Encode) -> list[Candidate]:
    """The candidates, sorted again: a sentence similar to what is excluded lowers its document's score.

    `nearest` is then the sentence most similar to it. Where nothing is excluded, the candidates stay as they are.
    """
    if parts.excluded is None or parts.penalty is None:
        return list(candidates)
    texts = [sentences_of(candidate.text) for candidate in candidates]
    cosines = encode([text for several in texts for text in several]) @ parts.excluded / np.linalg.norm(parts.excluded)
    found, start = [], 0
    for candidate, several in zip(candidates, texts, strict=True):
        own = cosines[start : start + len(several)]
        start += len(several)
        nearest = int(own.argmax())
        loss = WEIGHT * max(0.0, float(own[nearest]) - parts.penalty[1] - NEARER)
        found.append(candidate._replace(score=candidate.score - loss, nearest=several[nearest]))
    return sorted(found, key=lambda candidate: -candidate.score)
