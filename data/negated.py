"""200 questions that negate a predicate and exclude nothing: "Which birds do not fly?", "car not starting in the cold".

    python eval/exclusion.py --data data/negated_predicates

The project's own. A hundred subjects, each asked about as a question and as the words that people type into a search
box, with a passage that answers and one that says the opposite. A model that takes every negation for an exclusion
loses its subject here; nothing should rank lower than with the plain encoder.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from .lines import read_lines

FOLDER = Path(__file__).with_name("negated_predicates")
STYLES = ("question", "keywords")


class NegatedQuestion(NamedTuple):
    """A question, how it is written, the passage that answers it, and one that says the opposite."""

    text: str
    style: str
    answer: str
    opposite: str


def negated_predicates() -> list[NegatedQuestion]:
    """
    >>> negated_predicates()[0].text
    'Which birds do not fly?'
    """
    passages = {row["id"]: row["text"] for row in _rows("corpus")}
    return [
        NegatedQuestion(row["text"], row["style"], passages[row["gold"][0]], passages[row["traps"][0]])
        for row in _rows("queries")
    ]


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for _, line in read_lines(FOLDER / f"{name}.jsonl", progress=False)]
