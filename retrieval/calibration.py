"""What "near" means to an encoder: e5 gives two unrelated texts a cosine of .75, all-MiniLM-L6-v2 one of .1.

No labels are needed: the cosines of texts that have nothing to do with each other tell where the scale begins.
"""

import numpy as np
import numpy.typing as npt

UNRELATED = 200  # texts whose cosines are looked at


def unrelated_texts(count: int = UNRELATED) -> list[str]:
    """Made sentences about all kinds of things, where no documents are at hand."""
    from boolbert.data.sentences import labelled_sentences

    return [sentence.text for sentence in labelled_sentences(count, seed=0, split="dev")]


def spread_rows(count: int) -> npt.NDArray[np.int64]:
    """The rows of some documents from all over a collection of this many.

    >>> len(spread_rows(1000)), spread_rows(3).tolist()
    (200, [0, 1, 2])
    """
    return np.arange(0, count, max(1, count // UNRELATED))[:UNRELATED]


def unrelated_cosine(vectors: npt.NDArray[np.float32]) -> float:
    """The cosine below which a quarter of all pairs of these vectors lies; 0 where there are too few to tell.

    >>> unrelated_cosine(np.eye(3, dtype=np.float32))
    0.0
    """
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
    cosines = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    return round(float(np.quantile(cosines, 0.25)), 4) if len(cosines) else 0.0


def near_cosine(vectors: npt.NDArray[np.float32], share: float) -> float:
    """The cosine that lies this share of the way from unrelated texts, the median of these vectors, to equal ones, 1.

    >>> near_cosine(np.eye(3, dtype=np.float32), 0.4), near_cosine(np.ones((3, 2), dtype=np.float32), 0.4)
    (0.4, 1.0)
    """
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
    cosines = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    unrelated = float(np.median(cosines)) if len(cosines) else 0.0
    return round(unrelated + share * (1 - unrelated), 4)
