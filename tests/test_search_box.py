"""Search-box syntax: what is typed is read exactly, or left alone, or refused in one line."""

import contextlib
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolbert.boolean import read_search_box, without_double_negation
from boolbert.boolean.query import MOST_EXCLUDED
from boolbert.boolean.search_box import LONGEST_TYPED, notes_on_signs
from boolbert.boolean.tags import ALTERNATIVE, CUE, EXCLUDED, JOIN
from boolbert.core.errors import BoolBertError
from boolbert.data.labels import read_parts
from boolbert.search.query_reader import read

LINES = (Path(__file__).parent / "search_box.tsv").read_text(encoding="utf-8").splitlines()
CASES = [tuple(line.split("\t")) for line in LINES if not line.startswith("#")]


def shown(text, marks):
    """The marks of a query as the table has them."""
    if marks is None:
        return "-"
    pieces, groups, is_joined = [], set(), False
    for mark in marks:
        if mark.kind == CUE:
            continue
        if mark.kind == JOIN:
            is_joined = True
            continue
        operator = "not"
        if mark.kind != EXCLUDED:
            operator = "or" if mark.group in groups else "and" if is_joined else "+"
            groups |= {mark.group} if mark.kind == ALTERNATIVE else set()
            is_joined = False
        pieces.append(f"{operator} {text[mark.start : mark.end]}")
    return " / ".join(pieces)


@pytest.mark.parametrize(("query", "expected"), CASES)
def test_a_typed_query(query, expected):
    if expected.startswith("!"):
        with pytest.raises(BoolBertError) as caught:
            read_search_box(query)
        assert str(caught.value).startswith(expected[2:])
        assert "\n" not in str(caught.value)
        return
    marks = read_search_box(query)
    assert shown(query, marks) == expected
    assert all(left.end <= right.start for left, right in pairwise(marks or ()))


def test_each_of_a_group_is_excluded_and_each_sign_is_a_cue():
    query = "pets -(cats OR dogs) for children -snakes"
    marks = read_search_box(query)
    texts = {kind: [query[mark.start : mark.end] for mark in marks if mark.kind == kind] for kind in (CUE, EXCLUDED)}
    assert texts == {CUE: ["-", "-"], EXCLUDED: ["cats", "dogs", "snakes"]}


def test_groups_of_alternatives_are_told_apart():
    query = "(cats OR dogs) for sale (London OR Leeds)"
    marks = [mark for mark in read_search_box(query) if mark.kind == ALTERNATIVE]
    texts = [query[mark.start : mark.end] for mark in marks]
    assert texts == ["cats", "dogs", "London", "Leeds"]
    assert marks[0].group == marks[1].group != marks[2].group == marks[3].group
    found = read(query)
    assert [[one.text for one in group] for group in found.groups] == [texts[:2], ["for sale"], texts[2:]]


WORDS = {
    "countries outside Africa": (["Africa"], "countries"),
    "hotels outside of Paris": (["Paris"], "hotels"),
    "museums outside london": (["london"], "museums"),
    "lights outside the house": ([], "lights outside the house"),
    "a town outside Boston": ([], "a town outside Boston"),
    "Who won outside Africa?": ([], "Who won outside Africa"),
    "snack bars, no nuts please": (["nuts"], "snack bars"),
    "snack bars but no nuts, please": (["nuts"], "snack bars"),
    "Who had no love for the violin, please?": ([], "Who had no love for the violin, please"),
    "no nuts please": ([], "no nuts please"),
    "sugar-free desserts": (["sugar"], "desserts"),
    "gluten-free and dairy-free bread": (["gluten", "dairy"], "bread"),
    "duty-free shops": ([], "duty-free shops"),
    "Is this bread gluten-free?": ([], "Is this bread gluten-free"),
    "films, anything but horror": (["horror"], "films"),
    "the exam was anything but easy": ([], "the exam was anything but easy"),
}
# What the reader has still to learn. A query that is read right leaves this list.
WRONG = {
    "no nuts please",  # nuts are excluded, and the whole, nuts and all, is asked for
    "Is this bread gluten-free?",
    "a town outside Boston",
}


@pytest.mark.parametrize("query", WORDS)
def test_the_rules_of_labels_know_words_that_people_use(query):
    excluded, wanted = WORDS[query]
    reading = read_parts(query)
    assert [part.text for part in reading.excluded] == excluded
    assert reading.wanted[0].text == wanted


