"""What a sentence denies: "contains no nuts" denies nuts, "not only nuts" denies nothing.

Rules over lists of words (`denials_en.txt`). Two denials cancel each other out ("not gluten-free", "not without"):
what is denied twice is not reported. What is only supposed ("when you do not need it") is not denied.
"""

import re
from pathlib import Path
from typing import NamedTuple

from .word_lists import read_lists, read_word_sets

_FILE = Path(__file__).with_name("denials_en.txt")
PHRASES, WORDS = read_lists(_FILE), read_word_sets(_FILE)
Span = tuple[int, int]
LONGEST_DENIAL = 12  # words that one denial may take


class Denial(NamedTuple):
    """The words that deny and what they deny, as spans of the text: "contains no nuts", with "nuts" in `denied`."""

    start: int
    end: int
    denied: tuple[Span, ...]


class _Word(NamedTuple):
    start: int
    end: int
    text: str  # in small letters, with a plain apostrophe


def _any(phrases: tuple[str, ...]) -> str:
    """All phrases as one regular expression, the longest first."""
    escaped = (re.escape(phrase).replace(r"\ ", r"\s+") for phrase in sorted(phrases, key=len, reverse=True))
    return "|".join(escaped)


_HARMLESS = "|".join(PHRASES["harmless"]).replace(" ", r"\s+")
_FREE = "|".join(sorted(WORDS["free"]))
_CUE = re.compile(
    rf"(?<![\w\-])(?:(?P<harmless>{_HARMLESS})(?![\w])"
    rf"|(?:(?P<lists>{_any(PHRASES['before_lists'])})|(?P<anything>{_any(PHRASES['before_anything'])}|\w+n[’']t)"
    rf"|(?P<things>{_any(PHRASES['before_things'])})|(?P<subjects>{_any(PHRASES['subjects'])}))(?![\w\-])"
    rf"|(?P<non>(?:non|no)[\-‐‑](?=\w))"
    rf"|(?P<free>(?:\w+-?(?:\s*,\s*|\s+(?:and|or|&)\s+)){{0,3}}?(?P<what>[^\W\d]\w+)[\-‐‑]free(?![\w])"
    rf"|(?P<plain_free>{_FREE})\s+free(?![\w\-])(?!\s+(?:of|from)\b))"
    rf"|(?P<less>[^\W\d_]{{3,}})less(?![\w]))",
)
# Most sentences hold none of these, of which every cue holds one, and need no further look.
_CUES = [cue for name in ("before_things", "before_lists", "before_anything", "subjects") for cue in PHRASES[name]]
_SINGLE = {cue for cue in _CUES if " " not in cue}
_HINTS = _SINGLE | {max(cue.split(), key=len) for cue in _CUES if _SINGLE.isdisjoint(cue.split())}
_HINTS_WITHIN = ("n't", "n’t", "free", "less", "no-", "non-", "no‑", "non‑", "w/o")
_TO_SPACE = str.maketrans(dict.fromkeys('\n\t"“”‘([{/—–,.;:!?)', " "))
_WORD = re.compile(r"\w+(?:[\-‐‑'’]\w+)*")
_OPENS_ITEM = (
    WORDS["articles"] | WORDS["pronouns"] | WORDS["auxiliaries"] | WORDS["prepositions"] | WORDS["joins"] | {"plus"}
)
_CAPITAL_NEXT = re.compile(r"\s+[^\W\d_a-z][^\W\d_A-Z]")
_IS_A = re.compile(r"[^,.;:]{1,80}?\s(?:is|was)\s(?:an?|the)\s")
_SHARED_FREE = re.compile(r"(\w+)-(?=\s*,|\s+(?:and|or|&)\s)")


