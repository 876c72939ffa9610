"""Documents of many facts, read sentence by sentence: one that tells what is excluded is enough."""

import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .closest import Candidate, QueryVectors

# A sentence says little else, so it comes nearer to what is excluded than its document does: so much more is near,
NEARER = 0.05
# and what exceeds that counts so much.
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
    """The candidates, sorted anew: those with a sentence near to what is excluded have lost by it.

    Each then knows its sentence that is nearest. Where nothing is excluded they stay as they are.
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