@pytest.mark.parametrize("query", WORDS)
def test_words_that_people_use(query):
    """Of what a question negates as a property, nothing is taken away."""
    excluded, wanted = WORDS[query]
    found = read(query)
    out = [] if found.kind == "property" else [one.text for one in found.excluded]
    asked = found.text.rstrip("?") if found.kind == "property" else found.wanted.rstrip("?")
    assert ((out, asked) == (excluded, wanted)) == (query not in WRONG), (out, asked)


def test_what_is_still_read_wrong_stands_in_the_table():
    assert WORDS.keys() > WRONG
    assert len(WRONG) <= 3


@pytest.mark.parametrize(
    ("query", "direct"),
    [
        ("bars -sugar-free", "bars AND sugar"),
        ("-sugar-free bars -nuts", "bars -nuts AND sugar"),
        ("bars -(nuts OR sugar-free) vegan", "bars -(nuts) vegan AND sugar"),
        ("bars NOT without nuts", "bars AND nuts"),
        ("bars without nuts -milk", "bars without nuts -milk"),
        ('bars -"nuts', 'bars -"nuts'),
    ],
)
def test_a_double_negation_asks_for_the_thing(query, direct):
    assert without_double_negation(query) == direct
    reading = read(query) if query != direct else None
    if reading is not None:
        assert "sugar" in reading.wanted or "nuts" in reading.wanted
        assert not {"sugar", "sugar-free", "without nuts"} & {span.text for span in reading.excluded}


@pytest.mark.parametrize("query", ["not", "-", "?!", "NOT", "and not", "()"])
def test_a_query_without_a_word_to_look_for_is_refused(query):
    with pytest.raises(BoolBertError, match="has no words to look for"):
        read(query)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("islands " * 10_000, "at most 5,000 are read"),
        ("islands " + "-a1 " * 150, "at most 40 and 20 are searched"),
        ("sun OR sea " * 45, "at most 40 and 20 are searched"),
    ],
)
def test_a_query_that_would_take_long_is_refused(query, line):
    with pytest.raises(BoolBertError, match=line):
        read(query)


def test_of_a_pasted_list_as_much_is_excluded_as_is_searched():
    pasted = read("islands without " + "sun, " * 99 + "or sea")
    assert len(pasted.groups) <= 24  # of what is excluded; it should be one
    assert len(pasted.excluded) == MOST_EXCLUDED
    assert pasted.truncated


@pytest.mark.parametrize(
    ("query", "sign", "phrase"),
    [
        ("courses -.NET", "-.NET", ".NET"),
        ("posts -@me today", "-@me", "@me"),
        ("posts -#metoo, today", "-#metoo", "#metoo"),
        ("courses -'C++'", "-'C++'", "C++"),
        ("courses -‘R&D’", "-‘R&D’", "R&D"),
        ("names -_x", "-_x", "_x"),
        ("tags -<b>", "-<b>", "<b>"),
    ],
)
def test_a_sign_before_another_sign_is_named(query, sign, phrase):
    told = f'“{sign}” is read as a word of the query; to leave it out, write -"{phrase}"'
    assert notes_on_signs(query) == (told,)


@pytest.mark.parametrize("query", ["shoes -- boots", "at -.5 degrees", "a ->b", "fun :-) films", "-$5", "50-.NET"])
def test_what_cannot_be_an_exclusion_is_not_named(query):
    assert notes_on_signs(query) == ()


def test_a_sign_that_is_not_read_is_named():
    query = "ls -la -nuts"
    assert notes_on_signs(query) == ('“-la” is read as a word of the query; to leave it out, write -"la"',)
    assert notes_on_signs("weather at -5 degrees") == ()
    assert shown('ls -"la"', read_search_box('ls -"la"')) == "+ ls / not la"


@given(st.lists(st.sampled_from(['"', "(", ")", "-", "!", "cats", "NOT", "OR", "AND", "|", "--no", ",", "w/o", " "])))
def test_anything_is_read_or_refused(pieces):
    for text in ("".join(pieces), " ".join(pieces)):
        try:
            marks = read_search_box(text)
        except BoolBertError:
            continue
        assert all(text[mark.start : mark.end].strip() for mark in marks or ())


@pytest.mark.parametrize("piece", ["-cats ", "NOT x ", "(a OR b) ", '"a" ', "-(", "a, ", "w/o x "])
def test_the_longest_query_takes_no_time(piece):
    start = time.process_time()
    with contextlib.suppress(BoolBertError):
        read_search_box((piece * LONGEST_TYPED)[:LONGEST_TYPED])
    assert time.process_time() - start < 0.5
    assert read_search_box(piece * LONGEST_TYPED) is None