def find_denials(text: str, start: int = 0, end: int | None = None, small: str | None = None) -> list[Denial]:
    """The denials of one sentence, `text[start:end]`, from left to right. `small`: the text in `small_letters`.

    >>> text = "contains no nuts, milk or eggs, but sesame"
    >>> [text[left:right] for denial in find_denials(text) for left, right in denial.denied]
    ['nuts, milk or eggs']
    >>> text = "breakfast is not included"
    >>> [text[left:right] for denial in find_denials(text) for left, right in denial.denied]
    ['breakfast']
    >>> find_denials("the hood zips off when you do not need it, not only in summer")
    []
    >>> find_denials("Never Weaken is a comedy by the makers of No Country for Old Men.")
    []
    """
    end = len(text) if end is None else end
    small = small_letters(text) if small is None else small
    if not may_deny(small[start:end]):
        return []
    matches = [match for match in _CUE.finditer(small, start, end) if not match["harmless"]]
    matches = [match for match in matches if not _begins_name(text, start, *match.span())]
    if not matches:
        return []
    words = [_Word(*match.span(), match.group().replace("’", "'")) for match in _WORD.finditer(small, start, end)]
    sentence = _Sentence(small, words)
    denials: list[Denial] = []
    for match in matches:
        denial = sentence.denial(match)
        if denial is None:
            continue
        if denials and denial.start < denials[-1].end:  # inside the one before
            if not match["things"]:
                denials.pop()  # denied twice: "not gluten-free"
            continue
        denials.append(denial)
    return denials


def _begins_name(text: str, sentence: int, start: int, end: int) -> bool:
    """Whether a cue and what follows are written like a name, among words that are not: "Never Weaken is a comedy"."""
    if not (text[start].isupper() and _CAPITAL_NEXT.match(text, end)):
        return False
    before = text[max(sentence, start - 30) : start].split()
    return before[-1][0].islower() if before else _IS_A.match(text, end) is not None


def small_letters(text: str) -> str:
    """The text in small letters, character by character, so that spans stay what they are.

    >>> len("İZMİR".lower()), len(small_letters("İZMİR"))
    (7, 5)
    """
    small = text.lower()
    if len(small) != len(text):
        small = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    return small


def may_deny(text: str) -> bool:
    """Whether a text in small letters holds what every cue holds; fast.

    >>> may_deny("a novel of the north"), may_deny("nuts? (no milk)")
    (False, True)
    """
    return not _HINTS.isdisjoint(text.translate(_TO_SPACE).split()) or any(hint in text for hint in _HINTS_WITHIN)


