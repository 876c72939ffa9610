"""Short passages and what people ask of them: `data/passages/`, a file for each author.

A line is a passage, {"id", "text"}, or a question, {"query", "kind", "good", "violating", "marked"}: which passages
answer it, and which have what it excludes. kind: what NOT excludes, "topic", "set" or "property"; or "plain", "and",
"or", where nothing is excluded.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from boolbert.boolean.tags import KINDS_OF_NOT, parse_marked
from boolbert.core.errors import DataError
from boolbert.data.reading import MarkedQuery
from boolbert.data.rows import json_rows

FOLDER = Path(__file__).parent / "passages"
KINDS = (*KINDS_OF_NOT, "plain", "and", "or")


class PassageQuestion(NamedTuple):
    """A question, the rows of the passages that answer it, and of those that have what it excludes."""

    text: str
    kind: str
    good: list[int]
    violating: list[int]
    marked: str


@dataclass(frozen=True)
class Passages:
    """What one author wrote."""

    author: str
    texts: list[str]
    questions: list[PassageQuestion]

    def marked(self) -> list[MarkedQuery]:
        """The questions with their marks, as the reader learns from them."""
        found = []
        for one in self.questions:
            text, marks = parse_marked(one.marked)
            kind = one.kind if one.kind in KINDS_OF_NOT else None
            found.append(MarkedQuery(text, marks, self.author, True, kind))
        return found


def passages(folder: Path = FOLDER) -> list[Passages]:
    """The passages of all authors."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise DataError(f"{folder}: holds no passages")
    return [_read(file) for file in files]


def _read(file: Path) -> Passages:
    texts: dict[str, str] = {}
    asked = []
    for row in json_rows(file, progress=False):
        if "text" in row.values:
            texts[row.text("id")] = row.text("text")
        else:
            asked.append(row)
    number = {name: place for place, name in enumerate(texts)}
    questions = []
    for row in asked:
        kind, sides = row.text("kind"), (row.texts("good"), row.texts("violating"))
        if kind not in KINDS:
            raise DataError(f"{row.where}: field 'kind' must be one of {', '.join(KINDS)}, got {kind!r}")
        for name in (*sides[0], *sides[1]):
            if name not in number:
                raise DataError(f"{row.where}: {name!r} is none of the file's passages")
        good, violating = ([number[name] for name in side] for side in sides)
        questions.append(PassageQuestion(row.text("query"), kind, good, violating, row.text("marked")))
    return Passages(file.stem, list(texts.values()), questions)
