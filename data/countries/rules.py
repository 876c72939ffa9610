"""Atoms that a rule on the table's columns decides, each with its wording."""

from collections.abc import Callable

from .table import Country
from .wording import Wording


def _colonies_of_decade(decade: str) -> tuple[Callable[[Country], bool], Wording]:
    nouns = (
        f"countries independent since the {decade}",
        f"countries with an independence day dating from the {decade}",
    )
    predicates = (f"became independent in the {decade}", f"gained independence in the {decade}")
    return lambda country: f"{country.independence}"[:3] == decade[:3], (nouns, predicates, "", "")


# Atoms that a rule on the table's columns decides.
SIMPLE: dict[str, tuple[Callable[[Country], bool], Wording]] = {
    "landlocked": (
        lambda country: country.landlocked,
        (("landlocked countries", "landlocked states", "landlocked nations"), ("are landlocked",), "landlocked", ""),
    ),
    "island": (
        lambda country: country.island,
        (("island countries", "island states", "island nations"), ("are island states",), "island", ""),
    ),
    "government:monarchy": (
        lambda country: country.government == "monarchy",
        (
            ("monarchies", "countries with a monarch", "countries ruled by a monarch"),
            ("are monarchies", "have a monarch"),
            "",
            "with a monarch",
        ),
    ),
    "government:Commonwealth realm": (
        lambda country: country.head == "King Charles III",
        (
            ("countries with King Charles III as head of state", "Commonwealth realms", "realms of King Charles III"),
            ("have King Charles III as head of state", "are Commonwealth realms"),
            "",
            "",
        ),
    ),
    "government:communist": (
        lambda country: country.government == "communist republic",
        (
            ("communist states", "communist countries", "one-party communist states"),
            ("are communist states", "are ruled by a communist party"),
            "communist",
            "",
        ),
    ),
    "drives:left": (
        lambda country: country.drives == "left",
        (
            ("countries with left-hand traffic", "countries driving on the left", "left-driving countries"),
            ("drive on the left", "have left-hand traffic"),
            "left-driving",
            "with left-hand traffic",
        ),
    ),
    "hemisphere:south": (
        lambda country: country.hemisphere == "south",
        (
            ("countries entirely south of the Equator", "countries wholly in the Southern Hemisphere"),
            ("lie entirely south of the Equator", "lie wholly in the Southern Hemisphere"),
            "",
            "",
        ),
    ),
    "hemisphere:both": (
        lambda country: country.hemisphere == "both",
        (("countries straddling the Equator", "countries spanning the Equator"), ("straddle the Equator",), "", ""),
    ),
    "area:large": (
        lambda country: country.area_class == "large",
        (
            ("countries larger than a million square kilometres", "countries of more than a million square kilometres"),
            ("cover more than a million square kilometres", "are larger than a million square kilometres"),
            "",
            "",
        ),
    ),
    "area:tiny": (
        lambda country: country.area_class == "tiny",
        (
            ("countries smaller than 1,000 square kilometres", "countries of less than 1,000 square kilometres"),
            ("cover less than 1,000 square kilometres", "are smaller than 1,000 square kilometres"),
            "",
            "",
        ),
    ),
    "population:large": (
        lambda country: country.population_class == "large",
        (
            ("countries with more than 100 million people", "countries of more than 100 million inhabitants"),
            ("have more than 100 million people", "have more than 100 million inhabitants"),
            "",
            "with more than 100 million people",
        ),
    ),
    "population:small": (
        lambda country: country.population_class == "small",
        (
            ("countries with fewer than a million people", "countries of fewer than a million inhabitants"),
            ("have fewer than a million people", "have fewer than a million inhabitants"),
            "",
            "with fewer than a million people",
        ),
    ),
    "independence:1960s": _colonies_of_decade("1960s"),
    "independence:1970s": _colonies_of_decade("1970s"),
}
