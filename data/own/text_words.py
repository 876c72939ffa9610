"""What a text offers for a query: words, names, phrases, kinds ("silent film") and relations ("directed by X")."""

import re
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ...boolean.clauses import affirmed, without_labels
from .words import (
    AFTER_HEADS,
    BE,
    BEFORE_VERBS,
    CONNECTORS,
    DETERMINERS,
    NO_NAME,
    PARTICIPLES,
    PREPOSITIONS,
    STOP,
    YEAR,
    plural,
)

_TOKEN = re.compile(
    r"(?:[A-Z]\.){2,}|(?:[A-Z]|Dr|Mr|Mrs|Ms|St|Jr|Sr)\.(?=\s+[A-Z]|,)"  # initials and short forms keep their dots
    r"|[^\W_]+(?:[-'’&.][^\W_]+)*"
    r"|[^\w\s]+|\n+"
)
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
_POSSESSIVE = re.compile(r"['’]s?$")
_SENTENCE_ENDS = frozenset(".!?\n")
_LONGEST_NAME, _LONGEST_KIND = 5, 7


Relations = tuple[tuple[str, str], ...]  # (verb, preposition or "")


class TextWords(NamedTuple):
    """What one text holds. The sets after `capitalised` tell what a word is by its neighbours."""

    words: set[str]  # lower case, outside of names
    inside_names: set[str]  # lower case, in names of two words and more
    capitalised: set[str]  # as written, capitalised within a sentence
    adjectives: set[str]  # capitalised before a common noun: "Swiss banker"
    nouns: set[str]  # ends a noun phrase with a determiner: "a young teacher"
    countable: set[str]  # ends one with "a" or "an"
    verbs: set[str]  # follows "to", "he", "will"
    about: set[str]  # ends a noun phrase after "about"
    used_with: set[str]  # ends one after "with"
    names: set[str]
    places: set[str]  # names after "in", "at", "near"
    phrases: set[str]  # two or three words side by side
    kinds: set[tuple[str, str]]  # (modifier, head), in lower case: ("silent", "film")
    relations: set[tuple[str, str, str]]  # (verb, preposition, name): ("directed", "by", "John Ford"); one may be ""
    head: str | None  # what the text says it is about: "is a 1939 American comedy film"


TABLES = tuple(name for name in TextWords._fields if name != "head")


class _Token(NamedTuple):
    text: str
    lower: str
    is_word: bool
    is_capital: bool
    ends_name: bool  # a possessive


def read_text(text: str, heads: Collection[str] = ()) -> TextWords:
    """Everything that a text offers and does not deny, with kinds of these heads (singular, lower case).

    >>> found = read_text("Alien is a 1979 horror film directed by Ridley Scott. The crew meets a monster.", ["film"])
    >>> sorted(found.kinds), sorted(found.relations), sorted(found.nouns)
    ([('1970s', 'film'), ('1979', 'film'), ('horror', 'film')], [('directed', 'by', 'Ridley Scott')], ['monster'])
    >>> found.head, sorted(found.words)
    ('film', ['alien', 'crew', 'directed', 'film', 'horror', 'meets', 'monster'])
    >>> sorted(read_text("An oat bar with honey. Contains no nuts, milk or eggs.").words)
    ['bar', 'contains', 'honey', 'oat']
    """
    tokens = _tokens(affirmed(without_labels(text)))
    singular = {form: head for head in heads for form in (head, plural(head))}
    found = TextWords(head=_head(tokens), **{name: set() for name in TABLES})
    year = ""  # the first one counts: a remake of 1956 names that of 1929 as well
    relations: Relations = ()  # they hold for all names of a list: "starring A, B and C"
    place, start = 0, True
    while place < len(tokens):
        token = tokens[place]
        if not token.is_word:
            start = not _SENTENCE_ENDS.isdisjoint(token.text)
            if start or token.text != ",":
                relations = ()
            place += 1
            continue
        name_end = _name_end(tokens, place, start)
        if name_end - place >= 2:
            name = " ".join(part.text for part in tokens[place:name_end])
            found.names.add(name)
            before = place - 2 if place > 1 and tokens[place - 1].lower == "the" else place - 1
            if before >= 0 and tokens[before].lower in ("in", "at", "near"):
                found.places.add(name)
            found.inside_names.update(part.lower for part in tokens[place:name_end] if is_content(part.lower))
            relations = _relations(tokens, place, singular) or relations
            found.relations.update((*relation, name) for relation in relations)
        else:
            name_end = place + 1
            relations = _read_word(tokens, place, start, relations, singular, found)
        for at in range(place, name_end):
            if not tokens[at].is_capital and (head := singular.get(tokens[at].lower)) is not None:
                modifiers, of_year = _modifiers(tokens, at)
                year = year or of_year
                found.kinds.update((modifier, head) for modifier in modifiers)
                if of_year and of_year == year:
                    found.kinds.update(((year, head), (f"{year[:3]}0s", head)))
        place, start = name_end, False
    return found


