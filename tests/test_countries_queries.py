"""The Boolean queries: gold sets, splits, operators, English."""

import csv
import re
from collections import Counter
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolbert.boolean import TEMPLATES, operators_of, parse_original_query
from boolbert.data.countries import country_atoms, country_documents, country_queries
from boolbert.data.countries.atoms import all_atoms
from boolbert.data.countries.queries import answer, held_out, is_worth_asking
from boolbert.data.countries.table import COUNTRIES_FILE, GROUPS_FILE

SPLITS = {split: country_queries(split) for split in ("train", "dev", "test")}
ROWS = [row for rows in SPLITS.values() for row in rows]

with COUNTRIES_FILE.open(encoding="utf-8", newline="") as file:
    TABLE = list(csv.DictReader(file))
with GROUPS_FILE.open(encoding="utf-8", newline="") as file:
    GROUPS = {f"{row['kind']}:{row['name']}": row["members"].split() for row in csv.DictReader(file)}
CODES = {row["name"]: row["code"] for row in TABLE}


def belongs(row: dict[str, str], key: str) -> bool:
    """Membership read off the raw table, cell by cell: an independent, slow version of the atoms."""
    family, _, value = key.partition(":")
    currencies = [cell[4:].replace(" sterling", "") for cell in row["currency"].split("|")]
    area, people = float(row["area_km2"]), float(row["population_m"])
    if key in GROUPS:
        return row["code"] in GROUPS[key]
    return {
        "landlocked": lambda: row["coasts"] in ("", "Caspian Sea"),
        "island": lambda: row["island"] == "yes",
        "government": lambda: {
            "monarchy": row["government"] == "monarchy",
            "Commonwealth realm": "Charles" in row["head"],
            "communist": row["government"].startswith("communist"),
        }[value],
        "drives": lambda: row["drives"] == value,
        "hemisphere": lambda: row["hemisphere"] == value,
        "area": lambda: area > 1e6 if value == "large" else area < 1e3,
        "population": lambda: people > 100 if value == "large" else people < 1,
        "independence": lambda: row["independence"].startswith(value[:3]),
        "continent": lambda: row["continent"] == value,
        "region": lambda: row["region"] == value,
        "language": lambda: value in row["languages"].split("|"),
        "currency": lambda: any(name == value or name.endswith(f" {value}") for name in currencies),
        "sea": lambda: value in row["coasts"].split("|"),
        "ruler": lambda: value in row["former_rulers"].split("|"),
        "border": lambda: CODES[value] in row["borders"].split("|"),
    }[family]()


@cache
def column(key: str) -> list[bool]:
    return [belongs(row, key) for row in TABLE]


def slow_gold(template: str, atoms: list[str]) -> list[str]:
    gold = []
    for i, row in enumerate(TABLE):
        a, *others = (column(key)[i] for key in atoms)
        b, c = (*others, False, False)[:2]
        if {
            "_": a,
            "_ or _": a or b,
            "_ or _ or _": a or b or c,
            "_ that are also _": a and b,
            "_ that are also both _ and _": a and b and c,
            "_ that are not _": a and not b,
            "_ that are also _ but not _": a and b and not c,
        }[template]:
            gold.append(row["name"])
    return gold


def test_gold_is_what_the_raw_table_says():
    for row in ROWS:
        assert row["docs"] == slow_gold(row["metadata"]["template"], row["metadata"]["atoms"]), row["query"]


def test_atoms_are_what_the_raw_table_says():
    titles = [document["title"] for document in country_documents()]
    for key, rows in country_atoms().items():
        assert [titles[row] for row in rows] == slow_gold("_", [key])


