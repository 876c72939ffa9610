"""Search queries as people type them, with what is wanted and excluded in them: `data/reading/`.

Each file is one author's; a line is a query with its marks, as docs/reading.md says:

    [w hotel] [w in Lisbon] [c without] a [x pool]
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from boolbert.boolean.tags import CUE, Mark, parse_marked
from boolbert.core.errors import DataError
from boolbert.data.lines import text_lines

FOLDER = Path(__file__).parent / "reading"


class MarkedQuery(NamedTuple):
    """A query, its marks, and its author. has_cues: its author marked the words that exclude, too."""

    text: str
    marks: list[Mark]
    author: str
    has_cues: bool


def marked_queries(split: str, folder: Path = FOLDER) -> list[MarkedQuery]:
    """The queries of a split: "train", "dev", "test" or "groups"."""
    files = sorted(folder.glob(f"{split}*.txt"))
    if not files:
        raise DataError(f"{folder}: holds no {split}*.txt; the splits are train, dev, test and groups")
    return [query for file in files for query in read_marked(file)]


def read_marked(file: Path) -> list[MarkedQuery]:
    """The queries of a file."""
    found = []
    for number, line in text_lines(file):
        text, marks = parse_marked(line)
        if "[" in text or "]" in text:
            raise DataError(f"{file}:{number}: a bracket has no partner or an unknown letter: {text[:60]!r}")
        found += [(text, marks)] if text.strip() else []
    has_cues = any(mark.kind == CUE for _, marks in found for mark in marks)
    return [MarkedQuery(text, marks, file.stem, has_cues) for text, marks in found]


def authors(queries: Sequence[MarkedQuery]) -> list[str]:
    return list(dict.fromkeys(query.author for query in queries))