class _Sentence:
    """One sentence's words, and how far a denial reaches in it."""

    def __init__(self, text: str, words: list[_Word]):
        self.text, self.words = text, words

    def denial(self, match: re.Match[str]) -> Denial | None:
        words = self.words
        first = next((i for i, word in enumerate(words) if word.end > match.start()), len(words))
        if match["free"]:
            return self._free(match)
        if match["less"]:
            return None if match["less"] + "less" in WORDS["not_less"] else Denial(*match.span(), (match.span("less"),))
        if first == len(words):
            return None
        if match["non"]:
            word = words[first]
            names_kind = word.text[match.end() - match.start() :] in WORDS["not_non"]
            return None if names_kind else Denial(word.start, word.end, ((match.end(), word.end),))
        if self._is_supposed(first):
            return None
        after = next((i for i in range(first, len(words)) if words[i].start >= match.end()), len(words))
        if match["subjects"]:
            return self._subject(first, after)
        if match["anything"] and after < len(words) and self._follows(after):
            place = after
            while place < len(words) and words[place].text in ("currently", "yet", "been", "being", "be"):
                place += 1
            if place < len(words) and words[place].text in WORDS["not_subjects"]:
                denial = self._subject(first, place + 1)
                if denial:
                    return denial
        return self._scope(match, first, after)

    def _free(self, match: re.Match[str]) -> Denial | None:
        """ "gluten- and dairy-free": both."""
        name = "plain_free" if match["plain_free"] else "what"
        if match[name] in WORDS["not_free"]:
            return None
        spans = [shared.span(1) for shared in _SHARED_FREE.finditer(self.text, match.start(), match.start(name))]
        start = spans[0][0] if spans else match.start(name)
        return Denial(start, match.end(), (*spans, match.span(name)))

    def _gap(self, index: int) -> str:
        """What stands between a word and the one before it."""
        return self.text[self.words[index - 1].end : self.words[index].start] if index else ","

    def _follows(self, index: int) -> bool:
        return not self._gap(index).strip()

    def _is_supposed(self, first: int) -> bool:
        """Behind "when", "if", "those who" in the same clause."""
        for index in range(first - 1, -1, -1):
            if self._gap(index + 1).strip():
                return False
            word = self.words[index].text
            if word in WORDS["conditions"]:
                return True
            following = "who" if index + 1 == first else self.words[index + 1].text
            if word in WORDS["persons"] and following in ("who", "that", "with", "travelling"):
                return True
        return False

    def _subject(self, first: int, after: int) -> Denial | None:
        """What stands before "is not included", back to the beginning of the clause."""
        last, skipped = first, WORDS["auxiliaries"] | {"also", "currently"}
        while last and self._follows(last) and self.words[last - 1].text in skipped:
            last -= 1
        begin = last
        while begin and self._follows(begin) and self.words[begin - 1].text not in WORDS["joins"]:
            begin -= 1
        while begin < last and self.words[begin].text in WORDS["light"] | WORDS["pronouns"]:
            begin += 1
        if begin >= last:
            return None
        span = (self.words[begin].start, self.words[last - 1].end)
        return Denial(span[0], self.words[after - 1].end, (span,))

    def _scope(self, match: re.Match[str], first: int, after: int) -> Denial | None:
        """What follows the cue, to the end of the thing or clause, through lists."""
        words, things, lists = self.words, not match["anything"], bool(match["lists"])
        begin = after
        if words[first].text in ("none", "nobody") or (words[first].text == "no" and words[after - 1].text == "one"):
            while begin < len(words) and self._follows(begin) and words[begin].text not in WORDS["auxiliaries"]:
                begin += 1  # "none of the rooms has a balcony" denies a balcony
            if begin == len(words) or not self._follows(begin):
                begin = after
        while begin < len(words) and self._follows(begin) and words[begin].text in WORDS["light"]:
            begin += 1
        if begin < len(words) and words[begin].text in WORDS["joins"]:
            return None
        index, in_list = begin, False
        while index < min(len(words), begin + LONGEST_DENIAL):
            word = words[index].text
            if index > begin or not self._follows(index):
                if self._gap(index).strip():
                    length = self._list(index, things) if "," in self._gap(index) and index > begin else 0
                    if not length or in_list:
                        break
                    index, in_list = index + length, True
                    continue
                if word == "and" and self._and_goes_on(index, lists):
                    index += 1
                    continue
                if word == "until" and not things:
                    return None  # "not released until 1946": released in 1946
                if word in WORDS["joins"] or (things and word in WORDS["prepositions"] | WORDS["auxiliaries"]):
                    break
                if word in WORDS["subject_pronouns"] or word in ("without", "instead", "rather"):
                    break
            index += 1
        last = index
        while last > begin and words[last - 1].text in WORDS["trailing"]:
            last -= 1
        if last <= begin:
            return None
        start = first
        while start and self._follows(start) and words[start - 1].text in WORDS["light"] | {"with"}:
            start -= 1
        return Denial(words[start].start, words[last - 1].end, ((words[begin].start, words[last - 1].end),))

    def _and_goes_on(self, index: int, lists: bool) -> bool:
        """Whether an "and" joins one more denied thing: one bare word, or a few behind "without"."""
        rest = 0
        for place in range(index + 1, len(self.words)):
            if not self._follows(place):
                break
            word = self.words[place].text
            if word in _OPENS_ITEM:
                if not lists or (rest == 0 and word not in WORDS["articles"]):
                    return False
                if rest:
                    break
                continue
            rest += 1
        return 0 < rest <= (3 if lists else 1)

    def _list(self, index: int, things: bool) -> int:
        """How many words the list that goes on behind this comma has; 0 where no list does: "no nuts, milk or eggs"."""
        size, closed = 0, ""
        for place in range(index, min(len(self.words), index + LONGEST_DENIAL)):
            word = self.words[place].text
            gap = self._gap(place).strip()
            if place > index and gap not in ("", ","):
                break
            if gap == "," and closed:
                return place - index if closed != "and" or things else 0
            if word in ("or", "nor", "and") and (size or place == index):
                following = self.words[place + 1].text if place + 1 < len(self.words) else "it"
                if following in _OPENS_ITEM - (WORDS["articles"] if word == "or" else frozenset()):
                    return 0
                closed, size = word, 0
                continue
            if gap == "," and place > index:
                size = 0
            if word in _OPENS_ITEM and not (word in WORDS["articles"] and closed):
                return place - index if closed and size else 0
            size += 1
            if size > 3:
                return 0
        else:
            place += 1
        return place - index if closed and (closed != "and" or things) else 0