def _read_word(
    tokens: list[_Token], place: int, start: bool, relations: Relations, heads: Collection[str], found: TextWords
) -> Relations:
    """Take in a single word, and say which relations still hold after it."""
    token = tokens[place]
    before = tokens[place - 1].lower if place and tokens[place - 1].is_word else ""
    is_year = YEAR.fullmatch(token.text) is not None
    is_name = token.text[0].isupper() and not start and token.lower not in STOP
    if is_name or is_year:
        relations = _relations(tokens, place, heads) or (relations if is_name else ())
        found.relations.update((*relation, token.text) for relation in relations)
    elif token.lower != "and":
        relations = ()
    if is_content(token.lower):
        found.words.add(token.lower)
        if is_name:
            found.capitalised.add(token.text)
            after = tokens[place + 1] if place + 1 < len(tokens) else token
            if after.is_word and not after.is_capital and is_content(after.lower):
                found.adjectives.add(token.lower)
        if before in BEFORE_VERBS:
            found.verbs.add(token.lower)
        if not token.is_capital:
            _read_noun(tokens, place, found)
        if not token.is_capital or start:
            _add_phrases(tokens, place, found.phrases)
    return relations


def _read_noun(tokens: list[_Token], place: int, found: TextWords) -> None:
    """Note a word that ends a noun phrase, and what stands before the phrase."""
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    if after and after.is_word and (after.is_capital or after.lower in DETERMINERS or is_content(after.lower)):
        return
    start = place - 1
    while start >= 0 and place - start < 4 and tokens[start].is_word and is_content(tokens[start].lower):
        start -= 1
    word = tokens[place].lower
    if start >= 0 and tokens[start].lower in DETERMINERS:
        found.nouns.add(word)
        if tokens[start].lower in ("a", "an"):
            found.countable.add(word)
        start -= 1
    if start >= 0 and tokens[start].lower in ("about", "with"):
        (found.about if tokens[start].lower == "about" else found.used_with).add(word)


def _add_phrases(tokens: list[_Token], place: int, phrases: set[str]) -> None:
    """The two and three words that begin here, all of them in lower case and none a function word."""
    words = [tokens[place].lower]
    for token in tokens[place + 1 : place + 3]:
        if not token.is_word or token.is_capital or not is_content(token.lower):
            return
        words.append(token.lower)
        phrases.add(" ".join(words))


@lru_cache(maxsize=200_000)
def is_content(word: str) -> bool:
    """Whether a lower-case word can mean something by itself: letters, not too short, no function word.

    >>> is_content("stop-motion"), is_content("the"), is_content("1939"), is_content("東京")
    (True, False, False, True)
    """
    letters = word.replace("-", "").replace("'", "").replace("’", "")
    return word not in STOP and letters.isalpha() and (len(letters) > 2 or not letters.isascii())


