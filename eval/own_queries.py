"""How good is a search on a dozen queries of your own? Queries, and for each the documents that answer it.

    boolbert eval my_queries.csv --index my_index

A .csv, .tsv or .jsonl file with `query` and `relevant`: titles or ids, in a list, or in a text with ; or | between
them. Rows are compared: with evidence, where the index has it; the model's vectors alone; and the same with its
operators off.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boolbert.core.arguments import Parser
from boolbert.core.errors import DataError, RetrievalError
from boolbert.core.tables import aligned, number
from boolbert.core.terminal import fitted, print_json
from boolbert.data import Corpus, Document, Gold
from boolbert.data.own.formats import find_rows
from boolbert.data.rows import Row
from boolbert.data.tasks import Question, Task
from boolbert.retrieval.index import RECORDS, STORE, Index, write_index
from boolbert.retrieval.metrics import means, quest_metrics, search_depth
from boolbert.retrieval.ranking import hits
from boolbert.retrieval.stores import FileStore

if TYPE_CHECKING:
    from boolbert.retrieval.models import SearchModel

QUERY = ("query", "text", "question")
RELEVANT = ("relevant", "docs", "documents", "answers", "titles", "ids", "gold")
SHOWN = {"mrr@10": "MRR@10", "ndcg@10": "nDCG@10", "r_precision": "R-prec", "recall@20": "R@20", "recall@100": "R@100"}
# What is added to a document's title, where it is a passage or another document has the same title.
_ADDED = re.compile(r" \(\d+ of \d+\)$| \[[^\[\]]+\]$")


class Outcome(NamedTuple):
    """A system's means, and for each query the ranks (from 1) of its relevant documents."""

    system: str
    means: dict[str, float]
    ranks: list[list[int]]


@contextmanager
def opened_index(name: str) -> Iterator[Index]:
    """An index; of one to which documents were added, or from which some were removed, a copy of those that are there
    now, deleted in the end."""
    if not (Path(name) / STORE).exists():
        yield Index(name)
        return
    now = FileStore(name).snapshot()
    rows = np.flatnonzero(now.live)
    if not len(rows):
        raise RetrievalError(f"{name}: holds no documents to search")
    records = [now.full_record(int(row)) for row in rows]
    about = {"document_encoder": now.about.encoder, "model": now.about.model, "source": now.about.source}
    with tempfile.TemporaryDirectory(prefix="boolbert-") as folder:
        documents = [Document(record.title, record.text) for record in records]
        said = now.evidence.documents(rows) if now.about.evidence else None
        beside = (record.beside_text() for record in records)
        write_index(Path(folder), documents, beside, now.rows(rows), about, said)
        yield Index(folder)


def read_queries(path: str | Path, index: Index) -> Task:
    """The queries of a file as a task over an index. A document that the index does not have is an error."""
    corpus = Corpus(index.documents(), name=str(index.folder))
    rows_of = names_of(index, corpus.titles)
    questions: list[Question] = []
    gold: list[list[int]] = []
    for row in find_rows(path, (*QUERY, *RELEVANT)).rows(progress=False):
        query = row.text(_field(row, QUERY))
        questions.append(Question(f"q{len(questions)}", query, ()))
        gold.append([place for name in _relevant(row) for place in _rows(row, name, rows_of)])
    if not questions:
        raise DataError(f"{path}: there are no queries in it")
    return Task(str(path), "own", corpus, questions, Gold(gold, len(index)))


def names_of(index: Index, titles: Sequence[str]) -> dict[str, list[int]]:
    """The rows of each title or id, of a passage also by those of its document. A title stands for all its passages."""
    path = index.folder / RECORDS
    records = map(json.loads, path.open(encoding="utf-8")) if path.exists() else ({} for _ in titles)
    found: dict[str, list[int]] = defaultdict(list)
    for row, (title, record) in enumerate(zip(titles, records, strict=True)):
        names = [title, _ADDED.sub("", title), *(record[key] for key in ("id", "document") if key in record)]
        for name in {name.casefold() for name in names}:
            found[name].append(row)
    return found


