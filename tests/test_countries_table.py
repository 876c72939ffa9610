"""The countries table agrees with itself and with counts that anyone can look up."""

import re
from collections import Counter

import pytest

from boolbert.data.countries import load_countries
from boolbert.data.countries.table import load_groups

COUNTRIES = load_countries()
BY_CODE = {country.code: country for country in COUNTRIES}
GROUPS = {group.name: group.members for group in load_groups()}


def codes(condition) -> set[str]:
    return {country.code for country in COUNTRIES if condition(country)}


def test_rows_are_the_un_members_and_the_two_observers():
    assert len(COUNTRIES) == len(BY_CODE) == len({country.name for country in COUNTRIES}) == 193 + 2
    assert {"VAT", "PSE"} <= set(BY_CODE)
    assert not {"TWN", "UNK", "ESH"} & set(BY_CODE)
    assert all(len(code) == 3 and code.isupper() for code in BY_CODE)
    assert all(members <= set(BY_CODE) for members in GROUPS.values())


def test_cells_hold_one_of_a_few_values():
    allowed = {
        "the": {"", "the"},
        "continent": {"Africa", "Asia", "Europe", "North America", "South America", "Oceania"},
        "government": {"republic", "monarchy", "communist republic", "Islamic republic", "Islamic emirate"},
        "hemisphere": {"north", "south", "both"},
        "drives": {"left", "right"},
    }
    assert {name: {getattr(country, name) for country in COUNTRIES} for name in allowed} == allowed


def test_borders_are_symmetric_and_irreflexive():
    for country in COUNTRIES:
        assert country.code not in country.borders
        assert len(set(country.borders)) == len(country.borders)
        for neighbour in country.borders:
            assert country.code in BY_CODE[neighbour].borders, (country.name, neighbour)


def test_the_most_neighbours_and_known_border_counts():
    counts = {code: len(country.borders) for code, country in BY_CODE.items()}
    assert {code for code, count in counts.items() if count >= 9} == {"CHN", "RUS", "BRA", "DEU", "COD"}
    known = {"CHN": 14, "RUS": 14, "BRA": 9, "DEU": 9, "COD": 9, "FRA": 8, "AUT": 8, "TUR": 8, "TZA": 8, "ZMB": 8}
    assert known.items() <= counts.items()


def test_neighbours_are_on_one_continent_or_known_to_span_two():
    allowed = {"RUS", "TUR", "EGY", "ISR", "PSE", "COL", "PAN", "IDN", "PNG", "MAR", "ESP", "GRC", "BGR"}
    for country in COUNTRIES:
        for code in country.borders:
            if BY_CODE[code].continent != country.continent:
                assert {country.code, code} & allowed, (country.code, code)


def test_landlocked_countries():
    landlocked = codes(lambda c: c.landlocked)
    assert len(landlocked) == 44
    assert all(BY_CODE[code].borders for code in landlocked)
    doubly = {code for code in landlocked if landlocked.issuperset(BY_CODE[code].borders)}
    assert doubly == {"LIE", "UZB"}
    assert {"KAZ", "TKM", "AZE"} <= landlocked  # the Caspian Sea does not count


def test_island_states():
    islands = codes(lambda c: c.island)
    assert len(islands) == 46
    shared = {code for code in islands if BY_CODE[code].borders}
    assert shared == {"GBR", "IRL", "HTI", "DOM", "IDN", "PNG", "TLS", "BRN"}
    without_borders = codes(lambda c: not c.borders)
    assert without_borders - islands == {"AUS"}  # a continent
    assert not any(BY_CODE[code].landlocked for code in islands)


def test_seas():
    def on(sea):
        return codes(lambda c: sea in c.coasts)

    assert on("Caspian Sea") == {"RUS", "KAZ", "TKM", "IRN", "AZE"}
    assert on("Black Sea") == {"TUR", "BGR", "ROU", "UKR", "RUS", "GEO"}
    assert on("Baltic Sea") == {"DNK", "DEU", "POL", "LTU", "LVA", "EST", "RUS", "FIN", "SWE"}
    assert on("Persian Gulf") == {"IRN", "IRQ", "KWT", "SAU", "BHR", "QAT", "ARE", "OMN"}
    assert on("Adriatic Sea") < on("Mediterranean Sea")
    assert len(on("Mediterranean Sea")) == 22
    assert on("Caribbean Sea") >= codes(lambda c: c.region == "Caribbean") - {"BHS"}


COUNTS = """
European Union 27, NATO 32, OPEC 11, Commonwealth of Nations 56, ASEAN 11, African Union 54, Arab League 22,
G7 7, G20 19, Mercosur 5, Nordic Council 5, CARICOM 14, ECOWAS 12, Gulf Cooperation Council 6, SADC 16,
East African Community 8, SAARC 8, Arctic Council 8, Pacific Islands Forum 14, EFTA 4, Soviet Union 15,
Yugoslavia 6, Security Council 5, Summer Olympics 19, FIFA World Cup 19, Danube 10, Nile 11, Sahara 10,
Prime Meridian 8
"""


@pytest.mark.parametrize("counted", re.split(r",\s", COUNTS.strip()))
def test_group_sizes(counted):
    name, _, count = counted.rpartition(" ")
    assert len(GROUPS[name]) == int(count)


