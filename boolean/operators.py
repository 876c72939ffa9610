"""The three operators in their one fixed order, and the seven QUEST templates with all that is said of each."""

from collections.abc import Iterable, Sequence

OPERATORS: tuple[str, ...] = ("and", "or", "not")

# A new template gets a line in each of the three tables, and is read, trained on and evaluated then. What a NOT
# excludes is its last set.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "_": (),
    "_ or _": ("or",),
    "_ or _ or _": ("or",),
    "_ that are also _": ("and",),
    "_ that are also both _ and _": ("and",),
    "_ that are not _": ("not",),
    "_ that are also _ but not _": ("and", "not"),
}

# How tables and pictures name a template, in the order in which they show them.
SHORT_NAMES: dict[str, str] = {
    "_": "A",
    "_ or _": "A or B",
    "_ or _ or _": "A or B or C",
    "_ that are also _": "A and B",
    "_ that are also both _ and _": "A and B and C",
    "_ that are not _": "A not B",
    "_ that are also _ but not _": "A and B not C",
}

# How a document can break a template: in (1), not in (0) or anywhere (None) for each of its sets. The patterns of a
# later tier serve where no document fits an earlier one. The other templates hold no operator that could be broken:
# a document outside of "A or B" is any document.
Pattern = tuple[int | None, ...]
VIOLATIONS: dict[str, tuple[tuple[Pattern, ...], ...]] = {
    "_ that are not _": (((1, 1),),),
    "_ that are also _": (((1, 0), (0, 1)),),
    "_ that are also both _ and _": (((1, 1, 0), (1, 0, 1), (0, 1, 1)), ((1, 0, 0), (0, 1, 0), (0, 0, 1))),
    "_ that are also _ but not _": (((1, 1, 1), (1, 0, None), (0, 1, None)),),
}


def template_operators(template: str) -> tuple[str, ...]:
    """The operators of a QUEST template, in the order of `OPERATORS`.

    >>> template_operators("_ that are also _ but not _")
    ('and', 'not')
    """
    try:
        return TEMPLATES[template]
    except KeyError:
        known = ", ".join(repr(name) for name in TEMPLATES)
        raise ValueError(f"unknown template {template!r}; there are {known}") from None


def multi_hot(operators: Iterable[str]) -> list[int]:
    """Operator names as 0/1 labels in the order of `OPERATORS`.

    >>> multi_hot({"not", "and"})
    [1, 0, 1]
    """
    if isinstance(operators, str):  # "and" would be read as the letters a, n, d
        raise TypeError(f"multi_hot takes several operator names, got the string {operators!r}; write [{operators!r}]")
    names = list(operators)
    for name in names:
        if name not in OPERATORS:
            raise ValueError(f"operator must be one of {OPERATORS}, got {name!r}")
    return [int(operator in names) for operator in OPERATORS]


def from_multi_hot(labels: Sequence[int]) -> tuple[str, ...]:
    """The inverse of `multi_hot`.

    >>> from_multi_hot([1, 0, 1])
    ('and', 'not')
    """
    if len(labels) != len(OPERATORS) or any(label not in (0, 1) for label in labels):
        raise ValueError(
            f"labels must be {len(OPERATORS)} values of 0 or 1, one for each of {OPERATORS}, got {labels!r}"
        )
    return tuple(operator for operator, label in zip(OPERATORS, labels, strict=True) if label)
