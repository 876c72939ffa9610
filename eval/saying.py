"""How well documents are read: do they affirm a condition, deny it, or say nothing of it?

    python eval/saying.py                         # the trades of the author "first", which nothing has learned from
    python eval/saying.py --author t8

"Affirmed against the rest" and "against denied" are areas under the curve of the probability that it is affirmed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boolbert.boolean.clauses import split_clauses
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import EvaluationError, run_script
from boolbert.core.progress import shown_progress
from boolbert.data.trades import Label, trades
from boolbert.retrieval.document_reader import document_reader, passage
from boolbert.retrieval.evidence import unit_length
from boolbert.retrieval.metrics import saying_metrics
from boolbert.search.searcher import BoolSearcher


@dataclass
class Arguments:
    author: str = flag("first", "whose trades are read")
    labels: int | None = flag(None, "read this many of each trade")


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    own = [trade for trade in trades() if trade.author == args.author]
    reader, queries = document_reader(), BoolSearcher(progress=False, onnx=True).queries
    if reader is None or queries is None or not own:
        raise EvaluationError(f"no trades of {args.author}, or the encoder is not to be had")
    labels = [label for trade in own for label in trade.labels()[: args.labels]]
    vectors: dict[str, np.ndarray] = {}

    def encoded(text: str) -> np.ndarray:
        if text not in vectors:
            vectors[text] = unit_length(queries.plain_vectors([text]))[0]
        return vectors[text]

    def asked(label: Label) -> object:
        clauses = [(clause.start, clause.end) for clause in split_clauses(label.text)]
        near = np.array([encoded(label.text[start:end]) for start, end in clauses]) @ encoded(label.phrases[0])
        return passage(label.phrases[0], label.text, clauses, near)

    shares = []
    with shown_progress("read", len(labels), "label") as advance:
        for start in range(0, len(labels), 100):
            block = [asked(label) for label in labels[start : start + 100]]
            shares += [one[:3] for one in reader.read(block)]  # type: ignore[arg-type]
            advance(len(block))
    found = saying_metrics(shares, [label.says for label in labels])
    values = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    print(f"{len(own)} trades, {len(labels):,} labels: {values}")


if __name__ == "__main__":
    run_script(main)
