"""The field of numbers or dates that a bound in a query is about.

A field fits where its name has the number's unit, or one of the words that the unit stands for, or the word before the
bound ("price under 15", but not "price under 300 calories"), or what the comparison says ("heavier than"); a number
with none of these fits the only field that it may be of. If several do, none is taken. Units are not converted:
"runtime under 2 hours" fits `runtime_hours`, not `runtime`, which may have minutes. A year or a date fits the field
that the word before it names, "posted before 2025", and no field of something else that happened.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from boolbert.boolean.around_bounds import HAPPENED, WORDS, Before, word_before
from boolbert.boolean.bounds import DAY, YEAR, Bound
from boolbert.boolean.numbers import COINS
from boolbert.retrieval.words import singular

_PRICE, _EARNED = ("price", "cost", "fee", "rent", "fare"), ("salary", "wage", "pay", "income")
# Units of a scale that has several sizes, which are not converted: a field fits where its name has the same unit.
_SHORT_TIMES = (("second", "sec"), ("minute", "min"), ("hour", "hr", "hrs"), ("day",))
_WEIGHTS = (("g", "gram"), ("kg", "kgs", "kilo", "kilogram"), ("lb", "lbs"), ("oz", "ounce"))
_LENGTHS = (
    *(("mm",), ("cm",), ("m", "metre", "meter"), ("km", "kms", "kilometre", "kilometer")),
    *(("mile",), ("foot", "feet", "ft"), ("inch", "inche")),  # `singular` makes "inche" of "inches"
)
_SCALED = (*_SHORT_TIMES, *_WEIGHTS, *_LENGTHS)
_ANY_TIME, _ANY_WEIGHT, _ANY_LENGTH = (
    tuple(name for names in scale for name in names) for scale in (_SHORT_TIMES, _WEIGHTS, _LENGTHS)
)
# What is compared, and the fields that have it: said by "cheaper than", by "paying more than", by "players under 30".
_ABOUT = {
    "price": _PRICE,
    "pay": (*_PRICE, *_EARNED),
    "earn": _EARNED,
    "weight": ("weight", "mass", *_ANY_WEIGHT),
    "length": ("length", "duration", "runtime", "time", *_ANY_TIME, *_ANY_LENGTH),
    "distance": ("distance", *_ANY_TIME, *_ANY_LENGTH),
    "height": ("height",),
    "size": ("size", "area", "sqm"),
    "age": ("age", "years"),
    "rating": ("rating", "score", "star"),
}
_SAYS = {
    **{name: about for about, names in _ABOUT.items() if about != "pay" for name in names},
    **{word: about for about in _ABOUT for word in WORDS.get(f"says {about}", ())},
}
_MEANS = {
    **{name: (coin, name, *_ABOUT["pay"]) for name, coin in COINS.items()},
    **{name: names for names in _SCALED for name in names},
    "star": ("star", "rating"),
    "year": ("years", "age"),
    "sqm": ("sqm", "area", "size"),
    "degree": ("degree", "temperature"),
    "percent": ("percent", "pct", "percentage"),
}
_UNITS = frozenset((*(name for names in _SCALED for name in names), *COINS, "sqm"))
# What a number counts beside these. Any other word behind a number may be the sentence's next: "price under 20 please".
_COUNTED = "calories kcal points words people persons guests pages weeks months stars years rooms seats times"
_KNOWN_UNITS = _UNITS | _MEANS.keys() | frozenset(map(singular, _COUNTED.split()))
_OF_A_YEAR = ("year", "released", "published", "founded", "built")
_NEVER_BARE = frozenset(("id", "lat", "lon", "lng", "latitude", "longitude", "zip", "postcode", "isbn", "ean", "sku"))
_SAYS_NO_EVENT = frozenset(("date", "day", "time", "when", "datetime", "timestamp", "year", "event", "at", "on", "of"))
_WORD = re.compile(r"[A-Z]?[a-z]+[23²³]?(?![a-z])|[A-Z]+")


def fitted(bound: Bound, query: str, fields: Mapping[str, str]) -> tuple[str | None, Bound]:
    """The one field that a bound is about, and the bound with the word before it that says so."""
    before = word_before(query, bound.start)
    numbers = [field for field, kind in fields.items() if kind == "number"]
    dates = [field for field, kind in fields.items() if kind == "date"]
    if math.isnan(bound.number):
        return None, bound
    if bound.unit in (DAY, YEAR):
        years = [field for field in numbers if _is_of_a_year(field)] if bound.unit == YEAR else []
        return _time_field(bound, before, query, years, dates)
    if bound.is_range and not bound.unit and _looks_like_a_year(bound.number):
        years = [field for field in numbers if _is_of_a_year(field)]
        if HAPPENED.fullmatch(before.word) or any(_is_named(field, before.word) for field in (*years, *dates)):
            return _time_field(bound._replace(unit=YEAR), before, query, years, dates)
        bare = [field for field in numbers if _may_be_bare(field, bound.number)]
        return _only([*years, *dates, *bare]), bound
    return _number_field(bound, before, numbers)


def _number_field(bound: Bound, before: Before, fields: Sequence[str]) -> tuple[str | None, Bound]:
    unit = singular(bound.unit) if bound.unit else ""
    named = [field for field in fields if _is_named(field, before.word)]
    about = bound.about or _SAYS.get(before.word, "") or _SAYS.get(singular(before.word or "-"), "")
    with_word = bound._replace(start=before.start) if named or before.word in _SAYS else bound
    by_unit = [field for field in fields if unit and _has_unit(field, unit)]
    if by_unit:
        found = _narrowed(by_unit, named, about)
        return found, with_word if found in named or before.word in _SAYS else bound
    if unit in _KNOWN_UNITS:
        return None, bound
    is_counted = bool(unit)  # "more than 3 bedrooms"; but "price under 20 please"
    if is_counted:
        bound, with_word = bound.without_unit, with_word.without_unit
    if named:
        return _narrowed(named, named, about), with_word
    if about:
        return _narrowed([field for field in fields if _has_any(field, _ABOUT[about])], named, about), with_word
    if not bound.is_firm or is_counted or before.is_subject or before.is_part or HAPPENED.fullmatch(before.word):
        return None, bound
    return _only([field for field in fields if _may_be_bare(field, bound.number)]), bound


def _only(found: Sequence[str]) -> str | None:
    return found[0] if len(found) == 1 else None


def _narrowed(found: Sequence[str], named: Sequence[str], about: str) -> str | None:
    """The one of some fields; of several, that which the word before names, or which has what is compared."""
    for fewer in (
        found,
        [field for field in found if field in named],
        [field for field in found if about and _has_any(field, _ABOUT[about])],
        [field for field in found if about in _words(field)],
    ):
        if len(fewer) == 1:
            return fewer[0]
    return None


def _time_field(
    bound: Bound, before: Before, query: str, years: Sequence[str], dates: Sequence[str]
) -> tuple[str | None, Bound]:
    """The field of a year or a date: the one that the word before names, or the only one."""
    named = [field for field in (*dates, *years) if _is_named(field, before.word)]
    if len(named) > 1:
        named = [field for field in named if _is_all_of(field, before.word)] or [one for one in named if one in dates]
    if named:
        field = named[0] if len(named) == 1 else None
        # A verb or the field's whole name is taken with the bound; "courses" of `course_start` stays in the query.
        is_taken = field and (_is_all_of(field, before.word) or _is_verb(before.word, query[: before.start]))
        return field, bound._replace(start=before.start) if is_taken else bound
    if before.is_subject:
        return None, bound
    if HAPPENED.fullmatch(before.word):  # something else than what these fields are of
        spoken = {_stem(word) for word in _WORD.findall(query.lower())}
        years, dates = (
            [field for field in some if all(w in _SAYS_NO_EVENT or _stem(w) in spoken for w in _words(field))]
            for some in (years, dates)
        )
    if bound.unit == YEAR:  # "kings before 1700" does not ask when a page was posted
        dates = [
            field for field in dates if all(word in _SAYS_NO_EVENT or word in _OF_A_YEAR for word in _words(field))
        ]
    return _only(years or dates), bound


def _words(field: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(field)]


def _has_any(field: str, names: Iterable[str]) -> bool:
    """
    >>> _has_any("prepMinutes", ["minute"]), _has_any("price_eur", ["cost"])
    (True, False)
    """
    words = _words(field)
    return not {*words, *map(singular, words)}.isdisjoint(names)


def _has_unit(field: str, unit: str) -> bool:
    """Whether a field's name has a unit, or what it stands for, and not another unit.

    >>> _has_unit("price_per_day", "euro"), _has_unit("price_per_day", "day"), _has_unit("year", "year")
    (True, False, False)
    """
    words = _words(field)
    own, per = ({*part, *map(singular, part)} for part in _split(words, "per"))
    names = _MEANS.get(unit, (unit,))
    others = own if unit in COINS else own | per  # "under 50 km" is not about `km_per_hour`
    is_another = unit in _UNITS and not ({COINS.get(one, one) for one in others & _UNITS} <= {unit, *names})
    return not own.isdisjoint(names) and not is_another


def _split(words: list[str], word: str) -> tuple[list[str], list[str]]:
    """What stands before a word, and the word and what stands behind it."""
    at = words.index(word) if word in words else len(words)
    return words[:at], words[at:]


def _may_be_bare(field: str, number: float) -> bool:
    """Whether a number without a unit may be of a field. In the thousands it is of none that has a unit in its name.

    >>> [_may_be_bare(field, 50) for field in ("price", "width_cm", "year_made", "id")], _may_be_bare("width_cm", 2000)
    ([True, True, False, False], False)
    """
    words = {*_words(field), *map(singular, _words(field))}
    has_unit = not words.isdisjoint(_UNITS - COINS.keys())
    return words.isdisjoint(_NEVER_BARE) and not _is_of_a_year(field) and not (has_unit and abs(number) >= 1000)


def _is_of_a_year(field: str) -> bool:
    """Whether a field of numbers has years of the calendar; "years" count some."""
    return any(word in _OF_A_YEAR for word in _words(field))


def _looks_like_a_year(number: float) -> bool:
    return number.is_integer() and 1000 <= number < 2100


def _is_named(field: str, word: str) -> bool:
    """Whether a word names a field, as a verb too.

    >>> _is_named("start_date", "starting"), _is_named("end", "ends"), _is_named("published", "starting")
    (True, True, False)
    >>> _is_named("end", "endless"), _is_named("course_start", "courses"), _is_named("seats", "seating")
    (False, True, True)
    """
    return bool(word) and any(len(part) >= 3 and _stem(word) == _stem(part) for part in _words(field))


def _is_all_of(field: str, word: str) -> bool:
    return [_stem(part) for part in _words(field)] == [_stem(word)]


def _is_verb(word: str, before: str) -> bool:
    """Whether a word is a verb: "published", "that starts", "start".

    >>> _is_verb("starting", "courses"), _is_verb("updates", "pages which"), _is_verb("courses", "python")
    (True, True, False)
    """
    return bool(HAPPENED.fullmatch(word) or re.search(r"\b(?:that|which|who)\s*\Z", before, re.I))


@cache
def _stem(word: str) -> str:
    """
    >>> [_stem(word) for word in ("starting", "releases", "released", "end")]
    ['start', 'releas', 'releas', 'end']
    """
    return re.sub(r"(?<=\w{3})(?:ing|ed|es|s|e|d)\Z", "", word.lower())
