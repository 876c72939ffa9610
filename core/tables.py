# Copyright 2026 The Bool-BERT authors. Licensed under the Apache License, Version 2.0.
"""Tables for a terminal: the one way they are printed."""

from collections.abc import Sequence

from boolbert.core.terminal import printable


def number(value: float | None) -> str:
    """A share as it stands in a table; a dash where there is none.

    >>> number(0.4567), number(1.0), number(None)
    ('.457', '1.000', '-')
    """
    return "-" if value is None else f"{value:.3f}".removeprefix("0") if value >= 0 else f"{value:.3f}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], *, rule: bool = True) -> str:
    """Columns of equal width, the first to the left, the others to the right; a row may end early.

    >>> print(aligned(["a", "b"], [["one", "2"], ["three"]]))
    a      b
    --------
    one    2
    three
    """
    lines = [[printable(text) for text in line] for line in (header, *rows)]
    columns = range(max(map(len, lines)))
    widths = [max(len(line[column]) for line in lines if column < len(line)) for column in columns]
    texts = []
    for first, *others in lines:
        padded = [text.rjust(width) for text, width in zip(others, widths[1:], strict=False)]
        texts.append("  ".join([first.ljust(widths[0]), *padded]).rstrip())
    if rule:
        texts.insert(1, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(texts)
