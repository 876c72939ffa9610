"""Operators, templates and the marked notation of QUEST."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolbert.boolean import (
    OPERATORS,
    TEMPLATES,
    from_multi_hot,
    multi_hot,
    parse_original_query,
    render_original_query,
    template_operators,
)


def test_operators_have_one_order():
    assert OPERATORS == ("and", "or", "not")
    assert len(TEMPLATES) == 7
    for operators in TEMPLATES.values():
        assert operators == tuple(operator for operator in OPERATORS if operator in operators)


def test_unknown_template_names_the_seven():
    with pytest.raises(ValueError, match="unknown template '_ xor _'") as error:
        template_operators("_ xor _")
    assert all(repr(template) in str(error.value) for template in TEMPLATES)


@given(st.sets(st.sampled_from(OPERATORS)))
def test_multi_hot_round_trip(operators):
    labels = multi_hot(operators)
    assert labels == [int("and" in operators), int("or" in operators), int("not" in operators)]
    assert set(from_multi_hot(labels)) == operators


def test_multi_hot_refuses_what_it_cannot_read():
    with pytest.raises(ValueError, match=r"operator must be one of .* got 'xor'"):
        multi_hot(["xor"])
    with pytest.raises(TypeError, match="several operator names"):
        multi_hot("and")
    for labels in ([1, 0], [0, 2, 0]):
        with pytest.raises(ValueError, match="labels must be 3 values"):
            from_multi_hot(labels)


_ATOMS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<>"), min_size=1).map(
    str.strip
).filter(bool)  # fmt: skip


@given(st.sampled_from(sorted(TEMPLATES)), st.data())
def test_marks_round_trip(template, data):
    atoms = tuple(data.draw(st.lists(_ATOMS, min_size=template.count("_"), max_size=template.count("_"))))
    text = render_original_query(template, atoms)
    assert text.count("<mark>") == len(atoms)
    assert parse_original_query(text) == (template, atoms)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mark>A", "<mark> without its partner"),
        ("A</mark>", "</mark> without its partner"),
        ("<mark>A <mark>B</mark>", "<mark> without its partner"),
        ("<mark> </mark>", "empty <mark></mark>"),
        ("<mark>A</mark> unless <mark>B</mark>", "unknown template '_ unless _'"),
        ("no marks", "unknown template 'no marks'"),
        ("<mark>A</mark> or _", "has 2 blanks, got 1 atoms"),
    ],
)
def test_parse_errors(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_original_query(text)


def test_render_errors():
    with pytest.raises(ValueError, match="has 2 blanks, got 3 atoms"):
        render_original_query("_ or _", ["A", "B", "C"])
    with pytest.raises(ValueError, match="without <mark> tags, got ' '"):
        render_original_query("_", [" "])
    with pytest.raises(ValueError, match="without <mark> tags"):
        render_original_query("_", ["<mark>A</mark>"])
