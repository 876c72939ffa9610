"""The atomic sets: what a query can ask about, who belongs to it, and how it is said.

`atoms.csv` names the sets and `wording.txt` says them; the sets of neighbours ("border:France") are added to these.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...boolean.word_lists import read_lists
from .grammar import negated
from .table import Country, groups_of, load_atom_rows, load_countries

# A neighbour makes an atom where at least this many countries border it.
BORDER_MINIMUM = 5


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


def _has_government(country: Country, name: str) -> bool:
    if name == "Commonwealth realm":
        return country.head == "King Charles III"
    return country.government.startswith(name)


def _uses_currency(country: Country, currency: str) -> bool:
    """By full name ("euro", "West African CFA franc") or by what the unit is called ("dollar")."""
    names = [name.removesuffix(" sterling") for _, name in country.currencies]
    return any(name == currency or name.split()[-1] == currency for name in names)


# Who belongs to the set of a name, by the set's family.
_BELONGS: dict[str, Callable[[Country, str], bool]] = {
    "landlocked": lambda country, name: country.landlocked,
    "island": lambda country, name: country.island,
    "government": _has_government,
    "drives": lambda country, name: country.drives == name,
    "hemisphere": lambda country, name: country.hemisphere == name,
    "area": lambda country, name: country.area_class == name,
    "population": lambda country, name: country.population_class == name,
    "independence": lambda country, name: f"{country.independence}"[:3] == name[:3],  # a decade: "1960s"
    "continent": lambda country, name: country.continent == name,
    "region": lambda country, name: country.region == name,
    "language": lambda country, name: name in country.languages,
    "currency": _uses_currency,
    "sea": lambda country, name: name in country.coasts,
    "ruler": lambda country, name: name in country.former_rulers,
}


def _belongs(country: Country, family: str, name: str) -> bool:
    """A family without a rule of its own is a kind of groups."""
    rule = _BELONGS.get(family)
    return rule(country, name) if rule else name in groups_of(country.code, family)


@cache
def all_atoms() -> dict[str, Atom]:
    """Every atom by its key, in a fixed order.

    >>> sorted(all_atoms()["lake:Lake Victoria"].members)
    ['KEN', 'TZA', 'UGA']
    """
    atoms: dict[str, Atom] = {}
    countries = load_countries()
    wordings = read_lists(Path(__file__).with_name("wording.txt"))

    def add(key: str, members: Iterable[Country], wording: str, **words: str) -> None:
        codes = frozenset(country.code for country in members)
        if not codes:
            raise ValueError(f"atom {key!r} has no members; check its spelling against countries.csv and groups.csv")
        said: dict[str, list[str]] = {"noun": [], "predicate": [], "adjective": [], "after": []}
        for line in wordings[wording]:
            role, _, text = line.partition(": ")
            said[role].append(text.format(**words))
        nouns, predicates = tuple(said["noun"]), tuple(said["predicate"])
        atoms[key] = Atom(key, codes, nouns, predicates, "".join(said["adjective"]), "".join(said["after"]))

    for row in load_atom_rows():
        family, name = row["family"], row["name"]
        members = [country for country in countries if _belongs(country, family, name)]
        add(f"{family}:{name}" if name else family, members, **row)
    for country in countries:
        if len(country.borders) >= BORDER_MINIMUM and " and " not in country.name:
            neighbours = [other for other in countries if country.code in other.borders]
            add(f"border:{country.name}", neighbours, "border", full=country.full_name)
    return atoms


def country_atoms() -> dict[str, list[int]]:
    """Every atomic set as the row numbers of its members in the documents.

    >>> from boolbert.data.countries.table import load_countries
    >>> [load_countries()[row].name for row in country_atoms()["lake:Lake Victoria"]]
    ['Kenya', 'Tanzania', 'Uganda']
    """
    codes = [country.code for country in load_countries()]
    return {key: [row for row, code in enumerate(codes) if code in atom.members] for key, atom in all_atoms().items()}
