"""Documents that say what things have and what they lack, and queries that exclude one of these things.

Everything said stands in kinds.json (what there is to have) and frames.json (how it is said). A document belongs to one
kind ("hotels") and treats each thing ("pool") in one of four ways: it has it, it says that it lacks it, it says
nothing about it, or it says something that comes near ("a restaurant stands across the street"), which counts as having
it or lacking it as the table tells. Dev and test have no document and no wording in common.
"""

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ...boolean import render_original_query

SPLITS = ("dev", "test")
DOCUMENTS = 40  # of each kind in a split
SHORTEST = 40  # words of a text
TEMPLATE = "_ that are not _"
HAS, DENIES, NEAR = "has", "denies", "near"
# How many of a kind's documents have a thing, deny it, or come near to it; the others are silent.
SHARES = {
    "denied": ((HAS, 13), (DENIES, 14)),
    "silent": ((HAS, 14),),
    "near": ((HAS, 10), (DENIES, 8), (NEAR, 6)),
}
JOINED = 0.4  # of what could be joined with the next statement

Table = dict[str, Any]


class Description(NamedTuple):
    """A document and what is true of it: `things` are those it has."""

    kind: str
    title: str
    text: str
    things: frozenset[str]
    statements: dict[str, str]  # {"pool": "denies", ...}: of what it speaks, and how


@cache
def _table(name: str) -> Table:
    table: Table = json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8"))
    return table


@cache
def descriptions(split: str) -> tuple[Description, ...]:
    """The documents of a split, in a fixed order.

    >>> len(descriptions("dev")), descriptions("dev")[0].kind
    (320, 'desserts')
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {SPLITS}, got {split!r}")
    return tuple(description for kind in _table("kinds") for description in _kind(kind, split))


def _kind(kind: str, split: str) -> list[Description]:
    table, rng = _table("kinds")[kind], Random(f"denials {kind}")
    first, second = table["titles"]
    titles = rng.sample([f"{one} {two}" for one in first for two in second], len(SPLITS) * DOCUMENTS)
    begin = SPLITS.index(split) * DOCUMENTS
    titles = titles[begin : begin + DOCUMENTS]
    rng = Random(f"denials {kind} {split}")
    spoken: list[dict[str, str]] = [{} for _ in titles]
    for thing, attribute in table["attributes"].items():
        ways = [way for way, count in SHARES[attribute["role"]] for _ in range(count)]
        for document, way in zip(rng.sample(spoken, len(ways)), ways, strict=True):
            document[thing] = way
    return [_describe(kind, split, title, said) for title, said in zip(titles, spoken, strict=True)]


def _describe(kind: str, split: str, title: str, said: dict[str, str]) -> Description:
    table, rng = _table("kinds")[kind], Random(f"denials {split} {title}")
    things = [thing for thing, way in said.items() if way == HAS or _counts(table, thing, way)]
    sentences = _sentences(table, split, said, rng)
    fillers = rng.sample(table["fillers"][split], len(table["fillers"][split]))
    opening = rng.choice(table["openings"][split]).format(title=title)
    while len(" ".join([opening, *sentences]).split()) < SHORTEST:
        sentences.insert(rng.randint(0, len(sentences)), fillers.pop())
    text = " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in [title, opening, *sentences])
    return Description(kind, title, text, frozenset(things), said)


def _counts(table: Table, thing: str, way: str) -> bool:
    return way == NEAR and table["attributes"][thing]["near"]["counts"] == HAS


def _sentences(table: Table, split: str, said: dict[str, str], rng: Random) -> list[str]:
    """One statement for each thing; now and then one sentence says two of them."""
    frames = _table("frames")[table["frame"]]
    things = rng.sample(list(said), len(said))
    plain = [thing for thing in things if said[thing] == DENIES and "denies" not in table["attributes"][thing]]
    sentences: list[str] = []
    if len(plain) >= 2 and rng.random() < JOINED:
        sentences.append(_fill(rng, frames["denies_two"][split], *(table["attributes"][thing] for thing in plain[:2])))
        things = [thing for thing in things if thing not in plain[:2]]
    before = ""
    for thing in things:
        attribute, way = table["attributes"][thing], said[thing]
        if way == NEAR:
            statement = attribute["near"][split]
        elif "denies" in attribute:
            statement = rng.choice(attribute[way][split])
        elif way == DENIES:
            statement = _fill(rng, frames["denies"][split], attribute)
        else:  # the thing's own sentences are more often used than the frames
            own = rng.random() < 0.75
            statement = rng.choice(attribute["has"][split]) if own else _fill(rng, frames["has"][split], attribute)
        if (before, way) == (HAS, DENIES) and rng.random() < JOINED:
            sentences[-1] += f", but {statement}"
            before = ""
        else:
            sentences.append(statement)
            before = way
    return sentences


def _fill(rng: Random, frames: list[str], *attributes: Table) -> str:
    """A frame for which the things have all words."""
    words: dict[str, str] = {}
    for number, attribute in zip(("", "2"), attributes, strict=False):
        words |= {f"{form}{number}": attribute[form] for form in ("bare", "a", "stem") if form in attribute}
    plural = attributes[0].get("plural", False)
    words |= {"is": "are" if plural else "is", "has": "have" if plural else "has"}
    usable = [frame for frame in frames if all(slot in words for slot in _slots(frame))]
    return rng.choice(usable).format(**words)


def _slots(frame: str) -> list[str]:
    return [piece.partition("}")[0] for piece in frame.split("{")[1:]]


def denial_documents(split: str) -> list[dict[str, str]]:
    """The documents in QUEST's schema."""
    return [{"title": description.title, "text": description.text} for description in descriptions(split)]


def denial_atoms(split: str) -> dict[str, list[int]]:
    """The documents of each kind, and those of a kind that have a thing, as row numbers.

    >>> atoms = denial_atoms("dev")
    >>> len(atoms["hotels"]), len(atoms["hotels: pool"])
    (40, 13)
    """
    atoms: dict[str, list[int]] = {}
    for row, description in enumerate(descriptions(split)):
        atoms.setdefault(description.kind, []).append(row)
        for thing in sorted(description.things):
            atoms.setdefault(f"{description.kind}: {thing}", []).append(row)
    return atoms


def denial_queries(split: str) -> list[dict[str, Any]]:
    """One query for each thing of each kind. `domain` is what documents do: "denied", "silent" or "near".

    >>> [row["query"] for row in denial_queries("dev") if row["metadata"]["atoms"][-1] == "hotels: pool"]
    ['hotels with no swimming pool']
    """
    rows = []
    for kind, table in _table("kinds").items():
        noun = table["nouns"][split]
        for thing, attribute in table["attributes"].items():
            rng = Random(f"denials query {split} {kind} {thing}")
            own = attribute.get("queries", {}).get(split)
            frames = _table("frames")[table["frame"]]["queries"][split]
            words = {"kind": noun, "bare": attribute["bare"], "a": attribute.get("a", attribute["bare"])}
            right = [each.title for each in descriptions(split) if each.kind == kind and thing not in each.things]
            rows.append(
                {
                    "query": rng.choice(own or frames).format(**words),
                    "docs": right,
                    "original_query": render_original_query(TEMPLATE, [noun, f"{noun} with {words['a']}"]),
                    "metadata": {
                        "template": TEMPLATE,
                        "domain": attribute["role"],
                        "atoms": [kind, f"{kind}: {thing}"],
                    },
                }
            )
    return rows
