"""A summary as aligned plain text: a block for the collections, a block for the splits, a column for each table."""

from collections.abc import Iterable
from typing import Any

from ..core.tables import aligned
from ..core.terminal import printable

_SPREAD = ["median", "95%", "max"]
_SHOWN = 10  # problems spelled out


def render(summary: dict[str, Any]) -> str:
    """The text for a terminal.

    >>> print(render({"source": "here", "format": "SetBERT", "collections": {}, "other tables": [], "problems": [],
    ...               "splits": {"and": {"rows": 1200, "operators": {"and": 1200}}, "not": {"rows": 9}}}))
    here: SetBERT format
    <BLANKLINE>
                 and  not
    rows       1,200    9
    operators
      and      1,200    -
    """
    blocks = [f"{printable(summary['source'])}: {summary['format']} format"]
    for part in ("collections", "splits"):
        if summary[part]:
            blocks.append(_columns(summary[part]))
    if "atoms" in summary:
        blocks.append(_columns({"atoms": summary["atoms"]}))
    if summary["other tables"]:
        blocks.append(printable(f"not read, of no known format: {', '.join(summary['other tables'])}"))
    if problems := summary["problems"]:
        rest = [f"and {len(problems) - _SHOWN:,} more"] if len(problems) > _SHOWN else []
        blocks.append("\n  ".join([f"{len(problems):,} problems", *problems[:_SHOWN], *rest]))
    return "\n\n".join(blocks)


def _columns(tables: dict[str, dict[str, Any]]) -> str:
    """One row for each key of the tables, one column for each table; a dict is a section of indented rows."""
    lines: list[list[str]] = []
    for key in _merged(tables.values()):
        values = [table.get(key) for table in tables.values()]
        sections = [value for value in values if isinstance(value, dict)]
        if not sections:
            lines.append([key, *map(_cell, values)])
        elif all(list(section) == _SPREAD for section in sections):
            cells = [" / ".join(map(_cell, value.values())) if value else "-" for value in values]
            lines.append([f"{key}: {' / '.join(_SPREAD)}", *cells])
        else:
            lines.append([key])
            for name in _merged(sections):
                lines.append([f"  {name}", *(_cell((value or {}).get(name)) for value in values)])
    return aligned(["", *tables], lines, rule=False)


def _merged(tables: Iterable[dict[str, Any]]) -> list[str]:
    """All keys, in the order in which the tables bring them."""
    return list(dict.fromkeys(key for table in tables for key in table))


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
