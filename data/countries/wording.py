"""How each atom is said: nouns that stand alone, predicates after "countries that", an adjective, a phrase behind."""

Wording = tuple[tuple[str, ...], tuple[str, ...], str, str]  # nouns, predicates, adjective, after

# A neighbour makes an atom where at least this many countries border it.
BORDER_MINIMUM = 5

# Continents and the regions that common usage draws as the table does; "Western Europe" or "East Africa" are stated in
# the descriptions but not asked for, because people disagree about them.
ADJECTIVES: dict[str, str] = {
    "Africa": "African",
    "Asia": "Asian",
    "Europe": "European",
    "North America": "North American",
    "South America": "South American",
    "Oceania": "Oceanian",
    "North Africa": "North African",
    "West Africa": "West African",
    "Central Africa": "Central African",
    "Caribbean": "Caribbean",
    "Central America": "Central American",
    "Central Asia": "Central Asian",
    "East Asia": "East Asian",
    "South Asia": "South Asian",
    "Southeast Asia": "Southeast Asian",
    "Western Asia": "West Asian",
    "Eastern Europe": "Eastern European",
    "Northern Europe": "Northern European",
    "Southern Europe": "Southern European",
    "Melanesia": "Melanesian",
}

LANGUAGES = (
    *("Arabic", "Dutch", "English", "French", "German", "Italian"),
    *("Malay", "Portuguese", "Russian", "Spanish", "Swahili"),
)
SEAS = (
    *("Adriatic Sea", "Baltic Sea", "Black Sea", "Caribbean Sea", "Caspian Sea", "Mediterranean Sea", "North Sea"),
    *("Persian Gulf", "Red Sea"),
)
RULERS: dict[str, str] = {
    "Belgium": "Belgian",
    "Britain": "British",
    "France": "French",
    "Italy": "Italian",
    "the Netherlands": "Dutch",
    "Portugal": "Portuguese",
    "Spain": "Spanish",
}
# The name in full, and short as it goes before "members".
MEMBERSHIPS: dict[str, tuple[str, str]] = {
    "European Union": ("the European Union", "EU"),
    "NATO": ("NATO", "NATO"),
    "OPEC": ("OPEC", "OPEC"),
    "Commonwealth of Nations": ("the Commonwealth of Nations", "Commonwealth"),
    "ASEAN": ("ASEAN", "ASEAN"),
    "Arab League": ("the Arab League", "Arab League"),
    "G7": ("the G7", "G7"),
    "G20": ("the G20", "G20"),
    "Mercosur": ("Mercosur", "Mercosur"),
    "Nordic Council": ("the Nordic Council", "Nordic Council"),
    "CARICOM": ("CARICOM", "CARICOM"),
    "Gulf Cooperation Council": ("the Gulf Cooperation Council", "Gulf Cooperation Council"),
    "ECOWAS": ("ECOWAS", "ECOWAS"),
    "SADC": ("the Southern African Development Community", "SADC"),
    "East African Community": ("the East African Community", "East African Community"),
    "SAARC": ("SAARC", "SAARC"),
    "Pacific Islands Forum": ("the Pacific Islands Forum", "Pacific Islands Forum"),
    "Arctic Council": ("the Arctic Council", "Arctic Council"),
    "EFTA": ("EFTA", "EFTA"),
}


def place_wording(place: str) -> Wording:
    adjective, where = ADJECTIVES[place], f"in the {place}" if place == "Caribbean" else f"in {place}"
    nouns = (f"{adjective} countries", f"countries {where}", f"{adjective} states")
    return nouns, (f"are {where}", f"lie {where}"), adjective, where


def language_wording(language: str) -> Wording:
    nouns = (
        f"countries with {language} as an official language",
        f"officially {language}-speaking countries",
        f"countries where {language} is an official language",
    )
    predicates = (f"have {language} as an official language", f"use {language} as an official language")
    return nouns, predicates, f"officially {language}-speaking", f"with {language} as an official language"


def sea_wording(sea: str) -> Wording:
    nouns = (f"countries on the {sea}", f"countries with a coast on the {sea}", f"states along the {sea}")
    return nouns, (f"have a coast on the {sea}", f"lie on the {sea}"), "", f"on the {sea}"


