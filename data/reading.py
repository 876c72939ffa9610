"""Search queries as people type them, with what is wanted and excluded in them: `data/reading/`.

Each file is one author's; a line is a query with its marks, as docs/reading.md says:

    [w hotel] [w in Lisbon] [c without] a [x pool]

In `data/reading/conditions/` a line says first what NOT excludes, and whether the query asks:

    topic? | What is [w Norway] known for, [c apart from] its [x fjords]?
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from boolbert.boolean.tags import CUE, KINDS_OF_NOT, Mark, parse_marked
from boolbert.core.errors import DataError
from boolbert.data.lines import text_lines

FOLDER = Path(__file__).parent / "reading"
_KIND = re.compile(rf"(-|{'|'.join(KINDS_OF_NOT)})(\??) \| ")


class MarkedQuery(NamedTuple):
    """A query, its marks, and its author. has_cues: its author marked the words that exclude, too. kind: what NOT
    excludes, one of `KINDS_OF_NOT`; asks: whether it is a question; None: not known, or nothing is excluded."""

    text: str
    marks: list[Mark]
    author: str
    has_cues: bool
    kind: str | None = None
    asks: bool | None = None


def marked_queries(split: str, folder: Path = FOLDER) -> list[MarkedQuery]:
    """The queries of a split: "train", "dev", "test" or "groups"."""
    files = sorted(folder.glob(f"{split}*.txt"))
    if not files:
        raise DataError(f"{folder}: holds no {split}*.txt; the splits are train, dev, test and groups")
    return [query for file in files for query in read_marked(file)]


def queries_with_kinds(split: str, folder: Path = FOLDER / "conditions") -> list[MarkedQuery]:
    """The queries of a split that say what NOT excludes: "train", "test", or "second", some of test by another
    labeller."""
    files = sorted(folder.glob(f"{split}*.txt"))
    if not files:
        raise DataError(f"{folder}: holds no {split}*.txt; the splits are train, test and second")
    return [query for file in files for query in _with_kinds(file)]


def _with_kinds(file: Path) -> list[MarkedQuery]:
    found = []
    for number, line in text_lines(file):
        if not line.strip():
            continue
        place, said = f"{file}:{number}", _KIND.match(line)
        if said is None:
            kinds = ", ".join(("-", *KINDS_OF_NOT))
            raise DataError(f"{place}: must begin with one of {kinds}, each with or without ?, then ' | '")
        text, marks = parse_marked(line[said.end() :])
        _check_brackets(text, place)
        excludes = any(mark.kind in ("x", "y") for mark in marks)
        if excludes != (said[1] in KINDS_OF_NOT):
            raise DataError(f"{place}: says {said[1]!r}, and {'something' if excludes else 'nothing'} is excluded")
        found.append(MarkedQuery(text, marks, file.stem, True, said[1] if excludes else None, bool(said[2])))
    return found


def _check_brackets(text: str, place: str) -> None:
    if "[" in text or "]" in text:
        raise DataError(f"{place}: a bracket has no partner or an unknown letter: {text[:60]!r}")


def read_marked(file: Path) -> list[MarkedQuery]:
    """The queries of a file."""
    found = []
    for number, line in text_lines(file):
        text, marks = parse_marked(line)
        _check_brackets(text, f"{file}:{number}")
        found += [(text, marks)] if text.strip() else []
    has_cues = any(mark.kind == CUE for _, marks in found for mark in marks)
    return [MarkedQuery(text, marks, file.stem, has_cues) for text, marks in found]


def authors(queries: Sequence[MarkedQuery]) -> list[str]:
    return list(dict.fromkeys(query.author for query in queries))
