"""A document as a vector store keeps it: id, title, text, and the fields that filters ask for."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boolbert.core.errors import RetrievalError
from boolbert.data.own import OwnDocument
from boolbert.data.own.columns import Value

LONGEST_ID = 512  # bytes


@dataclass(frozen=True)
class Record:
    """A stored document. `document` is the id of the whole where this is a passage of it, else its own."""

    id: str
    title: str
    text: str
    fields: Mapping[str, Value] = field(default_factory=dict)
    document: str = ""
    digest: str = ""  # of title, text and fields

    @classmethod
    def of(cls, own: OwnDocument) -> "Record":
        id = _shortened(own.id or own.name)
        return cls(id, own.name, own.content, dict(own.columns), _shortened(own.whole or id))

    def __post_init__(self) -> None:
        if not self.id.strip() or len(self.id.encode()) > LONGEST_ID:
            raise RetrievalError(f"a document's id must have 1 to {LONGEST_ID} bytes, got {self.id[:60]!r}")
        content = json.dumps([self.title, self.text, self.fields], sort_keys=True)
        object.__setattr__(self, "document", self.document or self.id)
        object.__setattr__(self, "digest", self.digest or _digest(content))

    def beside_text(self) -> dict[str, Any]:
        """All but title and text."""
        return {"id": self.id, "document": self.document, "digest": self.digest, "fields": dict(self.fields)}


def _shortened(id: str) -> str:
    """
    >>> _shortened("tt1"), len(_shortened("a very long title " * 100))
    ('tt1', 512)
    """
    content = id.encode()
    if len(content) <= LONGEST_ID:
        return id
    end = _digest(id)
    return content[: LONGEST_ID - len(end)].decode(errors="ignore") + end


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
