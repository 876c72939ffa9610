"""QUEST's `original_query` notation: `<mark>` round each atom, the template's words between them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .operators import template_operators

_TAG = re.compile(r"</?mark>")


class ParsedQuery(NamedTuple):
    """A template with the atoms that fill its blanks, from left to right."""

    template: str
    atoms: tuple[str, ...]


def parse_original_query(text: str) -> ParsedQuery:
    """Take a marked query apart.

    >>> parse_original_query("<mark>Films about cats</mark> that are not <mark>French films</mark>")
    ParsedQuery(template='_ that are not _', atoms=('Films about cats', 'French films'))
    """
    template, atoms, end, is_open = "", [], 0, False
    for tag in _TAG.finditer(text):
        opens = tag.group() == "<mark>"
        if opens == is_open:
            problem = "<mark> inside a <mark>" if opens else "</mark> without its <mark>"
            raise ValueError(f"{problem} at character {tag.start()} of {text!r}")
        between = text[end : tag.start()]
        if opens:
            template += between + "_"
        else:
            atom = between.strip()
            if not atom:
                raise ValueError(f"empty <mark></mark> before character {tag.end()} of {text!r}")
            atoms.append(atom)
        end, is_open = tag.end(), opens
    if is_open:
        raise ValueError(f"<mark> without its </mark> in {text!r}")
    template = " ".join((template + text[end:]).split())
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
