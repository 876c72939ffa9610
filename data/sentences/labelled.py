"""Sentences as people type them, with the words that each operator reaches: what the scope reader learns from.

Questions, requests and bare queries; exclusions at the end, in front, in the middle, in brackets and in a sentence of
their own; and as many that hold a NOT word and exclude nothing. A sentence knows what it excludes, because it was built
that way. The parser (`boolean/parts.py`) says exactly where the excluded words begin and end, wherever it agrees.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from ...boolean import Cue, read_parts
from .generate import SPLITS, words_of
from .names import Names
from .words import DOMAINS

Span = tuple[int, int]
SHARES = {
    "end": 24,
    "front": 7,
    "middle": 8,
    "own sentence": 6,
    "relative": 12,
    "or": 7,
    "and": 5,
    "no exclusion": 16,
    "plain": 15,
}
AGREES = 0.5  # of the excluded characters: above it the parser's exact ends are taken


class Sentence(NamedTuple):
    """A text, its operators, its cues, and the spans that each operator reaches."""

    text: str
    operators: tuple[str, ...]
    cues: tuple[Cue, ...]
    scopes: dict[str, tuple[Span, ...]]


# {B} is what is excluded, {W} what is wanted as a question or request, without its closing mark.
_END_CUES = (
    *("excluding", "except", "except for", "apart from", "aside from", "other than", "but not", "without"),
    *("without mentioning", "without including", "without discussing", "with the exception of", "not including"),
    *("leaving out", "but leave out", "but not including", "besides", "omitting", "without considering"),
    *("without regard to", "not counting", "but excluding", "without any mention of", "and not", "rather than"),
    *("but do not mention", "but don't include", "but please avoid mentioning", "without focusing on", "save for"),
    *("but without", "while excluding", "without taking into account", "and leave out", "without referring to"),
)
_COMMA_FREE = (
    "excluding",
    "except",
    "other than",
    "apart from",
    "but not",
    "without",
    "besides",
    "aside from",
    "and not",
)
_FRONT_CUES = (
    *("Apart from", "Aside from", "Except for", "Besides", "Other than", "Excluding", "With the exception of"),
    *("Without considering", "Without mentioning", "Leaving out", "Not including", "Not counting", "Without including"),
)
# "In addition to X, what other ...?" asks for more than X, so X is no answer.
_OTHERS = (
    *("what other {nouns} did {name} {verb}", "what else do we know about {name}", "who else {verbed} {thing}"),
    *("which other {heads} are {pred}", "what other {nouns} are there in {place}", "where else did {name} work"),
    *("which other {nouns} does {org} have", "who else was in {event}", "what else did {name} {verb} in {year}"),
)
_OWN = (
    *("Please exclude {B}.", "Do not mention {B}.", "Please leave out {B}.", "Don't include {B}.", "Exclude {B}."),
    *("Please do not include {B}.", "Avoid mentioning {B}.", "Leave out {B}, please.", "Please omit {B}."),
)
_AFTER = (
    *(", and how did {name} {verb} {thing}", ", and what is {fact}", ", and when was {fact} first described"),
    *(", and why does it matter", ", and where can I find {heads}"),
)
_FILLERS = (
    "",
    "",
    "",
    "",
    "any mention of ",
    "any information about ",
    "details about ",
    "anything related to ",
    "information on ",
)
_OPENINGS = (
    *(
        "I have read a lot about {topic} lately.",
        "My class is working on {topic}.",
        "We are preparing a talk about {place}.",
    ),
    *("{name} told me about {fact}.", "Last year I visited {place} with a friend who studies {topic}."),
    *("There is a report on {fact} from {year}.", "I am writing a paper on {topic} and {topic2}."),
)
_QUESTIONS = (
    *("What is {fact}", "What are {facts}", "What do we know about {fact}", "What is known about {name}'s {noun}"),
    *("Who founded {org}", "Who was {name}", "Who won {award} in {year}", "Who wrote {title}", "Who played in {title}"),
    *("Which {heads} are {pred}", "Which {heads} does {name} recommend", "Which {nouns} did {name} {verb}"),
    *("How did {name} {verb} {thing}", "How does {topic} affect {fact}", "How is {topic} used in {topic2}"),
    *(
        "Where is {fact} found",
        "Where did {name} work",
        "When did {org} {verb} {thing}",
        "Why is {topic} important for {topic2}",
    ),
    *(
        "What other {nouns} has {name} been involved in",
        "What role did {name} play in {event}",
        "What {nouns} were {verbed} in {place}",
    ),
    *(
        "What are the effects of {topic} on {fact}",
        "What are some uses of {topic}",
        "What causes {fact}",
        "What does {title} say about {topic}",
    ),
    *(
        "In which {nouns} did {name} appear",
        "What could cause {fact} or {fact2}",
        "What are the {nouns} of {org} and where are they made",
    ),
)
_REQUESTS = (
    *(
        "Tell me about {fact}",
        "Can you tell me about {name}'s {noun}",
        "List {heads} that are {pred}",
        "Give me {heads} {phrase}",
    ),
    *(
        "Can you explain {fact}",
        "Could you describe how {name} {verbed} {thing}",
        "Please introduce {org} and its {nouns}",
    ),
    *(
        "Show me {heads} {phrase}",
        "I want to know about {fact}",
        "I am looking for {heads} {phrase}",
        "Find {nouns} about {topic}",
    ),
    *("Recommend some {heads} {phrase}", "Can you list some {nouns} by {name}", "I need an overview of {topic}"),
)
_BARE = (
    *(
        "{heads} {phrase}",
        "{adjective} {heads}",
        "{kinds}",
        "{nouns} about {topic}",
        "{nouns} by {name}",
        "{topic} in {place}",
    ),
    *(
        "{adjective} {kinds} {phrase}",
        "{fact}",
        "{nouns} set in {place}",
        "{heads} of {place}",
        "{year} {nouns}",
        "{name} {noun}",
    ),
)
_NOTHING_EXCLUDED = (
    # "non-fiction" names a kind of its own.
    *("{year} non-fiction {nouns} about {topic}", "non-fiction books by {name}", "non-profit {nouns} in {place}"),
    *("non fiction books about {topic}", "{nouns} based on non-fiction books", "{adjective} non-fiction {nouns}"),
    *("non-stop flights to {place}", "non-linear {topic}", "non-governmental {nouns} of {place}", "nonprofit {org}"),
    *("non-fiction {topic} books from {year}", "{name}'s non-fiction {nouns}", "{year} {org}, non fiction {nouns}"),
    *(
        "Which {heads} do not {verb} {thing}?",
        "Why did {name} never {verb} {thing}?",
        "Who had no interest in {topic}?",
    ),
    *(
        "Why is there no {topic} in {place}?",
        "{name} did not {verb} {thing} in {year}.",
        "What happens if {topic} is not treated?",
    ),
    *(
        "Is it true that {name} is not {pred}?",
        "Does {topic} help or not?",
        "Why can't {name} {verb} {thing}?",
        "no one {verbed} {thing}",
    ),
    *(
        "{name} not only {verbed} {thing} but also {verbed2} {thing2}.",
        "Not only {topic} but also {topic2} matters for {fact}.",
    ),
    *(
        "What is the meaning of the song No More {Noun}?",
        "Who wrote the novel Not Without {name}?",
        "Who directed No {Noun} for {name}?",
    ),
    *(
        "There is no doubt that {fact} is {pred}.",
        "{org} is no longer in {place}.",
        "whether or not {topic} affects {topic2}",
    ),
    *(
        "Who has never {verbed} {thing}?",
        "What did {name} not {verb}?",
        "Why don't {heads} {verb} {thing}?",
        "When did {name} have no {noun}?",
    ),
    *(
        "How can {topic} not be {pred}?",
        "Nobody knows where {name} was born.",
        "It was not until {year} that {name} {verbed} {thing}.",
    ),
    *(
        "Which {noun} was not {verbed} by {name}?",
        "no later than {year} in {place}",
        "What can I do if I can not {verb} {thing}?",
    ),
    *(
        "{name} could not {verb} {thing} because of {event}.",
        "The {noun} is nothing but {topic}.",
        "Is {topic} not the same as {topic2}?",
    ),
    *(
        "Which {noun} hasn't {name} {verbed}?",
        "Why isn't {fact} {pred}?",
        "{topic} does not depend on {topic2}.",
        "never before seen {nouns}",
    ),
    *(
        "Has {name} not {verbed} {thing}?",
        "What if there were no {topic}?",
        "Isn't {name} from {place}?",
        "Neither did {name} in {year}.",
    ),
    *(
        "Who was not able to {verb} {thing}?",
        "Why was {name} not {verbed} by {org}?",
        "The {noun} was not {pred}, as {name} said.",
    ),
)
_PLAIN = (
    *(
        "{name} {verbed} {thing} in {year}.",
        "{org} is based in {place}.",
        "{fact} was first described in {year} by {name}.",
    ),
    *(
        "{title} is about {topic}.",
        "In {year} {name} moved to {place}, where {org} {verbed} {thing}.",
        "The {noun} of {name} is {pred}.",
    ),
    *(
        "how to {verb} {thing}",
        "best {heads} for {topic}",
        "define {topic}",
        "{topic} symptoms",
        "what is {topic}",
        "who is {name}",
    ),
)
_RELATIVES = (
    *(
        "{heads} that are not {B_pred}",
        "{heads} that aren't {B_pred}",
        "{heads} which are not {B_pred}",
        "{adjective} {heads} that are not {B_pred}",
    ),
    *(
        "{heads} {phrase} but not {B_pred}",
        "{heads} that are {pred} but not {B_pred}",
        "{kinds} that are not {B_pred}",
        "{kinds}, not {B_kinds}",
    ),
    *(
        "{heads} that do not have {B_thing}",
        "{heads} that don't include {B_thing}",
        "{nouns} that do not involve {B_topic}",
        "{heads} without {B_topic}",
    ),
    *(
        "Which {heads} are {pred} but not {B_pred}?",
        "Who {verbed} {thing} but didn't {B_act}?",
        "What defines {fact} but does not involve {B_fact}?",
    ),
    *(
        "Which {noun} was {verbed} in {place} but isn't {B_name}?",
        "{nouns} by {name} that are not about {B_topic}",
        "non-{B_adjective} {heads}",
    ),
    *(
        "{heads} that are neither {B_pred} nor {B_pred2}",
        "{nouns} about {topic} but not {B_topic}",
        "{kinds} lacking {B_topic}",
    ),
    *(
        "Did {name} {verb} {thing} but not {B_act}?",
        "{heads} that are {pred} and not {B_pred}",
        "any {heads} but {B_kinds}",
    ),
    *("What is true of {topic} but not of {B_topic}?", "What does {title} say about {topic} but not about {B_topic}?"),
)
_MIDDLES = (
    *(
        "{heads} (not {B_kinds}) {phrase}",
        "{heads}, excluding {B_kinds}, that are {pred}",
        "Which {heads} other than {B_kinds} are {pred}?",
    ),
    *(
        "Who besides {B_name} {verbed} {thing}?",
        "What {nouns} apart from {B_title} did {name} {verb}?",
        "{heads} (excluding {B_kinds}) in {place}",
    ),
    *(
        "Which {nouns}, apart from {B_title}, were {verbed} by {name}?",
        "the {nouns} of {name}, except {B_title}, in order",
    ),
    *(
        "Who else other than {B_name} {verbed} {thing} in {year}?",
        "{nouns} about {topic} (but not {B_topic}) by {name}",
    ),
    *(
        "Where else has {name} worked besides {B_org}?",
        "{kinds} other than {B_kinds} from {place}",
        "everyone except {B_name} who {verbed} {thing}",
    ),
)
_ALTERNATIVES = (
    *(
        "{adjective} or {adjective2} {heads}",
        "{heads} {phrase} or {phrase2}",
        "{kinds} or {kinds2}",
        "either {kinds} or {kinds2}",
    ),
    *(
        "{nouns} about {topic} or {topic2}",
        "{nouns} by {name} or {name2}",
        "{topic} or {topic2} in {place}",
        "{kinds}, {kinds2} or {nouns}",
    ),
    *(
        "{heads} that are {pred} or {pred2}",
        "{nouns} set in {place} or {place2}",
        "Which {heads} are either {pred} or {pred2}?",
    ),
)
_JOINED = (
    *(
        "{heads} that are both {pred} and {pred2}",
        "{adjective} {heads} that are also {pred}",
        "{nouns} about {topic} and {topic2}",
    ),
    *(
        "{nouns} by {name} as well as {name2}",
        "{heads} {phrase} that are also {pred}",
        "{topic} together with {topic2}",
    ),
)


def labelled_sentences(n: int, seed: int = 0, split: str = "train") -> list[Sentence]:
    """`n` sentences; the same seed gives the same ones. The words of "train" and "dev" are kept apart.

    >>> sentence = labelled_sentences(1, seed=3)[0]
    >>> set(sentence.scopes) <= {"and", "or", "not"}
    True
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {SPLITS}, got {split!r}")
    writer = _Writer(Random(f"labelled/{seed}/{split}"), split)
    found: dict[str, Sentence] = {}
    tries = 0
    while len(found) < n and tries < 3 * n + 100:
        tries += 1
        sentence = writer.sentence()
        found.setdefault(sentence.text, sentence)
    return list(found.values())


