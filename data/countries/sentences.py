"""The sentences of a description, one function per topic: a country and a generator in, a sentence or "" out.

`sentences.txt` holds the wordings.
"""

from functools import cache
from pathlib import Path
from random import Random

from ...boolean.word_lists import read_lists
from .grammar import a, capitalised, join
from .table import Country, groups_of, load_atom_rows, load_countries

_SENTENCES = read_lists(Path(__file__).with_name("sentences.txt"))
# Whose capital is disputed or not laid down: the text names the seat of government.
_SEATS = frozenset({"ISR", "PSE", "NRU", "CHE"})
# Rulers that no query asks for.
_MORE_PEOPLES = {
    "Australia": "Australian",
    "Japan": "Japanese",
    "New Zealand": "New Zealand",
    "South Africa": "South African",
    "United States": "American",
}


def _say(rng: Random, name: str, /, **words: object) -> str:
    return rng.choice(_SENTENCES[name]).format(**words)


@cache
def _names() -> dict[str, str]:
    return {country.code: country.full_name for country in load_countries()}


@cache
def peoples() -> dict[str, str]:
    """What belongs to each former ruler: {"Britain": "British", ...}."""
    return {row["name"]: row["adjective"] for row in load_atom_rows() if row["family"] == "ruler"} | _MORE_PEOPLES


@cache
def organisations() -> dict[str, str]:
    """The name in full of each organisation that queries ask for."""
    return {row["name"]: row["full"] for row in load_atom_rows() if row["family"] == "membership"}


def _place(country: Country) -> str:
    if country.region in ("Australia and New Zealand", "Northern America"):
        return country.continent
    return f"the {country.region}" if country.region == "Caribbean" else country.region


def continent(country: Country, rng: Random) -> str:
    """The continent where the region's name does not hold it."""
    name = country.continent
    if name == _place(country) or (name.split()[-1] in country.region.split()[-1:] and name != "North America"):
        return ""
    return _say(rng, "continent", name=name)


def opening(country: Country, rng: Random) -> str:
    """Place, form of government, capital."""
    form = f"government: {country.head or country.government}"
    government, _, tail = (_say(rng, form) if form in _SENTENCES else country.government).partition(" / ")
    if country.island:
        *adjectives, noun = government.split()
        government = " ".join([*adjectives, "island", noun])
    kind = a(f"landlocked {government}" if country.landlocked else government)
    where, name, capital = f"in {_place(country)} {tail}".strip(), country.full_name, country.capital
    how = "city" if capital == name else "seat" if country.code in _SEATS else "capital"
    text = _say(rng, f"opening: {how}", name=name, kind=kind, where=where, capital=capital)
    return text.replace("..", ".")  # after "Washington, D.C."


def surroundings(country: Country, rng: Random) -> str:
    """Neighbours and coasts."""
    coasts = join([f"the {sea}" for sea in country.coasts])
    neighbours = [_names()[code] for code in country.borders]
    rng.shuffle(neighbours)
    if not neighbours:
        return _say(rng, "no neighbour", coasts=coasts)
    border = _say(rng, "one neighbour" if len(neighbours) == 1 else "neighbours", neighbours=join(neighbours))
    if country.coasts == ("Caspian Sea",):
        return f"{border}; the {country.coasts[0]}, on which it has a shore, is closed to the ocean."
    if not coasts:
        return _say(rng, "no coast", border=border)
    coast = _say(rng, "coast", coasts=coasts)
    capitals = {"Border": capitalised(border), "Coast": capitalised(coast)}
    return _say(rng, "border and coast", border=border, coast=coast, **capitals)


def language_and_money(country: Country, rng: Random) -> str:
    """Official languages, currencies, and the side of the road where it is the left."""
    first, *others = country.languages
    spoken = {0: "one language", 1: "two languages"}.get(len(others), "languages")
    speech = _say(rng, spoken, languages=join(country.languages), first=first, others=join(others))
    paid = "currency" if len(country.currencies) == 1 else "currencies"
    money = _say(rng, paid, currencies=join([f"the {name}" for _, name in country.currencies]))
    words = {"speech": speech, "money": money, "Speech": capitalised(speech), "Money": capitalised(money)}
    if country.drives == "right":
        return _say(rng, "speech and money", **words)
    return _say(rng, "speech, money and left", left=_say(rng, "left"), **words)