HAND_CHECKED = {
    # The one from the design: landlocked countries in Africa that are not former British colonies.
    ("_ that are also _ but not _", "landlocked", "continent:Africa", "ruler:Britain"): (
        "Burkina Faso, Burundi, Central African Republic, Chad, Ethiopia, Mali, Niger, Rwanda"
    ),
    ("_ that are also _", "government:monarchy", "continent:Africa"): "Eswatini, Lesotho, Morocco",
    ("_ that are also _", "landlocked", "continent:South America"): "Bolivia, Paraguay",
    ("_ that are not _", "membership:Nordic Council", "membership:European Union"): "Iceland, Norway",
    ("_ that are not _", "membership:G7", "membership:NATO"): "Japan",
    ("_ that are also _", "drives:left", "membership:European Union"): "Cyprus, Ireland, Malta",
    ("_ that are also _ but not _", "membership:European Union", "government:monarchy", "currency:euro"): (
        "Denmark, Sweden"
    ),
    ("_ that are also both _ and _", "continent:Europe", "government:monarchy", "landlocked"): (
        "Andorra, Liechtenstein, Luxembourg, Vatican City"
    ),
    ("_ that are not _", "continent:South America", "language:Spanish"): "Brazil, Guyana, Suriname",
    ("_ that are also _", "border:France", "border:Germany"): "Belgium, Luxembourg, Switzerland",
    ("_ or _", "lake:Lake Victoria", "government:communist"): (
        "China, Cuba, Kenya, Laos, North Korea, Tanzania, Uganda, Vietnam"
    ),
    ("_ or _ or _", "language:Dutch", "language:Malay", "lake:Lake Victoria"): (
        "Belgium, Brunei, Kenya, Malaysia, Netherlands, Singapore, Suriname, Tanzania, Uganda"
    ),
    ("_ that are not _", "membership:ASEAN", "region:Southeast Asia"): "",
    ("_", "currency:East Caribbean dollar"): (
        "Antigua and Barbuda, Dominica, Grenada, Saint Kitts and Nevis, Saint Lucia, Saint Vincent and the Grenadines"
    ),
}


@pytest.mark.parametrize("query", HAND_CHECKED, ids=lambda query: " ".join(query[1:]))
def test_answers_checked_by_hand(query):
    template, *keys = query
    gold = answer(template, *(all_atoms()[key].members for key in keys))
    names = sorted(row["name"] for row in TABLE if row["code"] in gold)
    assert ", ".join(names) == HAND_CHECKED[query]


