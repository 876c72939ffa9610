"""Where parts begin and end, and which negations exclude."""

import json
from pathlib import Path

import pytest

import boolbert
from boolbert.boolean import OPERATORS
from boolbert.data.labels import operators_of, read_parts, scope_labels


def parts(text):
    return [(part.operator, part.text) for part in read_parts(text).parts]


def excluded(text):
    return [part.text for part in read_parts(text).excluded]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("films that are not westerns", ["westerns"]),
        ("films (not westerns) of the 1950s", ["westerns"]),
        ("films, except westerns, of the 1950s", ["westerns"]),
        ("Apart from Chile, which countries border Peru?", ["Chile"]),
        ("Apart from Dunoon, the small village, what other regions grow nuts?", ["Dunoon, the small village"]),
        ("Tell me about Vienna, but leave out the opera.", ["the opera"]),
        ("Tell me about Vienna. Please do not mention the opera.", ["the opera"]),
        ("films that are not French or Italian", ["French", "Italian"]),
        ("films that are not French and also silent", ["French"]),
        ("dishes without garlic, onions or leeks", ["garlic", "onions", "leeks"]),
        ("Which films, other than westerns, were shot in Spain?", ["westerns"]),
        ("Which films other than westerns were shot in Spain?", ["westerns"]),
        ("What causes blisters, excluding burns, and how did people treat them?", ["burns"]),
        ("What is known about Bach, without mentioning any information about his organs?", ["his organs"]),
        ("Describe Bach; avoid discussing his organs.", ["his organs"]),
        ("In addition to Bach, what other composers lived in Leipzig?", ["Bach"]),
        ("In addition to Bach, who lived in Leipzig?", ["Bach"]),
        ("I like Leipzig. In addition to Bach, the city was home to which composers?", ["Bach"]),
        ("non-American novels about cats", ["American"]),
        ("novels not set in Italy that are about poverty", ["set in Italy"]),
        ("films but not comedies, without songs", ["comedies", "songs"]),
        ("plants of Peru that are neither trees nor shrubs", ["trees", "shrubs"]),
        ("countries in Asia that do not border China", ["border China"]),
        ("Which bacteria cause fever but are not found in water?", ["found in water"]),
        ("who besides john b. murphy wrote operas?", ["john b. murphy"]),
        ("List films set on a train apart from westerns", ["westerns"]),
        ("Please exclude Anna Roth, who painted ships.", []),  # nothing is wanted
        ("Describe Lisbon. Please exclude Anna Roth, who painted ships.", ["Anna Roth, who painted ships"]),
        ("recipes that do not contain nuts", ["nuts"]),
    ],
)
def test_exclusions(text, expected):
    assert excluded(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("Who had no love for the violin?", "Which birds do not fly?", "Why did Newton never marry?"),
        *("What films did Welles not finish?", "Is Pluto not a planet?", "How long can one live without water?"),
        *("not only cats but also dogs", "No Country for Old Men", "no one knows why", "whether or not to vote"),
        *("not dogs", "Why can parrots talk but not dogs?", "What sets them apart from other cats?"),
        *("Who was the king that never married?", "dogs that don't shed", "a bank that no longer exists"),
        *("Has John B. Murphy not won a prize?", "a victory not without losses"),
        *("Why did the club exclude women?", "What is 7 minus 3?", "in addition to cats, dogs are kept"),
    ],
)
def test_negations_that_exclude_nothing(text):
    reading = read_parts(text)
    assert reading.excluded == ()
    assert not any(cue.excludes for cue in reading.cues)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("French films", [("", "French films")]),
        ("any films that are?", [("", "any films that are")]),
        ("cats, dogs or birds except parrots", [("", "cats"), ("or", "dogs"), ("or", "birds"), ("not", "parrots")]),
        ("either cats or dogs", [("", "cats"), ("or", "dogs")]),
        ("trees of Cuba that are also in Haiti", [("", "trees of Cuba"), ("and", "in Haiti")]),
        ("films (not westerns) of the 1950s", [("", "films"), ("not", "westerns"), ("", "of the 1950s")]),
        ("", [("", "")]),
    ],
)
def test_parts(text, expected):
    assert parts(text) == expected


def test_scopes():
    text = "cats or dogs as well as birds, but not parrots or gulls"
    reading = read_parts(text)
    words = {operator: [text[slice(*span)] for span in reading.scopes(operator)] for operator in OPERATORS}
    assert words == {"and": ["dogs", "birds"], "or": ["cats", "dogs"], "not": ["parrots or gulls"]}


def test_scope_labels_mark_excluded_words_only():
    text = "films (not westerns, please)."
    offsets = [(0, 0), (0, 5), (6, 7), (7, 10), (11, 19), (19, 20), (21, 27), (27, 28), (28, 29), (0, 0)]
    assert scope_labels(text, offsets)[2] == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    assert scope_labels(text, offsets, {"not": [(0, 5)]}) == [[0] * 10, [0] * 10, [0, 1, *[0] * 8]]


def test_hardly_any_question_that_negates_a_predicate_is_read_as_an_exclusion():
    file = Path(boolbert.__file__).parent / "data" / "negated_predicates" / "queries.jsonl"
    texts = {json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()}
    assert len(texts) == 200
    assert sum("not" in operators_of(text) for text in texts) >= 195
    assert sum(bool(excluded(text)) for text in texts) <= 3
