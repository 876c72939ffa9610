"""The three operators in their one fixed order, and the seven QUEST templates with the operators of each."""

from collections.abc import Iterable, Sequence

OPERATORS: tuple[str, ...] = ("and", "or", "not")

TEMPLATES: dict[str, tuple[str, ...]] = {
    "_": (),
    "_ or _": ("or",),
    "_ or _ or _": ("or",),
    "_ that are also _": ("and",),
    "_ that are also both _ and _": ("and",),
    "_ that are not _": ("not",),
    "_ that are also _ but not _": ("and", "not"),
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
        raise ValueError(f"unknown template {template!r}; the seven templates are {known}") from None


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
