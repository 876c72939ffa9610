"""Bounds on numbers and dates in a query as filters on the documents' fields: "under 20 minutes" asks for
`minutes < 20`, "since June 2023" for `start >= 2023-06-01`, "not built before 1990" for `year >= 1990`.

The query's reader says where a bound stands and whether it is denied, `boolean/bounds.py` reads the number, and
`search/number_fields.py` finds the field. What was taken for a filter is shown with the answer, and `--no-numbers`
searches for it as words instead. What is not certain filters nothing, and a line says why.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from boolbert.boolean.around_bounds import HAPPENED
from boolbert.boolean.bounds import DAY, OPPOSITE, YEAR, Bound, read_bounds
from boolbert.boolean.dates import last_day
from boolbert.boolean.query import Condition, Query, quoted

from .number_fields import fitted

Span = tuple[int, int]
_EDGES = " ,;:.()"
_DENIES = re.compile(r"\b(?:no|not|never|nothing|none)\b|n['’]?t\b", re.I)
# "without a pool under 50 euros", "not furnished under 50 euros": what is excluded has no number of its own.
_LACKS = re.compile(r"(?:\b(?:without|with\s+no|not)|n['’]t)\Z", re.I)
_OR = re.compile(r"\s*,?\s+or\s+", re.I)
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

    @property
    def lines(self) -> list[str]:
        """What to tell the user."""
        return [
            *(f"filter: {one.where}, from {quoted(one.words)}; --no-numbers takes it off" for one in self.filters),
            *(f"{quoted(one.words)} is searched as words: {one.why}" for one in self.unread),
        ]


NO_NUMBERS = ReadNumbers()


class _Read(NamedTuple):
    """A bound, or the two of a range, with the words before it that belong to it. why: why it filters nothing. is_or:
    OR stands between it and the one before."""

    bounds: tuple[Bound, ...]
    start: int
    field: str | None
    denied: bool = False
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
    text = query.text
    if not any(map(str.isdigit, text)) and not any(one.bound for one in query.conditions):
        return query, NO_NUMBERS
    bounds = read_bounds(text)
    if not bounds:
        return query, NO_NUMBERS
    kinds = fields_of()
    filters: list[NumberFilter] = []
    unread: list[Unread] = []
    taken: list[Span] = []
    for group in _with_reasons(_groups(query, bounds, kinds), query, kinds):
        if group[0].why:
            unread += [Unread(text[one.start : one.end], one.why) for one in group]
            continue
        words = text[group[0].start : group[-1].end]
        each = [where for one in group for where in one.where(kinds)]
        if len(group) > 1 and not all(one.denied for one in group):  # else neither of them passes
            each = [f"({' or '.join(' and '.join(one.where(kinds)) for one in group)})"]
        filters += [NumberFilter(where, words) for where in each]
        taken += [(one.start, one.end) for one in group]
    left = _without(query, taken) if taken else query
    return left, ReadNumbers(tuple(filters), tuple(dict.fromkeys(unread)))


def _groups(query: Query, bounds: Sequence[Bound], kinds: Mapping[str, str]) -> list[list[_Read]]:
    """The bounds as they were read; those that OR joins are one group."""
    stretches = [tuple(own) for _, own in groupby(bounds, lambda bound: (bound.start, bound.end))]
    groups: list[list[_Read]] = []
    last: _Read | None = None
    for own, after in zip(stretches, [*stretches[1:], None], strict=True):
        if after and _SHARES_UNIT.fullmatch(query.text, own[0].end, after[0].start):
            own = tuple(bound._replace(unit=bound.unit or after[0].unit) for bound in own)
        one = _read(query, own, kinds, last)
        if one.field is None and not own[0].is_firm:
            continue  # "9 to 5" is no bound
        last = one
        groups = [*groups[:-1], [*groups[-1], one]] if one.is_or else [*groups, [one]]
    return groups


def _read(query: Query, bounds: tuple[Bound, ...], kinds: Mapping[str, str], last: _Read | None) -> _Read:
    """A bound, or the two of a range, behind the last one or alone."""
    text, first = query.text, bounds[0]
    field, bound = fitted(first, text, kinds)
    named = text[bound.start : first.start].split()[:1]
    # "No rent over 900", "never renovated before 1990": what names the field may be all that a reader excludes.
    excluded = any(_overlaps(bound.start, bound.end, one) for one in query.excluded)
    within = _denied_within(query, first.start, bound.end)
    denied = excluded != (within is not None)
    start = min(_cue_before(query, bound.start), bound.start) if excluded else bound.start
    start = start if within is None else min(start, within)
    joins = _JOINS.fullmatch(text, last.end, start) if last else None
    if last and joins and not (named or bound.about) and _goes_on(first.unit, last, kinds):
        field = last.field
    is_or = bool(joins and joins["or"])
    bounds = tuple(one._replace(start=bound.start, end=bound.end, unit=bound.unit) for one in bounds)
    return _Read(bounds, start, field, denied, is_or=is_or)


def _denied_within(query: Query, start: int, end: int) -> int | None:
    """Where the wanted condition begins that bounds a number and denies it in itself: "no more than 500"."""
    for one in query.conditions:
        is_bound = one.bound and not one.excluded and _overlaps(start, end, one)
        if is_bound and _DENIES.search(query.text, one.start, start):
            return one.start
    return None


def _cue_before(query: Query, start: int) -> int:
    """Where the words begin that deny a bound: those of a cue before it with no other condition between."""
    cues = [cue for cue in query.cues if cue.operator == "not" and cue.end <= start]
    if not cues or any(cues[-1].end <= one.start and one.end <= start for one in query.conditions):
        return start
    return cues[-1].start


def _goes_on(unit: str, last: _Read, kinds: Mapping[str, str]) -> bool:
    """Whether a number of this unit may be of the last one's field: "posted after 2020 and before June 2023"."""
    last_unit, times = last.bounds[0].unit, (DAY, YEAR)
    if last_unit in times and kinds.get(last.field or "") == "date":
        return unit in times
    return unit == last_unit or (not unit and last_unit not in times)


