"""Dates as people write them: "March 1st 2025", "12 May 2024", "June 2023", "2025-03-01", "2025-03"."""

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
    rf"(?:{_YEAR}[-/.]\d\d?[-/.]\d\d?|{_YEAR}[-/]\d\d?|(?:{_NAMED_DAY})(?:,? {_YEAR})?|{WRITTEN_MONTH},? {_YEAR}"
    rf"|\d\d?[/.]\d\d?[/.](?:{_YEAR}|\d\d))(?!\w|[-/.]\d)"
)


def date_number(text: str) -> float:
    """A written date as 20250301, a month as 20250300; NaN where it has no year, is no day, or may be two.

    >>> [date_number(text) for text in ("March 1st, 2025", "the 12th of May 2024", "Sept. 2023", "2025-3-1")]
    [20250301.0, 20240512.0, 20230900.0, 20250301.0]
    >>> [date_number(text) for text in ("12 May", "February 30, 2024", "05/06/2024", "0 May 2024", "2024/25")]
    [nan, nan, nan, nan, nan]
    >>> [date_number(text) for text in ("2024-05", "2024/05/01")]
    [20240500.0, 20240501.0]
    """
    if re.match(r"\d\d?[/.]\d", text):  # the day or the month may stand first
        return math.nan
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    names = [word[:3] for word in re.findall(r"[a-z]+", text.lower()) if word[:3] in _MONTHS]
    year = next((number for number in numbers if number >= 1000), None)
    rest = [number for number in numbers if number != year]
    if year is None:
        return math.nan
    month, *days = [_MONTHS.index(names[0]) + 1, *rest] if names else rest
    if not 1 <= month <= 12 or not all(1 <= day <= last_day(year, month) for day in days):
        return math.nan
    return float(10_000 * year + 100 * month + sum(days))


def between_dates(first: str, last: str) -> tuple[float, float]:
    """The numbers of both; the first one may have its year from the last, or the year before. NaN twice where one is no
    date or they are in the wrong order.

    >>> between_dates("1 March", "5 May 2025"), between_dates("May 2024", "31 June 2024")
    ((20250301.0, 20250505.0), (nan, nan))
    >>> between_dates("December", "February 2025"), between_dates("May 2025", "May 2024")
    ((20241200.0, 20250200.0), (nan, nan))
    """
    end, start = date_number(last), date_number(first)
    if math.isnan(end):
        return math.nan, math.nan
    end_day = end if end % 100 else end + 99  # to the month's last day
    if not re.search(_YEAR, first):
        year = end // 10_000
        start = date_number(f"{first} {year:.0f}")
        if start > end_day:
            start = date_number(f"{first} {year - 1:.0f}")
    return (start, end) if start <= end_day else (math.nan, math.nan)


def last_day(year: int, month: int) -> int:
    """
    >>> last_day(2024, 2)
    29
    """
    return calendar.monthrange(year, month)[1]
