"""Documents that affirm, deny and keep silent: `data/trades/` and `data/statements/`.

A trade is a collection of one kind of thing: its attributes with the phrases that people have for them, documents with
the attributes that each affirms and denies, and queries. Statements are short texts, each with conditions of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from boolbert.core.errors import DataError
from boolbert.core.files import read_object
from boolbert.data.lines import text_lines

FOLDER = Path(__file__).parent
AFFIRMED, DENIED, SILENT, NOT_AFFIRMED = "affirmed", "denied", "silent", "not affirmed"
_LETTERS = {"y": AFFIRMED, "n": DENIED, "u": SILENT}
# What a trade's file has to have, and each of its documents and queries.
_TRADE = {"author": str, "attributes": dict, "kinds": dict, "documents": list, "queries": list}
_DOCUMENT = {"title": str, "text": str, "kind": str, "affirms": list, "denies": list}
_QUERY = {"query": str, "wanted": str, "excluded": str}


class Label(NamedTuple):
    """What a text says of a condition, which has several phrases. A kind that a document is not may be denied or not
    spoken of: it is NOT_AFFIRMED."""

    text: str
    phrases: tuple[str, ...]
    says: str


class TradeQuery(NamedTuple):
    """A query, and the rows of the documents that are good for it and that violate it. marked: the query with its
    marks; "" where its author gave none."""

    text: str
    good: list[int]
    violating: list[int]
    marked: str = ""


@dataclass(frozen=True)
class Trade:
    """One collection, as its file has it."""

    name: str
    content: Mapping[str, Any]

    @property
    def author(self) -> str:
        return str(self.content["author"])

    @cached_property
    def texts(self) -> list[str]:
        return [f"{one['title']}\n{one['text']}" for one in self.content["documents"]]

    def labels(self) -> list[Label]:
        """What each document says of each attribute; kinds last."""
        found = []
        for text, document in zip(self.texts, self.content["documents"], strict=True):
            for name, phrases in self.content["attributes"].items():
                says = {**dict.fromkeys(document["affirms"], AFFIRMED), **dict.fromkeys(document["denies"], DENIED)}
                found.append(Label(text, tuple(phrases), says.get(name, SILENT)))
        return found

    def kinds(self) -> list[Label]:
        """Whether each document is of each kind."""
        return [
            Label(text, tuple(phrases), AFFIRMED if document["kind"] == kind else NOT_AFFIRMED)
            for text, document in zip(self.texts, self.content["documents"], strict=True)
            for kind, phrases in self.content["kinds"].items()
        ]

    def queries(self) -> list[TradeQuery]:
        """A document is good where what is wanted holds and what is excluded does not, and violates where both hold.
        Where a denial is wanted, everything that is excluded violates."""
        known = [self._gold(document) for document in self.content["documents"]]
        found = []
        for query in self.content["queries"]:
            try:
                wanted, excluded = (
                    {row for row, gold in enumerate(known) if _holds(query[side], gold)}
                    for side in ("wanted", "excluded")
                )
            except (NameError, SyntaxError, TypeError) as error:
                raise DataError(f"{self.name}: {query['query']!r}: what it wants or excludes: {error}") from None
            asks_denial = "==no" in query["wanted"].replace(" ", "")
            violating = excluded if asks_denial else wanted & excluded
            marked = str(query.get("marked", ""))
            found.append(TradeQuery(query["query"], sorted(wanted - excluded), sorted(violating), marked))
        return found

    def _gold(self, document: Mapping[str, Any]) -> dict[str, str]:
        gold = dict.fromkeys(self.content["attributes"], "unmentioned")
        gold |= dict.fromkeys(document["affirms"], "yes") | dict.fromkeys(document["denies"], "no")
        return {**gold, "kind": document["kind"]}


def _holds(expression: str, gold: Mapping[str, str]) -> bool:
    names = {**gold, "yes": "yes", "no": "no", "unmentioned": "unmentioned", "False": False}
    return bool(eval(expression, {"__builtins__": {}}, names))  # nosec B307


def trades(folder: Path = FOLDER / "trades") -> list[Trade]:
    """All trades of a folder."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise DataError(f"{folder}: holds no trades")
    return [Trade(file.stem, _content(file)) for file in files]


def by_authors(every: Sequence[Trade], authors: Sequence[str], flag: str) -> list[Trade]:
    """The trades of these authors, in their order. The error on an unknown author begins with `flag`, which named
    them."""
    if unknown := set(authors) - {trade.author for trade in every}:
        known = ", ".join(sorted({trade.author for trade in every}))
        raise DataError(f"{flag}: {min(unknown)!r} is no author of the trades: {known}")
    return [trade for author in authors for trade in every if trade.author == author]


def _content(file: Path) -> dict[str, Any]:
    """A trade's file, of which everything is there that is asked for later."""
    content = read_object(file, DataError)
    _check(str(file), content, _TRADE)
    for number, query in enumerate(content["queries"]):
        _check(f"{file}: queries[{number}]", query, _QUERY)
    for number, document in enumerate(content["documents"]):
        where = f"{file}: documents[{number}]"
        _check(where, document, _DOCUMENT)
        for name in (*document["affirms"], *document["denies"]):
            if name not in content["attributes"]:
                raise DataError(f"{where}: {name!r} is none of the attributes; add it to them")
        if document["kind"] not in content["kinds"]:
            raise DataError(f"{where}: {document['kind']!r} is none of the kinds; add it to them")
    return content


def _check(where: str, value: Any, fields: Mapping[str, type]) -> None:
    for name, kind in fields.items():
        if not isinstance(value, dict) or not isinstance(value.get(name), kind):
            raise DataError(f"{where}: must have a field {name!r} that is a {kind.__name__}")


def statements(folder: Path = FOLDER / "statements") -> list[Label]:
    """Short texts with what they say of conditions, from all files of a folder."""
    return [label for file in statement_files(folder) for label in read_statements(file)]


def statement_files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise DataError(f"{folder}: holds no statements")
    return files


def read_statements(file: Path) -> list[Label]:
    """A text a line: "No lift. || a lift = n ; stairs = u"."""
    found = []
    for number, line in text_lines(file):
        text, bars, rest = line.partition("||")
        if line.strip() and not (text.strip() and bars):
            raise DataError(f"{file}:{number}: must be TEXT || CONDITION = y, n or u; ...: {line[:60]!r}")
        for part in filter(str.strip, rest.split(";")):
            condition, _, letter = part.rpartition("=")
            if letter.strip() not in _LETTERS or not condition.strip():
                raise DataError(f"{file}:{number}: {part.strip()!r} must be CONDITION = y, n or u")
            found.append(Label(text.strip(), (condition.strip(),), _LETTERS[letter.strip()]))
    return found
