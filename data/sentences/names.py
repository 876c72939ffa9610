"""Names, works, places, facts and other things that the labelled sentences talk about; `names.txt` lists them."""

import re
from random import Random

from .lists import NAMES, Domain

_SLOT = re.compile(r"\{(\w+?)[23]?\}")
_CODAS = ("", "", "n", "r", "l", "s", "m", "nd", "rt", "ck", "th", "x")
# Lists that training and held-out sentences share.
_SHARED = ("setting", "facts")


class Names:
    """Draws a filling for a slot. Training and held-out sentences draw from different halves of each list."""

    def __init__(self, rng: Random, split: str):
        self.rng = rng
        self.is_dev = split == "dev"

    def slot(self, name: str, domain: Domain) -> str:
        words = {"adjective": domain.adjectives, "phrase": domain.phrases, "kinds": domain.kinds, "heads": domain.heads}
        if name in words:
            return self.rng.choice(words[name])
        key = name.lower()
        if key in NAMES:
            text = _SLOT.sub(lambda slot: self.slot(slot[1], domain), self._pick(key))
        else:
            text = self._composed(key, domain)
        return text[0].upper() + text[1:] if name[0].isupper() else text

    def _pick(self, name: str) -> str:
        """An entry of a list; every fourth is for dev."""
        entries = NAMES[name]
        if name not in _SHARED:
            entries = tuple(entry for place, entry in enumerate(entries) if (place % 4 == 3) == self.is_dev)
        return self.rng.choice(entries)

    def _made_up(self) -> str:
        count = self.rng.choice((1, 2, 2, 3))
        letters = "".join(
            self.rng.choice(NAMES["onsets"]) + self.rng.choice(NAMES["vowels"]) + self.rng.choice(_CODAS)
            for _ in range(count)
        )
        return letters.capitalize()

    def _composed(self, key: str, domain: Domain) -> str:
        """What no list holds as it is."""
        pick, choice, made_up = self._pick, self.rng.choice, self._made_up
        match key:
            case "name":
                first = pick("first names")
                last = made_up() if self.rng.random() < 0.5 else pick("last names")
                return choice((f"{first} {last}", f"{first} {last}", last, f"{first} {made_up()[:1]}. {last}"))
            case "title":
                made, noun = f"The {made_up()}", f"{pick('noun')} of {made_up()}"
                words = choice((made, noun.title(), self._composed("topic", domain).title()))
                return choice((f'"{words}"', words, f"the film {words}", f'the novel "{words}"', f"the album {words}"))
            case "org":
                first = choice((pick("adjectives of organisations"), made_up()))
                return f"{first} {pick('kinds of organisations')}"
            case "place":
                return made_up() if self.rng.random() < 0.25 else pick("places")
            case "topic":
                return choice(domain.topics) if self.rng.random() < 0.5 else pick("subjects")
            case "award":
                return f"the {made_up()} Prize"
            case "year":
                return str(self.rng.randrange(1780, 2026))
            case "verb":
                return choice(NAMES["verbs"]).partition("/")[0]
            case "verbed":
                return choice(NAMES["verbs"]).partition("/")[2]
            case "verbing":
                verb = self._composed("verb", domain)
                return {"win": "winning"}.get(verb, verb.removesuffix("e") + "ing")
            case "act":
                done = f"{self._composed('verb', domain)} {pick('thing')}"
                year, place = (self._composed(name, domain) for name in ("year", "place"))
                return done + choice(("", f" in {year}", f" in {place}"))
            case "pred":
                return choice((choice(domain.adjectives), choice(domain.phrases)))
            case "professions":
                word = pick("profession")
                plural = word[:-1] + "ies" if word.endswith("y") else word + "s"
                return {"businessman": "businessmen", "actress": "actresses"}.get(word, plural)
            case "date":
                month, day, year = pick("months"), self.rng.randrange(1, 29), self._composed("year", domain)
                return choice((f"{month} {day}, {year}", f"{day} {month} {year}", f"{month} {year}"))
            case "beings":
                return pick("all beings") if self.rng.random() < 0.8 else choice(domain.heads)
            case "nations":
                word = pick("nation")
                return word[:-1] + "ies" if word.endswith("ry") else word + "s"
            case "do":
                return pick("doings").partition("/")[0]
            case "doing":
                return pick("doings").partition("/")[2]
        raise KeyError(key)
