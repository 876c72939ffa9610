"""What is known of English words before any document is read: `words.txt` lists them; here are plurals and stems."""

import re
from pathlib import Path

from ...boolean.word_lists import read_word_sets

_SETS = read_word_sets(Path(__file__).with_name("words.txt"))
STOP, GENERIC, PREFIXES = _SETS["stop"], _SETS["generic"], _SETS["prefixes"]
DETERMINERS, BEFORE_VERBS, PREPOSITIONS = _SETS["determiners"], _SETS["before verbs"], _SETS["prepositions"]
AFTER_HEADS, BE, PARTICIPLES = _SETS["after heads"], _SETS["be"], _SETS["participles"]
CONNECTORS, NO_NAME = _SETS["connectors"], _SETS["no name"]
_VOWELS = frozenset("aeiouy")
YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
DECADE = re.compile(r"(?:1[5-9]|20)\d0s")


def base_forms(word: str) -> list[str]:
    """What a lower-case word may be an inflection of, the likeliest first; only a form that also occurs counts.

    >>> base_forms("stories"), base_forms("starring"), base_forms("dances")
    (['story', 'storie'], ['star', 'starr', 'starre'], ['dance', 'danc'])
    """
    if word in _SETS["whole"] or len(word) < 4 or not word.isalpha():
        return []
    forms: list[str] = []
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        forms = [word[:-1]]
        if word.endswith("ies"):
            forms = [word[:-3] + "y", word[:-1]]
        elif word.endswith("es"):
            forms = [word[:-1], word[:-2]]
    else:
        for ending in ("ing", "ed"):
            root = word.removesuffix(ending)
            if root != word and len(root) >= 3 and _VOWELS & set(root):
                doubled = len(root) > 3 and root[-1] == root[-2] and root[-1] not in _VOWELS
                forms = [*([root[:-1]] if doubled else []), root, root + "e"]
                break
    return [form for form in forms if len(form) >= 3]


def plural(noun: str) -> str:
    """
    >>> [plural(noun) for noun in ("film", "story", "dish", "box", "boy", "films")]
    ['films', 'stories', 'dishes', 'boxes', 'boys', 'films']
    """
    if noun.endswith("s") and not noun.endswith(("ss", "us")):
        return noun
    if noun.endswith("y") and noun[-2:-1] not in _VOWELS:
        return noun[:-1] + "ies"
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    return {"man": "men", "woman": "women", "person": "people", "child": "children"}.get(noun, noun + "s")
