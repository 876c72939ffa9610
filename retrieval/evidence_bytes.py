"""What one document says as bytes, for databases, and as a text, for the metadata of a framework's documents."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from boolbert.core.errors import RetrievalError
from boolbert.core.files import check_sum

from .evidence import RULES, Array, DocumentEvidence, in_bytes


def clauses_in_bytes(evidence: DocumentEvidence) -> bytes:
    """A document's clauses with their vectors: one line of JSON, then the bytes of its arrays. Without its words."""
    line = json.dumps(evidence.vectors.shape).encode()
    arrays = (evidence.clauses, evidence.scales, evidence.vectors)
    return b"".join([line, b"\n", *(np.ascontiguousarray(array).tobytes() for array in arrays)])


def evidence_from_bytes(content: bytes, words: Mapping[str, int]) -> DocumentEvidence:
    """
    >>> made = DocumentEvidence({"nut": 2}, np.ones((2, 3), np.int32), np.ones((2, 4), np.int8), np.ones(2, np.float16))
    >>> [np.array_equal(*pair) for pair in zip(made, evidence_from_bytes(clauses_in_bytes(made), {"nut": 2}))]
    [True, True, True, True]
    """
    line, _, rest = content.partition(b"\n")
    count, size = json.loads(line)
    clauses = np.frombuffer(rest, np.int32, 3 * count).reshape(-1, 3)
    scales = np.frombuffer(rest, np.float16, count, clauses.nbytes)
    vectors = np.frombuffer(rest, np.int8, count * size, clauses.nbytes + scales.nbytes)
    return DocumentEvidence(words, clauses, vectors.reshape(count, size), scales)


class Kept(NamedTuple):
    """What a document says, and its vector."""

    evidence: DocumentEvidence
    vector: Array


def kept_in_text(text: str, kept: Kept) -> str:
    """What a document says, with the check sum of its text: four characters for three bytes. Its vector stands behind
    those of its clauses, as that of one more.

    >>> said = DocumentEvidence({"nut": 2}, np.ones((1, 3), np.int32), np.ones((1, 2), np.int8), np.ones(1, np.float16))
    >>> kept_from_text(kept_in_text("Nuts.", Kept(said, np.array([0.0, 1.0]))), "Nuts.").vector.round(2).tolist()
    [0.0, 1.0]
    >>> kept_from_text(kept_in_text("Nuts.", Kept(said, np.array([0.0, 1.0]))), "No nuts.") is None
    True
    """
    said, (vector, scale) = kept.evidence, in_bytes(kept.vector[None])
    clauses = np.concatenate([said.clauses, np.array([[0, len(text), 0]], np.int32)])
    vectors = np.concatenate([said.vectors.reshape(-1, vector.shape[1]), vector])
    with_whole = DocumentEvidence({}, clauses, vectors, np.concatenate([said.scales, scale]))
    line = json.dumps({"rules": RULES, "text": _sum_of(text), "words": dict(said.words)}, ensure_ascii=False)
    return base64.b64encode(line.encode() + b"\n" + clauses_in_bytes(with_whole)).decode()


def kept_from_text(content: str, text: str) -> Kept | None:
    """None where it was kept of another text, or by the rules of another version."""
    try:
        line, _, rest = base64.b64decode(content, validate=True).partition(b"\n")
        header = json.loads(line)
        if header["rules"] != RULES or header["text"] != _sum_of(text):
            return None
        clauses, vectors, scales = evidence_from_bytes(rest, {})[1:]
        said = DocumentEvidence(header["words"], clauses[:-1], vectors[:-1], scales[:-1])
        return Kept(said, vectors[-1].astype(np.float32) * np.float32(scales[-1]))
    except (binascii.Error, ValueError, KeyError, IndexError, TypeError):
        raise RetrievalError("the kept clauses of a document cannot be read; keep them again") from None


def _sum_of(text: str) -> int:
    return check_sum(text.encode(errors="replace"))
