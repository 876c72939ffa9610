"""Which language is a query in, if it is not English? Its small words and its letters tell."""

import re
import unicodedata
from itertools import pairwise
from pathlib import Path

from .word_lists import read_word_sets

_LISTS = read_word_sets(Path(__file__).with_name("languages.txt"))
_LANGUAGES = tuple(dict.fromkeys(name.split()[0] for name in _LISTS if name != "English"))
_NONE: frozenset[str] = frozenset()
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = "\u0250"  # the letters below are Latin ones
_SCRIPTS = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean"}
# How nouns of Spanish and Portuguese end on both sides of "sin" or "sem": "vuelos sin escalas", not "original sin".
_ROMANCE = re.compile(r"\w+(?:[aeo]s|[ao]|el|ón)")


def foreign_language(query: str) -> str | None:
    """The language of a query that is not English, or its script; None where it may be English.

    >>> [foreign_language(query) for query in ("postres sin nueces", "hôtels sans piscine", "острова", "島国")]
    ['Spanish', 'French', 'Cyrillic', 'Chinese']
    >>> [foreign_language(query) for query in ("La La Land", "sans serif fonts", "crêpes in Paris without nuts")]
    [None, None, None]
    """
    words = _WORD.findall(unicodedata.normalize("NFC", query).lower())
    letters = "".join(words)
    others = [letter for letter in letters if letter >= _LATIN]
    if len(others) > len(letters) / 2:
        return _script(others)
    english = sum(word in _LISTS["English"] for word in words)
    counts = {language: _count(words, language, english) for language in _LANGUAGES}
    best = max(_LANGUAGES, key=counts.__getitem__)
    return best if counts[best] >= 2 and counts[best] > english else None


def is_foreign_script(query: str) -> bool:
    """Whether most of a query's letters are none of the Latin alphabet.

    >>> is_foreign_script("島国"), is_foreign_script("hôtels sans piscine")
    (True, False)
    """
    letters = [letter for letter in unicodedata.normalize("NFC", query).lower() if letter.isalpha()]
    return sum(letter >= _LATIN for letter in letters) > len(letters) / 2


def notes_on_language(query: str, typed: bool = False) -> tuple[str, ...]:
    """A line on a query that is not English, and of which nothing is read but what is typed in search-box syntax.

    >>> notes_on_language("postres sin nueces")
    ('the query looks Spanish: only English is read, so “sin” leaves nothing out; -word does, in any language',)
    """
    if (language := foreign_language(query)) is None:
        return ()
    looks = f"the query looks {language}: only English is read, so"
    if (word := denying_word(query, language)) is not None:
        return (f"{looks} “{word}” leaves nothing out; -word does, in any language",)
    return () if typed else (f"{looks} it is searched as it stands; -word leaves something out, in any language",)


def denying_word(query: str, language: str) -> str | None:
    """The word of a query that says NOT in its language, as far as one is known.

    >>> denying_word("Stellen ohne Nachtschicht", "German")
    'ohne'
    """
    words = _WORD.findall(query)
    denying = _LISTS.get(f"{language} not", _NONE) | _LISTS.get(f"{language} maybe", _NONE)
    pairs = [f"{one} {other}" for one, other in pairwise(words)]
    return next((text for text in (*pairs, *words) if text.lower().replace(" ", "_") in denying), None)


def _count(words: list[str], language: str, english: int) -> int:
    """How much the words tell that they are of a language."""
    own, denying, maybe, names = (_LISTS.get(language + name, _NONE) for name in ("", " not", " maybe", " names"))
    texts = [*words, *(f"{one}_{other}" for one, other in pairwise(words))]
    count = sum(word in own for word in words) + any(word in names for word in words)
    if not english and any(
        _stands_between(words, place, count > 0) for place in range(len(words)) if words[place] in maybe
    ):
        count += 2
    return count + 2 * sum(text in denying for text in texts)


def _stands_between(words: list[str], place: int, has_other: bool) -> bool:
    """Whether a word that is an English one, too, stands between two that are none."""
    if not 0 < place < len(words) - 1 or "serif" in words:
        return False
    before, after = words[place - 1], words[place + 1]
    is_romance = words[place] != "sans" and _ROMANCE.fullmatch(before) and _ROMANCE.fullmatch(after)
    return bool(has_other or is_romance or not (before + after).isascii())


def _script(letters: list[str]) -> str:
    names = [unicodedata.name(letter, "OTHER").split()[0].removesuffix("-") for letter in letters]
    if "HIRAGANA" in names or "KATAKANA" in names:
        return "Japanese"
    name = max(names, key=names.count)
    return _SCRIPTS.get(name, name.capitalize())
