"""Queries taken apart: templates, plain texts, and the embedded queries against their own marks."""

import pytest

from boolbert.boolean import TEMPLATES, template_operators
from boolbert.boolean.decompose import blank_operators, gold_parts, parsed_parts
from boolbert.data import Quest


@pytest.mark.parametrize("template", TEMPLATES)
def test_blanks_carry_the_templates_operators(template):
    joined = blank_operators(template)
    assert len(joined) == template.count("_")
    assert joined[0] == ""
    assert set(joined[1:]) == set(template_operators(template))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("French films", [("", "French films")]),
        ("French films that are not about war", [("", "French films"), ("not", "about war")]),
        ("French films or books, or songs", [("", "French films"), ("or", "books"), ("or", "songs")]),
        (
            "trees of Cuba that are also in Haiti but not Jamaica",
            [("", "trees of Cuba"), ("and", "in Haiti"), ("not", "Jamaica")],
        ),
        ("not dogs", [("", "not dogs")]),
        ("Trinidad and Tobago", [("", "Trinidad and Tobago")]),
        ("  ", [("", "")]),
    ],
)
def test_plain_texts(text, parts):
    assert [part[::3] for part in parsed_parts(text)] == parts


def test_most_embedded_queries_come_apart_as_they_were_put_together():
    queries = Quest(progress=False).queries("dev")
    same = [
        [part.operator for part in parsed_parts(query.query)]
        == [part.operator for part in gold_parts(query.original_query or "")]
        for query in queries
        if query.template != "_ that are also _"  # an AND often goes unsaid
    ]
    assert sum(same) / len(same) > 0.7
