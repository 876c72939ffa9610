"""The first look at a collection: how many documents hold each word, name, phrase, kind, relation and field value."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .text_words import TABLES, read_text

HEAD_SHARE = 0.02  # a noun is a head where this share of the documents says "is a ... NOUN"
MAX_HEADS = 12
LIMIT = 1_000_000  # entries of one table; beyond it the rarest are forgotten


class Text(NamedTuple):
    """A document as the counting takes it: its content, and the values of its structured fields."""

    content: str
    fields: Mapping[str, Iterable[str]]


Texts = Callable[[int], Iterator[Text]]  # every n-th document of a collection


@dataclass
class Counts:
    """In how many documents each thing occurs. Documents may be a sample: every `stride`-th of the collection."""

    heads: dict[str, int]  # what the documents call themselves ("film", "novel"), and how many do
    looked_at: int  # documents that were asked for their heads
    stride: int = 1
    documents: int = 0
    tables: dict[str, Counter[Any]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Counter[Any]:
        return self.tables[name]

    def estimate(self, count: int) -> int:
        """A count as it would be in the whole collection."""
        return count * self.stride


def count_texts(texts: Texts, total: int, *, sample: int = 200_000) -> Counts:
    """Count a collection of `total` documents, or a sample of it. Memory is bounded whatever its size.

    >>> counts = count_texts(lambda stride: iter([Text("A cat and a dog.", {}), Text("A cat.", {})]), total=2)
    >>> counts["words"].most_common(1)
    [('cat', 2)]
    """
    called: Counter[str | None] = Counter(read_text(text.content).head for text in texts(max(1, total // 5000)))
    enough = max(3, HEAD_SHARE * called.total())
    heads = {head: count for head, count in called.most_common(MAX_HEADS) if head is not None and count >= enough}
    counts = Counts(heads, called.total(), stride=max(1, total // sample))
    counts.tables = {name: Counter() for name in (*TABLES, "fields")}
    for text in texts(counts.stride):
        counts.documents += 1
        found = read_text(text.content, counts.heads)
        for name in TABLES:
            counts.tables[name].update(getattr(found, name))
        counts["fields"].update((name, value) for name, values in text.fields.items() for value in values)
        if counts.documents % 2000 == 0:
            for table in counts.tables.values():
                forget_rare(table, LIMIT)
    return counts


def forget_rare(table: Counter[Any], limit: int) -> None:
    """Drop what came once, then twice, ... until a table is below its limit.

    >>> table = Counter("aaabbc")
    >>> forget_rare(table, 1)
    >>> table
    Counter({'a': 3})
    """
    least = 1
    while len(table) > limit:
        for key in [key for key, count in table.items() if count <= least]:
            del table[key]
        least += 1
