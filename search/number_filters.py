"""Bounds on numbers and dates in a query as filters on the documents' fields: "under 20 minutes" asks for
`minutes < 20`, "since June 2023" for `start >= 2023-06-01`, "not built before 1990" for `year >= 1990`.

`search/number_fields.py` finds the field, and `boolean/around_bounds.py` what is denied. What was taken for a filter is
shown with the answer, and `--no-numbers` searches for it as words instead. What is not certain filters nothing, and a
line says why.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from boolbert.boolean.around_bounds import polarity
from boolbert.boolean.bounds import DAY, OPPOSITE, YEAR, Bound, read_bounds
from boolbert.boolean.conditions import Conditions
from boolbert.boolean.dates import last_day
from boolbert.boolean.exclusion import content
from boolbert.boolean.parts import Part, Span, trim

from .number_fields import fitted
from .query import Query, quoted

# What is left before a bound: "soup with a", "soups whose", "bikes I".
_JOINING = re.compile(
    r"(?:\s+(?:with|whose|where|that|which|at|for|of|has|have|costs?|costing|an?|the|its?|is|are|i|we))+\s*\Z", re.I
)
_JOINS = re.compile(r"[\s,]+(?:(?P<or>or)|and|but)?[\s,]*", re.I)  # two bounds: "under 5 or over 9"
_SHARES_UNIT = re.compile(r"[\s,]+(?:(?:or|nor|and|but|not)[\s,]+)+", re.I)  # "under 5 or over 9 euros"


class NumberFilter(NamedTuple):
    """A filter, and the words of the query that it was read from."""

    where: str
    words: str


class Unread(NamedTuple):
    """Words that bound a number and filter nothing, and why."""

    words: str
    why: str


class ReadNumbers(NamedTuple):
    """What became of a query's bounds."""

    filters: tuple[NumberFilter, ...] = ()
    unread: tuple[Unread, ...] = ()

    def where(self, given: str | None) -> str | None:
        """The caller's filter and these."""
        if not self.filters:
            return None if given == "" else given
        return " and ".join([*([] if given in (None, "") else [f"({given})"]), *(one.where for one in self.filters)])

    def blanked(self, query: str) -> str:
        """The query with blanks in place of what filters: "not over 500" excludes nothing else."""
        for one in self.filters:
            query = query.replace(one.words, " " * len(one.words))
        return query

    @property
    def lines(self) -> list[str]:
        """What to tell the user."""
        return [
            *(f"filter: {one.where}, from {quoted(one.words)}; --no-numbers takes it off" for one in self.filters),
            *(f"{quoted(one.words)} is searched as words: {one.why}" for one in self.unread),
        ]


NO_NUMBERS = ReadNumbers()


class _Read(NamedTuple):
    """A bound, or the two of a range, with the words before it that belong to it. denied: None where that is not
    certain. why: why it filters nothing. is_or: OR stands between it and the one before."""

    bounds: tuple[Bound, ...]
    start: int
    field: str | None
    denied: bool | None = False
    why: str = ""
    is_or: bool = False

    @property
    def end(self) -> int:
        return self.bounds[0].end

    def where(self, kinds: Mapping[str, str]) -> list[str]:
        """The filters that it asks for, all of which have to pass."""
        assert self.field is not None
        found = []
        for bound in self.bounds:
            sign = OPPOSITE[bound.sign] if self.denied else bound.sign
            found.append(f"{_name(self.field)} {sign} {_value(bound, kinds[self.field], sign)}")
        return [f"({' or '.join(found)})"] if self.denied and len(found) > 1 else found


def read_numbers(query: Query, fields_of: Callable[[], Mapping[str, str]]) -> tuple[Query, ReadNumbers]:
    """The query without the conditions that became filters, and what was made of its bounds. fields_of: gives the
    documents' fields and their kinds; not called for a query without bounds."""
    bounds = read_bounds(query.query)
    if not bounds:
        return query, NO_NUMBERS
    text, kinds = query.query, fields_of()
    filters: list[NumberFilter] = []
    unread: list[Unread] = []
    taken: list[Span] = []
    for group in _with_reasons(_groups(query, bounds, kinds), query.conditions, kinds):
        if group[0].why:
            unread += [Unread(text[one.start : one.end], one.why) for one in group]
            continue
        words = text[group[0].start : group[-1].end]
        each = [where for one in group for where in one.where(kinds)]
        if len(group) > 1 and not all(one.denied for one in group):  # else neither of them passes
            each = [f"({' or '.join(' and '.join(one.where(kinds)) for one in group)})"]
        filters += [NumberFilter(where, words) for where in each]
        taken += [(one.start, one.end) for one in group]
    left = replace(query, conditions=_without(query.conditions, taken, text)) if taken else query
    return left, ReadNumbers(tuple(filters), tuple(dict.fromkeys(unread)))


def _groups(query: Query, bounds: Sequence[Bound], kinds: Mapping[str, str]) -> list[list[_Read]]:
    """The bounds as they were read; those that OR joins are one group."""
    stretches = [tuple(own) for _, own in groupby(bounds, lambda bound: (bound.start, bound.end))]
    groups: list[list[_Read]] = []
    last: _Read | None = None
    for own, after in zip(stretches, [*stretches[1:], None], strict=True):
        if after and _SHARES_UNIT.fullmatch(query.query, own[0].end, after[0].start):
            own = tuple(bound._replace(unit=bound.unit or after[0].unit) for bound in own)
        one = _read(query, own, kinds, last)
        if one.field is None and not own[0].is_firm:
            continue  # "9 to 5" is no bound
        last = one
        groups = [*groups[:-1], [*groups[-1], one]] if one.is_or else [*groups, [one]]
    return groups