def compare(model: "SearchModel", index: Index, task: Task) -> list[Outcome]:
    """With evidence, by the model's vectors alone, and with its operators off."""
    from boolbert.eval.searched import Searched
    from boolbert.search.searcher import BoolSearcher

    searcher = BoolSearcher(model, index)
    systems = [Searched("as the model is", searcher, "vectors" if searcher.is_boolean else "plain")]
    if index.evidence is not None:
        systems.insert(0, Searched("with evidence", searcher))
    if searcher.is_boolean:
        systems.append(Searched("operators off", searcher, "plain"))
    outcomes = []
    for system in systems:
        _, rows = system.search(task.questions, max(search_depth(task), min(100, len(index))))
        ranks = [(np.flatnonzero(found) + 1).tolist() for found in hits(rows, task.gold)]
        outcomes.append(Outcome(system.name, means(quest_metrics(task, rows)), ranks))
    return outcomes


def table(outcomes: Sequence[Outcome], task: Task) -> str:
    """The means of all systems, and where the first system finds each query's documents."""
    columns = [name for name in SHOWN if name in outcomes[0].means]
    rows = [[outcome.system, *(number(outcome.means[name]) for name in columns)] for outcome in outcomes]
    lines = [aligned([f"{len(task)} queries", *(SHOWN[name] for name in columns)], rows), ""]
    for question, gold, ranks in zip(task.questions, task.gold, outcomes[0].ranks, strict=True):
        first = f"first at {ranks[0]}" if ranks else "not found"
        among = sum(rank <= len(gold) for rank in ranks)
        lines.append(f"{first:>13}, {among} of {len(gold)} in the first {len(gold)}: {fitted(question.text, 80)}")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    parser = Parser(prog="boolbert eval", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", metavar="QUERIES", help="a .csv, .tsv, .jsonl or .parquet file")
    parser.add_argument("--index", metavar="DIR", required=True, help="a folder of `boolbert index`")
    parser.add_argument("--model", metavar="DIR", help="folder or Hub id; the index's own if not given")
    parser.add_argument("--device", help="cpu, cuda, ...; the best there is if not given")
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else on standard output")
    options = parser.parse_args(words)
    with opened_index(options.index) as index:
        return evaluate(index, options)


def evaluate(index: Index, options: argparse.Namespace) -> int:
    task = read_queries(options.queries, index)  # before a model is loaded, so that mistakes are reported at once

    from boolbert.retrieval.models import load_model

    model = load_model(options.model or index.model, device=options.device)
    index.check_model(model)
    print(model.note, file=sys.stderr)
    outcomes = compare(model, index, task)
    if options.json:
        print_json({outcome.system: {**outcome.means, "ranks": outcome.ranks} for outcome in outcomes})
    else:
        print(table(outcomes, task))
    return 0


def _field(row: Row, names: Sequence[str]) -> str:
    """The first of these fields that a row has; the first of all where it has none, so that an error names it."""
    return next((name for name in names if row.get(name) is not None), names[0])


def _relevant(row: Row) -> Sequence[str]:
    field = _field(row, RELEVANT)
    value = row.get(field)
    if isinstance(value, list):
        found: Sequence[str] = [str(item) if isinstance(item, int) else item for item in value]
        found = Row(row.file, row.line, {field: found}, unit=row.unit).texts(field)
    else:
        found = [name for part in re.split(r"[;|]", row.identifier(field)) if (name := part.strip())]
    if not found:
        raise row.error(field, "names no document; give titles or ids")
    return found


def _rows(row: Row, name: str, rows_of: dict[str, list[int]]) -> list[int]:
    if name.casefold() in rows_of:
        return rows_of[name.casefold()]
    near = get_close_matches(name.casefold(), rows_of, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ", by title or id"
    raise DataError(f"{row.where}: the index has no document {name!r}{hint}")
