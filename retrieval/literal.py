"""Typed exclusions that are looked for in the text as they were typed: -"AT&T", -"C++", -"vitamin C", -"IT".

The index of words has no small words, single letters or signs, so by it -"AT&T" would leave nothing out and
-"vitamin C" every vitamin. Capitals count for small words alone: "IT" is not "it".
"""

import re
from functools import lru_cache

from boolbert.boolean.clauses import split_clauses
from boolbert.boolean.word_lists import WORDS
from boolbert.retrieval.scoring import ASKING
from boolbert.retrieval.words import STOP_WORDS, words_of

# Letters of scripts that put no space between words, or join endings to them: Thai to Khmer, Japanese, Chinese, Korean.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_PIECE = re.compile(r"\w+")
_OWNER = re.compile(r"['’]s\b")
_BETWEEN = re.compile(r"[\s,;:‐‑–—-]+")  # words of a phrase; a comma may stand there in a text
_SIGNED = re.compile(r"(?<![\w.])\.(?=[^\W\d])|\w[+#](?!\w)")  # signs that make another name: ".NET", "Disney+"
_SMALL = (STOP_WORDS | ASKING | WORDS["pronoun"]) - {"a"}


def is_unspaced(text: str) -> bool:
    """
    >>> is_unspaced("戦争"), is_unspaced("war")
    (True, False)
    """
    return _UNSPACED.search(text) is not None


@lru_cache(256)
def literal(phrase: str) -> re.Pattern[str] | None:
    """What finds a phrase as it was typed; None where all that it says is in the index of words.

    >>> [literal(phrase) is None for phrase in ("science fiction", "lord of the rings", "vitamin C", "to be", "IT")]
    [True, True, False, False, False]
    >>> bool(literal("R&D").search("Jobs in r & d")), bool(literal("IT").search("it pays well"))
    (True, False)
    """
    if is_unspaced(phrase):
        return re.compile(re.escape(phrase), re.IGNORECASE)
    pieces = _PIECE.findall(_OWNER.sub("", phrase))
    are_capitals = len(pieces) == 1 or not phrase.isupper()  # else the capitals say nothing: "TO BE OR NOT TO BE"
    small = {piece for piece in pieces if are_capitals and piece.isupper() and piece.lower() in _SMALL}
    is_single = any(len(piece) == 1 and (piece != "a" or piece is pieces[-1]) for piece in pieces)
    is_signed = _SIGNED.search(phrase) is not None
    if not is_single and not is_signed and not small and not _SMALL.issuperset(words_of(phrase)):
        return None
    words = [word for word in _BETWEEN.split(phrase) if word]
    found = r"[\s,;:‐‑–—-]+".join(_as_it_stands(word, word in small) for word in words)
    return re.compile(_begin(words[0]) + found + _end(words[-1]))


def _as_it_stands(word: str, keeps_case: bool) -> str:
    """A word as a regular expression."""
    found = re.sub("['’]", "['’]", re.escape(word).replace(r"\&", r"\s*&(?:amp;)?\s*"))
    return found if keeps_case else f"(?i:{found})"


def _begin(word: str) -> str:
    """What may stand before the first word: no other word, and no more of a number, but the "v" of "v3.5"."""
    if word[0].isdigit():
        return r"(?:(?<!\w)(?<!\d[.,])|(?<=\b[vV]))"
    return r"(?<!\w)" if re.match(r"\w", word) else ""


def _end(word: str) -> str:
    """What may stand behind the last word: its plural, but not the rest of a longer word or number."""
    if not re.search(r"\w\Z", word):
        return r"(?![+#])"
    plural = "(?:['’]?s|es)?" if len(word) > 2 and word[-1].isalpha() else "(?:['’]s)?"
    return plural + r"(?![\w+#])" + r"(?![.,]\d)" * word[-1].isdigit()


def stands_in(found: re.Pattern[str], text: str) -> bool:
    """Whether a text has what is looked for, and does not only deny it.

    >>> [stands_in(literal("AT&T"), text) for text in ("A plan by AT&T.", "Every network but not AT&T.", "At home.")]
    [True, False, False]
    """
    places = [match.span() for match in found.finditer(text)]
    plain = found.sub(lambda match: "x" * len(match.group()), text)  # "but not at&t" would be read as "at"
    denied = [span for clause in split_clauses(plain) for span in clause.denied] if places else []
    return any(not any(left < end and start < right for left, right in denied) for start, end in places)
