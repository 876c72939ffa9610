"""A user's own table in Postgres: it is read and never changed, and a collection of ours follows it."""

import datetime
import json

import pytest
from store_fixtures import new_database, skip_without

from boolbert.cli.main import main
from boolbert.core.errors import DataError
from boolbert.data.own import OwnDocuments
from boolbert.retrieval.stores import open_store

skip_without("postgres")
import psycopg  # noqa: E402
from psycopg import sql  # noqa: E402

from boolbert.retrieval.stores.postgres_table import PostgresTable  # noqa: E402

COLUMNS = ("--id", "movie_id", "--text", "plot", "--title", "name")
FILMS = [
    (1, "Alone", "films about war set in a", 1952, ["western", "drama"], datetime.date(1952, 7, 24)),
    (2, "Outlaw", "books about war", 1992, ["western"], datetime.date(1992, 8, 7)),
    (3, "Monster", "films set in c", 1979, [], None),
    (4, "Nothing", None, 1980, None, None),
]
HOSTILE = [
    ('odd"; DROP TABLE "keep"; --', "a'b", "x;y"),
    ("Movies", "MovieId", "Plot"),
    ("select", "from", "%s %(a)s"),
    ("{table}", "{id}", "a.b"),
    ("two words", 'quo"ted', "ünï ⚡"),
    ("a.b", "_", "$1"),
]


@pytest.fixture
def place():
    return new_database()


@pytest.fixture
def database(place):
    with psycopg.connect(place, autocommit=True) as connection:
        yield connection


@pytest.fixture
def movies(database):
    """The user's table."""
    database.execute(
        "CREATE TABLE public.movies (movie_id bigint PRIMARY KEY, name varchar(80), plot text, year numeric(6, 1), "
        "genres text[], released date, poster bytea DEFAULT '\\x00', change int DEFAULT 0)"
    )
    insert = "INSERT INTO movies (movie_id, name, plot, year, genres, released) VALUES (%s, %s, %s, %s, %s, %s)"
    database.cursor().executemany(insert, FILMS)
    return database


def everything(database):
    """The tables of the user: their columns, indexes, constraints and rows with the transaction that wrote each."""
    columns = database.execute(
        "SELECT table_schema, table_name, column_name, data_type, column_default, is_nullable FROM "
        "information_schema.columns WHERE table_name = 'movies' ORDER BY ordinal_position"
    ).fetchall()
    indexes = database.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'movies'").fetchall()
    rules = database.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'movies'::regclass"
    ).fetchall()
    triggers = database.execute("SELECT tgname FROM pg_trigger WHERE tgrelid = 'movies'::regclass").fetchall()
    rows = database.execute("SELECT xmin, xmax, ctid, * FROM movies ORDER BY movie_id").fetchall()
    return columns, indexes, rules, triggers, rows


def tables(database):
    found = database.execute("SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information)'")
    return sorted(found.fetchall())


@pytest.fixture
def index(place, run_once, load_once, capsys):
    """A function that indexes a table of the database into the collection films: its output as JSON, and its notes."""

    def run(*flags, table="public.movies", columns=COLUMNS):
        words = ["--store", place, "--collection", "films", "--table", table, *columns, *flags, "--json"]
        assert main(["index", *words, "--model", str(run_once())]) == 0
        shown = capsys.readouterr()
        return json.loads(shown.out), shown.err

    return run


def test_their_table_is_read_and_not_changed(place, movies, index, capsys):
    before = everything(movies)
    said, notes = index()
    assert (said["documents"], said["encoded"], said["table"]) == (4, 4, "public.movies")
    assert "text: plot, title: name, id: movie_id" in notes
    flags = ["--store", place, "--collection", "films"]
    assert main(["search", "films about war", *flags, "--json", "--where", "year < 1980"]) == 0
    found = {hit["id"]: hit["text"] for hit in json.loads(capsys.readouterr().out)["hits"]}
    assert found == {"1": "Alone (genres: western, drama). films about war set in a", "3": "Monster. films set in c"}
    assert main(["index", "--remove", "1", *flags]) == 0
    assert everything(movies) == before
    store = open_store(place, "films")
    assert store.about().fields == {"year": "number", "genres": "text", "released": "date", "change": "number"}
    for where, count in {"genres = western": 1, "released < 1992-12-31": 1, "year = 1979": 1}.items():
        assert store.count(where) == count  # the first one was removed
    store.close()


