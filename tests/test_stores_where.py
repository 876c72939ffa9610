"""The language of filters: what it reads and refuses, and that a value cannot become part of an engine's language."""

import json
import re
from contextlib import suppress
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolbert.core.errors import RetrievalError
from boolbert.data.own import OwnDocuments
from boolbert.retrieval.stores.where import Comparison, Joined, fitted_filter, milvus_expression, parse_filter

NEW, OLD = Comparison("year", ">", ("1990",)), Comparison("year", "<=", ("1990",))
PAIRS = ["|".join(pair) for pair in combinations(("red", "blue", "green", "grey", "black"), 2)]
WESTERN = Comparison("genre", "=", ("western",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("year > 1990", NEW),
        ("year>1990", NEW),
        ("NOT year > 1990", OLD),
        ("not not year > 1990", NEW),
        ("genre == western", WESTERN),
        ("genre = 'western' AND year > 1990", Joined("and", (WESTERN, NEW))),
        ("genre = western or genre = western and year > 1990", Joined("or", (WESTERN, Joined("and", (WESTERN, NEW))))),
        ("(genre = western or year > 1990) and year > 1990", Joined("and", (Joined("or", (WESTERN, NEW)), NEW))),
        ("not (genre = western or year > 1990)", Joined("and", (~WESTERN, OLD))),
        ("not (genre = western and not year > 1990)", Joined("or", (~WESTERN, NEW))),
        ("genre in (western, 'a b')", Comparison("genre", "=", ("western", "a b"))),
        ("genre not in (western)", ~WESTERN),
        ("not genre not in (western)", WESTERN),
        ("'and' = \"or\"", Comparison("and", "=", ("or",))),
        (r"a = 'it\'s'", Comparison("a", "=", ("it's",))),
        ("release-day <> 1990-01-01", Comparison("release-day", "!=", ("1990-01-01",))),
    ],
)
def test_reads(text, expected):
    assert parse_filter(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a field is missing"),
        ("year", "after 'year' comes 'the end'"),
        ("year >", "a value is missing"),
        ("year > 1990 1991", "'1991' was not expected here"),
        ("(year > 1990", "')' is missing"),
        ("year > 1990)", "')' was not expected here"),
        ("year not > 1990", "after 'year' comes '>'"),
        ("year in 1990", "'(' is missing"),
        ("year in (1990,)", "a value is missing"),
        ("year ! 1990", "cannot be read at"),
        ("name = 'open", "cannot be read at"),
        ("a = 1 and", "a field is missing"),
        ("(" * 60 + "a = 1" + ")" * 60, "nested more than 50 deep"),
        ("not " * 60 + "a = 1", "nested more than 50 deep"),
        ("a = " + "x" * 20_000, "longer than 10,000 characters"),
    ],
)
def test_refuses(text, message):
    with pytest.raises(RetrievalError, match=re.escape(message)):
        parse_filter(text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    with suppress(RetrievalError):
        parse_filter(text)


@given(st.text(min_size=1, max_size=30).filter(str.strip), st.text(min_size=1, max_size=30))
def test_a_value_stays_a_value(value, name):
    """Whatever a user or a column's name holds, Milvus sees it as one text of JSON."""
    fitted = fitted_filter(Comparison(name, "=", (value,)), {name: "text"})
    if fitted.values[0] is None:
        return
    expression = milvus_expression(fitted)
    assert expression.startswith("json_contains(fields[")
    decoder = json.JSONDecoder()
    first, end = decoder.raw_decode(expression, len("json_contains(fields["))
    assert first == name
    second, last = decoder.raw_decode(expression, end + len("], "))
    assert second == fitted.values[0]
    assert expression[last:] == ")"


def test_columns_of_a_csv_have_kinds(tmp_path):
    """By their values: numbers, dates, texts, lists. Long texts are no columns to filter by, and "n/a" is no number."""
    rows = ["sku,name,description,price,sold,colours,notes,organic"]
    for row in range(40):
        price = "n/a" if row == 7 else f"{row}.5"
        colours = PAIRS[row % len(PAIRS)]
        rows.append(
            f"p{row},Thing {row},Of {row} uses.,{price},2020-01-{row % 28 + 1:02},{colours},{'long ' * 60},TRUE"
        )
    (tmp_path / "things.csv").write_text("\n".join(rows))
    things = OwnDocuments(tmp_path / "things.csv", progress=False)
    assert things.columns == {"price": "number", "sold": "date", "colours": "text", "organic": "text"}
    first, *_, eighth = list(things)[:8]
    assert first.columns == {"price": 0.5, "sold": 20200101.0, "colours": ("red", "blue"), "organic": ("TRUE",)}
    assert "price" not in eighth.columns


def test_documents_without_fields_are_told_so():
    with pytest.raises(RetrievalError, match=r"there is no field 'year'; the documents have no fields\Z"):
        fitted_filter("year > 1990", {})