def _overlaps(start: int, end: int, part: Condition) -> bool:
    return start < part.end and part.start < end


def _with_reasons(groups: Sequence[Sequence[_Read]], query: Query, kinds: Mapping[str, str]) -> Iterator[list[_Read]]:
    """The groups, each with why it filters nothing, if it does not: where one of its bounds cannot, none can."""
    of_one = _of_one_alternative(groups, query)
    compares = f"--where compares fields ({_there_are(kinds)})"
    for number, group in enumerate(groups):
        whys = [_why_not(one, compares, kinds) for one in group]
        if number in of_one:
            whys[0] = whys[0] or "it is said of one alternative alone; ask for each by itself"
        if _may_be_denied(group, query):
            whys[0] = whys[0] or "it is not certain what it is said of, or whether it is denied; say it in other words"
        why = next(filter(None, whys), "")
        yield [one._replace(why=own or why) for one, own in zip(group, whys, strict=True)]


def _may_be_denied(group: Sequence[_Read], query: Query) -> bool:
    """Whether a bound may be a part of what is excluded before it, "houses but no flats under 500 euros", or stands
    behind a denial that nobody has read: "films, but none that are longer than 120 minutes"."""
    start = group[0].start
    before = max((one for one in query.conditions if one.end <= start), key=lambda one: one.end, default=None)
    if before is None or group[0].denied:
        return False
    between = query.text[before.end : start]
    if not before.excluded:
        is_read = any(before.end <= cue.start < start for cue in query.cues if cue.operator == "not")
        return _DENIES.search(between) is not None and not is_read
    cue = next((cue for cue in reversed(query.cues) if cue.operator == "not" and cue.end <= before.start), None)
    is_lacking = cue is not None and _LACKS.search(query.text, 0, cue.end) is not None
    verb, _, rest = before.text.partition(" ")  # "published in France before 1950"
    return not between.strip() and (not is_lacking or bool(rest and HAPPENED.fullmatch(verb)))


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
    return ""


def _there_are(kinds: Mapping[str, str]) -> str:
    names = ", ".join(name for name, kind in kinds.items() if kind != "text") or "none"
    return f"numbers{' and dates' * ('date' in kinds.values())}: {names}"


def _of_one_alternative(groups: Sequence[Sequence[_Read]], query: Query) -> set[int]:
    """The groups that stand in one of several alternatives, and not behind all of them: "soups under 20 minutes or
    stews", unlike "stews or soups under 20 minutes"."""
    before_or = {number for number, group in enumerate(groups) if _OR.match(query.text, group[-1].end)}
    found = before_or | {number + 1 for number in before_or if number + 1 < len(groups)}
    for alternatives in (sorted(own, key=lambda part: part.start) for own in query.groups if len(own) > 1):
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


def _without(query: Query, bounds: Sequence[Span]) -> Query:
    """A query without the conditions that only bound a number, and with the others without the words that do; as it is
    where nothing else is wanted."""
    left = [piece for one in query.conditions if (piece := _around(one, bounds, query.text)) is not None]
    if all(one.excluded for one in left):
        left = [*(one for one in query.conditions if not one.excluded), *left]
    return replace(query, conditions=tuple(left))


def _around(one: Condition, bounds: Sequence[Span], text: str) -> Condition | None:
    """What is left of a condition around bounds; nothing of one that only bounds, or excludes what the filter says."""
    own = [(start, end) for start, end in bounds if _overlaps(start, end, one)]
    if not own:
        return one
    if one.bound or one.excluded:
        return None
    edges = [one.start, *(min(max(edge, one.start), one.end) for span in own for edge in span), one.end]
    pieces = [text[a:b].strip(_EDGES) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    found = " ".join(filter(None, pieces))
    return replace(one, text=found) if any(map(str.isalnum, found)) else None