def test_groups_agree_with_geography():
    def on(continent):
        return codes(lambda c: c.continent == continent)

    assert GROUPS["African Union"] == on("Africa")  # its 55th member, Western Sahara, is no row
    assert GROUPS["Pacific Islands Forum"] == on("Oceania")
    assert GROUPS["ASEAN"] == codes(lambda c: c.region == "Southeast Asia")
    assert GROUPS["SAARC"] == codes(lambda c: c.region == "South Asia")
    assert GROUPS["European Union"] - on("Europe") == {"CYP"}
    assert GROUPS["NATO"] - on("Europe") == {"CAN", "USA", "TUR"}
    assert GROUPS["Mercosur"] < on("South America")
    assert GROUPS["Nordic Council"] < codes(lambda c: c.region == "Northern Europe")
    assert GROUPS["ECOWAS"] < codes(lambda c: c.region == "West Africa")
    assert GROUPS["Arab League"] | {"TCD", "ERI"} == codes(lambda c: "Arabic" in c.languages)
    assert GROUPS["Gulf Cooperation Council"] < GROUPS["Arab League"]
    assert GROUPS["G7"] < GROUPS["G20"]
    assert GROUPS["Nordic Council"] < GROUPS["Arctic Council"]
    river = {"Danube", "Rhine", "Mekong", "Alps", "Andes", "Himalayas", "Sahara", "Nile", "Lake Victoria", "Lake Chad"}
    for name in river:  # what countries share makes them neighbours
        for code in GROUPS[name]:
            assert GROUPS[name] & set(BY_CODE[code].borders), (name, code)


def test_euro():
    euro = codes(lambda c: "EUR" in dict(c.currencies))
    assert GROUPS["European Union"] - euro == {"CZE", "DNK", "HUN", "POL", "ROU", "SWE"}
    assert euro - GROUPS["European Union"] == {"AND", "MCO", "MNE", "SMR", "VAT"}


def test_currencies_have_one_name_and_one_code():
    names, by_name = {}, {}
    for country in COUNTRIES:
        for code, name in country.currencies:
            assert len(code) == 3
            assert code.isupper()
            assert names.setdefault(code, name) == name
            assert by_name.setdefault(name, code) == code


def test_monarchies():
    monarchies = codes(lambda c: c.government == "monarchy")
    assert len(monarchies) == 43
    assert {c.code for c in COUNTRIES if c.head} == monarchies
    realms = codes(lambda c: c.head == "King Charles III")
    assert len(realms) == 15
    assert realms < GROUPS["Commonwealth of Nations"]
    assert codes(lambda c: c.government == "communist republic") == {"CHN", "CUB", "LAO", "PRK", "VNM"}


def test_driving_side():
    left = codes(lambda c: c.drives == "left")
    assert len(left) == 54
    europe = {code for code in left if BY_CODE[code].continent == "Europe"}
    assert europe == {"GBR", "IRL", "MLT"}
    assert {code for code in left if BY_CODE[code].continent == "South America"} == {"GUY", "SUR"}
    never_british = {code for code in left if "Britain" not in BY_CODE[code].former_rulers} - {"GBR"}
    assert never_british == {
        *("JPN", "THA", "IDN", "TLS", "BTN", "NPL", "MOZ", "SUR"),
        *("NAM", "NRU", "PNG", "WSM"),
    }


def test_hemispheres():
    both = codes(lambda c: c.hemisphere == "both")
    crossed_on_land = {"STP", "GAB", "COG", "COD", "UGA", "KEN", "SOM", "IDN", "ECU", "COL", "BRA"}
    assert both == crossed_on_land | {"KIR", "MDV", "GNQ"}
    for country in COUNTRIES:  # who borders both hemispheres is on the Equator, or next to who is
        for code in country.borders:
            assert {country.hemisphere, BY_CODE[code].hemisphere} != {"north", "south"} or {country.code, code} & {
                *("IND", "MYS", "RWA", "BDI", "TZA", "PER", "VEN", "GUY", "SUR", "CMR", "CAF", "SSD", "ETH", "PNG")
            }
    assert not codes(lambda c: c.hemisphere == "south" and c.continent == "Europe")


def test_former_rulers_and_independence():
    for country in COUNTRIES:
        assert country.independence is None or country.former_rulers, country.name
    without_year = codes(lambda c: c.former_rulers and c.independence is None)
    assert without_year == {"PSE", "YEM"}
    africa_1960 = codes(lambda c: c.independence == 1960 and c.continent == "Africa")
    assert len(africa_1960) == 17  # the Year of Africa
    languages = {"Portugal": "Portuguese", "Spain": "Spanish"}
    for ruler, language in languages.items():
        ruled, speak = codes(lambda c: ruler in c.former_rulers), codes(lambda c: language in c.languages)  # noqa: B023
        assert ruled - speak <= {"PHL"}
        assert len(speak - ruled) <= 2  # the ruler itself, and Equatorial Guinea's third language
    assert not GROUPS["Soviet Union"] & codes(lambda c: c.former_rulers)
    not_british = codes(lambda c: "Britain" not in c.former_rulers) & GROUPS["Commonwealth of Nations"]
    assert not_british == {"GBR", "MOZ", "RWA", "GAB", "TGO", "NAM", "NRU", "PNG", "WSM"}


def test_classes_follow_from_the_numbers_and_have_a_gap():
    """No country stands so near a threshold that another source would class it differently."""
    for country in COUNTRIES:
        assert country.area_class == (
            "large" if country.area_km2 > 1e6 else "tiny" if country.area_km2 < 1e3 else "medium"
        )
        assert not 0.97 < country.population_m < 1.1, country.name
        assert not 970 < country.area_km2 < 1500, country.name
    assert Counter(c.population_class for c in COUNTRIES)["large"] == 16
    assert Counter(c.area_class for c in COUNTRIES)["large"] == 29
