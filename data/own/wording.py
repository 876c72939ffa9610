"""From atoms and a template to an English query, in the wordings of the project's Boolean sentences."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from ...boolean import template_operators
from ...boolean.operators import SHORT_NAMES
from ...boolean.word_lists import lists_under, read_lists
from ..labels import operators_of
from ..sentences.lists import BEING_FRAMES, FRAMES, TOPIC_FRAMES, WITH_FRAMES
from .atoms import Atom
from .words import DECADE, YEAR, plural

# The templates that queries are made of, and how the frames call them. One without frames is read, but none are made.
MEANINGS = {template: name.lower() for template, name in SHORT_NAMES.items() if name.lower() in FRAMES}
IMPLICIT = 0.3  # share of the AND queries that leave it unsaid: "silent films directed by John Ford"
SHARED = 0.5  # share of the queries about like atoms that name their relation once: "films about chess but not war"
BARE = 0.2  # share of the queries about topics that name no head: "chess but not war"
_LISTS = read_lists(Path(__file__).with_name("frames.txt"))
_BARE_FRAMES = lists_under(_LISTS, "bare")
_THREE_FRAMES = lists_under(_LISTS, "three")  # what TOPIC_FRAMES lacks
_WRAPPERS = ("{}",) * 12 + _LISTS["wrappers"]
_CLOSED = tuple(f"{word} " for word in _LISTS["closed"])
# Heads that people use for one another.
_SYNONYMS = {
    "film": ("films", "films", "movies"),
    "movie": ("movies", "movies", "films"),
    "recipe": ("recipes", "dishes"),
}
_NAME_RELATIONS = {
    "with": ("with", "with", "featuring"),
    "about": ("about", "about", "involving"),
    "mentioning": ("mentioning", "involving"),
}
_ATTEMPTS = 40


class Worded(NamedTuple):
    """An atom in words: as a noun phrase, as what stands after "are", and as relation and topic."""

    noun: str
    predicate: str
    relation: str = ""
    topic: str = ""
    before: str = ""  # what can stand before a head
    after: str = ""  # what can stand behind it


class Writer:
    """Writes queries about documents that are called `heads` (singular), the main one first."""

    def __init__(self, heads: Sequence[str]):
        self.heads = list(heads) or ["document"]
        self.bare = len(self.heads) == 1  # else "chess" alone would not say that films are wanted

    def write(self, template: str, atoms: Sequence[Atom], rng: Random) -> tuple[str, list[str]] | None:
        """A query and its atoms as noun phrases; None where no wording says the template's operators and no others."""
        wanted = set(template_operators(template))
        for _ in range(_ATTEMPTS):
            names = {atom.head or self.heads[0] for atom in atoms}
            called = {name: rng.choice(_SYNONYMS.get(name, (plural(name),))) for name in sorted(names)}
            worded = [word_atom(atom, called[atom.head or self.heads[0]], rng) for atom in atoms]
            head = next(iter(called.values())) if len(called) == 1 else ""
            implicit = "and" in wanted and rng.random() < IMPLICIT
            text = _draft(template, worded, head, rng, implicit, self.bare)
            if text and (found := operators_of(text)) <= wanted and (found == wanted or wanted - found == {"and"}):
                return text, [part.noun for part in worded]
        return None


def word_atom(atom: Atom, heads: str, rng: Random) -> Worded:
    """An atom in words, for documents called `heads`.

    >>> word_atom(Atom("kind:1930s film", "kind", "1930s", "", "film"), "films", Random(0)).predicate
    'from the 1930s'
    >>> word_atom(Atom("directed by:John Ford", "relation", "John Ford", "directed by"), "films", Random(0)).noun
    'films directed by John Ford'
    """
    if atom.sort == "kind":
        return _word_kind(atom, heads, rng)
    if atom.sort == "field":
        return _word_field(atom, heads, rng)
    relation, text = atom.relation, atom.text
    if atom.sort == "name":
        relation = rng.choice(_NAME_RELATIONS[relation])
        if rng.random() < 0.3:
            return Worded(f"{text} {heads}", f"{text} {heads}", relation, text, "", f"{relation} {text}")
    phrase = f"{relation} {text}"
    noun = f"{heads} {phrase}"
    return Worded(noun, phrase if _can_be(relation) else noun, relation, text, "", phrase)


def _can_be(relation: str) -> bool:
    """Whether it can follow "are": films are about chess; they are not starring anybody."""
    return not relation.endswith(("ing", "with"))


