"""The Boolean queries over the countries: gold sets, splits, operators."""

import pytest
from eval_fixtures import OPERATION

from boolbert.boolean import TEMPLATES, parse_original_query
from boolbert.data import Quest
from boolbert.data.embedded import country_names
from boolbert.data.labels import operators_of

QUEST = Quest(progress=False)
TITLES = QUEST.corpus.titles
ATOMS = {key: set(rows.tolist()) for key, rows in QUEST.atoms.items()}
NAMES = country_names()
SPLITS = {split: QUEST.queries(split) for split in ("train", "dev", "test")}
ROWS = [row for rows in SPLITS.values() for row in rows]
ASKED = {split: {key for row in rows for key in row.atoms} for split, rows in SPLITS.items()}
HELD_OUT = set(ATOMS) - ASKED["train"]


def gold_of(template, keys):
    return [TITLES[row] for row in sorted(OPERATION[template](*(ATOMS[key] for key in keys)))]


def test_gold_is_what_the_sets_say():
    for row in ROWS:
        assert list(row.docs) == gold_of(row.template, row.atoms), row.query
        assert 1 <= len(row.docs) <= 45


HAND_CHECKED = {
    # The one from the design: landlocked countries in Africa that are not former British colonies.
    ("_ that are also _ but not _", "landlocked", "continent:Africa", "ruler:Britain"): (
        "Burkina Faso, Burundi, Central African Republic, Chad, Ethiopia, Mali, Niger, Rwanda"
    ),
    ("_ that are also _", "government:monarchy", "continent:Africa"): "Eswatini, Lesotho, Morocco",
    ("_ that are not _", "membership:Nordic Council", "membership:European Union"): "Iceland, Norway",
    ("_ that are not _", "membership:G7", "membership:NATO"): "Japan",
    ("_ that are also both _ and _", "continent:Europe", "government:monarchy", "landlocked"): (
        "Andorra, Liechtenstein, Luxembourg, Vatican City"
    ),
    ("_ or _", "lake:Lake Victoria", "government:communist"): (
        "China, Cuba, Kenya, Laos, North Korea, Tanzania, Uganda, Vietnam"
    ),
    ("_ that are not _", "membership:ASEAN", "region:Southeast Asia"): "",
}


@pytest.mark.parametrize("query", HAND_CHECKED, ids=lambda query: " ".join(query[1:]))
def test_answers_checked_by_hand(query):
    template, *keys = query
    assert ", ".join(sorted(gold_of(template, keys))) == HAND_CHECKED[query]


def test_splits_are_kept_apart():
    combinations = [{frozenset(row.atoms) for row in rows} for rows in SPLITS.values()]
    assert sum(map(len, combinations)) == len(set.union(*combinations))
    assert len(HELD_OUT) >= 20
    assert ASKED["dev"] | ASKED["test"] >= HELD_OUT
    for split in ("dev", "test"):
        unseen = sum(bool(HELD_OUT & set(row.atoms)) for row in SPLITS[split])
        assert 0.4 < unseen / len(SPLITS[split]) < 0.7


def test_operators_are_said_except_for_some_ands():
    unsaid = 0
    for row in ROWS:
        wanted, found = set(TEMPLATES[row.template]), set(operators_of(row.query))
        assert found <= wanted, row.query
        assert wanted - found <= {"and"}, row.query
        unsaid += wanted != found
    assert 0.1 < unsaid / sum("and" in TEMPLATES[row.template] for row in ROWS) < 0.25


def test_original_query_is_the_literal_template():
    for row in ROWS:
        parsed = parse_original_query(row.original_query)
        assert parsed.template == row.template
        assert list(parsed.atoms) == [NAMES[key][0] for key in row.atoms]
        assert row.domain == "countries"
