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
        simple = {
            "adjective": domain.adjectives,
            "phrase": domain.phrases,
            "kinds": domain.kinds,
            "heads": domain.heads,
        }
        if name in simple:
            return self.rng.choice(simple[name])
        key = name.lower()
        text = self._expand(self._pick(key), domain) if key in NAMES else getattr(self, f"_{key}")(domain)
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

    def _name(self, domain: Domain) -> str:
        first = self._pick("first names")
        last = self._made_up() if self.rng.random() < 0.5 else self._pick("last names")
        return self.rng.choice((f"{first} {last}", f"{first} {last}", last, f"{first} {self._made_up()[:1]}. {last}"))

    def _title(self, domain: Domain) -> str:
        words = self.rng.choice(
            (
                f"The {self._made_up()}",
                f"{self._pick('noun')} of {self._made_up()}".title(),
                self._topic(domain).title(),
            )
        )
        return self.rng.choice((f'"{words}"', words, f"the film {words}", f'the novel "{words}"', f"the album {words}"))

    def _org(self, domain: Domain) -> str:
        first = self.rng.choice((self._pick("adjectives of organisations"), self._made_up()))
        return f"{first} {self._pick('kinds of organisations')}"

    def _place(self, domain: Domain) -> str:
        return self._made_up() if self.rng.random() < 0.25 else self._pick("places")

    def _topic(self, domain: Domain) -> str:
        if self.rng.random() < 0.5:
            return self.rng.choice(domain.topics)
        return self._pick("subjects")

    def _award(self, domain: Domain) -> str:
        return f"the {self._made_up()} Prize"

    def _year(self, domain: Domain) -> str:
        return str(self.rng.randrange(1780, 2026))

    def _verb(self, domain: Domain) -> str:
        return self.rng.choice(NAMES["verbs"]).partition("/")[0]

    def _verbed(self, domain: Domain) -> str:
        return self.rng.choice(NAMES["verbs"]).partition("/")[2]

    def _verbing(self, domain: Domain) -> str:
        verb = self._verb(domain)
        return {"win": "winning"}.get(verb, verb.removesuffix("e") + "ing")

    def _act(self, domain: Domain) -> str:
        return f"{self._verb(domain)} {self._pick('thing')}" + self.rng.choice(
            ("", f" in {self._year(domain)}", f" in {self._place(domain)}")
        )

    def _pred(self, domain: Domain) -> str:
        return self.rng.choice((self.rng.choice(domain.adjectives), self.rng.choice(domain.phrases)))

    def _professions(self, domain: Domain) -> str:
        word = self._pick("profession")
        return {"businessman": "businessmen", "actress": "actresses"}.get(
            word, word[:-1] + "ies" if word.endswith("y") else word + "s"
        )

    def _date(self, domain: Domain) -> str:
        month, day, year = self._pick("months"), self.rng.randrange(1, 29), self._year(domain)
        return self.rng.choice((f"{month} {day}, {year}", f"{day} {month} {year}", f"{month} {year}"))

    def _beings(self, domain: Domain) -> str:
        return self._pick("all beings") if self.rng.random() < 0.8 else self.rng.choice(domain.heads)

    def _nations(self, domain: Domain) -> str:
        word = self._pick("nation")
        return word[:-1] + "ies" if word.endswith("ry") else word + "s"

    def _do(self, domain: Domain) -> str:
        return self._pick("doings").partition("/")[0]

    def _doing(self, domain: Domain) -> str:
        return self._pick("doings").partition("/")[2]

    def _expand(self, frame: str, domain: Domain) -> str:
        return _SLOT.sub(lambda slot: self.slot(slot[1], domain), frame)
