"""A table of the user's in Postgres, as documents: it is read, in transactions that cannot write, and never changed.

Pages of rows are read in the order of the id, each in a transaction of its own: encoding takes long, and a transaction
that stays open keeps the database from tidying up. An id is known by its text: 5000.0 and 5000.00 are two ids, although
they are equal as numbers, and so are "A" and "a" where the database compares them in any case.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from boolbert.core.addresses import shown_name
from boolbert.core.errors import DataError, optional, shorten
from boolbert.data.rows import Row, shorten_list

from .postgres_connection import PostgresConnection
from .remote import storable

_PAGE = 1000  # rows of one transaction
_FIND = """
SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND (
    (c.relname = ANY(%s) AND pg_table_is_visible(c.oid))
    OR (n.nspname, c.relname) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
)
"""
_TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""
_COLUMNS = """
SELECT a.attname, t.typcategory::text, t.typname, format_type(a.atttypid, a.atttypmod)
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# The text of a value must not depend on what the database is set to.
_SETTINGS = """
SET datestyle = ISO; SET TIME ZONE 'UTC'; SET intervalstyle = postgres; SET extra_float_digits = 1;
SET bytea_output = hex
"""
_STRING = "S"
_READ_AS_THEY_ARE = ("S", "N", "B", "A")  # categories of types: strings, numbers, Booleans, arrays
_READ_AS_TEXT = ("D", "E")  # dates, which may lie before year 1; enumerations
_OBJECTS = ("json", "jsonb")


@dataclass(frozen=True)
class _Column:
    category: str  # of its type, as Postgres sorts them
    type: str
    full_type: str  # with its length


