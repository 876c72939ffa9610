"""What an index and a vector store have in common: documents that a model has encoded, and how that model is known."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boolbert.core.errors import RetrievalError, shorten
from boolbert.data.own.columns import DATE, NUMBER, TEXT
from boolbert.retrieval.evidence import RULES
from boolbert.retrieval.fingerprints import document_encoder_of
from boolbert.retrieval.shards import FLOAT32, INT8

if TYPE_CHECKING:
    from boolbert.retrieval.models import SearchModel


@dataclass(frozen=True)
class About:
    """What is held: vectors of which encoder (its fingerprint), made by which model, and the kinds of fields."""

    encoder: str
    size: int
    model: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    complete: bool = True  # False while documents are being added, and after that was cut off
    evidence: bool = False  # whether it knows what its documents say, clause by clause: retrieval/evidence.py
    line: Mapping[str, object] | None = None  # what was calibrated on its documents: retrieval/exclusion_line.py
    rules: int = 0  # by which its evidence was made, where it has some
    precision: str = FLOAT32  # by which documents are encoded: retrieval/int8_encoder.py
    columns: Mapping[str, str] = field(default_factory=dict)  # of its documents' ids and sets, as the flags name them
    table: str = ""  # the user's own table whose rows these are: retrieval/stores/postgres_table.py

    @classmethod
    def stored(cls, known: Any, place: str, remedy: str) -> "About":
        """What was kept of it as JSON. place, remedy: where that was read, and what to do where it is damaged."""
        problem = _problem(known)
        if problem is not None:
            raise RetrievalError(f"{place} is damaged ({problem}); {remedy}")
        return cls(**known)

    @classmethod
    def of(
        cls, model: "SearchModel", fields: Mapping[str, str], source: str, *, evidence: bool, precision: str
    ) -> "About":
        size = model.encoder.get_embedding_dimension()
        if size is None:
            raise RetrievalError(f"{model.name}: the model does not tell the size of its vectors")
        name = str(Path(model.name).resolve()) if model.name and Path(model.name).is_dir() else model.name
        encoder = document_encoder_of(model)
        rules = RULES if evidence else 0
        return cls(encoder, size, name, dict(fields), source, evidence=evidence, rules=rules, precision=precision)


# What each field of `About` has to be.
_RIGHT: dict[str, Callable[[Any], bool]] = {
    "encoder": lambda value: isinstance(value, str),
    "size": lambda value: type(value) is int and value > 0,
    "model": lambda value: value is None or isinstance(value, str),
    "fields": lambda value: isinstance(value, dict) and all(kind in (NUMBER, TEXT, DATE) for kind in value.values()),
    "source": lambda value: isinstance(value, str),
    "complete": lambda value: isinstance(value, bool),
    "evidence": lambda value: isinstance(value, bool),
    "line": lambda value: value is None or isinstance(value, dict),
    "rules": lambda value: type(value) is int,
    "precision": lambda value: value in (FLOAT32, INT8),
    "columns": lambda value: isinstance(value, dict) and all(isinstance(name, str) for name in value.values()),
    "table": lambda value: isinstance(value, str),
}


def _problem(known: Any) -> str | None:
    """What is wrong with what a store keeps of itself; None where nothing is.

    >>> _problem({"encoder": "e", "size": 4, "columns": "id"}), _problem({"size": 4})
    ("field 'columns' is wrong: 'id'", "field 'encoder' is missing")
    """
    if not isinstance(known, dict):
        return f"expected an object, got {shorten(known)}"
    for own in fields(About):
        is_needed = own.default is MISSING and own.default_factory is MISSING
        if is_needed and own.name not in known:
            return f"field {own.name!r} is missing"
    for name, value in known.items():
        if name not in _RIGHT:
            return f"field {shorten(name)} is none of ours"
        if not _RIGHT[name](value):
            return f"field {name!r} is wrong: {shorten(value)}"
    return None


class EncodedDocuments(ABC):
    """An index or a store. `name` is how a user calls it."""

    name: str

    @abstractmethod
    def about(self) -> About:
        """What it holds; a RetrievalError where it does not exist."""

    @property
    def model(self) -> str | None:
        """The name of the model that it was made with; None for the default encoder."""
        return self.about().model

    def fits(self, model: Any) -> bool:
        """Whether the model's vectors of documents can be compared with these."""
        return document_encoder_of(model) == self.about().encoder

    def check_model(self, model: Any) -> None:
        self.check_encoder(document_encoder_of(model), model.name)

    def check_encoder(self, encoder: str, name: str | None) -> None:
        """Raise where vectors of this encoder cannot be compared with these."""
        about = self.about()
        if about.encoder != encoder:
            raise RetrievalError(
                f"{self.name}: was made with another document encoder, that of {about.model or 'the default encoder'}, "
                f"not of {name or 'the default encoder'}; use that model, or index again with this one"
            )
