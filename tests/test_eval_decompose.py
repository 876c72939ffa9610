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


def test_most_embedded_queries_come_apart_as_they_were_put_together():
    queries = Quest(progress=False).queries("dev")
    same = [
        [part.operator for part in parsed_parts(query.query)]
        == [part.operator for part in gold_parts(query.original_query or "")]
        for query in queries
        if query.template != "_ that are also _"  # an AND often goes unsaid
    ]
    assert sum(same) / len(same) > 0.7
