"""Is the promise kept? What a calibrated line leaves of what is excluded, and what it costs in right documents.

    python eval/exclusion_line.py                      # documents that deny: dev's line, asked on test
    python eval/exclusion_line.py --data boolmovies --calibrate train --split dev

Of the embedded documents that deny, exclusions are made from dev's texts, and test's queries are asked over test's
documents. Of QUEST-format data with atomic sets, the line is calibrated on one split's queries and asked on another's.
"Violations" is the mean share of the returned documents that have what is excluded, with its 95% interval over queries;
"lost" the share of the right documents among the first 100 that the line leaves out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from boolbert.core.arguments import flag, parse_arguments
from boolbert.core.errors import EvaluationError, run_script
from boolbert.core.tables import aligned
from boolbert.data.embedded import denials_folder
from boolbert.data.own import OwnDocuments
from boolbert.data.own.exclusions import Exclusion, exclusions_of, make_exclusions
from boolbert.data.tasks import quest_task
from boolbert.eval.searched import TextIndex
from boolbert.eval.significance import bootstrap
from boolbert.retrieval.exclusion_line import (
    DEPTHS,
    ExclusionLine,
    KnownExclusion,
    calibrated_line,
)
from boolbert.retrieval.models import default_model, load_model
from boolbert.retrieval.ranking import Values
from boolbert.search.calibrating import asked
from boolbert.search.searcher import BoolSearcher

SHOWN = (0.01, 0.05, 0.1)
DEPTH = max(DEPTHS)


@dataclass
class Arguments:
    model: str | None = flag(None, "model folder or Hub id; the default model if not given")
    data: str | None = flag(None, "QUEST-format folder with atomic sets")
    calibrate: str = flag("train", "its split that the line is calibrated on")
    split: str = flag("dev", "its split that is asked")
    queries: int = flag(600, "the most queries of each split")
    device: str | None = flag(None, "cpu, cuda, ...; the best there is")


class Asked(NamedTuple):
    """An exclusion, its documents best first, and which of them are right."""

    known: KnownExclusion
    right: npt.NDArray[np.bool_]


def ask(searcher: BoolSearcher, exclusions: Sequence[Exclusion], gold: Mapping[str, Any], limit: int) -> list[Asked]:
    """Ask queries that exclude something. gold: the rows that answer each."""
    found = []
    for one in exclusions[:limit]:
        known, rows = asked(searcher, one)
        if known is not None:
            found.append(Asked(known, np.isin(np.array(rows, int), list(gold.get(one.query, ())))))
    print(f"{len(found)} of {min(limit, len(exclusions))} exclusions are read as such")
    return found


def outcome(queries: Sequence[Asked], is_out: Sequence[npt.NDArray[np.bool_]]) -> tuple[Values, Values]:
    """What a line does: violations of each query for each of DEPTHS (3, Q), and the share of right ones lost (Q,)."""
    violations, lost = [], []
    for one, out in zip(queries, is_out, strict=True):
        kept = np.flatnonzero(~out)
        violations.append([float(one.known.has[kept[:depth]].mean()) if len(kept) else 0.0 for depth in DEPTHS])
        right = one.right[:DEPTH]
        lost.append(float(out[:DEPTH][right].mean()) if right.any() else 0.0)
    return np.array(violations).T, np.array(lost)


def interval(values: Values) -> str:
    """Mean and 95% interval over queries."""
    return "{mean:.3f} ({low:.3f} to {high:.3f})".format_map(bootstrap({"": values}, resamples=2000)[""])


def table(line: ExclusionLine, queries: Sequence[Asked]) -> str:
    header = ["line", *(f"violations in the first {depth}" for depth in DEPTHS), "lost"]
    rows = []
    for promise in (None, *SHOWN):
        name = "none" if promise is None else f"{promise:.0%}"
        if promise is not None and promise not in line.promises:
            rows.append([name, "cannot be promised", *[""] * len(DEPTHS)])
            continue
        most = 1.0 if promise is None else line.at(promise)
        violations, lost = outcome(queries, [line.probabilities(one.known.features) > most for one in queries])
        rows.append([name, *map(interval, violations), interval(lost)])
    return aligned(header, rows)


def main(words: Sequence[str] | None = None) -> None:
    args = parse_arguments(Arguments, __doc__, words)
    model = default_model(args.device) if args.model is None else load_model(args.model, device=args.device)
    if args.data is None:
        corpus = quest_task(denials_folder("dev"), "dev", progress=False).corpus
        rows = [{"title": document.title, "text": document.text} for document in corpus]
        made = make_exclusions(OwnDocuments(rows, progress=False))
        task = quest_task(denials_folder("test"), "test", progress=False)
    else:
        calibration, task = (quest_task(args.data, split, progress=False) for split in (args.calibrate, args.split))
        corpus, made = calibration.corpus, list(exclusions_of(calibration))
    exclusions = list(exclusions_of(task))
    if not made or not exclusions:
        raise EvaluationError(f"{task.name}: has no queries that exclude something whose atomic sets are known")
    held = TextIndex(corpus.texts(), model)
    found = BoolSearcher(model, held.index)
    known = [one.known for one in ask(found, made, {}, args.queries)]
    line = calibrated_line(known, len(corpus), "")
    if task.corpus.texts() != corpus.texts():
        held = TextIndex(task.corpus.texts(), model)
        found = BoolSearcher(model, held.index)
    print(f"\ncalibrated on {line.exclusions} exclusions; weights {line.weights}, lines {line.lines}\n")
    gold = {question.text: rows for question, rows in zip(task.questions, task.gold, strict=True)}
    print(table(line, ask(found, exclusions, gold, args.queries)))


if __name__ == "__main__":
    run_script(main)
