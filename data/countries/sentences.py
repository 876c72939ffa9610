"""The sentences of a description, one function a topic: a country and a generator in, a sentence or "" out."""

from collections.abc import Sequence
from functools import cache
from random import Random

from .grammar import a, capitalised, join
from .table import Country, load_countries, load_groups
from .wording import MEMBERSHIPS, RULERS

# Whose capital is disputed or not laid down: the text names the seat of government.
_SEATS = frozenset({"ISR", "PSE", "NRU", "CHE"})
_PEOPLES = {
    **{ruler.removeprefix("the "): people for ruler, people in RULERS.items()},
    "Australia": "Australian",
    "Japan": "Japanese",
    "New Zealand": "New Zealand",
    "South Africa": "South African",
    "United States": "American",
}
# A noun, and what follows it and the place: "a monarchy in Southeast Asia ruled by a sultan".
_REIGNS: dict[str, tuple[tuple[str, str], ...]] = {
    "King Charles III": (
        ("monarchy", "with King Charles III as head of state"),
        ("monarchy", "whose head of state is King Charles III"),
    ),
    "king": (("kingdom", ""), ("monarchy", "with a king at its head")),
    "emperor": (("monarchy", "with an emperor"), ("monarchy", "whose emperor has a ceremonial role")),
    "emir": (("monarchy", "ruled by an emir"), ("monarchy", "with an emir at its head")),
    "sultan": (("monarchy", "ruled by a sultan"), ("monarchy", "with a sultan at its head")),
    "prince": (("monarchy", "with a prince on the throne"), ("monarchy", "headed by a prince")),
    "grand duke": (("monarchy", "headed by a grand duke"), ("monarchy", "with a grand duke on the throne")),
    "pope": (("monarchy", "ruled by the pope"), ("monarchy", "with the pope at its head")),
    "co-princes": (("monarchy", "with two co-princes"), ("monarchy", "headed by two co-princes")),
    "seven emirs": (("federal monarchy", "of seven emirates"), ("monarchy", "that unites seven emirates")),
}


@cache
def _names() -> dict[str, str]:
    return {country.code: country.full_name for country in load_countries()}


@cache
def groups_of(code: str, kind: str) -> tuple[str, ...]:
    """The groups of one kind that a country is in.

    >>> groups_of("CHE", "river")
    ('Rhine',)
    """
    return tuple(group.name for group in load_groups() if group.kind == kind and code in group.members)


def _place(country: Country) -> str:
    if country.region in ("Australia and New Zealand", "Northern America"):
        return country.continent
    return f"the {country.region}" if country.region == "Caribbean" else country.region


def continent(country: Country, rng: Random) -> str:
    """The continent where the region's name does not hold it."""
    name = country.continent
    if name == _place(country) or (name.split()[-1] in country.region.split()[-1:] and name != "North America"):
        return ""
    return rng.choice((f"it is part of {name}.", f"geographers count it as part of {name}.", f"it belongs to {name}."))


def opening(country: Country, rng: Random) -> str:
    """Place, form of government, capital."""
    tail = ""
    if country.government == "monarchy":
        government, tail = rng.choice(_REIGNS[country.head])
    elif country.government == "communist republic":
        government = rng.choice(("communist republic", "one-party communist state"))
    else:
        government = country.government
    if country.island:
        *adjectives, noun = government.split()
        government = " ".join([*adjectives, "island", noun])
    kind = a(f"landlocked {government}" if country.landlocked else government)
    where, name, capital = f"in {_place(country)} {tail}".strip(), country.full_name, country.capital
    if capital == name:
        return rng.choice((f"{name} is {kind} {where}.", f"{name}, at once city and country, is {kind} {where}."))
    seat = country.code in _SEATS
    text = rng.choice(
        (
            f"{name} is {kind} {where}; {'its government sits in' if seat else 'its capital is'} {capital}.",
            f"{name}, {'governed from' if seat else 'with its capital at'} {capital}, is {kind} {where}.",
            f"{name} is {kind} {where} and is governed from {capital}.",
            f"{kind} {where}, {name} has its {'seat of government' if seat else 'capital'} in {capital}.",
        )
    )
    return text.replace("..", ".")  # after "Washington, D.C."


