"""The descriptions: length, and every fact that a query can ask for."""

import re

import pytest

from boolbert.data import Quest
from boolbert.data.embedded import country_names

QUEST = Quest(progress=False)
DOCUMENTS = list(QUEST.documents())
TEXTS = [document.text for document in DOCUMENTS]
ATOMS = {key: rows.tolist() for key, rows in QUEST.atoms.items()}
NAMES = country_names()

EVIDENCE = {
    "landlocked": r"landlocked",
    "island": r"island (?:republic|monarchy|kingdom|state)",
    "government:monarchy": r"monarchy|kingdom",
    "government:Commonwealth realm": r"King Charles III",
    "government:communist": r"communist",
    "drives:left": r"(?:drive|keeps?) (?:on|to) the left",
    "hemisphere:south": r"south of the Equator|in the Southern Hemisphere",
    "hemisphere:both": r"straddles the Equator|Equator divides",
    "area:large": r"(?:more than|exceeds) a million square",
    "area:tiny": r"(?:smaller|less) than 1,000 square",
    "population:large": r"[Mm]ore than 100 million",
    "population:small": r"[Ff]ewer than a million",
    "independence:1960s": r"(?:independent in|dates from) 196\d",
    "independence:1970s": r"(?:independent in|dates from) 197\d",
    "successor:Soviet Union": r"Soviet",
    "successor:Yugoslavia": r"Yugoslav",
    "council:Security Council": r"permanent seat on the UN Security Council",
}


def evidence(key: str) -> str:
    """What the text of a member says, and the text of no other country, as a regular expression on one sentence."""
    family, _, value = key.partition(":")
    if key in EVIDENCE:
        return EVIDENCE[key]
    match family:
        case "continent" | "region":
            return rf"(?:in|of|to) (?:the )?(?:\w+ )?{value}"
        case "language":
            return rf"{value}\b.*official|official.*\b{value}"
        case "currency":
            return rf"(?:currenc|pay with|uses|tender).*\b{value}|\b{value}\b.*(?:currency|tender)"
        case "sea":
            return rf"(?:coast|shore|lies in|[Ss]urrounded).*{value}|{value}, on which it has a shore"
        case "ruler":
            people = NAMES[key][0].split()[1]  # "former British colonies"
            return rf"ruled by.*{value}|{people}\b.* (?:rule|colonial)"
        case "membership":
            name = NAMES[key][0].removeprefix("members of ").replace("the ", "[Tt]he ")
            return rf"(?:belongs to|member of).*{name}\b|{name}\b.*counts? it among"
        case "border":
            before = r"(?:border|neighbour)(?:.*(?:, | and )|s |s with |s are | on land is |s only )"
            return rf"{before}(?:the )?{value}(?=[,.;]| and)"
        case "hosted":
            return rf"hosted.*{value}|{value}.*took place"
        case _:
            return rf"{value}\b"


def holds(text: str, pattern: str) -> bool:
    return any(re.search(pattern, sentence) for sentence in re.split(r"(?<=[.;]) ", text))


def test_one_text_a_country_of_60_to_120_words():
    assert len({document.title for document in DOCUMENTS}) == len(DOCUMENTS) == 195
    lengths = [len(text.split()) for text in TEXTS]
    assert min(lengths) >= 60
    assert max(lengths) <= 120


@pytest.mark.parametrize("key", ATOMS)
def test_every_member_says_so_and_nobody_else(key):
    said = [row for row, text in enumerate(TEXTS) if holds(text, evidence(key))]
    assert said == ATOMS[key]