def ruler_wording(ruler: str) -> Wording:
    people = RULERS[ruler]
    nouns = (f"former {people} colonies", f"former colonies of {ruler}", f"ex-{people} colonies")
    return nouns, (f"are former {people} colonies", f"were {people} colonies"), "", ""


def membership_wording(organisation: str) -> Wording:
    full, short = MEMBERSHIPS[organisation]
    nouns = (f"members of {full}", f"{short} members", f"{short} member states")
    return nouns, (f"belong to {full}", f"are members of {full}", f"are in {full}"), "", ""


def border_wording(name: str) -> Wording:
    nouns = (f"neighbours of {name}", f"countries bordering {name}", f"countries sharing a border with {name}")
    predicates = (f"border {name}", f"share a land border with {name}", f"have a border with {name}")
    return nouns, predicates, "", f"bordering {name}"


def _currency(name: str) -> Wording:
    """A currency that is one and the same: "the euro"."""
    nouns = (f"countries using the {name}", f"countries with the {name} as currency")
    return nouns, (f"use the {name}", f"have the {name} as their currency"), "", f"with the {name} as currency"


def _unit(name: str) -> Wording:
    """Currencies of one name: the Indian rupee, the Nepalese rupee."""
    nouns = (f"countries with {name}s as currency", f"countries whose currency is called the {name}")
    predicates = (f"have a currency called the {name}", f"use some kind of {name}")
    return nouns, predicates, "", f"with {name}s as currency"


CURRENCIES: dict[str, Wording] = {
    **{name: _currency(name) for name in ("euro", "West African CFA franc", "Central African CFA franc")},
    **{name: _currency(name) for name in ("East Caribbean dollar",)},
    **{name: _unit(name) for name in ("dinar", "dollar", "franc", "peso", "pound", "rupee", "shilling")},
}


def _place(name: str, adjective: str, nouns: tuple[str, ...], preposition: str = "in") -> Wording:
    nouns = nouns + ((f"{adjective} countries",) if adjective else ())
    return nouns, (f"have a part of {name}", f"lie {preposition} {name}"), adjective, f"{preposition} {name}"


def _water(name: str) -> Wording:
    return (f"countries on {name}", f"states along {name}"), (f"lie on {name}", f"lie along {name}"), "", f"on {name}"


def _line(name: str) -> Wording:
    nouns = (f"countries on the {name}", f"countries crossed by the {name}")
    return nouns, (f"lie on the {name}", f"are crossed by the {name}"), "", f"on the {name}"


def _host(event: str) -> Wording:
    return (f"past hosts of the {event}", f"{event} host countries"), (f"have hosted the {event}",), "", ""


GROUP_WORDING: dict[str, Wording] = {
    "Soviet Union": (
        ("former Soviet republics", "former republics of the Soviet Union"),
        ("were Soviet republics", "belonged to the Soviet Union"),
        "post-Soviet",
        "",
    ),
    "Yugoslavia": (
        ("former Yugoslav republics", "former republics of Yugoslavia"),
        ("were Yugoslav republics", "belonged to Yugoslavia"),
        "",
        "",
    ),
    "Summer Olympics": _host("Summer Olympics"),
    "FIFA World Cup": _host("FIFA World Cup"),
    "Security Council": (
        ("permanent members of the UN Security Council",),
        ("have a permanent seat on the UN Security Council", "are permanent members of the UN Security Council"),
        "",
        "",
    ),
    "Alps": _place("the Alps", "Alpine", ("countries in the Alps",)),
    "Andes": _place("the Andes", "Andean", ("countries in the Andes",)),
    "Himalayas": _place("the Himalayas", "Himalayan", ("countries in the Himalayas",)),
    "Sahara": _place("the Sahara", "Saharan", ("countries in the Sahara",)),
    "Amazon rainforest": _place("the Amazon rainforest", "", ("countries in the Amazon rainforest",)),
    "Danube": _water("the Danube"),
    "Rhine": _water("the Rhine"),
    "Mekong": _water("the Mekong"),
    "Nile": _place("the Nile basin", "", ("countries in the Nile basin", "Nile basin countries")),
    "Lake Victoria": _water("Lake Victoria"),
    "Lake Chad": _water("Lake Chad"),
    "Tropic of Capricorn": _line("Tropic of Capricorn"),
    "Prime Meridian": _line("Prime Meridian"),
}
