"""Bounds on numbers and dates in a query as filters on the documents' fields: "under 20 minutes" asks for
`minutes < 20`, "since June 2023" for `start >= 2023-06-01`.

A field fits where its name has the number's unit, or one of the words that the unit stands for, or the word before the
bound ("price under 15", but not "price under 300 calories"); if several do, none is taken. Units are not converted:
"runtime under 2 hours" fits `runtime_hours`, not `runtime`, which may have minutes. A date fits the one field of
dates; of several the one that the word before names. What was taken for a filter is shown with the answer, and
`--no-numbers` searches for it as words instead.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from boolbert.boolean.bounds import DAY, OPPOSITE, YEAR, Bound, read_bounds
from boolbert.boolean.conditions import Conditions
from boolbert.boolean.dates import last_day
from boolbert.boolean.parts import Part, trim
from boolbert.retrieval.words import singular

from .query import Query, quoted

_PRICE = ("price", "cost", "fee", "rent", "fare")
# Units of a scale that has several sizes, which are not converted: a field fits where its name has the same unit.
_SCALED = (
    *(("second", "sec"), ("minute", "min"), ("hour", "hr", "hrs"), ("day",)),
    *(("g", "gram"), ("kg", "kgs", "kilo", "kilogram"), ("lb", "lbs"), ("oz", "ounce")),
    *(("mm",), ("cm",), ("m", "metre", "meter"), ("km", "kms", "kilometre", "kilometer")),
    *(("mile",), ("foot", "feet", "ft"), ("inch", "inche")),  # `singular` makes "inche" of "inches"
)
_MEANS = {
    **{coin: (coin, short, *_PRICE) for coin, short in (("euro", "eur"), ("dollar", "usd"), ("pound", "gbp"))},
    **{short: (coin, short, *_PRICE) for coin, short in (("euro", "eur"), ("dollar", "usd"), ("pound", "gbp"))},
    **dict.fromkeys(_PRICE, _PRICE),
    **{name: names for names in _SCALED for name in names},
    "star": ("star", "rating"),
    "year": ("years", "age"),
    YEAR: ("year", "released", "published", "founded", "built"),
}
_COINS = frozenset(("euro", "eur", "dollar", "usd", "pound", "gbp"))
_UNITS = frozenset((*(name for names in _SCALED for name in names), *_COINS))
# What a number counts beside these. Any other word behind a number may be the sentence's next: "price under 20 please".
_COUNTED = "calories kcal points words people persons guests pages percent weeks months stars years rooms seats times"
_KNOWN_UNITS = _UNITS | frozenset(map(singular, _COUNTED.split()))
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_BEFORE = re.compile(r"([^\W\d_]+)(?:\s+(?:is|are|of|was|be))?\s+\Z")  # the word that a bound stands behind
_VERB = re.compile(r"[a-z]{3,}(?:ed|ing)|(?:start|begin|end|open|close|expire)s?", re.I)
# What is left before it: "soup with a", "soups whose".
_JOINING = re.compile(
    r"(?:\s+(?:with|whose|where|that|which|at|for|of|has|have|costs?|costing|an?|the|its?|is|are))+\s*\Z", re.I
)


class NumberFilter(NamedTuple):
    """A filter, and the words of the query that it was read from."""

    where: str
    words: str


class ReadNumbers(NamedTuple):
    """What became of a query's bounds. unfitted: the words of those that no field fits; uncertain: the ones of them
    whose date is not certain. fields: those with numbers or dates."""

    filters: tuple[NumberFilter, ...] = ()
    unfitted: tuple[str, ...] = ()
    uncertain: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    has_dates: bool = False

    def where(self, given: str | None) -> str | None:
        """The caller's filter and these."""
        parts = [
            *([f"({given})"] if given and self.filters else [given] if given else []),
            *(f.where for f in self.filters),
        ]
        return " and ".join(parts) or None

    @property
    def lines(self) -> list[str]:
        """What to tell the user."""
        names = ", ".join(self.fields) or "none"
        return [
            *(f"filter: {one.where}, from {quoted(one.words)}; --no-numbers takes it off" for one in self.filters),
            *(
                f"{quoted(words)} is searched as words: the day is not certain; write it as 2024-06-05"
                f"{', the earlier one first' * ('between' in words.lower())}"
                if words in self.uncertain
                else f"{quoted(words)} is searched as words: no one field fits; --where compares fields "
                f"(numbers{' and dates' * self.has_dates}: {names})"
                for words in self.unfitted
            ),
        ]


NO_NUMBERS = ReadNumbers()


