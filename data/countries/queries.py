"""Boolean queries by set operations over the atoms: seven templates, three splits, gold sets complete by construction.

Some atoms are held out for dev and test, and no combination of atoms is in two splits.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

from ...boolean import TEMPLATES, operators_of, render_original_query
from .atoms import Atom, all_atoms
from .phrasing import phrase
from .table import load_countries

SIZES = {"train": 215, "dev": 30, "test": 43}  # queries a template
LARGEST = 45  # countries in a gold set
LEAST_CHANGE = 0.15  # of the larger answer, that leaving an atom away must change
IMPLICIT_SHARE = 0.2  # of the queries with AND that leave it unsaid
HELD_OUT_SHARE = 0.2  # of the atoms of a family with at least HELD_OUT_FROM
HELD_OUT_FROM = 6
NEVER_HELD_OUT = frozenset({"continent", "membership:European Union"})  # families and keys that everybody asks for
NEVER_NEGATED = frozenset({"area", "population"})  # "that do not have fewer than a million people"
UNSEEN_SHARE = 0.5  # of the dev and test queries that hold a held-out atom
SAME_FAMILY_SHARE = 0.5  # of the queries that stay within a family, where the template suits it

Codes = frozenset[str]
# The templates that the countries are asked with.
_OPERATION: dict[str, Callable[..., Codes]] = {
    "_": lambda a: a,
    "_ or _": lambda a, b: a | b,
    "_ or _ or _": lambda a, b, c: a | b | c,
    "_ that are also _": lambda a, b: a & b,
    "_ that are also both _ and _": lambda a, b, c: a & b & c,
    "_ that are not _": lambda a, b: a - b,
    "_ that are also _ but not _": lambda a, b, c: (a & b) - c,
}


def answer(template: str, *sets: Codes) -> Codes:
    """The set that a template makes of its atomic sets.

    >>> sorted(answer("_ that are also _ but not _", frozenset("abc"), frozenset("bcd"), frozenset("c")))
    ['b']
    """
    return _OPERATION[template](*sets)


def is_worth_asking(template: str, *sets: Codes) -> bool:
    """Whether the answer is neither empty nor too large, and no atom could be dropped without a change that shows.

    >>> africa, saharan, landlocked = frozenset("abcd"), frozenset("ab"), frozenset("bxy")
    >>> is_worth_asking("_ that are also _", africa, landlocked), is_worth_asking("_ that are also _", africa, saharan)
    (True, False)
    """
    gold = answer(template, *sets)
    if not 0 < len(gold) <= LARGEST:
        return False
    return all(_differ(gold, _without(template, sets, slot)) for slot in range(len(sets))) if len(sets) > 1 else True


def _differ(gold: Codes, other: Codes) -> bool:
    return len(gold ^ other) >= LEAST_CHANGE * max(len(gold), len(other))


def _without(template: str, sets: tuple[Codes, ...], slot: int) -> Codes:
    """The answer without the atom of one slot. "A that are not B" has none without A: nothing is asked for then."""
    kept = [atom for i, atom in enumerate(sets) if i != slot]
    if template.endswith("not _"):
        if slot == len(sets) - 1:
            return frozenset.intersection(*kept)
        return kept[0] - kept[-1] if len(kept) > 1 else frozenset()
    return frozenset.union(*kept) if "or" in TEMPLATES[template] else frozenset.intersection(*kept)


@cache
def held_out() -> frozenset[str]:
    """The keys of the atoms that train never sees: a share of every large family, chosen by a hash of the key."""
    families: dict[str, list[str]] = {}
    for atom in all_atoms().values():
        families.setdefault(atom.family, []).append(atom.key)
    held: list[str] = []
    for family, keys in families.items():
        if len(keys) >= HELD_OUT_FROM and family not in NEVER_HELD_OUT:
            ranked = sorted(set(keys) - NEVER_HELD_OUT, key=lambda key: hashlib.sha256(key.encode()).digest())
            held += ranked[: round(len(keys) * HELD_OUT_SHARE)]
    return frozenset(held)


def country_queries(split: str) -> list[dict[str, Any]]:
    """The queries of one split in QUEST's schema.

    `metadata` holds `template`, `domain`, `atoms` (keys of `country_atoms`, in slot order) and `implicit`: true where
    the wording leaves an AND unsaid.

    >>> len(country_queries("dev")), sorted(country_queries("dev")[0])
    (210, ['docs', 'metadata', 'original_query', 'query'])
    """
    if split not in SIZES:
        raise ValueError(f"split must be one of {tuple(SIZES)}, got {split!r}")
    return [
        {**row, "docs": list(row["docs"]), "metadata": {**row["metadata"], "atoms": list(row["metadata"]["atoms"])}}
        for row in _all_queries()[split]
    ]


@cache
def _all_queries() -> dict[str, list[dict[str, Any]]]:
    """All splits together: test and dev choose their combinations first, train takes none of them."""
    taken: set[frozenset[str]] = set()
    texts: set[str] = set()
    splits: dict[str, list[dict[str, Any]]] = {}
    for split in ("test", "dev", "train"):
        rng = Random(f"countries {split}")
        rows = [row for template in _OPERATION for row in _fill(split, template, rng, taken, texts)]
        taken |= {frozenset(row["metadata"]["atoms"]) for row in rows}
        rng.shuffle(rows)
        splits[split] = rows
    return splits


def _fill(
    split: str, template: str, rng: Random, taken: set[frozenset[str]], texts: set[str]
) -> Iterator[dict[str, Any]]:
    """The queries of one split and template; single atoms may come back in another wording, combinations may not.

    A query's wording has a generator of its own, so that a change to one wording leaves the other queries alone.
    """
    used: Counter[frozenset[str]] = Counter()
    count = 0
    for combination in _combinations(split, template, rng):
        keys = frozenset(atom.key for atom in combination)
        if keys in taken or (keys in used and template != "_"):
            continue
        if not is_worth_asking(template, *(atom.members for atom in combination)):
            continue
        used[keys] += 1
        row = _row(template, combination, Random(f"{template} {[atom.key for atom in combination]} {used[keys]}"))
        if row["query"].lower() in texts:
            continue
        texts.add(row["query"].lower())
        yield row
        count += 1
        if count == SIZES[split]:
            return


def _combinations(split: str, template: str, rng: Random) -> Iterator[tuple[Atom, ...]]:
    """Endless candidates: distinct atoms, a family first so that the many borders do not crowd out the rest."""
    seen = _families(atom for atom in all_atoms().values() if atom.key not in held_out())
    unseen = _families(atom for atom in all_atoms().values() if atom.key in held_out())
    slots = template.count("_")
    if slots == 1:
        if split == "train":
            pool = [atom for family in seen.values() for atom in family]
        else:  # dev and test share the held-out atoms between them
            ordered = sorted((atom for family in unseen.values() for atom in family), key=lambda atom: atom.key)
            pool = ordered[1::5] + ordered[3::5] if split == "dev" else ordered[0::5] + ordered[2::5] + ordered[4::5]
        while True:
            yield from ((atom,) for atom in rng.sample(pool, len(pool)))
    while True:
        if slots > 1 and rng.random() < SAME_FAMILY_SHARE and "and" not in TEMPLATES[template]:
            family = rng.choice([atoms for atoms in seen.values() if len(atoms) >= slots])
            chosen = rng.sample(family, slots)
        else:
            chosen = [rng.choice(rng.choice(list(seen.values()))) for _ in range(slots)]
        if split != "train" and rng.random() < UNSEEN_SHARE:
            chosen[rng.randrange(slots)] = rng.choice(rng.choice(list(unseen.values())))
        if "not" in TEMPLATES[template] and chosen[-1].family in NEVER_NEGATED:
            continue
        if len({atom.key for atom in chosen}) == slots:
            yield tuple(chosen)


def _families(atoms: Iterator[Atom]) -> dict[str, list[Atom]]:
    """Atoms by family; the many families of a single atom or two form one, so that each atom gets its share."""
    families: dict[str, list[Atom]] = {}
    for atom in atoms:
        families.setdefault(_GATHERED.get(atom.family, atom.family), []).append(atom)
    return families


_GATHERED = {
    **dict.fromkeys(("landlocked", "island", "drives"), "plain"),
    **dict.fromkeys(("area", "population"), "size"),
    **dict.fromkeys(("mountains", "desert", "forest", "river", "basin", "lake"), "landmark"),
    **dict.fromkeys(("hemisphere", "tropic", "meridian"), "position"),
    **dict.fromkeys(("ruler", "independence", "successor"), "history"),
    **dict.fromkeys(("hosted", "council"), "fame"),
}


def _row(template: str, atoms: tuple[Atom, ...], rng: Random) -> dict[str, Any]:
    implicit = "and" in TEMPLATES[template] and rng.random() < IMPLICIT_SHARE
    query = phrase(template, atoms, rng, implicit)
    gold = answer(template, *(atom.members for atom in atoms))
    return {
        "query": query,
        "docs": [country.name for country in load_countries() if country.code in gold],
        "original_query": render_original_query(template, [atom.nouns[0] for atom in atoms]),
        "metadata": {
            "template": template,
            "domain": "countries",
            "atoms": [atom.key for atom in atoms],
            "implicit": not set(TEMPLATES[template]) <= set(operators_of(query)),
        },
    }
