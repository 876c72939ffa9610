"""JSON rows with their place, and typed access to their fields."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..core.errors import DataError, check_text, shorten
from .lines import read_lines, read_text

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object and where it came from. Fields of nested objects are named with a dot: "metadata.template".

    >>> row = Row("train.jsonl", 7, {"query": "films", "docs": "Alien"})
    >>> row.text("query")
    'films'
    >>> print(row.error("docs", "must be a list of texts"))
    train.jsonl:7: field 'docs' must be a list of texts
    """

    file: str
    line: int
    values: dict[str, Any]
    within: str = ""  # the field this row is the value of, where it is part of another row
    unit: str = ":"  # what stands between file and number: a line, " item " of an array, " row " of a table

    @property
    def where(self) -> str:
        return f"{self.file}{self.unit}{self.line}"

    def error(self, field: str, problem: str) -> DataError:
        return DataError(f"{self._place(field)} {problem}")

    def _place(self, field: str) -> str:
        path = f"{self.within}.{field}" if self.within else field
        return f"{self.where}: field {path!r}"

    def get(self, field: str) -> Any:
        """The field's value, or None where it is absent."""
        if field in self.values:  # a column's name may hold a dot
            return self.values[field]
        value: Any = self.values
        for depth, name in enumerate(names := field.split(".")):
            if value is None:
                return None
            if not isinstance(value, dict):
                raise self.error(".".join(names[:depth]), f"must be an object, got {_kind(value)}")
            value = value.get(name)
        return value

    def text(self, field: str, *, empty: bool = False) -> str:
        value = self.get(field)
        if value is None:
            raise self._missing(field, "a text")
        return self._checked(field, value, empty)

    def optional_text(self, field: str) -> str | None:
        """A text, perhaps an empty one; None where it is absent."""
        return None if self.get(field) is None else self.text(field, empty=True)

    def identifier(self, field: str) -> str:
        """A text or a whole number, as text."""
        value = self.get(field)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if value is not None and not isinstance(value, str):
            raise self.error(field, f"must be a text or a whole number, got {_kind(value)}")
        return self.text(field)

    def texts(self, field: str) -> tuple[str, ...]:
        values = self._list(field, "texts")
        return tuple(self._checked(f"{field}[{index}]", item) for index, item in enumerate(values))

    def objects(self, field: str) -> "list[Row]":
        """A list of objects, each as a row of its own with the same place."""
        value = self._list(field, "objects")
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                raise self.error(f"{field}[{index}]", f"must be an object, got {_kind(item)}")
        return [Row(self.file, self.line, item, f"{field}[{index}]", self.unit) for index, item in enumerate(value)]

    def _checked(self, field: str, value: Any, empty: bool = False) -> str:
        if not isinstance(value, str):
            raise self.error(field, f"must be a text, got {_kind(value)}")
        if not empty and not value.strip():
            raise self.error(field, "is empty")
        return self.encodable(field, value)

    def _list(self, field: str, items: str) -> list[Any]:
        value = self.get(field)
        if value is None:
            raise self._missing(field, f"a list of {items}")
        if not isinstance(value, list):
            raise self.error(field, f"must be a list of {items}, got {_kind(value)}")
        return value

    def _missing(self, field: str, expected: str) -> DataError:
        problem = "is null" if field in self.values else "is missing"
        return self.error(field, f"{problem}; expected {expected} (fields here: {shorten_list(self.values)})")

    def encodable(self, field: str, value: str) -> str:
        """The value; one that no file could hold is an error."""
        return check_text(value, self._place(field), DataError)


def shorten_list(names: Iterable[str]) -> str:
    text = ", ".join(names) or "none"
    return text if len(text) <= 80 else text[:77] + "..."


def json_rows(path: Path, *, progress: bool = True, bad: list[DataError] | None = None) -> Iterator[Row]:
    """The objects of a .jsonl file, or of a .json file that holds an array of them. `bad` is that of `parse_rows`."""
    if path.name.removesuffix(".gz").endswith(".json"):
        text = read_text(path)
        if text.lstrip().startswith("["):
            values = parse_json(text, path)
            if not values:
                raise DataError(f"{path}: the array is empty; expected at least one row")
            yield from (_row(path, number, value, " item ") for number, value in enumerate(values, start=1))
            return
    lines = read_lines(path, progress=progress)
    yield from parse_rows(lines, lambda line: _row(path, line[0], parse_json(line[1], path, line[0])), bad)


def parse_rows(rows: Iterable[S], parse: Callable[[S], T], bad: list[DataError] | None = None) -> Iterator[T]:
    """Typed rows. Where a list `bad` is given, the errors go there and the reading goes on."""
    for row in rows:
        try:
            yield parse(row)
        except DataError as error:
            if bad is None:
                raise
            bad.append(error)


def parse_json(text: str, path: Path, line: int | None = None) -> Any:
    """A JSON value. `line` is where the text stands in its file; without one, the text is the whole file."""
    where = f"{path}:{line or 1}"
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{line or error.lineno}: broken JSON at column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise DataError(f"{where}: broken JSON: nested too deeply") from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise DataError(f"{where}: broken JSON: a number has too many digits") from None


def _row(path: Path, number: int, value: Any, unit: str = ":") -> Row:
    if not isinstance(value, dict):
        raise DataError(f"{path}{unit}{number}: a row must be a JSON object, got {_kind(value)}")
    return Row(str(path), number, value, unit=unit)


def _kind(value: object) -> str:
    return "null" if value is None else f"{type(value).__name__} {shorten(value)}"
