"""Filters on the fields beside the vectors: `year > 1990 and (genre = western or not country in (France, Italy))`.

A field stands left, a value right; names and texts with spaces are quoted. A text field may hold several values: `=`
asks whether one of them is this one, `!=` whether none is. A document without the field passes no condition on it, so
that every engine gives the same answer: NOT is moved to the comparisons before an engine sees it.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.boolean.bounds import OPPOSITE
from boolbert.core.errors import RetrievalError, check_text, shorten
from boolbert.data.own.columns import as_kind

Mask = npt.NDArray[np.bool_]
GRAMMAR = "expected FIELD = != < <= > >= or in VALUE, joined by and, or, not and parentheses"
LONGEST_FILTER, DEEPEST_FILTER = 10_000, 50  # characters, and levels of parentheses and of "not"
_OPPOSITE = {"=": "!=", "!=": "=", **OPPOSITE}
_SAME = {"==": "=", "<>": "!="}
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign><=|>=|<>|!=|==|[=<>(),])|(?P<word>[^\s"'=<>!(),]+))"""
)


@dataclass(frozen=True)
class Comparison:
    """One field against values: `=` means that one of them fits, `!=` that none does; the others have one value."""

    field: str
    sign: str
    values: tuple[Any, ...]

    def __invert__(self) -> "Comparison":
        return replace(self, sign=_OPPOSITE[self.sign])


@dataclass(frozen=True)
class Joined:
    """Filters with "and" or "or" between them."""

    word: str
    parts: tuple["Filter", ...]

    def __invert__(self) -> "Joined":
        return Joined("or" if self.word == "and" else "and", tuple(~part for part in self.parts))


Filter = Comparison | Joined


def parse_filter(text: str) -> Filter:
    """
    >>> parse_filter("year > 1990 and not genre = 'science fiction'")
    Joined(word='and', parts=(Comparison(field='year', sign='>', values=('1990',)), \
Comparison(field='genre', sign='!=', values=('science fiction',))))
    """
    return _Parser(text).parse()


def fitted_filter(wanted: str | Filter | None, kinds: Mapping[str, str]) -> Filter | None:
    """A filter whose values are of its fields' kinds: numbers for `number` and `date`, texts for `text`.

    >>> fitted_filter("year in (1990, 1991)", {"year": "number"})
    Comparison(field='year', sign='=', values=(1990.0, 1991.0))
    """
    if wanted is None:
        return None
    return _fitted(wanted if isinstance(wanted, Filter) else parse_filter(wanted), kinds)


def _fitted(part: Filter, kinds: Mapping[str, str]) -> Filter:
    if not isinstance(part, Comparison):
        return replace(part, parts=tuple(_fitted(inner, kinds) for inner in part.parts))
    kind = kinds.get(part.field)
    if kind is None:
        near = get_close_matches(part.field, kinds, n=1)
        hint = f"did you mean {near[0]!r}?" if near else _there_are(kinds)
        raise RetrievalError(f"--where: there is no field {part.field!r}; {hint}")
    if kind == "text" and part.sign not in ("=", "!="):
        raise RetrievalError(f"--where: {part.field!r} holds texts, which take = != and in, not {part.sign!r}")
    for text in part.values:
        if isinstance(text, str):
            check_text(text, f"--where: the value {shorten(text)}", RetrievalError)
    values = tuple(as_kind(value, kind) for value in part.values)
    if None in values:
        wanted = "numbers" if kind == "number" else "dates such as 1990-12-31"
        wrong = part.values[values.index(None)]
        raise RetrievalError(f"--where: {part.field!r} holds {wanted}, got {shorten(wrong)}")
    return replace(part, values=values)


def _there_are(kinds: Mapping[str, str]) -> str:
    return f"there are: {shorten(', '.join(kinds), 300)}" if kinds else "the documents have no fields"


