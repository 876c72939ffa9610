"""Numbers and dates that a query bounds: "under 20 minutes", "cheaper than 5 euros", "after 2010", "since June 2023".

`search/number_filters.py` makes filters of them, where the documents have a field that fits.
"""

import re
from typing import NamedTuple

from .dates import WRITTEN_DATE, WRITTEN_MONTH, between_dates, date_number

_BELOW = "under|below|less than|fewer than|cheaper than|shorter than|lighter than|smaller than"
_AT_MOST = (
    "at most|up to|(?:no|not) (?:more|longer|heavier|larger|bigger) than|max(?:imum|\\.)?|within|not (?:over|above)"
)
_ABOVE = "over|above|more than|longer than|heavier than|larger than|bigger than"
_AT_LEAST = "at least|(?:no|not) (?:less|fewer|shorter|smaller) than|min(?:imum|\\.)|not (?:under|below)"
_SIGNS = {"<": _BELOW, "<=": _AT_MOST, ">": _ABOVE, ">=": _AT_LEAST}
_OF_YEARS = {
    "<": "before|older than|earlier than",
    "<=": "until|on or before|(?:not|never) after|(?:no|not) (?:later|newer) than",
    ">": "after|newer than|later than",
    ">=": "since|on or after|(?:not|never) before|(?:no|not) (?:earlier|older) than",
}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
CURRENCIES = {"€": "euro", "$": "dollar", "£": "pound"}
_NUMBER = r"(?P<coin>[€$£]\s?)?(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s?-?(?P<unit>[€$£]|[^\W\d_]+)?"
# "do not cost more than 50" asks for at most 50.
_NOT, _VERB = (
    r"(?:\w+n['’]?t|not|never|cannot)\s+",
    (r"(?P<verb>cost|be|take|last|weigh|run|need|have|start|begin|end|open|close|expire)\s+"),
)
_DENIED, _DENIED_BETWEEN = rf"(?P<denied>{_NOT}{_VERB})?", rf"(?P<denied>{_NOT}(?:{_VERB})?)?between "
_BOUND, _YEAR, _DATE = (
    re.compile(
        rf"\b{_DENIED}(?:{'|'.join(f'(?P<s{n}>{words})' for n, words in enumerate(signs.values()))}) {number}", re.I
    )
    for signs, number in (
        (_SIGNS, _NUMBER),
        (_OF_YEARS, r"(?:the year )?(?P<number>1\d{3}|20\d\d)\b(?!\s?[€$£%]|[-/.]?\d)"),
        (_OF_YEARS, f"(?P<number>{WRITTEN_DATE})"),
    )
)
_BETWEEN = re.compile(rf"\b{_DENIED_BETWEEN}(?P<least>\d+(?:\.\d+)?) and {_NUMBER}", re.I)
_BETWEEN_DATES = re.compile(
    rf"\b{_DENIED_BETWEEN}(?P<least>{WRITTEN_DATE}|{WRITTEN_MONTH}) and (?P<number>{WRITTEN_DATE})", re.I
)
YEAR = "calendar year"  # the unit of a bare year; "3 years" count some
DAY = "day of the calendar"  # of a date
# Words behind a number that are never a unit, nor a field's name.
_NO_UNIT = re.compile(
    "and|or|but|with|without|in|on|at|by|of|near|for|not|no|that|which|who|whose|where|from|to|per|each|only", re.I
)


class Bound(NamedTuple):
    """A stretch `query[start:end]` that bounds a number. unit: the word behind it, or what the words say, or "".

    A date is 20250301 of the unit DAY, a month 20250300, and NaN what is not known to be one day. number_end: where
    its number ends. about: what its other words say that it counts, or "".
    """

    start: int
    end: int
    sign: str
    number: float
    unit: str
    number_end: int = 0
    about: str = ""

    @property
    def without_unit(self) -> "Bound":
        """The same where the word behind the number is no unit: "under 20 please"."""
        return self._replace(end=self.number_end, unit=self.about)


def read_bounds(query: str) -> list[Bound]:
    """
    >>> [(one.sign, one.number, one.unit) for one in read_bounds("quick dinners under 20 minutes after 2010")]
    [('<', 20.0, 'minutes'), ('>', 2010.0, 'calendar year')]
    >>> [(one.sign, one.number, one.unit) for one in read_bounds("courses that don't cost more than 50")]
    [('<=', 50.0, 'price')]
    >>> [(one.sign, one.number, one.unit) for one in read_bounds("flats between 500 and 900 euros, at least 3 rooms")]
    [('>=', 500.0, 'euros'), ('<=', 900.0, 'euros'), ('>=', 3.0, 'rooms')]
    >>> [(one.sign, one.number) for one in read_bounds("flats between 900 and 500 euros")]
    [('>=', 500.0), ('<=', 900.0)]
    >>> [(one.sign, one.number) for one in read_bounds("courses after March 1st 2025, on or before 2025-06-30")]
    [('>', 20250301.0), ('<=', 20250630.0)]
    """
    found = [
        Bound(match.start(), match.end(), sign, number, DAY)
        for match in _BETWEEN_DATES.finditer(query)
        for sign, number in zip(_outer_signs(match), between_dates(match["least"], match["number"]), strict=True)
    ]
    for match in _BETWEEN.finditer(query):
        unit, end = _unit(match)
        numbers = sorted([float(match["least"]), _number(match)])
        found += [
            Bound(match.start(), end, sign, number, unit, match.end("number"))
            for sign, number in zip(_outer_signs(match), numbers, strict=True)
        ]
    for pattern, signs in ((_DATE, _OF_YEARS), (_YEAR, _OF_YEARS), (_BOUND, _SIGNS)):
        for match in pattern.finditer(query):
            if any(one.start < match.end() and match.start() < one.end for one in found):
                continue
            sign = next(sign for number, sign in enumerate(signs) if match[f"s{number}"])
            sign = OPPOSITE[sign] if match["denied"] else sign
            if pattern is _DATE:
                found.append(Bound(match.start(), match.end(), sign, date_number(match["number"]), DAY))
                continue
            unit, end = (YEAR, match.end()) if pattern is _YEAR else _unit(match)
            is_price = "cheaper" in match.group().lower() or (match["verb"] or "").lower() == "cost"
            about = "price" if is_price and unit != YEAR else ""
            found.append(Bound(match.start(), end, sign, _number(match), unit or about, match.end("number"), about))
    return sorted(found, key=lambda bound: bound.start)


def _outer_signs(match: re.Match[str]) -> tuple[str, str]:
    """Of "between", and of "not between": below the first or above the second."""
    return ("<", ">") if match["denied"] else (">=", "<=")


def _number(match: re.Match[str]) -> float:
    return float(match["number"].replace(",", ""))


def _unit(match: re.Match[str]) -> tuple[str, int]:
    """What a number counts, and where the bound ends."""
    if match["coin"]:
        return CURRENCIES[match["coin"].strip()], match.end("number")
    unit = match["unit"] or ""
    if not unit or _NO_UNIT.fullmatch(unit):
        return "", match.end("number")
    return CURRENCIES.get(unit, unit.lower()), match.end()
