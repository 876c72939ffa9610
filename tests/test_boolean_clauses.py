"""What a document says, clause by clause, and what it denies."""

import re
import time
from itertools import pairwise

import pytest
from denial_scores import denial_scores, sentences
from hypothesis import given
from hypothesis import strategies as st

from boolbert.boolean import split_clauses
from boolbert.boolean.clauses import LONGEST_SENTENCE
from boolbert.retrieval.words import words_of


def clauses(text):
    return [text[clause.start : clause.end] for clause in split_clauses(text)]


def denied(text):
    return [text[start:end] for clause in split_clauses(text) for start, end in clause.denied]


@pytest.mark.parametrize("split", ["dev", "test"])
def test_denials_are_found_in_labelled_sentences_of_many_kinds(split):
    """The rules were developed on dev; the errors on test were never looked at."""
    assert len(list(sentences(split))) >= 150
    scores = denial_scores(split)
    assert all(score >= 0.95 for score in scores.values()), scores


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Soft, warm and dry. It costs 3.50 euros; 1,000 were sold.", 3),
        ("It comes in red, green and blue", 1),
        ("Dr. Smith met John B. Murphy at No. 5 in St. Ives.", 1),
        ("The room has a desk and a chair, while the suite has a piano and a view of the lake", 3),
        ("", 0),
        (" . , ; ", 0),
    ],
)
def test_a_clause_is_more_than_an_item_of_a_list(text, expected):
    assert len(clauses(text)) == expected


def test_what_stands_beside_a_denial_is_affirmed():
    """Otherwise a bar "without sugar" would hide its almonds from those who may not eat them."""
    assert clauses("Almond bars without sugar") == ["Almond bars", "without sugar"]
    assert clauses("Gluten-free walnut brownies") == ["Gluten-free", "walnut brownies"]
    assert [clause.denies for clause in split_clauses("No nuts or milk, but sesame oil.")] == [True, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No nuts, milk or eggs.", ["nuts, milk or eggs"]),
        ("Free of nuts, soy and milk, and rich in fibre.", ["nuts, soy and milk"]),
        ("Neither a pool nor a gym.", ["pool", "gym"]),
        ("A gluten- and dairy-free cake", ["gluten", "dairy"]),
        ("It isn’t gluten-free.", []),
        ("The hotel has NO pool and free parking.", ["pool"]),
        ("İzmir has no tram.", ["tram"]),
        ("A lovely room (no pets).", ["pets"]),
        ("“No\npets”, she said.", ["pets"]),
        ("NO NUTS OR MILK", ["NUTS OR MILK"]),
        ("Jacket With No Hood", ["Hood"]),
        ("Never Weaken is a film by the makers of No Country for Old Men.", []),
        ("It was not released until 1946.", []),
    ],
)
def test_a_list_is_denied_as_a_whole_and_two_denials_cancel_out(text, expected):
    assert denied(text) == expected


WORDS = [
    *("no", "not", "without", "free", "of", "nuts", "and", "or", "but", "-free", "less", "İ", "n't", "when", "it"),
    *("is", *",.;()’- \n"),
]


@given(st.lists(st.sampled_from(WORDS)))
def test_any_text_gives_clauses_in_order(pieces):
    text = " ".join(pieces)
    end = 0
    for clause in split_clauses(text):
        assert end <= clause.start < clause.end <= len(text)
        assert clause.denies == bool(clause.denied)
        assert all(clause.start <= left < right <= clause.end for left, right in clause.denied)
        assert text[clause.start : clause.end].strip() == text[clause.start : clause.end]
        end = clause.end


@pytest.mark.parametrize(
    "piece", ["no hood and no zip ", "without a hood ", "no hood, ", "not ", "no hood\n", "!", "It has no hood. "]
)
def test_a_text_of_one_long_line_is_read_in_time(piece):
    """Twice as long takes twice as long: reading a sentence takes time that grows with its square, so it is cut."""
    text = piece * (60_000 // len(piece)) + "x"
    begin = time.process_time()
    clauses = split_clauses(text)
    words = words_of(text, clauses)
    assert time.process_time() - begin < 6  # it was 20 to 100 seconds
    assert all(left.end <= right.start for left, right in pairwise(clauses))
    assert ("-hood" in words) == ("hood" in piece)


@pytest.mark.parametrize("text", ["word " * 1000, "w" * 5000, "It is red, " * 400, "no nuts, " + "word " * 1000])
def test_no_word_of_a_long_sentence_is_lost(text):
    clauses = split_clauses(text)
    assert max(clause.end - clause.start for clause in clauses) <= LONGEST_SENTENCE
    read = "".join(text[clause.start : clause.end] for clause in clauses)
    assert sorted(re.findall(r"\w", read)) == sorted(re.findall(r"\w", text))
