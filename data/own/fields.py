"""Which fields of a row are its text, title and id, and which sort documents into sets (genre, year, country)."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import DataError
from ..rows import Row, shorten_list
from .words import YEAR

SAMPLE = 1000  # rows that are looked at before anything is decided

# Usual names, the likeliest first.
TEXT = (
    *("text", "body", "content", "contents", "description", "abstract", "summary", "overview", "plot", "article"),
    *("passage", "document", "doc", "review", "review_text", "details", "instructions", "directions", "message"),
    *("comment", "answer", "bio", "notes", "long_description", "short_description"),
)
TITLE = ("title", "name", "headline", "subject", "heading", "product_name", "product_title", "product", "label")
ID = ("id", "_id", "docid", "doc_id", "document_id", "pid", "uid", "uuid", "sku", "asin", "isbn", "url", "link", "key")
# Fields whose values are not asked for in queries.
_NO_SET = re.compile(r"(^|_)(id|ids|url|urls|link|links|href|image|images|thumbnail|path|src|source|hash|lang)$")

_ID_NAME = re.compile(r"(?i:[_\s-]id)$|[a-z]I[dD]$")
_NUMBER = re.compile(r"[+-]?(?:\d[\d,]*\.?\d*|\.\d+)")
_DATE = re.compile(r"(?P<year>1[5-9]\d\d|20\d\d)-\d\d?-\d\d?(?:[T ].*)?|\d\d?[/.]\d\d?[/.](?P<last>1[5-9]\d\d|20\d\d)")
_CODE = re.compile(r"(?=.*\d)[\w./:-]+")
_SEPARATORS = ("|", ";", ",")
_LONGEST_VALUE = 40
_LARGEST_NUMBER = 1e12
_FEWEST_ROWS = 3  # a value that comes up less often makes no set


@dataclass(frozen=True)
class Layout:
    """How a row becomes a document. `title` and `id` may be absent; `texts` are joined."""

    texts: tuple[str, ...]
    title: str | None = None
    id: str | None = None
    atoms: tuple[str, ...] = ()
    separators: Mapping[str, str] = field(default_factory=dict)  # field -> what separates its values

    def __str__(self) -> str:
        parts = [f"text: {' + '.join(self.texts)}", f"title: {self.title or 'none'}", f"id: {self.id or 'none'}"]
        return ", ".join([*parts, f"sets: {', '.join(self.atoms) or 'none'}"])

    @property
    def named(self) -> dict[str, str]:
        """The columns that documents added later must be read by, as the flags name them."""
        return {name: value for name, value in (("id", self.id), ("atoms", ",".join(self.atoms))) if value}

    def values(self, row: Row) -> dict[str, tuple[str, ...]]:
        """The values of a row's structured fields."""
        found = {name: tuple(field_values(row.get(name), self.separators.get(name))) for name in self.atoms}
        return {name: tuple(row.encodable(name, value) for value in values) for name, values in found.items() if values}


def find_layout(
    rows: Sequence[Row], *, text: str | None, title: str | None, id: str | None, atoms: str | None
) -> Layout:
    """The layout of these rows: as named, else guessed. `text` and `atoms` may be several ("body,notes"), or "none"."""
    first = rows[0]
    names = list(dict.fromkeys(row.encodable(name, name) for row in rows for name in row.values))
    for flag, given in (("text", text), ("title", title), ("id", id), ("atoms", atoms)):
        for name in _listed(given):
            if name not in names and not any(row.get(name) is not None for row in rows):  # the latter: of an object
                present = shorten_list(names)
                raise DataError(f"{first.where}: there is no field {name!r} for --{flag} (fields here: {present})")
    lengths = {name: _mean_length(rows, name) for name in names}
    has_text = [name for name in names if lengths[name] > 0]
    given_title = title
    title = None if title == "none" else title or _named(TITLE, names, taken=_listed(text))
    texts = _listed(text)
    if not texts:
        free = [name for name in has_text if name != title]
        guess = _named(TEXT, free)
        if guess is None and free:
            longest = max(free, key=lambda name: lengths[name])
            guess = longest if lengths[longest] >= 2 or not title else None  # single words beside a title are no text
        texts = (guess,) if guess else (title,) if title in has_text else ()
    if not texts:
        raise DataError(f"{first.where}: no field holds text (fields here: {shorten_list(names)})")
    title = None if title in texts else title
    if title and not (given_title or id or _named(ID, names, taken=texts)) and _codes(rows, title):
        title, id = None, title
    taken = (*texts, *([title] if title else []))
    id = None if id == "none" else id or _named(ID, names, taken=taken) or _own_id(rows, names, taken)
    rest = [name for name in names if name not in (*texts, title, id)]
    separators = {name: separator for name in rest if (separator := _separator(rows, name))}
    chosen = _listed(atoms) if atoms else tuple(name for name in rest if _sorts(rows, name, separators.get(name)))
    return Layout(texts, title, id, chosen, {name: separators[name] for name in chosen if name in separators})


