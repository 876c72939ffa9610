"""Evaluators for sentence-transformers' trainer: QUEST-format data and BoolQuestions, any model.

evaluator = QuestEvaluator(split="dev")            # the embedded countries
SentenceTransformerTrainer(model, evaluator=evaluator, ...)
evaluator(model)["countries_dev_r_precision"]
"""

import csv
from pathlib import Path
from typing import Any

from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator

from boolbert.data.tasks import Task, boolquestions_task, quest_task
from boolbert.eval.results import slug
from boolbert.eval.systems import Dense
from boolbert.retrieval.batches import encode_inputs
from boolbert.retrieval.metrics import (
    Metrics,
    boolquestions_metrics,
    main_metric,
    means,
    quest_metrics,
    search_depth,
)


class TaskEvaluator(SentenceEvaluator):
    """Any task as an evaluator; with `output_path` each call adds a line to a CSV file there.

    `gate` as in `eval.systems.Dense`: None leaves a Bool-BERT's operators to its own gate.
    """

    def __init__(
        self,
        task: Task,
        metrics: Metrics,
        primary: str,
        *,
        name: str = "",
        gate: str | None = None,
        batch_size: int = 32,
        write_csv: bool = True,
    ):
        super().__init__()
        self.task = task
        self.metrics = metrics
        self.name = name or f"{slug(Path(task.name).name.removesuffix(' (embedded)'))}_{task.split}"
        self.gate = gate
        self.batch_size = batch_size
        self.write_csv = write_csv
        self.primary_metric = primary
        self._primary = primary

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        training = model.training
        texts = self.task.corpus.texts()
        vectors = encode_inputs(model, texts, "document", self.batch_size)
        system = Dense(self.name, model, vectors, self.gate)
        _, rows = system.search(self.task.questions, search_depth(self.task))
        model.train(training)
        found = means(self.metrics(self.task, rows))
        if output_path is not None and self.write_csv:
            self._add_line(Path(output_path), epoch, steps, found)
        self.primary_metric = self._primary
        result = self.prefix_name_to_metrics(found, self.name)
        self.store_metrics_in_model_card_data(model, result, epoch, steps)
        return result

    def _add_line(self, folder: Path, epoch: int, steps: int, found: dict[str, float]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{slug(self.name)}_results.csv"
        new = not path.exists()
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(["epoch", "steps", *found])
            writer.writerow([epoch, steps, *found.values()])


class QuestEvaluator(TaskEvaluator):
    """QUEST's recalls, R-precision, violations and the rest, on a folder, a Hub data set or the embedded countries."""

    def __init__(self, data: str | None = None, split: str = "dev", *, limit: int | None = None, **options):
        task = quest_task(data, split, limit, progress=False)
        super().__init__(task, quest_metrics, main_metric(len(task.corpus)), **options)


class BoolQuestionsEvaluator(TaskEvaluator):
    """MRR@10 and accuracy@K on positives and negatives."""

    def __init__(
        self,
        data: str | None = None,
        split: str = "eval",
        *,
        subset: str = "MSMARCO",
        limit: int | None = None,
        **options,
    ):
        task = boolquestions_task(data, split, subset, limit, progress=False)
        super().__init__(task, boolquestions_metrics, "mrr@10", **options)
