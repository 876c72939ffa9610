"""Small pieces of English: lists, negation, and what two phrases of one kind have in common."""

from collections.abc import Sequence

_DETERMINERS = {"the", "a", "an"}
_PAST = {"became": "become", "gained": "gain", "belonged": "belong", "won": "win"}


def join(items: Sequence[str], word: str = "and") -> str:
    """A list in words.

    >>> join(["Chad"]), join(["Chad", "Mali"]), join(["Chad", "Mali", "Niger"], "or")
    ('Chad', 'Chad and Mali', 'Chad, Mali or Niger')
    """
    return f" {word} ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def a(phrase: str) -> str:
    """A phrase with its indefinite article.

    >>> a("republic"), a("island state"), a("European country"), a("US territory"), a("one-party state")
    ('a republic', 'an island state', 'a European country', 'a US territory', 'a one-party state')
    """
    sounds_like_consonant = phrase.lower().startswith(("eu", "uni", "us ", "one"))
    return f"{'an' if phrase[0].lower() in 'aeiou' and not sounds_like_consonant else 'a'} {phrase}"


def capitalised(text: str) -> str:
    """
    >>> capitalised("the Gambia")
    'The Gambia'
    """
    return text[:1].upper() + text[1:]


def negated(predicate: str) -> str:
    """A plural predicate turned into its opposite.

    >>> negated("are landlocked"), negated("border France"), negated("became independent")
    ('are not landlocked', 'do not border France', 'did not become independent')
    >>> negated("have hosted the Olympics"), negated("have a monarch")
    ('have never hosted the Olympics', 'do not have a monarch')
    """
    verb, _, rest = predicate.partition(" ")
    if verb in ("are", "were"):
        return f"{verb} not {rest}"
    if verb in _PAST:
        return f"did not {_PAST[verb]} {rest}"
    if predicate.startswith("have hosted"):
        return f"have never {rest}"
    return f"do not {predicate}"


def shared(phrases: Sequence[str]) -> tuple[str, list[str], str] | None:
    """What phrases of one kind have in common at their ends, and the part in which they differ.

    >>> shared(["border France", "border Italy"])
    ('border', ['France', 'Italy'], '')
    >>> shared(["have a coast on the Red Sea", "have a coast on the North Sea"])
    ('have a coast on', ['the Red Sea', 'the North Sea'], '')
    >>> shared(["have French as an official language", "have Arabic as an official language"])
    ('have', ['French', 'Arabic'], 'as an official language')
    >>> shared(["are in Central Africa", "are in Central Asia"])  # never "Central Africa or Asia"
    ('are in', ['Central Africa', 'Central Asia'], '')
    >>> shared(["border France", "use the euro"]) is None
    True
    """
    words = [phrase.split() for phrase in phrases]
    shortest = min(map(len, words))
    start = next((i for i in range(shortest) if len({w[i] for w in words}) > 1), shortest)
    while start and (words[0][start - 1] in _DETERMINERS or words[0][start - 1][0].isupper()):
        start -= 1
    end = 0
    while end < shortest - start - 1 and len({w[-1 - end] for w in words}) == 1:
        end += 1
    # A tail is shared where it is no part of a name: "French or Arabic as an official language", but
    # "the Red Sea or the North Sea".
    if any(word[0].isupper() for word in words[0][len(words[0]) - end :]):
        end = 0
    middles = [" ".join(w[start : len(w) - end]) for w in words]
    if not start or not all(middles):
        return None
    return " ".join(words[0][:start]), middles, " ".join(words[0][len(words[0]) - end :])
