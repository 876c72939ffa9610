"""QUEST's `original_query` notation: `<mark>` round each atom, the template's words between them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .operators import template_operators

_TAG = re.compile(r"</?mark>")


class Part(NamedTuple):
    """A stretch `text[start:end]` and the operator that joins it to the parts before it; "" where none does."""

    operator: str
    start: int
    end: int
    text: str


Parts = tuple[Part, ...]


class ParsedQuery(NamedTuple):
    """A template with the atoms that fill its blanks, from left to right."""

    template: str
    atoms: tuple[str, ...]


def parse_original_query(text: str) -> ParsedQuery:
    """Take a marked query apart.

    >>> parse_original_query("<mark>Films about cats</mark> that are not <mark>French films</mark>")
    ParsedQuery(template='_ that are not _', atoms=('Films about cats', 'French films'))
    """
    words = re.split(r"<mark>(.*?)</mark>", text, flags=re.DOTALL)  # every second one is an atom
    if tag := _TAG.search(" ".join(words)):
        raise ValueError(f"{tag.group()} without its partner in {text!r}")
    atoms = [atom.strip() for atom in words[1::2]]
    if not all(atoms):
        raise ValueError(f"empty <mark></mark> in {text!r}")
    template = " ".join("_".join(words[::2]).split())
    try:
        template_operators(template)
    except ValueError as error:
        raise ValueError(f"{error}; found in {text!r}") from None
    return _checked(template, atoms)


def render_original_query(template: str, atoms: Sequence[str]) -> str:
    """The inverse of `parse_original_query`.

    >>> render_original_query("_ or _", ["Films about cats", "French films"])
    '<mark>Films about cats</mark> or <mark>French films</mark>'
    """
    template_operators(template)
    for atom in atoms:
        if not atom.strip() or _TAG.search(atom):
            raise ValueError(f"an atom must be a text without <mark> tags, got {atom!r}")
    query = _checked(template, atoms)
    marks = iter(query.atoms)
    return re.sub("_", lambda _: f"<mark>{next(marks)}</mark>", template)


def _checked(template: str, atoms: Sequence[str]) -> ParsedQuery:
    if template.count("_") != len(atoms):
        raise ValueError(
            f"template {template!r} has {template.count('_')} blanks, got {len(atoms)} atoms: {list(atoms)}"
        )
    return ParsedQuery(template, tuple(atom.strip() for atom in atoms))


def blank_operators(template: str) -> tuple[str, ...]:
    """The operator before each blank of a template.

    >>> blank_operators("_ that are also _ but not _"), blank_operators("_ or _ or _"), blank_operators("_")
    (('', 'and', 'not'), ('', 'or', 'or'), ('',))
    """
    first, *others = template.split("_")[:-1]
    words = [set(between.split()) for between in others]
    return (first, *("not" if "not" in word else "or" if "or" in word else "and" for word in words))


def gold_parts(original_query: str) -> Parts:
    """The parts of a query that is marked as in QUEST; their spans are those of the text without its marks.

    >>> gold_parts("<mark>Films about cats</mark> that are not <mark>French films</mark>")[1]
    Part(operator='not', start=30, end=42, text='French films')
    """
    template, atoms = parse_original_query(original_query)
    text, parts, end = original_query.replace("<mark>", "").replace("</mark>", ""), [], 0
    for operator, atom in zip(blank_operators(template), atoms, strict=True):
        start = text.index(atom, end)
        end = start + len(atom)
        parts.append(Part(operator, start, end, atom))
    return tuple(parts)
