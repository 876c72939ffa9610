"""A document as a vector store keeps it: id, title, text, and the fields that filters ask for."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boolbert.core.errors import RetrievalError, shorten
from boolbert.data.own import OwnDocument
from boolbert.data.own.columns import Value
from boolbert.data.own.documents import CONTROL

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
        id = _shortened(own.id) if own.id else id_of(own.name)
        return cls(id, own.name, own.content, dict(own.columns), id if own.whole is None else id_of(own.whole))

    def __post_init__(self) -> None:
        if not is_id(self.id):
            raise RetrievalError(
                f"a document's id must have 1 to {LONGEST_ID} bytes, no control characters and no half of a surrogate "
                f"pair, got {shorten(self.id)}"
            )
        content = json.dumps([self.title, self.text, self.fields], sort_keys=True)
        object.__setattr__(self, "document", self.document or self.id)
        object.__setattr__(self, "digest", self.digest or _digest(content))

    @classmethod
    def stored(cls, known: Mapping[str, Any], title: str, text: str) -> "Record":
        """A record again, from its title, its text, and what its `beside_text` wrote as JSON; a RetrievalError says
        what of it another program has damaged."""
        parts = {"id": known.get("id"), "document": known.get("document"), "digest": known.get("digest")}
        for name, own in {**parts, "title": title, "text": text}.items():
            if not isinstance(own, str):
                raise RetrievalError(f"its {name} is {shorten(own)}")
        fields = known.get("fields")
        if not isinstance(fields, Mapping):
            raise RetrievalError(f"its fields are {shorten(fields)}")
        values = {name: _field(name, own) for name, own in fields.items()}
        return cls(known["id"], title, text, values, known["document"], known["digest"])

    def beside_text(self) -> dict[str, Any]:
        """All but title and text."""
        return {"id": self.id, "document": self.document, "digest": self.digest, "fields": dict(self.fields)}


def _field(name: str, value: Any) -> Value:
    """A field's value as JSON had it: a number, or a list of texts."""
    if isinstance(value, list) and all(isinstance(own, str) for own in value):
        return tuple(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RetrievalError(f"its field {name!r} is {shorten(value)}")
    return float(value)


def is_id(text: str) -> bool:
    r"""Whether every store can keep a text as an id, and find it again.

    >>> is_id("tt1"), is_id(" "), is_id("a\tb"), is_id("\ud800")
    (True, False, False, False)
    """
    content = text.encode(errors="replace")
    return bool(text.strip()) and len(content) <= LONGEST_ID and content.decode() == text and not CONTROL.search(text)


def id_of(name: str) -> str:
    r"""The id of a document that has only a name.

    >>> id_of("Alien"), id_of("Alien\n(film)")
    ('Alien', 'Alien (film) ee852fd8e883e57f')
    """
    if not CONTROL.search(name):
        return _shortened(name)
    return _shortened(f"{CONTROL.sub(' ', name)} {_digest(name)}")


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
