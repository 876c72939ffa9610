"""Which of the things that were counted make good sets to ask for."""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

from ..labels import find_cues
from .counting import Counts
from .text_words import is_verb_form
from .words import DECADE, GENERIC, PREFIXES, STOP, YEAR, base_forms, plural

# How many candidates of a sort are looked up in all documents.
MOST = {"field": 6000, "kind": 3000, "relation": 6000, "name": 3000, "word": 3000, "phrase": 2000}


@dataclass(frozen=True)
class Sizes:
    """How many documents a set may hold: `low` to `high`, and up to `wide` beside a narrower one.

    >>> Sizes.of(195), Sizes.of(40_000)
    (Sizes(low=3, high=65, wide=117), Sizes(low=12, high=500, wide=24000))
    """

    low: int
    high: int
    wide: int

    @classmethod
    def of(cls, documents: int) -> "Sizes":
        return cls(3 + round(9 * min(1.0, documents / 20_000)), max(4, min(500, documents // 3)), int(0.6 * documents))


@dataclass(frozen=True)
class Atom:
    """A set of documents that one can ask for: "silent films", "films directed by John Ford", "films about chess"."""

    key: str  # its name in atoms.json
    sort: str  # kind, relation, name, word, phrase or field
    text: str
    relation: str = ""  # "directed by", "about"; for a field its name
    head: str | None = None  # what its documents are: films, novels
    roots: tuple[str, ...] = ()  # atoms that share a root are never asked for together
    forms: frozenset[Any] = field(default=frozenset(), repr=False, compare=False)  # entries of the tables it is made of
    mentions: frozenset[str] = field(default=frozenset(), repr=False, compare=False)  # words or a name that hint at it

    def fits(self, other: "Atom") -> bool:
        """Whether two atoms can stand in one query: they are about different things, and kinds of the same one."""
        if self.head and other.head and self.head != other.head:
            return False
        return self.words.isdisjoint(other.words)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that no other atom of a query may have: those of its text, and its roots."""
        return frozenset([*self.roots, *self.text.lower().replace("-", " ").split()])

    def side(self, seed: int, held_out: float) -> str | None:
        """Whether its roots are all for training or all held out; None where they are not on one side."""
        sides = {side_of(root, seed, held_out) for root in self.roots}
        return sides.pop() if len(sides) == 1 else None


def choose_atoms(counts: Counts, sizes: Sizes, seed: int = 0) -> list[Atom]:
    """Candidates of all sorts, at most `MOST` of each; their exact sets are not known yet."""
    vocabulary = Vocabulary(counts)
    atoms: list[Atom] = []
    for find, sort in zip((_fields, _kinds, _relations, _names, _words, _phrases), MOST, strict=True):
        found = find(counts, sizes, vocabulary)
        candidates = [atom for atom in found if not find_cues(f"{atom.relation} {atom.text}")]
        candidates.sort(key=lambda atom: atom.key)
        Random(f"{seed} {sort}").shuffle(candidates)
        atoms += candidates[: MOST[sort]]
    return atoms


class Vocabulary:
    """What the counts say about words: their inflections, and whether they are nouns, verbs or names."""

    def __init__(self, counts: Counts):
        self.counts = counts
        self.all = counts["words"]
        self.is_english = counts["nouns"].total() >= 0.2 * counts.documents  # "a", "the" and "his" are found
        self.capitals: Counter[str] = Counter()  # lower case -> how often it is capitalised within a sentence
        # Texts that are never said to be about something hold things, or mention them.
        self.about = "about" if counts["about"].total() >= 0.005 * counts.documents else "mentioning"
        self._written: dict[str, str] = {}  # lower case -> how it is then written mostly
        for text, count in sorted(counts["capitalised"].items(), key=lambda item: (item[1], item[0])):
            self.capitals[text.lower()] += count
            self._written[text.lower()] = text

    def stem(self, word: str) -> str:
        """The form that a word is an inflection of, where that form occurs in the texts as well."""
        for form in base_forms(word):
            if self.all[form] >= max(2, 0.02 * self.all[word]):
                return form
        return word

    def is_noun(self, word: str) -> bool:
        verbs, total = self.counts["verbs"][word], self.counts["words"][word]
        nouns = sum(self.counts[name][word] for name in ("nouns", "about", "used_with"))
        return nouns >= max(1, 0.15 * total) and nouns > 3 * verbs and not word.endswith("ly")

    def plural(self, noun: str) -> str:
        """The plural of a noun that has one: "films about teachers", but "about exile"."""
        nouns, countable = self.counts["nouns"][noun], self.counts["countable"][noun]
        attested = self.all[plural(noun)] >= max(2, 0.05 * self.all[noun])
        return plural(noun) if self.is_english and (attested or countable > 0.15 * nouns) else noun

    def is_verb(self, word: str) -> bool:
        verbs, total = self.counts["verbs"][word], self.counts["words"][word]
        return verbs >= 0.2 * total or (is_verb_form(word) and not self.is_noun(word))

    def capital_share(self, word: str) -> float:
        return self.capitals[word] / max(1, self.all[word])

    def is_part_of_names(self, word: str) -> bool:
        """Whether a word stands in longer names more often than by itself: a first name or a surname."""
        most = 0.7 if self.capital_share(word) > 0.5 else 2.0
        return self.counts["inside_names"][word] > most * self.counts["words"][word]

    def shown(self, word: str) -> str:
        """A word as it is mostly written."""
        return self._written[word] if self.capital_share(word) >= 0.5 else word


def side_of(root: str, seed: int, held_out: float) -> str:
    """On which side of the split the atoms of a root are: "train" or "dev"; the same in every run.

    >>> side_of("chess", 0, 0.0), side_of("chess", 0, 1.0)
    ('train', 'dev')
    """
    digest = hashlib.blake2b(f"{seed} {root}".encode(), digest_size=8).digest()
    return "dev" if int.from_bytes(digest, "big") / 2**64 < held_out else "train"


def _fields(counts: Counts, sizes: Sizes, vocabulary: Vocabulary) -> Iterator[Atom]:
    for (name, value), count in counts["fields"].items():
        if sizes.low <= counts.estimate(count) <= sizes.wide and len(value) <= 60:
            yield Atom(f"{name}:{value}", "field", value, name, None, (_root(value),), frozenset([(name, value)]))


def _kinds(counts: Counts, sizes: Sizes, vocabulary: Vocabulary) -> Iterator[Atom]:
    table = counts["kinds"]
    inside: Counter[tuple[str, str]] = Counter()  # how often a word stands in a pair that belongs together
    whole: set[tuple[str, str]] = set()
    for (text, head), count in table.items():
        words = text.split()
        if len(words) != 2:
            continue
        first, second = (table[word, head] for word in words)
        if count >= 0.5 * min(first, second) and count * counts["words"][head] > 2 * first * second:
            whole.add((text, head))
            inside.update(dict.fromkeys(((word, head) for word in words), count))
    doubles: dict[tuple[str, str], list[str]] = defaultdict(list)  # a comedy-drama is a comedy
    for (text, head), count in table.items():
        for part in text.split("-") if text.count("-") == 1 and text.split("-")[0] not in PREFIXES else ():
            if table[part, head] > count:
                doubles[part, head].append(text)
    for (text, head), count in table.items():
        words = text.split()
        if not sizes.low <= counts.estimate(count) <= sizes.wide or (len(words) == 2 and (text, head) not in whole):
            continue
        if inside[text, head] >= 0.8 * count or not {head, plural(head)}.isdisjoint(words):
            continue
        if any(word in GENERIC or word in STOP or word.endswith("ly") for word in words):
            continue
        root, shown, hints = vocabulary.stem(text), " ".join(map(vocabulary.shown, words)), frozenset(words)
        if YEAR.fullmatch(text) or DECADE.fullmatch(text):
            root, shown, hints = _root(text), text, frozenset()
        forms = frozenset([(text, head), *((double, head) for double in doubles[text, head])])
        yield Atom(f"kind:{text} {head}", "kind", shown, "", head, (root,), forms, hints)


def _relations(counts: Counts, sizes: Sizes, vocabulary: Vocabulary) -> Iterator[Atom]:
    """Verb and name, the verb in all its forms. A verb that leads to few different names says little about any."""
    names: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    verbs: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for (verb, preposition, name), count in counts["relations"].items():
        if not (preposition or verb.endswith("ing") or vocabulary.is_verb(verb)):
            continue
        stem = vocabulary.stem(verb)
        names[stem, preposition][name] += count
        verbs[stem, preposition][verb] += count
    enough = max(5, min(40, counts.documents // 250))
    for (stem, preposition), of_names in names.items():
        written = {verb: count for verb, count in verbs[stem, preposition].items() if is_verb_form(verb) or not verb}
        if len(of_names) < enough or not written:
            continue
        shown = max(written, key=lambda verb: written[verb])
        relation = f"{shown} {preposition}".strip()
        for name, count in of_names.items():
            if sizes.low <= counts.estimate(count) <= sizes.high and _is_whole(name):
                forms = frozenset((verb, preposition, name) for verb in verbs[stem, preposition])
                hints = frozenset([name])
                yield Atom(f"{relation}:{name}", "relation", name, relation, None, (_root(name),), forms, hints)


def _names(counts: Counts, sizes: Sizes, vocabulary: Vocabulary) -> Iterator[Atom]:
    parts: Counter[str] = Counter()
    for name, count in counts["names"].items():
        parts.update(dict.fromkeys(name.lower().split(), count))
    for name, count in counts["names"].items():
        if not sizes.low <= counts.estimate(count) <= sizes.high or not _is_whole(name):
            continue
        words = name.lower().split()
        if counts["words"][words[0]] > 0.25 * counts.documents:  # a function word that begins a sentence
            continue
        free = [vocabulary.capitals[word] > 0.5 * parts[word] for word in words]
        if all(free) or any(word.rstrip(".") in GENERIC for word in words):  # "American Western" is no name
            continue
        relation = vocabulary.about if counts["places"][name] > 0.4 * count else "with"
        yield Atom(f"name:{name}", "name", name, relation, None, (name.lower(),), frozenset([name]))


def _is_whole(name: str) -> bool:
    """Whether a name is one, and not the start of one: "William C."."""
    return len(name.split()[-1].rstrip(".")) > 1 and name.lower() not in GENERIC


def _words(counts: Counts, sizes: Sizes, vocabulary: Vocabulary) -> Iterator[Atom]:
    groups: dict[str, list[str]] = defaultdict(list)
    for word in counts["words"]:
        groups[vocabulary.stem(word)].append(word)
    for stem, forms in groups.items():
        count = sum(counts["words"][form] for form in forms)
        if not sizes.low <= counts.estimate(count) <= sizes.high or not is_topic(stem, forms, vocabulary):
            continue
        about = sum(counts["about"][form] for form in forms)
        used_with = sum(counts["used_with"][form] for form in forms)
        relation = "with" if used_with >= max(3, 0.1 * count, 4 * about) else vocabulary.about
        shown = vocabulary.shown(stem) if vocabulary.capital_share(stem) >= 0.5 else vocabulary.plural(stem)
        yield Atom(f"word:{stem}", "word", shown, relation, None, (stem,), frozenset(forms))


def is_topic(stem: str, forms: Iterable[str], vocabulary: Vocabulary) -> bool:
    """Whether a word says what a document is about: a noun of some content, or the name of a place."""
    if stem in GENERIC or any(form in GENERIC for form in forms) or vocabulary.is_part_of_names(stem):
        return False
    if not vocabulary.is_english:
        return len(stem) > 3
    if vocabulary.capital_share(stem) > 0.8:
        return vocabulary.counts["adjectives"][stem] < 0.5 * vocabulary.capitals[stem]
    has_plural = vocabulary.all[plural(stem)] > 0.05 * vocabulary.all[stem]
    about = any(vocabulary.counts["about"][form] for form in forms)
    return vocabulary.is_noun(stem) and (has_plural or about)


def _phrases(counts: Counts, sizes: Sizes, vocabulary: Vocabulary) -> Iterator[Atom]:
    """Words that stand together far more often than chance would have it, the last one a noun."""
    groups: dict[str, list[str]] = defaultdict(list)
    heads = {form for head in counts.heads for form in (head, plural(head))}
    for phrase in counts["phrases"]:
        words = phrase.split()
        if heads & set(words) or any(word in GENERIC or vocabulary.stem(word) in GENERIC for word in words):
            continue
        if any(map(vocabulary.is_verb, words)) or words[0].endswith("ly") or not vocabulary.is_noun(words[-1]):
            continue
        groups[" ".join([*words[:-1], vocabulary.stem(words[-1])])].append(phrase)
    for stem, forms in groups.items():
        count = sum(counts["phrases"][form] for form in forms)
        words = stem.split()
        chance = counts.documents * math.prod(counts["words"][word] / counts.documents for word in words)
        if sizes.low <= counts.estimate(count) <= sizes.high and chance and count > 8 * chance:
            shown = " ".join([*words[:-1], vocabulary.plural(words[-1])])
            rarest = min(words, key=lambda word: (counts["words"][word], word))
            root = vocabulary.stem(rarest)
            yield Atom(f"phrase:{stem}", "phrase", shown, vocabulary.about, None, (root,), frozenset(forms))


def _root(text: str) -> str:
    """What a value, a name or a year goes by: a year goes with its decade.

    >>> _root("1994"), _root("John Ford")
    ('1990s', 'john ford')
    """
    return f"{text[:3]}0s" if YEAR.fullmatch(text) or DECADE.fullmatch(text) else text.lower()
