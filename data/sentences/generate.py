"""G/P/N triplets: a Boolean sentence, two that mean the same, three that use its words to mean something else.

The words stay and the operator, or its place, changes: what tells P from N is the Boolean structure, never the topic.
"""

from random import Random
from typing import NamedTuple, TypedDict

from ...boolean import OPERATORS
from ...core.errors import DataError
from .lists import DOMAINS, Domain
from .writers import AtomWriter, TopicWriter

SPLITS = ("train", "dev")
TOPICS = 0.4  # the share of sentences with two atoms that are about topics


class Triplet(TypedDict):
    """SetBERT's schema."""

    G: str
    P: list[str]
    N: list[str]


# A meaning with the order in which it takes the atoms: ("a not b", "ba") is "b but not a".
Meaning = tuple[str, str]


class Plan(NamedTuple):
    """The meaning of G, the orders of atoms that keep it, and the meanings of N: `always`, and some of `others`."""

    share: float
    meaning: str
    orders: tuple[str, ...]
    always: tuple[Meaning, ...]
    others: tuple[Meaning, ...] = ()


_AND_OR: Meaning = ("a and (b or c)", "abc")
_LESS: tuple[Meaning, ...] = (("a not b", "ab"), ("a not b", "ba"), ("neither", "ab"))
_ORDERS = ("abc", "acb", "bac", "bca", "cab", "cba")
PLANS: dict[str, tuple[Plan, ...]] = {
    "and": (
        Plan(0.75, "a and b", ("ab", "ba"), (("a or b", "ab"),), _LESS),
        Plan(0.25, "a and b and c", _ORDERS, (_AND_OR, ("a and b not c", "abc"), ("a or b or c", "abc"))),
    ),
    "or": (
        Plan(0.75, "a or b", ("ab", "ba"), (("a and b", "ab"),), _LESS),
        Plan(0.25, "a or b or c", _ORDERS, (("a and b and c", "abc"), ("(a or b) not c", "abc"), ("none", "abc"))),
    ),
    "not": (
        Plan(0.55, "a not b", ("ab",), (("a not b", "ba"), ("a and b", "ab")), (("a or b", "ab"), ("neither", "ab"))),
        Plan(0.2, "not a", ("a",), (("a", "a"), ("a", "a"), ("a", "a"))),
        Plan(0.25, "a and b not c", ("abc", "bac"), (("a and b not c", "acb"), ("a and b and c", "abc"), _AND_OR)),
    ),
}


def boolean_sentences(operator: str, n: int, seed: int = 0, split: str = "train") -> list[Triplet]:
    """`n` triplets whose G has the operator; the same seed gives the same triplets. No G comes twice.

    The words that fill the sentences of "train" and "dev" are kept apart.

    >>> triplet = boolean_sentences("not", 1)[0]
    >>> {key: len(value) for key, value in triplet.items() if key != "G"}
    {'P': 2, 'N': 3}
    """
    if operator not in OPERATORS:
        raise ValueError(f"operator must be one of {OPERATORS}, got {operator!r}")
    if split not in SPLITS:
        raise ValueError(f"split must be one of {SPLITS}, got {split!r}")
    if n < 0:
        raise DataError(f"n must not be negative, got {n}")
    rng = Random(f"{operator}/{seed}/{split}")
    domains = [words_of(domain, split) for domain in DOMAINS]
    triplets: list[Triplet] = []
    seen: set[str] = set()
    tries = 20 * n + 100
    while len(triplets) < n and tries:
        tries -= 1
        triplet = _triplet(operator, rng.choice(domains), rng)
        if triplet["G"] not in seen and len({triplet["G"], *triplet["P"], *triplet["N"]}) == 6:
            seen.add(triplet["G"])
            triplets.append(triplet)
    if len(triplets) < n:
        raise DataError(f"the words give {len(triplets)} different {operator!r} sentences for {split!r}, asked for {n}")
    return triplets


_LISTS = ("adjectives", "phrases", "kinds", "topics")
# Every fourth word of each list is for dev, in whichever other list it stands.
_DEV = frozenset(word for domain in DOMAINS for name in _LISTS for word in getattr(domain, name)[3::4])


def words_of(domain: Domain, split: str) -> Domain:
    """The domain with the words of one split."""
    adjectives, phrases, kinds, topics = (
        tuple(word for word in getattr(domain, name) if (word in _DEV) == (split == "dev")) for name in _LISTS
    )
    return domain._replace(adjectives=adjectives, phrases=phrases, kinds=kinds, topics=topics)


def _triplet(operator: str, domain: Domain, rng: Random) -> Triplet:
    plans = PLANS[operator]
    plan = rng.choices(plans, [plan.share for plan in plans])[0]
    size = len(plan.orders[0])
    about_topics = size == 2 and rng.random() < TOPICS
    writer = TopicWriter(domain, rng) if about_topics else AtomWriter(domain, size, rng)
    same = writer.write(plan.meaning, [rng.choice(plan.orders) for _ in range(3)])
    opposed = [*plan.always, *rng.sample(plan.others, 3 - len(plan.always))]
    others: list[str] = []
    for meaning in dict.fromkeys(name for name, _ in opposed):
        others += writer.write(meaning, [order for name, order in opposed if name == meaning])
    rng.shuffle(others)
    return {"G": same[0], "P": same[1:], "N": others}
