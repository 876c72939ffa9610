"""Any text has cues that lie in it, parts, and labels; and reading a long text takes no longer than its length asks."""

import json
import time
from random import Random

import pytest
from fuzz.strategies import fuzz, real_texts
from hypothesis import given
from hypothesis import strategies as st

from boolbert import read
from boolbert.boolean import OPERATORS, parse_original_query
from boolbert.core.errors import BoolBertError
from boolbert.data.labels import augment, cue_labels, cue_table, find_cues, operators_of, read_parts

pytestmark = pytest.mark.long

PHRASES = [
    *cue_table().cues,
    *("between", "non-", "no. 3", '"', "“", "”", "(", ")", ",", "?"),
    *("that are", "both", "French films", "<mark>", "</mark>"),
]
sentences = st.lists(st.sampled_from(PHRASES) | real_texts, max_size=12).map(" ".join)


@fuzz
@given(text=sentences)
def test_cues_lie_in_the_text_one_after_the_other(text):
    cues = find_cues(text)
    end = 0
    for cue in cues:
        assert end <= cue.start < cue.end <= len(text)
        assert cue.text == text[cue.start : cue.end] == cue.text.strip()
        assert cue.operator in OPERATORS
        end = cue.end
    assert find_cues(text) == cues
    assert operators_of(text) <= operators_of(text, weak=True) == {cue.operator for cue in cues}


@fuzz
@given(text=sentences)
def test_a_text_can_be_taken_apart(text):
    parts = read_parts(text).parts
    assert {part.operator for part in parts} <= {"", *OPERATORS}
    assert any(part.operator != "not" for part in parts)  # something is wanted
    if text.strip():
        assert all(part.text for part in parts)
    end = 0
    for part in parts:
        assert end <= part.start <= part.end
        assert text[part.start : part.end] == part.text
        end = part.end


@fuzz
@given(text=sentences)
def test_a_query_is_read_or_refused_in_one_line(text):
    line = ""
    try:
        found = read(text)
    except BoolBertError as error:
        line = str(error)
    assert len(line.splitlines()) <= 1
    if line:
        return
    assert found.groups
    assert all(one.text.strip() for one in found.conditions)
    for one in (*found.excluded, *found.alternatives, *found.cues, *found.words):
        assert found.text[one.start : one.end] == one.text
    assert ("not" in found.operators) == bool(found.excluded) == (found.kind is not None)
    assert len(found.alternatives) != 1
    json.dumps(found.as_json())


@fuzz
@given(text=sentences, seed=st.integers(0, 99))
def test_other_words_for_a_cue_keep_the_operators(text, seed):
    new, cues = augment(text, Random(seed))
    assert operators_of(new) == operators_of(text)
    assert cues == find_cues(new)


@fuzz
@given(text=sentences, spans=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8))
def test_labels_are_as_long_as_the_tokens(text, spans):
    labels = cue_labels(text, spans)
    assert [len(row) for row in labels] == [len(spans)] * 3
    assert {value for row in labels for value in row} <= {0, 1}


@fuzz
@given(text=sentences)
def test_marked_queries_are_read_or_refused(text):
    try:
        query = parse_original_query(text)
    except ValueError:
        return
    assert len(query.atoms) == query.template.count("_")


@pytest.mark.parametrize(
    "phrase", ["the", "that is", "either", "between a", "and not", "non-", "no. 3", '"', '"a', "“", "(", "\t", ","]
)
def test_a_long_text_of_one_phrase_is_read_in_time(phrase):
    """Nothing grows with the square of the length: 60,000 characters take well under a second."""
    text = (phrase + " ") * (60_000 // (len(phrase) + 1)) + "x"
    begun = time.process_time()
    find_cues(text)
    read_parts(text)
    assert time.process_time() - begun < 3
