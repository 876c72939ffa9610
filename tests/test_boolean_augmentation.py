"""Cue augmentation keeps the operators and the grammar."""

from random import Random

import pytest

from boolbert.data.labels import augment, cue_table


def variants(text, tries=200):
    return {augment(text, Random(seed))[0] for seed in range(tries)}


@pytest.mark.parametrize(
    ("text", "frame", "lists"),
    [
        ("birds of Peru that are also fauna of Chile", "birds of Peru {} fauna of Chile", "also also_plural"),
        ("birds that are also in Peru", "birds {} in Peru", "also"),
        ("birds or fish", "birds {} fish", "or or_once"),
        ("birds and fish", "birds {} fish", "join join_nouns"),
        ("Northern and Western Europe", "Northern {} Western Europe", "join"),
        ("birds, cats and small dogs", "birds, cats {} small dogs", "join join_nouns"),
        ("birds, cats, and dogs", "birds, cats, {} dogs", "join"),
        ("birds that are not pets", "birds {} pets", "are_not leave_out"),
        ("birds that aren’t pets", "birds {} pets", "are_not leave_out"),
        ("birds but not owls", "birds {} owls", "leave_out"),
        ("plants of Asia but not in Japan", "plants of Asia {} in Japan", "but_not"),
        ("birds excluding owls", "birds {} owls", "leave_out"),
        ("soup without meat", "soup {} meat", "lacking"),
    ],
)
def test_synonyms_that_fit(text, frame, lists):
    cues = [cue for name in lists.split() for cue in cue_table().written(name)]
    assert variants(text) == {frame.format(cue) for cue in cues} - {text.replace("’", "'")}


@pytest.mark.parametrize(
    "text", ["soup without a spoon", "go without saying", "and", "birds and are big", "either a or b"]
)
def test_what_does_not_fit_stays(text):
    assert variants(text, 20) == {text}


def test_both_and_are_are_dropped():
    both = {"plants of Peru as well as Chile", "plants of Peru and also Chile"}
    assert variants("plants of both Peru and Chile") == both
    cues = (*cue_table().written("are_not"), "but not")
    found = variants("birds that are not in Peru")
    assert found == {f"birds {cue} in Peru" for cue in cues} - {"birds that are not in Peru"}


def test_rate_and_determinism():
    text = "birds that are also pets but not owls"
    assert augment(text, Random(0), rate=0.0)[0] == text
    assert augment(text, Random(5)) == augment(text, Random(5))
    assert {augment(text, Random(seed), rate=0.5)[0] == text for seed in range(50)} == {True, False}
