# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Tables for a terminal: the one way they are printed."""

from collections.abc import Sequence


def number(value: float | None) -> str:
    """A share as it stands in a table; a dash where there is none.

    >>> number(0.4567), number(1.0), number(None)
    ('.457', '1.000', '-')
    """
    return "-" if value is None else f"{value:.3f}".removeprefix("0") if value >= 0 else f"{value:.3f}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width: the first to the left, the others to the right.

    >>> print(aligned(["a", "b"], [["one", "2"]]))
    a    b
    ------
    one  2
    """
    widths = [max(len(line[column]) for line in (header, *rows)) for column in range(len(header))]
    lines = []
    for first, *others in (header, *rows):
        padded = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *padded]).rstrip())
    lines.insert(1, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(lines)
