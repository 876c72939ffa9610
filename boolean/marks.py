"""QUEST's `original_query` notation: `<mark>` round each atom, the template's words between them.

People then wrote the query in their own words. `marked_scopes` finds the atoms again in what they wrote.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from .cues import find_cues
from .operators import OPERATORS, template_operators
from .word_lists import WORDS

_TAG = re.compile(r"</?mark>")
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_JOINING, _TIES = WORDS["joining"], WORDS["joining"] | {"found", "made", "shot", "based", "native"}


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


def marked_scopes(query: str, original_query: str) -> dict[str, tuple[tuple[int, int], ...] | None] | None:
    """What each operator reaches in a query, by the marks of its original: NOT the last atom, AND and OR the others.

    An atom is found if every word that only this atom has stands in the query, in one stretch. An operator whose atoms
    are not all found has None: what it reaches is unknown. None alone if all of the template are unknown.

    >>> marked_scopes("Fish of Peru, not Chile", "<mark>Fish of Peru</mark> that are not <mark>Fish of Chile</mark>")
    {'and': (), 'or': (), 'not': ((18, 23),)}
    >>> marked_scopes("Peruvian fish", "<mark>Fish of Peru</mark> that are not <mark>Fish of Chile</mark>")
    """
    template, atoms = parse_original_query(original_query)
    operators = template_operators(template)
    words = [(match.group().lower(), match.span()) for match in _WORD.finditer(query)]
    cues = [cue for cue in find_cues(query) if not cue.weak]
    free = [not any(cue.start < span[1] and cue.end > span[0] for cue in cues) for _, span in words]
    found = [_locate(words, free, atom, [*atoms[:place], *atoms[place + 1 :]]) for place, atom in enumerate(atoms)]
    scopes: dict[str, tuple[tuple[int, int], ...] | None] = {}
    for operator in OPERATORS:
        if operator not in operators:
            scopes[operator] = ()
            continue
        spans = found[-1:] if operator == "not" else found[:-1] if "not" in operators else found
        known = sorted(span for span in spans if span is not None)
        # Atoms that stand one inside the other were joined in other words: "crime novels set in Italy".
        apart = all(one[1] <= other[0] for one, other in pairwise(known))
        scopes[operator] = tuple(known) if apart and len(known) == len(spans) else None
    return scopes if any(scopes[operator] is not None for operator in operators) else None


def _locate(
    words: Sequence[tuple[str, tuple[int, int]]], free: Sequence[bool], atom: str, others: Sequence[str]
) -> tuple[int, int] | None:
    """The longest stretch of a query that the atom holds word for word, with all words that no other atom has.

    The small words that tie it to what stands before belong to it ("not found in the Guianas"), unless a cue has them.
    """
    sought = [_stem(word) for word in _WORD.findall(atom.lower())]
    shared = {_stem(word) for other in others for word in _WORD.findall(other.lower())}
    needed = {word for word in sought if word not in shared and word not in _JOINING}
    written = [_stem(word) for word, _ in words]
    best: tuple[int, int] | None = None
    for start in range(len(words)):
        for first in range(len(sought)):
            size = 0
            while (
                start + size < len(words)
                and first + size < len(sought)
                and written[start + size] == sought[first + size]
            ):
                size += 1
            if size and needed <= set(written[start : start + size]) and (best is None or size > best[1] - best[0]):
                best = (start, start + size)
    if best is None or not needed:
        return None
    start, end = best
    while start and free[start - 1] and words[start - 1][0] in _TIES and best[0] - start < 4:
        start -= 1
    return words[start][1][0], words[end - 1][1][1]


def _stem(word: str) -> str:
    """A word without its plural, so that "comedies" is "comedy"."""
    return re.sub(r"(?<=\w\w)(?:ies|y|'s|s)$", "", word)


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
