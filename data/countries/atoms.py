"""The atomic sets: what a query can ask about, who belongs to it, and how it is said.

Every wording here is free of Boolean cues, so that a query's operators come from its connectives alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from .grammar import negated
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
    SIMPLE,
    Wording,
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

    def add(key: str, belongs: Callable[[Country], bool], wording: Wording) -> None:
        members = frozenset(country.code for country in load_countries() if belongs(country))
        if not members:
            raise ValueError(f"atom {key!r} has no members; check its spelling against countries.csv")
        atoms[key] = Atom(key, members, *wording)

    for key, (belongs, wording) in SIMPLE.items():
        add(key, belongs, wording)
    for place, adjective in ADJECTIVES.items():
        kind = "continent" if any(country.continent == place for country in load_countries()) else "region"
        where = f"in the {place}" if place == "Caribbean" else f"in {place}"
        nouns = (f"{adjective} countries", f"countries {where}", f"{adjective} states")
        predicates = (f"are {where}", f"lie {where}")
        add(f"{kind}:{place}", lambda c, p=place: p in (c.continent, c.region), (nouns, predicates, adjective, where))  # type: ignore[misc]
    for language in LANGUAGES:
        nouns = (
            f"countries with {language} as an official language",
            f"officially {language}-speaking countries",
            f"countries where {language} is an official language",
        )
        predicates = (f"have {language} as an official language", f"use {language} as an official language")
        wording = (nouns, predicates, f"officially {language}-speaking", f"with {language} as an official language")
        add(f"language:{language}", lambda c, name=language: name in c.languages, wording)  # type: ignore[misc]
    for currency, wording in CURRENCIES.items():
        add(f"currency:{currency}", lambda c, name=currency: _uses(c, name), wording)  # type: ignore[misc]
    for sea in SEAS:
        nouns = (f"countries on the {sea}", f"countries with a coast on the {sea}", f"states along the {sea}")
        predicates = (f"have a coast on the {sea}", f"lie on the {sea}")
        add(f"sea:{sea}", lambda c, name=sea: name in c.coasts, (nouns, predicates, "", f"on the {sea}"))  # type: ignore[misc]
    for ruler, people in RULERS.items():
        nouns = (f"former {people} colonies", f"former colonies of {ruler}", f"ex-{people} colonies")
        predicates = (f"are former {people} colonies", f"were {people} colonies")
        bare = ruler.removeprefix("the ")
        add(f"ruler:{bare}", lambda c, name=bare: name in c.former_rulers, (nouns, predicates, "", ""))  # type: ignore[misc]
    for group in load_groups():
        if group.kind == "membership" and group.name in MEMBERSHIPS:
            full, short = MEMBERSHIPS[group.name]
            nouns = (f"members of {full}", f"{short} members", f"{short} member states")
            predicates = (f"belong to {full}", f"are members of {full}", f"are in {full}")
            add(f"membership:{group.name}", lambda c, g=group: c.code in g.members, (nouns, predicates, "", ""))  # type: ignore[misc]
        elif group.name in GROUP_WORDING:
            add(f"{group.kind}:{group.name}", lambda c, g=group: c.code in g.members, GROUP_WORDING[group.name])  # type: ignore[misc]
    for country in load_countries():
        if len(country.borders) >= BORDER_MINIMUM and " and " not in country.name:
            name = country.full_name
            nouns = (f"neighbours of {name}", f"countries bordering {name}", f"countries sharing a border with {name}")
            predicates = (f"border {name}", f"share a land border with {name}", f"have a border with {name}")
            wording = (nouns, predicates, "", f"bordering {name}")
            add(f"border:{country.name}", lambda c, code=country.code: code in c.borders, wording)  # type: ignore[misc]
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
