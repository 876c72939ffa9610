"""From a meaning and its words to English sentences."""

from random import Random
from typing import NamedTuple

from ...boolean import augment
from .lists import BEING_FRAMES, CLAUSES, CLOSED, FRAMES, TOPIC_FRAMES, WITH_FRAMES, WRAPPERS, Domain

AUGMENTED = 0.1  # the share of sentences whose cues are replaced once more


class Atom(NamedTuple):
    """A set of things: as a noun phrase, and as what stands after "are"."""

    noun: str
    predicate: str
    slot: str


class AtomWriter:
    """Writes about one to three attributes: "French films that are also set in Paris"."""

    def __init__(self, domain: Domain, size: int, rng: Random):
        self.rng = rng
        self.head = rng.choice(domain.heads)
        self.atoms = dict(zip("abc", _atoms(domain, self.head, size, rng), strict=False))
        # "films that are both French and thrillers" is no good English, "French films that are also thrillers" is.
        self.mixed = size > 1 and any(atom.slot == "kind" for atom in self.atoms.values())

    def write(self, meaning: str, orders: list[str]) -> list[str]:
        """A sentence for each order of the atoms, all in different wordings."""
        frames = FRAMES[meaning]
        if self.mixed:
            headless = tuple(frame for frame in frames if "{h}" not in frame)
            frames = headless if len(headless) >= max(3, len(orders)) else frames
        chosen = self.rng.sample(frames, len(orders))
        return [
            _finish(self._core(frame, meaning, order), self.rng) for frame, order in zip(chosen, orders, strict=True)
        ]

    def _core(self, frame: str, meaning: str, order: str) -> str:
        atoms = [self.atoms[name] for name in order]
        if meaning == "a not b" and _takes_non(atoms) and self.rng.random() < 0.3:
            return f"non-{atoms[1].predicate} {atoms[0].noun}"
        nouns_only = self.mixed and "{h}" in frame
        words = {"h": self.head}
        for name, atom in zip("abc", atoms, strict=False):
            words[name.upper()], words[name] = atom.noun, atom.noun if nouns_only else atom.predicate
        return frame.format(**words)


class TopicWriter:
    """Writes about two topics: "films about chess as well as grief"."""

    def __init__(self, domain: Domain, rng: Random):
        self.rng = rng
        self.words = {"h": rng.choice(domain.heads), "r": domain.relation, "g": domain.group}
        self.topics = dict(zip("ab", rng.sample(domain.topics, 2), strict=True))

    def write(self, meaning: str, orders: list[str]) -> list[str]:
        """A sentence for each order of the topics, all in different wordings."""
        frames = TOPIC_FRAMES[meaning] + (WITH_FRAMES if self.words["r"] == "with" else BEING_FRAMES)[meaning]
        cores = [
            frame.format(x=self.topics[order[0]], y=self.topics[order[1]], **self.words)
            for frame, order in zip(self.rng.sample(frames, len(orders)), orders, strict=True)
        ]
        return [_finish(core, self.rng) for core in cores]


def _atoms(domain: Domain, head: str, size: int, rng: Random) -> list[Atom]:
    """Attributes of different kinds, so that one thing may well have them all."""
    slots = rng.sample(("adjective", "phrase", "kind"), min(size, 3))
    if size == 3 and rng.random() < 0.5:
        slots = rng.sample(("adjective", "phrase", "phrase"), 3)
    phrases = iter(rng.sample(domain.phrases, 2))
    atoms = []
    for slot in slots:
        match slot:
            case "adjective":
                word = rng.choice(domain.adjectives)
                atoms.append(Atom(f"{word} {head}", word, slot))
            case "phrase":
                word = next(phrases)
                atoms.append(Atom(f"{head} {word}", word, slot))
            case _:
                word = rng.choice(domain.kinds)
                atoms.append(Atom(word, word, slot))
    return atoms


def _takes_non(atoms: list[Atom]) -> bool:
    """Whether "a but not b" may be said with a prefix, which goes with origins: "non-French films set in Paris"."""
    first, second = atoms
    origin = second.slot == "adjective" and second.predicate[0].isupper() and "-" not in second.predicate
    return origin and first.slot != "adjective"


def _finish(core: str, rng: Random) -> str:
    """Make a query, a request, a question or a statement of a wording."""
    if rng.random() < AUGMENTED and " nor " not in core:
        core, _ = augment(core, rng)
    relative = " that are" if " that are" in core else " which are"
    if core.count(relative) == 1 and not {":", ","} & set(core) and rng.random() < 0.25:
        text = rng.choice(CLAUSES).format(core=core.replace(relative, " are"))
    else:
        wrapper = rng.choice(WRAPPERS)
        text = wrapper.replace("some ", "").format(core=core) if core.startswith(CLOSED) else wrapper.format(core=core)
    return text[0].upper() + text[1:] if rng.random() < 0.5 else text
