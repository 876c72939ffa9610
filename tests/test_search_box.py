"""Search-box syntax: what is typed is read exactly, or left alone, or refused in one line."""

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolbert.boolean import notes_on_reading, read_parts, read_search_box, without_double_negation
from boolbert.boolean.search_box import LONGEST_TYPED
from boolbert.core.errors import BoolBertError
from boolbert.search.query_reader import read

LINES = (Path(__file__).parent / "search_box.tsv").read_text(encoding="utf-8").splitlines()
CASES = [tuple(line.split("\t")) for line in LINES if not line.startswith("#")]


def shown(reading):
    return "-" if reading is None else " / ".join(f"{part.operator or '+'} {part.text}" for part in reading.parts)


@pytest.mark.parametrize(("query", "expected"), CASES)
def test_a_typed_query(query, expected):
    if expected.startswith("!"):
        with pytest.raises(BoolBertError) as caught:
            read_search_box(query)
        assert str(caught.value).startswith(expected[2:])
        assert "\n" not in str(caught.value)
        return
    reading = read_search_box(query)
    assert shown(reading) == expected
    if reading is not None:
        assert all(query[part.start : part.end] == part.text for part in reading.parts)
        assert all(query[cue.start : cue.end] == cue.text for cue in reading.cues)


def test_a_group_is_one_stretch_and_each_not_has_its_own():
    reading = read_search_box("pets -(cats OR dogs) for children -snakes")
    assert [reading.text[start:end] for start, end in reading.scopes("not")] == ["cats OR dogs", "snakes"]


@pytest.mark.parametrize(
    ("query", "excluded", "wanted"),
    [
        ("countries outside Africa", ["Africa"], "countries"),
        ("hotels outside of Paris", ["Paris"], "hotels"),
        ("museums outside london", ["london"], "museums"),
        ("lights outside the house", [], "lights outside the house"),
        ("a town outside Boston", [], "a town outside Boston"),
        ("Who won outside Africa?", [], "Who won outside Africa"),
        ("snack bars, no nuts please", ["nuts"], "snack bars"),
        ("snack bars but no nuts, please", ["nuts"], "snack bars"),
        ("Who had no love for the violin, please?", [], "Who had no love for the violin, please"),
        ("no nuts please", [], "no nuts please"),
        ("sugar-free desserts", ["sugar"], "desserts"),
        ("gluten-free and dairy-free bread", ["gluten", "dairy"], "bread"),
        ("duty-free shops", [], "duty-free shops"),
        ("Is this bread gluten-free?", [], "Is this bread gluten-free"),
        ("films, anything but horror", ["horror"], "films"),
        ("the exam was anything but easy", [], "the exam was anything but easy"),
    ],
)
def test_words_that_people_use(query, excluded, wanted):
    reading = read_parts(query)
    assert [part.text for part in reading.excluded] == excluded
    assert reading.wanted[0].text == wanted


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


def test_a_query_that_would_take_long_is_refused():
    with pytest.raises(BoolBertError, match="at most 5,000 are read"):
        read("islands " * 10_000)
    for query in ("islands " + "-a1 " * 150, "sun OR sea " * 45):
        with pytest.raises(BoolBertError, match="at most 40 and 20 are searched"):
            read(query)
    pasted = read("islands without " + "sun, " * 99 + "or sea")
    assert len(pasted.conditions.wanted) == 1
    assert 1 <= len(pasted.conditions.excluded) <= 20


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
    assert notes_on_reading(query, query) == (told,)


@pytest.mark.parametrize("query", ["shoes -- boots", "at -.5 degrees", "a ->b", "fun :-) films", "-$5", "50-.NET"])
def test_what_cannot_be_an_exclusion_is_not_named(query):
    assert notes_on_reading(query, query) == ()


def test_a_sign_that_is_not_read_is_named():
    query = "ls -la -nuts"
    assert notes_on_reading(query, query) == ('“-la” is read as a word of the query; to leave it out, write -"la"',)
    assert notes_on_reading("weather at -5 degrees", "weather at -5 degrees") == ()
    assert shown(read_search_box('ls -"la"')) == "+ ls / not la"


@given(st.lists(st.sampled_from(['"', "(", ")", "-", "!", "cats", "NOT", "OR", "AND", "|", "--no", ",", "w/o", " "])))
def test_anything_is_read_or_refused(pieces):
    for text in ("".join(pieces), " ".join(pieces)):
        try:
            reading = read_search_box(text)
        except BoolBertError:
            continue
        if reading is not None:
            assert all(text[part.start : part.end] == part.text != "" for part in reading.parts)


@pytest.mark.parametrize("piece", ["-cats ", "NOT x ", "(a OR b) ", '"a" ', "-(", "a, ", "w/o x "])
def test_the_longest_query_takes_no_time(piece):
    start = time.process_time()
    with contextlib.suppress(BoolBertError):
        read_search_box((piece * LONGEST_TYPED)[:LONGEST_TYPED])
    assert time.process_time() - start < 0.5
    assert read_search_box(piece * LONGEST_TYPED) is None
