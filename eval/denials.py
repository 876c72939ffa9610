"""What a NOT should keep away, in the top ten, where documents say what they lack.

    python eval/denials.py [--split test] [--model DIR_OR_HUB_ID ...]

For each query of the embedded documents that deny (docs/denials.md): how many of its first ten documents have what it
excludes, and how many are of another kind than it asks for. Without a model, the plain encoder and the model that
`boolbert search` uses. Other QUEST-format data: --data FOLDER, with its atomic sets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from boolbert.core.arguments import parse_arguments
from boolbert.core.errors import EvaluationError, run_script
from boolbert.core.tables import aligned
from boolbert.data.embedded import denials_folder
from boolbert.data.quest import Quest
from boolbert.data.tasks import Question, Task, quest_task
from boolbert.eval.evidence import WithEvidence
from boolbert.eval.systems import Dense, System
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.models import default_model, load_encoder
from boolbert.retrieval.neighbours import Ranked

DEPTH = 10
Rank = Callable[[Sequence[Question], int], Ranked]  # the k best rows of each question: (Q, k)


@dataclass
class Arguments:
    split: str = field(default="dev", metadata={"help": "dev or test"})
    model: list[str] = field(default_factory=list, metadata={"help": "model folders or Hub ids", "nargs": "+"})
    data: str | None = field(default=None, metadata={"help": "QUEST-format folder with atomic sets"})
    device: str | None = field(default=None, metadata={"help": "cpu, cuda, ...; the best there is"})


@dataclass(frozen=True)
class Wrong:
    """How many of each query's first documents have what is excluded, and how many are off its topic."""

    excluded: npt.NDArray[np.int64]
    off_topic: npt.NDArray[np.int64]


def denial_task(split: str, data: str | None = None) -> tuple[Task, list[set[int]]]:
    """The queries that exclude, and for each the documents of the kind that it asks for."""
    folder = denials_folder(split) if data is None else data
    task = quest_task(folder, split, progress=False)
    quest = Quest(folder, progress=False)
    queries = quest.queries(split)
    chosen = [row for row, query in enumerate(queries) if query.atoms and "not" in (query.operators or ())]
    if quest.atoms is None or task.negated is None or not chosen:
        raise EvaluationError(f"{folder}, {split}: no query with NOT whose atomic sets are known")
    kinds = [set.intersection(*(set(quest.atoms[name].tolist()) for name in queries[row].atoms[:-1])) for row in chosen]
    groups = {kind: [names[row] for row in chosen] for kind, names in task.groups.items()}
    questions, negated = [task.questions[row] for row in chosen], [task.negated[row] for row in chosen]
    gold = quest.gold([queries[row] for row in chosen])
    return Task(task.name, split, task.corpus, questions, gold, negated=negated, groups=groups), kinds


def count_wrong(rows: Ranked, excluded: Sequence[Any], kinds: Sequence[set[int]]) -> Wrong:
    """Count in the first documents of each query.

    >>> wrong = count_wrong(np.array([[0, 1, 5]]), [[1, 2]], [{0, 1, 2, 3}])
    >>> wrong.excluded.tolist(), wrong.off_topic.tolist()
    ([1], [1])
    """
    sets = [{int(row) for row in some} & kind for some, kind in zip(excluded, kinds, strict=True)]
    found = [[int(row) for row in line] for line in rows]
    return Wrong(
        np.array([sum(row in wrong for row in line) for line, wrong in zip(found, sets, strict=True)]),
        np.array([sum(row not in kind for row in line) for line, kind in zip(found, kinds, strict=True)]),
    )


def measure(rank: Rank, task: Task, kinds: Sequence[set[int]]) -> Wrong:
    """Any way to rank documents, on the first ten."""
    return count_wrong(rank(task.questions, DEPTH), task.negated or [], kinds)


def table(found: dict[str, Wrong], task: Task) -> str:
    """A line for each system: excluded and off-topic documents, of all places in the first ten of a group's queries."""
    domains = task.groups.get("domain", ["all"] * len(task))
    names = sorted(set(domains), key=domains.index)
    counts = {name: domains.count(name) for name in names}
    header = ["system", *(f"{name} ({counts[name]} queries)" for name in names), "off topic"]
    lines = []
    for system, wrong in found.items():
        cells = [
            str(sum(int(n) for n, own in zip(wrong.excluded, domains, strict=True) if own == name)) for name in names
        ]
        lines.append([system, *cells, str(int(wrong.off_topic.sum()))])
    return aligned(header, lines)


def ranks(name: str, model: Any, task: Task) -> dict[str, Rank]:
    """A model by its vectors alone, and with what documents say."""
    texts = task.corpus.texts()
    dense = Dense(name, model, encode_inputs(model, texts, "document", 32))
    systems = [dense, WithEvidence(f"{name}, with evidence", dense, texts)]
    return {system.name: partial(_rows, system) for system in systems}


def _rows(system: System, questions: Sequence[Question], k: int) -> Ranked:
    return system.search(questions, k)[1]


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    task, kinds = denial_task(args.split, args.data)
    if args.model:
        models = {name: load_encoder(name, device=args.device) for name in args.model}
    else:
        plain = load_encoder(None, device=args.device)
        models = {"plain encoder": plain, "boolbert search": default_model(args.device).encoder}
    systems = [system for name, model in models.items() for system in ranks(name, model, task).items()]
    found = {name: measure(rank, task, kinds) for name, rank in systems}
    print(f"\n{task.name}, {args.split}: excluded documents in the first {DEPTH} of each query\n\n{table(found, task)}")


if __name__ == "__main__":
    run_script(main)