def size(country: Country, rng: Random) -> str:
    """Only what is remarkable: very large, very small."""
    names = (f"area: {country.area_class}", f"population: {country.population_class}")
    facts = [_say(rng, name) for name in names if name in _SENTENCES]
    return f"{rng.choice((', and ', '; ')).join(facts)}." if facts else ""


def history(country: Country, rng: Random) -> str:
    if unions := groups_of(country.code, "successor"):
        return _say(rng, f"successor: {unions[0]}")
    if not country.former_rulers:
        return ""
    rulers = join([f"the {ruler}" if ruler[-2:] in ("ds", "es") else ruler for ruler in country.former_rulers])
    ruling = join([peoples()[ruler] for ruler in country.former_rulers])
    past = _say(rng, "past", peoples=ruling, rulers=rulers, a_peoples=a(ruling))
    if country.independence is None or country.independence < 1900:
        return f"{past}."
    return _say(rng, "past and independence", past=past, year=country.independence)


def memberships(country: Country, rng: Random) -> str:
    names = [organisations()[name] for name in groups_of(country.code, "membership") if name in organisations()]
    if not names:
        return ""
    rng.shuffle(names)
    return _say(rng, "membership" if len(names) == 1 else "memberships", names=join(names))


def landmarks(country: Country, rng: Random) -> str:
    """Mountains, deserts, forests, rivers and lakes."""
    parts = [f"the {name}" for kind in ("mountains", "desert", "forest") for name in groups_of(country.code, kind)]
    parts += [f"the {name} basin" for name in groups_of(country.code, "basin")]
    waters = [f"the {name}" for name in groups_of(country.code, "river")] + list(groups_of(country.code, "lake"))
    facts = []
    if parts:
        is_plural = len(parts) > 1 or parts[0].endswith("s")
        facts.append(_say(rng, "parts" if is_plural else "part", names=join(parts)))
    if waters:
        facts.append(_say(rng, "waters", names=join(waters)))
    return f"{'; '.join(facts)}." if facts else ""


def position(country: Country, rng: Random) -> str:
    """On the globe: hemisphere, Equator, tropic, Prime Meridian."""
    hemisphere = f"hemisphere: {country.hemisphere}"
    lines = [f"the {name}" for kind in ("tropic", "meridian") for name in groups_of(country.code, kind)]
    facts = [_say(rng, hemisphere)] if hemisphere in _SENTENCES else []
    if lines:
        facts.append(_say(rng, "line", name=lines[0]))
    return f"{', and '.join(facts)}." if facts else ""


def fame(country: Country, rng: Random) -> str:
    """Great events, and the seat in the Security Council."""
    events = [f"the {name}" for name in groups_of(country.code, "hosted")]
    facts = [_say(rng, "hosted", names=join(events))] if events else []
    if groups_of(country.code, "council"):
        facts.append("it has a permanent seat on the UN Security Council")
    return f"{', and '.join(facts)}." if facts else ""


def numbers(country: Country, rng: Random) -> str:
    """Area and population, rounded, where `size` has not told them."""
    people = country.population_m * 1_000_000
    count = f"about {country.population_m:,g} million" if people >= 1_000_000 else f"about {round(people, -3):,.0f}"
    area = f"{country.area_km2:,g} square kilometres"
    if country.area_class == "medium" and country.population_class == "medium":
        return _say(rng, "area and population", count=count, area=area)
    if country.area_class == "medium":
        return f"its area is {area}."
    return f"its population is {count}." if country.population_class == "medium" else ""


def right_hand_traffic(country: Country, rng: Random) -> str:
    return _say(rng, "drives: right") if country.drives == "right" else ""


def african_union(country: Country, rng: Random) -> str:
    return "it is part of the African Union." if "African Union" in groups_of(country.code, "membership") else ""


def northern_hemisphere(country: Country, rng: Random) -> str:
    return "it lies in the Northern Hemisphere." if country.hemisphere == "north" else ""


def code(country: Country, rng: Random) -> str:
    return f"its three-letter country code is {country.code}."
