"""Dates as people write them: "March 1st 2025", "12 May 2024", "June 2023", "2025-03-01"."""

import calendar
import math
import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WRITTEN_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY, _YEAR = r"\d\d?(?:st|nd|rd|th)?", r"(?:1\d{3}|20\d\d)"
_NAMED_DAY = rf"(?:the )?{_DAY} (?:of )?{WRITTEN_MONTH}|{WRITTEN_MONTH} (?:the )?{_DAY}"
WRITTEN_DATE = (
    rf"(?:{_YEAR}-\d\d?-\d\d?|(?:{_NAMED_DAY})(?:,? {_YEAR})?|{WRITTEN_MONTH},? {_YEAR}"
    rf"|\d\d?[/.]\d\d?[/.](?:{_YEAR}|\d\d))(?!\w)"
)


def date_number(text: str) -> float:
    """A written date as 20250301, a month as 20250300; NaN where it has no year, is no day, or may be two.

    >>> [date_number(text) for text in ("March 1st, 2025", "the 12th of May 2024", "Sept. 2023", "2025-3-1")]
    [20250301.0, 20240512.0, 20230900.0, 20250301.0]
    >>> [date_number(text) for text in ("12 May", "February 30, 2024", "05/06/2024")]
    [nan, nan, nan]
    """
    if re.search(r"\d[/.]\d", text):
        return math.nan
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    names = [word[:3] for word in re.findall(r"[a-z]+", text.lower()) if word[:3] in _MONTHS]
    year = next((number for number in numbers if number >= 1000), None)
    rest = [number for number in numbers if number != year]
    if year is None:
        return math.nan
    month, day = (_MONTHS.index(names[0]) + 1, [*rest, 0][0]) if names else (rest[0], rest[1])
    if not 1 <= month <= 12 or day > last_day(year, month):
        return math.nan
    return float(10_000 * year + 100 * month + day)


def between_dates(first: str, last: str) -> tuple[float, float]:
    """The numbers of both; the first one may have its year from the last. NaN twice where one is no date.

    >>> between_dates("1 March", "5 May 2025"), between_dates("May 2024", "31 June 2024")
    ((20250301.0, 20250505.0), (nan, nan))
    """
    end = date_number(last)
    start = date_number(first)
    if math.isnan(start) and not math.isnan(end):
        start = date_number(f"{first} {end // 10_000:.0f}")
    return (math.nan, math.nan) if math.isnan(start) or math.isnan(end) else (start, end)


def last_day(year: int, month: int) -> int:
    """
    >>> last_day(2024, 2)
    29
    """
    return calendar.monthrange(year, month)[1]