def _tokens(text: str) -> list[_Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        word = match.group()
        is_word = word[0].isalnum()
        possessive = is_word and ("'" in word or "’" in word) and _POSSESSIVE.search(word)
        if possessive:
            word = word[: possessive.start()] or word
        ordinal = word[0].isdigit() and _ORDINAL.fullmatch(word)  # it may begin a name: "20th Century Fox"
        is_capital = is_word and (word[0].isupper() or bool(ordinal))
        tokens.append(_Token(word, word.lower(), is_word, is_capital, bool(possessive)))
    return tokens


def _name_end(tokens: list[_Token], start: int, sentence_start: bool) -> int:
    """Where the run of capitalised words that begins here ends; `start` where there is none."""
    first = tokens[start]
    if not first.is_capital or first.lower in (STOP if sentence_start else NO_NAME):
        return start
    end = place = start + 1
    while place < len(tokens) and place - start < _LONGEST_NAME and not tokens[end - 1].ends_name:
        token = tokens[place]
        if token.is_capital and token.lower not in BE:
            end = place = place + 1
        elif token.lower in CONNECTORS and (place == end or tokens[place - 1].lower == "of"):
            place += 1
        else:
            break
    return end


def _relations(tokens: list[_Token], place: int, heads: Collection[str]) -> Relations:
    """Verbs and prepositions that lead to the name that begins here: two in "written and directed by"."""
    before = place - 1
    if before >= 1 and tokens[before].lower == "the":
        before -= 1
    if before < 0 or not tokens[before].is_word or tokens[before].is_capital:
        return ()
    word, earlier = tokens[before].lower, [token.lower for token in tokens[max(before - 3, 0) : before]]
    if word in PREPOSITIONS:
        if earlier and earlier[-1] in heads and word in AFTER_HEADS:
            return (("", word),)
        if not earlier or not is_verb_form(earlier[-1]) or tokens[before - 1].is_capital:
            return ()
        verbs = [earlier[-1]]
        if len(earlier) == 3 and earlier[1] == "and" and is_verb_form(earlier[0]):
            verbs.append(earlier[0])
        return tuple((verb, word) for verb in verbs)
    if word.endswith(("ing", "s")) and len(word) > 4 and word not in STOP and not DETERMINERS & set(earlier[-1:]):
        return ((word, ""),)
    return ()


def is_verb_form(word: str) -> bool:
    """A participle, told by its ending: "directed", "starring", "set"."""
    return word in PARTICIPLES or (word.endswith(("ed", "ing")) and len(word) > 4 and word not in STOP)


def _modifiers(tokens: list[_Token], head: int) -> tuple[set[str], str]:
    """The words that stand before a head within its noun phrase, singly and in pairs; and a year, if one does."""
    words: list[str] = []
    year = ""
    for place in range(head - 1, max(head - 1 - _LONGEST_KIND, -1), -1):
        token = tokens[place]
        if YEAR.fullmatch(token.text):
            year = token.text
            break
        if not token.is_word or (token.ends_name and token.is_capital) or not is_content(token.lower):
            break
        words.insert(0, token.lower + ("'s" if token.ends_name else ""))
    found = set(words) | {f"{one} {two}" for one, two in pairwise(words)}
    return found, year


def _head(tokens: list[_Token]) -> str | None:
    """The noun of the first "is a ..." or, where a sentence begins with one, "A ...": what kind of thing this is."""
    for place, token in enumerate(tokens[:80]):
        if token.lower not in ("a", "an"):
            continue
        before = tokens[place - 1].lower if place else "\n"
        if before not in BE and _SENTENCE_ENDS.isdisjoint(before):
            continue
        words: list[_Token] = []
        for at in range(place + 1, min(place + 9, len(tokens))):
            word = tokens[at]
            after = tokens[at + 1].lower if at + 1 < len(tokens) else ""
            next_is_name = at + 1 < len(tokens) and tokens[at + 1].is_capital
            ends_phrase = is_verb_form(word.lower) and (after == "and" or after in PREPOSITIONS or next_is_name)
            if not word.is_word or word.lower in STOP or (words and ends_phrase):
                break
            words.append(word)
        if words and words[-1].lower.isalpha() and not words[-1].is_capital and len(words[-1].lower) > 2:
            return words[-1].lower
    return None
