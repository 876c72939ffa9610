"""Documents that affirm, deny and keep silent: `data/trades/` and `data/statements/`.

A trade is a collection of one kind of thing: its attributes with the phrases that people have for them, documents with
the attributes that each affirms and denies, and queries. Statements are short texts, each with conditions of its own.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from boolbert.core.errors import DataError

FOLDER = Path(__file__).parent
AFFIRMED, DENIED, SILENT, NOT_AFFIRMED = "affirmed", "denied", "silent", "not affirmed"
_LETTERS = {"y": AFFIRMED, "n": DENIED, "u": SILENT}


class Label(NamedTuple):
    """What a text says of a condition, which has several phrases. A kind that a document is not may be denied or not
    spoken of: it is NOT_AFFIRMED."""

    text: str
    phrases: tuple[str, ...]
    says: str


class TradeQuery(NamedTuple):
    """A query, and the rows of the documents that are good for it and that violate it."""

    text: str
    good: list[int]
    violating: list[int]


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
            wanted, excluded = (
                {row for row, gold in enumerate(known) if _holds(query[name], gold)} for name in ("wanted", "excluded")
            )
            asks_denial = "==no" in query["wanted"].replace(" ", "")
            violating = excluded if asks_denial else wanted & excluded
            found.append(TradeQuery(query["query"], sorted(wanted - excluded), sorted(violating)))
        return found

    def _gold(self, document: Mapping[str, Any]) -> dict[str, str]:
        gold = dict.fromkeys(self.content["attributes"], "unmentioned")
        gold |= dict.fromkeys(document["affirms"], "yes") | dict.fromkeys(document["denies"], "no")
        return {**gold, "kind": document["kind"]}


def _holds(expression: str, gold: Mapping[str, str]) -> bool:
    names = {**gold, "yes": "yes", "no": "no", "unmentioned": "unmentioned", "False": False}
    return bool(eval(expression, {"__builtins__": {}}, names))  # nosec B307: of files that come with the package


def trades(folder: Path = FOLDER / "trades") -> list[Trade]:
    """All trades of a folder."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise DataError(f"{folder}: holds no trades")
    return [Trade(file.stem, json.loads(file.read_text(encoding="utf-8"))) for file in files]


def marked_trade_queries(folder: Path = FOLDER / "trades") -> list[str]:
    """The queries of all trades whose authors have marked them, as `data/reading` has its own."""
    return [query["marked"] for trade in trades(folder) for query in trade.content["queries"] if "marked" in query]


def statements(folder: Path = FOLDER / "statements") -> list[Label]:
    """Short texts: "No lift. || a lift = n ; stairs = u"."""
    found = []
    for file in sorted(folder.glob("*.txt")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            text, _, rest = line.partition("||")
            for part in filter(str.strip, rest.split(";")):
                condition, _, letter = part.rpartition("=")
                if letter.strip() not in _LETTERS or not condition.strip():
                    raise DataError(f"{file}, line {number}: {part.strip()!r} must be CONDITION = y, n or u")
                found.append(Label(text.strip(), (condition.strip(),), _LETTERS[letter.strip()]))
    return found
