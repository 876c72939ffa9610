"""Queries that exclude something, made from documents, with the documents that have it."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..tasks import Task, quest_task
from .documents import OwnDocuments
from .folder import make_queries
from .words import plural

QUERIES = 2100  # of which two in seven exclude something
BARE = ("word", "phrase", "name")  # sorts of atoms that can stand behind "without"


class Exclusion(NamedTuple):
    """A query, and the documents that have what it excludes: their rows or, in a store, their ids."""

    query: str
    excluded: frozenset[int | str]


def make_exclusions(documents: OwnDocuments) -> list[Exclusion]:
    """As many as the documents give: "phones with a memory card slot but no headphone jack", "phones without edges"."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "queries"
        made = make_queries(documents, folder, queries=QUERIES)
        atoms = json.loads((folder / "atoms.json").read_text("utf-8"))
        heads = plural(made.heads[0])
        bare = (
            Exclusion(f"{heads} without {text}", frozenset(rows))
            for (sort, _, text), rows in ((key.partition(":"), rows) for key, rows in atoms.items())
            if sort in BARE
        )
        return [*exclusions_of(quest_task(folder, "train", progress=False)), *bare]


def exclusions_of(task: Task) -> Iterator[Exclusion]:
    """The queries of a task that exclude something."""
    for question, rows in zip(task.questions, task.negated or (), strict=False):
        if len(rows):
            yield Exclusion(question.text, frozenset(map(int, rows)))
