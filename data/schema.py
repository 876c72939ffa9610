"""The rows of every data set this project reads, as small frozen types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..boolean import OPERATORS, TEMPLATES, template_operators
from .rows import Row


@dataclass(frozen=True, slots=True)
class Document:
    """A document and the title it is known by. In a passage collection the title is the passage's id."""

    title: str
    text: str

    @classmethod
    def from_row(cls, row: Row) -> "Document":
        return cls(row.text("title"), row.text("text", empty=True))


@dataclass(frozen=True, slots=True)
class Query:
    """A QUEST query. `atoms` names its atomic sets in the order of the template's blanks, where they are known.

    >>> query = Query("films, but no comedies", docs=("Alien",), template="_ that are not _")
    >>> query.operators
    ('not',)
    """

    query: str
    docs: tuple[str, ...]
    original_query: str | None = None
    template: str | None = None
    domain: str | None = None
    atoms: tuple[str, ...] = ()
    where: str = field(default="", compare=False, repr=False)

    @classmethod
    def from_row(cls, row: Row) -> "Query":
        template = row.optional_text("metadata.template")
        if template is not None and template not in TEMPLATES:
            known = ", ".join(map(repr, TEMPLATES))
            raise row.error("metadata.template", f"must be one of {known}, got {template!r}")
        atoms = row.texts("metadata.atoms") if row.get("metadata.atoms") is not None else ()
        if template is not None and atoms and len(atoms) != (sets := template.count("_")):
            raise row.error("metadata.atoms", f"must name {sets} sets for {template!r}, got {len(atoms)}")
        return cls(
            query=row.text("query"),
            docs=row.texts("docs"),
            original_query=row.optional_text("original_query") or None,
            template=template,
            domain=row.optional_text("metadata.domain") or None,
            atoms=atoms,
            where=row.where,
        )

    @property
    def operators(self) -> tuple[str, ...] | None:
        """The operators of the query's template; None where no template is given."""
        return None if self.template is None else template_operators(self.template)


@dataclass(frozen=True, slots=True)
class BoolQuestion:
    """A question of one operator, with the ids of the passages that answer it and of some that do not."""

    qid: str
    question: str
    operator: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    where: str = field(default="", compare=False, repr=False)

    @classmethod
    def from_row(cls, row: Row) -> "BoolQuestion":
        operator = row.text("question_type").lower()
        if operator not in OPERATORS:
            raise row.error("question_type", f"must be one of {', '.join(OPERATORS)}, got {operator!r}")
        return cls(
            qid=row.identifier("qid"),
            question=row.text("question"),
            operator=operator,
            positives=tuple(passage.identifier("passage_id") for passage in row.objects("positive_ctxs")),
            negatives=tuple(passage.identifier("passage_id") for passage in row.objects("negative_ctxs")),
            where=row.where,
        )


@dataclass(frozen=True, slots=True)
class Triplet:
    """A SetBERT row: a Boolean sentence (G), sentences that fit it (P), and sentences that do not (N)."""

    sentence: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    operator: str | None = None
    where: str = field(default="", compare=False, repr=False)

    @classmethod
    def from_row(cls, row: Row, operator: str | None = None) -> "Triplet":
        operator = row.optional_text("operator") if row.get("operator") is not None else operator
        if operator is not None and operator not in OPERATORS:
            raise row.error("operator", f"must be one of {', '.join(OPERATORS)}, got {operator!r}")
        positives, negatives = row.texts("P"), row.texts("N")
        for name, sentences in (("P", positives), ("N", negatives)):
            if not sentences:
                raise row.error(name, "must hold at least one sentence")
        return cls(row.text("G"), positives, negatives, operator, row.where)


# What a table holds, told by the fields of its first row.
KINDS = {
    "queries": {"query", "docs"},
    "documents": {"title", "text"},
    "questions": {"question", "question_type"},
    "passages": {"docid", "doc"},
    "triplets": {"G", "P", "N"},
}


def kind_of(values: Mapping[str, Any]) -> str | None:
    """What a row is, told by its fields.

    >>> kind_of({"G": "cats and dogs", "P": [], "N": []})
    'triplets'
    """
    return next((kind for kind, fields in KINDS.items() if fields <= values.keys()), None)