class _Writer:
    """Fills frames and remembers which of their words are excluded."""

    def __init__(self, rng: Random, split: str):
        self.rng = rng
        self.names = Names(rng, split)
        self.domains = [words_of(domain, split) for domain in DOMAINS]
        self.kinds: dict[str, Callable[[], list[tuple[str, bool]]]] = {
            "end": self._end,
            "front": self._front,
            "middle": lambda: self._fill(self._choice(_MIDDLES)),
            "own sentence": self._own_sentence,
            "relative": lambda: self._fill(self._choice(_RELATIVES)),
            "or": lambda: self._maybe_asked(_ALTERNATIVES),
            "and": lambda: self._maybe_asked(_JOINED),
            "no exclusion": lambda: self._fill(self._choice(_NOTHING_EXCLUDED)),
            "plain": self._plain,
        }

    def sentence(self) -> Sentence:
        kind = self.rng.choices(list(SHARES), list(SHARES.values()))[0]
        pieces = self.kinds[kind]()
        if self.rng.random() < 0.15:
            pieces = [*self._fill(self._choice(_OPENINGS)), (" ", False), *pieces]
        if self.rng.random() < 0.3:
            pieces = [(text.lower(), inside) for text, inside in pieces]
        if self.rng.random() < 0.2 and pieces[-1][0].endswith(("?", ".")) and not pieces[-1][1]:
            pieces[-1] = (pieces[-1][0][:-1], False)
        return _labelled(pieces)

    def _end(self) -> list[tuple[str, bool]]:
        wanted, mark = self._wanted()
        cue = self._choice(_END_CUES)
        comma = ", " if cue not in _COMMA_FREE or self.rng.random() < 0.5 else " "
        pieces = [*wanted, (f"{comma}{cue} ", False), *self._excluded()]
        if mark == "?" and self.rng.random() < 0.15:
            pieces += self._fill(self._choice(_AFTER))
        return [*pieces, (mark, False)]

    def _front(self) -> list[tuple[str, bool]]:
        if self.rng.random() < 0.4:
            cue, wanted, mark = self._choice((*_FRONT_CUES, "In addition to")), self._fill(self._choice(_OTHERS)), "?"
        else:
            cue = self._choice(_FRONT_CUES)
            wanted, mark = self._wanted(asked=True)
            wanted[0] = (wanted[0][0][:1].lower() + wanted[0][0][1:], False)
        return [(f"{cue} ", False), *self._excluded(), (", ", False), *wanted, (mark, False)]

    def _own_sentence(self) -> list[tuple[str, bool]]:
        wanted, mark = self._wanted(asked=True)
        before, _, after = self._choice(_OWN).partition("{B}")
        pieces = [*wanted, (f"{mark or '.'} {before}", False), *self._excluded(), (after, False)]
        if self.rng.random() < 0.2:
            pieces += [(" ", False), *self._fill(self._choice(_PLAIN))]
        return pieces

    def _plain(self) -> list[tuple[str, bool]]:
        if self.rng.random() < 0.5:
            return self._fill(self._choice(_PLAIN))
        wanted, mark = self._wanted()
        pieces = [*wanted, (mark, False)]
        if self.rng.random() < 0.3:
            pieces += [(" ", False), *self._fill(self._choice(_PLAIN))]
        return pieces

    def _maybe_asked(self, frames: Sequence[str]) -> list[tuple[str, bool]]:
        pieces = self._fill(self._choice(frames))
        if self.rng.random() < 0.25 and not pieces[-1][0].endswith("?"):
            pieces += [(f", {self._choice(('but not', 'excluding', 'except', 'without'))} ", False), *self._excluded()]
        if self.rng.random() < 0.3 and not pieces[0][0][:1].isupper():
            pieces = [(self._choice(("Find ", "Show me ", "I am looking for ", "list ")), False), *pieces]
        return pieces

    def _wanted(self, asked: bool = False) -> tuple[list[tuple[str, bool]], str]:
        group = self.rng.choices(("question", "request", "bare"), (5, 2, 0 if asked else 3))[0]
        frames = {"question": _QUESTIONS, "request": _REQUESTS, "bare": _BARE}[group]
        mark = {"question": "?", "request": self._choice((".", "?", "")), "bare": ""}[group]
        pieces = self._fill(self._choice(frames))
        if group == "question" and self.rng.random() < 0.15:
            pieces += self._fill(self._choice((" and what is {fact}", " in {place}", " during {event}", " and why")))
        return pieces, mark

    def _excluded(self) -> list[tuple[str, bool]]:
        """One to three things, with what may stand before them."""
        count = self.rng.choices((1, 2, 3), (7, 3, 1))[0]
        items = [self._thing() for _ in range(count)]
        joiner = self._choice((" and ", " or "))
        text = items[0] if count == 1 else ", ".join(items[:-1]) + joiner + items[-1]
        return [(self._choice(_FILLERS), False), (text, True)]

    def _thing(self) -> str:
        frames = (
            *(
                "{name}",
                "{title}",
                "{org}",
                "{topic}",
                "{fact}",
                "{kinds}",
                "{event}",
                "the {noun} of {name}",
                "{place}",
            ),
            *(
                "its {noun} in {place}",
                "the {adjective} {kinds}",
                "{name}'s {noun} at {org}",
                "the {nouns} from {year}",
            ),
            *(
                "the role of {name} in {event}",
                "how {topic} affects {topic2}",
                "{nouns} about {topic}",
                "{heads} {phrase}",
            ),
            *("the influence of {org} on {topic}", "those {phrase}", "their {noun} as {nouns} of {place}"),
            *("{name}, the founder of {org}", "{title}, a {noun} by {name}", "{title} ({year})", "{org} ({name})"),
            *(
                "{name} (born {year})",
                "{name}, who {verbed} {thing}",
                "{place}, {place2}",
                "being {verbed} by {org} in {year}",
            ),
            *(
                "{name} and {name2}",
                "{verbing} {thing} for {org}",
                "the {adjective} {noun} {name}",
                "its connection with {title}",
            ),
            *("{title}, an {adjective} {noun} from {year}", "{name} of {org}", "the {noun} {title} in {year}"),
        )
        return "".join(text for text, _ in self._fill(self._choice(frames)))

    def _fill(self, frame: str) -> list[tuple[str, bool]]:
        """The frame with its slots filled; a slot {B_...} is excluded."""
        domain = self.rng.choice(self.domains)
        pieces: list[tuple[str, bool]] = []
        rest = frame
        while "{" in rest:
            text, _, rest = rest.partition("{")
            slot, _, rest = rest.partition("}")
            excluded = slot.startswith("B_")
            name = slot.removeprefix("B_").rstrip("2")
            pieces += [(text, False), (self.names.slot(name, domain), excluded)]
        return [piece for piece in [*pieces, (rest, False)] if piece[0]]

    def _choice(self, options: Sequence[str]) -> str:
        return self.rng.choice(options)


def _labelled(pieces: Sequence[tuple[str, bool]]) -> Sentence:
    text = "".join(piece for piece, _ in pieces)
    meant, start = [], 0
    for piece, excluded in pieces:
        if excluded:
            meant.append((start, start + len(piece)))
        start += len(piece)
    reading = read_parts(text)
    scopes = {name: reading.scopes(name) for name in ("and", "or", "not")}
    if _overlap(meant, scopes["not"]) < AGREES:
        scopes["not"] = tuple(meant)
    operators = tuple(name for name in ("and", "or", "not") if any(cue.operator == name for cue in reading.cues))
    return Sentence(text, operators, reading.cues, {name: spans for name, spans in scopes.items() if spans})


def _overlap(first: Sequence[Span], second: Sequence[Span]) -> float:
    """How far two sets of characters agree: 1 where they are the same, both empty included.

    >>> _overlap([(0, 4)], [(2, 4)]), _overlap([], []), _overlap([(0, 4)], [])
    (0.5, 1.0, 0.0)
    """
    one, other = ({place for start, end in spans for place in range(start, end)} for spans in (first, second))
    return len(one & other) / len(one | other) if one | other else 1.0
