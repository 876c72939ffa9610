"""Boolean queries over atomic sets: which atoms are asked for together, and which documents answer them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import combinations
from random import Random

import numpy as np

from ...boolean import TEMPLATES, render_original_query
from ..gold import Rows
from .atoms import Atom, Sizes
from .sets import AtomSets
from .wording import MEANINGS, Writer

# How often the sorts are asked for, where the documents have all of them.
WEIGHTS = {"field": 4.0, "kind": 3.5, "relation": 3.0, "word": 1.5, "phrase": 1.0, "name": 1.0}
SHARE = (0.1, 0.7)  # of A's documents that lie in B, so that "A but not B" says something
LEAST_GOLD = 2
_intersect = partial(np.intersect1d, assume_unique=True)
_COMPOSED = 4000  # attempts at kinds of two words: "1930s comedy films"
_TRIES = 40  # for each query that is wanted
_VAIN = 2000  # attempts in a row without a new query: few documents have no more to give
_NEIGHBOURS = 4  # documents of A that are asked which other sets they belong to


@dataclass(frozen=True)
class MadeQuery:
    """A query with its gold rows; its atoms are indices into the sets."""

    text: str
    original: str
    template: str
    atoms: tuple[int, ...]
    gold: Rows


def compose_kinds(sets: AtomSets, sizes: Sizes, seed: int = 0) -> AtomSets:
    """The sets, and those that two kinds make together: "1930s comedy films"."""
    rng = Random(f"{seed} kinds")
    kinds = [index for index, atom in enumerate(sets.atoms) if atom.sort == "kind"]
    atoms, members, hints = list(sets.atoms), list(sets.members), list(sets.hints)
    seen = {atom.key for atom in atoms}
    for _ in range(_COMPOSED if kinds else 0):
        one = rng.choice(kinds)
        document = int(rng.choice(sets.members[one]))
        near = [int(other) for other in sets.of_document(document) if sets.atoms[other].sort == "kind"]
        near = [other for other in near if sets.atoms[one].fits(sets.atoms[other])]
        if not near:
            continue
        other = rng.choice(near)
        rarer, commoner = sorted((one, other), key=lambda index: len(sets.members[index]))
        atom = _composed(sets.atoms[rarer], sets.atoms[commoner])
        both = _intersect(sets.members[one], sets.members[other])
        if atom.key not in seen and sizes.low <= len(both) <= min(sizes.high, 0.7 * len(sets.members[rarer])):
            seen.add(atom.key)
            atoms.append(atom)
            members.append(both)
            hints.append(_intersect(sets.hints[one], sets.hints[other]))
    return AtomSets(atoms, members, hints, sets.documents)


def _composed(rarer: Atom, commoner: Atom) -> Atom:
    """Years first, then peoples and places, and what is common next to the head: "1930s American crime drama films"."""
    first, second = sorted((rarer, commoner), key=lambda atom: (not atom.text[0].isdigit(), atom.text.islower()))
    text = f"{first.text} {second.text}"
    head = rarer.head
    return Atom(f"kind:{text} {head}", "kind", text, "", head, tuple(sorted({*rarer.roots, *commoner.roots})))


class QueryMaker:
    """Makes the queries of one side of the split: all their atoms are of that side."""

    def __init__(
        self, sets: AtomSets, sizes: Sizes, writer: Writer, side: str, *, seed: int = 0, held_out: float = 0.1
    ):
        self.sets, self.writer, self.side, self.seed = sets, writer, side, seed
        own = [index for index, atom in enumerate(sets.atoms) if atom.side(seed, held_out) == side]
        self.own = frozenset(own)
        narrow = [index for index in own if len(sets.members[index]) <= sizes.high]
        self.by_sort = {sort: [i for i in narrow if sets.atoms[i].sort == sort] for sort in WEIGHTS}
        self.by_sort = {sort: indices for sort, indices in self.by_sort.items() if indices}
        self.used: Counter[int] = Counter()

    def make(self, count: int) -> list[MadeQuery]:
        """Up to `count` queries, equally many of each template; fewer where the sets do not give more."""
        queries: list[MadeQuery] = []
        texts: set[str] = set()
        for place, template in enumerate(MEANINGS):
            wanted = (count + place) // len(MEANINGS)
            for query in self._of_template(template, wanted):
                if query.text.lower() not in texts:
                    texts.add(query.text.lower())
                    queries.append(query)
        Random(f"{self.seed} {self.side} order").shuffle(queries)
        return queries

    def _of_template(self, template: str, wanted: int) -> Iterator[MadeQuery]:
        rng = Random(f"{self.seed} {self.side} {template}")
        seen: set[frozenset[int]] = set()
        made = vain = 0
        for _ in range(_TRIES * wanted if self.by_sort else 0):
            if made == wanted or vain == _VAIN:
                return
            vain += 1
            atoms = self._atoms(template, rng)
            if atoms is None or frozenset(atoms) in seen or (gold := self._gold(template, atoms)) is None:
                continue
            seen.add(frozenset(atoms))
            written = self.writer.write(template, [self.sets.atoms[i] for i in atoms], rng)
            if written is None:
                continue
            text, nouns = written
            self.used.update(atoms)
            made, vain = made + 1, 0
            yield MadeQuery(text, render_original_query(template, nouns), template, atoms, gold)

    def _atoms(self, template: str, rng: Random) -> tuple[int, ...] | None:
        """Atoms for the blanks of a template, those of AND and NOT out of documents that they share."""
        atoms = [self._any(rng)]
        for _ in range(template.count("_") - 1):
            if "or" in TEMPLATES[template]:
                candidates = [self._any(rng, like=self.sets.atoms[atoms[0]]) for _ in range(3)]
            else:
                candidates = self._near(atoms, rng)
            chosen = self._fitting(candidates, atoms, rng)
            if chosen is None:
                return None
            atoms.append(chosen)
        return tuple(atoms)

    def _any(self, rng: Random, like: Atom | None = None) -> int:
        """A narrow atom: first a sort, then of three atoms the one used least. Half are of the sort of `like`."""
        sorts = list(self.by_sort)
        sort = rng.choices(sorts, [WEIGHTS[name] for name in sorts])[0]
        pool: Sequence[int] = self.by_sort[sort]
        if like is not None and like.sort in self.by_sort and rng.random() < 0.5:
            pool = self.by_sort[like.sort]
            pool = [
                i for i in rng.sample(pool, min(40, len(pool))) if self.sets.atoms[i].relation == like.relation
            ] or pool
        return min(rng.sample(pool, min(3, len(pool))), key=lambda index: self.used[index])

    def _near(self, atoms: Sequence[int], rng: Random) -> list[int]:
        """Other atoms of some of the documents that all of these atoms share."""
        shared = reduce(_intersect, (self.sets.members[index] for index in atoms))
        if not len(shared):
            return []
        rows = [int(rng.choice(shared)) for _ in range(_NEIGHBOURS)]
        found = {int(index) for row in rows for index in self.sets.of_document(row)}
        return sorted(found & self.own - set(atoms))

    def _fitting(self, candidates: Sequence[int], atoms: Sequence[int], rng: Random) -> int | None:
        """One of the candidates that fits these atoms, the sorts as often as their weights say."""
        by_sort: dict[str, list[int]] = defaultdict(list)
        for index in candidates:
            by_sort[self.sets.atoms[index].sort].append(index)
        for _ in range(min(_TRIES, 2 * len(candidates))):
            sort = rng.choices(list(by_sort), [WEIGHTS[name] for name in by_sort])[0]
            chosen = rng.choice(by_sort[sort])
            if all(self.sets.atoms[chosen].fits(self.sets.atoms[index]) for index in atoms):
                return chosen
        return None

    def _gold(self, template: str, atoms: Sequence[int]) -> Rows | None:
        """The documents that answer; None where the query would be pointless."""
        members = [self.sets.members[index] for index in atoms]
        if "or" in TEMPLATES[template] or len(atoms) == 1:
            gold = reduce(np.union1d, members)
            pairs = combinations(members, 2)
            alike = any(len(_intersect(one, other)) > 0.7 * min(len(one), len(other)) for one, other in pairs)
            return None if alike else gold.astype(np.int32)
        excludes = "not" in TEMPLATES[template]
        wanted = members[:-1] if excludes else members
        gold = reduce(_intersect, wanted)
        if len(wanted) > 1 and any(len(rows) - len(gold) < LEAST_GOLD for rows in wanted):
            return None  # one of them would say it all
        if excludes:
            share = len(_intersect(gold, members[-1])) / max(1, len(gold))
            if not SHARE[0] <= share <= SHARE[1]:
                return None
            # Whether a document that only mentions what is excluded belongs there is not known.
            gold = np.setdiff1d(gold, self.sets.hints[atoms[-1]], assume_unique=True)
        return gold.astype(np.int32) if len(gold) >= LEAST_GOLD else None