def _read(query: Query, bounds: tuple[Bound, ...], kinds: Mapping[str, str], last: _Read | None) -> _Read:
    """A bound, or the two of a range, behind the last one or alone."""
    text, first = query.query, bounds[0]
    field, bound = fitted(first, text, kinds)
    named = text[bound.start : first.start].split()[:1]
    excluded = [(part.start, part.end) for part in query.conditions.excluded]
    is_time = bound.unit in (DAY, YEAR)
    denied, start = polarity(text, (first.start, bound.end), "".join(named), is_time=is_time, excluded=excluded)
    start = min(start, bound.start)
    joins = _JOINS.fullmatch(text, last.end, start) if last else None
    if last and joins and not (named or bound.about) and _goes_on(first.unit, last, kinds):
        field = last.field
    is_or = bool(joins and joins["or"])
    if is_or and last and last.denied is not False:  # "not before 1990 or after 2000", not "... or not after 2000"
        denied = True if last.denied and denied is False else None
    bounds = tuple(one._replace(start=bound.start, end=bound.end, unit=bound.unit) for one in bounds)
    return _Read(bounds, start, field, denied, is_or=is_or)


def _goes_on(unit: str, last: _Read, kinds: Mapping[str, str]) -> bool:
    """Whether a number of this unit may be of the last one's field: "posted after 2020 and before June 2023"."""
    last_unit, times = last.bounds[0].unit, (DAY, YEAR)
    if last_unit in times and kinds.get(last.field or "") == "date":
        return unit in times
    return unit == last_unit or (not unit and last_unit not in times)


def _overlaps(start: int, end: int, part: Part) -> bool:
    return start < part.end and part.start < end


def _with_reasons(
    groups: Sequence[Sequence[_Read]], conditions: Conditions, kinds: Mapping[str, str]
) -> Iterator[list[_Read]]:
    """The groups, each with why it filters nothing, if it does not: where one of its bounds cannot, none can."""
    of_one = _of_one_alternative(groups, conditions)
    compares = f"--where compares fields ({_there_are(kinds)})"
    for number, group in enumerate(groups):
        whys = [_why_not(one, compares, kinds) for one in group]
        if number in of_one:
            whys[0] = whys[0] or "it is said of one alternative alone; ask for each by itself"
        why = next(filter(None, whys), "")
        yield [one._replace(why=own or why) for one, own in zip(group, whys, strict=True)]


def _why_not(one: _Read, compares: str, kinds: Mapping[str, str]) -> str:
    """Why a bound filters nothing; "" where it does."""
    bound, has_dates = one.bounds[0], "date" in kinds.values()
    if math.isnan(bound.number) and bound.unit == DAY and has_dates:
        earlier = ", the earlier one first" * (len(one.bounds) > 1)
        return f"the day is not certain; write it as 2024-06-05{earlier}"
    if math.isnan(bound.number) and bound.unit != DAY and not {"number", "date"}.isdisjoint(kinds.values()):
        return f"the number is not certain; write it as 1000 or 1.5{' and its unit' * (len(one.bounds) > 1)}"
    if one.field is None:
        return f"no one field fits; {compares}"
    if not bound.sign:
        return f"it may mean more or less; {compares}"
    return "" if one.denied is not None else f"what is denied is not certain; {compares}"


def _there_are(kinds: Mapping[str, str]) -> str:
    names = ", ".join(name for name, kind in kinds.items() if kind != "text") or "none"
    return f"numbers{' and dates' * ('date' in kinds.values())}: {names}"


def _of_one_alternative(groups: Sequence[Sequence[_Read]], conditions: Conditions) -> set[int]:
    """The groups that stand in one of several alternatives, and not behind all of them: "soups under 20 minutes or
    stews", unlike "stews or soups under 20 minutes"."""
    found: set[int] = set()
    for alternatives in (sorted(own, key=lambda part: part.start) for own in conditions.wanted if len(own) > 1):
        places = [
            {place for place, part in enumerate(alternatives) if _overlaps(group[0].start, group[-1].end, part)}
            for group in groups
        ]
        # The OR of "3 or more rooms", or of "under 5 or over 9", is the bound's own.
        inside = {number for number, own in enumerate(places) if len(own) == 1}
        if any(places[number] != {len(alternatives) - 1} for number in inside):
            found |= inside
    return found


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


def _without(conditions: Conditions, bounds: Sequence[Span], query: str) -> Conditions:
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


def _around(part: Part, bounds: Sequence[Span], query: str) -> list[Part]:
    """What is left of a condition around bounds. Its text may be the query's without an exclusion in its middle."""
    own = [(start, end) for start, end in bounds if part.start < end and start < part.end]
    if not own:
        return [part]
    inside = [query[max(start, part.start) : min(end, part.end)] for start, end in own]  # "March 1, 2025" is cut
    if any(part.end - part.start <= len(words) + 4 for words in inside):
        return []
    found = []
    # Of "not before May 2025" a condition may have "May 2025" left, where a reader takes the rest for what excludes.
    tails = [own[place.start() :] for own in inside for place in re.finditer(r"\S+", own)]
    tails = [own for own in tails if any(map(str.isdigit, own))] or inside
    words = "|".join(map(re.escape, sorted(tails, key=len, reverse=True)))
    for piece in re.split(rf"(?<!\w)(?:{words})(?!\w)", part.text):
        start, end = trim(piece, 0, len(_JOINING.sub("", piece)))
        if content(piece[start:end]):
            found.append(_placed(part, piece[start:end], query))
    return found


def _placed(part: Part, text: str, query: str) -> Part:
    """A piece of a condition, with its place in the query; the condition's own where it does not stand there as it
    is."""
    start = query.find(text, part.start, part.end)
    return part._replace(text=text) if start < 0 else Part(part.operator, start, start + len(text), text)