class TextColumn:
    """The rows that hold each text of a column.

    >>> TextColumn([("a", "b"), (), ("b",)]).equal(["b", "x"]).tolist()
    [True, False, True]
    """

    def __init__(self, values: Sequence[Sequence[str]]):
        self.filled = np.fromiter(map(bool, values), np.bool_, len(values))
        rows: dict[str, list[int]] = {}
        for row, texts in enumerate(values):
            for text in texts:
                rows.setdefault(text, []).append(row)
        self._rows = {text: np.array(found) for text, found in rows.items()}

    def equal(self, texts: Iterable[str]) -> Mask:
        mask = np.zeros(len(self.filled), np.bool_)
        for text in texts:
            mask[self._rows.get(text, [])] = True
        return mask


NumberColumn = npt.NDArray[np.float64]  # NaN where there is none


def matching(wanted: Filter, column: Callable[[str], NumberColumn | TextColumn]) -> Mask:
    """The rows that pass. `column` gives the values of a field."""
    if not isinstance(wanted, Comparison):
        masks = [matching(part, column) for part in wanted.parts]
        join = np.logical_and if wanted.word == "and" else np.logical_or
        return np.asarray(join.reduce(masks), dtype=np.bool_)
    values = column(wanted.field)
    if isinstance(values, TextColumn):
        fits, filled = values.equal(wanted.values), values.filled
    elif wanted.sign in ("=", "!="):
        fits, filled = np.isin(values, wanted.values), ~np.isnan(values)
    else:
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[wanted.sign]
        return np.asarray(compare(values, wanted.values[0]), dtype=np.bool_)
    return fits if wanted.sign == "=" else filled & ~fits


def milvus_expression(wanted: Filter, columns: Mapping[str, str] | None = None) -> str:
    """The filter in Milvus's language. `columns`: fields of numbers with a column of their own; all are in JSON too.

    >>> print(milvus_expression(fitted_filter('year >= 1990 and tag != "a b"', {"year": "number", "tag": "text"})))
    (fields["year"] >= 1990) and (exists fields["tag"] and not (json_contains(fields["tag"], "a b")))
    """
    columns = columns or {}
    if not isinstance(wanted, Comparison):
        return f" {wanted.word} ".join(f"({milvus_expression(part, columns)})" for part in wanted.parts)
    values = [_literal(value) for value in wanted.values]
    if isinstance(wanted.values[0], str):
        field = f"fields[{_literal(wanted.field)}]"
        fits = " or ".join(f"json_contains({field}, {value})" for value in values)
        return fits if wanted.sign == "=" else f"exists {field} and not ({fits})"
    field = columns.get(wanted.field) or f"fields[{_literal(wanted.field)}]"
    sign = {"=": "=="}.get(wanted.sign, wanted.sign)
    each = [f"{field} {sign} {value}" for value in values]
    if sign != "!=":
        return " or ".join(each)
    return " and ".join([f"{field} is not null", *each] if wanted.field in columns else each)


def sql_condition(wanted: Filter) -> tuple[str, list[Any]]:
    """The filter as a condition of Postgres on a column `fields` of jsonb, and the values of its parameters.

    >>> condition, values = sql_condition(fitted_filter("year >= 1990", {"year": "number"}))
    >>> print(condition)
    CASE jsonb_typeof(fields -> %s) WHEN 'number' THEN (fields ->> %s)::float8 END >= %s::float8
    >>> values
    ['year', 'year', 1990.0]
    """
    if not isinstance(wanted, Comparison):
        parts = [sql_condition(part) for part in wanted.parts]
        joined = f" {wanted.word} ".join(f"({condition})" for condition, _ in parts)
        return joined, [value for _, values in parts for value in values]
    if isinstance(wanted.values[0], str):
        fits, texts = "fields -> %s ?| %s::text[]", [wanted.field, list(wanted.values)]
        if wanted.sign == "=":
            return fits, texts
        return f"fields -> %s <> '[]' and not ({fits})", [wanted.field, *texts]
    number = "CASE jsonb_typeof(fields -> %s) WHEN 'number' THEN (fields ->> %s)::float8 END"
    if wanted.sign in ("=", "!="):
        sign = "= ANY" if wanted.sign == "=" else "<> ALL"
        return f"{number} {sign} (%s::float8[])", [wanted.field, wanted.field, list(wanted.values)]
    return f"{number} {wanted.sign} %s::float8", [wanted.field, wanted.field, wanted.values[0]]


