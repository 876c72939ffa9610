"""The conditions of a query: AND where no word says so."""

import re

import pytest

from boolbert.boolean.conditions import read_conditions


def asked(query):
    """Conditions with & between them, alternatives with |, and what is excluded behind a -."""
    conditions = read_conditions(query)
    wanted = " & ".join(" | ".join(part.text for part in group) for group in conditions.wanted)
    return wanted + "".join(f" - {part.text}" for part in conditions.excluded)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("films", "films"),
        ("countries that have a coast", "countries that have a coast"),
        ("red tents with two doors that weigh less than 3 kg", "red tents & with two doors & weigh less than 3 kg"),
        ("gas stoves that both fold flat and have a windshield", "gas stoves & fold flat & have a windshield"),
        ("stoves that both fold flat and are light", "fold flat & are light"),
        ("sleeping bags or hammocks", "sleeping bags | hammocks"),
        ("which parks either have a lake or allow dogs?", "have a lake | allow dogs"),
        ("parks that lie in either Spain or Portugal", "lie in Spain | lie in Portugal"),
        ("sun-dried tomato spreads, but not those that contain nuts", "sun-dried & tomato spreads - contain nuts"),
        ("wooden boats built in Norway, excluding ferries", "wooden boats & built in Norway - ferries"),
        ("Who won the match and kept the title?", "Who won the match and kept the title"),
        ("How do birds that migrate in winter find their way?", "How do birds that migrate in winter find their way"),
        ("What are the symptoms of flu in children?", "What are the symptoms of flu in children"),
    ],
)
def test_a_query_falls_into_its_conditions(query, expected):
    assert asked(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        *("", " ", "or", "that are", "?", "not not not", "a" * 3000, "and or but not that"),
        *("<!--", "-", "not", "that", "or or", "(", "which", "countries that both", "with no"),
    ],
)
def test_something_is_always_wanted(query):
    assert all(read_conditions(query).wanted)


LACKING = """
hotels without a pool | hotels with no pool | hotels that have no pool | a hotel that has no pool
hotels which lack a pool | hotels lacking a pool | hotels that don't have a pool
hotels that come without a pool | hotels that do without a pool | hotels, no pool | hotels, but no pool
hotels and no pool | hotels not having a pool | hotels having no pool | hotels offering no pool
hotels that never offer a pool | hotels where there is no pool | hotels where there isn't a pool
hotels that are free of pools | hotels free from pools | a hotel with no pool | find me hotels that have no pool
hotels sans pool | hotels with zero pools | hotels in the absence of a pool | hotels that avoid pools
hotels not equipped with a pool | hotels whose gardens have no pool | I need a hotel that does not have a pool
looking for hotels that don't include a pool | hotels except those with a pool
hotels other than those with a pool | hotels with neither a pool nor a gym | hotels minus the pool
hotels w/o a pool | any hotel without a pool
"""


@pytest.mark.parametrize("query", re.split(r" \| |\n", LACKING.strip()))
def test_a_collection_without_something_in_many_words(query):
    wanted, excluded, *_ = asked(query).split(" - ")
    assert "hotel" in wanted
    assert "pool" not in wanted
    assert "pool" in excluded


@pytest.mark.parametrize(
    "query",
    ["rooms with no more than two beds", "hotels that have no other choice", "no country for old men", "a man with no"],
)
def test_no_that_takes_nothing_away(query):
    assert not read_conditions(query).excluded


def test_a_condition_round_an_exclusion_is_shown_without_the_hole():
    query = "hotels without a pool in Paris"
    found = read_conditions(query, [(17, 21)], [(17, 21), (7, 16)])
    assert [[part.text for part in group] for group in found.wanted] == [["hotels in Paris"]]
    assert query[found.wanted[0][0].start : found.wanted[0][0].end] == query
