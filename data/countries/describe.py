"""A description of each country, written from the table: 60 to 120 words that hold every fact a query can ask for.

Each topic gives a sentence in one of several wordings; a generator seeded by the country's code chooses them and their
order, so that the same fact is said in many ways and every run writes the same text.
"""

from collections.abc import Callable
from functools import cache
from random import Random

from . import sentences
from .grammar import capitalised
from .table import Country, load_countries

SHORTEST = 60  # words

Topic = Callable[[Country, Random], str]
# What every description states, then what fills up a short one, in this order.
FACTS: tuple[Topic, ...] = (
    sentences.continent,
    sentences.surroundings,
    sentences.language_and_money,
    sentences.size,
    sentences.history,
    sentences.memberships,
    sentences.landmarks,
    sentences.position,
    sentences.fame,
)
FILLERS: tuple[Topic, ...] = (
    sentences.numbers,
    sentences.right_hand_traffic,
    sentences.northern_hemisphere,
    sentences.african_union,
    sentences.code,
)


def describe(country: Country) -> str:
    """The description of one country.

    >>> "Afghanistan" in describe(load_countries()[0])
    True
    """
    rng = Random(f"describe {country.code}")
    opening = sentences.opening(country, rng)
    texts = [text for topic in FACTS if (text := topic(country, rng))]
    length = len(opening.split()) + sum(len(text.split()) for text in texts)
    aim = rng.randint(SHORTEST, SHORTEST + 25)
    for filler in FILLERS:
        text = filler(country, rng)
        if text and length < aim:
            texts.append(text)
            length += len(text.split())
    rng.shuffle(texts)
    return " ".join([capitalised(opening), *(_varied(text, rng) for text in texts)])


def _varied(text: str, rng: Random) -> str:
    """Now and then "the country" for "it"."""
    if text.startswith("it ") and rng.random() < 0.3:
        text = f"the country {text[3:]}"
    return capitalised(text)


@cache
def _documents() -> tuple[tuple[str, str], ...]:
    return tuple((country.name, describe(country)) for country in load_countries())


def country_documents() -> list[dict[str, str]]:
    """The corpus in QUEST's schema: `title` and `text`, in the order of the table.

    >>> len(country_documents()), country_documents()[0]["title"]
    (195, 'Afghanistan')
    """
    return [{"title": title, "text": text} for title, text in _documents()]
