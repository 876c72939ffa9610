"""What a search returns: the hits, how the query was read, and what is promised of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from boolbert.boolean.query import Condition, Query, Span, listed, quoted

from .document_search import Candidate
from .number_filters import NO_NUMBERS, ReadNumbers
from .query_encoder import QueryVectors
from .rank import Limit, Ranking
from .reasons import Reason


@dataclass(frozen=True)
class Hit:
    """A found document. row: its place in an index; None in a store or with a filter, which know its id.

    wanted, excluded: its dot products with what the query wants and with what it excludes, both as long as the query's
    vector; excluded is None where nothing is. violates: whether it is excluded, None where the data does not know.
    reasons: the clauses that speak for and against it, where the index has evidence. fields: what it has in its columns
    beside title and text: numbers, dates as "1990-12-31", and lists of texts.
    """

    rank: int
    score: float
    row: int | None
    title: str
    text: str
    wanted: float
    excluded: float | None = None
    violates: bool | None = None
    id: str | None = None
    reasons: tuple[Reason, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def deciding(self) -> Reason | None:
        """The reason that is about what is excluded; the first where there is none."""
        return next((reason for reason in self.reasons if reason.says != "for"), next(iter(self.reasons), None))

    @property
    def is_against(self) -> bool:
        """Whether it has what the query excludes: as the data knows, or else as a sentence of it says."""
        return any(one.says == "against" for one in self.reasons) if self.violates is None else self.violates

    @property
    def key(self) -> int | str | None:
        """Identifies the document in its collection: its row, or in a store its id."""
        return self.id if self.row is None else self.row


@dataclass(frozen=True)
class Promise:
    """At most the share `violations` of the hits is expected to have what the query excludes.

    left_out: how many documents were left out: those that would be among the hits, and where an exclusion is typed,
    -word, all that have it. exclusions: how many it was calibrated on. notes: why nothing can be promised for this
    query.
    """

    violations: float
    left_out: int
    exclusions: int
    notes: tuple[str, ...] = ()

    def line(self, excluded: str, counted_all: bool = True) -> str:
        """What it says, for people. counted_all: of the answer.

        >>> Promise(0.05, 3, 240).line("nuts")
        '3 documents were left out; at most 5% of the results should have nuts (calibrated on 240 exclusions)'
        >>> Promise(0.05, 3, 240, ("the line is old",)).line("nuts", counted_all=False)
        'at least 3 documents were left out; nothing is promised: the line is old'
        """
        documents = "1 document was left out" if self.left_out == 1 else f"{self.left_out:,} documents were left out"
        documents = documents if counted_all else f"at least {documents}"
        if self.notes:
            why = "nothing is promised: " + "; ".join(self.notes)
            return f"{documents}; {why}" if excluded and self.left_out else why
        return (
            f"{documents}; at most {self.violations:.0%} of the results should have {excluded} "
            f"(calibrated on {self.exclusions:,} exclusions)"
        )


@dataclass(frozen=True)
class Answer:
    """The hits of a query, best first, and how it was read.

    vectors: those that were searched with. promise: where the caller asked for one. left_out: how many documents were,
    for the promise or because they have what search-box syntax excludes; unsure: the first k of them. counted_all:
    False where a database may hold more that have it. numbers: what became of bounds such as "under 20 minutes".
    """

    reading: Query
    hits: tuple[Hit, ...]
    vectors: QueryVectors = field(repr=False, compare=False)
    promise: Promise | None = None
    unsure: tuple[Hit, ...] = ()
    left_out: int = 0
    numbers: ReadNumbers = NO_NUMBERS
    counted_all: bool = True

    @property
    def notes(self) -> list[str]:
        """What of the query is not read as it stands there, and which bounds became filters, for people."""
        return [*self.reading.notes, *self.numbers.lines]

    @property
    def left_out_line(self) -> str:
        """What was left out and why, for people; "" where nothing was."""
        if self.promise is not None:
            return self.promise.line(listed(self.excluded_words, "or"), self.counted_all)
        return left_out_line(self.left_out, self.excluded_words, self.counted_all) if self.left_out else ""

    @property
    def unlisted_line(self) -> str:
        """How many of those that were left out are not among `unsure`, for people; "" where none is known."""
        more = self.left_out - len(self.unsure)
        return f"and {'' if self.counted_all else 'at least '}{more:,} more" if more > 0 else ""

    @property
    def operators(self) -> tuple[str, ...]:
        return self.reading.operators

    @property
    def cues(self) -> tuple[Span, ...]:
        return self.reading.cues

    @property
    def excluded_words(self) -> tuple[Condition, ...]:
        return self.reading.excluded

    @property
    def alternatives(self) -> tuple[Span, ...]:
        return self.reading.alternatives

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]

    def as_json(self) -> dict[str, Any]:
        content = {**self.reading.as_json(), "notes": self.notes, "hits": [asdict(hit) for hit in self.hits]}
        if self.numbers.filters:
            content["filters"] = [one._asdict() for one in self.numbers.filters]
        if self.numbers.unread:
            content["not_filtered"] = [one._asdict() for one in self.numbers.unread]
        if self.promise is not None:
            content["promise"] = asdict(self.promise)
        if self.promise is not None or self.left_out:
            content |= {"left_out": self.left_out, "counted_all": self.counted_all}
            content["unsure"] = [asdict(hit) for hit in self.unsure]
        return content


def left_out_line(count: int, excluded: Sequence[Span | Condition], counted_all: bool = True) -> str:
    """
    >>> left_out_line(2, [Span("not", "nuts", 6, 10)]), left_out_line(1, [Span("not", "nuts", 6, 10)], False)
    ('2 documents that have “nuts” were left out', 'at least 1 document that has “nuts” was left out')
    """
    some = "1 document that has {} was" if count == 1 else f"{count:,} documents that have {{}} were"
    return f"{'' if counted_all else 'at least '}{some.format(listed(excluded, 'or'))} left out"


def hits_of(found: Sequence[Candidate], parts: QueryVectors, violating: frozenset[int] | None) -> tuple[Hit, ...]:
    hits = []
    for rank, candidate in enumerate(found, start=1):
        known = candidate._asdict()
        vector = known.pop("vector")
        excluded = None if parts.excluded is None else float(vector @ parts.excluded)
        violates = None if violating is None or candidate.row is None else candidate.row in violating
        hits.append(Hit(rank, wanted=float(vector @ parts.wanted), excluded=excluded, violates=violates, **known))
    return tuple(hits)


def promise_of(limit: Limit, ranking: Ranking, reading: Query, is_calibrated: bool) -> Promise:
    """What an answer says about its line. is_calibrated: on the documents that are there now."""
    line, notes = limit.line, []
    if ranking.evidence is None:
        notes.append(
            "what is negated is a property of the answer, of which nothing is left out; --not set changes that"
            if reading.kind == "property" and reading.excluded
            else "nothing is excluded, so nothing was left out"
        )
    elif ranking.evidence < line.least:
        notes.append("hardly a document says anything about what is excluded: the line is not calibrated for that")
    if reading.excluded and reading.doubtful:
        notes.append(f"{quoted(reading.doubtful)} may exclude something that was not read; -word says it plainly")
    if not is_calibrated:
        notes.append("the line was calibrated on other documents: some were added, replaced or removed since")
    return Promise(limit.violations, ranking.left_out, line.exclusions, tuple(notes))