def field_values(value: Any, separator: str | None = None) -> list[str]:
    """The values of a field as texts: one, several, or for a date its year.

    >>> field_values(["Drama", "War"]), field_values("Drama, War", ","), field_values("1994-05-01"), field_values(True)
    (['Drama', 'War'], ['Drama', 'War'], ['1994'], ['yes'])
    """
    if isinstance(value, str) and value[:1] == "[":
        value = parsed_list(value)
    if isinstance(value, list | tuple):
        return list(dict.fromkeys(text for item in value for text in field_values(item)))
    if isinstance(value, bool) or (isinstance(value, str) and value.strip().lower() in ("true", "false")):
        return ["yes"] if str(value).strip().lower() == "true" else []
    if isinstance(value, int | float):  # a measurement sorts nothing into sets
        return [str(int(value))] if abs(value) < _LARGEST_NUMBER and value == int(value) else []
    if not isinstance(value, str):
        return []
    if date := _DATE.fullmatch(value.strip()):
        return [date["year"] or date["last"]]
    pieces = value.split(separator) if separator else [value]
    return list(dict.fromkeys(text for piece in pieces if (text := " ".join(piece.split()))))


def _own_id(rows: Sequence[Row], names: Iterable[str], taken: Sequence[str]) -> str | None:
    """A field such as ticket_id or orderId whose values are all there and all different."""
    for name in names:
        values = [row.values.get(name) for row in rows] if name not in taken and _ID_NAME.search(name) else []
        texts = {str(value).strip() for value in values if type(value) in (str, int)} - {""}
        if values and len(texts) == len(rows):
            return name
    return None


def _is_measured(rows: Sequence[Row], name: str) -> bool:
    """Whether a field holds numbers, such as prices or minutes, which sort nothing into sets; years do."""
    values = [str(value).strip() for row in rows if (value := row.get(name)) not in (None, "")]
    numbers = [value for value in values if _NUMBER.fullmatch(value)]
    years = sum(YEAR.fullmatch(value) is not None for value in numbers)
    return len(numbers) > 0.9 * len(values) and years < 0.9 * len(numbers)


def _sorts(rows: Sequence[Row], name: str, separator: str | None) -> bool:
    """Whether a field sorts the rows into sets: short values, most of which come back."""
    if _NO_SET.search(name.lower()) or _is_measured(rows, name):
        return False
    counts: Counter[str] = Counter()
    filled = 0
    for row in rows:
        values = field_values(row.get(name), separator)
        filled += bool(values)
        counts.update(values)
    if not counts or sum(len(value) > _LONGEST_VALUE for value in counts) > 0.1 * len(counts):
        return False
    if len(counts) == 1 and next(iter(counts.values())) == len(rows):
        return False  # the same for all
    least = min(_FEWEST_ROWS, max(2, len(rows) // 10))
    coming_back = sum(count for count in counts.values() if count >= least)
    return filled >= 0.05 * len(rows) and coming_back >= 0.5 * sum(counts.values())


def _separator(rows: Sequence[Row], name: str) -> str | None:
    """What separates the values of a field of lists written as text ("Drama, War"); None where it holds one value."""
    values = [value for row in rows if isinstance(value := row.get(name), str) and value[:1] != "["]
    for separator in _SEPARATORS:
        several = [value for value in values if separator in value]
        if len(several) < max(2, 0.05 * len(values)):
            continue
        pieces = Counter(piece.strip() for value in values for piece in value.split(separator))
        whole = Counter(values)
        short = all(len(piece) <= _LONGEST_VALUE for piece in pieces)
        if short and len(pieces) < 0.7 * len(whole):  # the pieces come back more often than the whole
            return separator
    return None


def parsed_list(value: str) -> Any:
    """A list written as text, in JSON or as Python prints it; else the text itself."""
    for text in (value, value.replace("'", '"')):
        try:
            parsed = json.loads(text)
        except ValueError:
            continue
        return parsed if isinstance(parsed, list) else value
    return value


def _mean_length(rows: Sequence[Row], name: str) -> float:
    """Words in a field, on average; 0 where it holds no words."""
    words = [len(value.split()) for row in rows if isinstance(value := row.values.get(name), str)]
    letters = any(any(map(str.isalpha, str(row.values.get(name)))) for row in rows[:20])
    return sum(words) / len(rows) if letters else 0.0


def _codes(rows: Sequence[Row], name: str) -> bool:
    """Whether a field holds codes (a17, 0042) rather than titles."""
    values = [str(value).strip() for row in rows if (value := row.get(name)) is not None]
    return bool(values) and sum(bool(_CODE.fullmatch(value)) for value in values) > 0.9 * len(values)


def _named(usual: Iterable[str], names: Iterable[str], taken: Sequence[str] = ()) -> str | None:
    by_name = {re.sub(r"[\s-]+", "_", name.strip().lower()): name for name in names if name not in taken}
    return next((by_name[name] for name in usual if name in by_name), None)


def _listed(names: str | None) -> tuple[str, ...]:
    given = tuple(name.strip() for name in (names or "").split(",") if name.strip())
    return () if given == ("none",) else given
