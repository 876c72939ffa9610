"""Take a query apart: its atoms, and how each is joined to what stands before it."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .cues import find_cues
from .marks import parse_original_query

# What may hang at an atom's edges once the cues are cut out.
_TRAILING = {
    *("that", "which", "who", "whose", "are", "is", "were", "was", "do", "does", "did", "have", "has", "being"),
    *("those", "ones", "also", "but", "and", "either", "both", "the"),
}
_LEADING = re.compile(r"^(?:(?:any|all|one)\s+of\s+)?(?:these|the following)\s*:", re.IGNORECASE)
_WORD = re.compile(r"\S+")
_EDGES = " \t\n,;:.?!"


class Part(NamedTuple):
    """An atom, and the operator that joins it to the parts before it; the first part has none."""

    operator: str
    text: str


Parts = tuple[Part, ...]


def blank_operators(template: str) -> tuple[str, ...]:
    """The operator before each blank of a template.

    >>> blank_operators("_ that are also _ but not _"), blank_operators("_ or _ or _"), blank_operators("_")
    (('', 'and', 'not'), ('', 'or', 'or'), ('',))
    """
    first, *others = template.split("_")[:-1]
    words = [set(between.split()) for between in others]
    return (first, *("not" if "not" in word else "or" if "or" in word else "and" for word in words))


def gold_parts(original_query: str) -> Parts:
    """The parts of a query that is marked as in QUEST.

    >>> gold_parts("<mark>Films about cats</mark> that are not <mark>French films</mark>")
    (Part(operator='', text='Films about cats'), Part(operator='not', text='French films'))
    """
    template, atoms = parse_original_query(original_query)
    return tuple(map(Part, blank_operators(template), atoms))


def parsed_parts(text: str) -> Parts:
    """The parts of a plain text, cut at its cues. A text without a positive part is kept whole.

    >>> [tuple(part) for part in parsed_parts("Birds of Peru as well as Chile, but not of Brazil or Cuba")]
    [('', 'Birds of Peru'), ('and', 'Chile'), ('not', 'of Brazil'), ('not', 'Cuba')]
    >>> [tuple(part) for part in parsed_parts("either cats, dogs or birds")]
    [('', 'cats'), ('or', 'dogs'), ('or', 'birds')]
    >>> parsed_parts("not dogs")
    (Part(operator='', text='not dogs'),)
    """
    parts: list[Part] = []
    operator, start = "", 0
    for cue in [*(cue for cue in find_cues(text) if not cue.weak), None]:
        piece = text[start : cue.start if cue else len(text)]
        # The comma of "A, B or C" says the same as its "or".
        listed = cue is not None and cue.operator != "not"
        atoms = [atom for atom in map(clean, piece.split(", ") if listed else [piece]) if atom]
        for atom in atoms:
            # "A but not B or C" excludes both.
            joined = "not" if operator == "or" and parts and parts[-1].operator == "not" else operator
            parts.append(Part(joined if parts or joined == "not" else "", atom))
            operator = cue.operator if cue else ""
        if cue is not None:
            operator = cue.operator if atoms or not operator else _stronger(operator, cue.operator)
            start = cue.end
    if not parts or parts[0].operator == "not":
        return (Part("", text.strip()), *parts[1:])
    return tuple(parts)


def clean(atom: str) -> str:
    """An atom without what is left of the words that joined it.

    >>> clean(" , French films that are ")
    'French films'
    """
    atom = atom.strip(_EDGES)
    end = len(atom)
    for word in reversed(list(_WORD.finditer(atom))[1:]):
        if word.group().lower() not in _TRAILING:
            break
        end = word.start()
    return _LEADING.sub("", atom[:end].rstrip()).strip(_EDGES)


def _stronger(first: str, second: str) -> str:
    """Of two cues with nothing between them, the one that counts: "but also not" negates."""
    return "not" if "not" in (first, second) else second


def negated(parts: Sequence[Part]) -> list[str]:
    """The texts that a query excludes.

    >>> negated(parsed_parts("cats but not lions"))
    ['lions']
    """
    return [part.text for part in parts if part.operator == "not"]