class PostgresTable:
    """The rows of a table or view. `--id` has a value in each row, and no value twice.

    table: its name as the command line has it: movies, public.movies, or with quotes as in SQL, '"My Films"'. columns:
    which of its columns are text, title, id and atoms, as flags name them.
    """

    def __init__(self, uri: str, table: str, columns: Mapping[str, str | None]):
        self._uri, self._place = uri, shown_name(uri)
        self._sql = optional("psycopg.sql", "psycopg", "postgres")
        with self._opened(self._place) as opened, opened.transaction(self._place, "table") as connection:
            number, self._schema, self._table = self._found(connection, table)
            found = connection.execute(_COLUMNS, [number]).fetchall()
            self._columns = {name: _Column(*types) for name, *types in found}
            quoted = connection.execute("SELECT format('%%I.%%I', %s::text, %s::text)", [self._schema, self._table])
            self.table = str(quoted.fetchone()[0])  # with quotes where they are needed
            self.name = f"{self._place} {self.table}"
            self._id = self._checked_columns(columns)
            self._check_ids(connection)

    @contextmanager
    def _opened(self, name: str) -> Iterator[PostgresConnection]:
        """A connection whose transactions cannot write, and that writes dates as files do."""
        with closing(PostgresConnection(self._uri, self._place)) as connection:
            with connection.transaction(name):
                connection.raw.execute(_SETTINGS)
            connection.raw.read_only = True
            yield connection

    def _found(self, connection: Any, name: str) -> tuple[int, str, str]:
        """The table of this name: its number in the catalogue, its schema and its own name."""
        readings = _readings(storable(name))
        alone = [reading[0] for reading in readings if len(reading) == 1]
        pairs = [reading for reading in readings if len(reading) == 2]
        bound = [alone, [pair[0] for pair in pairs], [pair[1] for pair in pairs]]
        tables = connection.execute(_FIND, bound).fetchall()
        if len(tables) == 1:
            number, schema, table = tables[0]
            return number, schema, table
        if tables:
            raise DataError(f"{self._place}: --table {name!r} may be several tables; put names with dots into quotes")
        others = [f"{schema}.{table}" for schema, table in connection.execute(_TABLES).fetchall()]
        near = get_close_matches(name, others, n=1) or [one for one in others if one.lower().endswith(name.lower())]
        hint = f"did you mean {near[0]!r}?" if near else f"tables there: {shorten_list(sorted(others))}"
        raise DataError(f"{self._place}: there is no table {shorten(name)}; {hint}")

    def _checked_columns(self, columns: Mapping[str, str | None]) -> str:
        """Check that the columns are there, and that texts are texts; the column of the id."""
        for flag, given in columns.items():
            names = [given] if flag in ("id", "title") else (given or "").split(",")
            for name in (name.strip() for name in names if name and name.strip() not in ("", "none")):
                if name not in self._columns:
                    near = get_close_matches(name, self._columns, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else f"columns there: {shorten_list(self._columns)}"
                    raise DataError(f"{self.name}: there is no column {name!r} for --{flag}; {hint}")
                own = self._columns[name]
                if flag in ("text", "title") and own.category != _STRING:
                    raise DataError(f"{self.name}: the column {name!r} for --{flag} holds no text but {own.full_type}")
        if (columns.get("id") or "none") == "none":
            raise DataError(
                f"{self.name}: give the column of the id with --id, by which rows that have changed are known again; "
                f"columns there: {shorten_list(self._columns)}"
            )
        return str(columns["id"]).strip()

    def _check_ids(self, connection: Any) -> None:
        names = {"table": self._sql.Identifier(self._schema, self._table), "id": self._sql.Identifier(self._id)}
        names["text"] = self._sql.SQL('{}::text COLLATE "C"').format(names["id"])
        blank = "SELECT count(*) FROM {table} WHERE {id} IS NULL OR btrim({text}) = ''"
        (count,) = connection.execute(self._sql.SQL(blank).format(**names)).fetchone()
        if count:
            raise DataError(f"{self.name}: the column {self._id!r} is no id: {count:,} rows have nothing in it")
        twice = "SELECT {text}, count(*) FROM {table} GROUP BY 1 HAVING count(*) > 1 ORDER BY 1 LIMIT 1"
        if (found := connection.execute(self._sql.SQL(twice).format(**names)).fetchone()) is not None:
            value, count = found
            raise DataError(f"{self.name}: the column {self._id!r} is no id: {count:,} rows have {shorten(value)}")

    def rows(self, *, progress: bool = True) -> Iterator[Row]:
        """All rows, in the order of their ids. progress: those who ask for the rows show it themselves."""
        with self._opened(self.name) as connection:
            names, query = self._query(first=True)
            number, page = 0, self._page(connection, query, [_PAGE])
            _, query = self._query(first=False)
            while page:
                for values in page:
                    number += 1
                    yield Row(self.name, number, dict(zip(names, map(_plain, values), strict=True)), unit=" row ")
                page = self._page(connection, query, [page[-1][0], page[-1][0], _PAGE])

    def _page(self, connection: PostgresConnection, query: Any, bound: Sequence[Any]) -> list[Any]:
        with connection.transaction(self.name, "table") as opened:
            rows: list[Any] = opened.execute(query, bound).fetchall()
            return rows

    def _query(self, *, first: bool) -> tuple[list[str], Any]:
        """The columns that can be read, the id before the others, and the SELECT of a page."""
        names, wanted = [self._id], [self._sql.SQL("{}::text").format(self._quoted(self._id))]
        for name, column in self._columns.items():
            is_text = column.category in _READ_AS_TEXT or column.type == "uuid"
            if name != self._id and (is_text or column.category in _READ_AS_THEY_ARE or column.type in _OBJECTS):
                names.append(name)
                wanted.append(self._sql.SQL("{}::text" if is_text else "{}").format(self._quoted(name)))
        # First by the id, which may have an index; by its text where ids are equal to their type.
        order = 'own.{id}, own.{id}::text COLLATE "C"'
        after = "" if first else f"WHERE ({order}) > (%s::text::{{type}}, %s::text) "
        parts = {
            "wanted": self._sql.SQL(", ").join(wanted),
            "table": self._quoted(self._schema, self._table),
            "id": self._quoted(self._id),
            # Postgres has quoted the type's name where that is needed.
            "type": self._sql.SQL(self._columns[self._id].full_type.replace("%", "%%")),
        }
        # `own`: without it Postgres would sort by the text of the id, which is selected by the same name.
        text = f"SELECT {{wanted}} FROM {{table}} AS own {after}ORDER BY {order} LIMIT %s"  # nosec B608
        return names, self._sql.SQL(text).format(**parts)

    def _quoted(self, *names: str) -> Any:
        return self._sql.Identifier(*(name.replace("%", "%%") for name in names))  # a % is no parameter


def _readings(name: str) -> list[tuple[str, ...]]:
    """The ways to read a table's name, each its own name alone or after its schema's.

    >>> _readings("movies"), _readings("public.movies")
    ([('movies',)], [('public.movies',), ('public', 'movies')])
    >>> _readings('public."My ""old"" films"')[-1]
    ('public', 'My "old" films')
    """
    found: list[tuple[str, ...]] = [(name,)]
    places = [place for place, letter in enumerate(name) if letter == "."]
    for parts in [(name,), *((name[:place], name[place + 1 :]) for place in places)]:
        found += [parts, tuple(map(_unquoted, parts))]
    return list(dict.fromkeys(found))


def _unquoted(name: str) -> str:
    inside = name[1:-1]
    is_quoted = len(name) > 2 and name[0] == name[-1] == '"' and '"' not in inside.replace('""', "")
    return inside.replace('""', '"') if is_quoted else name


def _plain(value: Any) -> Any:
    """A value of a row as a file of JSON would have it.

    >>> _plain(Decimal("7.50")), _plain([date(1990, 12, 31), b"x"]), _plain("text")
    (7.5, ['1990-12-31', None], 'text')
    """
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    return value if value is None or isinstance(value, str | int | float | dict) else None
