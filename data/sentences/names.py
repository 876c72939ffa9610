"""Names, works, places, facts and other things that the labelled sentences talk about, most of them made up."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from .words import Domain, word_list


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((first, second) for first, _, second in (pair.partition("/") for pair in word_list(text)))


_ONSETS = word_list("b, br, c, ch, d, dr, f, g, gr, h, j, k, kl, l, m, n, p, r, s, st, t, tr, v, w, z")
_VOWELS = word_list("a, e, i, o, u, ai, ee, ia, ou")
_CODAS = ("", "", "n", "r", "l", "s", "m", "nd", "rt", "ck", "th", "x")
_FIRST = word_list(
    """
    Anna, Peter, Maria, John, Elena, David, Sofia, Michael, Laura, Thomas, Nina, Robert, Grace, Ahmed, Yuki,
    Carlos, Ingrid, Pablo, Fatima, George, Helen, Ivan, Julia, Kofi, Liam, Mei
    """
)
_LAST = word_list(
    """
    Smith, Garcia, Tanaka, Novak, Brown, Rossi, Keller, Okafor, Larsen, Silva, Dubois, Murphy, Petrov, Haddad,
    Wagner, Lindqvist, Moreau, Costa, Fischer, Walker, Bennett, Hughes, Morgan
    """
)
_PLACES = word_list(
    """
    Paris, Texas, Kenya, Osaka, Bavaria, Chile, New York, Scotland, Vietnam, Cairo, Norway, Peru, the Alps, Los
    Angeles, Brazil, South Korea, Prague, Sicily, Alaska, the Balkans, Mumbai, Wales
    """
)
_NOUNS = word_list(
    """
    career, family, education, legacy, discovery, theory, style, influence, collection, voyage, marriage,
    childhood, campaign, painting, invention, method, album, symphony, role, diet, trial, contract
    """
)
_PLURALS = word_list(
    """
    films, books, songs, albums, plays, games, treaties, bridges, battles, paintings, species, drugs, symptoms,
    methods, products, companies, festivals, journals, teams, engines, laws, theories
    """
)
_VERBS = _pairs(
    """
    write/wrote, found/founded, lead/led, support/supported, visit/visited, record/recorded, build/built,
    win/won, lose/lost, design/designed, discover/discovered, sell/sold, translate/translated, direct/directed,
    paint/painted, buy/bought, publish/published, train/trained, invent/invented, sign/signed
    """
)
_THINGS = word_list(
    """
    the prize, a new party, the first bridge, the treaty, an opera, the company, the team, a school, the school
    board, the final match, a vaccine, the railway, two novels, the old library, a famous speech
    """
)
_FACTS = word_list(
    """
    the history of {topic}, the origin of {org}, the cost of {topic}, the causes of {event}, the effect of
    {topic}, the difference between {topic} and {topic}, the population of {place}, the relation of {name} to
    {org}, the use of {topic} in {place}, the treatment of {topic}, the main ideas of {title}, the climate of
    {place}, the median age in {place}, the structure of {topic}, the life of {name}, the risk of {topic},
    {topic}
    """
)
_EVENTS = word_list(
    """
    the war of {year}, the {place} festival, the {year} election, the siege of {place}, the strike at {org}, the
    final of {year}, the earthquake in {place}, the {year} Olympics, the founding of {org}
    """
)
_SUBJECTS = word_list(
    """
    insulin, inflation, volcanoes, glaciers, bilingual education, solar power, asthma, copyright law, black
    holes, jazz, medieval trade, beekeeping, machine translation, blood pressure, tax credits, child care, coral
    reefs, graph theory, iron deficiency, typography, migration, open source software, knee surgery, sourdough,
    marathon training, folk dance, antibiotics, mortgage rates, railway gauges, photosynthesis, sleep, early
    diagnosis, court orders, satellite navigation, caffeine, vitamin D
    """
)
_ADJECTIVES_OF_ORG = word_list("Royal, National, Northern, United, First, Central, Green, Blue, Global, Old")
_KINDS_OF_ORG = word_list("Airways, Bank, Museum, Institute, Records, Press, Motors, University, Orchestra, Society")
_NATIONALITIES = word_list(
    """
    American, British, French, Japanese, Brazilian, Nigerian, German, Indian, Canadian, Russian, Italian,
    Swedish, Mexican, Korean, Australian, Greek
    """
)
_PROFESSIONS = word_list(
    """
    singer, actor, actress, politician, painter, businessman, boxer, historian, novelist, film director,
    comedian, engineer, chemist, journalist, footballer, songwriter, screenwriter, architect, composer,
    activist, broadcaster, physicist, editor, explorer
    """
)
_MONTHS = word_list("January, March, April, June, July, September, October, December")
_SETTINGS = (
    *("set in {place}", "set in the {year}s", "based on {title}", "found in {place}", "from {place}", "about {topic}"),
    *("written by {name}", "directed by {name}", "made in {place}", "released in {year}", "located in {place}"),
)
# Who does not do what: negated predicates, which exclude nothing.
_BEINGS = word_list(
    """
    bats, reptiles, mushrooms, sailors, rivers, engines, cats, children, stars, bacteria, lizards, horses,
    batteries, windows, bees, robots, whales, pigeons, roses, farmers, trains, frogs, seeds,
    printers, magnets, tourists, candles, owls, tomatoes
    """
)
_DEVICES = word_list(
    """
    printer, dishwasher, phone, lawnmower, radiator, the baby, my cat, laptop, router, boiler, garage door, the
    engine, elevator, my brother, tap, oven, the lock, camera, washing machine, drill, bike light, the refund,
    keyboard, parcel
    """
)
_NATIONS = word_list("country, state, island, city, region, village, kingdom, county")
_NEEDS = word_list(
    """
    electricity, salt, sleep, a passport, teeth, oxygen, roads, a roof, an engine, parents, a bank account,
    running water, wheels, insurance, an airport, legs, a flag, an income, rivers, a visa, ears, a capital,
    help, gravity, a licence, bones, a king, medicine, railways, sugar
    """
)
_DOINGS = _pairs(
    """
    freeze/freezing, bloom in spring/blooming in spring, open on Sundays/opening on Sundays, answer the
    phone/answering the phone, grow in shade/growing in shade, charge/charging, connect to the
    network/connecting to the network, respond/responding, eat meat/eating meat, speak in public/speaking in
    public, work properly/working properly, swim/swimming, close/closing, sleep at night/sleeping at night,
    drink water/drinking water, climb/climbing, heat up/heating up, print/printing, remember names/remembering
    names, turn on/turning on, migrate south/migrating south, lay eggs/laying eggs, burn/burning,
    float/floating, bite/biting, see colours/seeing colours, drain/draining, hear/hearing, need a driver/needing
    a driver, change colour/changing colour, make noise/making noise, use fuel/using fuel, breathe air/breathing
    air, cross borders/crossing borders, run/running, jump/jumping, read/reading, spin/spinning, age/ageing,
    break/breaking, travel by ship/travelling by ship, cook/cooking, drive/driving, hibernate/hibernating,
    conduct heat/conducting heat, stay awake/staying awake, dance/dancing, ring/ringing
    """
)
_DONE = word_list(
    """
    found, delivered, built, opened, published, elected, invited, repaired, sold, recorded, finished, released,
    recognised, translated, shown, caught, refunded, delayed, registered, accepted
    """
)
_TREATED = word_list("paid, told, taught, invited, trained, asked, fed, believed, insured, kept, seen, noticed")
_PRODUCTS = word_list(
    """
    jackets, phones, tents, laptops, shoes, hotels, apartments, bikes, bags, tables, lamps, keyboards, gardens, cars,
    headphones, sofas, boots, watches, restaurants, apps, backpacks, kettles, chairs, prams
    """
)
_FEATURES = word_list(
    """
    a hood, a camera, a handle, a lid, wheels, gears, sleeves, a screen, batteries, a zip, breakfast, a balcony, a logo,
    laces, pockets, a roof, an app, cables, sugar, a touchpad, stairs, plastic, leather, a filter
    """
)
_APPOSITIONS = word_list(
    """
    the {nationality} {profession} and {profession2} of {org}; a {nationality} {profession}; an {adjective} {noun} from
    {year}; the {year} {noun} by {name}; a town in {place}; a company that {verbed} {thing}; the current {profession} of
    {org}; directed by {name} and based on {title}; written and directed by {name}; who {verbed} {thing} in {year};
    which was {verbed} by {name} in {year}; known by the name of {name}; founded in {year} by {name}; one of the most
    popular {professions} in {place}; whose {noun} {name} {verbed}; part of {org}
    """,
    ";",
)

# Slots that are filled from one list.
_LISTS: dict[str, Sequence[str]] = {
    "nationality": _NATIONALITIES,
    "profession": _PROFESSIONS,
    "device": _DEVICES,
    "nation": _NATIONS,
    "need": _NEEDS,
    "pastpart": _DONE,
    "treated": _TREATED,
    "products": _PRODUCTS,
    "feature": _FEATURES,
    "noun": _NOUNS,
    "nouns": _PLURALS,
    "thing": _THINGS,
}

T = TypeVar("T")


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
        text = self._pick(_LISTS[key]) if key in _LISTS else getattr(self, f"_{key}")(domain)
        return text[0].upper() + text[1:] if name[0].isupper() else text

    def _pick(self, options: Sequence[T]) -> T:
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
                f"{self._pick(_NOUNS)} of {self._made_up()}".title(),
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

    def _verb(self, domain: Domain) -> str:
        return self.rng.choice(_VERBS)[0]

    def _verbed(self, domain: Domain) -> str:
        return self.rng.choice(_VERBS)[1]

    def _verbing(self, domain: Domain) -> str:
        verb = self._verb(domain)
        return {"win": "winning"}.get(verb, verb.removesuffix("e") + "ing")

    def _act(self, domain: Domain) -> str:
        return f"{self._verb(domain)} {self._pick(_THINGS)}" + self.rng.choice(
            ("", f" in {self._year(domain)}", f" in {self._place(domain)}")
        )

    def _pred(self, domain: Domain) -> str:
        return self.rng.choice((self.rng.choice(domain.adjectives), self.rng.choice(domain.phrases)))

    def _professions(self, domain: Domain) -> str:
        word = self._pick(_PROFESSIONS)
        return {"businessman": "businessmen", "actress": "actresses"}.get(
            word, word[:-1] + "ies" if word.endswith("y") else word + "s"
        )

    def _date(self, domain: Domain) -> str:
        month, day, year = self._pick(_MONTHS), self.rng.randrange(1, 29), self._year(domain)
        return self.rng.choice((f"{month} {day}, {year}", f"{day} {month} {year}", f"{month} {year}"))

    def _apposition(self, domain: Domain) -> str:
        """What stands behind a name between commas."""
        return self._expand(self._pick(_APPOSITIONS), domain)

    def _setting(self, domain: Domain) -> str:
        """Where a thing belongs, behind "not"."""
        return self._expand(self.rng.choice(_SETTINGS), domain)

    def _beings(self, domain: Domain) -> str:
        return self._pick(_BEINGS) if self.rng.random() < 0.8 else self.rng.choice(domain.heads)

    def _nations(self, domain: Domain) -> str:
        word = self._pick(_NATIONS)
        return word[:-1] + "ies" if word.endswith("ry") else word + "s"

    def _do(self, domain: Domain) -> str:
        return self._pick(_DOINGS)[0]

    def _doing(self, domain: Domain) -> str:
        return self._pick(_DOINGS)[1]

    def _expand(self, frame: str, domain: Domain) -> str:
        text = frame
        while "{" in text:
            before, _, rest = text.partition("{")
            slot, _, after = rest.partition("}")
            text = before + self.slot(slot.rstrip("23"), domain) + after
        return text
