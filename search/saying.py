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

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from boolbert.boolean.clauses import split_clauses
from boolbert.core.errors import RetrievalError, check_text, shorten
from boolbert.retrieval.document_reader import Passage, document_reader, passage
from boolbert.retrieval.encoders import INSTALL
from boolbert.retrieval.functions import listed

SHORT = 300  # characters of a text for which nothing is embedded: it is read as a whole
NO_COSINES = np.empty(0, np.float32)


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
    check_text(condition, f"the condition {shorten(condition)}", RetrievalError)
    reader, found, condition = document_reader(), listed(texts), condition.strip()
    if reader is None:
        raise RetrievalError(f"texts cannot be read without the encoder: {INSTALL}")
    passages = [passage(condition, text, [], NO_COSINES) for text in found]
    long = [row for row, text in enumerate(found) if len(text) > SHORT]
    whole = {row for row in long if reader.reads_whole(found[row])}
    _find_nearest(passages, [row for row in long if row not in whole])
    read = reader.with_plain_sentences(passages, reader.read(passages))
    # Of a text that is read as a whole, where no sentence says it by itself, the one that is nearest is shown.
    sure = [row for row in sorted(whole) if read[row].is_sure]
    plain = reader.is_plain([passages[row] for row in sure], [read[row] for row in sure])
    unclear = [row for row, is_plain in zip(sure, plain, strict=True) if not is_plain]
    _find_nearest(passages, unclear)
    for row, one in zip(unclear, reader.read([passages[row] for row in unclear]), strict=True):
        read[row] = one
    return [
        Saying(one.affirms, one.denies, one.silent, text[one.start : one.end])
        for one, text in zip(read, found, strict=True)
    ]


def _find_nearest(passages: list[Passage], rows: Sequence[int]) -> None:
    """Put the sentences of these passages in the order of how near they are to the condition."""
    if not rows:
        return
    condition, texts = passages[rows[0]].condition, [passages[row].text for row in rows]
    spans = [[(clause.start, clause.end) for clause in split_clauses(text)] for text in texts]
    clauses = [text[start:end] for text, own in zip(texts, spans, strict=True) for start, end in own]
    unique = list(dict.fromkeys([condition, *clauses]))
    vectors = _encoder()(unique)
    cosines = dict(zip(unique, vectors @ vectors[0], strict=True))
    for row, text, own in zip(rows, texts, spans, strict=True):
        near = np.array([cosines[text[start:end]] for start, end in own], np.float32)
        passages[row] = passage(condition, text, own, near)


@cache
def _encoder() -> Callable[[Sequence[str]], npt.NDArray[np.float32]]:
    """What gives the default encoder's vectors, of length 1: opened once, in int8 where the processor can."""
    from boolbert.retrieval.evidence import unit_length

    from .cached_model import cached_model
    from .default_program import default_int8

    with suppress(Exception):  # whatever is missing, the model itself can be opened, or says what is wrong
        return default_int8()
    if (model := cached_model(None)) is not None:
        return lambda texts: unit_length(model.queries.plain_vectors(texts))
    from boolbert.retrieval.models import load_encoder

    encoder = load_encoder(quiet=True)
    return lambda texts: unit_length(encoder.encode_document(list(texts)))
