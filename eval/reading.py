"""How well queries are read: what they exclude, word by word.

    python eval/reading.py                                               # data/reading, dev
    python eval/reading.py --data test --show 20                         # and 20 queries that are read wrong
    python eval/reading.py --rewrites FOLDER/queries.jsonl.gz FOLDER/llm_rewrites.jsonl.gz
    python eval/reading.py --quest FOLDER/train_full.jsonl

Queries are read as `boolbert search` reads them. "F1": words of what is excluded. "Exactly": queries that exclude
something and whose excluded words are found, all of them and no others. "Silent": queries that exclude nothing, read
so. "Wanted": F1 of the words that are wanted.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from boolbert.boolean.tags import ALTERNATIVE, EXCLUDED, WANTED
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import BoolBertError, run_script
from boolbert.data.reading import marked_queries
from boolbert.search.query_reader import read

_WORD = re.compile(r"\w+")
# Where a condition begins and ends may be argued about: these words do not count.
_EDGES = "a an the any of in on at with and or no not that is are to for by from s"
EDGES = frozenset(_EDGES.split())


@dataclass
class Arguments:
    data: str = flag("dev", "split of data/reading")
    rewrites: list[str] = flag([], "a file of queries, and one of what others have read in them")
    quest: str | None = flag(None, "QUEST's queries, of which those with NOT are read")
    show: int = flag(0, "print this many queries that are read wrong")


class Labelled(NamedTuple):
    """A query, and the words that it excludes and wants; None where that is not known."""

    text: str
    excluded: frozenset[str]
    wanted: frozenset[str] | None = None


def words(texts: Iterable[str]) -> frozenset[str]:
    """
    >>> sorted(words(["in a Pool", "lifts"]))
    ['lifts', 'pool']
    """
    return frozenset(word for text in texts for word in _WORD.findall(text.lower()) if word not in EDGES)


def own_queries(split: str) -> list[Labelled]:
    found = []
    for query in marked_queries(split):
        spans = {kind: [query.text[m.start : m.end] for m in query.marks if m.kind in kind] for kind in _KINDS}
        found.append(Labelled(query.text, *(words(spans[kind]) for kind in _KINDS)))
    return found


_KINDS = (EXCLUDED, WANTED + ALTERNATIVE)


def rewritten_queries(queries: str, rewrites: str) -> list[Labelled]:
    """Queries with what somebody else has read in them; of that, the words that stand in the query."""
    excluded = {row["id"]: row["excluded"] for row in _rows(rewrites)}
    texts = {row["id"]: row["text"] for row in _rows(queries)}
    return [Labelled(texts[id], words(own) & words([texts[id]])) for id, own in excluded.items()]


def quest_queries(file: str) -> list[Labelled]:
    """QUEST's queries with NOT, as people have worded them: of the atom that is excluded, the words that stand in the
    query and in no other atom."""
    found = []
    for row in _rows(file):
        if "not" not in row["metadata"]["template"].split():
            continue
        *wanted, excluded = re.findall(r"<mark>(.*?)</mark>", row["original_query"])
        own = words([excluded]) - words(wanted)
        if own & words([row["query"]]):
            found.append(Labelled(row["query"], own & words([row["query"]]), words(wanted)))
    return found


def _rows(file: str) -> list[dict]:
    opened = gzip.open if file.endswith(".gz") else open
    with opened(Path(file), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def measured(queries: Sequence[Labelled], reads: Callable[[str], tuple[list[str], list[str]]]) -> dict[str, object]:
    """The figures, and under "wrong" the queries with what was found. reads: a query to what it excludes and wants."""
    excluded, wanted, exactly, silent, wrong = _Counts(), _Counts(), [], [], []
    for query in queries:
        out, wants = map(words, reads(query.text))
        own = out if query.wanted is None else out - (query.wanted - query.excluded)
        excluded.add(own, query.excluded)
        if query.wanted is not None:
            wanted.add(wants, query.wanted)
        (exactly if query.excluded else silent).append(own == query.excluded)
        if own != query.excluded:
            wrong.append(f"{query.text}\n    right: {sorted(query.excluded)}, read: {sorted(own)}")
    return {
        "F1": round(excluded.f1, 3),
        "precision": round(excluded.precision, 3),
        "recall": round(excluded.recall, 3),
        "exactly": f"{sum(exactly)} of {len(exactly)}",
        "silent": f"{sum(silent)} of {len(silent)}",
        "wanted": round(wanted.f1, 3),
        "wrong": wrong,
    }


class _Counts:
    """Words that were found and are right, found and wrong, and missed."""

    def __init__(self) -> None:
        self.right = self.found = self.expected = 0

    def add(self, found: frozenset[str], expected: frozenset[str]) -> None:
        self.right += len(found & expected)
        self.found += len(found)
        self.expected += len(expected)

    @property
    def precision(self) -> float:
        return self.right / max(1, self.found)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.expected)

    @property
    def f1(self) -> float:
        return 2 * self.right / max(1, self.found + self.expected)


def as_search_reads(text: str) -> tuple[list[str], list[str]]:
    """What a query excludes and wants; nothing where search refuses it."""
    try:
        query = read(text)
    except BoolBertError:
        return [], []
    return [span.text for span in query.excluded], [one.text for group in query.conditions.wanted for one in group]


def main(given: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, given)
    sets = {f"data/reading {args.data}": own_queries(args.data)} if not (args.rewrites or args.quest) else {}
    if args.rewrites:
        sets[args.rewrites[0]] = rewritten_queries(*args.rewrites)
    if args.quest:
        sets[args.quest] = quest_queries(args.quest)
    for name, queries in sets.items():
        found = measured(queries, as_search_reads)
        wrong = found.pop("wrong")
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in found.items()))
        for text in wrong[: args.show]:  # type: ignore[index]
            print(text)


if __name__ == "__main__":
    run_script(main)