def fitting_field(unit: str, fields: Mapping[str, str]) -> str | None:
    """The one field of numbers that a unit, or a field's own word, names.

    >>> fields = {"prepMinutes": "number", "price_eur": "number", "genre": "text"}
    >>> [fitting_field(unit, fields) for unit in ("minutes", "euros", "stars", "price", "")]
    ['prepMinutes', 'price_eur', None, 'price_eur', None]
    >>> fitting_field("dollars", fields), fitting_field("years", {"year": "number"})
    (None, None)
    """
    unit = singular(unit) if unit else ""
    names = _MEANS.get(unit, (unit,)) if unit else ()
    found = [
        field
        for field, kind in fields.items()
        if (kind == "number" or (kind == "date" and unit == YEAR)) and _is_in(field, unit, names)
    ]
    return found[0] if len(found) == 1 else None


def _is_in(field: str, unit: str, names: Iterable[str]) -> bool:
    """Whether a field has one of these names, and not the name of another unit.

    >>> _is_in("price_per_day", "euro", ["price"]), _is_in("price_per_day", "day", ["day"])
    (True, False)
    """
    words = [word.lower() for word in _WORD.findall(field)]
    own, per = ({*part, *map(singular, part)} for part in _split(words, "per"))
    others = own if unit in _COINS else own | per  # "under 50 km" is not about `km_per_hour`
    is_another = unit in _UNITS and not (others & _UNITS <= {unit, *_MEANS.get(unit, ())})
    return not own.isdisjoint(names) and not is_another


def _split(words: list[str], word: str) -> tuple[list[str], list[str]]:
    """What stands before a word, and the word and what stands behind it."""
    at = words.index(word) if word in words else len(words)
    return words[:at], words[at:]


def _fitted_date(bound: Bound, query: str, fields: Mapping[str, str]) -> tuple[str | None, Bound]:
    """The field of dates that a bound is about: the only one, or that which the word before names; and the bound with
    that word."""
    dates = [field for field, kind in fields.items() if kind == "date" and not math.isnan(bound.number)]
    before = _BEFORE.search(query[: bound.start])
    if before and len(named := [field for field in dates if _is_named(field, before[1])]) == 1:
        # A verb or the field's whole name is taken with the bound; "courses" of `course_start` stays in the query.
        is_taken = _is_all_of(named[0], before[1]) or _is_verb(before[1], query[: before.start()])
        return named[0], bound._replace(start=before.start()) if is_taken else bound
    words = _WORD.findall(query[bound.start : bound.end])  # "that don't start before June 2023"
    named = [field for field in dates if any(_is_named(field, word) for word in words)]
    return next((own[0] for own in (named, dates) if len(own) == 1), None), bound


def _is_named(field: str, word: str) -> bool:
    """Whether a word names a field of dates, as a verb too.

    >>> _is_named("start_date", "starting"), _is_named("end", "ends"), _is_named("published", "starting")
    (True, True, False)
    >>> _is_named("end", "endless"), _is_named("course_start", "courses")
    (False, True)
    """
    return any(len(part) >= 3 and _stem(word) == _stem(part) for part in _WORD.findall(field))


def _is_all_of(field: str, word: str) -> bool:
    return [_stem(part) for part in _WORD.findall(field)] == [_stem(word)]


def _is_verb(word: str, before: str) -> bool:
    """Whether a word is a verb: "published", "that starts", "start".

    >>> _is_verb("starting", "courses"), _is_verb("updates", "pages which"), _is_verb("courses", "python")
    (True, True, False)
    """
    return bool(_VERB.fullmatch(word) or re.search(r"\b(?:that|which|who)\Z", before, re.I))


def _stem(word: str) -> str:
    """
    >>> [_stem(word) for word in ("starting", "releases", "released", "end")]
    ['start', 'releas', 'releas', 'end']
    """
    return re.sub(r"(?<=\w{3})(?:ing|ed|es|s|e|d)\Z", "", word.lower())


def _fitted(bound: Bound, query: str, fields: Mapping[str, str]) -> tuple[str | None, Bound]:
    """The field that a bound is about, by its unit or by the word before it, and the bound with that word."""
    if bound.unit == DAY:
        return _fitted_date(bound, query, fields)
    if (field := fitting_field(bound.unit, fields)) is not None:
        return field, bound
    unit = singular(bound.unit) if bound.unit else ""
    if unit and unit != YEAR and unit not in _KNOWN_UNITS:
        bound, unit = bound.without_unit, ""
        if (field := fitting_field(bound.unit, fields)) is not None:
            return field, bound
    before = _BEFORE.search(query[: bound.start])
    field = fitting_field(before[1].lower(), fields) if before else None
    if before is None or field is None:
        return None, bound
    if unit and not _is_in(field, unit, _MEANS.get(unit, (unit,))):
        return None, bound  # it counts something else, "price under 300 calories", or is not converted
    return field, bound._replace(start=before.start())