def surroundings(country: Country, rng: Random) -> str:
    """Neighbours and coasts."""
    coasts = [f"the {sea}" for sea in country.coasts]
    neighbours = [_names()[code] for code in country.borders]
    rng.shuffle(neighbours)
    if not neighbours:
        return rng.choice(
            (
                f"it lies in {join(coasts)} and has no land borders.",
                f"its shores lie on {join(coasts)}, and it shares no land border.",
                f"surrounded by {join(coasts)}, it has no neighbours on land.",
            )
        )
    if len(neighbours) == 1:
        border = rng.choice((f"it borders only {neighbours[0]}", f"its one neighbour on land is {neighbours[0]}"))
    else:
        border = rng.choice(
            (
                f"it borders {join(neighbours)}",
                f"its neighbours are {join(neighbours)}",
                f"it shares land borders with {join(neighbours)}",
                f"it has borders with {join(neighbours)}",
            )
        )
    if country.coasts == ("Caspian Sea",):
        return f"{border}; the {country.coasts[0]}, on which it has a shore, is closed to the ocean."
    if not coasts:
        return border + rng.choice((".", ", and has no access to the sea.", "; no part of it touches the sea."))
    coast = rng.choice(
        (f"it has a coast on {join(coasts)}", f"its coast is on {join(coasts)}", f"its shores face {join(coasts)}")
    )
    return rng.choice((f"{border}; {coast}.", f"{border}. {capitalised(coast)}.", f"{coast}. {capitalised(border)}."))


def language_and_money(country: Country, rng: Random) -> str:
    """Official languages, currencies, and the side of the road where it is the left."""
    languages, currencies = country.languages, join([f"the {name}" for _, name in country.currencies])
    several = len(country.currencies) > 1
    if len(languages) == 1:
        speech = rng.choice((f"the official language is {languages[0]}", f"{languages[0]} is its official language"))
    else:
        speech = rng.choice(
            (
                f"the official languages are {join(languages)}",
                f"{join(languages)} are official languages",
                f"{languages[0]} is an official language, as {'is' if len(languages) == 2 else 'are'} "
                f"{join(languages[1:])}",
            )
        )
    money = rng.choice(
        (
            f"the {'currencies are' if several else 'currency is'} {currencies}",
            f"{currencies} {'are legal tender' if several else 'is the currency'}",
            f"people pay with {currencies}",
            f"the country uses {currencies}",
        )
    )
    if country.drives == "right":
        return rng.choice((f"{speech}, and {money}.", f"{speech}. {capitalised(money)}.", f"{money}; {speech}."))
    left = rng.choice(("cars drive on the left", "traffic keeps to the left", "drivers keep to the left-hand side"))
    return rng.choice((f"{speech}. {capitalised(money)}, and {left}.", f"{left}, and {money}. {capitalised(speech)}."))


def size(country: Country, rng: Random) -> str:
    """Only what is remarkable: very large, very small."""
    area = {
        "large": ("it covers more than a million square kilometres", "its area exceeds a million square kilometres"),
        "tiny": ("it is smaller than 1,000 square kilometres", "it covers less than 1,000 square kilometres"),
    }.get(country.area_class)
    people = {
        "large": ("more than 100 million people live there", "it has more than 100 million inhabitants"),
        "small": ("fewer than a million people live there", "it has fewer than a million inhabitants"),
    }.get(country.population_class)
    facts = [rng.choice(options) for options in (area, people) if options]
    return f"{rng.choice((', and ', '; ')).join(facts)}." if facts else ""


def history(country: Country, rng: Random) -> str:
    if republics := groups_of(country.code, "successor"):
        union = republics[0]
        adjective = {"Soviet Union": "Soviet", "Yugoslavia": "Yugoslav"}[union]
        the_union = "the Soviet Union" if union == "Soviet Union" else union
        return rng.choice((f"it is a former {adjective} republic.", f"it was once a republic of {the_union}."))
    if not country.former_rulers:
        return ""
    rulers = join([f"the {ruler}" if ruler[-2:] in ("ds", "es") else ruler for ruler in country.former_rulers])
    peoples = join([_PEOPLES[ruler] for ruler in country.former_rulers])
    past = rng.choice(
        (
            f"it was once under {peoples} rule",
            f"it was formerly ruled by {rulers}",
            f"it has {a(f'{peoples} colonial past')}",
        )
    )
    if country.independence is None or country.independence < 1900:
        return f"{past}."
    year = country.independence
    return rng.choice((f"{past} and became independent in {year}.", f"{past}; its independence dates from {year}."))