def test_the_collection_follows_the_table(place, movies, index):
    """Rows that are new or changed are taken, and nothing else is encoded; rows that are deleted go."""
    index()
    assert index()[0]["encoded"] == 0
    movies.execute("INSERT INTO movies (movie_id, name, plot) VALUES (10, 'More', 'books set in b')")
    movies.execute("UPDATE movies SET plot = 'books in a' WHERE movie_id = 2")
    movies.execute("DELETE FROM movies WHERE movie_id IN (1, 3)")
    before = everything(movies)
    said, notes = index("--add")
    assert (said["documents"], said["encoded"]) == (3, 2)
    assert "2 records removed that public.movies no longer has" in notes
    assert everything(movies) == before
    store = open_store(place, "films")
    assert {record.id: record.text for record in store.records()} == {
        "2": "Outlaw. books in a",
        "4": "Nothing",
        "10": "More. books set in b",
    }
    assert store.held_by(["book"]) == {"book": 2}
    store.close()


def test_a_text_that_grows_into_passages_and_back(place, movies, index):
    index("--passages")
    movies.execute("UPDATE movies SET plot = repeat('films about war set in a. ', 200) WHERE movie_id = 1")
    assert index("--passages")[0]["documents"] > 5
    movies.execute("UPDATE movies SET plot = 'books' WHERE movie_id = 1")
    assert index("--passages")[0]["documents"] == 4


def test_a_table_of_more_than_a_page(place, movies, monkeypatch):
    """In the order of its ids, which is not that of their texts; each row once."""
    monkeypatch.setattr("boolbert.retrieval.stores.postgres_table._PAGE", 7)
    movies.execute("INSERT INTO movies (movie_id, plot) SELECT n, 'film ' || n FROM generate_series(100, 5, -1) AS n")
    rows = list(PostgresTable(place, "movies", {"id": "movie_id", "text": "plot"}).rows())
    assert [row.values["movie_id"] for row in rows] == [str(n) for n in range(1, 101)]
    assert rows[0].values == {
        "movie_id": "1",
        "name": "Alone",
        "plot": "films about war set in a",
        "year": 1952.0,
        "genres": ["western", "drama"],
        "released": "1952-07-24",
        "change": 0,
    }


def test_a_text_that_only_later_rows_have(place, database):
    """The layout is decided by the first rows; a column that is empty there is a column nevertheless."""
    database.execute(
        "CREATE TABLE late AS SELECT n AS id, 'Film ' || n AS name, NULL AS plot FROM generate_series(1, 1500) n"
    )
    database.execute("UPDATE late SET plot = 'films about war' WHERE id > 1200")
    table = PostgresTable(place, "late", {"id": "id", "text": "plot", "title": "name"})
    documents = {one.id: one.content for one in OwnDocuments(table, id="id", text="plot", title="name", progress=False)}
    assert len(documents) == 1500
    assert (documents["1"], documents["1500"]) == ("Film 1", "Film 1500. films about war")


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("uuid", ["00000000-0000-0000-0000-000000000001", "ffffffff-0000-0000-0000-000000000001"]),
        ("char(6)", ["a", "b b"]),
        ("numeric(12, 3)", ["-1.500", "20000000.125"]),
        ("timestamptz", ["1990-01-01 00:00:00.000001+00", "2990-01-01 00:00:00+00"]),
        ("float8", ["0.1", "1e+300"]),
        ('"odd; {}% ""type"', ["B", "a"]),
    ],
)
def test_ids_of_any_type(place, database, type, values, monkeypatch):
    monkeypatch.setattr("boolbert.retrieval.stores.postgres_table._PAGE", 1)
    database.execute('CREATE DOMAIN "odd; {}% ""type" AS text')
    database.execute("SET TIME ZONE 'UTC'")
    database.execute(sql.SQL("CREATE TABLE odd (id {}, text text)").format(sql.SQL(type)))
    for value in values:
        database.execute(sql.SQL("INSERT INTO odd VALUES ({}, 'a text')").format(sql.Literal(value)))
    documents = OwnDocuments(PostgresTable(place, "odd", {"id": "id"}), id="id", progress=False)
    assert {document.id for document in documents} == set(values)


