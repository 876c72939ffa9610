"""Queries of each kind of NOT whose answers are known: `kinds_examples.tsv`."""

from pathlib import Path

LINES = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
ROWS = [line.split("\t") for line in LINES if not line.startswith("#")]
TOPICS, PROPERTIES = ([tuple(row) for kind, *row in ROWS if kind == wanted] for wanted in ("topic", "property"))
SETS = [query for kind, query, *_ in ROWS if kind == "set"]
