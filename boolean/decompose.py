"""A query as atoms with operators: from QUEST's marks, or from a plain text."""

from collections.abc import Sequence

from .marks import parse_original_query
from .parts import Part, Parts, read_parts


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


def parsed_parts(text: str) -> Parts:
    """The parts of a plain text, a wanted one first. A text without a wanted part is kept whole.

    >>> [part[::3] for part in parsed_parts("Apart from Chile, birds of Peru or Cuba")]
    [('', 'birds of Peru'), ('not', 'Chile'), ('or', 'Cuba')]
    >>> [part[::3] for part in parsed_parts("not dogs")]
    [('', 'not dogs')]
    """
    parts = list(read_parts(text).parts)
    first = parts.pop(next(number for number, part in enumerate(parts) if part.operator != "not"))
    # What goes on behind an exclusion is asked for as well: "films (not westerns) of the 1950s".
    return (first, *(part._replace(operator=part.operator or "and") for part in parts))


def negated(parts: Sequence[Part]) -> list[str]:
    """The texts that a query excludes.

    >>> negated(parsed_parts("cats but not lions"))
    ['lions']
    """
    return [part.text for part in parts if part.operator == "not"]
