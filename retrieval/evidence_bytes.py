"""What one document says as bytes, for databases, and as a text, for the metadata of a framework's documents."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from boolbert.core.errors import RetrievalError, shorten
from boolbert.core.files import check_sum

from .evidence import RULES, Array, DocumentEvidence, in_bytes, unit_length

BEGIN = "boolbert:"  # of what is kept in a text


def clauses_in_bytes(evidence: DocumentEvidence) -> bytes:
    """A document's clauses with their vectors: one line of JSON, then the bytes of its arrays. Without its words."""
    line = json.dumps(evidence.vectors.shape).encode()
    arrays = (evidence.clauses, evidence.scales, evidence.vectors)
    return b"".join([line, b"\n", *(np.ascontiguousarray(array).tobytes() for array in arrays)])


def evidence_from_bytes(content: bytes, words: Mapping[str, int], text: str | None = None) -> DocumentEvidence:
    """The evidence again; a RetrievalError says what of it another program has damaged. text: the document's, of which
    clauses are places.

    >>> made = DocumentEvidence({"nut": 2}, np.ones((2, 3), np.int32), np.ones((2, 4), np.int8), np.ones(2, np.float16))
    >>> [np.array_equal(*pair) for pair in zip(made, evidence_from_bytes(clauses_in_bytes(made), {"nut": 2}))]
    [True, True, True, True]
    """
    if not isinstance(words, Mapping) or not all(type(count) is int and count > 0 for count in words.values()):
        raise RetrievalError(f"its words are {shorten(words)}")
    try:
        line, _, rest = content.partition(b"\n")
        count, size = json.loads(line)
        clauses = np.frombuffer(rest, np.int32, 3 * count).reshape(count, 3)
        scales = np.frombuffer(rest, np.float16, count, clauses.nbytes)
        vectors = np.frombuffer(rest, np.int8, -1, clauses.nbytes + scales.nbytes).reshape(count, size)
        starts, ends = clauses[:, 0], clauses[:, 1]
        is_right = (
            count >= 0 and ((starts >= 0) & (starts <= ends)).all() and (text is None or (ends <= len(text)).all())
        )
        if not (is_right and np.isfinite(scales).all()):
            raise ValueError
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise RetrievalError("its clauses cannot be read") from None
    return DocumentEvidence(words, clauses, vectors, scales)


class Kept(NamedTuple):
    """What a document says, and its vector."""

    evidence: DocumentEvidence
    vector: Array


class Keeper(NamedTuple):
    """The encoder that made the vectors: its cosines of unrelated and of near texts, and the first numbers of the
    vector of one text, by which another encoder is told."""

    unrelated: float
    near: float
    probe: tuple[float, ...]


def kept_in_text(text: str, kept: Kept, keeper: Keeper) -> str:
    """What a document says, with the check sum of its text: four characters for three bytes. Its vector stands behind
    those of its clauses, as that of one more, with length 1.

    >>> said = DocumentEvidence({"nut": 2}, np.ones((1, 3), np.int32), np.ones((1, 2), np.int8), np.ones(1, np.float16))
    >>> content = kept_in_text("Nuts.", Kept(said, np.array([0.0, 7.0])), Keeper(0.1, 0.2, (1.5,)))
    >>> found, keeper = kept_from_text(content, "Nuts.")
    >>> found.vector.round(2).tolist(), keeper.probe
    ([0.0, 7.0], (1.5,))
    >>> kept_from_text(content, "No nuts."), kept_from_text("something else", "Nuts.")
    (None, None)
    """
    said, (vector, scale) = kept.evidence, in_bytes(unit_length(kept.vector[None]))
    clauses = np.concatenate([said.clauses, np.array([[0, len(text), 0]], np.int32)])
    vectors = np.concatenate([said.vectors.reshape(-1, vector.shape[1]), vector])
    with_whole = DocumentEvidence({}, clauses, vectors, np.concatenate([said.scales, scale]))
    length = float(np.linalg.norm(kept.vector))
    header = {"rules": RULES, "text": _sum_of(text), "length": length, "words": dict(said.words), "keeper": keeper}
    line = json.dumps(header, ensure_ascii=False)
    return BEGIN + base64.b64encode(line.encode() + b"\n" + clauses_in_bytes(with_whole)).decode()


def is_kept(content: Any) -> bool:
    """Whether something was written by `kept_in_text`: a field of that name may be another's."""
    return isinstance(content, str) and content.startswith(BEGIN)


def kept_from_text(content: str, text: str) -> tuple[Kept, Keeper] | None:
    """None where it was kept of another text, or by the rules of another version."""
    if not is_kept(content):
        return None
    try:
        line, _, rest = base64.b64decode(content.removeprefix(BEGIN), validate=True).partition(b"\n")
        header = json.loads(line)
        if header["rules"] != RULES or header["text"] != _sum_of(text):
            return None
        clauses, vectors, scales = evidence_from_bytes(rest, {})[1:]
        said = DocumentEvidence(dict(header["words"]), clauses[:-1], vectors[:-1], scales[:-1])
        length = np.float32(header["length"] * float(scales[-1]))
        unrelated, near, probe = header["keeper"]
        return Kept(said, vectors[-1].astype(np.float32) * length), Keeper(unrelated, near, tuple(probe))
    except (binascii.Error, ValueError, LookupError, TypeError, AttributeError, OverflowError):
        raise RetrievalError("the kept clauses of a document cannot be read; keep them again") from None


def _sum_of(text: str) -> int:
    return check_sum(text.encode(errors="replace"))
