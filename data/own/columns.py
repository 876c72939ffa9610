"""The columns beside title and text, as filters ask for them: numbers, dates and texts."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from ..rows import Row
from .fields import Layout, parsed_list

NUMBER, TEXT, DATE = "number", "text", "date"
Value = float | tuple[str, ...]  # a number; a date as 19901231; one text or several
LONGEST_VALUE = 200  # a column of longer texts is for reading, not for filtering
_SHARE = 0.95  # of the values that are numbers, or dates, where a column is one of them
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def find_columns(rows: Sequence[Row], layout: Layout) -> dict[str, str]:
    """The columns that can be filtered by, and the kind of each, from the first rows."""
    used = {*layout.texts, layout.title, layout.id}
    names = dict.fromkeys(name for row in rows for name in row.values if name not in used)
    kinds = {name: _kind([row.values.get(name) for row in rows]) for name in names}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def column_values(row: Row, kinds: Mapping[str, str], layout: Layout) -> dict[str, Value]:
    """What a row holds in these columns. A value that is not of its column's kind ("n/a") counts as none."""
    found = {name: _value(row, name, kind, layout.separators.get(name)) for name, kind in kinds.items()}
    return {name: value for name, value in found.items() if value is not None}


def as_kind(value: Any, kind: str) -> float | str | None:
    """A single value as a column of this kind holds it; None where it is none.

    >>> as_kind("1990-12-31", "date"), as_kind(" 7 ", "number"), as_kind(True, "text"), as_kind("n/a", "number")
    (19901231.0, 7.0, 'true', None)
    """
    if kind == TEXT:
        return str(value).lower() if isinstance(value, bool) else " ".join(str(value).split()) or None
    if kind == NUMBER:
        if isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value.strip())):
            return None
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return None
        return number if math.isfinite(number) else None
    try:
        day = date.fromisoformat(str(value).strip()[:10])
    except ValueError:
        return None
    return float(day.year * 10_000 + day.month * 100 + day.day)


def as_written(value: Value | list[str], kind: str) -> float | str | list[str]:
    """A stored value as the documents have it, for JSON: a date as a text, texts as a list.

    >>> as_written(19901231.0, "date"), as_written(7.0, "number"), as_written(("a", "b"), "text")
    ('1990-12-31', 7, ['a', 'b'])
    """
    if isinstance(value, tuple | list):
        return list(value)
    if kind == DATE:
        return f"{value:08.0f}"[:4] + f"-{value % 10_000 // 100:02.0f}-{value % 100:02.0f}"
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def written(fields: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, float | str | list[str]]:
    """The values of a document's fields, as it has them."""
    return {name: as_written(value, kinds.get(name, NUMBER)) for name, value in fields.items()}


def _kind(values: Iterable[Any]) -> str | None:
    filled = [value for value in values if value is not None and value != "" and value != []]
    if not filled or any(isinstance(value, dict) for value in filled):
        return None
    for kind in (NUMBER, DATE):
        if sum(as_kind(value, kind) is not None for value in filled) >= _SHARE * len(filled):
            return kind
    return TEXT if all(len(str(value)) <= LONGEST_VALUE or isinstance(value, list) for value in filled) else None


def _value(row: Row, name: str, kind: str, separator: str | None) -> Value | None:
    value = row.values.get(name)
    if value is None:
        return None
    if kind != TEXT:
        found = as_kind(value, kind)
        return found if isinstance(found, float) else None
    if isinstance(value, str):
        value = parsed_list(value) if value[:1] == "[" else value.split(separator) if separator else value
    items = value if isinstance(value, list) else [value]
    texts = (as_kind(item, TEXT) for item in items if not isinstance(item, dict | list))
    return tuple(dict.fromkeys(row.encodable(name, text) for text in texts if isinstance(text, str))) or None