def _word_kind(atom: Atom, heads: str, rng: Random) -> Worded:
    text = atom.text
    first, _, rest = text.partition(" ")
    if YEAR.fullmatch(first) or DECADE.fullmatch(first):  # also "1930s comedy films"
        year = f"the {first}" if DECADE.fullmatch(first) else first
        before = f"{text} {heads}"
        if rng.random() < 0.5:
            return Worded(before, before, "from", year, text, "" if rest else f"from {year}")
        noun = f"{rest} {heads} from {year}".strip()
        return Worded(noun, noun if rest else f"from {year}", "from", year, text, "" if rest else f"from {year}")
    return Worded(f"{text} {heads}", f"{text} {heads}", "", text, text)


def _word_field(atom: Atom, heads: str, rng: Random) -> Worded:
    name, value = atom.relation.replace("_", " ").rpartition(".")[2], atom.text
    if value == "yes":  # a column of true and false
        return Worded(f"{name} {heads}", f"{name} {heads}", "", name, name)
    if YEAR.fullmatch(value):
        return Worded(f"{heads} from {value}", f"from {value}", "from", value, value, f"from {value}")
    if name.lower() in ("country", "countries", "city", "region", "origin", "nation", "state", "place", "location"):
        return Worded(f"{heads} from {value}", f"from {value}", "from", value, "", f"from {value}")
    singular = name[:-3] + "y" if name.endswith("ies") else name[:-1] if name.endswith("s") else name
    phrase = f"with the {singular} {value}"
    if value.isalpha() and rng.random() < 0.6:
        shown = value if value.isupper() or rng.random() < 0.5 else value.lower()
        return Worded(f"{shown} {heads}", f"{shown} {heads}", f"with the {singular}", value, shown, phrase)
    return Worded(f"{heads} {phrase}", phrase, f"with the {singular}", value, "", phrase)


def _draft(template: str, parts: Sequence[Worded], head: str, rng: Random, implicit: bool, bare: bool) -> str:
    meaning = MEANINGS[template]
    if implicit and head and (merged := _merged(parts, head, rng, "not" in meaning)):
        return _wrapped(merged, rng)
    relations = {part.relation for part in parts}
    topics = dict(zip("xyz", (part.topic for part in parts), strict=False))
    if head and len(relations) == 1 and "" not in relations and all(part.after for part in parts):
        if bare and relations <= {"about", "with", "featuring", "involving", "mentioning"} and rng.random() < BARE:
            return rng.choice(_BARE_FRAMES[meaning]).format(**topics)
        if len(parts) > 1 and rng.random() < SHARED:
            relation = next(iter(relations))
            frames = (*TOPIC_FRAMES.get(meaning, ()), *_THREE_FRAMES.get(meaning, ()))
            more = WITH_FRAMES if relation == "with" else BEING_FRAMES if _can_be(relation) else {}
            frames = tuple(frame for frame in (*frames, *more.get(meaning, ())) if "{g}" not in frame)
            return _wrapped(rng.choice(frames).format(h=head, r=relation, **topics), rng)
    nouns_only = not head or any(part.predicate == part.noun for part in parts)
    frames = tuple(frame for frame in FRAMES[meaning] if not (nouns_only and "{h}" in frame))
    words = {"h": head}
    for letter, part in zip("abc", parts, strict=False):
        words |= {letter.upper(): part.noun, letter: part.predicate}
    return _wrapped(rng.choice(frames).format(**words), rng)


def _merged(parts: Sequence[Worded], head: str, rng: Random, excludes: bool) -> str:
    """The first two or three atoms as one noun phrase: "silent films directed by John Ford", and what it excludes."""
    wanted, excluded = (parts[:2], parts[2]) if excludes else (parts, None)
    in_front = [part for part in wanted if part.before == part.topic or not part.after]
    behind = [part for part in wanted if part not in in_front]
    if len({part.relation for part in behind}) < len(behind):
        return ""  # "films about chess about war"
    in_front.sort(key=lambda part: not part.before[:1].isdigit())  # "1930s silent films"
    text = " ".join([*(part.before for part in in_front), head, *(part.after for part in behind)])
    if excluded is None:
        return text
    return rng.choice((f"{text} but not {excluded.noun}", f"{text} that are not {excluded.predicate}"))


def _wrapped(text: str, rng: Random) -> str:
    wrapper = rng.choice(_WRAPPERS)
    if (text.startswith(_CLOSED) and "some" in wrapper) or wrapper.startswith("which"):
        wrapper = "{}"
    return wrapper.format(text)
