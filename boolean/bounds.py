"""Numbers and dates that a query bounds: "under 20 minutes", "cheaper than 5 euros", "after 2010", "since June 2023".

The query's reader tells which of them are denied, and `search/number_filters.py` makes filters of them, where
the documents have a field that fits.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from .dates import WRITTEN_DATE, WRITTEN_MONTH, between_dates, date_number
from .numbers import number_pattern, times_of, unit_of, written

# What compares, and what it says that is compared, which `ABOUT` knows (search/number_fields.py).
_SIGNS = {
    ("<", ""): "under|below|beneath|less than|fewer than|lower than",
    ("<", "price"): "cheaper than|less expensive than",
    ("<", "length"): "shorter than",
    ("<", "weight"): "lighter than",
    ("<", "size"): "smaller than",
    ("<", "age"): "younger than|newer than",
    ("<", "distance"): "closer than|nearer than",
    ("<=", ""): r"at most|up to|max(?:imum|\.)?(?: of)?",
    ("<=", "distance"): "within",
    (">", ""): "over|above|more than|greater than|higher than|exceed(?:s|ing)?",
    (">", "price"): "more expensive than|pricier than|dearer than",
    (">", "length"): "longer than",
    (">", "weight"): "heavier than",
    (">", "size"): "larger than|bigger than",
    (">", "age"): "older than",
    (">", "height"): "taller than",
    (">=", ""): r"at least|min(?:imum|\.)(?: of)?",
    ("", ""): r"(?!(?:rather|other|either|earlier|later) )[a-z]+er than",  # "faster than 10" seconds, or km an hour
}
_BEHIND = {
    "<=": r"\sor (?:less|fewer|under|below|cheaper|shorter|younger)|\s(?:max(?:imum)?|at most|tops)",
    ">=": r"\sor (?:more|over|above|longer|older)|\s(?:minimum|at least)|\+",
}
_OF_YEARS = {
    "<": "before|prior to|older than|earlier than",
    "<=": "until|till|on or before",
    ">": "after|newer than|later than",
    ">=": "since|on or after",
}
_BEHIND_YEARS = {"<=": r"\sor (?:earlier|older|before)", ">=": r"\s(?:or (?:later|newer|after)|onwards?)"}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
YEAR = "calendar year"  # the unit of a bare year; "3 years" count some
DAY = "day of the calendar"  # of a date


def _any(signs: Iterable[str]) -> str:
    return "|".join(f"(?P<s{number}>{words})" for number, words in enumerate(signs))


_A_YEAR = (
    r"(?:the (?:year )?)?(?P<number>1\d{3}|20\d\d)(?P<decade>s)?\b(?P<rest>\s?B\.?C\b)?"
    r"(?!\s?[€$£%]|[-/.,]?\d|\s?(?:years?|months|weeks|days|hours|minutes)\b)"
)
_NOT_INSIDE = r"(?<![\w.,'’$€£-])"
_BOUND, _BOUND_BEHIND, _YEAR, _YEAR_BEHIND, _DATE = (
    re.compile(pattern, re.I)
    for pattern in (
        rf"\b(?:{_any(_SIGNS.values())}) {number_pattern()}",
        rf"{_NOT_INSIDE}{number_pattern()}(?P<compares>{_any(_BEHIND.values())})(?![\w+]|\s[€$£]?\d)"
        r"(?:\s?(?P<behind>[^\W\d_]+))?",
        rf"\b(?:{_any(_OF_YEARS.values())}) {_A_YEAR}",
        rf"\b(?:(?:from|in) )?{_A_YEAR}(?:{_any(_BEHIND_YEARS.values())})\b",
        rf"\b(?:{_any(_OF_YEARS.values())}) (?P<number>{WRITTEN_DATE})",
    )
)
_BETWEEN, _FROM_TO = (
    re.compile(
        rf"{before}{number_pattern('1', goes_on='(?!)')}{joining}{number_pattern('2')}",
        re.I,
    )
    for before, joining in (
        (r"\bbetween ", r"(?:\s(?:and|to|&)\s|\s?[-\u2013\u2014]\s?)"),
        (rf"(?:\b(?P<from>from )|{_NOT_INSIDE})", r"(?:\sto\s|\s?[-\u2013\u2014]\s?)"),
    )
)
_LOOKS_LIKE_A_YEAR = re.compile(r"1\d{3}|20\d\d")
_BETWEEN_DATES = re.compile(
    rf"\bbetween (?P<least>{WRITTEN_DATE}|{WRITTEN_MONTH}) and (?P<number>{WRITTEN_DATE})", re.I
)


class Bound(NamedTuple):
    """A stretch `query[start:end]` that bounds a number. unit: the word behind it, or what the words say, or "".

    A date is 20250301 of the unit DAY, a month 20250300. number: NaN where it may be two, or a date two days. sign: ""
    where the words do not say it. number_end: where it ends without its unit. about: what is compared, where the words
    say it. is_range: it is one of the two of "between". is_firm: it can be nothing but a bound, unlike "9 to 5".
    """

    start: int
    end: int
    sign: str
    number: float
    unit: str
    number_end: int
    about: str = ""
    is_range: bool = False
    is_firm: bool = True

    @property
    def without_unit(self) -> "Bound":
        """The same where the word behind the number is no unit: "under 20 please"."""
        return self._replace(end=self.number_end, unit="")


def read_bounds(query: str) -> list[Bound]:
    """
    >>> [(one.sign, one.number, one.unit) for one in read_bounds("quick dinners under 20 minutes after 2010")]
    [('<', 20.0, 'minutes'), ('>', 2010.0, 'calendar year')]
    >>> [(one.sign, one.number, one.unit) for one in read_bounds("flats between €500 and 900, at least 3 rooms")]
    [('>=', 500.0, 'euro'), ('<=', 900.0, 'euro'), ('>=', 3.0, 'rooms')]
    >>> [(one.sign, one.number) for one in read_bounds("flats between 900 and 500 euros")]
    [('>=', 500.0), ('<=', 900.0)]
    >>> [(one.sign, one.number) for one in read_bounds("courses after March 1st 2025, on or before 2025-06-30")]
    [('>', 20250301.0), ('<=', 20250630.0)]
    >>> [(one.sign, one.number) for one in read_bounds("flats with 3 or more rooms, since the 1990s")]
    [('>=', 3.0), ('>=', 1990.0)]
    """
    found: list[Bound] = []

    def read(pattern: re.Pattern[str], bounds_of: Callable[[re.Match[str]], list[Bound]]) -> None:
        for match in pattern.finditer(query):
            if not any(one.start < match.end() and match.start() < one.end for one in found):
                found.extend(bounds_of(match))

    read(_BETWEEN_DATES, _between_dates)
    read(_BETWEEN, _range)
    read(_DATE, partial(_dated, DAY, tuple(_OF_YEARS)))
    read(_YEAR, partial(_dated, YEAR, tuple(_OF_YEARS)))
    read(_YEAR_BEHIND, partial(_dated, YEAR, tuple(_BEHIND_YEARS)))
    read(_BOUND, _number)
    read(_FROM_TO, _range)
    read(_BOUND_BEHIND, _number_before)
    return sorted(found, key=lambda bound: bound.start)


def _both(bound: Bound, least: float, most: float) -> list[Bound]:
    """The two bounds of a range."""
    bound = bound._replace(is_range=True)
    return [bound._replace(sign=">=", number=least), bound._replace(sign="<=", number=most)]


def _between_dates(match: re.Match[str]) -> list[Bound]:
    return _both(Bound(*match.span(), "", math.nan, DAY, match.end()), *between_dates(match["least"], match["number"]))


def _range(match: re.Match[str]) -> list[Bound]:
    """The bounds of "between 2 and 4 rooms", and of "2 to 4 rooms" and "2-4 rooms", which may be something else."""
    is_between = match.re is _BETWEEN
    last = written(match, "2", written(match, "1").unit)
    first = written(match, "1", last.unit)
    least, most, times = first.number, last.number, times_of(match, "2")
    if not match["times1"] and least < most / times:  # "between 1 and 2 million"
        least *= times
    are_years = all(_LOOKS_LIKE_A_YEAR.fullmatch(match[f"number{end}"]) for end in "12")
    is_from = not is_between and bool(match["from"])
    unit = last.unit or first.unit or (YEAR if are_years and is_from else "")
    is_one_range = first.unit in ("", unit) and (is_between or least < most)  # not "20 minutes and 1 hour", "9 to 5"
    if not is_between and (not is_one_range or (are_years and unit == "")):  # "1939-1945" may be the war
        return []
    least, most = sorted((least, most)) if is_one_range else (math.nan, math.nan)
    bound = Bound(match.start(), last.end, "", math.nan, unit, last.number_end)
    return _both(bound._replace(is_firm=is_between or unit == YEAR), least, most)


def _dated(unit: str, signs: Sequence[str], match: re.Match[str]) -> list[Bound]:
    sign = next(sign for number, sign in enumerate(signs) if match[f"s{number}"])
    number = date_number(match["number"]) if unit == DAY else float(match["number"])
    if unit == YEAR and match["rest"]:
        number = math.nan
    elif unit == YEAR and match["decade"] and sign in ("<=", ">"):  # "until the 1990s"
        number += 9
    return [Bound(*match.span(), sign, number, unit, match.end())]


def _number(match: re.Match[str]) -> list[Bound]:
    """The bound of "under 20 minutes"."""
    found = written(match)
    sign, about = next(one for number, one in enumerate(_SIGNS) if match[f"s{number}"])
    is_firm = match["number"].lower() != "one"  # "under one roof"
    return [Bound(match.start(), found.end, sign, found.number, found.unit, found.number_end, about, is_firm=is_firm)]


def _number_before(match: re.Match[str]) -> list[Bound]:
    """The bound of "3 rooms or more", "3 or more rooms", "3+ rooms", which may be something else: "18+ games"."""
    found, sign = written(match), next(one for number, one in enumerate(_BEHIND) if match[f"s{number}"])
    number_end = end = match.end("compares")
    unit = found.unit or unit_of(match["behind"] or "")
    if unit and not found.unit:
        end = match.end("behind")
    is_firm = match["compares"] != "+" and bool(unit or sign == "<=")  # unlike "a game for 8 or more"
    return [Bound(match.start(), end, sign, found.number, unit, number_end, is_firm=is_firm)]