def test_sizes_and_balance():
    assert {split: len(rows) for split, rows in SPLITS.items()} == {"train": 1505, "dev": 210, "test": 301}
    for rows in SPLITS.values():
        assert set(Counter(row["metadata"]["template"] for row in rows).values()) == {len(rows) // 7}
        assert all(1 <= len(row["docs"]) <= 45 for row in rows)
    assert len({row["query"].lower() for row in ROWS}) == len(ROWS)


def test_splits_are_kept_apart():
    combinations = {split: {frozenset(row["metadata"]["atoms"]) for row in rows} for split, rows in SPLITS.items()}
    assert not combinations["train"] & combinations["dev"]
    assert not combinations["train"] & combinations["test"]
    assert not combinations["dev"] & combinations["test"]
    atoms = {split: {key for row in rows for key in row["metadata"]["atoms"]} for split, rows in SPLITS.items()}
    assert len(held_out()) >= 20
    assert not atoms["train"] & held_out()
    assert held_out() <= atoms["dev"] | atoms["test"]
    for split in ("dev", "test"):
        unseen = sum(bool(held_out() & set(row["metadata"]["atoms"])) for row in SPLITS[split])
        assert 0.4 < unseen / len(SPLITS[split]) < 0.7


def test_every_atom_is_asked_for_in_train_or_held_out():
    asked = Counter(key for row in SPLITS["train"] for key in row["metadata"]["atoms"])
    assert set(asked) | held_out() == set(all_atoms())
    assert max(asked.values()) < 0.1 * sum(asked.values())


def test_operators_are_said_unless_marked_implicit():
    for row in ROWS:
        wanted, found = set(TEMPLATES[row["metadata"]["template"]]), set(operators_of(row["query"]))
        assert found <= wanted, row["query"]
        assert wanted - found == ({"and"} if row["metadata"]["implicit"] else set()), row["query"]
    with_and = [row for row in ROWS if "and" in TEMPLATES[row["metadata"]["template"]]]
    assert 0.1 < sum(row["metadata"]["implicit"] for row in with_and) / len(with_and) < 0.25


def test_wordings_of_atoms_hold_no_cue():
    for atom in all_atoms().values():
        for text in (*atom.nouns, *atom.predicates, atom.adjective, atom.after):
            assert not operators_of(text), text
        for text in atom.negations:
            assert set(operators_of(text)) == {"not"}, text


def test_cues_are_of_all_kinds():
    text = " | ".join(row["query"] for row in SPLITS["train"])
    for cue in (
        *("that are also", "as well", "and also", "at the same time", "simultaneously", "both", "not only"),
        *("either", "or else", "or alternatively", "any of these", "but not", "that aren't", "excluding", "other than"),
        *("except", "apart from", "with the exception of", "leaving out", "without", "non-", "have never", "do not"),
    ):
        assert text.count(cue) >= 2, cue


def test_queries_are_english():
    for row in ROWS:
        query = row["query"]
        assert query == " ".join(query.split())
        assert not re.search(r" [,?]|,,|\b(\w+) \1\b|\bthat that\b|\bboth are\b|<|>|_", query), query
        assert query.endswith("?") == query.startswith("which "), query
        assert len(query.split()) <= 40, query


def test_every_atom_is_named_in_full():
    """Two atoms that share words keep their names: "Central Africa or Central Asia", not "Central Africa or Asia"."""
    for row in ROWS:
        for key in row["metadata"]["atoms"]:
            atom = all_atoms()[key]
            family, _, value = key.partition(":")
            names = {value, atom.adjective, *atom.nouns} - {""}
            if family == "ruler":
                names |= {atom.nouns[0].split()[1]}
            if family == "membership":
                names |= {atom.nouns[0].removeprefix("members of "), atom.nouns[1].removesuffix(" members")}
            if family in ("continent", "region", "sea", "language", "ruler", "membership", "border", "river", "lake"):
                others = {k for k in all_atoms() if k.startswith(f"{family}:") and value in k and k != key}
                text = row["query"]
                for other in others:  # "South Sudan" does not name Sudan
                    text = text.replace(other.partition(":")[2], "")
                assert any(name in text for name in names), (row["query"], key)


def test_original_query_is_the_literal_template():
    for row in ROWS:
        parsed = parse_original_query(row["original_query"])
        assert parsed.template == row["metadata"]["template"]
        assert list(parsed.atoms) == [all_atoms()[key].nouns[0] for key in row["metadata"]["atoms"]]
        assert row["metadata"]["domain"] == "countries"


def test_no_atom_is_idle():
    """Each gold set differs from the one without any of its atoms, so that nothing is asked that another implies."""
    for row in ROWS:
        template, keys = row["metadata"]["template"], row["metadata"]["atoms"]
        sets = [all_atoms()[key].members for key in keys]
        for i, one in enumerate(sets):
            for j, other in enumerate(sets):
                negated = template.endswith("not _") and j == len(sets) - 1
                if i != j and not negated and "or" not in TEMPLATES[template] and not template.endswith("not _"):
                    assert not one <= other, row["query"]
                if i != j and negated:
                    assert one & other, row["query"]
                if i != j and "or" in TEMPLATES[template]:
                    assert not one <= other, row["query"]


sets = st.frozensets(st.sampled_from("abcdefgh"))


@given(st.sampled_from([t for t in TEMPLATES if t.count("_") == 3]), sets, sets, sets)
def test_worth_asking_needs_every_atom(template, a, b, c):
    if is_worth_asking(template, a, b, c):
        gold = answer(template, a, b, c)
        if "or" in TEMPLATES[template]:
            assert gold not in (a | b, a | c, b | c)
        elif "not" in TEMPLATES[template]:
            assert gold not in (a & b, a - c, b - c)
        else:
            assert gold not in (a & b, a & c, b & c)


def test_an_unknown_split_is_named():
    with pytest.raises(ValueError, match=r"split must be one of .*'train', 'dev', 'test'.*got 'val'"):
        country_queries("val")


def test_callers_get_their_own_rows():
    country_queries("dev")[0]["docs"].clear()
    assert country_queries("dev")[0]["docs"]
