"""Names, works, places, facts and other things that the labelled sentences talk about, most of them made up."""

from collections.abc import Sequence
from random import Random

from .words import Domain

_ONSETS = (
    "b",
    "br",
    "c",
    "ch",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "kl",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
    "w",
    "z",
)
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ee", "ia", "ou")
_CODAS = ("", "", "n", "r", "l", "s", "m", "nd", "rt", "ck", "th", "x")
_FIRST = (
    *(
        "Anna",
        "Peter",
        "Maria",
        "John",
        "Elena",
        "David",
        "Sofia",
        "Michael",
        "Laura",
        "Thomas",
        "Nina",
        "Robert",
        "Grace",
    ),
    *(
        "Ahmed",
        "Yuki",
        "Carlos",
        "Ingrid",
        "Pablo",
        "Fatima",
        "George",
        "Helen",
        "Ivan",
        "Julia",
        "Kofi",
        "Liam",
        "Mei",
    ),
)
_LAST = (
    *(
        "Smith",
        "Garcia",
        "Tanaka",
        "Novak",
        "Brown",
        "Rossi",
        "Keller",
        "Okafor",
        "Larsen",
        "Silva",
        "Dubois",
        "Murphy",
    ),
    *("Petrov", "Haddad", "Wagner", "Lindqvist", "Moreau", "Costa", "Fischer", "Walker", "Bennett", "Hughes", "Morgan"),
)
_PLACES = (
    *(
        "Paris",
        "Texas",
        "Kenya",
        "Osaka",
        "Bavaria",
        "Chile",
        "New York",
        "Scotland",
        "Vietnam",
        "Cairo",
        "Norway",
        "Peru",
    ),
    *(
        "the Alps",
        "Los Angeles",
        "Brazil",
        "South Korea",
        "Prague",
        "Sicily",
        "Alaska",
        "the Balkans",
        "Mumbai",
        "Wales",
    ),
)
_NOUNS = (
    *(
        "career",
        "family",
        "education",
        "legacy",
        "discovery",
        "theory",
        "style",
        "influence",
        "collection",
        "voyage",
        "marriage",
    ),
    *(
        "childhood",
        "campaign",
        "painting",
        "invention",
        "method",
        "album",
        "symphony",
        "role",
        "diet",
        "trial",
        "contract",
    ),
)
_PLURALS = (
    *(
        "films",
        "books",
        "songs",
        "albums",
        "plays",
        "games",
        "treaties",
        "bridges",
        "battles",
        "paintings",
        "species",
        "drugs",
    ),
    *("symptoms", "methods", "products", "companies", "festivals", "journals", "teams", "engines", "laws", "theories"),
)
_VERBS = (
    *(("write", "wrote"), ("found", "founded"), ("lead", "led"), ("support", "supported"), ("visit", "visited")),
    *(("record", "recorded"), ("build", "built"), ("win", "won"), ("lose", "lost"), ("design", "designed")),
    *(
        ("discover", "discovered"),
        ("sell", "sold"),
        ("translate", "translated"),
        ("direct", "directed"),
        ("paint", "painted"),
    ),
    *(("buy", "bought"), ("publish", "published"), ("train", "trained"), ("invent", "invented"), ("sign", "signed")),
)
_THINGS = (
    *("the prize", "a new party", "the first bridge", "the treaty", "an opera", "the company", "the team", "a school"),
    *(
        "the school board",
        "the final match",
        "a vaccine",
        "the railway",
        "two novels",
        "the old library",
        "a famous speech",
    ),
)
_FACTS = (
    *(
        "the history of {topic}",
        "the origin of {org}",
        "the cost of {topic}",
        "the causes of {event}",
        "the effect of {topic}",
    ),
    *("the difference between {topic} and {topic}", "the population of {place}", "the relation of {name} to {org}"),
    *(
        "the use of {topic} in {place}",
        "the treatment of {topic}",
        "the main ideas of {title}",
        "the climate of {place}",
    ),
    *("the median age in {place}", "the structure of {topic}", "the life of {name}", "the risk of {topic}", "{topic}"),
)
_EVENTS = (
    *(
        "the war of {year}",
        "the {place} festival",
        "the {year} election",
        "the siege of {place}",
        "the strike at {org}",
    ),
    *("the final of {year}", "the earthquake in {place}", "the {year} Olympics", "the founding of {org}"),
)
_SUBJECTS = (
    *("insulin", "inflation", "volcanoes", "glaciers", "bilingual education", "solar power", "asthma", "copyright law"),
    *("black holes", "jazz", "medieval trade", "beekeeping", "machine translation", "blood pressure", "tax credits"),
    *(
        "child care",
        "coral reefs",
        "graph theory",
        "iron deficiency",
        "typography",
        "migration",
        "open source software",
    ),
    *(
        "knee surgery",
        "sourdough",
        "marathon training",
        "folk dance",
        "antibiotics",
        "mortgage rates",
        "railway gauges",
    ),
    *("photosynthesis", "sleep", "early diagnosis", "court orders", "satellite navigation", "caffeine", "vitamin D"),
)
_ADJECTIVES_OF_ORG = ("Royal", "National", "Northern", "United", "First", "Central", "Green", "Blue", "Global", "Old")
_KINDS_OF_ORG = (
    "Airways",
    "Bank",
    "Museum",
    "Institute",
    "Records",
    "Press",
    "Motors",
    "University",
    "Orchestra",
    "Society",
)


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
        return getattr(self, f"_{name.lower()}")(domain) if name != "Noun" else self._noun(domain).capitalize()

    def _pick(self, options: Sequence[str]) -> str:
        """Every fourth entry is for dev."""
        return self.rng.choice([option for place, option in enumerate(options) if (place % 4 == 3) == self.is_dev])

    def _made_up(self) -> str:
        count = self.rng.choice((1, 2, 2, 3))
        letters = "".join(
            self.rng.choice(_ONSETS) + self.rng.choice(_VOWELS) + self.rng.choice(_CODAS) for _ in range(count)
        )
        return letters.capitalize()

    def _name(self, domain: Domain) -> str:
        first = self._pick(_FIRST)
        last = self._made_up() if self.rng.random() < 0.5 else self._pick(_LAST)
        return self.rng.choice((f"{first} {last}", f"{first} {last}", last, f"{first} {self._made_up()[:1]}. {last}"))

    def _title(self, domain: Domain) -> str:
        words = self.rng.choice(
            (
                f"The {self._made_up()}",
                f"{self._noun(domain)} of {self._made_up()}".title(),
                self._topic(domain).title(),
            )
        )
        return self.rng.choice((f'"{words}"', words, f"the film {words}", f'the novel "{words}"', f"the album {words}"))

    def _org(self, domain: Domain) -> str:
        return f"{self.rng.choice((self._pick(_ADJECTIVES_OF_ORG), self._made_up()))} {self._pick(_KINDS_OF_ORG)}"

    def _place(self, domain: Domain) -> str:
        return self._made_up() if self.rng.random() < 0.25 else self._pick(_PLACES)

    def _topic(self, domain: Domain) -> str:
        if self.rng.random() < 0.5:
            return self.rng.choice(domain.topics)
        return self._pick(_SUBJECTS)

    def _fact(self, domain: Domain) -> str:
        return self._expand(self._pick(_FACTS), domain)

    def _facts(self, domain: Domain) -> str:
        return self._expand(
            self.rng.choice(
                ("the effects of {topic}", "the works of {name}", "the laws of {place}", "the symptoms of {topic}")
            ),
            domain,
        )

    def _event(self, domain: Domain) -> str:
        return self._expand(self._pick(_EVENTS), domain)

    def _award(self, domain: Domain) -> str:
        return f"the {self._made_up()} Prize"

    def _year(self, domain: Domain) -> str:
        return str(self.rng.randrange(1780, 2026))

    def _noun(self, domain: Domain) -> str:
        return self._pick(_NOUNS)

    def _nouns(self, domain: Domain) -> str:
        return self._pick(_PLURALS)

    def _thing(self, domain: Domain) -> str:
        return self._pick(_THINGS)

    def _verb(self, domain: Domain) -> str:
        return self.rng.choice(_VERBS)[0]

    def _verbed(self, domain: Domain) -> str:
        return self.rng.choice(_VERBS)[1]

    def _verbing(self, domain: Domain) -> str:
        verb = self._verb(domain)
        return {"write": "writing", "win": "winning", "lose": "losing", "translate": "translating"}.get(
            verb, verb + "ing"
        )

    def _act(self, domain: Domain) -> str:
        return f"{self._verb(domain)} {self._thing(domain)}" + self.rng.choice(
            ("", f" in {self._year(domain)}", f" in {self._place(domain)}")
        )

    def _pred(self, domain: Domain) -> str:
        return self.rng.choice((self.rng.choice(domain.adjectives), self.rng.choice(domain.phrases)))

    def _expand(self, frame: str, domain: Domain) -> str:
        text = frame
        while "{" in text:
            before, _, rest = text.partition("{")
            slot, _, after = rest.partition("}")
            text = before + self.slot(slot, domain) + after
        return text
