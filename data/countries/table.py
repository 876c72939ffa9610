"""The tables: a row per country in `countries.csv`, per group of countries in `groups.csv`, per set in `atoms.csv`.

Lists inside a cell are separated by `|`. What the columns mean and how disputed cases are decided: docs/countries.md.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

COUNTRIES_FILE = Path(__file__).with_name("countries.csv")
GROUPS_FILE = Path(__file__).with_name("groups.csv")
ATOMS_FILE = Path(__file__).with_name("atoms.csv")

LARGE_AREA, TINY_AREA = 1_000_000, 1_000  # km2
LARGE_POPULATION, SMALL_POPULATION = 100, 1  # millions


@dataclass(frozen=True, slots=True)
class Country:
    """The facts of one country; borders are ISO 3166-1 alpha-3 codes, as `code` is."""

    code: str
    name: str
    the: str
    capital: str
    continent: str
    region: str
    island: bool
    government: str
    head: str  # who reigns in a monarchy: "king", "emir", "King Charles III"
    currencies: tuple[tuple[str, str], ...]  # (ISO 4217 code, name)
    languages: tuple[str, ...]
    coasts: tuple[str, ...]  # seas and oceans, and the Caspian Sea
    borders: tuple[str, ...]
    hemisphere: str
    drives: str
    area_km2: float
    population_m: float
    former_rulers: tuple[str, ...]
    independence: int | None

    @property
    def full_name(self) -> str:
        """The name as it stands in a sentence: "the Netherlands", "France"."""
        return f"{self.the} {self.name}".strip()

    @property
    def landlocked(self) -> bool:
        """Without a coast on the open sea: the Caspian Sea is a lake in this."""
        return not set(self.coasts) - {"Caspian Sea"}

    @property
    def area_class(self) -> str:
        return "large" if self.area_km2 > LARGE_AREA else "tiny" if self.area_km2 < TINY_AREA else "medium"

    @property
    def population_class(self) -> str:
        if self.population_m > LARGE_POPULATION:
            return "large"
        return "small" if self.population_m < SMALL_POPULATION else "medium"


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of countries: the members of an organisation, the countries on a river."""

    kind: str
    name: str
    members: frozenset[str]


@cache
def load_countries() -> tuple[Country, ...]:
    """All countries in the order of the table, which is the order of the documents.

    >>> [country.full_name for country in load_countries() if country.code in ("NLD", "CHE")]
    ['the Netherlands', 'Switzerland']
    """
    with COUNTRIES_FILE.open(encoding="utf-8", newline="") as file:
        return tuple(map(_country, csv.DictReader(file)))


@cache
def load_groups() -> tuple[Group, ...]:
    """All groups.

    >>> next(len(group.members) for group in load_groups() if group.name == "NATO")
    32
    """
    with GROUPS_FILE.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return tuple(Group(row["kind"], row["name"], frozenset(row["members"].split())) for row in rows)


@cache
def groups_of(code: str, kind: str) -> tuple[str, ...]:
    """The groups of one kind that a country is in.

    >>> groups_of("CHE", "river")
    ('Rhine',)
    """
    return tuple(group.name for group in load_groups() if group.kind == kind and code in group.members)


@cache
def load_atom_rows() -> tuple[dict[str, str], ...]:
    """The sets that queries ask for: `family`, `name`, `wording`, and the words that fill the wording."""
    with ATOMS_FILE.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def _country(row: dict[str, str]) -> Country:
    facts: dict[str, Any] = {**row, "island": row["island"] == "yes"}
    facts["currencies"] = tuple((currency[:3], currency[4:]) for currency in _cells(facts.pop("currency")))
    for field in ("languages", "coasts", "borders", "former_rulers"):
        facts[field] = _cells(row[field])
    for field in ("area_km2", "population_m"):
        facts[field] = float(row[field])
    facts["independence"] = int(row["independence"]) if row["independence"] else None
    return Country(**facts)


def _cells(cell: str) -> tuple[str, ...]:
    """The entries of a list cell.

    >>> _cells("French|English"), _cells("")
    (('French', 'English'), ())
    """
    return tuple(cell.split("|")) if cell else ()
