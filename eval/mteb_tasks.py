"""The data sets as MTEB tasks, so that any model of that ecosystem can be scored. Needs the extra `mteb`.

    import mteb
    from boolbert.eval.mteb_tasks import countries_task

    mteb.evaluate(mteb.get_model("sentence-transformers/all-MiniLM-L6-v2"), [countries_task()])

A model gets text alone; a Bool-BERT's own gate finds the operators. Beside MTEB's scores each task reports
R-precision, MRecall@100 and, where they are known, violations.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from boolbert.core.errors import optional
from boolbert.data.tasks import Task, boolquestions_task, quest_task
from boolbert.retrieval import ranking
from boolbert.retrieval.metrics import means

REFERENCE = "https://aclanthology.org/2023.acl-long.784"
REVISION = "1"


def countries_task(split: str = "test") -> Any:
    """Boolean queries over the embedded countries; nothing to download."""
    return _retrieval(
        "BooleanCountriesRetrieval",
        "Boolean queries about the world's countries, answered by set operations over a table of facts.",
        "boolbert/countries",
        split,
        "ndcg_at_10",
        lambda: quest_task(None, split, progress=False),
    )


def quest_retrieval_task(data: str, split: str = "test") -> Any:
    """QUEST: entity-seeking queries with implicit set operations; `data` is a folder or a Hub data set id."""
    return _retrieval(
        "QUESTRetrieval",
        "Entity-seeking queries with implicit set operations (union, intersection, difference).",
        str(data),
        split,
        "recall_at_100",
        lambda: quest_task(data, split, progress=False),
    )


def boolquestions_retrieval_task(data: str | None = None, split: str = "eval", subset: str = "MSMARCO") -> Any:
    """BoolQuestions: questions with AND, OR or NOT over a passage collection."""
    return _retrieval(
        f"BoolQuestions{subset}Retrieval",
        "Questions that hold AND, OR or NOT over a passage collection.",
        str(data or "boolbert/country-questions"),
        split,
        "mrr_at_10",
        lambda: boolquestions_task(data, split, subset, progress=False),
    )


def _retrieval(name: str, description: str, path: str, split: str, score: str, load: Callable[[], Task]) -> Any:
    optional("mteb", "mteb", "mteb")
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    class BooleanRetrieval(AbsTaskRetrieval):
        metadata = TaskMetadata(
            name=name,
            description=description,
            dataset={"path": path, "revision": REVISION},
            reference=REFERENCE,
            type="Retrieval",
            category="t2t",
            eval_splits=[split],
            eval_langs=["eng-Latn"],
            main_score=score,
            modalities=["text"],
        )

        def load_data(self, *args: Any, **kwargs: Any) -> None:
            if not getattr(self, "data_loaded", False):
                self.task = load()
                self.dataset = {"default": {split: split_data(self.task)}}
                self.data_loaded = True

        def task_specific_scores(self, scores: Any, qrels: Any, results: Any, *args: Any, **kwargs: Any) -> Any:
            return boolean_scores(self.task, results)

    return BooleanRetrieval()


def split_data(task: Task) -> dict[str, Any]:
    """A task as MTEB holds it. Documents are named by their row; queries without gold are left out."""
    datasets = optional("datasets", "datasets", "hub")
    texts = task.corpus.texts()
    asked = [index for index in range(len(task)) if len(task.gold[index])]
    return {
        "corpus": datasets.Dataset.from_dict({"id": [str(row) for row in range(len(texts))], "text": texts}),
        "queries": datasets.Dataset.from_dict(
            {
                "id": [task.questions[index].id for index in asked],
                "text": [task.questions[index].text for index in asked],
            }
        ),
        "relevant_docs": {task.questions[index].id: {str(row): 1 for row in task.gold[index]} for index in asked},
        "top_ranked": None,
    }


def boolean_scores(task: Task, results: dict[str, dict[str, float]]) -> dict[str, float]:
    """What MTEB does not measure, from its results `{query: {document: score}}`; ties by the lower row."""
    index_of = {question.id: index for index, question in enumerate(task.questions)}
    asked = [index_of[query] for query in results]
    ranked = [
        sorted((int(row) for row in found), key=lambda row: (-found[str(row)], row)) for found in results.values()
    ]
    rows = np.full((len(ranked), max(map(len, ranked), default=0)), -1, dtype=np.int64)
    for index, found in enumerate(ranked):
        rows[index, : len(found)] = found
    gold = [task.gold[index] for index in asked]
    values = {"r_precision": ranking.r_precision(rows, gold), "mrecall_at_100": ranking.mrecall_at_k(rows, gold, 100)}
    if task.violating is not None:
        values["violations"] = ranking.violation_rate(rows, [task.violating[index] for index in asked], gold)
    return means(values)
