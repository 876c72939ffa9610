"""Documents that are lists, and questions that nothing but words answers: "Who likes plum jam?"

Prose says a thing in many ways; a list says it once, among forty others, and its neighbours share its words (plum jam,
plum cake, fig jam). `python eval/evidence.py --data lists` compares search with BM25 on them. The lists are drawn, the
same ones each time.
"""

import random
from typing import NamedTuple

FIRST = [
    *("Ada", "Bo", "Cleo", "Dov", "Edna", "Finn", "Gil", "Hana", "Ivo", "June", "Kai", "Lena", "Milo", "Nora"),
    *("Otto", "Pia", "Quin", "Rosa", "Sven", "Tess", "Ugo", "Vera", "Wim", "Yara"),
]
LAST = [
    *(
        "Abell",
        "Brandt",
        "Cole",
        "Dahl",
        "Eaton",
        "Falk",
        "Grove",
        "Holt",
        "Irwin",
        "Jung",
        "Kemp",
        "Lund",
        "Marsh",
        "Nagel",
    ),
    *("Oakes", "Penn", "Quist", "Roth", "Stein", "Thorn"),
]
BEFORE = [
    *(
        "plum",
        "fig",
        "pear",
        "lemon",
        "ginger",
        "honey",
        "almond",
        "barley",
        "cedar",
        "copper",
        "river",
        "winter",
        "paper",
        "garden",
    ),
    *("harbour", "velvet"),
]
BEHIND = [
    *(
        "jam",
        "cake",
        "tea",
        "bread",
        "soap",
        "lanterns",
        "songs",
        "walks",
        "boats",
        "maps",
        "kites",
        "clocks",
        "quilts",
        "gloves",
    ),
    *("poems", "markets"),
]
WAYS = ("{} likes {}.", "{} is fond of {}.", "What {} likes: {}.", "{}. Likes: {}.")
DOCUMENTS, LIKES = 60, 40


class ListQuery(NamedTuple):
    """gold, excluded: rows of the documents that answer, and of those that have what is excluded."""

    text: str
    gold: list[int]
    excluded: list[int]
    kind: str


class Lists(NamedTuple):
    texts: list[str]
    queries: list[ListQuery]


def lists(seed: int = 0, each: int = 15) -> Lists:
    """
    >>> made = lists()
    >>> len(made.texts), [query.text for query in made.queries][::15][:2]
    (60, ['Who likes velvet tea?', 'Who likes velvet tea and winter cake?'])
    """
    draw = random.Random(seed)
    things = [f"{one} {other}" for one in BEFORE for other in BEHIND]
    names = draw.sample([f"{one} {other}" for one in FIRST for other in LAST], DOCUMENTS)
    likes = [draw.sample(things, LIKES) for _ in names]
    texts = [draw.choice(WAYS).format(name, ", ".join(own)) for name, own in zip(names, likes, strict=True)]

    def having(thing: str) -> set[int]:
        return {row for row, own in enumerate(likes) if thing in own}

    queries: list[ListQuery] = []
    for kind in ("who", "and", "not"):
        while sum(query.kind == kind for query in queries) < each:
            one, other = draw.sample(things, 2)
            both = having(one) & having(other)
            if kind == "who":
                queries.append(ListQuery(f"Who likes {one}?", sorted(having(one)), [], kind))
            elif kind == "and" and both:
                queries.append(ListQuery(f"Who likes {one} and {other}?", sorted(both), [], kind))
            elif kind == "not" and both and having(one) - both:
                text = f"people who like {one} but not {other}"
                queries.append(ListQuery(text, sorted(having(one) - both), sorted(both), kind))
    return Lists(texts, queries)