def _literal(value: float | str) -> str:
    return json.dumps(as_json(value), ensure_ascii=False)


def as_json(value: Any) -> Any:
    """A field's value as JSON has it.

    >>> as_json(1990.0), as_json(("a", "b"))
    (1990, ['a', 'b'])
    """
    if isinstance(value, float):
        return int(value) if value == int(value) and abs(value) < 2**53 else value
    return list(value) if isinstance(value, tuple) else value


class _Parser:
    def __init__(self, text: str):
        if not isinstance(text, str):
            raise RetrievalError(f"--where: a filter is a text such as 'year > 1990', got a {type(text).__name__}")
        check_text(text, f"--where: {shorten(text)}", RetrievalError)
        if len(text) > LONGEST_FILTER:
            raise RetrievalError(f"--where: is longer than {LONGEST_FILTER:,} characters")
        self.text = text
        self.tokens = list(self._tokens())
        self.place = 0

    def parse(self) -> Filter:
        found = self._joined("or", 0)
        if self.place < len(self.tokens):
            raise self._error(f"{self.tokens[self.place][1]!r} was not expected here")
        return found

    def _tokens(self) -> Any:
        end = 0
        while self.text[end:].strip():
            match = _TOKEN.match(self.text, end)
            if match is None:
                raise RetrievalError(f"--where {shorten(self.text)}: cannot be read at {shorten(self.text[end:], 30)}")
            kind = str(match.lastgroup)
            token = match[kind]
            yield kind, re.sub(r"\\(.)", r"\1", token[1:-1]) if kind == "text" else token
            end = match.end()

    def _joined(self, word: str, depth: int) -> Filter:
        """Filters with this word between them; those between "or" may be joined by "and" themselves."""
        parts: list[Filter] = []
        while not parts or self._takes(word):
            parts.append(self._joined("and", depth) if word == "or" else self._negated(depth))
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _negated(self, depth: int) -> Filter:
        if depth > DEEPEST_FILTER:
            raise RetrievalError(f"--where: nested more than {DEEPEST_FILTER} deep")
        if self._takes("not"):
            return ~self._negated(depth + 1)
        if not self._takes("("):
            return self._comparison()
        found = self._joined("or", depth + 1)
        self._expect(")")
        return found

    def _comparison(self) -> Filter:
        field = self._value("a field")
        is_negated = self._takes("not")
        if self._takes("in"):
            self._expect("(")
            values = [self._value("a value")]
            while self._takes(","):
                values.append(self._value("a value"))
            self._expect(")")
            return Comparison(field, "!=" if is_negated else "=", tuple(values))
        kind, sign = self.tokens[self.place] if self.place < len(self.tokens) else ("", "the end")
        sign = _SAME.get(sign, sign)
        if kind != "sign" or sign not in _OPPOSITE or is_negated:
            raise self._error(f"after {field!r} comes {sign!r}")
        self.place += 1
        return Comparison(field, sign, (self._value("a value"),))

    def _value(self, what: str) -> str:
        if self.place >= len(self.tokens) or self.tokens[self.place][0] == "sign":
            raise self._error(f"{what} is missing")
        self.place += 1
        return str(self.tokens[self.place - 1][1])

    def _takes(self, word: str) -> bool:
        """Whether this word or sign comes next, and if so, go past it."""
        if self.place >= len(self.tokens):
            return False
        kind, token = self.tokens[self.place]
        found = kind != "text" and str(token).lower() == word
        self.place += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._error(f"{sign!r} is missing")

    def _error(self, problem: str) -> RetrievalError:
        return RetrievalError(f"--where {shorten(self.text)}: {problem}; {GRAMMAR}")
