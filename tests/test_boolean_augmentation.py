"""Cue augmentation keeps the operators and the grammar."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolbert.boolean import augment, find_cues, operators_of
from boolbert.boolean.augmentation import (
    ALSO,
    ALSO_PLURAL,
    ARE_NOT,
    BUT_NOT,
    JOIN,
    JOIN_NOUNS,
    LACKING,
    LEAVE_OUT,
    OR,
    OR_ONCE,
)
from boolbert.boolean.operators import TEMPLATES


def variants(text, tries=200):
    return {augment(text, Random(seed))[0] for seed in range(tries)}


@pytest.mark.parametrize(
    ("text", "frame", "cues"),
    [
        ("birds of Peru that are also fauna of Chile", "birds of Peru {} fauna of Chile", ALSO + ALSO_PLURAL),
        ("birds that are also in Peru", "birds {} in Peru", ALSO),
        ("birds or fish", "birds {} fish", OR + OR_ONCE),
        ("birds and fish", "birds {} fish", JOIN + JOIN_NOUNS),
        ("Northern and Western Europe", "Northern {} Western Europe", JOIN),
        ("birds, cats and small dogs", "birds, cats {} small dogs", JOIN + JOIN_NOUNS),
        ("birds, cats, and dogs", "birds, cats, {} dogs", JOIN),
        ("birds that are not pets", "birds {} pets", (*ARE_NOT, *LEAVE_OUT)),
        ("birds that aren’t pets", "birds {} pets", (*ARE_NOT, *LEAVE_OUT)),
        ("birds that are not in Peru", "birds {} in Peru", (*ARE_NOT, "but not")),
        ("birds but not owls", "birds {} owls", LEAVE_OUT),
        ("plants of Asia but not in Japan", "plants of Asia {} in Japan", BUT_NOT),
        ("birds excluding owls", "birds {} owls", LEAVE_OUT),
        ("soup without meat", "soup {} meat", LACKING),
    ],
)
def test_synonyms_that_fit(text, frame, cues):
    wanted = {frame.format(cue) for cue in cues} - {text.replace("’", "'")}
    assert variants(text) == wanted


@pytest.mark.parametrize(
    "text", ["soup without a spoon", "go without saying", "and", "birds and are big", "either a or b"]
)
def test_what_does_not_fit_stays(text):
    assert variants(text, 20) == {text}


def test_both_is_dropped():
    assert variants("plants of both Peru and Chile") == {
        "plants of Peru as well as Chile",
        "plants of Peru and also Chile",
    }


def test_rate_and_determinism():
    text = "birds that are also pets but not owls"
    assert augment(text, Random(0), rate=0.0)[0] == text
    assert augment(text, Random(5)) == augment(text, Random(5))
    assert {augment(text, Random(seed), rate=0.5)[0] == text for seed in range(50)} == {True, False}


_ATOMS = st.sampled_from(["French films", "birds of Peru", "books about war", "flora of Chile", "novels set in Rome"])


@given(st.sampled_from(sorted(TEMPLATES)), st.lists(_ATOMS, min_size=3, max_size=3), st.integers(0, 1000))
def test_operators_stay_on_templates(template, atoms, seed):
    text = template
    for atom in atoms[: template.count("_")]:
        text = text.replace("_", atom, 1)
    new, cues = augment(text, Random(seed))
    assert operators_of(new) == operators_of(text) == set(TEMPLATES[template])
    assert cues == find_cues(new)
    assert (new != text) == (template != "_")  # something fits everywhere
