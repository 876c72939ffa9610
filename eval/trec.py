"""Runs and judgements in TREC's format, which trec_eval and its kin read."""

import re
from pathlib import Path
from urllib.parse import quote

from boolbert.core.files import whole_file
from boolbert.data import Corpus
from boolbert.data.tasks import Task
from boolbert.retrieval.neighbours import Ranked, Scores


def identifier(text: str) -> str:
    """A title or id without what separates columns and lines; `urllib.parse.unquote` gives it back.

    >>> identifier("Costa Rica"), identifier("100% #1"), identifier("a\u2028b")
    ('Costa%20Rica', '100%25%20%231', 'a%E2%80%A8b')
    """
    return re.sub(r"[%#\s\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda match: quote(match.group(), safe=""), text)


def document_id(corpus: Corpus, row: int) -> str:
    """A document's title as an identifier; where two documents share a title, with the row.

    >>> from boolbert.data import Document
    >>> document_id(Corpus([Document("Costa Rica", "A country.")]), 0)
    'Costa%20Rica'
    """
    title = corpus.titles[row]
    return identifier(title) + (f"#{row}" if title in corpus.duplicates else "")


def write_run(path: Path, task: Task, scores: Scores, rows: Ranked, tag: str) -> None:
    """`query Q0 document rank score tag`, a line for each ranked document."""
    name = re.sub(r"\s+", "_", tag)
    names = [document_id(task.corpus, row) for row in range(len(task.corpus))]
    with whole_file(path) as aside, aside.open("w", encoding="utf-8") as file:
        for question, values, found in zip(task.questions, scores.tolist(), rows.tolist(), strict=True):
            file.writelines(
                f"{identifier(question.id)} Q0 {names[row]} {rank} {value:.9g} {name}\n"
                for rank, (value, row) in enumerate(zip(values, found, strict=True), start=1)
                if row >= 0
            )


def write_qrels(path: Path, task: Task) -> None:
    """`query 0 document 1`, a line for each gold document."""
    with whole_file(path) as aside, aside.open("w", encoding="utf-8") as file:
        for question, gold in zip(task.questions, task.gold, strict=True):
            file.writelines(f"{identifier(question.id)} 0 {document_id(task.corpus, int(row))} 1\n" for row in gold)
