"""The atomic sets: what a query can ask about, who belongs to it, and how it is said.

Every wording here is free of Boolean cues, so that a query's operators come from its connectives alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from .grammar import negated
from .rules import SIMPLE
from .table import Country, load_countries, load_groups
from .wording import (
    ADJECTIVES,
    BORDER_MINIMUM,
    CURRENCIES,
    GROUP_WORDING,
    LANGUAGES,
    MEMBERSHIPS,
    RULERS,
    SEAS,
    Wording,
    border_wording,
    language_wording,
    membership_wording,
    place_wording,
    ruler_wording,
    sea_wording,
)


@dataclass(frozen=True, slots=True)
class Atom:
    """A named set of countries with its wordings; `nouns[0]` is the one that `original_query` uses."""

    key: str
    members: frozenset[str]  # country codes
    nouns: tuple[str, ...]  # "monarchies", "neighbours of France": plural, stand alone
    predicates: tuple[str, ...]  # "are monarchies", "border France": follow "countries that"
    adjective: str = ""  # "African": goes before a noun
    after: str = ""  # "in Africa": goes behind a noun

    @property
    def family(self) -> str:
        return self.key.partition(":")[0]

    @property
    def negations(self) -> tuple[str, ...]:
        return tuple(negated(predicate) for predicate in self.predicates)


@cache
def all_atoms() -> dict[str, Atom]:
    """Every atom by its key, in a fixed order.

    >>> sorted(all_atoms()["lake:Lake Victoria"].members)
    ['KEN', 'TZA', 'UGA']
    """
    atoms: dict[str, Atom] = {}
    countries = load_countries()

    def add(key: str, members: Iterable[Country], wording: Wording) -> None:
        codes = frozenset(country.code for country in members)
        if not codes:
            raise ValueError(f"atom {key!r} has no members; check its spelling against countries.csv and groups.csv")
        atoms[key] = Atom(key, codes, *wording)

    for key, (belongs, wording) in SIMPLE.items():
        add(key, filter(belongs, countries), wording)
    for place in ADJECTIVES:
        kind = "continent" if any(country.continent == place for country in countries) else "region"
        add(f"{kind}:{place}", [c for c in countries if place in (c.continent, c.region)], place_wording(place))
    for language in LANGUAGES:
        add(f"language:{language}", [c for c in countries if language in c.languages], language_wording(language))
    for currency, wording in CURRENCIES.items():
        add(f"currency:{currency}", [c for c in countries if _uses(c, currency)], wording)
    for sea in SEAS:
        add(f"sea:{sea}", [c for c in countries if sea in c.coasts], sea_wording(sea))
    for ruler in RULERS:
        name = ruler.removeprefix("the ")
        add(f"ruler:{name}", [c for c in countries if name in c.former_rulers], ruler_wording(ruler))
    for group in load_groups():
        members = [c for c in countries if c.code in group.members]
        if group.kind == "membership" and group.name in MEMBERSHIPS:
            add(f"membership:{group.name}", members, membership_wording(group.name))
        elif group.name in GROUP_WORDING:
            add(f"{group.kind}:{group.name}", members, GROUP_WORDING[group.name])
    for country in countries:
        if len(country.borders) >= BORDER_MINIMUM and " and " not in country.name:
            neighbours = [c for c in countries if country.code in c.borders]
            add(f"border:{country.name}", neighbours, border_wording(country.full_name))
    return atoms


def _uses(country: Country, currency: str) -> bool:
    """By full name ("euro", "West African CFA franc") or by what the unit is called ("dollar")."""
    names = [name.removesuffix(" sterling") for _, name in country.currencies]
    return any(name == currency or name.split()[-1] == currency for name in names)


def country_atoms() -> dict[str, list[int]]:
    """Every atomic set as the row numbers of its members in the documents.

    >>> from boolbert.data.countries.table import load_countries
    >>> [load_countries()[row].name for row in country_atoms()["lake:Lake Victoria"]]
    ['Kenya', 'Tanzania', 'Uganda']
    """
    codes = [country.code for country in load_countries()]
    return {key: [row for row, code in enumerate(codes) if code in atom.members] for key, atom in all_atoms().items()}
