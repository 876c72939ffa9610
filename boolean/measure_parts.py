"""What `read_parts` excludes from real queries: how many, and how well against QUEST's marks.

    python -m boolbert.boolean.measure_parts quest/train.jsonl excluir/queries.jsonl.gz
    python -m boolbert.boolean.measure_parts queries.jsonl --show 20

A row needs `query` or `text`. With `original_query` the template tells whether something is excluded, and the marks
tell which words, where they can be found again in the query.
"""

import argparse
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .decompose import gold_parts
from .marks import marked_scopes
from .measure import Score, read_rows
from .parts import Span, read_parts

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def words_in(text: str, spans: Iterable[Span]) -> set[int]:
    """The words that lie in spans, by where they begin.

    >>> words_in("cats but not dogs", [(13, 17)])
    {13}
    """
    spans = list(spans)
    starts = ((match.start(), match.end()) for match in _WORD.finditer(text))
    return {start for start, end in starts if any(start < right and end > left for left, right in spans)}


def compare(pairs: Iterable[tuple[set[int], set[int]]]) -> Score:
    """Found and meant words of each text, counted over all texts.

    >>> compare([({1, 2}, {2, 3})])
    Score(hits=1, wrong=1, missed=1)
    """
    hits = wrong = missed = 0
    for found, meant in pairs:
        hits, wrong, missed = hits + len(found & meant), wrong + len(found - meant), missed + len(meant - found)
    return Score(hits, wrong, missed)


def query_and_original(row: dict[str, Any]) -> tuple[str, str | None]:
    """A query and its marked original, if it has one."""
    return row["query"] if "query" in row else row["text"], row.get("original_query")


def summary(rows: list[tuple[str, str | None]]) -> str:
    """The figures of one file, as lines."""
    found = {query: words_in(query, read_parts(query).scopes("not")) for query, _ in rows}
    count = sum(bool(words) for words in found.values())
    lines = [f"{len(found)} queries, {count} with an exclusion ({count / max(len(found), 1):.1%})"]
    marked = [(query, original) for query, original in rows if original]
    if marked:
        means = [any(part.operator == "not" for part in gold_parts(original)) for _, original in marked]
        right = compare(
            ({0} if found[query] else set(), {0} if meant else set())
            for (query, _), meant in zip(marked, means, strict=True)
        )
        spans = []
        for (query, original), meant in zip(marked, means, strict=True):
            scopes = marked_scopes(query, original) if meant else None
            if scopes is not None and scopes["not"] is not None:
                spans.append((found[query], words_in(query, scopes["not"])))
        lines.append(_line(f"exclusion or not, {sum(means)} queries mean one", right))
        lines.append(_line(f"excluded words, {len(spans)} marks found again", compare(spans)))
    return "\n".join(lines)


def _line(name: str, result: Score) -> str:
    return f"{name}: precision {result.precision:.3f}, recall {result.recall:.3f}, F1 {result.f1:.3f}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m boolbert.boolean.measure_parts", description="What read_parts excludes from real queries."
    )
    parser.add_argument("paths", type=Path, nargs="+", help=".jsonl or .jsonl.gz files with `query` or `text`")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="list N queries without an exclusion")
    options = parser.parse_args(arguments)
    try:
        for path in options.paths:
            rows = list(read_rows(path, query_and_original, "`query` or `text`"))
            print(f"{path}\n{summary(rows)}")
            none = [query for query, _ in rows if not read_parts(query).excluded]
            print("".join(f"  {query}\n" for query in none[: options.show]))
    except (OSError, EOFError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
