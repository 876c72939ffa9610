"""Learn what the document reader's probabilities count beside the first stage, with whole collections left out.

    python train/ranking.py                   # over the trades of three authors, which no reader has learned from

Each trade is scored with the constants that are best on all other trades; the last line is what to write into
`COLLECTION` in retrieval/scoring.py: the constants that are best on all. "Good" and "violating" are shares of the first
R documents, R being how many are good, at most ten; what is best has the largest difference of the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import run_script
from boolbert.core.progress import shown_progress
from boolbert.data.trades import Trade, TradeQuery, by_authors, trades
from boolbert.eval.searched import TextIndex
from boolbert.retrieval.document_reader import document_reader
from boolbert.retrieval.models import default_model
from boolbert.retrieval.scoring import Question, first_stage
from boolbert.search.rank import READ, RankedDocuments, reread, what_they_say
from boolbert.search.searcher import BoolSearcher

WANTED, EXCLUDED = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.8), (0.0, 0.8, 1.5, 2.5, 4.0, 6.0, 9.0)
FLOORS = (0.02, 0.05, 0.1)
MOST = 10  # documents of which good and violating ones are counted


@dataclass
class Arguments:
    authors: str = flag("first,t8,last", "whose trades are learned from, by commas")
    read: int = flag(READ, "documents that the document reader looks at")


class Scored(NamedTuple):
    """A query with its documents, best first by the first stage, and what those that were read say."""

    query: TradeQuery
    question: Question
    scores: npt.NDArray[np.float32]
    rows: npt.NDArray[np.int64]
    said: dict


class Outcome(NamedTuple):
    good: float
    violating: float

    @property
    def gain(self) -> float:
        return self.good - self.violating


def scored(trade: Trade, searcher: BoolSearcher, read: int) -> list[Scored]:
    """The queries of a trade after the first stage, and read."""
    reader = document_reader()
    assert reader is not None
    found = []
    for query in trade.queries():
        if not query.good:
            continue
        question, parts = searcher.question(query.text)

        def look(
            documents: RankedDocuments, question: Question = question, parts=parts, query: TradeQuery = query
        ) -> Scored:
            rows = np.arange(len(documents.vectors))
            vectors = documents.vectors.rows(rows).astype(np.float32)
            scores = first_stage(documents.evidence, question, rows, parts.scores(vectors), vectors)
            order = np.lexsort((rows, -scores))
            first = order[:read]
            said = what_they_say(reader, documents, question, rows[first].tolist(), scores[first], len(first))
            return Scored(query, question, scores[order], rows[order], said)

        found.append(searcher.documents.ranked(None, look, question, parts, len(trade.texts)))
    return found


def outcome(queries: Sequence[Scored], constants: tuple[float, float, float]) -> Outcome:
    """The means over queries with these constants."""
    names = ("read_wanted", "read_excluded", "floor")
    each = []
    for one in queries:
        told = dict(zip(names, constants, strict=True))
        if not one.question.weights.read_excluded:  # a property
            told["read_excluded"] = 0.0
        question = replace(one.question, weights=one.question.weights._replace(**told))
        _, rows = reread(question, one.scores, one.rows, one.said, 1.0)
        first = rows[: min(len(one.query.good), MOST)]
        each.append((np.isin(first, one.query.good).mean(), np.isin(first, one.query.violating).mean()))
    return Outcome(*np.mean(each, axis=0).tolist())


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    model, own = default_model("cpu"), by_authors(trades(), args.authors.split(","), "--authors")
    collections = {}
    with shown_progress("read", len(own), "trade") as advance:
        for trade in own:
            held = TextIndex(trade.texts, model, progress=False)
            collections[trade.name] = scored(trade, BoolSearcher(model, held.index, onnx=True), args.read)
            advance(1)
    grid = list(product(WANTED, EXCLUDED, FLOORS))
    table = {name: [outcome(queries, constants) for constants in grid] for name, queries in collections.items()}

    def best(names: Sequence[str]) -> int:
        return int(np.argmax([np.mean([table[name][row].gain for name in names]) for row in range(len(grid))]))

    left_out = []
    for name in table:
        row = best([other for other in table if other != name])
        left_out.append(table[name][row])
        print(f"{name:14} left out: {grid[row]}, good {left_out[-1].good:.3f}, violating {left_out[-1].violating:.3f}")
    none = [table[name][grid.index((0.0, 0.0, FLOORS[0]))] for name in table]
    for label, outcomes in (("nothing read", none), ("left out", left_out)):
        means = np.mean(outcomes, axis=0)
        print(f"{label:14} mean of all: good {means[0]:.3f}, violating {means[1]:.3f}")
    print(f"{len(grid)} settings; best on all: read_wanted, read_excluded, floor = {grid[best(list(table))]}")


if __name__ == "__main__":
    run_script(main)