def read_numbers(query: Query, fields_of: Callable[[], Mapping[str, str]]) -> tuple[Query, ReadNumbers]:
    """The query without the conditions that became filters, and what was made of its bounds. fields_of: gives the
    documents' fields and their kinds; not called for a query without bounds."""
    bounds = read_bounds(query.query)
    if not bounds:
        return query, NO_NUMBERS
    fields = fields_of()
    filters: list[NumberFilter] = []
    unfitted: list[str] = []
    taken: list[Bound] = []
    for index, read in enumerate(bounds):
        field, bound = _fitted(read, query.query, fields)
        words = query.query[bound.start : bound.end]
        if field is None:
            unfitted.append(words)
            continue
        is_out = any(part.start <= read.start and read.end <= part.end for part in query.conditions.excluded)
        sign = OPPOSITE[bound.sign] if is_out else bound.sign
        where = f"{_name(field)} {sign} {_value(bound, fields[field], sign)}"
        # "not between 2 and 4": below the first or above the second, two bounds that stand at one place.
        if sign == ">" and index and (bounds[index - 1].start, bounds[index - 1].end) == (read.start, read.end):
            where = f"({filters.pop().where} or {where})"
        filters.append(NumberFilter(where, words))
        taken.append(bound)
    names = tuple(name for name, kind in fields.items() if kind != "text")
    has_dates = "date" in fields.values()
    uncertain = tuple(query.query[one.start : one.end] for one in bounds if has_dates and math.isnan(one.number))
    found = ReadNumbers(tuple(filters), tuple(dict.fromkeys(unfitted)), uncertain, names, has_dates)
    return (replace(query, conditions=_without(query.conditions, taken, query.query)) if taken else query), found


def _name(field: str) -> str:
    return field if re.fullmatch(r"[^\W\d]\w*", field) else json.dumps(field, ensure_ascii=False)


def _value(bound: Bound, kind: str, sign: str) -> str:
    if kind == "date":  # "after 2010" begins with 2011
        is_end = sign in (">", "<=")
        if bound.unit != DAY:
            return f"{bound.number:.0f}-12-31" if is_end else f"{bound.number:.0f}-01-01"
        year, month, day = int(bound.number) // 10_000, int(bound.number) // 100 % 100, int(bound.number) % 100
        return f"{year}-{month:02}-{day or (last_day(year, month) if is_end else 1):02}"
    return f"{bound.number:.0f}" if bound.number.is_integer() else f"{bound.number:.15g}"


def _without(conditions: Conditions, bounds: Sequence[Bound], query: str) -> Conditions:
    """Conditions without those that only bound a number, and the others without the words that do; as they are where
    nothing else is wanted."""
    wanted: list[tuple[Part, ...]] = []
    for group in conditions.wanted:
        left = [_around(part, bounds, query) for part in group]
        # What stands on both sides of a bound are two conditions; of an alternative the first counts.
        wanted += [(piece,) for piece in left[0]] if len(group) == 1 else [tuple(own[0] for own in left if own)]
    # An exclusion with a bound in it, "not made before 1990", is what the filter says.
    excluded = tuple(part for part in conditions.excluded if _around(part, bounds, query) == [part])
    return conditions._replace(wanted=tuple(filter(None, wanted)) or conditions.wanted, excluded=excluded)


def _around(part: Part, bounds: Sequence[Bound], query: str) -> list[Part]:
    """What is left of a condition around bounds. Its text may be the query's without an exclusion in its middle."""
    own = [bound for bound in bounds if part.start < bound.end and bound.start < part.end]
    if not own:
        return [part]
    inside = [query[max(bound.start, part.start) : min(bound.end, part.end)] for bound in own]  # "March 1, 2025" is cut
    if any(part.end - part.start <= len(words) + 4 for words in inside):
        return []
    found = []
    words = "|".join(map(re.escape, inside))
    for piece in re.split(words, part.text):
        start, end = trim(piece, 0, len(_JOINING.sub("", piece)))
        if any(map(str.isalnum, piece[start:end])):
            found.append(_placed(part, piece[start:end], query))
    return found


def _placed(part: Part, text: str, query: str) -> Part:
    """A piece of a condition, with its place in the query; the condition's own where it does not stand there as it
    is."""
    start = query.find(text, part.start, part.end)
    return part._replace(text=text) if start < 0 else Part(part.operator, start, start + len(text), text)