def memberships(country: Country, rng: Random) -> str:
    names = [MEMBERSHIPS[name][0] for name in groups_of(country.code, "membership") if name in MEMBERSHIPS]
    if not names:
        return ""
    rng.shuffle(names)
    return rng.choice(
        (
            f"it belongs to {join(names)}.",
            f"it is a member of {join(names)}.",
            f"{join(names)} {'count' if len(names) > 1 else 'counts'} it among {'their' if len(names) > 1 else 'its'} "
            f"members.",
        )
    )


def landmarks(country: Country, rng: Random) -> str:
    """Mountains, deserts, forests, rivers and lakes."""
    parts = [f"the {name}" for kind in ("mountains", "desert", "forest") for name in groups_of(country.code, kind)]
    parts += [f"the {name} basin" for name in groups_of(country.code, "basin")]
    waters = [f"the {name}" for name in groups_of(country.code, "river")] + list(groups_of(country.code, "lake"))
    facts = []
    if parts:
        facts.append(
            rng.choice((f"it has a part of {join(parts)}", f"{join(parts)} {_reach(parts)} into its territory"))
        )
    if waters:
        facts.append(rng.choice((f"it lies on {join(waters)}", f"its land touches {join(waters)}")))
    return f"{'; '.join(facts)}." if facts else ""


def _reach(names: Sequence[str]) -> str:
    return "reach" if len(names) > 1 or names[0].endswith("s") else "reaches"


def position(country: Country, rng: Random) -> str:
    """On the globe: hemisphere, Equator, tropic, Prime Meridian."""
    facts = {
        "south": (
            "it lies entirely south of the Equator",
            "all of it is in the Southern Hemisphere",
            "the whole country is south of the Equator",
        ),
        "both": ("it straddles the Equator", "the Equator divides its territory"),
    }.get(country.hemisphere)
    lines = [f"the {name}" for kind in ("tropic", "meridian") for name in groups_of(country.code, kind)]
    texts = [rng.choice(facts)] if facts else []
    if lines:
        texts.append(rng.choice((f"{lines[0]} crosses it", f"it is crossed by {lines[0]}")))
    return f"{', and '.join(texts)}." if texts else ""


def fame(country: Country, rng: Random) -> str:
    """Great events, and the seat in the Security Council."""
    events = [f"the {name}" for name in groups_of(country.code, "hosted")]
    facts = [rng.choice((f"it has hosted {join(events)}", f"{join(events)} took place there"))] if events else []
    if groups_of(country.code, "council"):
        facts.append("it has a permanent seat on the UN Security Council")
    return f"{', and '.join(facts)}." if facts else ""


def numbers(country: Country, rng: Random) -> str:
    """Area and population, rounded, where `size` has not told them."""
    people = country.population_m * 1_000_000
    count = f"about {country.population_m:,g} million" if people >= 1_000_000 else f"about {round(people, -3):,.0f}"
    area = f"{country.area_km2:,g} square kilometres"
    if country.area_class == "medium" and country.population_class == "medium":
        return rng.choice(
            (
                f"{count} people live on {area}.",
                f"it has {count} inhabitants and an area of {area}.",
                f"its population is {count}, its area {area}.",
            )
        )
    if country.area_class == "medium":
        return f"its area is {area}."
    return f"its population is {count}." if country.population_class == "medium" else ""


def right_hand_traffic(country: Country, rng: Random) -> str:
    return (
        rng.choice(("traffic keeps to the right.", "people drive on the right.")) if country.drives == "right" else ""
    )


def african_union(country: Country, rng: Random) -> str:
    return "it is part of the African Union." if "African Union" in groups_of(country.code, "membership") else ""


def northern_hemisphere(country: Country, rng: Random) -> str:
    return "it lies in the Northern Hemisphere." if country.hemisphere == "north" else ""


def code(country: Country, rng: Random) -> str:
    return f"its three-letter country code is {country.code}."