# Ids that Postgres compares as equal by the type of their column; each has a text of its own.
SAME_TO_THEIR_TYPE = {
    "numeric": ["5000.0", "5000.00", "5001"],
    "interval": ["1 mon", "30 days", "720:00:00"],
    "float8": ["0", "-0", "1.23456789012345", "1.23456789012346"],
    "numeric[]": ["{1.0}", "{1.00}"],
    "any_case": ["A", "a", "B", "b"],
    "citext": ["A", "a", "B", "b"],
    'text COLLATE "any case"': ["A", "a", "B", "b"],
    'text COLLATE "no signs"': ["a-b", "ab", "-", "a b"],
}
# What citext does, which not every Postgres has: texts that are compared in lower case.
ANY_CASE = [
    "CREATE TYPE any_case",
    "CREATE FUNCTION read(cstring) RETURNS any_case LANGUAGE internal IMMUTABLE STRICT AS 'textin'",
    "CREATE FUNCTION written(any_case) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout'",
    "CREATE TYPE any_case (INPUT = read, OUTPUT = written, LIKE = text, CATEGORY = 'S')",
    "CREATE CAST (any_case AS text) WITHOUT FUNCTION AS IMPLICIT",
    "CREATE CAST (text AS any_case) WITHOUT FUNCTION AS ASSIGNMENT",
    "CREATE FUNCTION compared(any_case, any_case) RETURNS int LANGUAGE sql IMMUTABLE AS "
    "'SELECT bttextcmp(lower($1::text), lower($2::text))'",
    *(
        f"CREATE FUNCTION {name}(any_case, any_case) RETURNS bool LANGUAGE sql IMMUTABLE AS "
        f"'SELECT compared($1, $2) {sign} 0'; CREATE OPERATOR {sign} "
        f"(LEFTARG = any_case, RIGHTARG = any_case, FUNCTION = {name})"
        for name, sign in (("lt", "<"), ("le", "<="), ("eq", "="), ("ge", ">="), ("gt", ">"))
    ),
    "CREATE OPERATOR CLASS any_case_order DEFAULT FOR TYPE any_case USING btree AS OPERATOR 1 <, OPERATOR 2 <=, "
    "OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 compared(any_case, any_case)",
]
BEFORE = {
    "any_case": ANY_CASE,
    "citext": ["CREATE EXTENSION citext"],
    'text COLLATE "any case"': [
        "CREATE COLLATION \"any case\" (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    ],
    'text COLLATE "no signs"': [
        "CREATE COLLATION \"no signs\" (provider = icu, locale = 'und-u-ka-shifted', deterministic = false)"
    ],
}


@pytest.mark.parametrize("type", SAME_TO_THEIR_TYPE)
def test_ids_that_are_equal_to_their_type_are_rows_of_their_own(place, database, type, monkeypatch):
    """Wherever a page ends, each row is read once."""
    try:
        for statement in BEFORE.get(type, []):
            database.execute(statement)
    except psycopg.errors.FeatureNotSupported as error:
        pytest.skip(f"NOT TESTED: {error.diag.message_primary}")
    values = SAME_TO_THEIR_TYPE[type]
    database.execute(f"CREATE TABLE same (id {type}, text text)")
    for value in values:
        database.execute(sql.SQL("INSERT INTO same VALUES ({}, 'a text')").format(value))
    for page in (1, 2, 3):
        monkeypatch.setattr("boolbert.retrieval.stores.postgres_table._PAGE", page)
        rows = PostgresTable(place, "same", {"id": "id"}).rows()
        assert sorted(row.values["id"] for row in rows) == sorted(values)


@pytest.mark.parametrize(
    ("setting", "type", "value"),
    [
        ("extra_float_digits = -10", "float8", "1.23456789012345"),
        ("intervalstyle = 'iso_8601'", "interval", "1 mon"),
        ("bytea_output = 'escape'", "bytea", "\\x6162"),
        ("timezone = 'Asia/Tokyo'", "timestamptz", "1990-01-01 00:00:00+00"),
        ("datestyle = 'German'", "date", "1990-12-31"),
    ],
)
def test_an_id_is_the_same_text_whatever_the_database_is_set_to(place, database, setting, type, value):
    """Else all rows would be taken for new ones after a setting was changed."""
    name = place.partition("?")[0].rpartition("/")[2]
    database.execute(f"CREATE TABLE odd (id {type}, text text)")
    database.execute(sql.SQL("INSERT INTO odd VALUES ({}, 'a text')").format(value))
    database.execute(sql.SQL("ALTER DATABASE {} SET " + setting).format(sql.Identifier(name)))
    assert [row.values["id"] for row in PostgresTable(place, "odd", {"id": "id"}).rows()] == [value]


@pytest.mark.parametrize(("table", "id", "text"), HOSTILE)
def test_names_of_any_kind(place, database, index, table, id, text):
    """In a schema of a hostile name as well. What a name says is never run."""
    schema = f"schema {table}"
    database.execute("CREATE TABLE keep (a int)")
    database.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    whole = sql.Identifier(schema, table)
    database.execute(sql.SQL("CREATE TABLE {} ({} text, {} text)").format(whole, *map(sql.Identifier, (id, text))))
    database.execute(sql.SQL("INSERT INTO {} VALUES ('one', 'films'), ('two; --', 'books')").format(whole))
    quoted = ".".join(f'"{name}"' for name in (schema.replace('"', '""'), table.replace('"', '""')))
    columns = ("--id", id, "--text", text)
    plain = index(table=f"{schema}.{table}", columns=columns)[0]
    assert plain["documents"] == 2
    assert index(table=quoted, columns=columns)[0]["encoded"] == 0
    store = open_store(place, "films")
    assert {record.id: record.text for record in store.records()} == {"one": "films", "two; --": "books"}
    store.close()
    assert ("public", "keep") in tables(database)
    assert database.execute(sql.SQL("SELECT count(*) FROM {}").format(whole)).fetchone() == (2,)


PLAIN = {"table": "public.movies", "id": "movie_id", "text": "plot", "title": "name"}
WRONG = {
    "no table": ({"table": "public.movie"}, "there is no table 'public.movie'; did you mean 'public.movies'?"),
    "upper case": ({"table": "MOVIES"}, "there is no table 'MOVIES'; did you mean 'public.movies'?"),
    "code": (
        {"table": "movies; DROP TABLE a"},
        "there is no table 'movies; DROP TABLE a'; tables there: public.movies",
    ),
    "no column": ({"text": "plto"}, "public.movies: there is no column 'plto' for --text; did you mean 'plot'?"),
    "no id": ({"id": "uid"}, "public.movies: there is no column 'uid' for --id; columns there: movie_id, name, plot"),
    "no id named": ({"id": "none"}, "public.movies: give the column of the id with --id"),
    "a list": ({"text": "plot,nothing"}, "there is no column 'nothing' for --text"),
    "NULL": ({"id": "released"}, "public.movies: the column 'released' is no id: 2 rows have nothing in it"),
    "twice": ({"id": "change"}, "public.movies: the column 'change' is no id: 4 rows have '0'"),
    "a number": ({"text": "year"}, "public.movies: the column 'year' for --text holds no text but numeric(6,1)"),
    "bytes": ({"text": "plot,poster"}, "the column 'poster' for --text holds no text but bytea"),
    "an array": ({"title": "genres"}, "the column 'genres' for --title holds no text but text[]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line_and_nothing_is_changed(place, movies, capsys, name):
    change, message = WRONG[name]
    flags = [word for key, value in {**PLAIN, **change}.items() for word in (f"--{key}", value)]
    before = tables(movies), everything(movies)
    assert main(["index", "--store", place, "--collection", "films", *flags]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
    assert (tables(movies), everything(movies)) == before


def one_line(capsys, *words):
    assert main(["index", *words]) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    return shown


def test_a_table_goes_with_postgres_alone_and_with_no_documents(place, capsys):
    assert "give --store postgresql://host/db" in one_line(capsys, "--table", "movies", "--output", "a")
    assert "give --store postgresql://host/db" in one_line(capsys, "--table", "movies", "--store", "films.db")
    shown = one_line(capsys, "films.csv", "--table", "movies", "--store", place)
    assert "give --table, or the documents to index, or --remove with ids" in shown


def test_a_collection_is_of_one_table_or_of_files(place, movies, index, tmp_path, capsys, run_once):
    """What a table does not have is deleted: documents from elsewhere would be lost."""
    flags = ["--store", place, "--model", str(run_once())]
    (tmp_path / "films.csv").write_text("id,text\na,films about war\nb,books\n")
    films = str(tmp_path / "films.csv")
    index()
    assert main(["index", films, "--add", *flags, "--collection", "films"]) == 2
    shown = capsys.readouterr().err
    assert "films: holds the rows of the table public.movies; index others into another --collection" in shown
    movies.execute("CREATE TABLE other AS SELECT * FROM movies")
    words = [*flags, "--collection", "films", "--table", "other", *COLUMNS]
    assert main(["index", *words]) == 2
    assert "holds the rows of the table public.movies" in capsys.readouterr().err
    assert main(["index", films, *flags, "--collection", "files"]) == 0
    assert main(["index", *flags, "--collection", "files", "--table", "movies", *COLUMNS]) == 2
    assert "files: holds documents that are no rows of a table" in capsys.readouterr().err
    for name, count in (("films", 4), ("files", 2)):
        store = open_store(place, name)
        assert store.count() == count
        store.close()


def test_their_table_is_no_collection(place, movies, capsys, run_once):
    before = tables(movies), everything(movies)
    words = ["--store", place, "--collection", "movies", "--table", "movies", *COLUMNS, "--model", str(run_once())]
    assert main(["index", *words]) == 2
    assert "the table 'movies' was not made by boolbert; give another name with --collection" in capsys.readouterr().err
    assert (tables(movies), everything(movies)) == before


def test_a_table_that_is_empty(place, movies):
    movies.execute("CREATE TABLE nothing (id int, text text)")
    with pytest.raises(DataError, match=r"public\.nothing: there are no documents in it"):
        OwnDocuments(PostgresTable(place, "nothing", {"id": "id"}), id="id")


@pytest.mark.parametrize("change", ["DELETE FROM movies", "UPDATE movies SET name = NULL, plot = '', genres = NULL"])
def test_a_table_that_became_empty(place, movies, index, capsys, change):
    """What it no longer has is found no longer."""
    index()
    movies.execute("CREATE TABLE before AS SELECT * FROM movies")
    movies.execute(change)
    said, notes = index()
    assert (said["documents"], said["encoded"], said["complete"]) == (0, 0, True)
    assert "note: public.movies has no documents any more: 4 records removed" in notes
    assert main(["search", "films about war", "--store", place, "--collection", "films", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"] == []
    movies.execute("DELETE FROM movies")
    movies.execute("INSERT INTO movies SELECT * FROM before")
    assert index()[0]["encoded"] == 4


def test_an_empty_table_removes_nothing_from_a_collection_of_another(place, movies, index, capsys):
    index()
    movies.execute("CREATE TABLE nothing (movie_id int, plot text, name text)")
    assert main(["index", "--store", place, "--collection", "films", "--table", "nothing", *COLUMNS]) == 2
    assert "public.nothing: there are no documents in it" in capsys.readouterr().err
    store = open_store(place, "films")
    assert store.count() == 4
    store.close()


def test_a_database_with_dates_written_in_another_way(place, database):
    name = place.partition("?")[0].rpartition("/")[2]
    database.execute(sql.SQL("ALTER DATABASE {} SET datestyle = 'German'").format(sql.Identifier(name)))
    database.execute("CREATE TABLE days (id date, text text, day date)")
    database.execute("INSERT INTO days VALUES ('1990-12-31', 'a text', '1991-02-01')")
    (row,) = PostgresTable(place, "days", {"id": "id"}).rows()
    assert row.values == {"id": "1990-12-31", "text": "a text", "day": "1991-02-01"}
